//! The formulas of chapter 3 of T. Chilimbi, *Cache-Conscious Data Structures* (1999), as printed,
//! and `formulas`, the command that applies them to a tree and a machine.
//!
//! The formulas compare a layout of a complete binary tree with the naive layout. A block of `b`
//! bytes holds k = floor(b / e) nodes of `e` bytes. A search makes D references, needs K nodes of
//! each block and finds R of them in the cache. It misses m = (1 - R / D) / K of its references.
//! Associativity counts as capacity alone. `docs/inside/model.md` compares the formulas with
//! the predictions of this workspace and with a simulation.

use std::error::Error;
use std::fs;
use std::io::Write;

use ccmodel::{CacheGeometry, LevelKind, Machine};

/// Node size of the thesis's tree: three to a block of 64 bytes, 40 MB for 2,097,151 of them.
pub(crate) const NODE_BYTES: u64 = 20;
/// First-level cache of the thesis's machine (section 2.3.1): 16 KB.
pub(crate) const L1: CacheGeometry = direct_mapped(1024, 16);
/// Second-level cache of the thesis's machine (section 2.3.1): 1 MB.
pub(crate) const L2: CacheGeometry = direct_mapped(16_384, 64);

const fn direct_mapped(sets: u64, block_bytes: u64) -> CacheGeometry {
    match CacheGeometry::new(sets, block_bytes, 1) {
        Ok(geometry) => geometry,
        Err(_) => panic!("not a cache"),
    }
}

/// Whole nodes in a block, k; 1 for a node larger than a block.
pub(crate) fn nodes_per_block(block_bytes: u64, node_bytes: u64) -> u64 {
    (block_bytes / node_bytes.max(1)).max(1)
}

/// Nodes at the top of a tree that fit into half of the sets, c/2 x k x a (section 3.2.1).
pub(crate) fn colourable_nodes(cache: CacheGeometry, node_bytes: u64) -> f64 {
    cache.blocks() as f64 / 2.0 * nodes_per_block(cache.block_bytes(), node_bytes) as f64
}

/// How nodes share blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clustering {
    /// Unrelated nodes share a block.
    None,
    /// A chain of k nodes, each a child of the one before (depth-first order).
    DepthFirst,
    /// A subtree of k nodes.
    Subtree,
}

impl Clustering {
    /// K, the nodes of a block that one search needs: 1, 2 (1 - (1/2)^k), or log2(k + 1)
    /// (section 2.2.3).
    pub(crate) fn k(self, nodes_per_block: u64) -> f64 {
        let k = nodes_per_block.max(1) as f64;
        match self {
            Clustering::None => 1.0,
            Clustering::DepthFirst => 2.0 * (1.0 - 0.5f64.powf(k)),
            Clustering::Subtree => (k + 1.0).log2(),
        }
    }
}

/// D = log2(n + 1), references of a search: the number of levels (section 3.1.1).
pub(crate) fn search_references(nodes: u64) -> f64 {
    (nodes as f64 + 1.0).log2()
}

/// `R_s = log2(coloured + 1)`: levels that colouring keeps in the cache (section 3.2.1); at most D.
pub(crate) fn coloured_reuse(nodes: u64, coloured_nodes: f64) -> f64 {
    let levels = (coloured_nodes.max(0.0) + 1.0).log2();
    levels.min(search_references(nodes))
}

/// `m = (1 - R / D) / K`, misses for each reference (section 3.1.1); 0 where nothing is referenced.
pub(crate) fn miss_rate(references: f64, reuse: f64, k: f64) -> f64 {
    let rate = (1.0 - reuse / references) / k;
    if references > 0.0 && k > 0.0 && rate > 0.0 {
        rate
    } else {
        0.0
    }
}

/// `m_s` of a subtree-clustered, coloured complete tree, figure 3-3.
pub(crate) fn c_tree_miss_rate(nodes: u64, node_bytes: u64, cache: CacheGeometry) -> f64 {
    miss_rate(
        search_references(nodes),
        coloured_reuse(nodes, colourable_nodes(cache, node_bytes)),
        Clustering::Subtree.k(nodes_per_block(cache.block_bytes(), node_bytes)),
    )
}

/// log_(k+1) x.
fn log_blocks(x: f64, nodes_per_block: u64) -> f64 {
    x.ln() / (nodes_per_block.max(1) as f64 + 1.0).ln()
}

/// T = i log_(k+1)(i) - (i - 1) / k: blocks that `searches` worst-case searches, a power of k + 1,
/// find in a cache that never evicts (section 3.3.1).
pub(crate) fn worst_case_hits(nodes_per_block: u64, searches: u64) -> f64 {
    let (k, i) = (nodes_per_block.max(1) as f64, searches.max(1) as f64);
    i * log_blocks(i, nodes_per_block) - (i - 1.0) / k
}

/// Worst-case misses for each of the first `searches` searches in a cache that never evicts
/// (section 3.3.1): log_(k+1)(n + 1) - log_(k+1)(i) + (i - 1) / (i k), at least 0.
///
/// Holds up to i = (n + 1) / (k + 1), after which all blocks may be cached.
pub(crate) fn transient_misses(nodes: u64, nodes_per_block: u64, searches: u64) -> f64 {
    let all = log_blocks(nodes as f64 + 1.0, nodes_per_block);
    (all - worst_case_hits(nodes_per_block, searches) / searches.max(1) as f64).max(0.0)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ccmodel-lab formulas --machine zen4-desktop --node-bytes 32")]
pub(crate) struct Args {
    /// Nodes of the complete binary tree
    #[arg(long, default_value_t = 2_097_151)]
    nodes: u64,
    /// Bytes of a node
    #[arg(long, default_value_t = NODE_BYTES)]
    node_bytes: u64,
    /// A preset or a machine file
    #[arg(long, default_value = "thesis")]
    machine: String,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let machine = Machine::preset(&args.machine);
    let machine = machine.or_else(|unknown| match fs::read_to_string(&args.machine) {
        Ok(text) => Machine::from_json(&text),
        Err(_) => Err(unknown),
    })?;
    Ok(out.write_all(table(&machine, args.nodes, args.node_bytes).as_bytes())?)
}

/// K and m of each layout at each cache, and what follows from them. Colours are of the last cache,
/// half of which is for the top of the tree. Speedups are over a layout that always misses
/// (figure 3-2).
fn table(machine: &Machine, nodes: u64, node_bytes: u64) -> String {
    let levels = machine.levels.iter();
    let data = levels.filter(|level| level.kind == LevelKind::Data);
    // Each step of latency counts as a cache.
    let caches: Vec<_> = data
        .flat_map(|level| level.steps.iter().map(move |step| (level, step)))
        .collect();
    let (hit_ns, references) = (machine.search.branch_free_node_ns, search_references(nodes));
    let worst_ns = hit_ns + caches.iter().map(|(_, step)| step.step_ns).sum::<f64>();
    let mut text = format!("{}, D = {references:.2}\n{:<18}", machine.name, "layout");
    for (level, _) in &caches {
        let [k, m] = ["K", "m"].map(|symbol| format!("{symbol} {}", level.name));
        text += &format!(" {k:>8} {m:>8}");
    }
    text += "  ns/search  speedup\n";
    for (layout, clustering, is_coloured) in [
        ("random", Clustering::None, false),
        ("depth-first", Clustering::DepthFirst, false),
        ("cluster", Clustering::Subtree, false),
        ("random, coloured", Clustering::None, true),
        ("cluster, coloured", Clustering::Subtree, true),
    ] {
        text += &format!("{layout:<18}");
        let mut ns = hit_ns;
        for (i, (level, step)) in caches.iter().enumerate() {
            let block_bytes = level.block_bytes;
            let per_block = nodes_per_block(block_bytes, node_bytes);
            let blocks = step.capacity_bytes / block_bytes as f64;
            let reuse = match is_coloured && i + 1 == caches.len() {
                true => coloured_reuse(nodes, blocks / 2.0 * per_block as f64),
                false => 0.0,
            };
            let k = clustering.k(per_block);
            let rate = miss_rate(references, reuse, k);
            ns += rate * step.step_ns;
            text += &format!(" {k:>8.3} {rate:>8.3}");
        }
        let speedup = worst_ns / ns;
        text += &format!(" {:>10.1} {speedup:>7.2}x\n", ns * references);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_has_the_limits_of_the_text() {
        for k in 1..200 {
            use Clustering::{DepthFirst, None, Subtree};
            for clustering in [None, DepthFirst, Subtree] {
                let needed = clustering.k(k);
                let is_within = (1.0..=k as f64 + 1e-12).contains(&needed);
                assert!(is_within, "{clustering:?}, {k}");
            }
            // "greater than 2 for k > 3", "<= 2" (section 2.2.3).
            assert_eq!(Subtree.k(k) > 2.0 + 1e-12, k > 3);
            assert!(DepthFirst.k(k) <= 2.0);
        }
    }

    #[test]
    fn the_table_has_the_numbers_of_the_text() {
        let text = table(&Machine::thesis(), 2_097_151, NODE_BYTES);
        for part in "D = 21.00|0.571|0.500|cluster, coloured|4.23x|1.00x".split('|') {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        let empty = table(&Machine::thesis(), 0, 0);
        assert!(!empty.contains("NaN") && !empty.contains("inf"), "{empty}");
    }
}
