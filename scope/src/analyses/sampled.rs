//! How far the sums of a sampled profile may be from what they stand for.
//!
//! Of chunks of s bytes one in w = ceil(T/s) is recorded, by chance, and counts for w. The sum of
//! bytes over n chunks is then right on average, with a variance of n s² (w - 1), which is below T
//! times the bytes; that of chunks is n (w - 1), below T/s times the chunks. Chunks of at least T
//! bytes are all recorded.

use serde::Serialize;

use super::units::{bytes, percent};
use crate::profile::{Profile, Site};

/// Standard deviations within which the truth is in 95 of 100 runs.
const DEVIATIONS: f64 = 1.96;

/// Half the widths of intervals that hold the truth in at least 95 of 100 runs; zeros if nothing
/// was left to chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Within {
    /// Of [`Site::requested`].
    pub requested: f64,
    /// Of [`Site::allocations`].
    pub allocations: f64,
    /// Of [`Site::at_peak_requested`].
    pub at_peak_requested: f64,
    /// Of [`Site::end_chunks`].
    pub end_chunks: f64,
}

/// Those of the sums over these sites.
#[must_use]
pub fn within<'p>(profile: &Profile, sites: impl IntoIterator<Item = &'p Site>) -> Within {
    let sample = profile.run.sample;
    let variances = { sites.into_iter() }
        .filter(|site| site.smallest < sample)
        .map(|site| {
            let of_bytes = sample as f64;
            let of_chunks = of_bytes / site.smallest.max(1) as f64;
            Within {
                requested: of_bytes * site.requested as f64,
                allocations: of_chunks * site.allocations as f64,
                at_peak_requested: of_bytes * site.at_peak_requested as f64,
                end_chunks: of_chunks * site.end_chunks as f64,
            }
        });
    let all = variances.fold(Within::default(), |a, b| Within {
        requested: a.requested + b.requested,
        allocations: a.allocations + b.allocations,
        at_peak_requested: a.at_peak_requested + b.at_peak_requested,
        end_chunks: a.end_chunks + b.end_chunks,
    });
    let half = |variance: f64| DEVIATIONS * variance.sqrt();
    Within {
        requested: half(all.requested),
        allocations: half(all.allocations),
        at_peak_requested: half(all.at_peak_requested),
        end_chunks: half(all.end_chunks),
    }
}

/// How exact a sampled profile is.
#[must_use]
pub fn sentence(profile: &Profile) -> Option<String> {
    let sample = Some(profile.run.sample).filter(|&sample| sample > 0)?;
    let within = within(profile, &profile.sites);
    let part = |half: f64, of: u64| percent(half / of.max(1) as f64);
    let sizes = bytes(sample);
    Some(format!(
        "Sampled: of chunks under {sizes} about one in each {sizes} is recorded, and counts for \
         the others. In 95 of 100 runs the bytes in all are within {}, those at the peak within \
         {}.",
        part(within.requested, profile.total.requested),
        part(within.at_peak_requested, profile.total.peak_requested),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Run;

    #[test]
    fn large_chunks_are_exact_and_errors_of_others_add_up() {
        let site = |smallest, allocations| Site {
            smallest,
            allocations,
            requested: smallest * allocations,
            ..Site::default()
        };
        let profile = |sample| Profile {
            run: Run {
                sample,
                ..Run::default()
            },
            sites: vec![site(100, 10_000), site(1_000_000, 50), site(100, 30_000)],
            ..Profile::default()
        };
        let of = |sample: u64, sites: &[usize]| {
            let profile = profile(sample);
            within(&profile, sites.iter().map(|&site| &profile.sites[site]))
        };
        assert_eq!(of(0, &[0, 1, 2]), Within::default());
        assert_eq!(of(10_000, &[1]), Within::default());
        let one = of(10_000, &[0]);
        assert!((one.requested - 1.96 * 1e5).abs() < 1.0, "{one:?}");
        assert!((one.allocations - 1.96 * 1e3).abs() < 0.1, "{one:?}");
        let all = of(10_000, &[0, 1, 2]);
        assert!((all.requested - 2.0 * one.requested).abs() < 1.0, "{all:?}");
    }
}
