//! Which chunks are recorded if not all are, as numbers: what the runtime has in common with
//! programs that sample themselves.
//!
//! Points lie at random (a Poisson process) in the bytes that a thread asks for; a chunk may be
//! recorded if one lies in it. Then chance decides once more, so that of chunks of `size` bytes
//! exactly one in [`weight`] is, an integer; sums count it for so many. Chunks of at least
//! `sample` bytes are all recorded.

use core::sync::atomic::{AtomicU8, Ordering};

use super::weight;

/// Points are so much denser that no size has a lower chance than it must have: 1 - exp(-s/d) is
/// at least 1/ceil(1/s) for s in (0, 1) if d is at most 1/(2 ln 2).
const DENSITY: f64 = 0.72;

/// Whether a chunk of fewer than `sample` bytes is recorded after which no byte is left of
/// `until_point`, the bytes until the thread's next point. Then that is drawn anew. `random` is the
/// thread's, and 0 before its first chunk: no point has been drawn then, and `seed` begins.
pub fn is_taken(
    [size, sample]: [u64; 2],
    until_point: &mut i64,
    random: &mut u64,
    seed: impl FnOnce() -> u64,
) -> bool {
    let mean = sample as f64 * DENSITY;
    if *random == 0 {
        *random = seed() | 1;
        *until_point = gap(random, mean) - size.cast_signed();
        if *until_point > 0 {
            return false;
        }
    }
    *until_point = gap(random, mean);
    let chance = 1.0 - exp_of_negative(size as f64 / mean);
    uniform(random) * chance * weight(size, sample) as f64 <= 1.0
}

/// Bytes until the next point.
#[expect(clippy::cast_possible_truncation, reason = "a random number")]
fn gap(random: &mut u64, mean: f64) -> i64 {
    (-ln(uniform(random)) * mean) as i64 + 1
}

/// A number above 0 and at most 1, by a xorshift generator.
fn uniform(random: &mut u64) -> f64 {
    let mut x = *random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *random = x;
    let mixed = x.wrapping_mul(0x2545_f491_4f6c_dd1d);
    ((mixed >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

/// The natural logarithm of a number above 0: `core` has none.
fn ln(number: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = number.to_bits();
    let exponent = (bits >> 52).cast_signed() - 1023;
    let part = f64::from_bits(bits & MANTISSA | 1023 << 52);
    // ln m = 2 artanh s; s is at most 1/3.
    let s = (part - 1.0) / (part + 1.0);
    let series = (0..16)
        .rev()
        .fold(0.0, |sum, k| sum * s * s + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * core::f64::consts::LN_2 + 2.0 * s * series
}

/// exp(-x) for x in [0, 2].
fn exp_of_negative(x: f64) -> f64 {
    (1..=30)
        .rev()
        .fold(1.0, |sum, n| 1.0 - x / f64::from(n) * sum)
}

const BITS: u32 = 16;

/// By a hash of its address, how many recorded chunks are alive. A count that is full stays so.
#[derive(Debug)]
pub struct Alive([AtomicU8; 1 << BITS]);

impl Alive {
    /// No chunk is alive.
    pub const fn none() -> Alive {
        Alive([const { AtomicU8::new(0) }; 1 << BITS])
    }

    #[inline(always)]
    fn count(&self, address: u64) -> &AtomicU8 {
        let hash = (address >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.0[(hash >> (64 - BITS)) as usize]
    }

    /// Whether a chunk may be one that was recorded and is alive.
    #[inline(always)]
    pub fn may_have(&self, address: u64) -> bool {
        self.count(address).load(Ordering::Relaxed) != 0
    }

    /// A chunk was recorded.
    pub fn add(&self, address: u64) {
        // Another thread gets to know the address after this, from who has allocated it.
        self.change(address, more);
    }

    /// A chunk that was recorded is freed.
    #[inline(always)]
    pub fn remove(&self, address: u64) {
        self.change(address, fewer);
    }

    #[inline(always)]
    fn change(&self, address: u64, to: fn(u8) -> Option<u8>) {
        let count = self.count(address);
        let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, to);
    }

    /// No chunk is alive any more.
    pub fn clear(&self) {
        (self.0.iter()).for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

fn more(count: u8) -> Option<u8> {
    count.checked_add(1)
}

fn fewer(count: u8) -> Option<u8> {
    (count < u8::MAX).then(|| count.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_those_of_std() {
        for n in 1..=1000 {
            let x = f64::from(n) / 1000.0;
            assert!((ln(x) - x.ln()).abs() < 1e-12, "{x}");
            assert!((ln(x * 1e-9) - (x * 1e-9).ln()).abs() < 1e-12, "{x}");
            assert!((exp_of_negative(2.0 * x) - (-2.0 * x).exp()).abs() < 1e-12);
        }
    }

    #[test]
    fn no_size_has_a_lower_chance_than_it_must_have() {
        let sample = 1 << 19;
        for size in (1..sample)
            .step_by(7)
            .chain([sample / 2, sample / 3, sample - 1])
        {
            let chance = 1.0 - exp_of_negative(size as f64 / (sample as f64 * DENSITY));
            assert!(chance * weight(size, sample) as f64 >= 1.0 - 1e-9, "{size}");
        }
    }

    #[test]
    fn a_count_that_is_full_stays_so() {
        let after = |change: fn(u8) -> Option<u8>, times: u32, count: u8| {
            (0..times).fold(count, |count, _| change(count).unwrap_or(count))
        };
        assert_eq!(after(fewer, 3, after(more, 3, 0)), 0);
        assert_eq!(after(fewer, 254, after(more, 254, 0)), 0);
        assert_eq!(after(fewer, 300, after(more, 255, 0)), u8::MAX);
    }
}
