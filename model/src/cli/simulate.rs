//! `model simulate`: the question of `predict`, answered access by access.
//!
//! In the steady state the caches are warmed first, for as long as the footprint says that they
//! still fill up; then batches of operations are counted until the means of all levels that matter
//! are known to half a percent (standard error of the batch means), or so many accesses have been
//! made that nobody would wait for more. From cold, the first operations are repeated with other
//! keys and other frames.
//!
//! The JSON object:
//!
//! ```text
//! {
//!   "machine": .., "origin": .., "structure": {..}, "operation": .., "keys": .., "pages": .., "frames": "identity" | "random",
//!   "state":   "steady" | {"first": N},
//!   "rows":    [{"layout": .., "operations": .., "accesses": .., "misses": {"L1": .., ...}, "errors": {"L1": .., ...}}, ...],
//!   "notes":   [..]
//! }
//! ```
//!
//! and of a trace:
//!
//! ```text
//! {"machine": .., "frames": .., "trace": {..counts of its records..},
//!  "levels": [{"name": .., "accesses": .., "misses": ..}, ...]}
//! ```

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::CliError;
use super::args::SimulateArgs;
use super::machine::{frame_name, frames, machine, open_regular};
use super::output::{Progress, Table, human_count, human_number, write_csv, write_json};
use super::question::{Question, QuestionReport};
use crate::simulator::{SimulatedCounts, TextTrace, TraceCounts, simulate_trace};
use crate::{Access, Accesses, Frames, Hierarchy, Machine, Replacement, Simulator, Tier};

/// Accesses that one layout is simulated for at most: some five seconds.
const ACCESSES_MAX: u64 = 100_000_000;
/// Of these, what the warm-up may take.
const WARM_ACCESSES_MAX: u64 = ACCESSES_MAX / 2;
/// Batches between two looks at the error.
const BATCHES: u64 = 32;
/// Operations of a batch at most when their number is not given, and about how many accesses they
/// make.
const BATCH_OPERATIONS: u64 = 2000;
const BATCH_ACCESSES: u64 = 1_000_000;
/// Standard error of a mean, relative to it, that is good enough.
const ERROR_MAX: f64 = 0.005;
/// Levels that miss less often than this in an operation need not be known as well.
const MISSES_THAT_MATTER: f64 = 0.01;
/// Repetitions of a cold start at most.
const COLD_STARTS_MAX: u64 = 64;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    question: QuestionReport,
    rows: Vec<Row>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    layout: String,
    operations: u64,
    accesses: u64,
    misses: BTreeMap<String, f64>,
    errors: BTreeMap<String, f64>,
    /// Names in the order of the hierarchy.
    #[serde(skip)]
    levels: Vec<String>,
}

#[derive(Serialize)]
struct TraceReport {
    machine: String,
    frames: &'static str,
    trace: TraceCounts,
    levels: Vec<crate::simulator::LevelCounts>,
}

pub(super) fn run(args: &SimulateArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let machine = machine(&args.place.machine)?;
    let hierarchy = hierarchy_of(&machine, args)?;
    let frames = frames(&args.place, &machine, args.seed);
    match &args.trace {
        Some(path) => trace(args, path, &machine, hierarchy, frames, out),
        None => question(args, &machine, hierarchy, frames, out),
    }
}

/// The geometry, without which nothing can be simulated.
fn hierarchy_of<'a>(machine: &'a Machine, args: &SimulateArgs) -> Result<&'a Hierarchy, CliError> {
    machine.hierarchy.as_ref().ok_or_else(|| {
        CliError::Request(format!(
            "machine {} says nothing of sets and ways: a simulation needs a `hierarchy` (presets have one)",
            args.place.machine.display()
        ))
    })
}

fn question(
    args: &SimulateArgs,
    machine: &Machine,
    hierarchy: &Hierarchy,
    frames: Frames,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let question = Question::new(&args.question, &args.place, machine, Tier::Auto)?;
    let (mut rows, mut notes) = (Vec::new(), question.notes());
    let progress = Progress::new(ACCESSES_MAX * args.layout.len() as u64);
    for (i, arrangement) in (0..).zip(&args.layout) {
        progress.show(&arrangement.to_string());
        let arranged = question.arrange(*arrangement)?;
        let simulation = Simulation {
            accesses: &arranged.accesses,
            hierarchy,
            frames,
            seed: args.seed,
        };
        let mut told = |accesses| progress.set(i * ACCESSES_MAX + u64::min(accesses, ACCESSES_MAX));
        let simulated = match args.question.searches {
            Some(first) => simulation.cold(first, &mut told),
            None => simulation.steady(args.operations, &mut told),
        };
        told(ACCESSES_MAX);
        if args.operations.is_none()
            && simulated.accesses > ACCESSES_MAX / 2
            && !simulated.is_known_well()
        {
            notes.push(format!(
                "{arrangement}: a sample of {} operations; no more than {} million accesses are \
                 simulated for a layout unless --operations says how many",
                human_count(simulated.operations as f64),
                ACCESSES_MAX / 1_000_000
            ));
        }
        rows.push(simulated.row(arrangement.to_string()));
    }
    drop(progress);
    let report = Report {
        question: question.report(frames),
        rows,
        notes,
    };
    if args.json {
        write_json(out, &report)
    } else if args.csv {
        csv(&report, out)
    } else {
        table(&report, &question, out)
    }
}

/// What was counted of some operations.
struct Simulated {
    operations: u64,
    accesses: u64,
    /// By level, its name, mean misses of an operation, standard error of that.
    levels: Vec<(String, f64, f64)>,
}

impl Simulated {
    /// Means over batches of equally many operations, of what `counts` says at the end of each
    /// since its start.
    fn of_batches(batches: &[SimulatedCounts], operations: u64, accesses: u64) -> Simulated {
        let Some(first) = batches.first() else {
            return Simulated {
                operations,
                accesses,
                levels: Vec::new(),
            };
        };
        let number = batches.len() as f64;
        let each = operations as f64 / number;
        let names = first.caches.iter().chain(&first.tlbs);
        let levels = names.enumerate().map(|(i, level)| {
            let misses = batches.iter().map(|batch| {
                let level = batch.caches.iter().chain(&batch.tlbs).nth(i);
                level.map_or(0.0, |level| level.misses as f64 / each)
            });
            let mean = misses.clone().sum::<f64>() / number;
            let squares: f64 = misses.map(|value| (value - mean).powi(2)).sum();
            let error = if number > 1.0 {
                (squares / (number - 1.0) / number).sqrt()
            } else {
                0.0
            };
            (level.name.clone(), mean, error)
        });
        Simulated {
            operations,
            accesses,
            levels: levels.collect(),
        }
    }

    fn is_known_well(&self) -> bool {
        self.levels
            .iter()
            .all(|&(_, mean, error)| mean < MISSES_THAT_MATTER || error <= ERROR_MAX * mean)
    }

    fn row(self, layout: String) -> Row {
        let by_name = |value: fn(&(String, f64, f64)) -> f64| {
            let pairs = self.levels.iter();
            pairs.map(|level| (level.0.clone(), value(level))).collect()
        };
        Row {
            layout,
            operations: self.operations,
            accesses: self.accesses,
            misses: by_name(|level| level.1),
            errors: by_name(|level| level.2),
            levels: self.levels.iter().map(|level| level.0.clone()).collect(),
        }
    }
}

/// Operations on a hierarchy.
struct Simulation<'a> {
    accesses: &'a Accesses,
    hierarchy: &'a Hierarchy,
    frames: Frames,
    seed: u64,
}

impl Simulation<'_> {
    /// Operations in the steady state; `told` is how many accesses were made so far, from time to
    /// time.
    fn steady(&self, operations: Option<u64>, told: &mut dyn FnMut(u64)) -> Simulated {
        let mut simulator = Simulator::new(self.hierarchy, self.frames);
        let mut stream = Stream::new(self.accesses, self.seed);
        let warm_up = warm_up_operations(self.accesses, self.hierarchy);
        let (warm_operations, warm) = stream.run(&mut simulator, warm_up, WARM_ACCESSES_MAX);
        told(warm);
        let reads = (warm / warm_operations.max(1)).max(1);
        let (batches_max, batch) = match operations {
            // As many as asked for, rounded up to equal batches.
            Some(operations) => {
                let batches = operations.clamp(1, BATCHES);
                (batches, operations.max(1).div_ceil(batches))
            }
            // All of them are alike.
            None if self.accesses.fixed_sequence().is_some() => (1, 1),
            None => (
                u64::MAX,
                (BATCH_ACCESSES / reads).clamp(1, BATCH_OPERATIONS),
            ),
        };
        let mut counted = Vec::new();
        let mut done = (0, 0);
        let is_bounded = batches_max == u64::MAX;
        loop {
            for _ in 0..BATCHES.min(batches_max) {
                simulator.reset_counts();
                let (operations, accesses) = stream.run(&mut simulator, batch, u64::MAX);
                done = (done.0 + operations, done.1 + accesses);
                told(warm + done.1);
                counted.push(simulator.counts());
                if warm + done.1 > ACCESSES_MAX && is_bounded {
                    break;
                }
            }
            let simulated = Simulated::of_batches(&counted, done.0, done.1);
            if !is_bounded || warm + done.1 > ACCESSES_MAX || simulated.is_known_well() {
                return simulated;
            }
        }
    }

    /// The first operations from cold caches, several times.
    fn cold(&self, first: u64, told: &mut dyn FnMut(u64)) -> Simulated {
        let mut counted = Vec::new();
        let mut done = (0, 0);
        for start in 0..COLD_STARTS_MAX {
            let seed = self.seed.wrapping_add(start);
            let frames = match self.frames {
                Frames::Random { pages, .. } => Frames::Random { pages, seed },
                identity @ Frames::Identity => identity,
            };
            let mut simulator = Simulator::new(self.hierarchy, frames);
            let mut stream = Stream::new(self.accesses, seed);
            let (operations, accesses) = stream.run(&mut simulator, first.max(1), u64::MAX);
            done = (done.0 + operations, done.1 + accesses);
            counted.push(simulator.counts());
            // Making caches takes time too.
            let caches = self.hierarchy.caches().iter();
            let made = caches.map(crate::CacheLevel::blocks).sum::<u64>() * (start + 1);
            told(done.1 + made);
            let simulated = Simulated::of_batches(&counted, done.0, done.1);
            if (start > 1 && simulated.is_known_well()) || done.1 + made > ACCESSES_MAX {
                break;
            }
        }
        Simulated::of_batches(&counted, done.0, done.1)
    }
}

/// A stream of operations on its way into a simulator.
struct Stream<'a> {
    operations: crate::Operations<'a>,
    reads: Vec<Access>,
}

impl<'a> Stream<'a> {
    fn new(accesses: &'a Accesses, seed: u64) -> Stream<'a> {
        Stream {
            operations: accesses.operations(seed),
            reads: Vec::new(),
        }
    }

    /// Runs so many operations, or fewer if they make too many accesses; how many it were of both.
    fn run(&mut self, simulator: &mut Simulator, operations: u64, accesses_max: u64) -> (u64, u64) {
        let (mut done, mut accesses) = (0, 0);
        while done < operations && accesses < accesses_max {
            self.operations.next_into(&mut self.reads);
            for read in &self.reads {
                simulator.access(read.address, read.bytes);
            }
            done += 1;
            accesses += self.reads.len() as u64;
        }
        (done, accesses)
    }
}

/// Operations until the caches hold what they will hold: some times as many as a cache remembers,
/// or, where all fits, as many as it takes until hardly an operation meets a new block.
fn warm_up_operations(accesses: &Accesses, hierarchy: &Hierarchy) -> u64 {
    /// Multiples of the characteristic time.
    const TIMES: f64 = 3.0;
    /// New blocks of an operation that are hardly any.
    const NEW_BLOCKS: f64 = 1e-4;
    const OPERATIONS_MAX: f64 = 1e12;
    let levels = hierarchy.caches().iter().chain(hierarchy.tlbs());
    let needed = levels.map(|level| {
        let blocks = accesses.block_probabilities(level.geometry.block_bytes());
        let footprint = blocks.footprint();
        let time = footprint.characteristic_time(level.blocks() as f64, Replacement::Lru);
        if time.is_finite() {
            return TIMES * time;
        }
        let mut time = 1.0;
        while time < OPERATIONS_MAX
            && footprint.misses_and_waits_at(time, Replacement::Lru).0 > NEW_BLOCKS
        {
            time *= 2.0;
        }
        time
    });
    let operations = needed.fold(1.0, f64::max).min(OPERATIONS_MAX);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 to 10^12"
    )]
    let operations = operations as u64;
    operations
}

fn trace(
    args: &SimulateArgs,
    path: &Path,
    machine: &Machine,
    hierarchy: &Hierarchy,
    frames: Frames,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let mut simulator = Simulator::new(hierarchy, frames);
    let request = |error: &dyn std::fmt::Display| {
        CliError::Request(format!("cannot read trace {}: {error}", path.display()))
    };
    let counts = if path == Path::new("-") {
        simulate_trace(TextTrace::new(io::stdin().lock()), &mut simulator)
    } else {
        let file = open_regular(path).map_err(|error| request(&error))?;
        simulate_trace(TextTrace::new(file), &mut simulator)
    };
    let counts = counts.map_err(|error| request(&error))?;
    if counts.data() == 0 {
        return Err(request(&"there is no access to data in it"));
    }
    let simulated = simulator.counts();
    let report = TraceReport {
        machine: machine.name.clone(),
        frames: frame_name(frames),
        trace: counts,
        levels: [simulated.caches, simulated.tlbs].concat(),
    };
    if args.json {
        return write_json(out, &report);
    }
    if args.csv {
        write_csv(out, ["level", "accesses", "misses"])?;
        for level in &report.levels {
            write_csv(
                out,
                [
                    level.name.clone(),
                    level.accesses.to_string(),
                    level.misses.to_string(),
                ],
            )?;
        }
        return Ok(());
    }
    writeln!(
        out,
        "{} instructions, {} accesses to data on {}, {} frames; data only:",
        human_count(report.trace.instructions as f64),
        human_count(report.trace.data() as f64),
        report.machine,
        report.frames
    )?;
    let mut table = Table::new(["level", "accesses", "misses", "of accesses"]);
    for level in &report.levels {
        table.row([
            level.name.clone(),
            human_count(level.accesses as f64),
            human_count(level.misses as f64),
            format!("{:.3} %", 100.0 * level.miss_ratio()),
        ]);
    }
    table.write(out)?;
    Ok(())
}

fn csv(report: &Report, out: &mut dyn Write) -> Result<(), CliError> {
    write_csv(
        out,
        [
            "layout",
            "level",
            "misses",
            "error",
            "operations",
            "accesses",
        ],
    )?;
    for row in &report.rows {
        for level in &row.levels {
            write_csv(
                out,
                [
                    row.layout.clone(),
                    level.clone(),
                    row.misses[level].to_string(),
                    row.errors[level].to_string(),
                    row.operations.to_string(),
                    row.accesses.to_string(),
                ],
            )?;
        }
    }
    Ok(())
}

fn table(report: &Report, question: &Question<'_>, out: &mut dyn Write) -> Result<(), CliError> {
    let state = question
        .first_operations()
        .map_or("in the steady state".to_owned(), |first| {
            format!("of the first {} from cold", human_count(first as f64))
        });
    writeln!(
        out,
        "{} on {}, {} frames; misses of {} {state}, simulated:",
        question.describe(),
        report.question.machine,
        report.question.frames,
        question.describe_operation()
    )?;
    let levels = report.rows.first().map(|row| row.levels.as_slice());
    let levels = levels.unwrap_or_default();
    let titles = levels.iter().map(|level| format!("{level} miss"));
    let mut table = Table::new(
        std::iter::once("layout".to_owned())
            .chain(titles)
            .chain(["+-".to_owned(), "operations".to_owned()]),
    );
    for row in &report.rows {
        let misses = levels.iter().map(|level| human_number(row.misses[level]));
        let relative = levels.iter().filter_map(|level| {
            let (misses, error) = (row.misses[level], row.errors[level]);
            (misses >= MISSES_THAT_MATTER).then(|| error / misses)
        });
        let worst = relative.fold(0.0, f64::max);
        table.row(std::iter::once(row.layout.clone()).chain(misses).chain([
            format!("{:.1} %", 100.0 * worst),
            human_count(row.operations as f64),
        ]));
    }
    table.write(out)?;
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}
