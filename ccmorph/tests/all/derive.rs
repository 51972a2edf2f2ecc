//! The derive on types with parameters, of macros and with names of their own; the module `any`
//! has enums.

use ccmorph::{TreeNode, ccmorph};
use std::fmt::Debug;
use std::ptr::{NonNull, null};

#[derive(TreeNode)]
struct Generic<'text, K, V: Debug, const N: usize>
where
    K: Ord + 'text,
{
    key: K,
    text: &'text str,
    values: [V; N],
    #[child]
    left: Option<Box<Generic<'text, K, V, N>>>,
    #[child]
    right: Option<Box<Self>>,
}

#[test]
fn generics_lifetimes_and_where_clauses_are_kept() {
    fn leaf(key: &str, text: &'static str) -> Option<Box<Generic<'static, String, u16, 2>>> {
        let (key, values) = (key.to_owned(), [7; 2]);
        Some(Box::new(Generic {
            key,
            text,
            values,
            left: None,
            right: None,
        }))
    }

    let mut root = leaf("root", "borrowed");
    let node = root.as_mut().unwrap();
    (node.left, node.right) = (leaf("left", "bo"), leaf("right", "rrowed"));
    assert_eq!(ccmorph(&mut root, Generic::children).unwrap().nodes, 3);
    let node = root.unwrap();
    let (left, right) = (node.left.unwrap(), node.right.unwrap());
    assert_eq!((&*left.key, left.text, left.values), ("left", "bo", [7; 2]));
    assert_eq!((&*right.key, right.text), ("right", "rrowed"));
}

#[test]
fn macros_may_make_nodes() {
    macro_rules! node {
        ($name:ident, $link:ty) => {
            #[derive(TreeNode)]
            struct $name {
                visit: u8,
                #[child]
                link_0: $link,
            }
        };
    }
    node!(Made, Option<Box<Made>>);
    let made = |visit, link_0| Made { visit, link_0 };
    let mut root = made(1, Some(Box::new(made(2, None))));
    let mut shown = 0;
    root.children(&mut |_links| shown += 1);
    assert_eq!(shown, 1);
    assert_eq!(ccmorph(&mut root.link_0, Made::children).unwrap().nodes, 1);
    assert_eq!((root.visit, root.link_0.unwrap().visit), (1, 2));
}

/// A collection of another crate, with `iter_mut`.
struct Few<T>(Vec<T>);

impl<T> Few<T> {
    fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

#[derive(TreeNode)]
struct WithFew {
    key: u32,
    #[child(each)]
    children: Few<Box<WithFew>>,
    #[parent]
    up: Option<NonNull<WithFew>>,
    #[pointer]
    first: [*const WithFew; 1],
}

#[test]
fn collections_that_iterate_over_links_are_children() {
    let node = |key, children, up| {
        Box::new(WithFew {
            key,
            children: Few(children),
            up,
            first: [null()],
        })
    };
    let mut root = node(0, Vec::new(), None);
    let at = NonNull::from(&mut *root);
    root.children.0 = vec![node(1, Vec::new(), Some(at)), node(2, Vec::new(), Some(at))];
    root.first = [&raw const *root.children.0[0]];
    assert_eq!(ccmorph(&mut root, WithFew::children).unwrap().nodes, 3);
    assert_ne!(at, NonNull::from(&mut *root));
    assert!(std::ptr::eq(root.first[0], &raw const *root.children.0[0]));
    for (child, key) in root.children.0.iter().zip([1, 2]) {
        assert!(std::ptr::eq(child.up.unwrap().as_ptr(), &raw const *root) && child.key == key);
    }
    assert_eq!((root.key, root.children.0.len()), (0, 2));
}

mod names_that_are_taken {
    //! Items and lifetimes of names that a macro might use.
    #![expect(
        non_upper_case_globals,
        reason = "what a pattern of the name would mean"
    )]

    use ccmorph::{TreeNode, ccmorph};
    use std::collections::VecDeque;

    const visit: u8 = 1;
    const link: u8 = 2;
    const field_0: u8 = 3;
    static field_1: u8 = 4;
    static field_2: u8 = 5;

    #[derive(TreeNode)]
    struct Node<'__node, 'n> {
        texts: [&'__node &'n str; 2],
        #[child]
        visit: Option<Box<Node<'__node, 'n>>>,
        #[child(each)]
        link: VecDeque<Box<Node<'__node, 'n>>>,
        #[pointer]
        field_0: *const Node<'__node, 'n>,
    }

    #[test]
    fn items_and_lifetimes_may_have_any_name() {
        assert_eq!(visit + link + field_0 + field_1 + field_2, 15);
        let (texts, null) = ([&"text"; 2], std::ptr::null());
        let node = |kid, kids| {
            Box::new(Node {
                texts,
                visit: kid,
                link: kids,
                field_0: null,
            })
        };
        let leaf = || node(None, VecDeque::new());
        let child = node(None, [leaf()].into());
        let at = &raw const *child;
        let mut root = Some(node(Some(child), [leaf(), leaf()].into()));
        root.as_mut().unwrap().field_0 = at;
        assert_eq!(ccmorph(&mut root, Node::children).unwrap().nodes, 5);
        let node = root.unwrap();
        let child = node.visit.as_ref().unwrap();
        assert!(std::ptr::eq(node.field_0, &raw const **child) && node.field_0 != at);
        assert_eq!((node.link.len(), child.link.len()), (2, 1));
        assert_eq!(*child.link[0].texts[1], "text");
    }
}
