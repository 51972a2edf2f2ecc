//! `thesis_pins` and `thesis_figure_*`: the formulas compared with what the thesis prints, and this
//! crate with the simulator on the thesis's experiments.
//!
//! What the thesis measured is known from three sentences, which bound its speedups
//! ([`Stated`](crate::figures::Stated)). Whether a simulation lies within these bounds says
//! something of the thesis, not of this crate, so it is in the notes. The distance between
//! predicted and simulated speedups is what the rows allow.

use crate::thesis::{
    Clustering, L2, NODE_BYTES, c_tree_miss_rate, colourable_nodes, coloured_reuse, miss_rate,
    nodes_per_block, search_references, transient_misses, worst_case_hits,
};

use super::{Effort, Row};
use crate::figures::{Figure, FigureOptions, FigureRow, figures, reference_cycles};

const NODES: u64 = 2_097_151;
/// What is allowed of the closed forms, whose terms are exact.
const ROUNDING: f64 = 1e-9;
/// Speedups are quotients of cycles in direct-mapped caches; this is what is allowed of misses in
/// such.
const FIGURE_ERROR: f64 = 0.04;

pub(super) const FIGURE_ROWS: [&str; 3] = [
    "thesis_figure_3_4",
    "thesis_figure_3_5",
    "thesis_figure_3_6",
];

pub(super) fn figure_rows(effort: Effort) -> Vec<Row> {
    let options = match effort {
        Effort::Quick => FigureOptions::QUICK,
        Effort::Full => FigureOptions::FULL,
    };
    let figures = FIGURE_ROWS.iter().zip(figures(options));
    figures
        .map(|(name, figure)| figure_row(name, &figure))
        .collect()
}

/// The row `thesis_pins`, which needs no simulation.
pub(super) fn formula_row() -> Row {
    let pins = pins();
    let deviation = |&(_, printed, ours): &(_, f64, f64)| (ours - printed).abs() / printed.max(1.0);
    let list: Vec<String> = { pins.iter() }
        .map(|(what, _, ours)| format!("{what}: {ours:.4}"))
        .collect();
    let note = format!(
        "The largest difference from a number that the thesis prints. The formulas give {}.",
        list.join("; ")
    );
    let worst = pins.iter().map(deviation).fold(0.0, f64::max);
    Row::at_most("thesis_pins", ROUNDING, Some(worst), note)
}

/// What a number is of, what the text prints or implies, and what the formulas give.
fn pins() -> Vec<(&'static str, f64, f64)> {
    let k = nodes_per_block(L2.block_bytes(), NODE_BYTES);
    let references = search_references(NODES);
    let rate = |clustering: Clustering| miss_rate(references, 0.0, clustering.k(k));
    let half_cache = 64.0 * 384.0;
    let coloured = miss_rate(references, coloured_reuse(NODES, half_cache), 1.0);
    // A tree whose levels are a multiple of two, as section 3.3.1 demands, and a power of four
    // searches.
    let (nodes, searches) = ((1 << 20) - 1, 1 << 12);
    let worst_case: f64 = (1..=searches)
        .map(|search| worst_case_misses(nodes, k, search))
        .sum();
    let counted_hits = (10 * searches) as f64 - worst_case;
    let hits = worst_case_hits(k, searches);
    let counted = worst_case / searches as f64;
    let misses = transient_misses(nodes, k, searches);
    let colourable = colourable_nodes(L2, NODE_BYTES);
    // Three digits are printed.
    let depth_first = (rate(Clustering::DepthFirst) * 1e3).round() / 1e3;
    let printed = 1.0 - (half_cache + 1.0).log2() / (NODES as f64 + 1.0).log2();
    let c_tree = c_tree_miss_rate(NODES, NODE_BYTES, L2);
    vec![
        ("m_L2 of subtree clusters", 0.5, rate(Clustering::Subtree)),
        ("m_L2 of depth-first clusters, rounded", 0.571, depth_first),
        ("m_L2 with 64 x 384 nodes coloured", printed, coloured),
        ("nodes that half of the cache holds", half_cache, colourable),
        ("m_s of a C-tree, figure 3-3", printed / 4f64.log2(), c_tree),
        ("D", 21.0, references),
        ("cycles of a naive reference", 71.0, reference_cycles(1.0)),
        ("T of 4096 worst-case searches, counted", counted_hits, hits),
        ("worst-case misses a search, counted", counted, misses),
    ]
}

/// Misses of the `search`-th worst-case search alone, log_(k+1)(n + 1) less the levels of blocks
/// that those before it have brought in (the table of section 3.3.1).
fn worst_case_misses(nodes: u64, nodes_per_block: u64, search: u64) -> f64 {
    let step = nodes_per_block + 1;
    let (mut cached_levels, mut reach) = (0u32, 1u64);
    // In whole numbers: the logarithm of a power need not come out whole.
    while reach < search {
        reach *= step;
        cached_levels += 1;
    }
    let all = (nodes as f64 + 1.0).ln() / (step as f64).ln();
    (all - f64::from(cached_levels)).max(0.0)
}

fn figure_row(name: &'static str, figure: &Figure) -> Row {
    let deviation =
        |row: &FigureRow| (row.predicted_speedup() / row.simulated_speedup(0.0) - 1.0).abs();
    let rows = || figure.rows.iter();
    let note = format!(
        "The largest difference of a predicted speedup over a random tree from the simulated one. \
         The text says \"{}\". Simulated without TLB misses, {} of {} points are where the text \
         puts its measurement.",
        figure.stated.quote,
        rows().filter(|row| row.is_as_stated()).count(),
        rows().filter(|row| row.stated.is_some()).count()
    );
    let worst = rows().map(deviation).fold(0.0, f64::max);
    Row::at_most(name, FIGURE_ERROR, Some(worst), note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formulas_give_what_is_printed() {
        let row = formula_row();
        assert!(row.ok(), "{row:?}");
        assert!(row.note.contains("0.5710") && row.note.contains("0.5000"));
        assert_eq!(pins().len(), 9);
    }

    #[test]
    fn figures_become_rows() {
        let options = FigureOptions {
            searches: 100,
            levels: 9,
            swept_levels: (9, 9),
        };
        for (name, figure) in FIGURE_ROWS.iter().zip(figures(options)) {
            let number = name.replace("thesis_figure_", "").replace('_', "-");
            assert_eq!(number, figure.number);
            let row = figure_row(name, &figure);
            assert!(row.value.is_some_and(f64::is_finite), "{row:?}");
            assert!(row.note.contains("the text"), "{}", row.note);
        }
    }
}
