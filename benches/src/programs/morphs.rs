//! A random tree of 4 M nodes, copied or morphed: what a morph takes against what a program can do by itself.
//!
//! Each process builds one tree, which nothing has touched since, and does one of the two with it, once. The copy and the morphed tree are then asked the same as the first tree.

use ccmorph::Morph;
use examples::chain::QueryChain;
use examples::rng::Rng;

use super::{Checksum, Outcome, Program, Scale};
use crate::structures::Structure;
use crate::structures::tree::{Plan, Tree};
use crate::sys::resident_bytes;

/// A plain recursive copy; the bytes of an object are those before it: the tree as allocated.
pub const CLONE: Program = Program {
    name: "tree_clone",
    run: clone,
};

/// A morph in the layout that the model chooses; the bytes of an object are those after it.
pub const MORPH: Program = Program {
    name: "tree_morph",
    run: morph,
};

/// In quick runs, too: the names say how many.
const NODES: usize = 1 << 22;

/// Questions to the tree before and after.
const LOOKUPS: usize = 20_000;

/// The tree, the chain of questions, their answer, and by how much the tree made the process grow.
fn build() -> (Tree, QueryChain, u64, u64) {
    let mut rng = Rng::new(17);
    let keys: Vec<u64> = (0..NODES).map(|_| rng.next_u64()).collect();
    let chain = QueryChain::sample(&keys, LOOKUPS, 18);
    let plan = Plan::of_inserts(&keys);
    drop(keys);
    let before = resident_bytes();
    let tree = plan.build();
    let grown = resident_bytes().saturating_sub(before);
    let answer = tree.follow(&chain);
    (tree, chain, answer, grown)
}

fn clone(_scale: Scale) -> Outcome {
    let (tree, chain, answer, grown) = build();
    let mut copy = None;
    let outcome = Outcome::of(|| {
        copy = Some(tree.copy());
        answer
    });
    let same = copy.map(|copy| copy.follow(&chain));
    assert_eq!(same, Some(answer), "a copy answers alike");
    Outcome {
        checksum: checksum(answer),
        object_bytes: Some(grown as f64 / NODES as f64),
        ..outcome
    }
}

fn morph(_scale: Scale) -> Outcome {
    let (mut tree, chain, answer, grown) = build();
    let before = resident_bytes();
    let mut report = None;
    let outcome = Outcome::of(|| {
        report = Some(tree.morph(&Morph::new()));
        answer
    });
    let after = resident_bytes();
    assert!(
        matches!(report, Some(Ok(_))),
        "this process is served by ccmalloc, and has the memory: {report:?}"
    );
    assert_eq!(tree.follow(&chain), answer, "a morphed tree answers alike");
    let now = (grown + after).saturating_sub(before);
    Outcome {
        checksum: checksum(answer),
        object_bytes: Some(now as f64 / NODES as f64),
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
