//! Which chunks are recorded if not all are, for programs that are never stopped.
//!
//! Points lie at random (a Poisson process) in the bytes that a thread asks for; a chunk may be
//! recorded if one lies in it. Then chance decides once more, so that of chunks of `size` bytes
//! exactly one in [`weight`] is, an integer; sums count it for so many. Chunks of at least
//! `sample` bytes are all recorded.
//!
//! Other chunks cost a subtraction when they are allocated, and when they are freed a look into a
//! small table of counts by addresses.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::local::Local;
use super::{recording, sys};
use crate::capture_format::weight;

const BITS: u32 = 16;

/// By a hash of its address, how many recorded chunks are alive. One that is full stays so.
static ALIVE: [AtomicU8; 1 << BITS] = [const { AtomicU8::new(0) }; 1 << BITS];

/// Points are so much denser that no size has a lower chance than it must have: 1 - exp(-s/d) is
/// at least 1/ceil(1/s) for s in (0, 1) if d is at most 1/(2 ln 2).
const DENSITY: f64 = 0.72;

/// When the thread has allocated a chunk last that is not recorded.
const NEVER: u64 = u64::MAX;

/// [`Options::sample`](crate::capture_format::Options::sample), also for threads that are not, or
/// no longer, recorded.
static SAMPLE: AtomicU64 = AtomicU64::new(0);

/// Whether some chunks are not recorded.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    SAMPLE.load(Ordering::Relaxed) != 0
}

/// Whether no point lies in a new chunk that is small enough for chance. If not, ask [`takes`].
///
/// # Safety
///
/// `local` is the calling thread's.
#[inline(always)]
pub(crate) unsafe fn passes(local: *mut Local, size: usize) -> bool {
    let sample = SAMPLE.load(Ordering::Relaxed);
    let size = (size as u64).max(1);
    if size >= sample {
        return false;
    }
    // SAFETY: the block is this thread's (`# Safety`).
    unsafe {
        (*local).until_point -= size.cast_signed();
        (*local).last_allocated = NEVER;
        (*local).until_point > 0
    }
}

/// Whether a chunk is recorded that has not [passed](passes).
///
/// # Safety
///
/// As for [`passes`].
#[inline(always)]
pub(crate) unsafe fn takes(local: *mut Local, size: usize) -> bool {
    let sample = SAMPLE.load(Ordering::Relaxed);
    let size = (size as u64).max(1);
    // SAFETY: the block is this thread's (`# Safety`).
    size >= sample || unsafe { is_taken(local, size, sample) }
}

/// Whether a chunk that a point lies in is recorded.
///
/// # Safety
///
/// As for [`passes`].
#[cold]
#[inline(never)]
unsafe fn is_taken(local: *mut Local, size: u64, sample: u64) -> bool {
    let mean = sample as f64 * DENSITY;
    // SAFETY: the block is this thread's (`# Safety`).
    unsafe {
        if (*local).random == 0 {
            // The first chunk of the thread: no point has been drawn.
            (*local).random = sys::clocks().1 ^ (local as u64) << 20 | 1;
            (*local).until_point = gap(local, mean) - size.cast_signed();
            if (*local).until_point > 0 {
                return false;
            }
        }
        (*local).until_point = gap(local, mean);
        let chance = 1.0 - exp_of_negative(size as f64 / mean);
        uniform(local) * chance * weight(size, sample) as f64 <= 1.0
    }
}

/// Bytes until the next point.
///
/// # Safety
///
/// As for [`passes`].
unsafe fn gap(local: *mut Local, mean: f64) -> i64 {
    // SAFETY: the block is this thread's (`# Safety`).
    let drawn = unsafe { -ln(uniform(local)) * mean };
    drawn as i64 + 1
}

/// A number above 0 and at most 1, by a xorshift generator.
///
/// # Safety
///
/// As for [`passes`].
unsafe fn uniform(local: *mut Local) -> f64 {
    // SAFETY: the block is this thread's (`# Safety`).
    unsafe {
        let mut x = (*local).random;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (*local).random = x;
        let mixed = x.wrapping_mul(0x2545_f491_4f6c_dd1d);
        ((mixed >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }
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

#[inline(always)]
fn alive(address: u64) -> &'static AtomicU8 {
    let hash = (address >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    &ALIVE[(hash >> (64 - BITS)) as usize]
}

/// Whether a chunk may be one that was recorded and is alive.
#[inline(always)]
pub(crate) fn may_have(address: u64) -> bool {
    alive(address).load(Ordering::Relaxed) != 0
}

/// A chunk was recorded.
pub(crate) fn add(address: u64) {
    // Another thread gets to know the address after this, from who has allocated it.
    let _ = alive(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
}

/// A chunk that was recorded is freed.
#[inline(always)]
pub(crate) fn remove(address: u64) {
    if is_on() {
        let _ = alive(address).fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
    }
}

fn more(count: u8) -> Option<u8> {
    count.checked_add(1)
}

fn fewer(count: u8) -> Option<u8> {
    (count < u8::MAX).then(|| count.saturating_sub(1))
}

/// For a new capture.
pub(crate) fn begin() {
    SAMPLE.store(recording::options().sample, Ordering::Relaxed);
    ALIVE
        .iter()
        .for_each(|count| count.store(0, Ordering::Relaxed));
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
