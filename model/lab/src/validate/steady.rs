//! The tiers compared with the simulator: misses of an operation, level by level.
//!
//! Searches for uniform keys in complete binary trees of 2^k - 1 nodes, placed by seven layouts, on
//! four machines. Complete trees are the hardest: the distances of their subtrees are nearly powers
//! of two, so many addresses fall into one set.
//!
//! Levels that miss less than [`RARE`] an operation are compared absolutely: the difference over
//! [`RARE`]. Rarer misses cost no time and cannot be simulated to a percent.

use std::time::Instant;

use ccmodel::{
    Accesses, ClosedForm, Frames, Hierarchy, Inclusion, Layout, NodeExtent, Shape, Simulator, Tier,
    predict_misses, predict_transient,
};

use super::{Bound, Effort, Row};
use crate::parallel::parallel;
use crate::progress;
use crate::sample::{Precision, Simulated, all_misses, level, sample, tlb};

/// Streams of operations are the same in every run.
const SEED: u64 = 0x51ea;
/// Levels that miss less often than this in an operation are compared absolutely.
const RARE: f64 = 0.1;

/// One tree.
#[derive(Clone, Copy)]
struct Case {
    bits: u32,
    node_bytes: u32,
    layout: Layout,
}

impl Case {
    fn name(&self) -> String {
        format!(
            "{} 2^{} of {} B",
            self.layout.name(),
            self.bits,
            self.node_bytes
        )
    }
}

/// A level, predicted and simulated.
struct Compared {
    machine: &'static str,
    level: String,
    simulated: f64,
    /// Relative, of the simulation.
    standard_error: f64,
    predicted: f64,
    closed: Option<f64>,
}

impl Compared {
    fn error(&self, predicted: f64) -> f64 {
        (predicted - self.simulated).abs() / self.simulated.max(RARE)
    }
}

/// The rows `steady_error_max`, `steady_error_mean`, `steady_error_direct_mapped_max` and
/// `closed_form_error_max`.
pub(super) fn steady_rows(effort: Effort) -> Vec<Row> {
    let cases = cases(effort);
    let compared = parallel(
        &cases,
        |&case| compare(case, effort),
        |case, _| progress(&case.name()),
    );
    let compared: Vec<(String, Compared)> = { cases.iter().zip(compared) }
        .flat_map(|(case, levels)| levels.into_iter().map(|level| (case.name(), level)))
        .collect();
    summary(&compared)
}

/// A server core with private second level (as Emerald Rapids; its last level has no power of two
/// of sets in truth, and is taken as the part that one program gets), one with a victim cache (as
/// Zen 4), an inclusive one (as Broadwell), and the thesis's machine.
fn machines() -> [Simulated; 4] {
    const K: u64 = 1024;
    [
        Simulated::new(
            "server",
            vec![
                level("L1", 48 * K, 12, 64),
                level("L2", 2048 * K, 16, 64),
                level("L3", 32 * K * K, 16, 64),
            ],
            Inclusion::NonInclusive,
            vec![tlb("dTLB", 96, 6), tlb("STLB", 2048, 16)],
        ),
        Simulated::new(
            "victim",
            vec![
                level("L1", 32 * K, 8, 64),
                level("L2", 1024 * K, 8, 64),
                level("L3", 32 * K * K, 16, 64),
            ],
            Inclusion::VictimLast,
            vec![tlb("dTLB", 72, 72), tlb("STLB", 3072, 12)],
        ),
        Simulated::new(
            "inclusive",
            vec![
                level("L1", 32 * K, 8, 64),
                level("L2", 256 * K, 8, 64),
                level("L3", 40 * K * K, 20, 64),
            ],
            Inclusion::Inclusive,
            vec![tlb("dTLB", 64, 4), tlb("STLB", 1536, 6)],
        ),
        Simulated::new(
            THESIS,
            vec![level("L1", 16 * K, 1, 16), level("L2", K * K, 1, 64)],
            Inclusion::NonInclusive,
            Vec::new(),
        ),
    ]
}

/// The direct-mapped one.
const THESIS: &str = "thesis";

fn layouts() -> [Layout; 7] {
    [
        Layout::Random { seed: 1 },
        Layout::BreadthFirst,
        Layout::DepthFirst,
        Layout::VanEmdeBoas,
        Layout::SubtreeCluster { block_bytes: 64 },
        Layout::ClusterVanEmdeBoas { block_bytes: 64 },
        Layout::Hierarchical,
    ]
}

/// The largest first, so that no thread is left with one at the end. In full: nodes of 32 bytes in
/// trees of each size, the others in trees of every second one.
fn cases(effort: Effort) -> Vec<Case> {
    let (bits, odd, node_bytes): (&[u32], &[u32], &[u32]) = match effort {
        Effort::Quick => (&[18, 15], &[24, 32], &[24, 32]),
        Effort::Full => (&[22, 21, 20, 19, 18, 17, 16, 15, 14], &[32], &[24, 32, 56]),
    };
    let mut cases = Vec::new();
    for &bits in bits {
        let node_bytes = if bits % 2 == 0 { node_bytes } else { odd };
        for &node_bytes in node_bytes {
            let of = |layout| Case {
                bits,
                node_bytes,
                layout,
            };
            cases.extend(layouts().map(of));
        }
    }
    cases
}

/// The nodes' size and alignment.
fn extent(node_bytes: u32) -> NodeExtent {
    NodeExtent {
        bytes: node_bytes,
        align: 8,
    }
}

fn accesses(case: Case) -> Accesses {
    let shape = Shape::complete_binary((1 << case.bits) - 1);
    let placement = case.layout.place(&shape, extent(case.node_bytes));
    Accesses::searches(&shape, &placement, case.node_bytes, None)
}

/// One case on all machines.
fn compare(case: Case, effort: Effort) -> Vec<Compared> {
    let machines = machines();
    let accesses = accesses(case);
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
    let simulated = sample(&accesses, &machines, precision);
    let nodes = (1u64 << case.bits) - 1;
    let closed = ClosedForm::new(case.layout, nodes, 2, extent(case.node_bytes)).ok();
    let mut all = Vec::new();
    for (machine, simulated) in machines.iter().zip(simulated) {
        let hierarchy = &machine.hierarchy;
        let predicted = predict_misses(&accesses, hierarchy, Frames::Identity, Tier::Auto);
        // Formulas count blocks, not sets, so they do not know direct-mapped caches.
        let formulas = match &closed {
            Some(closed) if machine.name != THESIS => closed.predict(hierarchy),
            _ => Vec::new(),
        };
        for (prediction, simulated) in predicted.into_iter().zip(simulated) {
            let formula = formulas
                .iter()
                .find(|formula| formula.name == prediction.name);
            all.push(Compared {
                machine: machine.name,
                level: prediction.name,
                simulated: simulated.mean,
                standard_error: simulated.standard_error,
                predicted: prediction.misses,
                closed: formula.map(|formula| formula.misses),
            });
        }
    }
    all
}

/// The rows of all levels, each with the name of its case.
fn summary(compared: &[(String, Compared)]) -> Vec<Row> {
    let noise = { compared.iter() }
        .map(|(_, level)| level.standard_error)
        .fold(0.0, f64::max);
    let row = |name, allowed, errors: Vec<(f64, String)>| {
        let (value, note) = worst_of(errors, allowed);
        let noise = 100.0 * noise;
        Row {
            name,
            value,
            allowed,
            bound: Bound::AtMost,
            note: format!("{note} The simulation's standard error is at most {noise:.2} %."),
        }
    };
    let error = |case: &str, level: &Compared, predicted: f64| {
        let what = format!(
            "{case}, {} {}: {predicted:.4} misses predicted, {:.4} simulated",
            level.machine, level.level, level.simulated
        );
        (level.error(predicted), what)
    };
    let of = |direct_mapped: bool| -> Vec<(f64, String)> {
        { compared.iter() }
            .filter(|(_, level)| (level.machine == THESIS) == direct_mapped)
            .map(|(case, level)| error(case, level, level.predicted))
            .collect()
    };
    let steady = of(false);
    let levels = steady.len();
    let mean = steady.iter().map(|&(error, _)| error).sum::<f64>() / levels.max(1) as f64;
    let closed = { compared.iter() }
        .filter_map(|(case, level)| Some(error(case, level, level.closed?)))
        .collect();
    vec![
        row("steady_error_max", 0.02, steady),
        Row {
            name: "steady_error_mean",
            value: Some(mean),
            allowed: 0.005,
            bound: Bound::AtMost,
            note: format!("The mean of {levels} levels."),
        },
        row("steady_error_direct_mapped_max", 0.04, of(true)),
        row("closed_form_error_max", 0.05, closed),
    ]
}

/// The largest of some errors, and a note that names it, or all of those that are not `allowed`,
/// the worst first.
fn worst_of(mut errors: Vec<(f64, String)>, allowed: f64) -> (Option<f64>, String) {
    errors.sort_by(|a, b| b.0.total_cmp(&a.0));
    let above = errors.iter().filter(|error| error.0 > allowed).count();
    let named: Vec<&str> = (errors.iter().take(above.max(1)))
        .map(|(_, what)| what.as_str())
        .collect();
    let worst = match above {
        0 | 1 => "The worst is",
        _ => "They are, the worst first:",
    };
    let note = format!(
        "{above} of {} levels err by more than is allowed. {worst} {}.",
        errors.len(),
        named.join("; ")
    );
    (errors.first().map(|worst| worst.0), note)
}

/// Operations from cold over which misses are counted.
const LENGTHS: [u64; 4] = [100, 1000, 10_000, 100_000];
/// So many operations in all make the mean of a length, in runs from cold; at least so many runs.
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

/// The row `transient_error_max`: misses of the first operations from cold, at several lengths,
/// against the mean of several runs.
pub(super) fn transient_row(effort: Effort) -> Row {
    let bits: &[u32] = match effort {
        Effort::Quick => &[18],
        Effort::Full => &[16, 19, 22],
    };
    let [machine, ..] = machines();
    let mut worst = (0.0f64, String::new());
    let mut levels = 0;
    for &bits in bits {
        for layout in layouts() {
            let case = Case {
                bits,
                node_bytes: 32,
                layout,
            };
            let accesses = accesses(case);
            for length in LENGTHS {
                let simulated = simulated_from_cold(&accesses, &machine.hierarchy, length);
                let predicted = predict_transient(
                    &accesses,
                    &machine.hierarchy,
                    Frames::Identity,
                    Tier::Auto,
                    length,
                );
                for (level, simulated) in predicted.iter().zip(simulated) {
                    levels += 1;
                    let error = (level.misses - simulated).abs() / simulated.max(RARE);
                    if error > worst.0 {
                        let what = format!(
                            "{}, {} of the first {length}: {:.1} misses predicted, \
                             {simulated:.1} simulated",
                            case.name(),
                            level.name,
                            level.misses
                        );
                        worst = (error, what);
                    }
                }
            }
            let done = format!(
                "transient, {}: worst so far {:.2} %",
                case.name(),
                100.0 * worst.0
            );
            progress(&done);
        }
    }
    Row {
        name: "transient_error_max",
        value: Some(worst.0),
        allowed: 0.02,
        bound: Bound::AtMost,
        note: format!(
            "{levels} levels and lengths were compared, each the mean of {COLD_OPERATIONS} \
             operations or more. The worst is {}.",
            worst.1
        ),
    }
}

/// The row `predict_speed`: seconds for 2^22 nodes at all levels by the per-set tier, the slower of
/// two layouts.
pub(super) fn predict_speed_row() -> Row {
    let [machine, ..] = machines();
    let mut slowest = (0.0f64, "");
    for layout in [Layout::Random { seed: 1 }, Layout::VanEmdeBoas] {
        let case = Case {
            bits: 22,
            node_bytes: 32,
            layout,
        };
        let accesses = accesses(case);
        let start = Instant::now();
        predict_misses(
            &accesses,
            &machine.hierarchy,
            Frames::Identity,
            Tier::PerSet,
        );
        let seconds = start.elapsed().as_secs_f64();
        if seconds > slowest.0 {
            slowest = (seconds, layout.name());
        }
    }
    Row {
        name: "predict_speed",
        value: Some(slowest.0),
        allowed: 5.0,
        bound: Bound::AtMost,
        note: format!("Seconds for the slowest layout, {}.", slowest.1),
    }
}

#[cfg(test)]
mod tests {
    use super::worst_of;

    #[test]
    fn every_level_above_is_named_and_else_the_worst() {
        let errors = || {
            [0.01, 0.05, 0.03]
                .map(|error| (error, format!("case {error}")))
                .to_vec()
        };
        let (value, note) = worst_of(errors(), 0.02);
        assert_eq!(
            (value, note.as_str()),
            (
                Some(0.05),
                "2 of 3 levels err by more than is allowed. They are, the worst first: \
                 case 0.05; case 0.03."
            )
        );
        let (_, note) = worst_of(errors(), 0.1);
        assert_eq!(
            note,
            "0 of 3 levels err by more than is allowed. The worst is case 0.05."
        );
        assert_eq!(worst_of(Vec::new(), 0.1).0, None);
    }
}
