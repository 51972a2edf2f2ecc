//! Chunks that come at one pace all the time, and stay.
//!
//! From outside, a leak looks like what a program builds or caches. So this is said only of a
//! program that still runs, or was stopped, of a site that frees nothing, and of a pace that never
//! falls: a cache that fills, or an interner that has seen most names, slows down.

use super::{Finding, Kind, Search};
use crate::analyses::curves::{StepFunction, end_ns};
use crate::analyses::leaks;
use crate::analyses::units::{bytes, ratio, seconds, sum};
use crate::profile::{Exit, Profile, Site};

/// In a shorter run most of what grows is still being built.
const MIN_SECONDS: f64 = 10.0;
/// Fewer may be chance.
const MIN_CHUNKS: u64 = 100;
/// A site frees nothing if it frees no larger part of its chunks.
const FREED: f64 = 0.01;
/// Parts of the run in each of which the site grows. The program starts in the first.
const PARTS: u64 = 16;
/// By how much at least, as a part of the mean: between bursts it grows less.
const PART: f64 = 0.5;
/// The pace of the second half, as a part of that of the first. What grows with the 0.9th power of
/// time has less.
const PACE: f64 = 0.9;
/// Older chunks that are freed, as a part of those that stay: what replaces these grows as well.
const REPLACED: f64 = 0.25;

impl Search<'_> {
    /// A site that grows without an end in sight.
    pub(super) fn steady(&self, site: &Site) -> Option<Finding> {
        let profile = self.profile;
        // Where accesses are seen, chunks that nobody uses any more are told as such.
        let is_unknown = !profile.run.accesses && leaks::total(profile).is_none();
        if !is_unknown
            || !is_open_ended(profile)
            || site.end_chunks < MIN_CHUNKS
            || ratio(site.frees, site.allocations) > FREED
            || ratio(profile.total.unknown_frees, site.end_chunks) > REPLACED
        {
            return None;
        }
        let end = end_ns(profile);
        let curve = StepFunction::allocated(&site.curve);
        let at = |part: u64| curve.at(end / PARTS * part);
        let rises = (1..PARTS).map(|part| at(part + 1).checked_sub(at(part)));
        let rises: Vec<u64> = rises.collect::<Option<_>>()?;
        let grown = sum(rises.iter().copied());
        let mean = grown as f64 / rises.len() as f64;
        let (first, second) = rises.split_at(rises.len() / 2);
        let pace = |of: &[u64]| sum(of.iter().copied()) as f64 / of.len() as f64;
        let is_steady = rises.iter().all(|&rise| rise as f64 >= PART * mean)
            && pace(second) >= PACE * pace(first);
        if grown == 0 || !is_steady {
            return None;
        }
        let sentence = format!(
            "{} more in {}, evenly, and nothing freed: a leak, or a cache far from its limit",
            bytes(grown),
            seconds(profile.run.seconds * (PARTS - 1) as f64 / PARTS as f64)
        );
        self.of_peak(Kind::SteadyGrowth, grown, sentence)
    }
}

/// Whether the program would have gone on: a snapshot, or a run that a signal ended.
fn is_open_ended(profile: &Profile) -> bool {
    let run = &profile.run;
    matches!(run.exit, Exit::Unknown | Exit::Signal(_)) && run.seconds >= MIN_SECONDS
}
