//! Bursts of complete access records, at random times.
//!
//! The first accesses of the process are recorded without a gap, so that a short run is known
//! completely. After them, each thread records a window after a random gap, so that on average
//! one access in `rate` is recorded. When the capture is full, a window replaces a random one with
//! the chance that gives all windows the same (reservoir sampling).

use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use super::capture::{chunk, header, window};
use super::clock::{self, QUOTA};
use super::local::Local;
use super::{chunks, recording, shadow, sys};
use crate::capture_format::accesses::{Access, Coder, MAX_BYTES};
use crate::capture_format::{FIRST_WINDOW, MAX_WINDOWS, WINDOW, WINDOW_ROOM, Window};

/// Windows so far, the first included.
static BURSTS: AtomicU64 = AtomicU64::new(0);
/// A bit for each place of a window that is being written, without the first.
static IN_USE: AtomicU64 = AtomicU64::new(0);
/// Places that are used again.
const PLACES: u64 = MAX_WINDOWS - 1;
const _: () = assert!(PLACES <= 64);

/// For a new capture.
pub(crate) fn forget() {
    BURSTS.store(0, Ordering::Relaxed);
    IN_USE.store(0, Ordering::Relaxed);
}

/// Does what is due at this access: records it, begins or ends a window, or adds up events.
///
/// # Safety
///
/// `local` is the calling thread's, with a number; the capture is mapped; the program accesses
/// the bytes next.
pub(crate) unsafe fn pause(local: *mut Local, address: u64, size: u64, write: bool) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        let mark = 0_u8;
        let here = (&raw const mark) as u64;
        if (*local).pausing != 0 {
            // A handler of signals is further down the stack, or on one of its own. Any other has
            // left `work` by `siglongjmp`, perhaps between an access and what follows from it.
            if here < (*local).pausing || sys::is_on_signal_stack() {
                return;
            }
            end(local);
            wait(local);
        }
        if !chunks::looked_up() {
            if (*local).busy {
                // Asks again with the next access.
                return;
            }
            // A handler that leaves by `siglongjmp` would leave the lock held.
            let signals = sys::block_signals();
            (*local).busy = true;
            chunks::look_up();
            (*local).busy = false;
            sys::restore_signals(signals);
        }
        // The program reads these bytes next. If it cannot, its handler of that signal may never
        // return here, so nothing is begun yet. What the kernel has read may be gone.
        let due = !(*local).window.is_null() || (*local).gap == 0 && recording::options().rate > 0;
        let is_there = due && !(*local).busy && size == 8 && !write;
        let word = is_there
            .then(|| core::ptr::with_exposed_provenance::<u64>(address as usize).read_unaligned());
        (*local).pausing = here;
        compiler_fence(Ordering::SeqCst);
        work(local, address, size, write, word);
        compiler_fence(Ordering::SeqCst);
        (*local).pausing = 0;
    }
}

/// # Safety
///
/// As for [`pause`].
unsafe fn work(local: *mut Local, address: u64, size: u64, write: bool, word: Option<u64>) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        if (*local).window.is_null() {
            clock::sync(local);
            if (*local).gap > 0 || !begin(local) {
                return idle(local);
            }
        }
        let open = (*local).window;
        record(open, address, size, write, word);
        // A signal handler may have forked meanwhile: the child has no window yet.
        if (*local).window != open {
            return;
        }
        (*local).limit = (*local).now;
        if u64::from((*open).len) == len_of((*open).burst) {
            end(local);
            wait(local);
            idle(local);
        }
    }
}

/// Accesses of a window.
fn len_of(burst: u64) -> u64 {
    if burst == 0 { FIRST_WINDOW } else { WINDOW }
}

/// Sets the limit to the next window or the next quota.
///
/// # Safety
///
/// As for [`pause`].
unsafe fn idle(local: *mut Local) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        let quota = (*local).gap.min(QUOTA);
        (*local).gap -= quota;
        (*local).limit = (*local).now + quota;
    }
}

/// Begins a window if there is a place for it.
///
/// # Safety
///
/// As for [`pause`].
unsafe fn begin(local: *mut Local) -> bool {
    let rate = recording::options().rate;
    if rate == 0 {
        // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
        // capture, of which all else here is, stays mapped.
        unsafe { (*local).gap = u64::MAX };
        return false;
    }
    let burst = BURSTS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: `local` is this thread's (`# Safety`). Of the places, the first is used by the first
    // burst only, and each other by the thread that has set its bit in `IN_USE`.
    unsafe {
        if burst == 0 {
            open(local, 0, 0);
            return true;
        }
        let place = if burst <= PLACES {
            burst - 1
        } else {
            random(local) % burst
        };
        if place >= PLACES || IN_USE.fetch_or(1 << place, Ordering::Acquire) >> place & 1 == 1 {
            wait(local);
            return false;
        }
        open(local, 1 + place, burst);
        true
    }
}

/// # Safety
///
/// As for [`pause`].
unsafe fn open(local: *mut Local, index: u64, burst: u64) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        let new = window(index);
        ((*new).len, (*new).bytes) = (0, 0);
        (*new).time = (*local).now;
        (*new).thread = u32::from((*local).thread);
        (*new).burst = burst;
        (*new).coder = Coder::default();
        AtomicU64::from_ptr(&raw mut (*header()).windows).fetch_max(index + 1, Ordering::Relaxed);
        (*local).window = new;
    }
}

/// Ends the window under way, for instance because the thread ends.
///
/// # Safety
///
/// As for [`pause`].
pub(crate) unsafe fn end(local: *mut Local) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        if (*local).window.is_null() {
            return;
        }
        let burst = (*(*local).window).burst;
        let index =
            (*local).window.byte_offset_from(window(0)).cast_unsigned() as u64 / WINDOW_ROOM;
        (*local).window = core::ptr::null_mut();
        if burst > 0 {
            IN_USE.fetch_and(!(1 << (index - 1)), Ordering::Release);
        }
    }
}

/// Chooses the accesses until the thread's next window: evenly between 0 and twice the mean.
///
/// # Safety
///
/// As for [`pause`].
pub(crate) unsafe fn wait(local: *mut Local) {
    let mean = (recording::options().rate * WINDOW).max(1);
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe { (*local).gap = random(local) % (2 * mean) + 1 }
}

/// A xorshift generator with the thread's number as its seed: runs repeat.
///
/// # Safety
///
/// As for [`pause`].
unsafe fn random(local: *mut Local) -> u64 {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        let mut x = (*local).random;
        if x == 0 {
            x = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(u64::from((*local).thread) + 1);
        }
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        (*local).random = x;
        x
    }
}

/// Adds an access to the window, in pieces of at most 255 bytes.
///
/// # Safety
///
/// As for [`pause`].
unsafe fn record(open: *mut Window, address: u64, size: u64, write: bool, word: Option<u64>) {
    // SAFETY: the window has room for one access at least; the chunk's entry is valid.
    unsafe {
        let id = shadow::find(address);
        let (site, start) = if id == 0 {
            (0, 0)
        } else {
            ((*chunk(id)).site, (*chunk(id)).start)
        };
        let (mut pointer, mut target) = (0, 0);
        if let Some(word) = word {
            let other = shadow::find(word);
            if other != 0 {
                (pointer, target) = (word, (*chunk(other)).site);
            }
        }
        let mut done = 0;
        while done < size && u64::from((*open).len) < len_of((*open).burst) {
            let piece = (size - done).min(255);
            let at = address + done;
            let offset = if id == 0 { 0 } else { at - start };
            let access = Access {
                address: at,
                size: piece as u8,
                write,
                pointer,
                target,
                site,
                offset: offset.min(u64::from(u32::MAX)) as u32,
            };
            let place = open.add(1).cast::<u8>().add((*open).bytes as usize);
            let bytes = (*open)
                .coder
                .put(&access, &mut *place.cast::<[u8; MAX_BYTES]>());
            // The process may be killed at any moment.
            compiler_fence(Ordering::SeqCst);
            (*open).bytes += bytes as u64;
            (*open).len += 1;
            done += piece;
        }
    }
}
