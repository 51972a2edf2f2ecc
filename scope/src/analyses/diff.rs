//! What has changed between two runs, site by site, and gates on it.
//!
//! A site has no name that outlives a build: lines move, functions are inlined or not, addresses
//! are random. So sites are matched by what is left, the strictest first: functions and lines of
//! the stack; functions, type and sizes; functions and type; functions; functions of the program
//! alone; and at last by similar stacks below the same function.
//!
//! Gates see what is the same in each run of a deterministic program: counts, bytes, and times in
//! events. Seconds and simulated misses are in the result, but no gate is on them.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

use ccmodel::Machine;
use serde::Serialize;

use crate::analyses::misses::misses;
use crate::analyses::scores::{Options, Scores, global, scores};
use crate::analyses::types::type_name;
use crate::analyses::units::{bytes, prefixed, short_count, sum};
use crate::profile::{Frame, Profile, Site};
use crate::symbols::is_library;

/// Stacks are similar if they have this part of their functions in common.
pub const SIMILAR: f64 = 0.6;
/// Most sites that one is compared with.
const MAX_COMPARED: usize = 64;
/// A site whose parts of all totals have changed by less is taken for the same.
pub const MIN_COST: f64 = 0.001;

/// A number that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// The most usable bytes at a time.
    Peak,
    /// Usable bytes in the whole run.
    Bytes,
    /// Bytes that the program asked for in the whole run.
    Requested,
    /// Chunks in the whole run.
    Allocations,
    /// Usable bytes that were alive at the end.
    End,
    /// Chunks that were freed before their thread allocated another.
    Temporary,
    /// Bytes times events between the last access and the free.
    Drag,
    /// Reads and writes.
    Accesses,
    /// The score, or its mean over sites.
    Lifetime,
    /// The same of usage.
    Usage,
    /// The same of useful lifetime.
    UsefulLifetime,
}

impl Metric {
    /// All, with the names that gates use.
    pub const NAMES: [(&'static str, Metric); 11] = [
        ("peak", Metric::Peak),
        ("bytes", Metric::Bytes),
        ("requested", Metric::Requested),
        ("allocations", Metric::Allocations),
        ("end", Metric::End),
        ("temporary", Metric::Temporary),
        ("drag", Metric::Drag),
        ("accesses", Metric::Accesses),
        ("lifetime", Metric::Lifetime),
        ("usage", Metric::Usage),
        ("useful-lifetime", Metric::UsefulLifetime),
    ];

    /// The name.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Metric::NAMES.iter().find(|(_, metric)| *metric == self);
        named.map_or("", |(name, _)| name)
    }

    /// A value as people read it.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        let sign = if value < 0.0 { "-" } else { "" };
        let whole = crate::analyses::units::rounded(value.abs());
        let text = match self {
            Metric::Peak | Metric::Bytes | Metric::Requested | Metric::End => bytes(whole),
            Metric::Allocations | Metric::Temporary | Metric::Accesses => short_count(whole),
            Metric::Drag => prefixed(value.abs(), "B*events"),
            _ => format!("{:.3}", value.abs()),
        };
        format!("{sign}{text}")
    }

    fn score(self) -> Option<fn(&Scores) -> Option<f64>> {
        match self {
            Metric::Lifetime => Some(|it| it.lifetime),
            Metric::Usage => Some(|it| it.usage),
            Metric::UsefulLifetime => Some(|it| it.useful_lifetime),
            _ => None,
        }
    }
}

/// A number before and after; `None` where it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What it is.
    pub metric: Metric,
    /// In the old profile.
    pub old: Option<f64>,
    /// In the new profile.
    pub new: Option<f64>,
}

/// How a site was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matched {
    /// The functions of the stack are the same.
    Functions,
    /// Those of the program are.
    OwnFunctions,
    /// Most of them are.
    Similar,
    /// It is in one profile only.
    Not,
}

/// What became of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It costs more.
    Worse,
    /// It costs less.
    Better,
    /// It costs the same, or nearly.
    Same,
    /// It was not there.
    New,
    /// It is there no more.
    Gone,
}

/// A site in both profiles, or in one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteChange {
    /// Index in the old profile.
    pub old: Option<usize>,
    /// Index in the new profile.
    pub new: Option<usize>,
    /// How it was recognised.
    pub matched: Matched,
    /// What became of it.
    pub verdict: Verdict,
    /// The sum of what its peak, bytes, allocations and drag have changed by, each as a part of
    /// the old process's total.
    pub cost: f64,
    /// Before and after.
    pub changes: Vec<Change>,
    /// Nanoseconds of waiting for memory, simulated, before and after.
    pub waits_ns: [Option<f64>; 2],
}

/// The difference of two profiles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// Of the process; scores are means over its sites.
    pub total: Vec<Change>,
    /// Nanoseconds of waiting for memory, simulated, before and after.
    pub waits_ns: [Option<f64>; 2],
    /// All sites, those that cost more than before first.
    pub sites: Vec<SiteChange>,
}

/// Compares two profiles. Waits are those of `machine`.
#[must_use]
pub fn diff(old: &Profile, new: &Profile, machine: &Machine) -> Diff {
    let sides = [Side::new(old, machine), Side::new(new, machine)];
    let total = Metric::NAMES.map(|(_, metric)| Change {
        metric,
        old: sides[0].total(metric),
        new: sides[1].total(metric),
    });
    let mut sites: Vec<SiteChange> = { pairs(old, new).into_iter() }
        .map(|pair| site_change(&sides, &total, pair))
        .collect();
    sites.sort_by(|a, b| {
        let by_cost = b.cost.total_cmp(&a.cost);
        by_cost.then((a.new, a.old).cmp(&(b.new, b.old)))
    });
    Diff {
        total: total.into(),
        waits_ns: [0, 1].map(|side| sides[side].waits.as_ref().map(|all| all.iter().sum())),
        sites,
    }
}

/// What is compared of a profile.
struct Side<'p> {
    profile: &'p Profile,
    scores: Vec<Scores>,
    waits: Option<Vec<f64>>,
}

impl Side<'_> {
    fn new<'p>(profile: &'p Profile, machine: &Machine) -> Side<'p> {
        Side {
            profile,
            scores: scores(profile, &Options::default()),
            waits: misses(profile, machine).map(|misses| {
                let mut waits = vec![0.0; profile.sites.len()];
                for site in &misses.sites {
                    waits[site.site] = site.wait_ns;
                }
                waits
            }),
        }
    }

    fn total(&self, metric: Metric) -> Option<f64> {
        let (total, sites) = (&self.profile.total, &self.profile.sites);
        let global = || global(&self.scores);
        let accesses = self.profile.run.accesses;
        match metric {
            Metric::Peak => Some(total.peak_usable as f64),
            Metric::Bytes => Some(total.usable as f64),
            Metric::Requested => Some(total.requested as f64),
            Metric::Allocations => Some(total.allocations as f64),
            Metric::End => Some(total.end_usable as f64),
            Metric::Temporary => Some(sum(sites.iter().map(|it| it.temporary)) as f64),
            Metric::Drag => accesses.then(|| sites.iter().map(|it| it.drag).sum()),
            Metric::Accesses => {
                accesses.then_some(total.heap_reads.saturating_add(total.heap_writes) as f64)
            }
            Metric::Lifetime => global().lifetime.map(|it| it.mean),
            Metric::Usage => global().usage.map(|it| it.mean),
            Metric::UsefulLifetime => global().useful_lifetime.map(|it| it.mean),
        }
    }

    /// Of some sites: sums, and means of scores.
    fn of_sites(&self, metric: Metric, sites: &[usize]) -> Option<f64> {
        if let Some(score) = metric.score() {
            let known = || sites.iter().filter_map(|&site| score(&self.scores[site]));
            let count = known().count();
            return (count > 0).then(|| known().sum::<f64>() / count as f64);
        }
        let is_known =
            self.profile.run.accesses || !matches!(metric, Metric::Drag | Metric::Accesses);
        let of_site = |site: &Site| match metric {
            Metric::Peak => site.peak_usable as f64,
            Metric::Bytes => site.usable as f64,
            Metric::Requested => site.requested as f64,
            Metric::Allocations => site.allocations as f64,
            Metric::End => site.end_usable as f64,
            Metric::Temporary => site.temporary as f64,
            Metric::Drag => site.drag,
            _ => site.reads as f64 + site.writes as f64,
        };
        let sites = sites.iter().map(|&site| of_site(&self.profile.sites[site]));
        // `sum` of nothing is -0.
        is_known.then(|| sites.fold(0.0, |sum, it| sum + it))
    }
}

fn site_change(sides: &[Side<'_>; 2], total: &[Change], pair: Pair) -> SiteChange {
    let of =
        |side: usize, site: Option<usize>, metric| sides[side].of_sites(metric, site.as_slice());
    let changes: Vec<Change> = { Metric::NAMES.iter() }
        .map(|&(_, metric)| Change {
            metric,
            old: of(0, pair.old, metric),
            new: of(1, pair.new, metric),
        })
        .collect();
    let costs = [
        Metric::Peak,
        Metric::Bytes,
        Metric::Allocations,
        Metric::Drag,
    ];
    let of_metric = |all: &[Change], metric| all.iter().copied().find(|it| it.metric == metric);
    let cost = costs.iter().filter_map(|&metric| {
        let [of_all, here] = [total, &changes].map(|all| of_metric(all, metric));
        let difference = here?.new? - here?.old?;
        let whole = of_all?.old?.max(1.0);
        Some(difference / whole)
    });
    let cost: f64 = cost.sum();
    let verdict = match (pair.old, pair.new) {
        (None, _) => Verdict::New,
        (_, None) => Verdict::Gone,
        _ if cost >= MIN_COST => Verdict::Worse,
        _ if cost <= -MIN_COST => Verdict::Better,
        _ => Verdict::Same,
    };
    let waits = |side: usize, site: Option<usize>| Some(sides[side].waits.as_ref()?[site?]);
    SiteChange {
        waits_ns: [waits(0, pair.old), waits(1, pair.new)],
        old: pair.old,
        new: pair.new,
        matched: pair.matched,
        verdict,
        cost,
        changes,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    old: Option<usize>,
    new: Option<usize>,
    matched: Matched,
}

/// What sites are recognised by, as numbers that mean the same in both profiles.
struct Keys {
    /// Hashes of the functions of the stack, of those of the program alone, if there are any,
    /// and of lines.
    chain: u64,
    own: Option<u64>,
    lines: u64,
    type_name: u32,
    /// The function that the site is shown at.
    place: u32,
    sizes: [u64; 3],
}

/// The same for the same numbers.
fn hash(numbers: impl Iterator<Item = u32>) -> u64 {
    let mut hasher = DefaultHasher::new();
    numbers.for_each(|number| hasher.write_u32(number));
    hasher.finish()
}

/// Numbers for values, in order of their first use.
fn number<T: Eq + Hash>(numbers: &mut HashMap<T, u32>, value: T) -> u32 {
    let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
    *numbers.entry(value).or_insert(next)
}

/// Sites of both profiles, each once.
fn pairs(old: &Profile, new: &Profile) -> Vec<Pair> {
    let mut names = HashMap::new();
    let functions = [old, new].map(|profile| {
        let functions = profile.frames.iter();
        let numbers = functions.map(|frame| number(&mut names, function(frame)));
        numbers.collect::<Vec<u32>>()
    });
    // Apart from the frames, which fill the cache.
    let lines = [old, new].map(|profile| {
        let lines = profile.frames.iter().map(|frame| frame.line);
        lines.collect::<Vec<u32>>()
    });
    let keys = [0, 1].map(|side| {
        let (profile, functions, lines) = ([old, new][side], &functions[side], &lines[side]);
        let own: Vec<bool> = profile.frames.iter().map(|it| !is_library(it)).collect();
        let sites = profile.sites.iter().map(|site| {
            let frames = || site.stack.iter().map(|&frame| frame as usize);
            let mut last = None;
            let mine = { frames().filter(|&frame| own[frame]) }
                .map(|frame| functions[frame])
                .filter(|&function| last.replace(function) != Some(function));
            let place = site.place.or(site.stack.first().copied());
            let type_name = type_name(profile, site.type_id).unwrap_or_default();
            Keys {
                chain: hash(frames().map(|frame| functions[frame])),
                own: frames().any(|frame| own[frame]).then(|| hash(mine)),
                lines: hash(frames().map(|frame| lines[frame])),
                type_name: number(&mut names, type_name.to_owned()),
                place: place.map_or(u32::MAX, |place| functions[place as usize]),
                sizes: [site.smallest, site.largest, site.allocations],
            }
        });
        sites.collect::<Vec<Keys>>()
    });
    // What is left of both after the stricter keys is paired in the order of lines.
    let orders = [0, 1].map(|side| {
        let sites = &[old, new][side].sites;
        let line_of = |site: usize| sites[site].stack.iter().map(|&it| lines[side][it as usize]);
        let mut order: Vec<usize> = (0..sites.len()).collect();
        order.sort_by(|&a, &b| line_of(a).cmp(line_of(b)));
        order
    });
    let mut matching = Matching {
        left: orders,
        pairs: Vec::new(),
    };
    let keys = &keys;
    let same = Matched::Functions;
    matching.by(keys, same, |it| Some((it.chain, it.lines)));
    matching.by(keys, same, |it| Some((it.chain, it.type_name, it.sizes)));
    matching.by(keys, same, |it| Some((it.chain, it.type_name)));
    matching.by(keys, same, |it| Some(it.chain));
    matching.by(keys, Matched::OwnFunctions, |it| {
        Some((it.own?, it.type_name))
    });
    matching.by(keys, Matched::OwnFunctions, |it| it.own);
    // What a stack calls, in no order.
    let called = |side: usize, site: usize| {
        let stack = [old, new][side].sites[site].stack.iter();
        let mut called: Vec<u32> = stack.map(|&it| functions[side][it as usize]).collect();
        called.sort_unstable();
        called
    };
    matching.similar(keys, called);
    let [old, new] = matching.left;
    let alone = |old, new| Pair {
        old,
        new,
        matched: Matched::Not,
    };
    let gone = old.into_iter().map(|site| alone(Some(site), None));
    let added = new.into_iter().map(|site| alone(None, Some(site)));
    matching
        .pairs
        .into_iter()
        .chain(gone)
        .chain(added)
        .collect()
}

struct Matching {
    /// Sites of the two profiles that have no pair yet.
    left: [Vec<usize>; 2],
    pairs: Vec<Pair>,
}

impl Matching {
    /// Pairs sites of the same key, in order.
    fn by<K: Eq + Hash>(
        &mut self,
        keys: &[Vec<Keys>; 2],
        matched: Matched,
        key: impl Fn(&Keys) -> Option<K>,
    ) {
        // Lists of sites with the same key: the first and the last, and what follows each.
        let mut ends: HashMap<K, [usize; 2]> = HashMap::new();
        let mut next = vec![usize::MAX; keys[1].len()];
        for &site in &self.left[1] {
            let Some(key) = key(&keys[1][site]) else {
                continue;
            };
            let ends = ends.entry(key).or_insert([site, site]);
            if ends[1] != site {
                next[ends[1]] = site;
                ends[1] = site;
            }
        }
        let mut taken = vec![false; keys[1].len()];
        self.left[0].retain(|&old| {
            let same = key(&keys[0][old]).and_then(|key| ends.get_mut(&key));
            let Some(first) = same.map(|it| &mut it[0]).filter(|it| **it != usize::MAX) else {
                return true;
            };
            let new = *first;
            *first = next[new];
            taken[new] = true;
            self.pairs.push(Pair {
                old: Some(old),
                new: Some(new),
                matched,
            });
            false
        });
        self.left[1].retain(|&new| !taken[new]);
    }

    /// Pairs sites at the same function with similar stacks, the most similar first.
    fn similar(&mut self, keys: &[Vec<Keys>; 2], called: impl Fn(usize, usize) -> Vec<u32>) {
        let mut places: HashMap<u32, Vec<(usize, Vec<u32>)>> = HashMap::new();
        for &site in &self.left[1] {
            let at_place = places.entry(keys[1][site].place).or_default();
            at_place.push((site, called(1, site)));
        }
        let mut found: Vec<(f64, usize, usize)> = Vec::new();
        let mut seen: HashMap<u32, usize> = HashMap::new();
        for &old in &self.left[0] {
            let it = &keys[0][old];
            // Where there are many, those of about the same rank.
            let rank = seen.entry(it.place).or_default();
            let news = places.get(&it.place).map_or(&[][..], |news| news);
            let first = rank.saturating_sub(MAX_COMPARED / 2);
            let first = first.min(news.len().saturating_sub(MAX_COMPARED));
            *rank += 1;
            let mine = called(0, old);
            for (new, theirs) in news.iter().skip(first).take(MAX_COMPARED) {
                let score = similarity(&mine, theirs);
                if score >= SIMILAR {
                    found.push((score, old, *new));
                }
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let mut taken = [0, 1].map(|side| vec![false; keys[side].len()]);
        for (_, old, new) in found {
            if !taken[0][old] && !taken[1][new] {
                (taken[0][old], taken[1][new]) = (true, true);
                self.pairs.push(Pair {
                    old: Some(old),
                    new: Some(new),
                    matched: Matched::Similar,
                });
            }
        }
        for (left, taken) in self.left.iter_mut().zip(taken) {
            left.retain(|&site| !taken[site]);
        }
    }
}

/// What two sorted lists have in common, as a part of what they have.
fn similarity(a: &[u32], b: &[u32]) -> f64 {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, common) = (i + 1, j + 1, common + 1),
        }
    }
    2.0 * f64::from(common) / (a.len() + b.len()).max(1) as f64
}

/// A function's name without what changes with each build: numbers of closures and clones, and
/// addresses, for which the module stands.
fn function(frame: &Frame) -> String {
    let name = &frame.function;
    if frame.file.is_empty() && (name.is_empty() || name.contains("0x")) {
        return frame.module.clone();
    }
    let mut text = String::with_capacity(name.len());
    let mut rest = &**name;
    while let Some((before, after)) = rest.split_once("{closure#") {
        text.extend([before, "{closure"]);
        rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
    }
    text.push_str(rest);
    for suffix in [".llvm.", ".constprop.", ".isra.", ".part.", ".cold"] {
        if let Some(at) = text.find(suffix) {
            text.truncate(at);
        }
    }
    text
}

/// A bound on a change; as text, `[site:PLACE:]METRIC>+5%`, `<-0.05` and the like.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// Ends the path of a site's file, or is a part of its function's name; the whole process
    /// without.
    pub place: Option<String>,
    /// What is bounded.
    pub metric: Metric,
    /// The change that is allowed: negative for a number that must not fall by more.
    pub change: f64,
    /// Whether the change is a part of the old value.
    pub is_part: bool,
}

/// Gates separated by commas. A comma between double quotes is a part of a place, as in
/// `site:"Map<K, V>":bytes>+0`.
///
/// # Errors
///
/// If one is no gate.
pub fn gates(text: &str) -> Result<Vec<Gate>, String> {
    let mut is_quoted = false;
    let between = |char| {
        is_quoted ^= char == '"';
        char == ',' && !is_quoted
    };
    text.split(between).map(str::parse).collect()
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Gate, String> {
        let wrong = |why: &str| format!("{text:?} is no gate: {why}");
        let at = text.rfind(['>', '<']).ok_or_else(|| {
            wrong("write METRIC>+CHANGE or METRIC<-CHANGE, as peak>+5% or usage<-0.05")
        })?;
        let (what, bound) = (text[..at].trim(), text[at + 1..].trim());
        let sign = if text[at..].starts_with('>') {
            '+'
        } else {
            '-'
        };
        let Some(number) = bound.strip_prefix(sign) else {
            return Err(wrong("a change has a sign: > goes with +, < with -"));
        };
        let (number, is_part) = match number.strip_suffix('%') {
            Some(number) => (number, true),
            None => (number, false),
        };
        let number = { number.parse().ok() }
            .filter(|number: &f64| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| wrong("after the sign comes a number, or one with %"))?;
        let (place, metric) = match what.strip_prefix("site:") {
            None => (None, what),
            Some(rest) => match rest.rsplit_once(':') {
                Some((place, metric)) if !place.is_empty() => {
                    let quoted = place.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
                    (Some(quoted.unwrap_or(place).to_owned()), metric)
                }
                _ => return Err(wrong("a site is written as site:PLACE:METRIC")),
            },
        };
        let known = Metric::NAMES
            .iter()
            .find(|(name, _)| *name == metric.trim());
        let Some(&(_, metric)) = known else {
            let names: Vec<&str> = Metric::NAMES.iter().map(|&(name, _)| name).collect();
            return Err(wrong(&format!("metrics are {}", names.join(", "))));
        };
        let size = if is_part { number / 100.0 } else { number };
        Ok(Gate {
            place,
            metric,
            change: if sign == '+' { size } else { -size },
            is_part,
        })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            let quote = if place.contains(',') { "\"" } else { "" };
            write!(f, "site:{quote}{place}{quote}:")?;
        }
        let is_above = !self.change.is_sign_negative();
        let sign = if is_above { ">" } else { "<" };
        let (number, unit) = if self.is_part {
            (self.change * 100.0, "%")
        } else {
            (self.change, "")
        };
        write!(f, "{}{sign}{number:+}{unit}", self.metric.name())
    }
}

/// The gates that the new profile fails, a sentence for each.
///
/// # Errors
///
/// If a gate is on sites of which neither profile has any, or on what one of them does not know.
pub fn breaches(old: &Profile, new: &Profile, gates: &[Gate]) -> Result<Vec<String>, String> {
    let sides = [old, new].map(|profile| Side {
        profile,
        scores: scores(profile, &Options::default()),
        waits: None,
    });
    let mut breaches = Vec::new();
    for gate in gates {
        let sites = [old, new].map(|it| gate.place.as_ref().map(|place| at_place(it, place)));
        if let [Some(old), Some(new)] = &sites
            && old.is_empty()
            && new.is_empty()
        {
            return Err(format!("{gate}: neither profile has a site there"));
        }
        let [before, after] = [0, 1].map(|side| match &sites[side] {
            None => sides[side].total(gate.metric),
            Some(sites) => sides[side].of_sites(gate.metric, sites),
        });
        let is_alone = sites.iter().flatten().any(Vec::is_empty);
        let (Some(before), Some(after)) = (before, after) else {
            if is_alone {
                // Scores of sites that are new, or gone, cannot be compared.
                continue;
            }
            return Err(format!(
                "{gate}: a profile does not know it; is the program instrumented?"
            ));
        };
        let change = after - before;
        let bound = if gate.is_part {
            gate.change * before
        } else {
            gate.change
        };
        let is_above = !gate.change.is_sign_negative();
        if (is_above && change > bound) || (!is_above && change < bound) {
            let part = 100.0 * change / before;
            let part = match part.is_finite() {
                true => format!(", {part:+.1} %"),
                false => String::new(),
            };
            let [before, after] = [before, after].map(|it| gate.metric.text(it));
            breaches.push(format!("{gate}: {before} -> {after}{part}"));
        }
    }
    Ok(breaches)
}

/// The sites that are shown there.
fn at_place(profile: &Profile, place: &str) -> Vec<usize> {
    let is_there = |site: &Site| {
        let frame = site.place.or(site.stack.first().copied());
        let frame = frame.map(|frame| &profile.frames[frame as usize]);
        frame.is_some_and(|it| {
            let is_file = it.file.strip_suffix(place);
            is_file.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
                || it.function.contains(place)
        })
    };
    let sites = profile.sites.iter().enumerate();
    sites
        .filter(|(_, site)| is_there(site))
        .map(|(index, _)| index)
        .collect()
}

#[cfg(test)]
mod tests;
