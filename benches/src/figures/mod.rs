//! The thesis's figures 2-6 and 2-7, measured again on this machine and simulated for the thesis's.
//!
//! T. Chilimbi, *Cache-Conscious Data Structures* (1999), sections 2.2.3 and 2.3. The text
//! describes the figures without their plotted points. `docs/ctree-figures.md` has the results, and
//! says why the two machines differ.
//!
//! | module | holds |
//! |---|---|
//! | [`node_size`] | figure 2-6: a B-tree's search time against the size of its nodes |
//! | [`searches`] | figure 2-7: the time of a search against the number of searches, caches cold |
//! | [`btree`] | the in-core B-tree of both |
//! | [`chain`] | searches that wait for each other, what can be searched, and the clock |
//! | [`thesis`] | the thesis's machine, simulated |
//! | [`cold`] | how caches are emptied |
//! | [`draw`] | tables, JSON lines and SVG |
//!
//! Each row says whether it was measured ([`Kind`]), and each panel of a picture is of one kind.

pub mod btree;
pub mod chain;
pub mod cold;
pub mod draw;
pub mod node_size;
pub mod searches;
pub mod thesis;

use serde::Serialize;

use thesis::SearchCost;

/// Where a row's numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// By the clock, on this machine.
    Measured,
    /// Read by read, on the thesis's machine as [`thesis`] simulates it: memory's cycles, without
    /// instructions and TLB misses.
    Simulated,
    /// By `ccmodel`, for the thesis's machine in the steady state, its caches taken as fully
    /// associative.
    Model,
}

/// One point of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// `2-6` or `2-7`.
    pub figure: &'static str,
    /// Measured or not.
    pub kind: Kind,
    /// What is searched.
    pub structure: &'static str,
    /// How many keys it has.
    pub keys: usize,
    /// Bytes of a node.
    pub node_bytes: usize,
    /// How many searches there were, from cold caches on; `None` in the steady state.
    pub searches: Option<u64>,
    /// Nanoseconds of one of them on average: the median over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns: Option<f64>,
    /// Its reads, misses and cycles.
    #[serde(flatten)]
    pub cost: Option<SearchCost>,
    /// How many times it was done.
    pub runs: usize,
}

impl Row {
    /// What is plotted: nanoseconds where they were measured, cycles elsewhere.
    pub fn height(&self) -> Option<f64> {
        self.ns.or(self.cost.map(|cost| cost.cycles))
    }
}

/// How much is done.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The most searches of one run.
    pub searches_max: u64,
    /// Runs of many searches.
    pub long_runs: usize,
    /// Runs of up to [`SHORT`](searches::SHORT) searches.
    pub short_runs: usize,
    /// Numbers of keys of figure 2-6; the first is the thesis's.
    pub node_size_keys: [usize; 2],
    /// Numbers of keys of figure 2-7, each one less than a power of two; the first is the thesis's.
    pub search_keys: Vec<usize>,
}

impl Effort {
    /// As in the thesis, and larger: some minutes.
    pub fn full() -> Effort {
        Effort {
            searches_max: 1_000_000,
            long_runs: 5,
            short_runs: 50,
            node_size_keys: [32_767, 2_097_151],
            search_keys: vec![2_097_151, 8_388_607],
        }
    }

    /// Seconds, with figures that mean little.
    pub fn quick() -> Effort {
        Effort {
            searches_max: 10_000,
            long_runs: 3,
            short_runs: 5,
            node_size_keys: [4_095, 32_767],
            search_keys: vec![65_535, 131_071],
        }
    }
}

/// Tells the user what is being done.
fn progress(what: &str) {
    eprintln!("figures: {what}");
}
