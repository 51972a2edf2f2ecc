//! What the fast path leaves: first touches, accesses by another thread than before, windows and
//! block operations.
//!
//! Accesses take no lock, allocate nothing and make no system call. After a number of them a thread
//! calls [`pause`], which registers it, or begins or continues a window.

use core::sync::atomic::Ordering;

use super::capture::{chunk, header};
use super::counts::add64;
use super::entries::{touch, touched_by};
use super::fast_path::{self, access, add_one, flags_of, tally};
use super::local::{Local, local};
use super::recording::{self, several_threads};
use super::{lines, regions, shadow, threads, windows};
use crate::capture_format::{WATCHED, flags};

/// A load, in every case.
#[cold]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ccscope_load(address: u64, size: u64) {
    rare::<false>(address, size);
}

/// A store, in every case.
#[cold]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ccscope_store(address: u64, size: u64) {
    rare::<true>(address, size);
}

#[inline(always)]
fn rare<const WRITE: bool>(address: u64, size: u64) {
    let local = local();
    // SAFETY: the block is this thread's. The program accesses the chunk that is found, so nobody
    // frees it meanwhile: what all functions called here ask of its entry.
    unsafe {
        (*local).now += 1;
        let is_due = (*local).now > (*local).limit;
        if is_due {
            pause(local, address, size, WRITE);
        }
        let (id, full) = shadow::look_up(address);
        if id == 0 {
            (*local).other[usize::from(WRITE)] += 1;
            return;
        }
        let entry = chunk(id);
        let own = touched_by(local, entry);
        let now = (*local).now;
        let offset = address.wrapping_sub((*entry).start);
        if own {
            add_one::<WRITE, true>(entry);
        } else {
            add_one::<WRITE, false>(entry);
        }
        let is_drawn = is_due && WRITE && several_threads();
        if !own || is_drawn || fast_path::last_accessor(entry).load(Ordering::Relaxed) == WATCHED {
            lines::accessed::<WRITE>(local, entry, address, own);
        }
        fast_path::last(entry).store(now, Ordering::Relaxed);
        if !full || shadow::is_beyond_page(address, size) {
            touch(entry, offset, size);
            if flags_of(entry) & flags::HISTOGRAM != 0 {
                tally::<WRITE, 0>(local, entry, address, size);
            }
        }
    }
}

/// `len` bytes that a block operation reads or writes: one access.
pub(crate) fn block<const WRITE: bool>(address: u64, len: u64) {
    if len == 0 {
        return;
    }
    if recording::options().regions > 0 {
        return regions::touch::<WRITE>(address, len);
    }
    access::<WRITE>(address, len);
    if shadow::find(address) != 0 {
        // SAFETY: the counter is a field of the header.
        add64(
            unsafe { &raw mut (*header()).block_bytes },
            len,
            several_threads(),
        );
    }
}

/// What cannot be done at each access: begins a thread, a window or a new quota, and records the
/// access if a window is under way.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's.
#[cold]
#[inline(never)]
pub(crate) unsafe fn pause(local: *mut Local, address: u64, size: u64, write: bool) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        if !recording::active() {
            recording::require_table();
            (*local).limit = u64::MAX;
            return;
        }
        if (*local).thread == 0 {
            if (*local).busy {
                return;
            }
            threads::ensure_number(local);
            (*local).now += 1;
        }
        windows::pause(local, address, size, write);
    }
}
