//! A random tree of 4 M nodes, copied or morphed.
//!
//! Each process warms memory, builds one tree, which nothing has touched since, and copies or
//! morphs it once. The copy and the morphed tree must answer as the first tree did.

use std::hint::black_box;
use std::time::Duration;

use crate::keys;
use crate::queries::QueryChain;
use ccmorph::Morph;

use super::{Outcome, Scale};
use crate::search_tree::Tree;
use crate::structures::Structure;
use crate::structures::tree::Plan;
use crate::sys::{resident_bytes, warm_memory};
use crate::timing::timed;

/// In quick runs, too: the names of the rows say how many.
const NODES: usize = 1 << 22;

/// Resident bytes of the process, without what it is about to give back.
///
/// Allocators keep unused memory for up to a second, and then part with it when the thread frees
/// something.
fn settled_bytes() -> u64 {
    std::thread::sleep(Duration::from_millis(1100));
    for _ in 0..100_000 {
        drop(black_box(Box::new([0_u8; 64])));
    }
    for _ in 0..2 {
        drop(black_box(vec![0_u8; 4 << 20]));
    }
    resident_bytes()
}

/// A tree to be weighed.
struct Weighed {
    tree: Tree<u64>,
    chain: QueryChain,
    answer: u64,
    /// Resident bytes of the process without the tree.
    without: u64,
    /// Lives as long as the tree, so that the process has it with and without.
    _plan: Plan,
}

impl Weighed {
    fn new() -> Self {
        // As much as either program takes, and more.
        warm_memory(1 << 30);
        let keys = keys::random(NODES, 17);
        let chain = QueryChain::sample(&keys, 20_000, 18);
        let plan = Plan::of_inserts(&keys);
        drop(keys);
        let without = settled_bytes();
        let tree = plan.build();
        Weighed {
            answer: tree.follow(&chain),
            tree,
            chain,
            without,
            _plan: plan,
        }
    }

    /// Resident bytes of each node.
    fn node_bytes(&self) -> f64 {
        settled_bytes().saturating_sub(self.without) as f64 / NODES as f64
    }

    fn outcome(&self, time: Duration, node_bytes: f64, tree: &Tree<u64>) -> Outcome {
        assert_eq!(tree.follow(&self.chain), self.answer, "it answers alike");
        Outcome {
            checksum: self.answer,
            time,
            object_bytes: Some(node_bytes),
        }
    }
}

/// A plain recursive copy; an object's bytes are those of the tree as allocated, without the copy.
pub(super) fn clone(_scale: Scale) -> Outcome {
    let weighed = Weighed::new();
    let node_bytes = weighed.node_bytes();
    let (time, copy) = timed(|| weighed.tree.copy());
    weighed.outcome(time, node_bytes, &copy)
}

/// A morph in the layout that the model chooses; an object's bytes are those after it.
pub(super) fn morph(_scale: Scale) -> Outcome {
    let mut weighed = Weighed::new();
    let (time, report) = timed(|| weighed.tree.morph(&Morph::new()));
    report.expect("this process is served by ccmalloc, and has the memory");
    weighed.outcome(time, weighed.node_bytes(), &weighed.tree)
}
