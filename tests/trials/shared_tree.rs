//! A tree that two threads grow: hints at another thread's nodes are lost, unless the tree has a
//! `Heap`, behind the same lock. Raw pointers hold the nodes: the heap may move between threads, a
//! `Box<Node, &Heap>` may not.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::thread;

use ccmalloc::Heap;

struct Node {
    key: u64,
    children: [Option<NonNull<Node>>; 2],
}

struct Tree {
    root: Option<NonNull<Node>>,
    heap: Heap,
}

// SAFETY: only the tree points to its nodes, and they lie in its heap, which may move as well.
unsafe impl Send for Tree {}

impl Tree {
    fn insert(&mut self, key: u64) {
        let (mut link, mut parent) = (&mut self.root, NonNull::dangling());
        while let Some(node) = link {
            parent = node.cast();
            // SAFETY: a node of this tree, which is borrowed exclusively.
            let node = unsafe { node.as_mut() };
            link = &mut node.children[usize::from(key > node.key)];
        }
        let memory = self.heap.alloc(Layout::new::<Node>(), Some(parent));
        let node = memory.expect("memory").cast::<Node>();
        let children = [None; 2];
        // SAFETY: fresh memory of a node's layout.
        unsafe { node.write(Node { key, children }) };
        *link = Some(node);
    }
}

#[test]
fn a_tree_that_threads_grow_has_a_heap() {
    let heap = Heap::new().expect("memory");
    let tree = Mutex::new(Tree { root: None, heap });
    thread::scope(|scope| {
        for part in 0..2 {
            let tree = &tree;
            scope.spawn(move || {
                (0..1000).for_each(|i| tree.lock().unwrap().insert((2 * i + part) * 7919 % 2000));
            });
        }
    });
    let tree = tree.into_inner().unwrap(); // its heap gives all nodes back when it is dropped
    let report = tree.heap.placement();
    assert_eq!((report.hinted(), report.not_usable), (2000, 1));
    assert!(report.same_block > 200);
}
