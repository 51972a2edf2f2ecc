//! Searches for uniform keys in complete binary trees of 2^k - 1 nodes, placed by seven layouts, on
//! four machines. Complete trees are the hardest: the distances of their subtrees are nearly powers
//! of two, so many addresses fall into one set.

use ccmodel::{
    Accesses, ClosedForm, Frames, Hierarchy, Inclusion, Layout, Shape, Simulator, Tier,
    predict_misses,
};
use rayon::prelude::*;

use super::compare::{Compared, compare, mean_error, row};
use super::{Effort, Row};
use crate::progress;
use crate::sample::{Precision, Simulated, all_misses, level, node, three_level_machines};

/// Streams of operations are the same in every run.
const SEED: u64 = 0x51ea;
/// Levels that miss less often than this in an operation are compared absolutely.
const RARE: f64 = 0.1;
const THESIS: &str = "thesis";

pub(super) const ROWS: [&str; 4] = [
    "steady_error_max",
    "steady_error_mean",
    "steady_error_direct_mapped_max",
    "closed_form_error_max",
];

#[derive(Clone, Copy)]
pub(super) struct TreeCase {
    bits: u32,
    node_bytes: u32,
    layout: Layout,
}

impl TreeCase {
    pub(super) fn new(bits: u32, node_bytes: u32, layout: Layout) -> TreeCase {
        TreeCase {
            bits,
            node_bytes,
            layout,
        }
    }

    fn name(self) -> String {
        let (layout, bits, node_bytes) = (self.layout.name(), self.bits, self.node_bytes);
        format!("{layout} 2^{bits} of {node_bytes} B")
    }

    pub(super) fn accesses(self) -> Accesses {
        let shape = Shape::complete_binary((1 << self.bits) - 1);
        let placement = self.layout.place(&shape, node(self.node_bytes));
        Accesses::searches(&shape, &placement, self.node_bytes, None)
    }
}

/// Machines with a last level of 32 to 40 MiB, and the thesis's.
pub(super) fn machines() -> [Simulated; 4] {
    let [server, victim, inclusive] =
        three_level_machines([(32 << 20, 16), (32 << 20, 16), (40 << 20, 20)]);
    let caches = vec![level("L1", 16 << 10, 1, 16), level("L2", 1 << 20, 1, 64)];
    let thesis = Simulated::new(THESIS, caches, Inclusion::NonInclusive, Vec::new());
    [server, victim, inclusive, thesis]
}

const LAYOUTS: [Layout; 7] = [
    Layout::Random { seed: 1 },
    Layout::BreadthFirst,
    Layout::DepthFirst,
    Layout::VanEmdeBoas,
    Layout::SubtreeCluster { block_bytes: 64 },
    Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    Layout::Hierarchical,
];

/// The largest first, so that no thread is left with one at the end. In full: nodes of 32 bytes in
/// trees of each size, the others in trees of every second one.
fn cases(effort: Effort) -> Vec<TreeCase> {
    let (bits, odd, node_bytes): (&[u32], &[u32], &[u32]) = match effort {
        Effort::Quick => (&[18, 15], &[24, 32], &[24, 32]),
        Effort::Full => (&[22, 21, 20, 19, 18, 17, 16, 15, 14], &[32], &[24, 32, 56]),
    };
    let mut cases = Vec::new();
    for &bits in bits {
        for &node_bytes in if bits % 2 == 0 { node_bytes } else { odd } {
            cases.extend(LAYOUTS.map(|layout| TreeCase::new(bits, node_bytes, layout)));
        }
    }
    cases
}

pub(super) fn rows(effort: Effort) -> Vec<Row> {
    let cases = cases(effort);
    let (batches_min, batches_max) = match effort {
        Effort::Quick => (4, 4),
        Effort::Full => (8, 14),
    };
    let precision = Precision {
        seed: SEED,
        batches_min,
        batches_max,
        standard_error: 0.0015,
        rare: RARE,
    };
    let compared = cases.par_iter().map(|case| {
        progress(&case.name());
        compare(&case.name(), &case.accesses(), &machines(), precision)
    });
    let compared: Vec<Vec<Compared>> = compared.collect();
    let closed = cases.iter().zip(&compared);
    let closed: Vec<Compared> = closed
        .flat_map(|(&case, levels)| closed_forms(case, levels))
        .collect();
    let (direct_mapped, steady): (Vec<&Compared>, Vec<&Compared>) =
        { compared.iter().flatten() }.partition(|level| level.machine == THESIS);
    let [max, mean, direct_mapped_max, closed_max] = ROWS;
    let mean_note = format!("The mean of {} levels.", steady.len());
    let mean = Row::at_most(mean, 0.005, Some(mean_error(&steady)), mean_note);
    vec![
        row(max, 0.02, steady),
        mean,
        row(direct_mapped_max, 0.04, direct_mapped),
        row(closed_max, 0.05, &closed),
    ]
}

/// What the formulas predict of the same levels. They count blocks, not sets, so they do not know
/// direct-mapped caches.
fn closed_forms(case: TreeCase, levels: &[Compared]) -> Vec<Compared> {
    let nodes = (1u64 << case.bits) - 1;
    let Ok(closed) = ClosedForm::new(case.layout, nodes, 2, node(case.node_bytes)) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for machine in machines().iter().filter(|machine| machine.name != THESIS) {
        for formula in closed.predict(&machine.hierarchy) {
            let same =
                |level: &&Compared| level.machine == machine.name && level.level == formula.name;
            let level = levels.iter().find(same);
            all.extend(level.map(|level| level.with(formula.misses, RARE)));
        }
    }
    all
}

/// Operations from cold over which misses are counted.
const LENGTHS: [u64; 4] = [100, 1000, 10_000, 100_000];
/// The mean of a length is over at least this many operations, and this many runs from cold.
const COLD_OPERATIONS: u64 = 60_000;
const COLD_RUNS_MIN: u64 = 3;

/// Misses of the first `length` operations from cold, at each level, the mean of several runs.
fn simulated_from_cold(accesses: &Accesses, hierarchy: &Hierarchy, length: u64) -> Vec<f64> {
    let runs = (COLD_OPERATIONS / length).max(COLD_RUNS_MIN);
    let mut operations = accesses.operations(SEED ^ length);
    let mut simulator = Simulator::new(hierarchy, Frames::Identity);
    let mut reads = Vec::new();
    for _ in 0..runs {
        simulator.flush();
        for _ in 0..length {
            operations.next_into(&mut reads);
            for access in &reads {
                simulator.access(access.address, access.bytes);
            }
        }
    }
    let misses = all_misses(&simulator).into_iter();
    misses.map(|misses| misses as f64 / runs as f64).collect()
}

/// The row `transient_error_max`: misses of the first operations from cold, at several lengths.
pub(super) fn transient_rows(effort: Effort) -> Vec<Row> {
    let bits: &[u32] = match effort {
        Effort::Quick => &[18],
        Effort::Full => &[16, 19, 22],
    };
    let [machine, ..] = machines();
    let hierarchy = &machine.hierarchy;
    let (mut worst, mut levels) = ((0.0f64, String::new()), 0);
    let of_bits = |&bits: &u32| LAYOUTS.map(|layout| TreeCase::new(bits, 32, layout));
    for case in bits.iter().flat_map(of_bits) {
        progress(&format!(
            "transient, {}: worst so far {:.4}",
            case.name(),
            worst.0
        ));
        let accesses = case.accesses();
        for length in LENGTHS {
            let simulated = simulated_from_cold(&accesses, hierarchy, length);
            let (frames, first) = (Frames::Identity, Some(length));
            let predicted = predict_misses(&accesses, hierarchy, frames, Tier::Auto, first);
            for (level, simulated) in predicted.iter().zip(simulated) {
                levels += 1;
                let error = (level.misses - simulated).abs() / simulated.max(RARE);
                if error > worst.0 {
                    let what = format!(
                        "{}, {} of the first {length}: {:.1} misses predicted, {simulated:.1} \
                         simulated",
                        case.name(),
                        level.name,
                        level.misses
                    );
                    worst = (error, what);
                }
            }
        }
    }
    let note = format!(
        "{levels} levels and lengths were compared, each the mean of {COLD_OPERATIONS} operations \
         or more. The worst is {}.",
        worst.1
    );
    vec![Row::at_most(
        "transient_error_max",
        0.02,
        Some(worst.0),
        note,
    )]
}
