//! What of curves and chunks goes into a page: as much as a screen shows.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::analyses::findings::Finding;
use crate::analyses::misses::Misses;
use crate::profile::{Chunk, Point, Profile};

/// Points of a curve, and chunks, that the first sites in the ranking have.
const MOST: usize = 256;
/// The site of rank `r` has a part of `SHARED / r` of these.
const SHARED: usize = 32_768;
/// Points that each site has.
const LEAST_POINTS: usize = 3;

/// How many points and chunks each site is worth: the sites that are looked at first have more.
#[derive(Debug)]
pub(super) struct Quotas {
    /// By site, from 0, the first.
    ranks: Vec<usize>,
}

impl Quotas {
    /// Ranks sites by the best place that they have in any order a reader may ask for.
    pub(super) fn new(profile: &Profile, findings: &[Finding], misses: Option<&Misses>) -> Quotas {
        let sites = &profile.sites;
        let mut saving: HashMap<usize, f64> = HashMap::new();
        for finding in findings {
            let share = saving.entry(finding.site).or_default();
            *share = share.max(finding.weight());
        }
        let waits = misses.iter().flat_map(|misses| &misses.sites);
        let waits: HashMap<usize, f64> = waits.map(|it| (it.site, it.wait_ns)).collect();
        let mut best = vec![usize::MAX; sites.len()];
        let of = |map: &HashMap<usize, f64>, site: usize| map.get(&site).copied().unwrap_or(0.0);
        let keys: [&dyn Fn(usize) -> f64; 6] = [
            &|site| of(&saving, site),
            &|site| of(&waits, site),
            &|site| sites[site].at_peak_usable as f64,
            &|site| sites[site].peak_usable as f64,
            &|site| sites[site].allocations as f64,
            &|site| sites[site].drag,
        ];
        for key in keys {
            let mut order: Vec<(f64, usize)> = (0..sites.len()).map(|it| (key(it), it)).collect();
            order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            for (place, (_, site)) in order.into_iter().enumerate() {
                best[site] = best[site].min(place);
            }
        }
        let mut order: Vec<usize> = (0..sites.len()).collect();
        order.sort_unstable_by_key(|&site| (best[site], Reverse(sites[site].usable), site));
        let mut ranks = vec![0; sites.len()];
        order
            .into_iter()
            .enumerate()
            .for_each(|(rank, site)| ranks[site] = rank);
        Quotas { ranks }
    }

    pub(super) fn rank(&self, site: usize) -> usize {
        self.ranks[site]
    }

    pub(super) fn chunks(&self, site: usize) -> usize {
        (SHARED / (self.ranks[site] + 1)).min(MOST)
    }

    pub(super) fn points(&self, site: usize) -> usize {
        self.chunks(site).max(LEAST_POINTS)
    }
}

/// A curve of at most `most` points. A point stands for those after it that are left out: it has
/// the sum of their allocations, the largest peak, and the last value of all else.
pub(super) fn thin(curve: &[Point], most: usize) -> Vec<Point> {
    let group = curve.len().div_ceil(most.max(1)).max(1);
    let merged = |points: &[Point]| {
        let (first, last) = (points.first()?, points.last()?);
        Some(Point {
            time: first.time,
            ns: first.ns,
            peak: points.iter().map(|it| it.peak.max(it.usable)).max()?,
            allocations: points
                .iter()
                .fold(0, |sum, it| it.allocations.saturating_add(sum)),
            ..*last
        })
    };
    curve.chunks(group).filter_map(merged).collect()
}

/// Some chunks of each site: the first ones without a gap, so that the order of allocations and
/// frees shows, and then each `step`-th.
#[derive(Debug)]
pub(super) struct ChunkSample {
    sites: Vec<OfSite>,
}

#[derive(Debug)]
struct OfSite {
    quota: usize,
    kept: Vec<Chunk>,
    seen: u64,
    step: u64,
}

impl ChunkSample {
    pub(super) fn new(quotas: &Quotas, sites: usize) -> ChunkSample {
        let of_site = |site| OfSite {
            quota: quotas.chunks(site),
            kept: Vec::new(),
            seen: 0,
            step: 1,
        };
        ChunkSample {
            sites: (0..sites).map(of_site).collect(),
        }
    }

    /// Takes in chunks, in the order of the profile.
    pub(super) fn add(&mut self, chunks: &[Chunk]) {
        for chunk in chunks {
            let site = usize::try_from(chunk.site).ok();
            if let Some(site) = site.and_then(|it| self.sites.get_mut(it)) {
                site.add(chunk);
            }
        }
    }

    /// By site, in order of allocation.
    pub(super) fn finish(self) -> Vec<Vec<Chunk>> {
        let sorted = |mut site: OfSite| {
            site.kept
                .sort_by_key(|chunk| (chunk.allocated, chunk.freed));
            site.kept
        };
        self.sites.into_iter().map(sorted).collect()
    }
}

impl OfSite {
    /// A third of the quota is for the first chunks. When the rest is full, each second one goes.
    fn add(&mut self, chunk: &Chunk) {
        let first = self.quota.div_ceil(3);
        let at = self.seen;
        self.seen += 1;
        if self.quota == 0 || !(self.kept.len() < first || at.is_multiple_of(self.step)) {
            return;
        }
        if self.kept.len() == self.quota {
            self.step *= 2;
            let (mut number, step) = (0, self.step);
            let old_step = step / 2;
            // Those after the first are multiples of the old step, in order.
            let begin = (first as u64).div_ceil(old_step);
            self.kept.retain(|_| {
                number += 1;
                let position = number - 1;
                position < first || (begin + (position - first) as u64).is_multiple_of(2)
            });
            if !at.is_multiple_of(step) || self.kept.len() == self.quota {
                return;
            }
        }
        self.kept.push(*chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::{point, profile};

    #[test]
    fn thin_curves_keep_peaks_and_sums() {
        let curve: Vec<Point> = (0..10)
            .map(|i| point(i + 1, [5, 90, 7][(i % 3) as usize], i))
            .collect();
        let thinned = thin(&curve, 4);
        assert_eq!(thinned.len(), 4);
        assert!(thinned[..3].iter().all(|point| point.peak == 90));
        assert_eq!(thinned.iter().map(|it| it.allocations).sum::<u64>(), 1000);
        assert_eq!((thinned[0].time, thinned[0].touched), (1, 2));
        assert_eq!(thin(&curve, 10), curve);
        assert!(thin(&[], 3).is_empty());
    }

    /// From a thousand chunks come the first in a row, and the others evenly.
    #[test]
    fn samples_have_the_first_chunks_and_some_of_all_others() {
        let mut site = OfSite {
            quota: 30,
            kept: Vec::new(),
            seen: 0,
            step: 1,
        };
        let chunk = |allocated| Chunk {
            site: 0,
            address: 0,
            size: 8,
            thread: 0,
            shared: false,
            allocated,
            first: 0,
            last: 0,
            freed: 0,
            reads: 0,
            writes: 0,
            touched: 0,
        };
        (0..1000).for_each(|at| site.add(&chunk(at)));
        let times: Vec<u64> = site.kept.iter().map(|it| it.allocated).collect();
        assert_eq!(times[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!((15..=30).contains(&times.len()), "{times:?}");
        let steps: Vec<u64> = times[10..].windows(2).map(|it| it[1] - it[0]).collect();
        assert!(steps.iter().all(|&step| step == site.step), "{times:?}");
        assert!(times[times.len() - 1] > 900, "{times:?}");
    }

    /// The first sites of the six orders come before all others.
    #[test]
    fn sites_with_findings_come_first() {
        let run = profile();
        let found = crate::analyses::findings::findings(&run, &Default::default());
        let quotas = Quotas::new(&run, &found, None);
        assert!(quotas.rank(found[0].site) < 6);
        assert_eq!(quotas.chunks(found[0].site), MOST);
    }
}
