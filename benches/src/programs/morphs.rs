//! A random tree of 4 M nodes, copied or morphed.
//!
//! Each process builds one tree, which nothing has touched since, and copies or
//! morphs it once. The copy and the morphed tree must answer as the first tree did.

use std::hint::black_box;
use std::time::Duration;

use ccmorph::Morph;

use super::Outcome;
use crate::keys;
use crate::queries::Chain;
use crate::structures::Structure;
use crate::structures::tree::Plan;
use crate::sys::{resident_bytes, warm_memory};
use crate::timing::timed;

/// In quick runs, too: the names of the rows have the number.
const NODES: usize = 1 << 22;

/// Resident bytes without what allocators keep for a second, until the thread frees something.
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

/// If it `copies`, a plain recursive copy, and an object's bytes before it; else a morph in the
/// layout that the model chooses, and an object's bytes after it.
pub(super) fn run(copies: bool) -> Outcome {
    warm_memory(1 << 30);
    let keys = keys::random(NODES, 17);
    let chain = Chain::sample(&keys, 20_000, 18);
    // Lives as long as the tree: the process has it before and after.
    let plan = Plan::of_inserts(&keys);
    drop(keys);
    let without = settled_bytes();
    let mut tree = plan.build();
    let checksum = tree.follow(&chain);
    let node_bytes = || settled_bytes().saturating_sub(without) as f64 / NODES as f64;
    let (time, object_bytes, same) = if copies {
        let object_bytes = node_bytes();
        let (time, copy) = timed(|| tree.clone());
        (time, object_bytes, copy.follow(&chain))
    } else {
        let (time, report) = timed(|| tree.morph(&Morph::new()));
        report.expect("this process is served by ccmalloc, and has the memory");
        (time, node_bytes(), tree.follow(&chain))
    };
    assert_eq!(same, checksum, "it answers alike");
    let object_bytes = Some(object_bytes);
    Outcome {
        object_bytes,
        ..Outcome::new(checksum, time)
    }
}
