//! Start-up behaviour: searches of a subtree-clustered complete binary tree from a cold cache that
//! never evicts (section 3.3.1), and miss rates amortised over a sequence (section 3.1.1).
//!
//! The thesis takes the worst sequence: each search shares as few blocks with those before as the
//! tree allows. With k nodes in a block and i a power of k + 1,
//!
//! ```text
//! search                            misses
//! 1                                 log_(k+1)(n+1)
//! 2 ... k+1                         log_(k+1)(n+1) - 1
//! (k+1)+1 ... (k+1)^2               log_(k+1)(n+1) - 2
//! ...
//! (k+1)^(log_(k+1) i - 1)+1 ... i   log_(k+1)(n+1) - log_(k+1) i
//! sum                               i log_(k+1)(n+1) - T,     T = i log_(k+1) i - (i - 1) / k
//! ```
//!
//! which the tests count block by block. The last step of the chapter, "the last term is
//! negligible", leaves out up to 1/k of a block a search: [`transient_misses`] keeps it,
//! [`transient_miss_rate`] does not.

use super::rates::search_references;

/// log_(k+1) x.
fn log_blocks(x: f64, nodes_per_block: u64) -> f64 {
    x.ln() / (nodes_per_block.max(1) as f64 + 1.0).ln()
}

/// R(i) = log2(i): elements that the i-th search finds cached in a cache that never evicts (section
/// 3.3.1); at most D.
pub fn transient_reuse(nodes: u64, search: u64) -> f64 {
    (search.max(1) as f64).log2().min(search_references(nodes))
}

/// Misses of the `search`-th worst-case search alone, log_(k+1)(n + 1) less the levels of blocks
/// that those before it have brought in (the table of section 3.3.1).
pub fn worst_case_misses(nodes: u64, nodes_per_block: u64, search: u64) -> f64 {
    let step = nodes_per_block.max(1).saturating_add(1);
    let (mut cached_levels, mut reach) = (0u32, 1u64);
    // In whole numbers: the logarithm of a power need not come out whole.
    while reach < search.max(1) {
        reach = reach.saturating_mul(step);
        cached_levels += 1;
    }
    let all = log_blocks(nodes as f64 + 1.0, nodes_per_block);
    (all - f64::from(cached_levels)).max(0.0)
}

/// T = i log_(k+1)(i) - (i - 1) / k: blocks that `searches` worst-case searches, a power of k + 1,
/// find cached (section 3.3.1).
pub fn worst_case_hits(nodes_per_block: u64, searches: u64) -> f64 {
    let (k, i) = (nodes_per_block.max(1) as f64, searches.max(1) as f64);
    i * log_blocks(i, nodes_per_block) - (i - 1.0) / k
}

/// Worst-case misses for each of the first `searches` searches, amortised, in a cache that never
/// evicts (section 3.3.1): log_(k+1)(n + 1) - log_(k+1)(i) + (i - 1) / (i k).
///
/// Holds up to i = (n + 1) / (k + 1), after which all blocks may be there; never negative.
pub fn transient_misses(nodes: u64, nodes_per_block: u64, searches: u64) -> f64 {
    let i = searches.max(1) as f64;
    let all = log_blocks(nodes as f64 + 1.0, nodes_per_block);
    (all - worst_case_hits(nodes_per_block, searches) / i).max(0.0)
}

/// (1 - log2(i) / log2(n + 1)) / log2(k + 1): the miss rate that the chapter arrives at (section
/// 3.3.1), up to a constant factor as it says; m(i) with K = log2(k + 1) and R(i) = log2(i).
pub fn transient_miss_rate(nodes: u64, nodes_per_block: u64, search: u64) -> f64 {
    super::miss_rate(
        search_references(nodes),
        transient_reuse(nodes, search),
        super::Clustering::Subtree.k(nodes_per_block),
    )
}

/// `m_a(p)`: the mean of m(1) to m(p) (section 3.1.1), for D references, K, and R(i) as a function.
/// O(p).
pub fn amortised_miss_rate(
    references: f64,
    k: f64,
    accesses: u64,
    reuse: impl Fn(u64) -> f64,
) -> f64 {
    let accesses = accesses.max(1);
    let sum: f64 = (1..=accesses)
        .map(|i| super::miss_rate(references, reuse(i), k))
        .sum();
    sum / accesses as f64
}

/// `m_a(p)` for R(i) = log2(i) up to a bound, `R_s` of a coloured tree or D, in closed form: what
/// joins sections 3.2 and 3.3. For large p it tends to the [`miss_rate`](super::miss_rate) with the
/// bound. O(1).
///
/// log2(1) + ... + log2(m) is log2(m!), for which Stirling's series stands; below 1e-9 off the sum.
pub fn logarithmic_reuse_miss_rate(references: f64, k: f64, accesses: u64, reuse_max: f64) -> f64 {
    let bound = reuse_max.clamp(0.0, references.max(0.0));
    let p = accesses.max(1) as f64;
    // From here on the bound holds.
    let growing = 2f64.powf(bound).floor().min(p);
    let mean_reuse = (log2_factorial(growing) + (p - growing) * bound) / p;
    super::miss_rate(references, mean_reuse, k)
}

/// log2(m!) for a whole number m.
fn log2_factorial(m: f64) -> f64 {
    /// From here on the series is good to nine digits.
    const SERIES_FROM: u32 = 16;
    if m < f64::from(SERIES_FROM) {
        return (2..SERIES_FROM)
            .map(f64::from)
            .take_while(|&i| i <= m)
            .map(f64::log2)
            .sum();
    }
    let series = m * m.ln() - m + 0.5 * (std::f64::consts::TAU * m).ln() + 1.0 / (12.0 * m)
        - 1.0 / (360.0 * m.powi(3));
    series * std::f64::consts::LOG2_E
}
