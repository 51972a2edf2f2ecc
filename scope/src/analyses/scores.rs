//! Scores of sites from 0, wasteful, to 1: S. Byma and J. Larus, *Detailed Heap Profiling* (2018).
//!
//! | score | low when | section |
//! |---|---|---|
//! | lifetime | many chunks live shortly and close together in time | 4.1.1 |
//! | usage | bytes are not used, or only read, or only written | 4.1.2 |
//! | useful lifetime | chunks wait for their first use, or for their free after the last | 4.1.3 |
//!
//! Chunks that are alive at the end count as freed then. A score that the profile cannot know is
//! `None`: usage and useful lifetime without recorded accesses, usage of chunks of no bytes.

use crate::analyses::units::ratio;
use crate::profile::{Group, Profile, Site};

/// The parameters that the paper names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Chunks of a site that are allocated within this part of the run of each other are one group.
    /// The paper has 0.1 %. A smaller part than that may be coarser than asked, as the runtime
    /// stores groups and not chunks.
    pub group_threshold: f64,
    /// Groups whose chunks live longer than this part of the run on average are not of "short
    /// lifetime chunks", and score 1. `None`, the default, is the paper's formula: all groups
    /// count.
    pub short: Option<f64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            group_threshold: 0.001,
            short: None,
        }
    }
}

/// The scores of one site.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Scores {
    /// See [`lifetime`].
    pub lifetime: Option<f64>,
    /// See [`usage`].
    pub usage: Option<f64>,
    /// See [`useful_lifetime`].
    pub useful_lifetime: Option<f64>,
}

impl Scores {
    /// The geometric mean of those scores that are known (4.2.1, "severity indicator"): 1 is good.
    /// One score of 0 makes it 0. `None` if no score is known.
    #[must_use]
    pub fn severity(&self) -> Option<f64> {
        let known = [self.lifetime, self.usage, self.useful_lifetime];
        let known: Vec<f64> = known.into_iter().flatten().collect();
        (!known.is_empty()).then(|| geometric_mean(&known))
    }

    /// The severity as one of twelve colours, from 0, the worst, to 11 (4.2.1).
    #[must_use]
    pub fn colour(&self) -> Option<usize> {
        let severity = self.severity()?;
        (0..12).rev().find(|&step| severity >= step as f64 / 12.0)
    }
}

/// Whether what the program does with the chunks of a site is seen.
fn is_seen(profile: &Profile, site: &Site) -> bool {
    profile.run.accesses && !site.unseen
}

/// The scores of all sites, in their order.
#[must_use]
pub fn scores(profile: &Profile, options: &Options) -> Vec<Scores> {
    let events = |part: f64| part * profile.run.end as f64;
    let threshold = events(options.group_threshold);
    let short = options.short.map(events);
    let of_site = |site: &Site| Scores {
        lifetime: lifetime(&site.groups, threshold, short),
        usage: is_seen(profile, site).then(|| usage(site)).flatten(),
        useful_lifetime: { is_seen(profile, site).then(|| useful_lifetime(site)) }.flatten(),
    };
    profile.sites.iter().map(of_site).collect()
}

/// The lifetime score (4.1.1): the mean of `(sum of lifetimes) / (|g| * G_l)` over groups `g` of
/// chunks that were allocated close together. The group lifetime `G_l` goes from the earliest
/// allocation to the latest free.
///
/// `groups` are merged while the next begins within `threshold` events of the last allocation of
/// the one before. See [`Options`] for `short`, also in events. `None` without chunks.
#[must_use]
pub fn lifetime(groups: &[Group], threshold: f64, short: Option<f64>) -> Option<f64> {
    let groups = merged(groups, threshold);
    let score = |group: &Group| {
        let lifetimes = group.lifetimes as f64;
        let is_long = short.is_some_and(|short| lifetimes > short * group.chunks as f64);
        let life = group.last_freed.saturating_sub(group.first_allocated);
        match is_long {
            true => 1.0,
            // A life of nothing is that of a damaged profile.
            false => (lifetimes / (group.chunks as f64 * life.max(1) as f64)).min(1.0),
        }
    };
    let sum: f64 = groups.iter().map(score).sum();
    (!groups.is_empty()).then(|| sum / groups.len() as f64)
}

/// The groups of a larger threshold than that with which `groups` were stored.
fn merged(groups: &[Group], threshold: f64) -> Vec<Group> {
    let mut merged: Vec<Group> = Vec::new();
    for group in groups.iter().filter(|group| group.chunks > 0) {
        match merged.last_mut() {
            Some(last)
                if group.first_allocated.saturating_sub(last.last_allocated) as f64
                    <= threshold =>
            {
                last.last_allocated = last.last_allocated.max(group.last_allocated);
                last.chunks = last.chunks.saturating_add(group.chunks);
                last.lifetimes = last.lifetimes.saturating_add(group.lifetimes);
                last.last_freed = last.last_freed.max(group.last_freed);
            }
            _ => merged.push(*group),
        }
    }
    merged
}

/// The usage score (4.1.2): `(sum of U_c * accessed bytes) / (sum of bytes)`; `U_c` is 0 for a
/// chunk that was never read or never written, and else 1.
///
/// Accessed bytes are counted one by one up to 1024 bytes and in blocks of 64 above; the paper has
/// the distance from the lowest to the highest. `None` if no byte was asked for.
#[must_use]
pub fn usage(site: &Site) -> Option<f64> {
    (site.chunk_bytes() > 0).then(|| ratio(site.useful_bytes, site.chunk_bytes()).min(1.0))
}

/// The useful lifetime score (4.1.3): the mean over chunks of the time from first to last access,
/// divided by the chunk's lifetime. `None` without chunks.
#[must_use]
pub fn useful_lifetime(site: &Site) -> Option<f64> {
    let chunks = site.allocations as f64;
    (site.allocations > 0).then(|| (site.active_ratio / chunks).clamp(0.0, 1.0))
}

/// How a score is spread over the sites of a program (end of 4.1.3).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Spread {
    /// Sites whose score is known.
    pub sites: usize,
    /// The paper's global score: the `n`-th root of the product. **0 if any site scores 0**, which
    /// one write-only buffer does; then the next two say more.
    pub geometric_mean: f64,
    /// Sites that score 0.
    pub zeros: usize,
    /// The geometric mean of the sites that do not score 0; 0 if all do.
    pub geometric_mean_of_others: f64,
    /// The arithmetic mean, which the variance is about.
    pub mean: f64,
    /// The mean of the squared distances from the mean.
    pub variance: f64,
}

/// The global scores.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Global {
    /// Spread of [`lifetime`] over the sites.
    pub lifetime: Option<Spread>,
    /// Spread of [`usage`] over the sites.
    pub usage: Option<Spread>,
    /// Spread of [`useful_lifetime`] over the sites.
    pub useful_lifetime: Option<Spread>,
}

/// Means and variances over all sites; `None` where no site has the score.
#[must_use]
pub fn global(scores: &[Scores]) -> Global {
    let of = |score: fn(&Scores) -> Option<f64>| {
        spread(&scores.iter().filter_map(score).collect::<Vec<f64>>())
    };
    Global {
        lifetime: of(|scores| scores.lifetime),
        usage: of(|scores| scores.usage),
        useful_lifetime: of(|scores| scores.useful_lifetime),
    }
}

fn spread(values: &[f64]) -> Option<Spread> {
    if values.is_empty() {
        return None;
    }
    let mean_of = |values: &mut dyn Iterator<Item = f64>, n: usize| values.sum::<f64>() / n as f64;
    let others: Vec<f64> = values
        .iter()
        .copied()
        .filter(|&value| value > 0.0)
        .collect();
    let mean = mean_of(&mut values.iter().copied(), values.len());
    Some(Spread {
        sites: values.len(),
        geometric_mean: geometric_mean(values),
        zeros: values.len() - others.len(),
        geometric_mean_of_others: match others.is_empty() {
            true => 0.0,
            false => geometric_mean(&others),
        },
        mean,
        variance: mean_of(
            &mut values.iter().map(|value| (value - mean).powi(2)),
            values.len(),
        ),
    })
}

/// By logarithms, as a product of many small numbers is 0; `ln 0` is minus infinity, whose
/// exponential is 0 again.
fn geometric_mean(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().map(|value| value.ln()).sum();
    (sum / values.len() as f64).exp()
}

/// The part of sites that is marked: "top 90th percentile".
pub const TOP_PART: f64 = 0.1;
/// A run of growing sizes is no accident if sizes in random order have one with at most this
/// probability.
pub const RUN_CHANCE: f64 = 0.05;
/// A place in memory that was allocated so often was allocated in a loop.
pub const LOOP_ROUNDS: u64 = 10;
/// `realloc`s of one object that show that it grew.
pub const GROWTH_STEPS: u64 = 3;
/// Chunks are of short use below this score of useful lifetime.
pub const SHORT_USE: f64 = 0.1;

/// What the paper infers besides the scores (4.1.5), and the patterns of its figure 3.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Inferences {
    /// At most a tenth of the sites have a larger peak.
    pub most_bytes: bool,
    /// At most a tenth of the sites have more chunks.
    pub most_chunks: bool,
    /// Chunks that were read and never written; 0 where accesses are not known.
    pub read_only_chunks: u64,
    /// Chunks that were written and never read.
    pub write_only_chunks: u64,
    /// The longest run of allocations each larger than the one before.
    pub longest_run: u64,
    /// Whether that run is too long for chance, see [`RUN_CHANCE`].
    pub is_growing: bool,
    /// Those that were found.
    pub patterns: Vec<Pattern>,
}

/// A typical inefficient life of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// Figure 3b: allocated in a loop, used, freed, allocated again. At least [`LOOP_ROUNDS`] times
    /// as many allocations as there ever were chunks at a time.
    Loop,
    /// Figure 3c: a vector that grows. One object was `realloc`ed [`GROWTH_STEPS`] times, or sizes
    /// grow in a run that is no accident.
    Growth,
    /// Figure 3d: the first and the last access lie close together in a long life. The score of
    /// useful lifetime is below [`SHORT_USE`], and the chunks were accessed at all.
    ShortUse,
}

/// The inferences of all sites, in their order. `scores` are those of the same profile.
#[must_use]
pub fn inferences(profile: &Profile, scores: &[Scores]) -> Vec<Inferences> {
    let sites = &profile.sites;
    let top = |value: fn(&Site) -> u64| {
        let mut values: Vec<u64> = sites.iter().map(value).collect();
        values.sort_unstable_by(|a, b| b.cmp(a));
        let last = (sites.len() as f64 * TOP_PART).ceil();
        // The last of the marked tenth; sites that have as much are marked, too.
        values
            .into_iter()
            .zip(1u32..)
            .take_while(|&(_, rank)| f64::from(rank) <= last)
            .last()
    };
    let (bytes, chunks) = (top(|site| site.peak_usable), top(|site| site.allocations));
    let of_site = |(site, scores): (&Site, &Scores)| {
        let is_growing = is_growing(site.longest_run, site.allocations);
        let accessed = site.reads.saturating_add(site.writes) > 0;
        let is_loop = site.peak_chunks > 0
            && site.allocations >= site.peak_chunks.saturating_mul(LOOP_ROUNDS);
        let grows = is_growing || site.longest_chain >= GROWTH_STEPS;
        let short = scores
            .useful_lifetime
            .is_some_and(|score| score < SHORT_USE)
            && accessed;
        let found = [
            (is_loop, Pattern::Loop),
            (grows, Pattern::Growth),
            (short, Pattern::ShortUse),
        ];
        Inferences {
            most_bytes: bytes.is_some_and(|(least, _)| site.peak_usable >= least),
            most_chunks: chunks.is_some_and(|(least, _)| site.allocations >= least),
            read_only_chunks: if site.unseen {
                0
            } else {
                site.unwritten_chunks
            },
            write_only_chunks: if site.unseen { 0 } else { site.unread_chunks },
            longest_run: site.longest_run,
            is_growing,
            patterns: found
                .into_iter()
                .filter_map(|(is, pattern)| is.then_some(pattern))
                .collect(),
        }
    };
    sites.iter().zip(scores).map(of_site).collect()
}

/// Whether a row of growing sizes is no chance. In `n` sizes of random order a given row of `r`
/// grows with probability `1/r!`, and there are `n - r + 1` rows.
fn is_growing(run: u64, allocations: u64) -> bool {
    let rows = allocations.saturating_sub(run).saturating_add(1) as f64;
    // 30! is larger than any number of rows.
    let orders: f64 = (1..=run.min(30)).map(|i| i as f64).product();
    run > 1 && rows / orders <= RUN_CHANCE
}

#[cfg(test)]
mod tests;
