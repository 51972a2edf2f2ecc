//! Whole programs. A process runs one of them once, under one allocator.
//!
//! All are deterministic, and fold what they compute into a checksum, which must be the same under
//! every allocator. They do little besides allocating, and live for a fraction of a second; in a
//! real program the differences are smaller. Peak memory contains some 5 MiB of code and libraries.

mod documents;
mod maps;
mod morphs;
mod objects;
mod production;
pub mod threads;
pub mod trees;

use std::sync::OnceLock;
use std::time::Duration;

use crate::queries::add_in_order;
use crate::timing::timed;

pub(crate) struct Program {
    /// On a worker's command line and in names of comparisons.
    pub(crate) name: &'static str,
    pub(crate) run: fn(Scale) -> Outcome,
}

impl Program {
    pub(crate) const fn new(name: &'static str, run: fn(Scale) -> Outcome) -> Self {
        Program { name, run }
    }
}

/// Programs without hints, to be timed and weighed.
pub(crate) const UNHINTED: &[Program] = &[
    Program::new("small_fixed", objects::small_fixed),
    Program::new("mixed_sizes", objects::mixed_sizes),
    Program::new("larson", threads::larson),
    Program::new("producer_consumer", threads::producer_consumer),
    Program::new("growing_vectors", objects::growing_vectors),
    Program::new("string_building", objects::string_building),
    Program::new("btree_strings", maps::btree_strings),
    Program::new("hash_lists", maps::hash_lists),
    Program::new("json", documents::json),
    Program::new("syntax_trees", documents::syntax_trees),
    Program::new("large_blocks", objects::large_blocks),
    Program::new("requests", maps::requests),
];

/// Programs with a question of their own.
pub(crate) const SPECIAL: &[Program] = &[
    Program::new("build_once_tree", trees::build_once),
    Program::new("null_hint_bst", trees::null_hint_bst),
    Program::new("null_hint_chain", trees::null_hint_chain),
    Program::new("hinted_memory_bst", trees::memory_bst),
    // One thread or two that free what they made, or hand their objects over.
    Program::new("churn_local_1", |scale| threads::churn(scale, 1, false)),
    Program::new("churn_local_2", |scale| threads::churn(scale, 2, false)),
    Program::new("churn_handed_1", |scale| threads::churn(scale, 1, true)),
    Program::new("churn_handed_2", |scale| threads::churn(scale, 2, true)),
    Program::new("tree_clone", |_scale| morphs::run(true)),
    Program::new("tree_morph", |_scale| morphs::run(false)),
];

/// Programs whose resident memory is counted at their end.
pub(crate) const PRODUCTION: &[Program] = production::PROGRAMS;

/// About how much memory an unhinted program is to have, in MiB, where that is not its usual size.
pub(crate) static LIVE_MIB: OnceLock<usize> = OnceLock::new();

/// `full` objects, which take `full_mib`, or their share of [`LIVE_MIB`].
pub(crate) fn live(full: usize, full_mib: usize) -> usize {
    let share = |&mib: &usize| (full * mib / full_mib).max(1);
    LIVE_MIB.get().map_or(full, share)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A quarter of the operations, mostly on live data of the same size.
    Quick,
    /// For figures that are kept.
    Full,
}

impl Scale {
    /// `full` operations, or their share in a quick run.
    pub fn of(self, full: usize) -> usize {
        self.pick(full.div_ceil(4), full)
    }

    /// What belongs to a run of this scale.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Scale::Quick => quick,
            Scale::Full => full,
        }
    }
}

/// The result of a run of a program. Its wall time is the sum of three, without that of its input.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) checksum: u64,
    /// Building a structure, where the program measures that apart.
    pub(crate) build: Duration,
    pub(crate) layout: Duration,
    pub(crate) work: Duration,
    /// Resident bytes that an object took, or the whole program, where it counts them.
    pub(crate) object_bytes: Option<f64>,
}

impl Outcome {
    /// That of a program which builds nothing apart.
    pub(crate) fn new(checksum: u64, work: Duration) -> Self {
        Outcome {
            checksum,
            work,
            ..Outcome::default()
        }
    }

    /// Times `work`, which sums up what it computes. What it returns is dropped untimed.
    pub(crate) fn of<B>(work: impl FnOnce(&mut Checksum) -> B) -> Self {
        let mut sum = Checksum::default();
        let (time, _built) = timed(|| work(&mut sum));
        Outcome::new(sum.0, time)
    }
}

pub(crate) fn collect<T>(count: usize, make: impl FnMut(usize) -> T) -> Vec<T> {
    (0..count).map(make).collect()
}

#[derive(Default)]
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
