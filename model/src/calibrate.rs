//! Measures this machine: latency curve, translation costs, fetch granule, instruction costs.
//!
//! **The curve.** In a working set of `W` bytes, load random lines, each address depending on the value loaded before.
//! Every line is equally likely at every load, so under *any* replacement policy a level of capacity `C` serves the
//! fraction `C / W` of the loads, and the time of a load is
//!
//! ```text
//! ns(W) = base + sum over levels of step x max(0, 1 - C / W)
//! ```
//!
//! This is why the loads are random draws and not the usual walk around one cycle: a cycle longer than an LRU cache never
//! hits, and with real policies nobody knows how often it does. Here the curve can be turned round: [`fit`] finds the
//! non-negative steps at each measured size that explain it best, and these *are* the [levels](crate::Level), with
//! effective capacities and with whatever softness the real ones have.
//!
//! **Translation.** The same in 4 KiB and in 2 MiB pages; the difference of the two curves is the cost of translating,
//! and is turned into steps over pages in the same way.
//!
//! **Neighbours.** Far loads are cheaper near each other: a memory that delivers several lines at once, prefetchers that
//! see a pattern, rows of memory that are open, translations that are shared. Pairs of loads do not show it (prefetchers
//! learn, and stay silent on random pairs), a real tree does. See [`locality`].
//!
//! **Colours.** Whether parts of a cache can be kept apart by address: see [`colours`].
//!
//! **Instructions.** Searches in a tree that fits the first-level cache, with predictable and with random keys.
//!
//! The lower quartile of many short runs is used throughout: other programs disturb some of them, never all, and only
//! ever add time.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::machine::{
    CurvePoint, Evidence, Level, LevelKind, MACHINE_FORMAT, Machine, MachineError, Origin,
    SearchCosts,
};
use crate::probe::{TreeProbe, next_state, scale};
use crate::topology::Topology;
use crate::{Layout, NodeExtent, PageSize, PagedMemory, Replacement, SearchStyle, Shape, Visits};

mod colours;
mod fit;
mod locality;
use fit::fit_steps;

/// Words of a line.
const LINE_WORDS: usize = 8;
/// Bytes of a line, the unit of the chases.
const LINE_BYTES: u64 = 64;
/// Smallest working set of the curve.
const FIRST_BYTES: f64 = 16_384.0;
/// What caches behave like; the [footprint module](crate::Footprint) has the measurement.
const REPLACEMENT: Replacement = Replacement::Random;
/// Steps below this are noise.
const MIN_STEP_NS: f64 = 0.1;
/// How long and how large to measure.
#[derive(Clone, Copy, Debug, Default)]
pub struct CalibrateOptions {
    /// One to two seconds and 0.4 GB of memory instead of about ten seconds and 2 GB. Working sets beyond 128 MB (4 KiB
    /// pages: 256 MB) are then extrapolated.
    pub quick: bool,
    /// Called now and then with the finished part, from 0 to 1.
    pub progress: Option<fn(f64)>,
}

impl CalibrateOptions {
    /// The short form.
    pub fn quick() -> CalibrateOptions {
        CalibrateOptions {
            quick: true,
            progress: None,
        }
    }

    /// Largest working set in pages of this size.
    fn max_bytes(self, pages: PageSize) -> u64 {
        match (self.quick, pages) {
            (true, PageSize::Huge2M) => 128 << 20,
            (true, PageSize::Small4K) => 256 << 20,
            (false, _) => 1 << 30,
        }
    }

    /// Timed runs of each point.
    fn runs(self) -> u32 {
        if self.quick { 5 } else { 21 }
    }

    fn report(self, done: f64) {
        if let Some(progress) = self.progress {
            progress(done);
        }
    }
}

impl Machine {
    /// Measures this machine. Takes one to two seconds in the quick form, about ten otherwise, on one thread.
    ///
    /// Figures hold for the moment: on a machine shared with others the last-level cache and the memory are as fast as the
    /// others let them be. Measure again when it matters, right before or after what is to be compared.
    ///
    /// Where memory is short, smaller working sets are used; where not even a megabyte is to be had, or what was measured is
    /// absurd (a clock that stands still, say), the result is that of [`Machine::this`], with [`Origin::Defaults`] and the
    /// reason among its [`notes`](Machine::notes).
    pub fn calibrate(options: CalibrateOptions) -> Machine {
        let topology = Topology::this();
        let (Some(huge), Some(small)) = (
            largest_memory(options, PageSize::Huge2M, &topology),
            largest_memory(options, PageSize::Small4K, &topology),
        ) else {
            return uncalibrated("there is no memory to measure in");
        };
        let mut chase = Chase { state: 1 };
        let mut evidence = measure_curves(&mut chase, &huge, &small, options);
        drop((huge, small));
        let search = measure_search(options.runs()).unwrap_or(Machine::this().search);
        options.report(0.7);
        let mut levels = data_levels(&evidence, &topology);
        let (scattered, neighbours) = locality::measure(options.runs(), &levels);
        evidence.scattered = scattered;
        evidence.colours = colours::measure(options.runs(), &topology, &levels);
        levels.extend(translation_level(&evidence));
        options.report(1.0);
        checked(Machine {
            format: MACHINE_FORMAT,
            name: topology.cpu_name.value.clone(),
            origin: Origin::Calibrated {
                unix_seconds: SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .map_or(0, |age| age.as_secs()),
                quick: options.quick,
            },
            search,
            replacement: REPLACEMENT,
            levels,
            neighbours,
            evidence,
            notes: Vec::new(),
        })
    }
}

/// What was measured, unless it describes no machine.
fn checked(machine: Machine) -> Machine {
    match machine.check() {
        Ok(()) => machine,
        Err(MachineError::Absurd { what }) => uncalibrated(&what),
        Err(error) => uncalibrated(&error.to_string()),
    }
}

/// This machine's defaults, with the reason why they were not measured.
fn uncalibrated(reason: &str) -> Machine {
    let mut machine = Machine::this().clone();
    machine.notes.push(format!(
        "calibration failed, latencies are defaults: {reason}"
    ));
    machine
}

/// As much memory as the options ask for, or half of it, and so on; at most a quarter of the machine's.
fn largest_memory(
    options: CalibrateOptions,
    pages: PageSize,
    topology: &Topology,
) -> Option<PagedMemory> {
    let mut bytes = options
        .max_bytes(pages)
        .min(topology.memory_bytes.value / 4);
    while bytes >= 1 << 20 {
        let words = usize::try_from(bytes / 8).ok()?;
        if let Ok(memory) = PagedMemory::new(words, pages) {
            return Some(memory);
        }
        bytes /= 2;
    }
    None
}

/// The dependent loads; keeps its random state from run to run.
struct Chase {
    state: u64,
}

impl Chase {
    /// Loads `loads` random lines of the first `lines` lines, one after the other; nanoseconds a load.
    fn run(&mut self, words: &[u64], lines: u64, loads: u32) -> f64 {
        let mut state = self.state;
        let start = Instant::now();
        for _ in 0..loads {
            state = next_state(state);
            // The words are all 0, which the compiler does not know: the next address waits for the load.
            state = state.wrapping_add(words[line_start(scale(state, lines))]);
        }
        let ns = start.elapsed().as_nanos() as f64 / f64::from(loads.max(1));
        self.state = std::hint::black_box(state);
        ns
    }

    /// Warms the working set up and takes the lower quartile of `runs` runs.
    fn point(&mut self, memory: &PagedMemory, bytes: f64, runs: u32) -> CurvePoint {
        let words = memory.as_slice();
        let available = (words.len() / LINE_WORDS) as f64;
        let lines = (bytes / LINE_BYTES as f64).round().clamp(1.0, available);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "both were clamped to the range of the type"
        )]
        #[expect(clippy::cast_sign_loss, reason = "at least 1")]
        let (lines, warm_up) = (lines as u64, (2.0 * lines).min(150_000.0) as u32);
        self.run(words, lines, warm_up);
        CurvePoint {
            bytes: (lines * LINE_BYTES) as f64,
            ns: typical((0..runs).map(|_| self.run(words, lines, 12_000))),
        }
    }
}

/// Word index of a line.
#[expect(
    clippy::cast_possible_truncation,
    reason = "lines are below the length of a slice of words"
)]
fn line_start(line: u64) -> usize {
    line as usize * LINE_WORDS
}

/// The lower quartile of the samples, 0 when there are none: disturbances only ever add time.
fn typical(samples: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = samples.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 4).copied().unwrap_or(0.0)
}

/// Both latency curves, measured in turns, four points to the doubling up to 64 MB and two beyond.
fn measure_curves(
    chase: &mut Chase,
    huge: &PagedMemory,
    small: &PagedMemory,
    options: CalibrateOptions,
) -> Evidence {
    let mut evidence = Evidence::default();
    let bytes_of = |memory: &PagedMemory| size_of_val(memory.as_slice()) as f64;
    let largest = bytes_of(huge).max(bytes_of(small));
    let doublings = (largest / FIRST_BYTES).log2();
    let mut bytes = FIRST_BYTES;
    while bytes <= largest * 1.001 {
        for (memory, points) in [
            (huge, &mut evidence.huge_pages),
            (small, &mut evidence.small_pages),
        ] {
            if bytes <= bytes_of(memory) * 1.001 {
                points.push(chase.point(memory, bytes, options.runs()));
            }
        }
        options.report(0.6 * (bytes / FIRST_BYTES).log2() / doublings);
        bytes *= 2f64.sqrt();
    }
    evidence
}

/// Levels that hold data: the steps of the curve in huge pages, each given to the cache that it is nearest to.
fn data_levels(evidence: &Evidence, topology: &Topology) -> Vec<Level> {
    let weights: Vec<f64> = evidence
        .huge_pages
        .iter()
        .map(|point| 1.0 / point.ns.max(0.1))
        .collect();
    let steps = fit_steps(&evidence.huge_pages, &weights, MIN_STEP_NS);
    let mut levels: Vec<Level> = topology
        .data_caches()
        .map(|cache| Level {
            name: format!("L{}", cache.level),
            kind: LevelKind::Data,
            block_bytes: cache.line_bytes,
            steps: Vec::new(),
        })
        .collect();
    let nominal: Vec<f64> = topology
        .data_caches()
        .map(|cache| cache.size_bytes as f64)
        .collect();
    for step in steps {
        // The first cache that could still have served half of such a working set, else the last.
        let index = nominal
            .iter()
            .position(|size| step.capacity_bytes <= 2.0 * size);
        if let Some(level) = levels.get_mut(index.unwrap_or(nominal.len().saturating_sub(1))) {
            level.steps.push(step);
        }
    }
    levels.retain(|level| !level.steps.is_empty());
    levels
}

/// The cost of translating small pages: steps of the difference between the curves.
fn translation_level(evidence: &Evidence) -> Option<Level> {
    let far = evidence.huge_pages.last()?.ns;
    let (points, weights): (Vec<CurvePoint>, Vec<f64>) = evidence
        .small_pages
        .iter()
        .enumerate()
        .map(|(i, small)| {
            // Beyond the largest working set in huge pages their curve is flat.
            let huge = evidence.huge_pages.get(i).map_or(far, |point| point.ns);
            let point = CurvePoint {
                bytes: small.bytes,
                ns: (small.ns - huge).max(0.0),
            };
            (point, 1.0 / small.ns.max(0.1))
        })
        .unzip();
    let pages = PageSize::Small4K;
    let steps = fit_steps(&points, &weights, MIN_STEP_NS);
    (!steps.is_empty()).then(|| Level {
        name: "TLB-4k".to_owned(),
        kind: LevelKind::Pages(pages),
        block_bytes: pages.bytes(),
        steps,
    })
}

/// Instruction costs of the textbook search, from three runs in the first-level cache.
///
/// With a tree of one node, a search costs `operation + node`. With keys that repeat, `operation + depth x node`. With
/// random keys, mispredictions come on top, one of them at the end of the search. The branch-free search has only that
/// last one.
fn measure_search(runs: u32) -> Option<SearchCosts> {
    let node = NodeExtent::new(24, 8).ok()?;
    let nodes = 511;
    let shape = Shape::complete_binary(nodes);
    let build = |shape: &Shape| {
        let placement = Layout::DepthFirst.place(shape, node);
        TreeProbe::new(shape, &placement, node, PageSize::Small4K).ok()
    };
    let mut tree = build(&shape)?;
    let mut single = build(&Shape::complete_binary(1))?;
    let searches = 4000;
    // Two leaves far from each other.
    let keys = [0, u64::from(nodes) - 1];
    let depth = f64::from(tree.depth(keys[0]));
    let [mut alone, mut repeated, mut random, mut selected] = [const { Vec::new() }; 4];
    for _ in 0..=runs {
        alone.push(single.random_search_ns(SearchStyle::Branches, searches));
        repeated.push(tree.predictable_search_ns(keys, searches));
        random.push(tree.random_search_ns(SearchStyle::Branches, searches));
        selected.push(tree.random_search_ns(SearchStyle::BranchFree, searches));
    }
    let [alone, repeated, random, selected] = [alone, repeated, random, selected].map(typical);
    let visits = Visits::uniform(&shape);
    let node_ns = ((repeated - alone) / (depth - 1.0)).max(0.0);
    let smooth_ns = (alone - node_ns).max(0.0);
    let rest_ns = random - smooth_ns - node_ns * visits.nodes_per_operation();
    let misprediction_ns = (rest_ns / (visits.mispredictions_per_operation() + 1.0)).max(0.0);
    let operation_ns = smooth_ns + misprediction_ns;
    Some(SearchCosts {
        operation_ns,
        node_ns,
        misprediction_ns,
        branch_free_node_ns: ((selected - operation_ns) / visits.nodes_per_operation()).max(0.0),
    })
}

#[cfg(test)]
mod tests;
