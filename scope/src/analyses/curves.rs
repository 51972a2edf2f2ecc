//! Curves as step functions, what explains them, and how fast memory is allocated.
//!
//! A sample holds until the next one (`VampirTrace`: M. Jurenz et al., 2007): a counter is written
//! when it changes. There is no line between two samples, and before the first one the value is 0.

use serde::Serialize;

use crate::analyses::units::{rounded, sum};
use crate::profile::{Point, Profile, Resident};

/// A value over time, constant between its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StepFunction {
    steps: Vec<Step>,
}

/// From `ns` after the start on, the value is `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Nanoseconds since the start.
    pub ns: u64,
    /// Bytes.
    pub value: u64,
}

impl StepFunction {
    /// Usable bytes of chunks.
    #[must_use]
    pub fn allocated(points: &[Point]) -> StepFunction {
        StepFunction::new(points.iter().map(|point| (point.ns, point.usable)))
    }

    /// Bytes that the program asked for.
    #[must_use]
    pub fn requested(points: &[Point]) -> StepFunction {
        StepFunction::new(points.iter().map(|point| (point.ns, point.requested)))
    }

    /// Bytes of chunks that were read or written so far.
    #[must_use]
    pub fn touched(points: &[Point]) -> StepFunction {
        StepFunction::new(points.iter().map(|point| (point.ns, point.touched)))
    }

    /// Bytes of the process that are in memory.
    #[must_use]
    pub fn resident(samples: &[Resident]) -> StepFunction {
        StepFunction::new(samples.iter().map(|sample| (sample.ns, sample.bytes)))
    }

    /// Leaves out steps that change nothing, and those before the newest.
    fn new(samples: impl Iterator<Item = (u64, u64)>) -> StepFunction {
        let mut steps: Vec<Step> = Vec::new();
        for (ns, value) in samples {
            match steps.last_mut() {
                Some(last) if last.value == value || ns < last.ns => {}
                Some(last) if last.ns == ns => last.value = value,
                _ => steps.push(Step { ns, value }),
            }
        }
        StepFunction { steps }
    }

    /// The steps, in order of time.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The value at a time.
    #[must_use]
    pub fn at(&self, ns: u64) -> u64 {
        let after = self.steps.partition_point(|step| step.ns <= ns);
        after.checked_sub(1).map_or(0, |i| self.steps[i].value)
    }

    /// The largest value from `from` to `to`, both included.
    #[must_use]
    pub fn max(&self, from: u64, to: u64) -> u64 {
        let first = self.steps.partition_point(|step| step.ns <= from);
        let inside = self.steps[first..].iter().take_while(|step| step.ns <= to);
        inside.map(|step| step.value).fold(self.at(from), u64::max)
    }

    /// Byte-seconds from the start to `end`.
    #[must_use]
    pub fn integral(&self, end: u64) -> f64 {
        let ends = self.steps.iter().skip(1).map(|step| step.ns).chain([end]);
        let areas = self.steps.iter().zip(ends).map(|(step, next)| {
            step.value as f64 * next.min(end).saturating_sub(step.ns) as f64 / 1e9
        });
        areas.sum()
    }
}

/// The duration of the run in nanoseconds.
#[must_use]
pub fn end_ns(profile: &Profile) -> u64 {
    rounded(profile.run.seconds * 1e9)
}

/// What a site adds to the distance between allocated and touched bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Index of the site.
    pub site: usize,
    /// Usable bytes at the peak of the process.
    pub allocated: u64,
    /// Those of them that are touched at any time.
    pub touched: u64,
}

/// Where the bytes are that are allocated and not touched at the peak of the process: the sites
/// with the largest gap first; none without recorded accesses. What is touched later is in no gap.
#[must_use]
pub fn gap_at_peak(profile: &Profile) -> Vec<Gap> {
    if !profile.run.accesses {
        return Vec::new();
    }
    let gap_of = |(site, it): (usize, &crate::profile::Site)| {
        let allocated = it.at_peak_usable;
        Gap {
            site,
            allocated,
            touched: it.at_peak_touched.min(allocated),
        }
    };
    let mut gaps: Vec<Gap> = profile.sites.iter().enumerate().map(gap_of).collect();
    gaps.retain(|gap| !profile.sites[gap.site].unseen && gap.touched < gap.allocated);
    gaps.sort_by_key(|gap| (std::cmp::Reverse(gap.allocated - gap.touched), gap.site));
    gaps
}

/// A part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Seconds since the start.
    pub from: f64,
    /// Where the next begins.
    pub to: f64,
    /// Allocations within.
    pub allocations: u64,
    /// Allocations in a second.
    pub rate: f64,
    /// The most usable bytes within.
    pub peak: u64,
}

/// The run in `parts` phases of the same duration. An allocation counts where the point of the
/// curve lies that has it.
#[must_use]
pub fn phases(profile: &Profile, parts: u32) -> Vec<Phase> {
    let length = profile.run.seconds / f64::from(parts.max(1));
    let of_part = |part: u32| {
        let [from, to] = [f64::from(part), f64::from(part) + 1.0].map(|at| at * length);
        let [begin, end] = [from, to].map(|at| rounded(at * 1e9));
        // The last phase has what the clock puts behind the end.
        let is_last = part + 1 == parts;
        let first = profile.curve.partition_point(|point| point.ns < begin);
        let after = profile
            .curve
            .partition_point(|point| point.ns < end || is_last);
        let points = &profile.curve[first..after.max(first)];
        let before = first.checked_sub(1).map_or(0, |i| profile.curve[i].usable);
        let allocations = sum(points.iter().map(|point| point.allocations));
        Phase {
            from,
            to,
            allocations,
            rate: if length > 0.0 {
                allocations as f64 / length
            } else {
                0.0
            },
            peak: points.iter().map(|point| point.peak).fold(before, u64::max),
        }
    };
    (0..parts).map(of_part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::{point, profile};

    fn steps(samples: &[(u64, u64)]) -> StepFunction {
        StepFunction::new(samples.iter().copied())
    }

    #[test]
    fn a_sample_holds_until_the_next() {
        let curve = steps(&[(10, 5), (20, 5), (30, 8), (30, 9), (25, 1), (40, 2)]);
        let pairs: Vec<(u64, u64)> = curve
            .steps()
            .iter()
            .map(|step| (step.ns, step.value))
            .collect();
        assert_eq!(pairs, [(10, 5), (30, 9), (40, 2)]);
        assert_eq!([9, 10, 29, 30, 99].map(|ns| curve.at(ns)), [0, 5, 5, 9, 2]);
        assert_eq!(
            (curve.max(0, 9), curve.max(0, 10), curve.max(30, 35)),
            (0, 5, 9)
        );
        assert_eq!((curve.max(35, 99), curve.max(41, 99)), (9, 2));
    }

    /// 4 bytes for 2 s, then 10 for 3 s, then 0: `4 * 2 + 10 * 3 = 38`; up to 4 s, `8 + 10 * 2`.
    #[test]
    fn integral_is_in_byte_seconds() {
        let second = 1_000_000_000;
        let curve = steps(&[(second, 4), (3 * second, 10), (6 * second, 0)]);
        assert!((curve.integral(9 * second) - 38.0).abs() < 1e-9);
        assert!((curve.integral(4 * second) - (8.0 + 10.0)).abs() < 1e-9);
        assert!(steps(&[]).integral(second).abs() < 1e-9);
    }

    /// Chunks of two sites are seen: 100 of 400 bytes are touched, and 600 of 1,000.
    #[test]
    fn the_gap_at_the_peak_is_explained_by_site() {
        let mut run = profile();
        run.sites.truncate(2);
        (run.sites[0].at_peak_usable, run.sites[0].at_peak_touched) = (400, 100);
        (run.sites[1].at_peak_usable, run.sites[1].at_peak_touched) = (1000, 600);
        let gap = |site, allocated, touched| Gap {
            site,
            allocated,
            touched,
        };
        assert_eq!(gap_at_peak(&run), [gap(1, 1000, 600), gap(0, 400, 100)]);
        run.sites[0].at_peak_touched = 400;
        assert_eq!(gap_at_peak(&run), [gap(1, 1000, 600)]);
        run.sites[1].unseen = true;
        assert_eq!(gap_at_peak(&run), []);
        run.sites[1].unseen = false;
        run.run.accesses = false;
        assert_eq!(gap_at_peak(&run), []);
    }

    /// 2 s in two phases: 3 + 4 allocations at 0 and 0.5 s, 8 at 1 s and 1 behind the end.
    #[test]
    fn phases_count_allocations() {
        let mut run = profile();
        run.run.seconds = 2.0;
        let at = |ns, peak, allocations| Point {
            ns,
            peak,
            usable: peak / 2,
            allocations,
            ..point(1, 0, 0)
        };
        run.curve = vec![
            at(0, 10, 3),
            at(500_000_000, 90, 4),
            at(1_000_000_000, 20, 8),
            at(2_100_000_000, 30, 1),
        ];
        let phases = phases(&run, 2);
        let counts: Vec<(u64, u64)> = phases.iter().map(|it| (it.allocations, it.peak)).collect();
        // The second phase begins with the 45 bytes that the first one left.
        assert_eq!(counts, [(7, 90), (9, 45)]);
        assert!((phases[0].rate - 7.0).abs() < 1e-9 && (phases[1].rate - 9.0).abs() < 1e-9);
    }
}
