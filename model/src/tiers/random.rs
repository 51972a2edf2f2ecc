//! Sets that give up any block, each as often.
//!
//! The content of such a set is known in closed form where requests are independent (W. F. King,
//! "Analysis of demand paging algorithms", IFIP Congress 1971; E. Gelenbe, "A Unified Approach to
//! the Evaluation of a Class of Replacement Algorithms", IEEE Transactions on Computers 1973): a
//! set of blocks is there with a probability in proportion to the product of their rates. With
//! `e_k` the elementary symmetric polynomials of all rates, a set of `a` ways misses
//!
//! ```text
//! (a + 1) e_(a + 1) / e_a
//! ```
//!
//! requests an operation. How they fall to the blocks follows closely enough from one time `t` for
//! all of them,
//!
//! ```text
//! absent = 1 / (1 + lambda t),     sum of present over the set's blocks = a
//! ```
//!
//! scaled to that sum.

use super::classes::Class;
use super::sets::{Member, Tables};

/// Beyond so many ways the one time is exact enough, and polynomials take long.
const EXACT_WAYS: usize = 128;

/// As `Solver::solve`: only the first average, misses by request, is known; the others are those of
/// a set that forgets at the time at which it has missed as often as it has ways.
pub(crate) fn solve(
    members: &[Member],
    share: f64,
    ways: usize,
    classes: &[Class],
    tables: &Tables<'_>,
    out: &mut Vec<f64>,
) {
    out.clear();
    let rates: Vec<(f64, f64)> = members
        .iter()
        .map(|m| {
            let rate = classes[m.class as usize].stream.rate();
            (rate, f64::from(m.blocks))
        })
        .collect();
    let time = characteristic_time(&rates, share, ways as f64);
    let absent = |rate: f64| {
        if time.is_infinite() {
            0.0
        } else {
            1.0 / (1.0 + rate * time)
        }
    };
    let scale = if share >= 1.0 && ways <= EXACT_WAYS && time.is_finite() {
        let estimate: f64 = rates.iter().map(|&(r, n)| n * r * absent(r)).sum();
        if estimate > 0.0 {
            exact_misses(&rates, ways) / estimate
        } else {
            1.0
        }
    } else {
        1.0
    };
    for (member, &(rate, _)) in members.iter().zip(&rates) {
        let missed = (absent(rate) * scale).min(1.0);
        let column = nearest(missed, tables.averaged[0].row(member.class));
        out.push(missed);
        out.extend(
            tables.averaged[1..]
                .iter()
                .map(|table| table.row(member.class)[column]),
        );
    }
}

/// The place in a row of descending survivals at which this share survives.
fn nearest(missed: f64, row: &[f64]) -> usize {
    row.partition_point(|&survives| survives > missed)
        .min(row.len() - 1)
}

/// The time at which the blocks that are present fill the set; infinite when all fit.
fn characteristic_time(rates: &[(f64, f64)], share: f64, ways: f64) -> f64 {
    let requested = rates.iter().filter(|&&(rate, _)| rate > 0.0);
    let all: f64 = requested.map(|&(_, blocks)| blocks * share).sum();
    if all <= ways {
        return f64::INFINITY;
    }
    // Presence is concave in time: Newton's method comes from the left.
    let mut time = 0.0;
    for _ in 0..200 {
        let (mut present, mut slope) = (0.0, 0.0);
        for &(rate, blocks) in rates {
            let absent = 1.0 / (1.0 + rate * time);
            present += share * blocks * (1.0 - absent);
            slope += share * blocks * rate * absent * absent;
        }
        let step = (ways - present) / slope;
        if !(step > time * 1e-12 && step.is_finite()) {
            break;
        }
        time += step;
    }
    time
}

/// `(a + 1) e_(a + 1) / e_a` of the rates.
fn exact_misses(rates: &[(f64, f64)], ways: usize) -> f64 {
    let total: f64 = rates.iter().map(|&(rate, blocks)| rate * blocks).sum();
    if total <= 0.0 {
        return 0.0;
    }
    // e_k of rates that add up to 1 is at most 1 / k!; times k! it stays in range.
    let mut scaled = vec![0.0; ways + 2];
    scaled[0] = 1.0;
    for &(rate, blocks) in rates {
        let rate = rate / total;
        let mut left = blocks;
        while left > 0.5 {
            for k in (1..scaled.len()).rev() {
                scaled[k] += k as f64 * rate * scaled[k - 1];
            }
            left -= 1.0;
        }
    }
    // (a + 1) e_(a+1) / e_a = (a + 1) (s_(a+1) / (a+1)!) / (s_a / a!) = s_(a+1) / s_a.
    if scaled[ways] > 0.0 {
        total * scaled[ways + 1] / scaled[ways]
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ways_of_three_equal_blocks_miss_a_third() {
        assert!((exact_misses(&[(0.2, 3.0)], 2) - 0.2).abs() < 1e-12);
        let time = characteristic_time(&[(0.2, 3.0)], 1.0, 2.0);
        assert!((1.0 / (1.0 + 0.2 * time) - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn unequal_blocks_as_counted_by_hand() {
        // One way, rates 1/2, 1/4, 1/4: present as often as requested, so 1 - (1/4 + 1/16 + 1/16)
        // misses.
        let rates = [(0.5, 1.0), (0.25, 2.0)];
        assert!((exact_misses(&rates, 1) - 0.625).abs() < 1e-12);
    }
}
