//! Morphs in the life of a structure: between inserts and removals, again and again, in several
//! threads.

use crate::traversals::assert_same;
use crate::tree::{
    LAYOUTS, Link, Node, Picture, alive, build, choices, find, insert, keys_up_to, morph_checked,
};
use allocator_api2::boxed::Box as ApiBox;
use ccmalloc::Heap;
use ccmorph::{Layout, Machine, Morph, Outcome, TreeNode};
use quickcheck::{Arbitrary, Gen, quickcheck};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

#[derive(Clone, Debug)]
enum Op {
    Insert(u32),
    /// Takes the subtree at a key out and drops it.
    Prune(u32),
    /// Takes the subtree at a key out, and hangs a single node with the key back.
    Replace(u32),
    Morph(Option<Layout>),
    /// Morphs the subtree at a key alone.
    MorphBelow(u32, Option<Layout>),
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Op {
        let key = u32::from(u8::arbitrary(g));
        let choice = *g.choose(&choices()).unwrap();
        match u8::arbitrary(g) % 16 {
            0..9 => Op::Insert(key),
            9 => Op::Prune(key),
            10 => Op::Replace(key),
            11..14 => Op::Morph(choice),
            _ => Op::MorphBelow(key, choice),
        }
    }
}

fn keys<P: Clone>(root: &Link<P>) -> Vec<u32> {
    Picture::of(root)
        .nodes
        .into_iter()
        .map(|node| node.2)
        .collect()
}

quickcheck! {
    fn morphed_trees_live_on(ops: Vec<Op>) -> bool {
        let token = Rc::new(());
        let (mut root, mut model) = (None, BTreeSet::new());
        let name = |key: u32| format!("node {key}");
        for op in ops {
            match op {
                Op::Insert(key) => {
                    insert(&mut root, key, &token, name);
                    model.insert(key);
                }
                Op::Prune(key) | Op::Replace(key) => {
                    let place = find(&mut root, key);
                    let taken = place.take();
                    for key in keys(&taken) {
                        assert!(model.remove(&key));
                    }
                    if matches!(op, Op::Replace(_)) {
                        insert(place, key, &token, name);
                        model.insert(key);
                    }
                }
                Op::Morph(choice) => {
                    morph_checked(&mut root, Morph::new().layout(choice));
                }
                Op::MorphBelow(key, choice) => {
                    morph_checked(find(&mut root, key), Morph::new().layout(choice));
                }
            }
            assert_eq!(alive(&token), model.len());
        }
        let mut found = keys(&root);
        found.sort_unstable();
        assert!(found.iter().eq(&model));
        drop(root);
        alive(&token) == 0
    }
}

#[test]
fn each_node_can_be_dropped_alone() {
    let token = Rc::new(());
    for layout in LAYOUTS {
        let mut root = build(&keys_up_to(3000), &token, |key| key);
        morph_checked(&mut root, Morph::new().layout(layout));
        // All boxes apart, then dropped in the order of their keys, with new ones made in between.
        let (mut apart, mut stack) = (Vec::new(), Vec::from_iter(root));
        while let Some(mut node) = stack.pop() {
            stack.extend(node.left.take().into_iter().chain(node.right.take()));
            apart.push(node);
        }
        apart.sort_by_key(|node| node.key);
        let mut filler = Vec::new();
        while let Some(node) = apart.pop() {
            assert_eq!(node.key, node.payload);
            drop(node);
            filler.push(Box::new([0xabu8; 48]));
            assert_eq!(alive(&token), apart.len());
        }
        assert!(filler.iter().all(|bytes| **bytes == [0xab; 48]));
    }
}

#[test]
fn threads_morph_at_the_same_time_and_drop_what_others_morphed() {
    #[derive(TreeNode)]
    struct Plain(u64, #[child] [Option<Box<Plain>>; 2]);

    fn grow(keys: std::ops::Range<u64>) -> Option<Box<Plain>> {
        let middle = keys.start + (keys.end - keys.start) / 2;
        let below = || [grow(keys.start..middle), grow(middle + 1..keys.end)];
        (!keys.is_empty()).then(|| Box::new(Plain(middle, below())))
    }

    fn sum(node: &Option<Box<Plain>>) -> u64 {
        node.as_ref()
            .map_or(0, |node| node.0 + node.1.iter().map(sum).sum::<u64>())
    }

    let morphed = || {
        let mut root = grow(0..5000);
        for layout in LAYOUTS {
            let report = Morph::new().layout(layout).run(&mut root, Plain::children);
            assert_eq!(report.unwrap().nodes, 5000);
        }
        root
    };
    for thread in [(); 4].map(|()| std::thread::spawn(morphed)) {
        let mut root = thread.join().unwrap();
        // Nodes of a thread that has ended are moved here.
        let report = Morph::new().run(&mut root, Plain::children).unwrap();
        assert_eq!((report.nodes, sum(&root)), (5000, 4999 * 5000 / 2));
    }
}

#[test]
fn the_next_morph_uses_what_a_morph_leaves() {
    #[derive(TreeNode)]
    struct HeapNode<'h>(
        u32,
        u64,
        #[child] [Option<ApiBox<HeapNode<'h>, &'h Heap>>; 2],
    );
    impl Unpin for HeapNode<'_> {}

    let order = keys_up_to(200_000);
    // A heap of its own, whose size no other test changes.
    let heap = Heap::new().unwrap();
    let mut root: Option<ApiBox<HeapNode<'_>, &Heap>> = None;
    for &key in &order {
        let mut at = &mut root;
        while let Some(node) = at {
            let right = usize::from(key > node.0);
            at = &mut node.2[right];
        }
        *at = Some(ApiBox::new_in(HeapNode(key, 0, [None, None]), &heap));
    }
    let morph = Morph::new().layout(Layout::VanEmdeBoas);
    let mut sizes = Vec::new();
    for _ in 0..30 {
        let report = morph.run(&mut root, HeapNode::children).unwrap();
        assert_eq!(report.nodes, order.len());
        sizes.push(heap.stats().chunk_bytes);
    }
    // Old and new places at once, and no more from round to round. Which chunks are empty in
    // between depends on their addresses and, as memory is purged, on time.
    let most = 2 * sizes[0];
    assert!(sizes.iter().all(|&size| size <= most), "{sizes:?}");
    // Half of what is left can be used for something else at once.
    let filler = (0..order.len() / 2).map(|_| ApiBox::new_in([0u64; 4], &heap));
    let filler: Vec<_> = filler.collect();
    assert!(heap.stats().chunk_bytes <= most);
    assert_eq!(root.as_ref().map(|root| root.1), Some(0));
    drop((filler, root));
}

#[test]
fn destructors_that_panic_are_not_run_by_a_morph() {
    struct Fuse(Rc<Cell<u32>>);
    impl Drop for Fuse {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            if self.0.get() == 2 {
                std::panic::resume_unwind(Box::new("the second"));
            }
        }
    }
    #[derive(TreeNode)]
    #[expect(clippy::vec_box, reason = "links are boxes")]
    struct Fused(
        #[child] Vec<Box<Fused>>,
        #[expect(dead_code, reason = "dropped")] Fuse,
    );
    let drops = Rc::new(Cell::new(0));
    let node = |children| Box::new(Fused(children, Fuse(Rc::clone(&drops))));
    let mut root = node(vec![node(vec![]), node(vec![node(vec![])]), node(vec![])]);
    let report = Morph::new().run(&mut root, Fused::children).unwrap();
    assert_eq!((report.nodes, drops.get()), (5, 0));
    // The second destructor panics; the others still run, each once.
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(root)));
    assert!(result.is_err());
    assert_eq!(drops.get(), 5);
    assert_eq!(Rc::strong_count(&drops), 1);
}

#[test]
fn a_morph_that_does_not_pay_is_not_done() {
    let token = Rc::new(());
    let mut root = build(&keys_up_to(100_000), &token, |key| key);
    let machine = Machine::thesis();
    for layout in [None, Some(Layout::VanEmdeBoas)] {
        let shuffle = Morph::new().layout(Layout::Random { seed: 5 });
        shuffle.run(&mut root, Node::children).unwrap();
        let before = Picture::of(&root);
        let morph = Morph::new().machine(&machine).layout(layout);
        let Ok(Outcome::NotWorthwhile { gain }) =
            morph.run_if_worthwhile(&mut root, Node::children, 1.0)
        else {
            panic!("one operation cannot pay for a morph");
        };
        assert!(gain.saved_ns() > 0.0 && gain.cost_ns > 0.0);
        assert!(gain.break_even_operations > 1.0 && gain.break_even_operations.is_finite());
        assert_same(&before, &Picture::of(&root));

        let enough = gain.break_even_operations * 1.01;
        let Ok(Outcome::Morphed {
            report,
            gain: again,
        }) = morph.run_if_worthwhile(&mut root, Node::children, enough)
        else {
            panic!("{enough} operations were said to pay");
        };
        assert_eq!((report.nodes, &again), (100_000, &gain));
        let after = Picture::of(&root);
        assert_eq!(before.nodes, after.nodes);
        let mut moved = before.addresses.iter().zip(&after.addresses);
        assert!(moved.all(|(old, new)| old != new));
        // A second morph gains nothing.
        let outcome = morph.run_if_worthwhile(&mut root, Node::children, enough);
        assert!(matches!(outcome, Ok(Outcome::NotWorthwhile { .. })));
    }
    let nothing = Morph::new().run_if_worthwhile(&mut None::<Box<Node<u32>>>, Node::children, 1e9);
    assert!(matches!(nothing, Ok(Outcome::Empty)));
    drop(root);
    assert_eq!(alive(&token), 0);
}
