//! Prefetching.
//!
//! A morph touches nodes that are scattered over memory, in an order that it knows in advance.
//! Prefetching the node that comes [`AHEAD`] steps later overlaps the misses; a core has about 18
//! to 20 in flight.

/// How many steps before its use a node is prefetched.
pub(crate) const AHEAD: usize = 24;

/// How many lines of a node are prefetched; the hardware follows on its own in larger ones.
const LINES_MAX: usize = 4;
const LINE_BYTES: usize = 64;

/// Prefetches an object of `bytes` at any address, valid or not.
#[inline]
pub(crate) fn object<T>(ptr: *const T, bytes: usize) {
    let mut at = ptr.cast::<u8>();
    for _ in 0..bytes.div_ceil(LINE_BYTES).min(LINES_MAX) {
        line(at);
        at = at.wrapping_add(LINE_BYTES);
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn line(ptr: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: the instruction is part of SSE, which every x86_64 target has. It is a hint: for an
    // address that is not mapped it does nothing.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(ptr.cast()) }
}

/// Elsewhere the hardware overlaps what it can by itself.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn line(_ptr: *const u8) {}
