//! Whole programs. A process runs one of them once, under one allocator.
//!
//! All are deterministic, and fold what they compute into a checksum, which must be the same under
//! every allocator. Only those in [`trees`] that give hints know their allocator.
//!
//! Bias: the programs do little besides allocating, and live for a fraction of a second; in a real
//! one the differences are smaller. Peak memory contains some 5 MiB of code and libraries, the same
//! under all allocators.

mod documents;
mod growth;
mod maps;
mod morphs;
mod objects;
mod server;
pub mod threads;
pub mod trees;

use std::sync::OnceLock;
use std::time::Duration;

use crate::queries::add_in_order;
use crate::timing::timed;

/// A program: what it is called, and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name on a worker's command line and in names of comparisons.
    pub name: &'static str,
    /// Runs it once.
    pub run: fn(Scale) -> Outcome,
}

impl Program {
    /// A program called `name`.
    pub const fn new(name: &'static str, run: fn(Scale) -> Outcome) -> Self {
        Program { name, run }
    }
}

/// Programs without hints, to be timed and weighed.
pub const UNHINTED: &[Program] = &[
    Program::new("small_fixed", objects::small_fixed),
    Program::new("mixed_sizes", objects::mixed_sizes),
    Program::new("larson", threads::larson),
    Program::new("producer_consumer", threads::producer_consumer),
    Program::new("growing_vectors", growth::growing_vectors),
    Program::new("string_building", growth::string_building),
    Program::new("btree_strings", maps::btree_strings),
    Program::new("hash_lists", maps::hash_lists),
    Program::new("json", documents::json),
    Program::new("syntax_trees", documents::syntax_trees),
    Program::new("large_blocks", objects::large_blocks),
    Program::new("requests", server::requests),
];

/// Programs with a question of their own.
pub const SPECIAL: &[Program] = &[
    Program::new("build_once_tree", trees::build_once),
    Program::new("null_hint_bst", trees::null_hint_bst),
    Program::new("null_hint_chain", trees::null_hint_chain),
    Program::new("hinted_memory_bst", trees::memory_bst),
    // One thread or two that free what they made.
    Program::new("churn_local_1", |scale| threads::churn(scale, 1, false)),
    Program::new("churn_local_2", |scale| threads::churn(scale, 2, false)),
    // One thread or two that hand their objects over.
    Program::new("churn_handed_1", |scale| threads::churn(scale, 1, true)),
    Program::new("churn_handed_2", |scale| threads::churn(scale, 2, true)),
    Program::new("tree_clone", morphs::clone),
    Program::new("tree_morph", morphs::morph),
];

/// About how much memory the unhinted program of this process is to have, in MiB, where that is not
/// its usual size.
pub static LIVE_MIB: OnceLock<usize> = OnceLock::new();

/// `full` objects, with which the program takes `full_mib`, or their share where it is to have
/// [`LIVE_MIB`].
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

/// The result of a run of a program. Its time is the sum of three, without that of its input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Of all that was computed.
    pub checksum: u64,
    /// Wall time of building a structure, where the program measures that apart.
    pub build: Duration,
    /// Wall time of laying it out, where the program does so.
    pub layout: Duration,
    /// Wall time of the work.
    pub work: Duration,
    /// Resident bytes that an object took, where the program counts them.
    pub object_bytes: Option<f64>,
}

impl Outcome {
    /// Times `work`, which sums up what it computes. What it returns is dropped when the clock has
    /// stopped, as in a program that just ends.
    pub(crate) fn of<B>(work: impl FnOnce(&mut Checksum) -> B) -> Self {
        let mut sum = Checksum::default();
        let (time, _built) = timed(|| work(&mut sum));
        Outcome {
            checksum: sum.0,
            work: time,
            ..Outcome::default()
        }
    }
}

/// A sum over numbers in their order.
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
