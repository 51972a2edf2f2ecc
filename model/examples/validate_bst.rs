//! Holds predictions against the clock: binary search trees of several sizes and layouts, dependent
//! random searches.
//!
//! ```text
//! cargo run --release -p ccmodel --example validate_bst [-- [--full] [--branch-free]]
//! ```
//!
//! Calibrates this machine, then, for each number of nodes, page size and layout, writes a real
//! tree where the layout says, measures it and prints measured and predicted nanoseconds with their
//! ratio. At the end stands the worst ratio and how many pairs of layouts were ranked as measured.
//! Layouts are measured in turns, in short runs, and the lower quartile counts: on a machine shared
//! with others single runs differ by tens of percent. `--full` goes to 2^22 nodes instead of 2^21.
//! `--branch-free` searches without branches.

use ccmodel::{
    CalibrateOptions, Layout, Machine, NodeExtent, PageSize, Predictor, SearchStyle, Shape,
    TreeProbe,
};

/// Timed rounds of several runs each.
const ROUNDS: usize = 5;

fn layouts() -> [Layout; 6] {
    [
        Layout::Random { seed: 11 },
        Layout::BreadthFirst,
        Layout::DepthFirst,
        Layout::SubtreeCluster { block_bytes: 64 },
        Layout::VanEmdeBoas,
        Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    ]
}

/// The lower quartile: disturbances only ever add time.
fn typical(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 4]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let full = std::env::args().any(|arg| arg == "--full");
    let branch_free = std::env::args().any(|arg| arg == "--branch-free");
    let style = if branch_free {
        SearchStyle::BranchFree
    } else {
        SearchStyle::Branches
    };
    let mut worst: f64 = 1.0;
    let (mut pairs, mut agreeing) = (0, 0);
    println!("nodes   pages layout       measured  predicted  ratio");
    for bits in [16, 18, 20, if full { 22 } else { 21 }] {
        let shape = Shape::random_binary(1 << bits, 42);
        let node = NodeExtent::new(24, 8)?;
        let predictor = Predictor::new(&shape).style(style);
        for pages in [PageSize::Small4K, PageSize::Huge2M] {
            let machine = Machine::calibrate(CalibrateOptions::quick());
            let placements: Vec<_> = layouts()
                .iter()
                .map(|layout| layout.place(&shape, node))
                .collect();
            let mut trees = placements
                .iter()
                .map(|placement| TreeProbe::new(&shape, placement, node, pages))
                .collect::<Result<Vec<_>, _>>()?;
            let mut times = vec![Vec::new(); trees.len()];
            for _ in 0..ROUNDS {
                for (tree, times) in trees.iter_mut().zip(&mut times) {
                    tree.random_search_ns(style, 50_000);
                    // Runs shorter than a scheduler's slice.
                    times.extend((0..9).map(|_| tree.random_search_ns(style, 2000)));
                }
            }
            let mut rows = Vec::new();
            for ((layout, placement), times) in layouts().iter().zip(&placements).zip(times) {
                let measured = typical(times);
                let predicted = predictor.predict(placement, node, pages, &machine).ns;
                let ratio = measured / predicted;
                worst = worst.max(ratio).max(1.0 / ratio);
                println!(
                    "2^{bits:<5} {pages:<5} {:<12} {measured:8.1}  {predicted:9.1}  {ratio:5.2}",
                    layout.name()
                );
                rows.push((measured, predicted));
            }
            for (i, a) in rows.iter().enumerate() {
                for b in &rows[..i] {
                    // Pairs within 10 % of each other are not ranked.
                    if (a.0 / b.0).ln().abs() > 1.1f64.ln() {
                        pairs += 1;
                        agreeing += usize::from((a.0 < b.0) == (a.1 < b.1));
                    }
                }
            }
        }
    }
    println!(
        "worst ratio {worst:.2}; {agreeing} of {pairs} clearly different pairs ranked as measured"
    );
    Ok(())
}
