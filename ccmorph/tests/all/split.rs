//! `#[split]` and `#[field_order]`: what both structs are, and that they behave as one did.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::{PhantomData, PhantomPinned};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;
use std::sync::MutexGuard;

use ccmalloc::{near, unhinted, watch};
use ccmorph::{ColdTable, TreeNode, ccmorph, field_order, split};

#[split(cold(name, notes))]
#[derive(TreeNode, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node {
    key: u64,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Node>>,
    name: String,
    notes: [u64; 4],
}

fn node(key: u64, name: &str) -> Node {
    Node::from(NodeFields {
        key,
        left: None,
        right: None,
        name: name.to_owned(),
        notes: [key; 4],
    })
}

#[test]
fn the_hot_struct_shrinks_and_has_all_fields() {
    assert_eq!(size_of::<Node>(), 32);
    assert_eq!(size_of::<NodeCold>(), 56);
    let mut it = node(5, "five");
    it.name_mut().push('!');
    it.notes_mut()[1] = 8;
    assert_eq!(
        (it.key, &**it.name(), it.notes()),
        (5, "five!", &[5, 8, 5, 5])
    );
    let Node {
        key, cold, left, ..
    } = it;
    let NodeCold { name, notes } = *cold;
    assert_eq!((key, left, &*name, notes[1]), (5, None, "five!", 8));
}

#[test]
fn derives_hold_for_the_whole() {
    let (a, mut b) = (node(1, "a"), node(1, "b"));
    assert_ne!(a, b);
    assert!(a < b && node(2, "a") > b);
    let hash = |node: &Node| {
        let mut hasher = DefaultHasher::new();
        node.hash(&mut hasher);
        hasher.finish()
    };
    assert_ne!(hash(&a), hash(&b));
    b.name_mut().replace_range(.., "a");
    assert_eq!((&a, hash(&a)), (&b, hash(&b)));
    let copy = a.clone();
    assert_eq!(copy, a);
    assert!(!std::ptr::eq(copy.name(), a.name()));
    assert_eq!(Node::default(), node(0, ""));
    assert!(format!("{a:?}").contains("cold: NodeCold { name: \"a\""));
}

#[test]
fn split_nodes_are_morphed() {
    let mut root = near(&(), || Some(Box::new(node(0, "0"))));
    for key in 1..500_u64 {
        let mut place = &mut root;
        let mut turns = key;
        while let Some(node) = place {
            place = match turns % 2 {
                0 => &mut node.left,
                _ => &mut node.right,
            };
            turns /= 2;
        }
        *place = Some(Box::new(node(key, &key.to_string())));
    }
    assert_eq!(ccmorph(&mut root, Node::children).unwrap().nodes, 500);
    let mut found = HashSet::new();
    let mut left = vec![&root];
    while let Some(node) = left.pop() {
        let Some(node) = node else { continue };
        assert_eq!(**node.name(), node.key.to_string());
        assert_eq!(node.notes(), &[node.key; 4]);
        found.insert(node.key);
        left.extend([&node.left, &node.right]);
    }
    assert_eq!(found.len(), 500);
}

#[test]
fn cold_fields_take_no_room_beside_hot_ones() {
    #[split(cold(text))]
    struct Small {
        next: Option<Box<Small>>,
        text: [u8; 16],
    }

    let watch = watch();
    let make = |next, text| Box::new(Small::from(SmallFields { next, text }));
    let mut list = near(&(), || make(None, [0; 16]));
    for text in 1..20 {
        list = near(&list, || make(None, [text; 16])).followed_by(list);
    }
    impl Small {
        fn followed_by(mut self: Box<Small>, next: Box<Small>) -> Box<Small> {
            self.next = Some(next);
            self
        }
    }
    // One hinted object each, and not two.
    assert_eq!(watch.report().hinted(), 20);
    let block = |it: &Small| std::ptr::from_ref(it).addr() / 64;
    let neighbours = |it: &&Small| {
        it.next
            .as_ref()
            .is_some_and(|next| block(next) == block(it))
    };
    let nodes = std::iter::successors(Some(&*list), |it| it.next.as_deref());
    assert!(nodes.clone().filter(neighbours).count() >= 10);
    let texts: Vec<u8> = nodes.map(|it| it.text()[15]).collect();
    assert_eq!(texts, (0..20).rev().collect::<Vec<u8>>());
    assert_eq!(*near(&list, || unhinted(|| Box::new(3))), 3);
    assert_eq!(watch.report().hinted(), 20);
}

trait Named {
    type Name;
}

impl Named for u8 {
    type Name = String;
}

mod far {
    use super::{Debug, Named, PhantomData, split};

    /// Documented.
    #[split(cold(r#type, name, text, both))]
    #[derive(Debug)]
    #[must_use]
    #[repr(C, align(64))]
    pub(super) struct Generic<'text, 'other: 'text, K, V: Named, const N: usize, U = u8>
    where
        K: Ord + PartialEq<U> + 'text,
        V::Name: Debug,
        U: Copy,
    {
        pub(super) r#type: [K; N],
        pub name: V::Name,
        /// Of the same length.
        pub(super) text: &'text str,
        both: (K, V::Name),
        pub(super) other: PhantomData<&'other U>,
        #[cfg(any())]
        never: Missing,
        pub(super) values: Vec<(V, U)>,
    }

    impl<K: Ord + PartialEq<U>, V: Named<Name: Debug>, U: Copy> Generic<'_, '_, K, V, 2, U> {
        pub(super) fn both_of(&self) -> &K {
            // A link that not everybody may exchange is private, as `both` is.
            &self.cold.both.0
        }
    }

    pub(super) fn make<'a>(text: &'a str) -> Generic<'a, 'static, u16, u8, 2, u16> {
        Generic::from(GenericFields {
            r#type: [1, 2],
            name: "name".to_owned(),
            text,
            both: (3, String::new()),
            other: PhantomData,
            values: vec![(4, 5)],
        })
    }
}

#[test]
fn generics_visibility_and_layout_stay() {
    let text = String::from("borrowed");
    let mut it = far::make(&text);
    it.type_mut()[0] += 6;
    assert_eq!(
        (it.r#type(), &**it.name(), *it.text()),
        (&[7, 2], "name", "borrowed")
    );
    assert_eq!(
        (it.values[0], *it.both_of(), it.other),
        ((4, 5), 3, PhantomData)
    );
    assert_eq!(align_of_val(&it), 64);
    // The order of the source, though the first field is the smallest.
    type Cold<'a> = far::GenericCold<'a, u16, u8, 2>;
    assert_eq!(std::mem::offset_of!(Cold<'_>, name), 8);
    assert_eq!(align_of::<Cold<'_>>(), 8);
}

#[split(cold(name, notes), cold = "table", no_accessors)]
#[derive(Debug)]
struct Quiet {
    key: u32,
    name: String,
    notes: Vec<u8>,
}

impl Quiet {
    /// Would be a second one.
    fn name<'t>(&self, names: &'t ColdTable<QuietCold>) -> &'t str {
        &names[&self.cold].name
    }
}

#[split(cold(name), cold = "table")]
struct Row<'text> {
    key: u32,
    name: &'text str,
}

#[test]
fn tables_take_entries_and_give_them_back() {
    let mut names = ColdTable::new();
    let make = |key: u32, names: &mut ColdTable<QuietCold>| {
        let (name, notes) = (key.to_string(), vec![1]);
        QuietFields { key, name, notes }.split_into(names)
    };
    let mut rows: Vec<Quiet> = (0..10).map(|key| make(key, &mut names)).collect();
    assert_eq!(size_of::<Quiet>(), 8);
    let Quiet { key, cold, .. } = rows.remove(3);
    let QuietCold { name, notes } = names.remove(cold);
    assert_eq!((key, &*name, notes), (3, "3", vec![1]));
    rows.push(make(11, &mut names));
    assert_eq!(
        format!("{:?}", rows[9]),
        "Quiet { key: 11, cold: ColdIndex(3) }"
    );
    assert!(
        rows.iter()
            .all(|row| row.name(&names) == row.key.to_string())
    );
    assert_eq!((names.len(), names.is_empty()), (10, false));

    let text = String::from("text");
    let mut names = ColdTable::new();
    let row = RowFields {
        key: 1,
        name: &text,
    }
    .split_into(&mut names);
    assert_eq!((row.key, *row.name(&names)), (1, "text"));
    *row.name_mut(&mut names) = "other";
    assert_eq!(*row.name(&names), "other");
}

#[test]
#[should_panic(expected = "invalid key")]
fn an_index_of_another_table_leads_nowhere() {
    let mut names = ColdTable::new();
    let row = RowFields { key: 1, name: "" }.split_into(&mut names);
    row.name(&ColdTable::default());
}

#[test]
fn names_of_the_user_are_not_taken() {
    // A constant in a pattern, a function and a type with names that generated code might use.
    #[expect(non_upper_case_globals, reason = "a name of generated code")]
    const fields: u8 = 1;
    #[expect(dead_code, reason = "may stand in the way")]
    struct Box;
    macro_rules! made {
        ($name:ident, $cold:ident) => {
            #[split(cold($cold))]
            struct $name {
                table: u8,
                $cold: [u16; 8],
            }
        };
    }
    made!(Made, seldom);
    let made = Made::from(MadeFields {
        table: fields,
        seldom: [2; 8],
    });
    assert_eq!((made.table, made.seldom()[7]), (1, 2));
}

#[test]
fn orders_of_fields_are_those_of_the_source() {
    #[field_order(size = 24, offsets(small = 0, large = 8, last = 16))]
    struct Pinned {
        small: u8,
        large: u64,
        last: u16,
    }

    #[field_order(of = Generic<'static, u16>, offsets(0 = 0, 1 = 16))]
    #[repr(C)]
    struct Generic<'text, T>(&'text str, T);

    let it = Pinned {
        small: 1,
        large: 2,
        last: 3,
    };
    let start = std::ptr::from_ref(&it).addr();
    let at = [
        &raw const it.small as usize,
        &raw const it.large as usize,
        &raw const it.last as usize,
    ];
    assert_eq!(at.map(|at| at - start), [0, 8, 16]);
    assert_eq!((it.small, it.large, it.last), (1, 2, 3));
    assert_eq!((Generic("a", 4).0, Generic("a", 4).1), ("a", 4));
}

/// Whether a type has a trait; for a trait that is not there, the constant of all types is found.
macro_rules! has {
    ($type:ty: $trait:path) => {{
        #[allow(dead_code, reason = "of types that have the trait")]
        trait Not {
            const HAS: bool = false;
        }
        impl<T: ?Sized> Not for T {}
        struct Is<T: ?Sized>(PhantomData<T>);
        #[allow(dead_code, reason = "of types that lack the trait")]
        impl<T: ?Sized + $trait> Is<T> {
            const HAS: bool = true;
        }
        Is::<$type>::HAS
    }};
}

macro_rules! auto_traits {
    ($type:ty) => {
        [
            has!($type: Send),
            has!($type: Sync),
            has!($type: Unpin),
            has!($type: UnwindSafe),
            has!($type: RefUnwindSafe),
        ]
    };
}

struct Whole<H, C> {
    _hot: H,
    _cold: C,
}

#[split(cold(cold_one, pad), no_accessors)]
#[allow(dead_code, reason = "a type to ask about")]
struct Boxed<H, C> {
    hot: H,
    cold_one: C,
    pad: [u64; 2],
}

#[split(cold(cold_one, pad), cold = "table")]
#[allow(dead_code, reason = "a type to ask about")]
struct Tabled<H, C> {
    hot: H,
    cold_one: C,
    pad: [u64; 2],
}

/// A node that holds others, without a parameter.
#[split(cold(pin, others))]
struct Pinned {
    key: u64,
    pin: PhantomPinned,
    others: Vec<(Self, *const Self)>,
}

#[test]
fn auto_traits_are_those_of_all_fields() {
    macro_rules! same {
        ($($type:ty),* $(,)?) => {$(
            let traits = auto_traits!(Whole<u8, $type>);
            assert_eq!(auto_traits!(Boxed<u8, $type>), traits, "cold {}", stringify!($type));
            assert_eq!(auto_traits!(Boxed<$type, u8>), traits, "hot {}", stringify!($type));
            assert_eq!(auto_traits!(Tabled<u8, $type>), traits, "table {}", stringify!($type));
        )*};
    }
    same!(
        u8,
        String,
        PhantomPinned,
        Rc<u8>,
        Cell<u8>,
        *const u8,
        &'static Cell<u8>,
        &'static mut u8,
        MutexGuard<'static, u8>,
        Box<dyn Send>,
        Box<dyn Fn() + Sync + Unpin>,
        Option<Box<PhantomPinned>>,
        PhantomData<(Rc<u8>, PhantomPinned)>,
    );
    assert!(has!(Boxed<u8, u8>: Unpin) && !has!(Boxed<u8, PhantomPinned>: Unpin));
    assert!(!has!(Pinned: Unpin) && !has!(Pinned: Send) && has!(Node: Unpin));
    let one = PinnedFields {
        key: 1,
        pin: PhantomPinned,
        others: Vec::new(),
    };
    assert_eq!((Pinned::from(one).key, size_of::<Pinned>()), (1, 16));
}

#[test]
fn lifetimes_may_shrink_and_grow_as_without_the_split() {
    #[split(cold(text, pad))]
    struct Shrinks<'a> {
        key: u8,
        text: &'a str,
        pad: u64,
    }
    #[split(cold(take, pad), cold = "table")]
    struct Grows<'a, T> {
        key: u8,
        take: PhantomData<fn(&'a T)>,
        pad: [u64; 2],
    }
    fn shrinks<'a>(it: Shrinks<'static>, _: &'a str) -> Shrinks<'a> {
        it
    }
    fn grows<'a>(it: Grows<'a, &'a str>) -> Grows<'static, &'static str> {
        it
    }
    let text = String::from("text");
    let (key, pad) = (1, [2; 2]);
    let mut table = ColdTable::new();
    let one = GrowsFields {
        key,
        take: PhantomData,
        pad,
    };
    assert_eq!(grows(one.split_into(&mut table)).key, key);
    // What borrows may be dropped after what it borrows, as boxes have no destructor of their own.
    let mut late = None;
    let short = String::from("short");
    let one = ShrinksFields {
        key,
        text: "long",
        pad: pad[0],
    };
    late = late.or(Some(shrinks(Shrinks::from(one), &text)));
    *late.as_mut().unwrap().text_mut() = &short;
    assert_eq!((late.unwrap().key, short.len()), (key, 5));
}

thread_local! {
    static DROPPED: RefCell<String> = const { RefCell::new(String::new()) };
}

struct Says(char);

impl Drop for Says {
    fn drop(&mut self) {
        DROPPED.with_borrow_mut(|all| all.push(self.0));
    }
}

#[test]
#[expect(dead_code, reason = "that fields are dropped counts")]
fn fields_are_dropped_and_compared_in_the_order_of_the_source() {
    #[split(cold(b, pad, c), no_accessors)]
    struct Ordered {
        a: Says,
        b: Says,
        pad: [u64; 2],
        c: Says,
        d: Says,
    }
    // Between cold fields are some that are not dropped, and cold ones that are not come later.
    #[split(cold(a, c, pad), no_accessors)]
    struct Scattered<'a, T, const N: usize> {
        a: Says,
        b: (u8, &'a str),
        c: [Says; 1],
        of: PhantomData<T>,
        d: [T; N],
        pad: &'a T,
    }
    let [a, b, c, d] = ['a', 'b', 'c', 'd'].map(Says);
    let pad = [0; 2];
    drop(Ordered::from(OrderedFields { a, b, pad, c, d }));
    let [a, c, d, last] = ['e', 'f', 'g', '-'].map(Says);
    let it = Scattered::from(ScatteredFields {
        a,
        b: (1, "b"),
        c: [c],
        of: PhantomData,
        d: [d],
        pad: &last,
    });
    assert_eq!((it.b, it.of, it.cold.pad.0), ((1, "b"), PhantomData, '-'));
    drop(it);
    drop(last);
    assert_eq!(DROPPED.take(), "abcdefg-");

    #[split(cold(b, text))]
    #[cfg_attr(all(), derive(PartialEq, PartialOrd))]
    #[cfg_attr(any(), repr(C))]
    struct Compared {
        a: u8,
        b: u64,
        text: &'static str,
        c: u8,
    }
    let make = |b, c| {
        let (a, text) = (0, "");
        Compared::from(ComparedFields { a, b, text, c })
    };
    assert!(make(2, 1) > make(1, 2) && make(1, 2) > make(1, 1));
}
