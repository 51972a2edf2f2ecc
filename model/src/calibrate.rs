//! Measures this machine: latency curve, translation, fetching, overlap, instruction costs, and how
//! quiet it was.
//!
//! **The curve** ([`curve`]). In a working set of `W` bytes, load random lines, each address
//! depending on the value loaded before. Every line is equally likely at every load, so under *any*
//! replacement policy a level of capacity `C` serves the fraction `C / W` of the loads:
//!
//! ```text
//! ns(W) = base + sum over levels of step x max(0, 1 - C / W)
//! ```
//!
//! [`fit`] finds the non-negative steps that explain the measured curve best: the
//! [levels](crate::Level). The usual walk around one cycle could not be inverted: a cycle longer
//! than an LRU cache never hits. The difference of the curves in 4 KiB and in 2 MiB pages gives the
//! cost of translation. Of many short runs the lower quartile counts: other programs only add time.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::hierarchy::{CacheLevel, Hierarchy};
use crate::machine::{MACHINE_FORMAT, Machine, Origin, Quietness, TranslationProbe, Verdict};
use crate::topology::{Topology, fold};
use crate::{Level, LevelKind, PageSize, PagedMemory, Replacement};

mod colours;
mod curve;
mod cycle;
mod fit;
mod locality;
mod overlap;
mod quietness;
mod search;
mod translation;

use curve::{Chase, LINE_WORDS, data_levels, measure_curves, translation_level};
use cycle::Cycle;
use quietness::Listener;

/// Bytes of a line, the unit of the chases.
const LINE_BYTES: u64 = 64;
/// Longest timed run. On a busy machine, runs of several milliseconds are always disturbed.
const RUN_NS: f64 = 250_000.0;
/// How caches behave; the [footprint module](crate::Footprint) has the measurement.
const REPLACEMENT: Replacement = Replacement::Random;
/// TLBs do not show how many ways they have; no processor since 2015 has fewer.
const DTLB_WAYS_MIN: u64 = 4;
const STLB_WAYS_MIN: u64 = 8;

/// How long and how large to measure.
#[derive(Clone, Copy, Debug, Default)]
pub struct CalibrateOptions {
    /// Six to ten seconds and 0.4 GB of memory instead of about forty seconds and 2 GB. Working
    /// sets beyond 128 MB (4 KiB pages: 256 MB) are then extrapolated.
    pub quick: bool,
    /// Called from time to time with the share that is done, from 0 to 1.
    pub progress: Option<fn(f64)>,
}

impl CalibrateOptions {
    /// The options of the quick form.
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

/// Measurements at most, of which two must agree.
const MEASUREMENTS: usize = 3;
/// Two measurements agree if no figure of one is more than so many times that of the other.
const AGREEING: f64 = 1.25;

impl Machine {
    /// Measures this machine twice. Takes six to ten seconds in the quick form, about forty
    /// otherwise, on one thread. Where both measurements differ by more than a quarter, there is a
    /// third one; if it differs from the second, too, the fastest is taken, and a
    /// [note](Machine::notes) says so.
    ///
    /// On a shared machine the last-level cache and the memory are as fast as other programs let
    /// them be. Measure again when it matters; [`error_band`](Machine::error_band) depends on how
    /// quiet it was and how long ago.
    ///
    /// Where memory is short, smaller working sets are used. Without a megabyte, or when the result
    /// is absurd (a clock that stands still, say), the result is that of [`Machine::this`], with
    /// [`Origin::Defaults`] and the reason among its [`notes`](Machine::notes).
    pub fn calibrate(options: CalibrateOptions) -> Machine {
        agreed(|| Machine::measured(options))
    }

    fn measured(options: CalibrateOptions) -> Machine {
        let topology = Topology::this();
        let (Some(huge), Some(small)) = (
            largest_memory(options, PageSize::Huge2M, &topology),
            largest_memory(options, PageSize::Small4K, &topology),
        ) else {
            return uncalibrated("there is no memory to measure in");
        };
        let runs = options.runs();
        let mut chase = Chase { state: 1 };
        let listener = Listener::start(&mut chase, &huge, &topology, runs);
        let mut evidence = measure_curves(&mut chase, &huge, &small, options);
        drop(small);
        evidence.overlap = overlap::measure(&huge, runs);
        options.report(0.65);
        evidence.hit_ns = Cycle::hit_ns(runs);
        evidence.translation = translation::measure(options.quick, runs);
        options.report(0.7);
        let search = search::costs(runs).unwrap_or(Machine::this().search);
        let mut levels = data_levels(&evidence, &topology);
        let (scattered, neighbours) = locality::measure(runs, &levels);
        options.report(0.85);
        evidence.scattered = scattered;
        let overlap =
            search::look_ahead(runs, search, &evidence.overlap).unwrap_or(Machine::this().overlap);
        evidence.colours = colours::measure(runs, &topology, &levels);
        levels.extend(translation_level(&evidence));
        let quietness = listener.stop(&mut chase, &huge, runs);
        let notes = doubts(&topology, &evidence.translation, &quietness);
        evidence.quietness = Some(quietness);
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
            overlap,
            replacement: REPLACEMENT,
            levels,
            neighbours,
            hierarchy: topology
                .hierarchy()
                .map(|caches| with_tlbs(caches, evidence.translation.as_ref())),
            evidence,
            notes,
        })
    }
}

/// The later one of two measurements in succession that agree, or the fastest of all.
fn agreed(mut measure: impl FnMut() -> Machine) -> Machine {
    let mut all: Vec<Machine> = vec![measure()];
    let mut doubt = None;
    while all.len() < MEASUREMENTS {
        let new = measure();
        doubt = all.last().and_then(|last| contradiction(last, &new));
        if doubt.is_none() {
            return new;
        }
        all.push(new);
    }
    all.sort_by(|a, b| far_ns(a)[0].total_cmp(&far_ns(b)[0]));
    let mut fastest = all.swap_remove(0);
    fastest.notes.extend(doubt);
    fastest
}

/// What a load of a large working set waits for: the caches, and the translation.
fn far_ns(machine: &Machine) -> [f64; 2] {
    let of = |is_data: bool| {
        let levels = machine.levels.iter();
        let levels = levels.filter(|level| (level.kind == LevelKind::Data) == is_data);
        levels.map(Level::step_ns).sum()
    };
    [of(true), of(false)]
}

/// In what two measurements differ.
fn contradiction(first: &Machine, second: &Machine) -> Option<String> {
    let names = ["a load from memory", "its translation"];
    let [first, second] = [first, second].map(far_ns);
    let pairs = names.into_iter().zip(first.into_iter().zip(second));
    // A nanosecond more or less is the noise of what hardly costs anything.
    let is_apart =
        |&(_, (a, b)): &(&str, (f64, f64))| a.max(b) > a.min(b) * AGREEING && (a - b).abs() > 1.0;
    let (name, (a, b)) = pairs.into_iter().find(is_apart)?;
    Some(format!(
        "measurements contradict each other: {name} took {a:.0} ns, and then {b:.0} ns; other \
         programs were busy, calibrate again when the machine is quiet"
    ))
}

/// Reasons to doubt the numbers.
fn doubts(
    topology: &Topology,
    translation: &Option<TranslationProbe>,
    quietness: &Quietness,
) -> Vec<String> {
    let mut notes = Vec::new();
    if quietness.verdict != Verdict::Quiet {
        notes.push(format!(
            "the machine was not quiet while it was measured, {quietness}"
        ));
    }
    if let Some(probe) = translation {
        let found = probe.levels.len();
        if found < 2 {
            notes.push(format!("{found} of the two TLB levels showed"));
        }
        if probe.huge_pages_reach() == Some(false) {
            let what = "huge pages do not extend what the TLBs reach here: something backs them \
                        with small ones";
            notes.push(what.to_owned());
        }
    }
    notes.extend(topology.notes.iter().cloned());
    notes
}

/// The caches with the TLBs that were found. Their ways are not known; they get the most sets that
/// leave a usual number.
fn with_tlbs(caches: Hierarchy, translation: Option<&TranslationProbe>) -> Hierarchy {
    let page = PageSize::Small4K.bytes();
    let found = translation.map_or(&[][..], |probe| &probe.levels);
    let tlbs = [("dTLB", DTLB_WAYS_MIN), ("STLB", STLB_WAYS_MIN)]
        .iter()
        .zip(found);
    let tlbs = tlbs.filter_map(|(&(name, ways), level)| {
        Some(CacheLevel::lru(name, fold(level.entries, page, ways)?))
    });
    let whole = Hierarchy::new(caches.caches().to_vec(), caches.inclusion(), tlbs.collect());
    // What was measured must not harm what the system says.
    whole.unwrap_or(caches)
}

/// What was measured, unless it describes no machine.
fn checked(machine: Machine) -> Machine {
    match machine.check() {
        Ok(()) => machine,
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

/// As much memory as the options ask for, or half of it, and so on; at most a quarter of the
/// machine's.
fn largest_memory(
    options: CalibrateOptions,
    pages: PageSize,
    topology: &Topology,
) -> Option<PagedMemory> {
    let quarter = topology.memory_bytes.value / 4;
    let first = options.max_bytes(pages).min(quarter);
    let halves = std::iter::successors(Some(first), |bytes| Some(bytes / 2));
    let mut sizes = halves.take_while(|&bytes| bytes >= 1 << 20);
    sizes.find_map(|bytes| PagedMemory::new(usize::try_from(bytes / 8).ok()?, pages).ok())
}

/// Lines that memory holds.
fn lines_of(memory: &PagedMemory) -> u64 {
    (memory.as_slice().len() / LINE_WORDS) as u64
}

/// Word index of a line.
#[expect(
    clippy::cast_possible_truncation,
    reason = "lines are below the length of a slice of words"
)]
fn line_start(line: u64) -> usize {
    line as usize * LINE_WORDS
}

/// The number of runs to cut one of this length into.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to small numbers"
)]
fn runs_for(ns: f64) -> u32 {
    (ns / RUN_NS).ceil().clamp(1.0, 12.0) as u32
}

/// The lower quartile of the samples, 0 when there are none: disturbances only ever add time.
fn typical(samples: impl IntoIterator<Item = f64>) -> f64 {
    quantile(samples, 0.25)
}

/// The sample below which this part of the samples lies, less than all; 0 when there are none.
fn quantile(samples: impl IntoIterator<Item = f64>, part: f64) -> f64 {
    let mut sorted: Vec<f64> = samples.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a length"
    )]
    let index = (sorted.len() as f64 * part) as usize;
    sorted.get(index).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
