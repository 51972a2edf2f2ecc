//! Cache lines that several threads write.
//!
//! A line that two threads write in different places goes from core to core with each write, though
//! they share nothing: false sharing. Looked at are stores that are not counted on the hot path:
//! those of threads that did not allocate the chunk, one in [`LOOKED_AT`] at random. Each such
//! store makes the next one by the chunk's own thread come here, too.
//!
//! A table of fixed size holds the lines. One that is written in turn stays; others give way. It is
//! a statistic: two threads may change an entry at once, and a count may be lost.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::arena::{at, chunk};
use super::hot::{flags_of, toucher};
use super::local::Local;
use super::shadow;
use crate::format::{Chunk, LOOKED_AT, Line, WATCHED, flags, layout};

/// Entries that a line may be in.
const WAYS: u64 = 4;
/// A line with so many turns keeps its entry.
const KEPT_TURNS: u64 = 4;
const LINE_BYTES: u64 = 64;

/// A [`Line`] that several threads use.
#[repr(C)]
struct Entry {
    address: AtomicU64,
    turns: AtomicU64,
    same: AtomicU64,
    threads: AtomicU64,
    places: [AtomicU64; 2],
    last: AtomicU64,
    last_place: AtomicU64,
    words: [AtomicU64; 8],
}

const _: () = assert!(size_of::<Entry>() == size_of::<Line>());

/// Whether a random one in [`LOOKED_AT`] events is this one.
fn is_drawn(now: u64) -> bool {
    now.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32 & (LOOKED_AT - 1) == 0
}

/// After an access of a chunk that several threads know, or that is not the calling thread's.
///
/// # Safety
///
/// `local` is the calling thread's; `entry` is that of a chunk in the capture.
pub(crate) unsafe fn accessed<const WRITE: bool>(
    local: *mut Local,
    entry: *mut Chunk,
    address: u64,
    own: bool,
) {
    // SAFETY: the caller promises that both are there; entries are mapped for good. Fields that
    // other threads change meanwhile are numbers, of which any is as good.
    unsafe {
        let (now, thread) = ((*local).now, (*local).thread);
        if own {
            if toucher(entry).load(Relaxed) != WATCHED || !WRITE && !is_drawn(now) {
                return;
            }
            toucher(entry).store(thread, Relaxed);
        } else if !WRITE || !is_drawn(now) {
            return;
        }
        if WRITE {
            written(entry, address, thread);
        }
        if !own && flags_of(entry) & flags::SHARED != 0 {
            toucher(entry).store(WATCHED, Relaxed);
        }
    }
}

/// Notes a store of `thread` at `address`, in the chunk of `entry`.
///
/// # Safety
///
/// `entry` is that of a chunk in the capture.
unsafe fn written(entry: *mut Chunk, address: u64, thread: u16) {
    let line = address / LINE_BYTES * LINE_BYTES;
    let Some(found) = find(line) else { return };
    // SAFETY: `entry` is that of a chunk in the capture (`# Safety`). These fields are written
    // before the chunk is found by its address.
    let (start, site, born) = unsafe { ((*entry).start, (*entry).site, (*entry).allocated) };
    let place = u64::from(site) << 32 | address.wrapping_sub(start).min(u64::from(u32::MAX));
    // Which thread wrote, in which chunk.
    let writer = u64::from(thread) | (born & (u64::MAX >> 16)) << 16;
    let word = &found.words[(address % LINE_BYTES / 8) as usize];
    let (before, last) = (word.swap(writer, Relaxed), found.last.swap(writer, Relaxed));
    let last_place = found.last_place.swap(place, Relaxed);
    if last == 0 || last as u16 == thread {
        return;
    }
    // Memory that one thread has freed and another was given is not shared.
    if last >> 16 != writer >> 16 && !is_alive(line, last) {
        found.words.iter().for_each(|word| word.store(0, Relaxed));
        word.store(writer, Relaxed);
        return;
    }
    if before == 0 || before as u16 == thread {
        found.turns.fetch_add(1, Relaxed);
        found.places[0].store(last_place, Relaxed);
        found.places[1].store(place, Relaxed);
        let bit = |thread: u64| 1 << thread.min(63);
        let threads = bit(u64::from(last as u16)) | bit(thread.into());
        found.threads.fetch_or(threads, Relaxed);
    } else {
        found.same.fetch_add(1, Relaxed);
    }
}

/// Whether one of the chunks in the line is the one that `writer` wrote.
fn is_alive(line: u64, writer: u64) -> bool {
    (0..8).any(|word| {
        let id = shadow::find(line + word * 8);
        id != 0 && born(id) & (u64::MAX >> 16) == writer >> 16
    })
}

/// When a chunk was allocated; any time if another thread makes or frees it.
fn born(id: u32) -> u64 {
    let born: u64;
    // SAFETY: entries of all numbers lie in the capture, which is mapped for good. In assembly,
    // since others write whole entries meanwhile.
    unsafe {
        core::arch::asm!("mov {0}, qword ptr [{1} + {2}]", out(reg) born, in(reg) chunk(id),
            const core::mem::offset_of!(Chunk, allocated),
            options(readonly, nostack, preserves_flags));
    }
    born
}

/// The entry of the line, or one that it takes over.
fn find(line: u64) -> Option<&'static Entry> {
    let first = line.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let entries = (0..WAYS).map(|way| {
        let index = (first + way) % layout::MAX_LINES;
        // SAFETY: the index is below the table's length, and the table is mapped for good; all of
        // it is atomic words, of which any value is one.
        unsafe { &*at::<Entry>(layout::LINES + index * size_of::<Entry>() as u64) }
    });
    let found = entries.clone().find(|it| it.address.load(Relaxed) == line);
    found.or_else(|| {
        let least = entries.min_by_key(|it| it.turns.load(Relaxed))?;
        if least.turns.load(Relaxed) >= KEPT_TURNS {
            return None;
        }
        for word in [&least.turns, &least.same, &least.threads, &least.last] {
            word.store(0, Relaxed);
        }
        least.words.iter().for_each(|word| word.store(0, Relaxed));
        least.address.store(line, Relaxed);
        Some(least)
    })
}
