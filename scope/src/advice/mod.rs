//! What to change in a program, checked by replaying its own accesses.
//!
//! `trace` takes the windows of a profile, and `replay` says what they cost on a machine. Each
//! candidate rewrites the addresses as it would place the objects; the difference is its gain. The
//! gain is one of the whole program: what is not waiting for memory stays.

mod beside;
mod chunks;
mod code;
mod columns;
mod container;
mod dense;
mod elements;
mod fields;
pub mod fitted;
mod group;
mod ideas;
mod inlined;
mod packed;
mod places;
mod smaller;
mod split;
mod typed;
mod walks;

use std::collections::HashMap;

use beside::WithAllocator;
use ccmodel::{Machine, Origin};
use chunks::Chunks;
use code::Language;
use serde::Serialize;

use crate::analyses::misses::Interval;
use crate::analyses::replay::processor::{CpuModel, compare};
use crate::analyses::replay::trace::{NONE, Trace};
use crate::analyses::replay::{PROBABLE, Replay, Replayed, ReplayedWindows, Rewrite};
use crate::analyses::types::type_name;
use crate::analyses::units::rounded;
use crate::capture_format::{MAX_WINDOWS, WINDOW};
use crate::profile::Profile;

/// A program that gets faster by less is not worth the change: the clock would hardly see it.
pub const MIN_SPEEDUP: f64 = 1.1;
/// The low end of what is worth it. What may lose more is not known well enough.
pub const MIN_LOW: f64 = 0.7;
/// The most pieces of advice.
pub const MAX_ITEMS: usize = 10;
/// Nobody changes a site for which the program waits less than this part of its time.
const MIN_SHARE: f64 = 0.01;

/// Their nodes are not the program's to place.
const COLLECTIONS: [&str; 9] = [
    "BTreeMap",
    "BTreeSet",
    "BinaryHeap",
    "HashMap",
    "HashSet",
    "LinkedList",
    "String",
    "Vec",
    "VecDeque",
];

/// What kind of change it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Allocate objects near those that lead to them.
    Hint,
    /// Lay out a finished structure.
    Morph,
    /// Use another container.
    Container,
    /// Put fields that are used together next to each other.
    FieldOrder,
    /// Keep fields that are hardly used apart.
    Split,
    /// Keep the objects of a site apart from others, or next to those used with them.
    Group,
    /// Make the objects smaller.
    Smaller,
    /// Run the program with another allocator; not replayed.
    Allocator,
    /// Change what no machine can edit. It has a gain if a replay has tried it.
    Idea,
    /// Leave it.
    None,
}

impl Kind {
    /// Whether it places objects, so that its gain is what it adds to `CcMalloc`, which is offered
    /// first and places them by size.
    fn needs_allocator(self) -> bool {
        !matches!(self, Kind::Container | Kind::Allocator | Kind::None)
    }
}

/// Misses of the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelMisses {
    /// Name of the cache or of the translation buffer.
    pub level: String,
    /// Today.
    pub before: f64,
    /// With the change.
    pub after: f64,
}

/// A change, and what it would do to the program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Item {
    /// What kind of change.
    pub kind: Kind,
    /// Indices of the sites that it is about.
    pub sites: Vec<u32>,
    /// What to do, or why nothing.
    pub what: String,
    /// What to write.
    pub code: Option<String>,
    /// Whether the program gets faster by [`MIN_SPEEDUP`], and by [`MIN_LOW`] at least.
    pub worth_it: bool,
    /// Time of the whole program before and after, as a quotient; the cost is in it.
    pub speedup: Interval,
    /// Nanoseconds of the run.
    pub saved_ns: Interval,
    /// By level of the machine.
    pub misses: Vec<LevelMisses>,
    /// The part of the run's time for which the program waits for these sites.
    pub share: f64,
    /// Nanoseconds of the change itself in the run.
    pub cost_ns: f64,
    /// When it has paid.
    pub break_even: Option<String>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What would make it wrong.
    pub wrong_if: String,
    /// Whether all numbers are of what it gains beyond `CcMalloc` alone, in the time that the
    /// program then takes.
    pub beyond_allocator: bool,
}

impl Item {
    /// The struct whose fields it orders, and their names in that order, if they are Rust's.
    #[cfg(feature = "cli")]
    pub(crate) fn order(&self) -> Option<(String, Vec<String>)> {
        let code = self.code.as_ref().filter(|_| self.kind == Kind::FieldOrder);
        code::named_order(code?)
    }

    /// The struct whose fields it keeps apart, and the names of these, if they are Rust's.
    #[cfg(feature = "cli")]
    pub(crate) fn cold(&self) -> Option<(String, Vec<String>)> {
        let code = self.code.as_ref().filter(|_| self.kind == Kind::Split);
        code::named_cold(code?)
    }

    /// Whether no cache that a core has for itself misses more. The order of fields is found by
    /// blocks that begin where an element does; not all elements begin with a block.
    fn misses_less(&self) -> bool {
        self.misses.iter().take(2).all(|it| it.after <= it.before)
    }
}

/// How far apart the ends of a range are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// At least half of the gain is sure.
    High,
    /// A gain is sure.
    Medium,
    /// There may be none, or the machine is not calibrated.
    Low,
}

/// What is said about a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Name of the machine that the gains are of.
    pub machine: String,
    /// Seconds of the run without the profiler: given, or estimated from the accesses.
    pub seconds: f64,
    /// Whether they were given.
    pub seconds_given: bool,
    /// Whether any change is worth it.
    pub worth_it: bool,
    /// The part of the run's time for which the program waits for memory.
    pub waits: f64,
    /// Windows behind the numbers.
    pub windows: usize,
    /// The `--rate` at which a run has as many windows as fit.
    pub better_rate: u64,
    /// Another allocator, those that are worth it, and then those that are not, by time saved; at
    /// most [`MAX_ITEMS`] and the allocator.
    pub advice: Vec<Item>,
}

/// What candidates are made from.
pub(crate) struct Context<'p> {
    pub(crate) profile: &'p Profile,
    pub(crate) machine: &'p Machine,
    pub(crate) trace: &'p Trace,
    pub(crate) replay: &'p Replay,
    pub(crate) before: &'p Replayed,
    /// A probable one, and one with the least waiting.
    pub(crate) models: [CpuModel; 2],
    /// Nanoseconds of the whole run, of all threads that are busy together.
    pub(crate) run_ns: f64,
    /// By site: the part of the run's time for which the program waits for it.
    pub(crate) waits: HashMap<u32, f64>,
    pub(crate) chunks: Chunks,
    /// `None` if the program has it already.
    with_allocator: Option<WithAllocator>,
}

/// A change that could be made.
pub(crate) struct Candidate<'c> {
    pub(crate) kind: Kind,
    pub(crate) sites: Vec<u32>,
    pub(crate) what: String,
    pub(crate) code: Option<String>,
    /// Nanoseconds of the change in the run, besides its effect on misses.
    pub(crate) cost_ns: f64,
    pub(crate) break_even: Option<String>,
    pub(crate) wrong_if: String,
    pub(crate) rewrite: Box<dyn Rewrite + 'c>,
}

impl Context<'_> {
    /// Sites that the program waits for, the longest first.
    pub(crate) fn waiting_sites(&self) -> Vec<u32> {
        let mut sites: Vec<(u32, f64)> = { self.waits.iter() }
            .filter(|&(&site, &share)| site != NONE && share >= MIN_SHARE)
            .map(|(&site, &share)| (site, share))
            .collect();
        sites.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        sites.into_iter().map(|(site, _)| site).collect()
    }

    /// Sites whose objects a change of the program's own code places, each with all that allocate
    /// its type, as far as the program waits for them.
    pub(crate) fn own_types(&self) -> Vec<Vec<u32>> {
        let mut found: Vec<Vec<u32>> = Vec::new();
        for site in self.waiting_sites() {
            let name = site_type(self.profile, site).filter(|&name| name != "bytes");
            let language = Language::of(self.profile, &[site]);
            if name.is_some_and(|name| is_foreign(language, name))
                || found.iter().any(|sites| sites.contains(&site))
            {
                continue;
            }
            let is_same = |&other: &u32| {
                other == site || name.is_some() && site_type(self.profile, other) == name
            };
            let sites = u32::try_from(self.profile.sites.len()).unwrap_or(u32::MAX);
            found.push((0..sites).filter(is_same).collect());
        }
        found
    }

    /// The part of the run's time for which the program waits for these sites.
    pub(crate) fn share(&self, sites: &[u32]) -> f64 {
        let waits = sites.iter().filter_map(|site| self.waits.get(site));
        waits.sum::<f64>().min(1.0)
    }

    /// Replays a candidate.
    fn judge(&self, mut candidate: Candidate<'_>) -> Item {
        let with = { self.with_allocator.as_ref() }.filter(|_| candidate.kind.needs_allocator());
        let (after, found) = match with {
            Some(_) => self.beside_allocator(&mut *candidate.rewrite),
            None => {
                let after = self.replay.run(self.trace, &mut *candidate.rewrite);
                let found = compare(self.trace, self.before, &after, self.models);
                (after, found)
            }
        };
        let before = with.map_or(self.before, |with| &with.replayed);
        let run_ns = self.run_ns * with.map_or(1.0, |with| with.left);
        let cost = candidate.cost_ns / run_ns.max(1.0);
        let left = fitted::left(candidate.kind, found.left);
        let [low, estimate, high] = left.map(|left| (left + cost).max(1e-3));
        let replayed = Interval {
            low: 1.0 / high,
            estimate: 1.0 / estimate,
            high: 1.0 / low,
        };
        let speedup = fitted::range(replayed);
        let saved = |gain: f64| (1.0 - 1.0 / gain) * run_ns;
        let scaled = |misses: f64| misses * self.trace.scale;
        let levels = self.replay.levels.iter();
        let misses = levels.zip(before.misses.iter().zip(&after.misses));
        let is_measured = matches!(self.machine.origin, Origin::Calibrated { .. });
        let confidence = match (replayed.low - 1.0, replayed.estimate - 1.0) {
            // Usual latencies are off by more than the range is wide.
            _ if !is_measured => Confidence::Low,
            (low, estimate) if low * 2.0 >= estimate => Confidence::High,
            (low, _) if low > 0.0 => Confidence::Medium,
            _ => Confidence::Low,
        };
        Item {
            kind: candidate.kind,
            share: self.share(&candidate.sites),
            sites: candidate.sites,
            what: candidate.what,
            code: candidate.code,
            worth_it: replayed.estimate >= MIN_SPEEDUP && replayed.low >= MIN_LOW,
            speedup,
            saved_ns: Interval {
                low: saved(speedup.low),
                estimate: saved(speedup.estimate),
                high: saved(speedup.high),
            },
            misses: misses
                .map(|(level, (before, after))| LevelMisses {
                    level: level.clone(),
                    before: scaled(before[PROBABLE]),
                    after: scaled(after[PROBABLE]),
                })
                .collect(),
            cost_ns: candidate.cost_ns,
            break_even: candidate.break_even,
            confidence,
            wrong_if: candidate.wrong_if,
            beyond_allocator: with.is_some(),
        }
    }
}

/// What `profile` advises on `machine`. `seconds` is the time of a run without the profiler; if it
/// is not given, it is estimated from the number of accesses, and gains are rougher.
///
/// O(accesses in the windows) for each candidate; memory some hundred bytes for each access.
///
/// `None` without windows, or if the caches of the machine are not known.
#[must_use]
pub fn advise(profile: &Profile, machine: &Machine, seconds: Option<f64>) -> Option<Advice> {
    let windows = ReplayedWindows::new(profile, machine)?;
    let (trace, replay, before) = (&windows.trace, &windows.replay, &windows.baseline);
    let parallel = parallelism(profile);
    let given_ns = seconds.map(|seconds| seconds * 1e9 * parallel);
    let (models, run_ns, waits) = match given_ns {
        Some(ns) => {
            let models = CpuModel::fit(replay, trace, before, ns);
            (models, ns, before.waits(trace, models[0], PROBABLE))
        }
        None => ([windows.cpu; 2], windows.run_ns, windows.waits.clone()),
    };
    let mut context = Context {
        profile,
        machine,
        trace,
        replay,
        before,
        models,
        run_ns,
        waits,
        chunks: Chunks::new(profile, trace),
        with_allocator: None,
    };
    context.replay_allocator();
    let mut candidates = places::candidates(&context);
    candidates.extend(container::candidates(&context));
    candidates.extend(group::candidates(&context));
    candidates.extend(fields::candidates(&context));
    candidates.extend(split::candidates(&context));
    candidates.extend(smaller::candidates(&context));
    candidates.extend(columns::candidates(&context));
    candidates.extend(walks::candidates(&context));
    candidates.extend(inlined::candidates(&context));
    let mut items: Vec<Item> = candidates.into_iter().map(|it| context.judge(it)).collect();
    items.retain(|it| match it.kind {
        Kind::FieldOrder => it.misses_less(),
        Kind::Idea => it.worth_it,
        _ => true,
    });
    items.sort_by(|a, b| {
        let key = |it: &Item| it.saved_ns.estimate;
        b.worth_it.cmp(&a.worth_it).then(key(b).total_cmp(&key(a)))
    });
    // Of the cuts of a struct, the best.
    let mut cut: Vec<Vec<u32>> = Vec::new();
    items.retain(|it| {
        let is_new = it.kind != Kind::Split || !cut.contains(&it.sites);
        if it.kind == Kind::Split {
            cut.push(it.sites.clone());
        }
        is_new
    });
    items.truncate(MAX_ITEMS);
    items.extend(container::ideas(&context));
    items.extend(ideas::reasons(&context, &items));
    items.truncate(MAX_ITEMS);
    items.splice(0..0, ideas::allocator(&context));
    Some(Advice {
        machine: machine.name.clone(),
        seconds: run_ns / parallel / 1e9,
        seconds_given: seconds.is_some(),
        worth_it: items.iter().any(|item| item.worth_it),
        waits: context.waits.values().sum::<f64>().min(1.0),
        windows: trace.ends.len(),
        better_rate: better_rate(profile, trace),
        advice: items,
    })
}

/// With fewer accesses than windows hold, all of them.
fn better_rate(profile: &Profile, trace: &Trace) -> u64 {
    let accesses = trace.steps.len() as f64 * trace.scale;
    let room = (MAX_WINDOWS - 1) * WINDOW;
    rounded(accesses / room as f64).clamp(1, profile.run.window_rate.max(1))
}

/// How many threads are busy at a time, by their events.
fn parallelism(profile: &Profile) -> f64 {
    let events = profile.threads.iter().map(|thread| thread.events as f64);
    let most = events.clone().fold(0.0, f64::max);
    (events.sum::<f64>() / most.max(1.0)).max(1.0)
}

/// Whether a type is one of the standard library's. In C++ the names of its nodes are reserved.
fn is_foreign(language: Language, name: &str) -> bool {
    let path = name.split('<').next().unwrap_or_default();
    let last = path.rsplit("::").next().unwrap_or_default();
    match language {
        Language::Rust => COLLECTIONS.contains(&last),
        Language::C => false,
        Language::Cxx => { last.strip_prefix('_') }
            .is_some_and(|rest| rest.starts_with(|c: char| c == '_' || c.is_uppercase())),
    }
}

/// The name of what a site allocates.
pub(crate) fn site_type(profile: &Profile, site: u32) -> Option<&str> {
    type_name(profile, profile.sites.get(site as usize)?.type_id)
}

#[cfg(test)]
mod tests;
