//! `Vec<Node>` as children took a hand-written `impl Links` that no page showed.

use ccmorph::{Morph, TreeNode, ccmorph};
use std::collections::HashMap;

/// A value as in JSON; everything that may stand between a node and its children.
#[derive(Clone, Debug, PartialEq, TreeNode)]
enum Value {
    Null,
    Text(String),
    List(#[child] Vec<Value>),
    Table(#[child] HashMap<String, Value>),
    Pair(#[child] (Box<Value>, Option<Box<Value>>)),
    Triple(#[child] [Box<Value>; 3]),
    Inner(#[child] Inner),
}

#[derive(Clone, Debug, PartialEq, TreeNode)]
enum Inner {
    Fixed(#[child] Box<[Value]>),
    Small {
        #[child(each)]
        values: Small<Value>,
    },
}

/// A small vector as of another crate: it implements nothing of this one.
#[derive(Clone, Debug, PartialEq)]
struct Small<T>([Option<Box<T>>; 2]);

impl<T> Small<T> {
    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Box<T>> {
        self.0.iter_mut().flatten()
    }
}

fn value(depth: u32) -> Value {
    let text = |text: &str| Value::Text(text.to_owned());
    let boxed = || Box::new(value(depth - 1));
    match depth {
        0 => text("zero"),
        _ => Value::List(vec![
            value(depth - 1),
            Value::Table(HashMap::from([("key".to_owned(), value(depth - 1))])),
            Value::Pair((boxed(), Some(Box::new(text("one"))))),
            Value::Pair((Box::new(Value::Null), None)),
            Value::Triple([
                Box::new(text("a")),
                Box::new(text("b")),
                Box::new(text("c")),
            ]),
            Value::Inner(Inner::Fixed(Box::new([text("d")]))),
            Value::Inner(Inner::Small {
                values: Small([None, Some(Box::new(text("e")))]),
            }),
        ]),
    }
}

/// How many boxes and buffers a value of this depth has.
fn nodes(depth: u32) -> usize {
    match depth {
        0 => 0,
        // The list's buffer, the pairs' boxes, the triple's, the slice, the small vector's.
        _ => 1 + 3 + 3 + 1 + 1 + 3 * nodes(depth - 1),
    }
}

#[test]
fn all_that_holds_nodes_is_a_child() {
    let original = value(6);
    let mut morphed = original.clone();
    let report = Morph::new().run_any(&mut morphed).unwrap();
    assert_eq!((report.nodes, report.placed), (nodes(6), true));
    assert_eq!(morphed, original);
    let mut root = Box::new(morphed);
    let report = ccmorph(&mut root, Value::children).unwrap();
    assert_eq!((report.nodes, report.placed), (nodes(6) + 1, true));
    assert_eq!(*root, original);
    // Vectors are ordinary ones afterwards.
    if let Value::List(list) = &mut *root {
        list.truncate(1);
        list.shrink_to_fit();
        list.extend((0..1000).map(|_| Value::Null));
        assert_eq!((list.len(), &list[0]), (1001, &value(5)));
    }
}
