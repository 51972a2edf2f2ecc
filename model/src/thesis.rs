//! The formulas of chapter 3 of T. Chilimbi, *Cache-Conscious Data Structures* (1999), as printed,
//! and what they say of a structure and a machine.
//!
//! They compare a layout with its naive self; they do not aim at the absolute number of misses, and
//! on uncoloured trees they are far from it (the chapter says so in its introduction).
//! [`predict_tree`](crate::predict_tree) is what this crate offers for that. The formulas stand
//! here beside it, for whoever wants to compare; `docs/model-thesis.md` does so, with the thesis's
//! figures 3-4 to 3-6 made again.
//!
//! | symbol | meaning | section | here |
//! |---|---|---|---|
//! | n, e | elements of the structure, bytes of one | 3.1.1 | [`CompleteTree`] |
//! | c, b, a | sets, block bytes, ways of a cache | 2.2.1 | [`CacheGeometry`] |
//! | k | elements in a block, floor(b / e) | 3.1.1 | [`CacheGeometry::nodes_per_block`] |
//! | D | references of one access, log2(n + 1) for a search | 3.1.1 | [`search_references`] |
//! | K | elements of a block that one access needs | 3.1.1, 3.2.1 | [`Clustering::k`] |
//! | R(i), `R_s` | elements still cached from earlier accesses | 3.3.1, 3.2.1 | [`transient_reuse`], [`coloured_reuse`] |
//! | m(i), `m_s` | miss rate of the i-th access, in the steady state | 3.1.1 | [`miss_rate`] |
//! | `m_a(p)` | amortised miss rate of p accesses | 3.1.1 | [`amortised_miss_rate`] |
//! | T | hits of i worst-case searches from cold | 3.3.1 | [`worst_case_hits`] |
//! | `t_h`, `t_m` | time of a hit, added by a miss | 3.1.1 | [`Latencies`], [`System`] |
//!
//! | figure | what | here |
//! |---|---|---|
//! | 3-1 | speedup from two sets of miss rates | [`Latencies::speedup`] |
//! | 3-2 | against a layout that misses always | [`Latencies::best_case_speedup`] |
//! | 3-3 | `m_s` of a clustered and coloured tree | [`c_tree_miss_rate`] |
//! | 3-4, 3-5, 3-6 | predicted and actual speedups | [`figures`] |
//!
//! **Where the text leaves a choice.** Miss rates are misses for each reference (m(i), section
//! 3.1.1), so that the rate of a second level, *misses for each first-level miss*, is the quotient
//! of two of them; with a first level that always misses, as in all of the thesis's examples, they
//! are the same. `m_s` needs no associativity of its own: a appears in c x a alone, the number of
//! blocks that a cache has. K of trees with more than two children, of lists, and D and R of both,
//! are ours by the argument that the thesis gives for two ("similar analysis can be performed", end
//! of section 3.3.1).

pub mod figures;
mod rates;
mod report;
mod time;
mod transient;

pub use crate::colour::CacheGeometry;
pub use rates::{
    Clustering, CompleteTree, c_tree_miss_rate, coloured_reuse, miss_rate, reuse_bound,
    search_references,
};
pub use report::{LevelRate, Report, ReportRow, Transient, report};
pub use time::{
    Latencies, MissRates, NAIVE, System, SystemCache, THESIS_L1, THESIS_L2, THESIS_LATENCIES,
    THESIS_NODE_BYTES,
};
pub use transient::{
    amortised_miss_rate, logarithmic_reuse_miss_rate, transient_miss_rate, transient_misses,
    transient_reuse, worst_case_hits, worst_case_misses,
};

#[cfg(test)]
mod tests;
