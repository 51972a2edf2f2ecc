//! The file of events: all threads write into one, and the place in it is the place in time.

use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::folder::Path;
use super::wire::{Event, HEADER, Header, MAGIC};
use super::{maps, sys};

/// Where the file is mapped.
pub(crate) static MAP: AtomicU64 = AtomicU64::new(0);
/// Bytes of it.
static LEN: AtomicU64 = AtomicU64::new(0);
/// Events that have room.
pub(crate) static ROOM: AtomicU64 = AtomicU64::new(0);

/// Whether events can be written.
static IS_READY: AtomicBool = AtomicBool::new(false);

/// Whether events can be written.
pub(crate) fn is_ready() -> bool {
    IS_READY.load(Acquire)
}

/// From now on they can.
pub(crate) fn set_ready() {
    IS_READY.store(true, Release);
}

/// Adds to a number of the header.
pub(crate) fn count(offset: usize, more: u64) -> u64 {
    let map = MAP.load(Relaxed);
    let word = core::ptr::with_exposed_provenance_mut(map as usize + offset);
    // SAFETY: the header is mapped for as long as the process lives, and its words are only
    // accessed so.
    unsafe { AtomicU64::from_ptr(word) }.fetch_add(more, Relaxed)
}

/// Maps a new file for the events of this process; in a child of `fork`, over its parent's.
///
/// # Safety
///
/// No other thread writes events.
pub(crate) unsafe fn init(most: u64) -> bool {
    let pid = sys::process();
    let mut name = Path::in_folder();
    name.number(pid);
    let base = name;
    for turn in 0..1000 {
        name = base;
        name.text(b".");
        name.number(turn);
        let mut events = name;
        events.text(b".events");
        const CREATE_NEW_TO_READ_AND_WRITE: u64 = 0o100 | 0o200 | 0o2;
        // SAFETY: the path ends with 0; the mapping is ours.
        unsafe {
            let how = CREATE_NEW_TO_READ_AND_WRITE;
            let fd = sys::call(sys::OPEN, [events.pointer(), how, 0o600, 0, 0, 0]);
            const EEXIST: i64 = -17;
            if fd == EEXIST {
                continue;
            }
            if sys::failed(fd) {
                return false;
            }
            maps::copy_maps(name);
            let fd = fd.cast_unsigned();
            let len = HEADER as u64 + most * size_of::<Event>() as u64;
            let old = MAP.load(Relaxed);
            // For files, some kernels do not look at where we would like to have them.
            let (place, how) = match old {
                0 => (sys::far(len), sys::MAP_FIXED_NOREPLACE),
                old => (old, sys::MAP_FIXED),
            };
            let both = sys::PROT_READ | sys::PROT_WRITE;
            let flags = sys::MAP_SHARED | sys::MAP_NORESERVE | how;
            // By a call, which fails where the disk is full.
            let start = [MAGIC, pid, 0, most];
            let start_len = size_of_val(&start) as u64;
            let written = [fd, (&raw const start) as u64, start_len, 0, 0, 0];
            let map = if sys::failed(sys::call(sys::WRITE, written)) || !sys::lengthen(fd, len) {
                -1
            } else {
                sys::map(place, len, both, flags, fd.cast_signed(), 0)
            };
            sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
            if sys::failed(map) {
                return false;
            }
            // A fault would fill some hundred pages around with zeros.
            const RANDOM: u64 = 1;
            sys::call(sys::MADVISE, [map.cast_unsigned(), len, RANDOM, 0, 0, 0]);
            MAP.store(map.cast_unsigned(), Relaxed);
            LEN.store(len, Relaxed);
            ROOM.store(most, Relaxed);
        }
        return true;
    }
    false
}

/// Whether a fault at `address` is of the file, which cannot grow: the disk is full, or others have
/// cut it. Then no event has room any more.
pub(crate) fn ends_at(address: u64) -> bool {
    let map = MAP.load(Relaxed);
    let len = LEN.load(Relaxed);
    let is_here = map != 0 && (map..map + len).contains(&address);
    if is_here {
        sys::say(b"the file of events cannot grow: tracing ends");
        has_none();
    }
    is_here
}

/// No event has room from now on, and tracing ends.
pub(crate) fn end() {
    ROOM.store(0, Relaxed);
}

/// Puts memory that takes no events in place of the file.
fn has_none() {
    ROOM.store(0, Relaxed);
    let both = sys::PROT_READ | sys::PROT_WRITE;
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_FIXED;
    // SAFETY: the mapping is ours, and its words mean nothing without room.
    unsafe { sys::map(MAP.load(Relaxed), LEN.load(Relaxed), both, flags, -1, 0) };
}

/// In a child of `fork`: a new file over its parent's. Without one, the child is not traced.
///
/// # Safety
///
/// No other thread writes events.
pub(crate) unsafe fn begin_process(most: u64) {
    // SAFETY: no other thread writes events (`# Safety`).
    if !unsafe { init(most) } {
        has_none();
    }
}

/// Writes an event; false once there is no more room.
pub(crate) fn push(event: Event) -> bool {
    let at = count(core::mem::offset_of!(Header, count), 1);
    if at >= ROOM.load(Relaxed) {
        return false;
    }
    let place = MAP.load(Relaxed) + HEADER as u64 + at * size_of::<Event>() as u64;
    let place = core::ptr::with_exposed_provenance_mut::<Event>(place as usize);
    // SAFETY: within the mapping, and of nobody else: each number is given once. The letter is
    // written last, so that a reader knows whether the event is whole.
    unsafe {
        place.write(Event { kind: 0, ..event });
        AtomicU8::from_ptr(&raw mut (*place).kind).store(event.kind, Release);
    }
    true
}

/// No event has room from now on.
pub(crate) fn is_full() -> bool {
    let map = MAP.load(Relaxed);
    map != 0 && count(core::mem::offset_of!(Header, count), 0) >= ROOM.load(Relaxed)
}
