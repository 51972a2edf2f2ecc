//! Whole programs, each of which a process runs once under one allocator.
//!
//! They are small doubles of what programs spend their allocations on. Nothing in them knows which
//! allocator serves it, apart from the programs in [`trees`] that give hints; all are
//! deterministic, and fold what they compute into a checksum, which has to be the same under every
//! allocator.
//!
//! | module | programs |
//! |---|---|
//! | [`morphs`] | a random tree, copied or morphed |
//! | [`objects`] | single objects: one size, mixed sizes, large blocks |
//! | [`threads`] | objects that one thread makes and another frees |
//! | [`churn`] | one thread or two that replace objects, and hand them over |
//! | [`growth`] | vectors and strings that grow, text that is taken apart and put together |
//! | [`maps`] | ordered and hashed maps of strings |
//! | [`documents`] | JSON values and syntax trees: built, changed, dropped |
//! | [`server`] | short-lived garbage beside a long-lived cache |
//! | [`trees`] | trees and hash chains: built once, with hints, and with hints that are null |
//!
//! Bias: the programs do little besides allocating, so that allocators show; in a real one the
//! differences are smaller. They are fresh processes that live for a fraction of a second: what
//! becomes of memory over weeks is not measured here. The peak memory of each contains some 5 MiB
//! of code and libraries, the same under all allocators.

pub mod churn;
pub mod documents;
pub mod growth;
pub mod maps;
pub mod morphs;
pub mod objects;
pub mod server;
pub mod threads;
pub mod trees;

use std::sync::OnceLock;
use std::time::Duration;

use crate::chain::add_in_order;
use crate::timing::timed;

/// A program: what it is called, and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name on a worker's command line and in names of comparisons.
    pub name: &'static str,
    /// Runs it once.
    pub run: fn(Scale) -> Outcome,
}

/// What a program is to be timed and weighed as an ordinary program without hints.
pub const UNHINTED: &[Program] = &[
    objects::SMALL_FIXED,
    objects::MIXED_SIZES,
    threads::LARSON,
    threads::PRODUCER_CONSUMER,
    growth::GROWING_VECTORS,
    growth::STRING_BUILDING,
    maps::BTREE_STRINGS,
    maps::HASH_LISTS,
    documents::JSON,
    documents::SYNTAX_TREES,
    objects::LARGE_BLOCKS,
    server::REQUESTS,
];

/// Programs with a question of their own.
pub const SPECIAL: &[Program] = &[
    trees::BUILD_ONCE,
    trees::NULL_HINT_BST,
    trees::NULL_HINT_CHAIN,
    trees::MEMORY_BST,
    churn::LOCAL_1,
    churn::LOCAL_2,
    churn::HANDED_1,
    churn::HANDED_2,
    morphs::CLONE,
    morphs::MORPH,
];

/// About how much memory the unhinted program of this process is to have, in MiB, where that is not
/// its usual size.
pub static LIVE_MIB: OnceLock<usize> = OnceLock::new();

/// `full` objects, or their share where the program, which takes `full_mib` with so many, is to
/// have [`LIVE_MIB`].
pub(crate) fn live(full: usize, full_mib: usize) -> usize {
    LIVE_MIB
        .get()
        .map_or(full, |&mib| (full * mib / full_mib).max(1))
}

/// How much a program is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// For every day: a quarter of the operations, on live data of the same size where that is what
    /// matters.
    Quick,
    /// For figures that are kept.
    Full,
}

impl Scale {
    /// `full` operations, or their share in a quick run.
    pub fn of(self, full: usize) -> usize {
        match self {
            Scale::Quick => full.div_ceil(4),
            Scale::Full => full,
        }
    }
}

/// What a run of a program gave.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Of all that was computed.
    pub checksum: u64,
    /// Wall time of the work; the input is made before.
    pub time: Duration,
    /// Resident bytes that an object took, where the program counts them.
    pub object_bytes: Option<f64>,
}

impl Outcome {
    /// Times `work`, which returns the checksum.
    pub(crate) fn of(work: impl FnOnce() -> u64) -> Self {
        let (time, checksum) = timed(work);
        Outcome {
            checksum,
            time,
            object_bytes: None,
        }
    }
}

/// A sum over numbers in their order: equal sums, equal numbers, but for one chance in 2^64.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checksum(pub(crate) u64);

impl Checksum {
    pub(crate) fn add(&mut self, number: u64) {
        self.0 = add_in_order(self.0, number);
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        self.add(bytes.len() as u64);
        if let (Some(&first), Some(&last)) = (bytes.first(), bytes.last()) {
            self.add(u64::from(first) << 8 | u64::from(last));
        }
    }
}
