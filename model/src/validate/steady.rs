//! The tiers against the simulator: misses of an operation, level by level.
//!
//! Searches for uniform keys in complete binary trees of 2^k - 1 nodes, placed by seven layouts,
//! run through simulated machines of four kinds at once: one stream of operations for all of them.
//! Complete trees are the hardest: their subtrees are powers of two, less a node, and so are the
//! distances that make addresses meet in one set.
//!
//! **What is held against what.** The misses of an operation at each level, caches and translation
//! buffers, in the steady state. Levels that miss less than [`RARE`] an operation are held
//! absolutely: the difference over [`RARE`], since a level that misses once in a thousand
//! operations neither costs time nor can be simulated to a percent.
//!
//! **The simulation's own error.** Caches are warmed by one pass over all nodes and then by random
//! operations, more than twice the characteristic time of the largest cache that the tree does not
//! fit into. Then operations are counted until the standard error of each level, from the spread of
//! batches, is small or so many were made that more would take too long; the note says the largest
//! that was left.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Instant;

use super::{Bound, Effort, Row};
use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion};
use crate::{
    Access, Accesses, CacheGeometry, ClosedForm, FrameMap, Frames, Layout, NodeExtent, Replacement,
    Shape, Simulator, Tier, predict_misses, predict_transient,
};

/// Levels that miss less often than this are held absolutely, in misses of an operation.
pub const RARE: f64 = 0.1;
/// Operations that are counted together for the spread.
const BATCH: u64 = 50_000;
/// Counting ends when no level's relative standard error is larger.
const STANDARD_ERROR: f64 = 0.0015;
/// Streams of operations are the same in every run.
const SEED: u64 = 0x51ea;

/// One machine of the check.
pub(super) struct Geometry {
    pub(super) name: &'static str,
    pub(super) hierarchy: Hierarchy,
}

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
struct Held {
    geometry: &'static str,
    level: String,
    simulated: f64,
    /// Relative, of the simulation.
    standard_error: f64,
    predicted: f64,
    closed: Option<f64>,
}

impl Held {
    fn error(&self, predicted: f64) -> f64 {
        (predicted - self.simulated).abs() / self.simulated.max(RARE)
    }
}

/// The rows `steady_error_max`, `steady_error_mean`, `steady_error_direct_mapped_max`,
/// `closed_form_error_max`.
///
/// `progress` is told what is done, a line at a time. Minutes in full, on two cores; less than one
/// when quick.
pub fn steady_rows(effort: Effort, progress: &mut dyn FnMut(&str)) -> Vec<Row> {
    let cases = cases(effort);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(String, Vec<Held>)>> = Mutex::new(Vec::new());
    let (lines, received) = mpsc::channel::<String>();
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(4);
        for _ in 0..workers {
            let (lines, cases, next, results) = (lines.clone(), &cases, &next, &results);
            scope.spawn(move || {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let held = hold(*case, effort);
                    let error = |held: &&Held| held.error(held.predicted);
                    let worst = held.iter().max_by(|a, b| error(a).total_cmp(&error(b)));
                    let worst = worst.map_or_else(String::new, |held| {
                        format!(
                            ": {} {} {:.2} % off",
                            held.geometry,
                            held.level,
                            100.0 * error(&held)
                        )
                    });
                    // Nobody listens any more only when the caller has gone.
                    lines.send(format!("{}{worst}", case.name())).ok();
                    if let Ok(mut results) = results.lock() {
                        results.push((case.name(), held));
                    }
                }
            });
        }
        drop(lines);
        for line in received {
            progress(&line);
        }
    });
    let results = results.into_inner().unwrap_or_default();
    summary(&results)
}

pub(super) fn level(name: &str, bytes: u64, ways: u64, block_bytes: u64) -> CacheLevel {
    match CacheGeometry::new(bytes / ways / block_bytes, block_bytes, ways) {
        Ok(geometry) => CacheLevel::lru(name, geometry),
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn tlb(name: &str, entries: u64, ways: u64) -> CacheLevel {
    level(name, entries * 4096, ways, 4096)
}

pub(super) fn machine(
    name: &'static str,
    caches: Vec<CacheLevel>,
    inclusion: Inclusion,
    tlbs: Vec<CacheLevel>,
) -> Geometry {
    match Hierarchy::new(caches, inclusion, tlbs) {
        Ok(hierarchy) => Geometry { name, hierarchy },
        Err(error) => panic!("{error}"),
    }
}

/// A server core with private second level (as Emerald Rapids; its last level has no power of two
/// of sets in truth, and is taken as the part that one program gets), one with a victim cache (as
/// Zen 4), an inclusive one (as Broadwell), and the thesis's machine.
fn geometries() -> [Geometry; 4] {
    const K: u64 = 1024;
    [
        machine(
            "server",
            vec![
                level("L1", 48 * K, 12, 64),
                level("L2", 2048 * K, 16, 64),
                level("L3", 32 * K * K, 16, 64),
            ],
            Inclusion::NonInclusive,
            vec![tlb("dTLB", 96, 6), tlb("STLB", 2048, 16)],
        ),
        machine(
            "victim",
            vec![
                level("L1", 32 * K, 8, 64),
                level("L2", 1024 * K, 8, 64),
                level("L3", 32 * K * K, 16, 64),
            ],
            Inclusion::VictimLast,
            vec![tlb("dTLB", 72, 72), tlb("STLB", 3072, 12)],
        ),
        machine(
            "inclusive",
            vec![
                level("L1", 32 * K, 8, 64),
                level("L2", 256 * K, 8, 64),
                level("L3", 40 * K * K, 20, 64),
            ],
            Inclusion::Inclusive,
            vec![tlb("dTLB", 64, 4), tlb("STLB", 1536, 6)],
        ),
        machine(
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

/// The largest first, so that no thread is left alone with one. In full: nodes of 32 bytes in trees
/// of each size, the others in trees of every second one.
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

/// Operations after which even the fuller sets of the largest cache that is too small hold what
/// they hold for good: what a cache with LRU replacement holds depends on the operations since it
/// was last filled, and on no others.
pub(super) fn warming(accesses: &Accesses, geometries: &[Geometry]) -> u64 {
    let lines = accesses.block_probabilities(64).footprint();
    let pages = accesses.block_probabilities(4096).footprint();
    let mut longest = 10_000.0f64;
    for geometry in geometries {
        let caches = geometry.hierarchy.caches();
        let together = match geometry.hierarchy.inclusion() {
            Inclusion::VictimLast => caches.iter().map(CacheLevel::bytes).sum(),
            _ => caches.last().map_or(0, CacheLevel::bytes),
        };
        let tlb = geometry.hierarchy.tlbs().last();
        let reach = tlb.map_or(0, CacheLevel::blocks) as f64;
        for (footprint, blocks) in [(&lines, together as f64 / 64.0), (&pages, reach)] {
            let time = footprint.characteristic_time(blocks, Replacement::Lru);
            if time.is_finite() {
                longest = longest.max(2.2 * time);
            }
        }
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of operations, some millions at most"
    )]
    let operations = longest as u64;
    operations
}

pub(super) fn all_misses(simulator: &Simulator) -> Vec<u64> {
    let hierarchy = simulator.hierarchy();
    let caches = simulator.cache_misses();
    let tlbs = simulator.tlb_misses();
    let caches = caches.iter().take(hierarchy.caches().len());
    caches
        .chain(tlbs.iter().take(hierarchy.tlbs().len()))
        .copied()
        .collect()
}

/// Misses of a level, batch by batch.
#[derive(Clone, Default)]
struct Counted {
    before: u64,
    sum: f64,
    squares: f64,
}

impl Counted {
    fn add(&mut self, now: u64) {
        let batch = (now - self.before) as f64;
        self.before = now;
        self.sum += batch;
        self.squares += batch * batch;
    }

    /// Misses of an operation, and the standard error of that, relative to what counts as rare.
    fn result(&self, batches: f64) -> (f64, f64) {
        let mean = self.sum / batches;
        let variance = (self.squares / batches - mean * mean).max(0.0) / (batches - 1.0).max(1.0);
        let operations = BATCH as f64;
        let misses = mean / operations;
        (misses, variance.sqrt() / operations / misses.max(RARE))
    }
}

/// One case on all machines.
fn hold(case: Case, effort: Effort) -> Vec<Held> {
    let geometries = geometries();
    let accesses = accesses(case);
    let mut simulators: Vec<Simulator> = geometries
        .iter()
        .map(|geometry| Simulator::new(&geometry.hierarchy, Frames::Identity))
        .collect();
    // Everything is touched once: what fits then stays.
    for point in (0u32..).take(accesses.len()) {
        let access = accesses.access(point);
        for simulator in &mut simulators {
            simulator.access(access.address, access.bytes);
        }
    }
    let mut operations = accesses.operations(SEED);
    let mut reads: Vec<Access> = Vec::new();
    let mut run = |simulators: &mut [Simulator], count: u64| {
        for _ in 0..count {
            operations.next_into(&mut reads);
            for simulator in &mut *simulators {
                for access in &reads {
                    simulator.access(access.address, access.bytes);
                }
            }
        }
    };
    run(&mut simulators, warming(&accesses, &geometries));
    let mut counted: Vec<Vec<Counted>> = Vec::new();
    for simulator in &mut simulators {
        simulator.reset_counts();
        counted.push(vec![Counted::default(); all_misses(simulator).len()]);
    }
    let (batches_min, batches_max) = match effort {
        Effort::Quick => (4, 4),
        Effort::Full => (8, 14),
    };
    let mut batches = 0u32;
    loop {
        run(&mut simulators, BATCH);
        batches += 1;
        for (simulator, counted) in simulators.iter().zip(&mut counted) {
            for (level, misses) in counted.iter_mut().zip(all_misses(simulator)) {
                level.add(misses);
            }
        }
        let count = f64::from(batches);
        let exact = (counted.iter().flatten()).all(|c| c.result(count).1 < STANDARD_ERROR);
        if batches >= batches_max || (batches >= batches_min && exact) {
            break;
        }
    }
    let nodes = (1u64 << case.bits) - 1;
    let closed = ClosedForm::new(case.layout, nodes, 2, extent(case.node_bytes)).ok();
    let mut all = Vec::new();
    for (geometry, counted) in geometries.iter().zip(&counted) {
        let predicted = predict_misses(
            &accesses,
            &geometry.hierarchy,
            FrameMap::Identity,
            Tier::Auto,
        );
        // Formulas count blocks, not sets: direct-mapped caches are none of theirs.
        let formulas = match &closed {
            Some(closed) if geometry.name != THESIS => closed.predict(&geometry.hierarchy),
            _ => Vec::new(),
        };
        for (prediction, counted) in predicted.into_iter().zip(counted) {
            let (simulated, standard_error) = counted.result(f64::from(batches));
            let formula = formulas
                .iter()
                .find(|formula| formula.name == prediction.name);
            all.push(Held {
                geometry: geometry.name,
                level: prediction.name,
                simulated,
                standard_error,
                predicted: prediction.misses,
                closed: formula.map(|formula| formula.misses),
            });
        }
    }
    all
}

/// The rows of all that was held.
fn summary(results: &[(String, Vec<Held>)]) -> Vec<Row> {
    let all = || {
        results
            .iter()
            .flat_map(|(case, held)| held.iter().map(move |held| (case.as_str(), held)))
    };
    let noise = all()
        .map(|(_, held)| held.standard_error)
        .fold(0.0, f64::max);
    let row = |name, allowed, errors: Vec<(f64, String)>| {
        let (value, note) = worst_of(errors, allowed);
        Row {
            name,
            value,
            allowed,
            bound: Bound::AtMost,
            note: format!(
                "{note} The simulation's standard error is at most {:.2} %.",
                100.0 * noise
            ),
        }
    };
    let error = |case: &str, held: &Held, predicted: f64| {
        let what = format!(
            "{case}, {} {}: {predicted:.4} misses predicted, {:.4} simulated",
            held.geometry, held.level, held.simulated
        );
        (held.error(predicted), what)
    };
    let of = |direct: bool| -> Vec<(f64, String)> {
        all()
            .filter(|(_, held)| (held.geometry == THESIS) == direct)
            .map(|(case, held)| error(case, held, held.predicted))
            .collect()
    };
    let steady = of(false);
    let levels = steady.len();
    let mean = steady.iter().map(|&(error, _)| error).sum::<f64>() / levels.max(1) as f64;
    let closed: Vec<(f64, String)> = all()
        .filter_map(|(case, held)| Some(error(case, held, held.closed?)))
        .collect();
    let mut rows = vec![row("steady_error_max", 0.02, steady)];
    rows.push(Row {
        name: "steady_error_mean",
        value: Some(mean),
        allowed: 0.005,
        bound: Bound::AtMost,
        note: format!("The mean of {levels} levels."),
    });
    rows.push(row("steady_error_direct_mapped_max", 0.04, of(true)));
    rows.push(row("closed_form_error_max", 0.05, closed));
    rows
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
pub fn transient_row(effort: Effort, progress: &mut dyn FnMut(&str)) -> Row {
    let bits: &[u32] = match effort {
        Effort::Quick => &[18],
        Effort::Full => &[16, 19, 22],
    };
    let [geometry, ..] = geometries();
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
                let simulated = simulated_from_cold(&accesses, &geometry.hierarchy, length);
                let predicted = predict_transient(
                    &accesses,
                    &geometry.hierarchy,
                    FrameMap::Identity,
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
            "{levels} levels and lengths were compared, each the mean of \
             {COLD_OPERATIONS} operations or \
             more. The worst is {}.",
            worst.1
        ),
    }
}

/// The row `predict_speed`: seconds for 2^22 nodes at all levels by the per-set tier, the slower of
/// two layouts.
pub fn predict_speed_row(progress: &mut dyn FnMut(&str)) -> Row {
    let [geometry, ..] = geometries();
    let mut slowest = (0.0f64, "");
    for layout in [Layout::Random { seed: 1 }, Layout::VanEmdeBoas] {
        let case = Case {
            bits: 22,
            node_bytes: 32,
            layout,
        };
        let accesses = accesses(case);
        let start = Instant::now();
        let predicted = predict_misses(
            &accesses,
            &geometry.hierarchy,
            FrameMap::Identity,
            Tier::PerSet,
        );
        let seconds = start.elapsed().as_secs_f64();
        progress(&format!(
            "predicting {} levels of {} took {seconds:.2} s",
            predicted.len(),
            case.name()
        ));
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
