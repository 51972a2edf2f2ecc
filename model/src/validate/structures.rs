//! The structures against the simulator: misses of an operation, level by level, beyond uniform
//! searches in complete trees.
//!
//! Each row takes some structures of one kind, operations and layouts, and holds the [best
//! tier](Tier::Auto) against simulated machines, at each level that an operation misses at least
//! [`RARE`] times: rarer misses cost no time, and to simulate them to a percent takes minutes. The
//! machines are of the kinds that [`steady`](super::steady) has, with last levels of 4 to 8 MiB,
//! the part of a shared cache that a program may be left with: so structures of some MiB meet all
//! levels. Direct-mapped caches have a row of their own there.
//!
//! **The simulation's own error.** Simulations run until the standard error of each held level is
//! below [`STANDARD_ERROR`], or for as long as they may; the note says the largest that was left.
//! What varies most from operation to operation is how long they are, above all in lists. How long
//! searches are on average is known; so misses are taken at that length, along the line that fits
//! the batches best (a control variate), and what is left to vary is a fraction.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};

use super::steady::{Geometry, all_misses, level, machine, tlb, warming};
use super::{Bound, Effort, Row};
use crate::hierarchy::Inclusion;
use crate::{
    Access, Accesses, FrameMap, Frames, Growth, InNode, KeyDistribution, Layout, Links, NodeExtent,
    Operation, Simulator, Sizes, Structure, Tier, predict_misses,
};

/// Levels that miss less often than this, in misses of an operation, are not held.
pub const RARE: f64 = 0.05;
/// Simulations end when no held level's standard error is larger, relative to its misses.
pub const STANDARD_ERROR: f64 = 0.0025;
/// What is allowed of each row.
const ALLOWED: f64 = 0.03;
/// Reads that are simulated between two looks at the errors.
const BATCH_READS: f64 = 1e6;
const BATCHES_MIN: u32 = 16;
/// No simulation takes more batches than this.
const BATCHES_MAX: u32 = 120;
/// Nor, when quick, than this, whatever the error.
const BATCHES_QUICK: u32 = 20;
/// The largest structures when quick.
const QUICK_KEYS: u32 = 1 << 16;
/// Nor more reads to fill the caches. Depth-first order under Zipf keys needs 1.4e8 until the few
/// sets that it meets hold what they hold for good.
const WARMING_READS: f64 = 2e8;
/// Streams of operations and random shapes are the same in every run.
const SEED: u64 = 0x5eed;

/// Kinds of machines with small last levels.
fn geometries() -> [Geometry; 3] {
    const K: u64 = 1024;
    [
        machine(
            "server",
            vec![
                level("L1", 48 * K, 12, 64),
                level("L2", 2 * K * K, 16, 64),
                level("L3", 8 * K * K, 16, 64),
            ],
            Inclusion::NonInclusive,
            vec![tlb("dTLB", 96, 6), tlb("STLB", 2048, 16)],
        ),
        machine(
            "victim",
            vec![
                level("L1", 32 * K, 8, 64),
                level("L2", K * K, 8, 64),
                level("L3", 4 * K * K, 16, 64),
            ],
            Inclusion::VictimLast,
            vec![tlb("dTLB", 72, 72), tlb("STLB", 3072, 12)],
        ),
        machine(
            "inclusive",
            vec![
                level("L1", 32 * K, 8, 64),
                level("L2", 256 * K, 8, 64),
                level("L3", 4 * K * K, 16, 64),
            ],
            Inclusion::Inclusive,
            vec![tlb("dTLB", 64, 4), tlb("STLB", 1536, 6)],
        ),
    ]
}

/// One structure with one operation in one layout.
struct Case {
    structure: Structure,
    keys: u32,
    node_bytes: u32,
    operation: Operation,
    distribution: KeyDistribution,
    layout: Layout,
}

impl Case {
    fn new(structure: Structure, keys: u32, node_bytes: u32, layout: Layout) -> Case {
        Case {
            structure,
            keys,
            node_bytes,
            operation: Operation::Search,
            distribution: KeyDistribution::Uniform,
            layout,
        }
    }

    fn doing(self, operation: Operation) -> Case {
        Case { operation, ..self }
    }

    fn asking(self, distribution: KeyDistribution) -> Case {
        Case {
            distribution,
            ..self
        }
    }

    fn name(&self) -> String {
        let (operation, keys, layout) = (self.operation, &self.distribution, self.layout);
        let kind = match self.structure {
            Structure::SearchTree { growth } => format!("{} search tree", word(growth)),
            Structure::Tree { arity, growth } => format!("{} {arity}-ary tree", word(growth)),
            Structure::PointTree { dimensions, growth } => {
                format!("{} point tree in {dimensions} dimensions", word(growth))
            }
            Structure::BTree {
                fanout,
                in_node,
                growth,
                ..
            } => format!("{} B-tree of fanout {fanout}, {in_node:?}", word(growth)),
            Structure::List { .. } => "list".to_owned(),
            Structure::Hash { load, .. } => format!("hash table of load {load}"),
            Structure::SortedArray => "sorted array".to_owned(),
            Structure::Eytzinger => "Eytzinger array".to_owned(),
        };
        let (count, bytes) = (self.keys, self.node_bytes);
        format!("{kind} of {count} keys, {bytes} B, {layout}, {operation}, {keys}")
    }

    fn accesses(&self) -> Accesses {
        let node = NodeExtent {
            bytes: self.node_bytes,
            align: 8,
        };
        let accesses = self
            .structure
            .build(self.keys, &Sizes::of(node))
            .and_then(|built| {
                let placement = match self.layout {
                    Layout::Weighted => {
                        built.place_weighted(self.layout, self.operation, &self.distribution)?
                    }
                    layout => built.place(layout),
                };
                built.accesses(&placement, self.operation, &self.distribution)
            });
        match accesses {
            Ok(accesses) => accesses,
            Err(error) => panic!("{}: {error}", self.name()),
        }
    }
}

fn word(growth: Growth) -> &'static str {
    match growth {
        Growth::Complete => "complete",
        Growth::RandomInsert { .. } => "random",
    }
}

const RANDOM_GROWTH: Growth = Growth::RandomInsert { seed: SEED };

/// What a row holds.
type Cases = fn(Effort) -> Vec<Case>;

/// The rows and what they hold.
const ROWS: [(&str, Cases); 6] = [
    ("zipf_error_max", zipf),
    ("random_shape_error_max", random_shapes),
    ("btree_error_max", b_trees),
    ("list_error_max", lists),
    ("hash_error_max", hash_tables),
    ("octree_error_max", octrees),
];

/// `zipf_error_max`, `random_shape_error_max`, `btree_error_max`, `list_error_max`,
/// `hash_error_max` and `octree_error_max`; of these the ones for which `wanted` holds.
///
/// `progress` is told what was held, a line at a time. Some minutes in full, on two cores; seconds
/// when quick.
pub fn structure_rows(
    effort: Effort,
    wanted: impl Fn(&str) -> bool,
    progress: &mut dyn FnMut(&str),
) -> Vec<Row> {
    let mut cases: Vec<(&'static str, Case)> = Vec::new();
    for (name, of) in ROWS {
        if wanted(name) {
            cases.extend(of(effort).into_iter().map(|case| (name, case)));
        }
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Vec<Held>)>> = Mutex::new(Vec::new());
    let (lines, received) = mpsc::channel::<String>();
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(4);
        for _ in 0..workers {
            let (lines, cases, next, results) = (lines.clone(), &cases, &next, &results);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((name, case)) = cases.get(index) else {
                        break;
                    };
                    let held = hold(&case.accesses(), effort);
                    // Nobody listens any more only when the caller has gone.
                    lines.send(format!("{name}: {}", line(case, &held))).ok();
                    if let Ok(mut results) = results.lock() {
                        results.push((index, held));
                    }
                }
            });
        }
        drop(lines);
        for line in received {
            progress(&line);
        }
    });
    let mut results = results.into_inner().unwrap_or_default();
    results.sort_unstable_by_key(|&(index, _)| index);
    ROWS.iter()
        .filter(|(name, _)| wanted(name))
        .map(|&(name, _)| {
            let of_row = results.iter().map(|(index, held)| (&cases[*index], held));
            let of_row = of_row.filter(|((other, _), _)| *other == name);
            row(name, of_row.map(|((_, case), held)| (case, held)))
        })
        .collect()
}

/// Of these cases, as many as the effort is for: when quick, each `step`-th of the small ones.
fn some(cases: Vec<Case>, effort: Effort, step: usize) -> Vec<Case> {
    match effort {
        Effort::Full => cases,
        Effort::Quick => cases
            .into_iter()
            .filter(|case| case.keys <= QUICK_KEYS)
            .step_by(step)
            .collect(),
    }
}

const RANDOM: Layout = Layout::Random { seed: 2 };

fn zipf(effort: Effort) -> Vec<Case> {
    let of = |exponent| KeyDistribution::Zipf {
        exponent,
        seed: SEED,
    };
    let hot = KeyDistribution::HotSet {
        keys_share: 0.1,
        operations_share: 0.9,
        seed: SEED,
    };
    let mut cases = Vec::new();
    for (growth, keys) in [(RANDOM_GROWTH, 1 << 15), (Growth::Complete, (1 << 19) - 1)] {
        for distribution in [of(0.99), of(0.7), of(1.3), hot.clone()] {
            for layout in [
                Layout::VanEmdeBoas,
                RANDOM,
                Layout::Weighted,
                Layout::DepthFirst,
            ] {
                let tree = Structure::SearchTree { growth };
                cases.push(Case::new(tree, keys, 32, layout).asking(distribution.clone()));
            }
        }
    }
    some(cases, effort, 7)
}

fn random_shapes(effort: Effort) -> Vec<Case> {
    let tree = Structure::SearchTree {
        growth: RANDOM_GROWTH,
    };
    let ternary = Structure::Tree {
        arity: 3,
        growth: RANDOM_GROWTH,
    };
    let mut cases = Vec::new();
    for keys in [1 << 15, 1 << 19] {
        for layout in [
            Layout::Hierarchical,
            RANDOM,
            Layout::BreadthFirst,
            Layout::DepthFirst,
            Layout::SubtreeCluster { block_bytes: 64 },
        ] {
            cases.push(Case::new(tree, keys, 24, layout));
            cases.push(Case::new(tree, keys, 24, layout).doing(Operation::Miss));
        }
    }
    cases.push(Case::new(ternary, 1 << 18, 40, Layout::VanEmdeBoas));
    cases.push(Case::new(ternary, 1 << 18, 40, RANDOM).doing(Operation::Insert));
    let range = Operation::Range { keys: 10 };
    cases.push(Case::new(tree, 1 << 18, 24, Layout::DepthFirst).doing(range));
    cases.push(Case::new(tree, 1 << 18, 24, Layout::VanEmdeBoas).doing(range));
    some(cases, effort, 5)
}

fn b_trees(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for growth in [RANDOM_GROWTH, Growth::Complete] {
        for (fanout, in_node) in [
            (12, InNode::Linear),
            (32, InNode::Binary),
            (16, InNode::Whole),
        ] {
            let tree = Structure::BTree {
                fanout,
                fill: 0.8,
                in_node,
                growth,
            };
            for layout in [RANDOM, Layout::BreadthFirst, Layout::VanEmdeBoas] {
                cases.push(Case::new(tree, 1 << 19, 8, layout));
            }
            cases.push(Case::new(tree, 1 << 16, 8, RANDOM).doing(Operation::Insert));
            let range = Operation::Range { keys: 30 };
            cases.push(Case::new(tree, 1 << 18, 8, RANDOM).doing(range));
        }
    }
    some(cases, effort, 4)
}

fn lists(effort: Effort) -> Vec<Case> {
    let single = Structure::List {
        links: Links::Single,
    };
    let double = Structure::List {
        links: Links::Double,
    };
    let mut cases = Vec::new();
    // From a little more than a first-level cache to a little more than the largest second-level
    // one. A list that hardly exceeds a level is read to where it does so seldom, and misses all of
    // it then: such cases are too noisy.
    for (keys, node_bytes) in [(2000, 32), (1000, 64), (20_000, 32), (50_000, 64)] {
        for layout in [Layout::DepthFirst, RANDOM] {
            cases.push(Case::new(single, keys, node_bytes, layout));
            cases.push(Case::new(double, keys, node_bytes, layout).doing(Operation::Insert));
            cases.push(Case::new(single, keys, node_bytes, layout).doing(Operation::Miss));
        }
    }
    for distribution in ["zipf:1", "hot:0.1:0.9"] {
        if let Ok(distribution) = distribution.parse() {
            let case = Case::new(single, 3000, 32, Layout::DepthFirst);
            cases.push(case.asking(distribution));
        }
    }
    let walk = Operation::Walk { returns: true };
    let tree = Structure::SearchTree {
        growth: RANDOM_GROWTH,
    };
    for layout in [RANDOM, Layout::VanEmdeBoas] {
        cases.push(Case::new(tree, 50_000, 32, layout).doing(walk));
    }
    some(cases, effort, 11)
}

fn hash_tables(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for load in [0.75, 3.0, 16.0] {
        let table = Structure::Hash { load, seed: SEED };
        for keys in [1 << 14, 1 << 19] {
            for layout in [RANDOM, Layout::DepthFirst] {
                cases.push(Case::new(table, keys, 32, layout));
                cases.push(Case::new(table, keys, 32, layout).doing(Operation::Miss));
            }
        }
    }
    some(cases, effort, 5)
}

fn octrees(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for dimensions in [3, 2] {
        for growth in [RANDOM_GROWTH, Growth::Complete] {
            let tree = Structure::PointTree { dimensions, growth };
            for layout in [
                RANDOM,
                Layout::DepthFirst,
                Layout::VanEmdeBoas,
                Layout::Hierarchical,
            ] {
                for (keys, node_bytes) in [(200_000, 80), (30_000, 48)] {
                    cases.push(Case::new(tree, keys, node_bytes, layout));
                }
            }
            cases.push(Case::new(tree, 200_000, 80, RANDOM).doing(Operation::Miss));
        }
    }
    some(cases, effort, 8)
}

/// A level of a machine, predicted and simulated.
struct Held {
    level: String,
    simulated: f64,
    /// Of the simulation, relative.
    standard_error: f64,
    predicted: f64,
}

impl Held {
    fn error(&self) -> f64 {
        (self.predicted - self.simulated).abs() / self.simulated
    }
}

/// The level with the largest error.
fn worst(held: &[Held]) -> Option<&Held> {
    held.iter().max_by(|a, b| a.error().total_cmp(&b.error()))
}

fn line(case: &Case, held: &[Held]) -> String {
    match worst(held) {
        None => format!("{} misses nothing", case.name()),
        Some(held) => format!(
            "{:.2} % at {}, {}: {:.4} predicted, {:.4} simulated",
            100.0 * held.error(),
            case.name(),
            held.level,
            held.predicted,
            held.simulated
        ),
    }
}

fn row<'a>(name: &'static str, cases: impl Iterator<Item = (&'a Case, &'a Vec<Held>)>) -> Row {
    let (mut value, mut worst_line) = (0.0, String::new());
    let (mut standard_error, mut levels, mut sum) = (0.0f64, 0u32, 0.0);
    for (case, held) in cases {
        for level in held {
            levels += 1;
            sum += level.error();
            standard_error = standard_error.max(level.standard_error);
        }
        if let Some(worst) = worst(held)
            && worst.error() > value
        {
            (value, worst_line) = (worst.error(), line(case, held));
        }
    }
    Row {
        name,
        value: (levels > 0).then_some(value),
        allowed: ALLOWED,
        bound: Bound::AtMost,
        note: format!(
            "The worst is {worst_line}. The mean error of the {levels} levels with \
             {RARE} misses or more is \
             {:.2} %. The simulation's standard error is at most {:.2} %.",
            100.0 * sum / f64::from(levels.max(1)),
            100.0 * standard_error
        ),
    }
}

/// Levels of all machines that miss often enough.
fn hold(accesses: &Accesses, effort: Effort) -> Vec<Held> {
    let geometries = geometries();
    let mut simulators: Vec<Simulator> = geometries
        .iter()
        .map(|geometry| Simulator::new(&geometry.hierarchy, Frames::Identity))
        .collect();
    let mut operations = accesses.operations(SEED);
    let mut reads: Vec<Access> = Vec::new();
    let mut run = |simulators: &mut [Simulator], count: u64| {
        let mut total = 0usize;
        for _ in 0..count {
            operations.next_into(&mut reads);
            total += reads.len();
            for simulator in &mut *simulators {
                for access in &reads {
                    simulator.access(access.address, access.bytes);
                }
            }
        }
        total as f64
    };
    // Everything is touched once: what fits then stays.
    for point in (0u32..).take(accesses.len()) {
        let access = accesses.access(point);
        for simulator in &mut simulators {
            simulator.access(access.address, access.bytes);
        }
    }
    let reads_each = run(&mut simulators, 100) / 100.0;
    let is_fixed = accesses.fixed_sequence().is_some();
    if !is_fixed {
        let enough = warming(accesses, &geometries);
        run(
            &mut simulators,
            enough.min(operations_of(WARMING_READS, reads_each)),
        );
    }
    let batch = operations_of(BATCH_READS, reads_each).max(20);
    let mut counted: Vec<Vec<Batches>> = Vec::new();
    for simulator in &mut simulators {
        simulator.reset_counts();
        counted.push(vec![Batches::default(); all_misses(simulator).len()]);
    }
    // Only of searches is it known how many reads there are.
    let length = accesses
        .is_paths()
        .then(|| accesses.visits().nodes_per_operation() * batch as f64);
    // Walks are all the same.
    let batches_max = match effort {
        _ if is_fixed => 2,
        Effort::Quick => BATCHES_QUICK,
        Effort::Full => BATCHES_MAX,
    };
    for batches in 1..=batches_max {
        let reads = run(&mut simulators, batch);
        let mut is_exact = true;
        for (simulator, levels) in simulators.iter().zip(&mut counted) {
            for (level, misses) in levels.iter_mut().zip(all_misses(simulator)) {
                level.add(reads, misses);
                let (mean, error) = level.mean_and_error(length);
                is_exact &= mean < RARE * batch as f64 || error <= STANDARD_ERROR;
            }
        }
        if is_exact && batches >= BATCHES_MIN {
            break;
        }
    }
    let mut held = Vec::new();
    for (geometry, levels) in geometries.iter().zip(&counted) {
        let predicted = predict_misses(
            accesses,
            &geometry.hierarchy,
            FrameMap::Identity,
            Tier::Auto,
        );
        for (level, predicted) in levels.iter().zip(predicted) {
            let (mean, standard_error) = level.mean_and_error(length);
            let simulated = mean / batch as f64;
            if simulated >= RARE {
                held.push(Held {
                    level: format!("{} {}", geometry.name, predicted.name),
                    simulated,
                    standard_error,
                    predicted: predicted.misses,
                });
            }
        }
    }
    held
}

/// So many operations take `reads`.
fn operations_of(reads: f64, reads_each: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most the number of reads, which fits"
    )]
    let operations = (reads / reads_each.max(1.0)).max(1.0) as u64;
    operations
}

/// Misses of a level, batch by batch, with how many reads each batch made.
#[derive(Clone, Copy, Default)]
struct Batches {
    before: u64,
    batches: f64,
    misses: f64,
    misses_squared: f64,
    reads: f64,
    reads_squared: f64,
    both: f64,
}

impl Batches {
    /// Takes the count of misses at the end of a batch.
    fn add(&mut self, reads: f64, misses_so_far: u64) {
        let misses = (misses_so_far - self.before) as f64;
        self.before = misses_so_far;
        self.batches += 1.0;
        self.misses += misses;
        self.misses_squared += misses * misses;
        self.reads += reads;
        self.reads_squared += reads * reads;
        self.both += reads * misses;
    }

    /// Misses of a batch, and the relative standard error of that; `reads` is how many reads a
    /// batch makes on average, if known.
    fn mean_and_error(&self, reads: Option<f64>) -> (f64, f64) {
        let count = self.batches.max(1.0);
        let mut mean = self.misses / count;
        let mut variance = (self.misses_squared / count - mean * mean).max(0.0);
        let mut freedom = count - 1.0;
        let mean_reads = self.reads / count;
        let variance_reads = self.reads_squared / count - mean_reads * mean_reads;
        if let Some(expected) = reads
            && variance_reads > 0.0
            && count > 3.0
        {
            let covariance = self.both / count - mean * mean_reads;
            let slope = covariance / variance_reads;
            mean -= slope * (mean_reads - expected);
            variance = (variance - slope * covariance).max(0.0);
            freedom -= 1.0;
        }
        if mean <= 0.0 {
            return (0.0, 0.0);
        }
        (mean, (variance / freedom.max(1.0)).sqrt() / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_variate_keeps_the_mean_and_takes_the_spread() {
        let mut batches = Batches::default();
        let mut total = 0;
        // Misses are half of the reads and 3; reads are 10 on average, but drawn a little too high
        // here.
        for reads in [8u32, 12, 10, 14, 6, 16] {
            total += u64::from(reads / 2 + 3);
            batches.add(f64::from(reads), total);
        }
        let (mean, error) = batches.mean_and_error(Some(10.0));
        assert!((mean - 8.0).abs() < 1e-9 && error < 1e-6, "{mean} {error}");
        let (plain, error) = batches.mean_and_error(None);
        assert!(
            (plain - 8.5).abs() < 1e-9 && error > 0.05,
            "{plain} {error}"
        );
    }

    #[test]
    fn unknown_rows_are_not_run() {
        let rows = structure_rows(Effort::Quick, |name| name == "no such row", &mut |_| {});
        assert!(rows.is_empty());
    }

    #[test]
    fn every_case_is_a_structure() {
        for (name, cases) in ROWS {
            let cases = cases(Effort::Full);
            assert!(cases.len() >= 8, "{name}");
            let quick = ROWS
                .iter()
                .filter(|(other, _)| *other == name)
                .map(|(_, of)| of(Effort::Quick).len())
                .sum::<usize>();
            assert!(quick > 0 && quick < cases.len());
            for case in cases {
                let small = Case { keys: 50, ..case };
                assert!(!small.accesses().is_empty(), "{}", small.name());
            }
        }
    }
}
