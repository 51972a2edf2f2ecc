//! Bounds on what may change.
//!
//! Gates see what is the same in each run of a deterministic program: counts, bytes, and times in
//! events. Seconds and simulated misses are in a [`Diff`](super::Diff), but no gate is on them.

use std::fmt;
use std::str::FromStr;

use super::{GROWN, Metric, Side};
use crate::analyses::scores::{Options, scores};
use crate::profile::{Profile, Site};

/// A bound on a change; as text, `[site:PLACE:]METRIC>+5%`, `<-0.05` and the like; or on the new
/// value alone, without a sign: `leaked>0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// Ends the path of a site's file, or is a part of its function's name; the whole process
    /// without.
    pub place: Option<String>,
    /// What is bounded.
    pub metric: Metric,
    /// Whether the value must not be above the bound, or not below it.
    pub is_above: bool,
    /// The change that is allowed: negative for a number that must not fall by more. Or the value.
    pub bound: f64,
    /// What the bound is of.
    pub of: Bound,
}

/// What a gate's number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The difference of new and old value.
    Change,
    /// The same, as a part of the old value.
    Part,
    /// The new value itself.
    Value,
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
        let (what, number) = (text[..at].trim(), text[at + 1..].trim());
        let is_above = text[at..].starts_with('>');
        let sign = if is_above { '+' } else { '-' };
        let (number, of) = match number.strip_prefix(sign) {
            None if number.starts_with(['+', '-']) || number.ends_with('%') => {
                return Err(wrong("> goes with +, < with -, and only changes have a %"));
            }
            None => (number, Bound::Value),
            Some(change) => match change.strip_suffix('%') {
                Some(part) => (part, Bound::Part),
                None => (change, Bound::Change),
            },
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
        let all = || Metric::NAMES.into_iter().chain([(GROWN, Metric::Grown)]);
        let known = all().find(|(name, _)| *name == metric.trim());
        let Some((_, metric)) = known else {
            let names: Vec<&str> = all().map(|(name, _)| name).collect();
            return Err(wrong(&format!("metrics are {}", names.join(", "))));
        };
        let size = match of {
            Bound::Part => number / 100.0,
            _ => number,
        };
        let is_fall = !is_above && of != Bound::Value;
        Ok(Gate {
            place,
            metric,
            is_above,
            bound: if is_fall { -size } else { size },
            of,
        })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            let quote = if place.contains(',') { "\"" } else { "" };
            write!(f, "site:{quote}{place}{quote}:")?;
        }
        let (name, sign) = (self.metric.name(), if self.is_above { ">" } else { "<" });
        match self.of {
            Bound::Value => write!(f, "{name}{sign}{}", self.bound),
            Bound::Change => write!(f, "{name}{sign}{:+}", self.bound),
            Bound::Part => write!(f, "{name}{sign}{:+}%", self.bound * 100.0),
        }
    }
}

/// The gates that a profile fails by itself.
///
/// # Errors
///
/// As for [`breaches`], and if a gate is on a change.
pub fn exceeded(profile: &Profile, gates: &[Gate]) -> Result<Vec<String>, String> {
    match gates.iter().find(|gate| gate.of != Bound::Value) {
        Some(gate) => Err(format!("{gate}: it takes two profiles: `ccscope diff`")),
        None => breaches(profile, profile, gates),
    }
}

/// The gates that the new profile fails, a sentence for each.
///
/// # Errors
///
/// If a gate is on sites of which neither profile has any, on what one of them does not know, or on
/// sums that are beyond numbers.
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
        let before = if gate.of == Bound::Value {
            after
        } else {
            before
        };
        let (Some(before), Some(after)) = (before, after) else {
            if is_alone {
                // Scores of sites that are new, or gone, cannot be compared.
                continue;
            }
            let why = match gate.metric {
                Metric::Leaked => "was it made by `ccscope run --leaks`?",
                Metric::Grown => "it takes snapshots of one run: `ccscope diff A B C`",
                _ => "is the program instrumented?",
            };
            return Err(format!("{gate}: a profile does not know it; {why}"));
        };
        let change = after - before;
        if !change.is_finite() {
            let [before, after] = [before, after].map(|it| gate.metric.text(it));
            return Err(format!("{gate}: {before} -> {after} is no number"));
        }
        let (value, bound) = match gate.of {
            Bound::Value => (after, gate.bound),
            Bound::Change => (change, gate.bound),
            Bound::Part => (change, gate.bound * before),
        };
        if (gate.is_above && value > bound) || (!gate.is_above && value < bound) {
            let part = 100.0 * change / before;
            let part = match part.is_finite() {
                true => format!(", {part:+.1} %"),
                false => String::new(),
            };
            let [before, after] = [before, after].map(|it| gate.metric.text(it));
            breaches.push(match gate.of {
                Bound::Value => format!("{gate}: {after}"),
                _ => format!("{gate}: {before} -> {after}{part}"),
            });
        }
    }
    Ok(breaches)
}

/// The sites that are shown there.
pub(crate) fn at_place(profile: &Profile, place: &str) -> Vec<usize> {
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
