//! The clock: accesses and allocations of all threads, which each adds up now and then.

use core::sync::atomic::{AtomicU64, Ordering};

use super::capture::{LOCK, header, thread};
use super::counts::add64;
use super::local::Local;
use super::recording::several_threads;

/// Accesses until a thread adds its events to the capture's.
pub(crate) const QUOTA: u64 = 1 << 16;

/// Adds this thread's events and one more to the capture's; returns the time of that one.
///
/// # Safety
///
/// `local` is the calling thread's, with a number; the capture is mapped, and the caller holds
/// the lock.
#[inline(always)]
pub(crate) unsafe fn event(local: *mut Local) -> u64 {
    // SAFETY: `local` is this thread's, and the lock is held (`# Safety`). Other threads add events
    // once they have taken it, or, if it is shared, by atomics.
    unsafe {
        (*local).now += 1;
        add_events(local, !LOCK.is_shared())
    }
}

/// Adds this thread's events to the capture's; returns the time.
///
/// # Safety
///
/// `local` is the calling thread's, with a number, and the capture is mapped.
pub(crate) unsafe fn sync(local: *mut Local) -> u64 {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe { add_events(local, false) }
}

/// # Safety
///
/// As for [`sync`]; no other thread adds events meanwhile if this one is `alone`.
#[inline(always)]
unsafe fn add_events(local: *mut Local, alone: bool) -> u64 {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        // A signal handler may have ended between the fast path's load of the time and its store.
        (*local).now = (*local).now.max((*local).synced);
        let mine = (*local).now - (*local).synced;
        let events = AtomicU64::from_ptr(&raw mut (*header()).events);
        let mut before = mine;
        if alone {
            // One instruction, within which no signal handler adds others.
            core::arch::asm!("xadd qword ptr [{}], {}", in(reg) events.as_ptr(),
                inout(reg) before, options(nostack));
        } else {
            before = events.fetch_add(mine, Ordering::Relaxed);
        }
        let time = before + mine;
        // What other threads have added meanwhile does not count as accesses of this one.
        // Nor does what the clock was ahead of the capture's.
        let ahead = time.wrapping_sub((*local).now);
        (*local).limit = (*local).limit.wrapping_add(ahead);
        (*local).now = time;
        (*local).synced = time;
        let of_thread = thread((*local).thread);
        (*of_thread).events += mine;
        let [reads, writes] = core::mem::take(&mut (*local).other);
        if reads | writes != 0 {
            let many = several_threads();
            add64(&raw mut (*header()).other_reads, reads, many);
            add64(&raw mut (*header()).other_writes, writes, many);
        }
        time
    }
}

/// Puts the thread's clock forward to `time`, which another thread has given a chunk: between two
/// quotas, and while a thread waits, its clock falls behind. No event is counted.
///
/// # Safety
///
/// `local` is the calling thread's.
pub(crate) unsafe fn catch_up(local: *mut Local, time: u64) {
    // SAFETY: `local` is the calling thread's (`# Safety`), so nobody else uses the block.
    unsafe {
        let behind = time.saturating_sub((*local).now);
        if behind > 0 {
            (*local).now += behind;
            (*local).synced += behind;
            (*local).limit = (*local).limit.saturating_add(behind);
        }
    }
}
