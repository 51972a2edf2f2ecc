//! Counts and maps of the capture that signal handlers and other threads change meanwhile.

use core::sync::atomic::{AtomicU64, Ordering};

/// Adds to a count, of which `many` threads may know.
#[inline(always)]
pub(crate) fn add64(counter: *mut u64, amount: u64, many: bool) {
    // SAFETY: counters are aligned fields of the capture, which is mapped for good. One
    // instruction, so that what a signal handler counts in between is not lost.
    unsafe {
        if many {
            AtomicU64::from_ptr(counter).fetch_add(amount, Ordering::Relaxed);
        } else {
            core::arch::asm!("add qword ptr [{0}], {1}", in(reg) counter, in(reg) amount,
                options(nostack));
        }
    }
}

/// Sets bits of a map, of which `many` threads may know; returns what was set before.
#[inline(always)]
pub(crate) fn or64(map: &AtomicU64, mask: u64, many: bool) -> u64 {
    if many {
        return map.fetch_or(mask, Ordering::Relaxed);
    }
    let mut before = map.load(Ordering::Relaxed);
    loop {
        let (expected, map) = (before, map.as_ptr());
        // SAFETY: `map` is a reference, so the word is there and aligned. One thread writes, and
        // `cmpxchg` is one instruction: no signal handler comes in between.
        unsafe {
            core::arch::asm!("cmpxchg qword ptr [{0}], {1}", in(reg) map, in(reg) before | mask,
                inout("rax") before, options(nostack));
        }
        if before == expected {
            return before;
        }
    }
}

/// A word of a map, which others may change meanwhile.
///
/// # Safety
///
/// `place` is a word of the capture that is used by atomics, or by nobody.
#[inline(always)]
pub(crate) unsafe fn word(place: *mut u64) -> u64 {
    // SAFETY: words of the capture are aligned and mapped for good, and all who use this one at
    // once do so by atomics (`# Safety`).
    unsafe { AtomicU64::from_ptr(place) }.load(Ordering::Relaxed)
}
