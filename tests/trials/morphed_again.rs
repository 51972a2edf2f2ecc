//! A tree that had just been morphed was morphed again, for a predicted 183.0 -> 181.7 ns.

use ccmodel::{Machine, WORTHWHILE_SPEEDUP};
use ccmorph::{Layout, Morph, Operation, Outcome, TreeNode};

#[derive(TreeNode)]
struct Node {
    key: u64,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Node>>,
}

fn insert(mut at: &mut Option<Box<Node>>, key: u64) {
    while let Some(node) = at {
        at = if key < node.key {
            &mut node.left
        } else {
            &mut node.right
        };
    }
    *at = Some(Box::new(Node {
        key,
        left: None,
        right: None,
    }));
}

#[test]
fn what_was_morphed_is_left_alone() {
    let mut root = None;
    for i in 0..60_000u64 {
        insert(&mut root, i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    let machine = Machine::thesis();
    for operation in [Operation::Search, Operation::Path] {
        let scattered = Morph::new().layout(Layout::Random { seed: 1 });
        scattered.run(&mut root, Node::children).unwrap();
        let morph = Morph::new().machine(&machine).operation(operation);
        let mut if_worthwhile = || morph.run_if_worthwhile(&mut root, Node::children, 1e15);
        let outcome = if_worthwhile().unwrap();
        assert!(matches!(outcome, Outcome::Morphed { .. }), "{outcome:?}");
        // However many operations are to come: what is saved is within the error of predictions.
        let outcome = if_worthwhile().unwrap();
        let Outcome::NotWorthwhile { gain } = outcome else {
            panic!("{operation}: morphed again: {outcome:?}");
        };
        assert!(gain.speedup() < WORTHWHILE_SPEEDUP, "{gain:?}");
    }
}
