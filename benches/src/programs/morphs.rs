//! A random tree of 4 M nodes, copied or morphed: what a morph takes against what a program can do
//! by itself.
//!
//! Each process has memory made ready, builds one tree, which nothing has touched since, and does
//! one of the two with it, once. The copy and the morphed tree are then asked the same as the first
//! tree.

use std::hint::black_box;
use std::time::Duration;

use crate::chain::QueryChain;
use crate::rng::Rng;
use ccmorph::Morph;

use super::{Checksum, Outcome, Program, Scale};
use crate::search_tree::Tree;
use crate::structures::Structure;
use crate::structures::tree::Plan;
use crate::sys::{resident_bytes, warm_memory};

/// A plain recursive copy; an object's bytes are those of the tree as allocated, without the copy.
pub const CLONE: Program = Program {
    name: "tree_clone",
    run: clone,
};

/// A morph in the layout that the model chooses; an object's bytes are those after it.
pub const MORPH: Program = Program {
    name: "tree_morph",
    run: morph,
};

/// In quick runs, too: the names say how many.
const NODES: usize = 1 << 22;

/// Questions to the tree before and after.
const LOOKUPS: usize = 20_000;

/// As much as either program takes, and more.
const WARM_BYTES: usize = 1 << 30;

/// Allocators keep memory in no use for a while, half a second or a second, and then part with it
/// when the thread frees something. Without that, the figures would be those of whatever was freed
/// last.
fn settle() {
    std::thread::sleep(Duration::from_millis(1100));
    for _ in 0..100_000 {
        drop(black_box(Box::new([0_u8; 64])));
    }
    for _ in 0..2 {
        drop(black_box(vec![0_u8; 4 << 20]));
    }
}

/// Resident bytes of the process, with nothing in them that is about to go.
fn settled_bytes() -> u64 {
    settle();
    resident_bytes()
}

/// A tree to be weighed.
struct Weighed {
    tree: Tree<u64>,
    chain: QueryChain,
    /// Resident bytes of the process before there was the tree.
    without: u64,
    /// Lives as long as the tree, so that the process has it with and without.
    _plan: Plan,
}

fn build() -> Weighed {
    warm_memory(WARM_BYTES);
    let mut rng = Rng::new(17);
    let keys: Vec<u64> = (0..NODES).map(|_| rng.next_u64()).collect();
    let chain = QueryChain::sample(&keys, LOOKUPS, 18);
    let plan = Plan::of_inserts(&keys);
    drop(keys);
    let without = settled_bytes();
    Weighed {
        tree: plan.build(),
        chain,
        without,
        _plan: plan,
    }
}

impl Weighed {
    /// Resident bytes of each node.
    fn node_bytes(&self) -> f64 {
        settled_bytes().saturating_sub(self.without) as f64 / NODES as f64
    }

    fn answer(&self) -> u64 {
        self.tree.follow(&self.chain)
    }
}

fn clone(_scale: Scale) -> Outcome {
    let weighed = build();
    let answer = weighed.answer();
    let object_bytes = weighed.node_bytes();
    let mut copy = None;
    let outcome = Outcome::of(|| {
        copy = Some(weighed.tree.copy());
        checksum(answer)
    });
    let same = copy.map(|copy| copy.follow(&weighed.chain));
    assert_eq!(same, Some(answer), "a copy answers alike");
    Outcome {
        object_bytes: Some(object_bytes),
        ..outcome
    }
}

fn morph(_scale: Scale) -> Outcome {
    let mut weighed = build();
    let answer = weighed.answer();
    let mut report = None;
    let outcome = Outcome::of(|| {
        report = Some(weighed.tree.morph(&Morph::new()));
        checksum(answer)
    });
    assert!(
        matches!(report, Some(Ok(_))),
        "this process is served by ccmalloc, and has the memory: {report:?}"
    );
    assert_eq!(weighed.answer(), answer, "a morphed tree answers alike");
    Outcome {
        object_bytes: Some(weighed.node_bytes()),
        ..outcome
    }
}

/// Of the answer and the number of nodes, which both programs share.
fn checksum(answer: u64) -> u64 {
    let mut sum = Checksum::default();
    sum.add(answer);
    sum.add(NODES as u64);
    sum.0
}
