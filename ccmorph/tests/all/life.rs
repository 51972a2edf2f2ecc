//! Morphs in the life of a structure: between inserts and removals, again and again, in several
//! threads.

use crate::tree::{LAYOUTS, Link, Node, Picture, alive, build, find, insert, morph_checked};
use allocator_api2::boxed::Box as ApiBox;
use ccmalloc::Heap;
use ccmorph::{Layout, LayoutChoice, Machine, Morph, Outcome, TreeNode};
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
    Morph(LayoutChoice),
    /// Morphs the subtree at a key alone.
    MorphBelow(u32, LayoutChoice),
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Op {
        let key = u32::from(u8::arbitrary(g));
        let auto = LayoutChoice::Auto;
        let choices: Vec<LayoutChoice> = LAYOUTS
            .into_iter()
            .map(LayoutChoice::from)
            .chain([auto])
            .collect();
        let choice = *g.choose(&choices).unwrap_or(&auto);
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
        .map(|(_, _, key, _)| key)
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
fn each_node_can_be_dropped_on_its_own() {
    let token = Rc::new(());
    let order: Vec<u32> = (0..3000)
        .map(|i: u32| i.wrapping_mul(0x9e37_79b9))
        .collect();
    for layout in LAYOUTS {
        let mut root = build(&order, &token, |key| key);
        morph_checked(&mut root, Morph::new().layout(layout));
        // All boxes apart, then dropped in an order of their own, with new ones made in between.
        let mut apart = Vec::new();
        let mut stack: Vec<_> = root.take().into_iter().collect();
        while let Some(mut node) = stack.pop() {
            stack.extend(node.left.take());
            stack.extend(node.right.take());
            apart.push(node);
        }
        apart.sort_by_key(|node| node.key);
        assert_eq!(apart.len(), order.len());
        let mut filler = Vec::new();
        while let Some(node) = apart.pop() {
            assert_eq!(node.key, node.payload);
            drop(node);
            filler.push(Box::new([0xabu8; 48]));
            assert_eq!(alive(&token), apart.len());
        }
        assert!(filler.iter().all(|bytes| **bytes == [0xab; 48]));
        assert!(apart.is_empty());
    }
}

#[test]
fn threads_morph_at_the_same_time_and_drop_what_others_morphed() {
    #[derive(TreeNode)]
    struct Plain {
        key: u64,
        #[child]
        children: [Option<Box<Plain>>; 2],
    }

    fn grow(keys: std::ops::Range<u64>) -> Option<Box<Plain>> {
        let middle = keys.start + (keys.end - keys.start) / 2;
        (!keys.is_empty()).then(|| {
            let children = [grow(keys.start..middle), grow(middle + 1..keys.end)];
            Box::new(Plain {
                key: middle,
                children,
            })
        })
    }

    fn sum(node: &Option<Box<Plain>>) -> u64 {
        node.as_ref().map_or(0, |node| {
            node.key + sum(&node.children[0]) + sum(&node.children[1])
        })
    }

    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(|| {
                let mut root = grow(0..5000);
                for layout in LAYOUTS {
                    let report = Morph::new()
                        .layout(layout)
                        .run(&mut root, Plain::children)
                        .unwrap();
                    assert_eq!(report.nodes, 5000);
                }
                root
            })
        })
        .collect();
    for thread in threads {
        let mut root = thread.join().unwrap();
        // Nodes that another thread allocated, and which has ended, are moved here.
        let report = Morph::new().run(&mut root, Plain::children).unwrap();
        assert_eq!(report.nodes, 5000);
        assert_eq!(sum(&root), 4999 * 5000 / 2);
    }
}

#[test]
fn what_a_morph_leaves_serves_the_next() {
    let token = Rc::new(());
    let order: Vec<u32> = (0..200_000)
        .map(|i: u32| i.wrapping_mul(0x9e37_79b9))
        .collect();
    let heap = Heap::new().unwrap();
    let mut root: Option<HeapLink<'_>> = None;
    for &key in &order {
        let mut at = &mut root;
        while let Some(node) = at {
            let right = usize::from(key > node.key);
            at = &mut node.children[right];
        }
        let node = HeapNode {
            key,
            token: Rc::clone(&token),
            children: [None, None],
        };
        *at = Some(ApiBox::new_in(node, &heap));
    }
    // A heap of its own, whose size no other test changes.
    let mut sizes = Vec::new();
    for _ in 0..30 {
        let report = Morph::new()
            .layout(Layout::VanEmdeBoas)
            .run(&mut root, HeapNode::children);
        assert_eq!(report.unwrap().nodes, order.len());
        sizes.push(heap.stats().chunk_bytes);
    }
    // Old and new places at once, and no more from round to round.
    let largest = |sizes: &[usize]| sizes.iter().copied().max();
    assert!(largest(&sizes[15..]) <= largest(&sizes[..15]), "{sizes:?}");
    // Node by node: half of what is left can be used for something else at once.
    let before = heap.stats().chunk_bytes;
    let filler: Vec<_> = (0..order.len() / 2)
        .map(|_| ApiBox::new_in([0u64; 4], &heap))
        .collect();
    assert!(
        heap.stats().chunk_bytes <= before,
        "the old places were not used again"
    );
    drop((filler, root));
    assert_eq!(alive(&token), 0);
}

type HeapLink<'h> = ApiBox<HeapNode<'h>, &'h Heap>;

impl Unpin for HeapNode<'_> {}

#[derive(TreeNode)]
struct HeapNode<'h> {
    key: u32,
    #[expect(dead_code, reason = "counted, not read")]
    token: Rc<()>,
    #[child]
    children: [Option<ApiBox<HeapNode<'h>, &'h Heap>>; 2],
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
    struct Fused {
        #[expect(dead_code, reason = "dropped, not read")]
        fuse: Fuse,
        #[child]
        #[expect(clippy::vec_box, reason = "links are boxes")]
        children: Vec<Box<Fused>>,
    }
    let drops = Rc::new(Cell::new(0));
    let node = |children| {
        let fuse = Fuse(Rc::clone(&drops));
        Box::new(Fused { fuse, children })
    };
    let mut root = node(vec![node(vec![]), node(vec![node(vec![])]), node(vec![])]);
    assert_eq!(
        Morph::new().run(&mut root, Fused::children).unwrap().nodes,
        5
    );
    assert_eq!(drops.get(), 0);
    // The second destructor panics, on its way down; the others run all the same, each once.
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(root)));
    assert!(result.is_err());
    assert_eq!(drops.get(), 5);
    assert_eq!(Rc::strong_count(&drops), 1);
}

#[test]
fn a_morph_that_does_not_pay_is_left() {
    let token = Rc::new(());
    let order: Vec<u32> = (0..100_000)
        .map(|i: u32| i.wrapping_mul(0x9e37_79b9))
        .collect();
    let mut root = build(&order, &token, |key| key);
    let machine = Machine::thesis();
    for layout in [LayoutChoice::Auto, Layout::VanEmdeBoas.into()] {
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
        let left = Picture::of(&root);
        assert_eq!(
            (&before.nodes, &before.addresses),
            (&left.nodes, &left.addresses)
        );

        let enough = gain.break_even_operations * 1.01;
        let Ok(Outcome::Morphed {
            report,
            gain: again,
        }) = morph.run_if_worthwhile(&mut root, Node::children, enough)
        else {
            panic!("{enough} operations were said to pay");
        };
        assert_eq!((report.nodes, &again), (order.len(), &gain));
        let after = Picture::of(&root);
        assert_eq!(before.nodes, after.nodes);
        assert!(
            before
                .addresses
                .iter()
                .zip(&after.addresses)
                .all(|(old, new)| old != new)
        );
        // What has been won cannot be won again.
        let outcome = morph.run_if_worthwhile(&mut root, Node::children, enough);
        assert!(matches!(outcome, Ok(Outcome::NotWorthwhile { .. })));
    }
    let nothing = Morph::new().run_if_worthwhile(&mut None::<Box<Node<u32>>>, Node::children, 1e9);
    assert!(matches!(nothing, Ok(Outcome::Empty)));
    drop(root);
    assert_eq!(alive(&token), 0);
}
