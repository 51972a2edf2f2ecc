//! What has changed between two runs, site by site.

mod gates;
mod matching;

use ccmodel::Machine;
use serde::Serialize;

use crate::analyses::leaks;
use crate::analyses::scores::{Options, Scores, global, scores};
use crate::analyses::units::{bytes, short_count, sum};
use crate::analyses::waits::waits_by_site;
use crate::profile::{Profile, Site};

pub use gates::{Bound, Gate, breaches, exceeded, gates};
pub use matching::{Matched, SIMILAR};

pub(crate) use gates::at_place;
pub(crate) use matching::pairs;

use matching::Pair;

/// A site whose parts of all totals have changed by less is taken for the same.
pub const MIN_COST: f64 = 0.001;

/// The name of [`Metric::Grown`].
const GROWN: &str = "grown";

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
    /// Bytes that nothing led to at the end, or leaked chunks alone.
    Leaked,
    /// Bytes by which sites have grown that grow in each snapshot: see [`growth`](super::growth).
    Grown,
    /// Chunks that were freed before their thread allocated another.
    Temporary,
    /// Bytes between their last access and their free, in the mean over the run.
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
    /// Those of one profile, with the names that gates use.
    pub const NAMES: [(&'static str, Metric); 12] = [
        ("peak", Metric::Peak),
        ("bytes", Metric::Bytes),
        ("requested", Metric::Requested),
        ("allocations", Metric::Allocations),
        ("end", Metric::End),
        ("leaked", Metric::Leaked),
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
        named.map_or(GROWN, |(name, _)| name)
    }

    /// A value as people read it.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        let sign = if value < 0.0 { "-" } else { "" };
        let whole = crate::analyses::units::rounded(value.abs());
        let text = match self {
            Metric::Peak
            | Metric::Bytes
            | Metric::Requested
            | Metric::End
            | Metric::Leaked
            | Metric::Grown
            | Metric::Drag => bytes(whole),
            Metric::Allocations | Metric::Temporary | Metric::Accesses => short_count(whole),
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
    /// Changes of the process; scores are means over its sites.
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
            waits: waits_by_site(profile, machine),
        }
    }

    fn mean_drag(&self, site: &Site) -> f64 {
        site.drag / self.profile.run.end.max(1) as f64
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
            Metric::Leaked => leaks::total(self.profile).map(|it| it.all_bytes() as f64),
            // Of a series.
            Metric::Grown => None,
            Metric::Temporary => Some(sum(sites.iter().map(|it| it.temporary)) as f64),
            Metric::Drag => accesses.then(|| sites.iter().map(|it| self.mean_drag(it)).sum()),
            Metric::Accesses => {
                accesses.then_some(total.heap_reads.saturating_add(total.heap_writes) as f64)
            }
            Metric::Lifetime => global().lifetime.map(|it| it.mean),
            Metric::Usage => global().usage.map(|it| it.mean),
            Metric::UsefulLifetime => global().useful_lifetime.map(|it| it.mean),
        }
    }

    /// The metric over some sites: a sum, or the mean of a score.
    fn of_sites(&self, metric: Metric, sites: &[usize]) -> Option<f64> {
        if let Some(score) = metric.score() {
            let known = || sites.iter().filter_map(|&site| score(&self.scores[site]));
            let count = known().count();
            return (count > 0).then(|| known().sum::<f64>() / count as f64);
        }
        if metric == Metric::Leaked {
            let leaked = sites.iter().map(|&site| leaks::of_site(self.profile, site));
            let all = leaked.map(|it| it.map(|it| it.all_bytes() as f64));
            return all.sum::<Option<f64>>().map(f64::abs);
        }
        let is_known = match metric {
            Metric::Drag | Metric::Accesses => self.profile.run.accesses,
            _ => metric != Metric::Grown,
        };
        let of_site = |site: &Site| match metric {
            Metric::Peak => site.peak_usable as f64,
            Metric::Bytes => site.usable as f64,
            Metric::Requested => site.requested as f64,
            Metric::Allocations => site.allocations as f64,
            Metric::End => site.end_usable as f64,
            Metric::Temporary => site.temporary as f64,
            Metric::Drag => self.mean_drag(site),
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

#[cfg(test)]
mod tests;
