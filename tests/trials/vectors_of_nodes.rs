//! `Vec<Node>` as children took a hand-written `impl Links` that no page showed.

use ccmorph::{Morph, TreeNode, ccmorph};
use std::collections::HashMap;

/// A value as in JSON. `ccmorph`'s own tests have the other collections.
#[derive(Clone, Debug, PartialEq, TreeNode)]
enum Value {
    Text(String),
    List(#[child] Vec<Value>),
    Table(#[child] HashMap<String, Value>),
    Few {
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

/// A value with `3 * depth` lists, tables and small vectors on each path, and its boxes and
/// buffers.
fn value(depth: u32) -> (Value, usize) {
    let Some(less) = depth.checked_sub(1) else {
        return (Value::Text("zero".to_owned()), 0);
    };
    let (below, nodes) = value(less);
    let table = HashMap::from([("key".to_owned(), below.clone())]);
    let values = Small([None, Some(Box::new(below.clone()))]);
    let list = vec![below, Value::Table(table), Value::Few { values }];
    (Value::List(list), 2 + 3 * nodes)
}

#[test]
fn all_that_holds_nodes_is_a_child() {
    let (original, nodes) = value(6);
    let mut morphed = original.clone();
    let report = Morph::new().run_any(&mut morphed).unwrap();
    assert_eq!((report.nodes, report.placed), (nodes, true));
    assert_eq!(morphed, original);
    let mut root = Box::new(morphed);
    let report = ccmorph(&mut root, Value::children).unwrap();
    assert_eq!((report.nodes, report.placed), (nodes + 1, true));
    assert_eq!(*root, original);
    // Vectors are ordinary ones afterwards.
    if let Value::List(list) = &mut *root {
        list.truncate(1);
        list.shrink_to_fit();
        list.extend((0..1000).map(|_| value(0).0));
        assert_eq!((list.len(), &list[0]), (1001, &value(5).0));
    }
}
