//! Intervals of a gain from pairs of runs.
//!
//! Each pair gives the logarithm of one ratio. The interval is that of Yuen's trimmed mean (1974):
//! a run that something else disturbed is cut off, so it neither moves the mean nor widens the
//! interval. The interval is looked at several times, and each look is a chance to be wrong. Look
//! `k` may err with probability `ALPHA / (k * (k + 1))`; all looks together, however many there
//! are, err with probability `ALPHA`.

use crate::analyses::misses::Interval;

/// How probable it is that any of a comparison's intervals misses the true gain.
const ALPHA: f64 = 0.05;
/// The part of the pairs that is cut off at each end.
const TRIMMED: f64 = 0.15;
/// No gain is known better: a figure that a program prints may be rounded.
const MIN_HALF_WIDTH: f64 = 0.001;

/// Whether the interval is looked at after so many pairs: 3, 4, 6, 8, 11, 15, and so on.
pub(crate) fn is_look(pairs: usize) -> bool {
    let mut next = 3;
    while next < pairs {
        next = (next * 4).div_ceil(3);
    }
    next == pairs
}

/// The interval of the gain at look number `look`, counted from 1. `logs` are logarithms of the
/// pairs' gains, two at least.
pub(crate) fn of(logs: &[f64], look: u32) -> Interval {
    let look = f64::from(look);
    let (mean, half_width) = trimmed(logs, ALPHA / (look * (look + 1.0)));
    Interval {
        low: (mean - half_width).exp(),
        estimate: mean.exp(),
        high: (mean + half_width).exp(),
    }
}

/// What the gain exceeds with probability `risk` only, for one look.
pub(crate) fn unlikely_above(logs: &[f64], risk: f64) -> f64 {
    let (mean, half_width) = trimmed(logs, 2.0 * risk);
    (mean + half_width).exp()
}

/// The trimmed mean, and half the width of its interval at a two-sided `level`.
fn trimmed(logs: &[f64], level: f64) -> (f64, f64) {
    let mut sorted = logs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let len = sorted.len();
    let cut = (1..len)
        .filter(|&cut| cut as f64 <= TRIMMED * len as f64)
        .count();
    let kept = &sorted[cut..len - cut];
    let mean = kept.iter().sum::<f64>() / kept.len() as f64;
    // Winsorized: what is cut counts as the nearest that is kept.
    let (first, last) = (kept[0], kept[kept.len() - 1]);
    let values = || sorted.iter().map(|log| log.clamp(first, last));
    let centre = values().sum::<f64>() / len as f64;
    let squares: f64 = values().map(|log| (log - centre).powi(2)).sum();
    let deviation = (squares / (len as f64 - 1.0)).sqrt();
    let part = kept.len() as f64 / len as f64;
    let error = deviation / (part * (len as f64).sqrt());
    let half_width = student(kept.len() - 1, level) * error;
    (mean, half_width.max(MIN_HALF_WIDTH))
}

/// What Student's t exceeds in absolute value with probability `level`.
fn student(freedom: usize, level: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e6);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        match 1.0 - within(freedom, middle) > level {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// How probable it is that Student's t lies between `-t` and `t`: Abramowitz and Stegun (1964),
/// 26.7.3 and 26.7.4.
fn within(freedom: usize, t: f64) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sin, cos) = angle.sin_cos();
    let is_odd = freedom % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cos, cos) } else { (1.0, 1.0) };
    let first = if is_odd { 3 } else { 2 };
    for i in (first..freedom.saturating_sub(1)).step_by(2) {
        term *= cos * cos * (i - 1) as f64 / i as f64;
        sum += term;
    }
    match (is_odd, freedom) {
        (true, 1) => angle * std::f64::consts::FRAC_2_PI,
        (true, _) => (angle + sin * sum) * std::f64::consts::FRAC_2_PI,
        (false, _) => sin * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (freedom, level, expected) in [
            (1, 0.05, 12.706),
            (2, 0.05, 4.303),
            (3, 0.01, 5.841),
            (4, 0.05, 2.776),
            (7, 0.01, 3.499),
            (10, 0.05, 2.228),
            (31, 0.05, 2.040),
            (60, 0.01, 2.660),
        ] {
            let found = student(freedom, level);
            assert!(
                (found - expected).abs() < 1e-3,
                "{freedom} {level}: {found}"
            );
        }
    }

    #[test]
    fn looks_grow_further_apart() {
        let looks: Vec<usize> = (1..60).filter(|&pairs| is_look(pairs)).collect();
        assert_eq!(looks, [3, 4, 6, 8, 11, 15, 20, 27, 36, 48]);
    }

    #[test]
    fn outliers_do_not_widen_the_interval() {
        let mut logs: Vec<f64> = (0..20).map(|i| 0.1 + f64::from(i % 5 - 2) * 0.01).collect();
        let clean = of(&logs, 3);
        (logs[3], logs[12]) = (2.0, -3.0);
        let disturbed = of(&logs, 3);
        assert!((clean.estimate - disturbed.estimate).abs() < 0.01);
        assert!(disturbed.high - disturbed.low < 2.0 * (clean.high - clean.low));
        assert!(
            disturbed.low > 1.07 && disturbed.high < 1.14,
            "{disturbed:?}"
        );
        let same = of(&[0.0; 3], 1);
        assert!(same.low < 1.0 && same.high > 1.0);
    }
}
