//! Bounds on what may change.
//!
//! Gates see what is the same in each run of a deterministic program: counts, bytes, and times in
//! events. Seconds and simulated misses are in a [`Diff`](super::Diff), but no gate is on them.

use std::fmt;
use std::str::FromStr;

use super::{Metric, Side};
use crate::analyses::scores::{Options, scores};
use crate::profile::{Profile, Site};

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
        if !change.is_finite() {
            let [before, after] = [before, after].map(|it| gate.metric.text(it));
            return Err(format!("{gate}: {before} -> {after} is no number"));
        }
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
