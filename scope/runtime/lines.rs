//! Cache lines that several threads write.
//!
//! A line that two threads write in different places goes from core to core with each write, though
//! they share nothing: false sharing. Only some stores are
//! examined: those in windows, and one in [`LOOKED_AT`], at random, of those by threads that did
//! not allocate the chunk. Each marks the chunks of its line, so that the next store by the thread
//! that allocated one of them is examined, too.
//!
//! A table of fixed size holds the lines. One that is written in turn stays; others give way. It is
//! a statistic: two threads may change an entry at once, and a count may be lost.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::capture::{at, chunk};
use super::fast_path::{flags_of, last_accessor};
use super::local::Local;
use super::shadow;
use crate::capture_format::{
    self, APART, Chunk, LOOKED_AT, Line, NON_OWNER, WATCHED, flags, layout,
};

/// Entries that a line may be in.
const WAYS: u64 = 4;
/// A line with so many turns keeps its entry.
const KEPT_TURNS: u64 = 4;
const LINE_BYTES: u64 = 64;
/// In [`Line::turns`] one of the loads that were drawn since the last store.
const LOAD: u64 = capture_format::MAX_TURNS + 1;
/// After so many of them no store is waited for.
const MAX_LOADS: u64 = 128;

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

/// After an access of a chunk that is watched, or not the calling thread's; or after a store that
/// was drawn.
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
        let is_shared = flags_of(entry) & flags::SHARED != 0;
        let watched = own && last_accessor(entry).load(Relaxed) == WATCHED;
        if !(own && WRITE) && (own == WRITE || !is_drawn(now)) {
            return;
        }
        if watched && (WRITE || is_shared || !is_waited_for(address)) {
            last_accessor(entry).store(thread, Relaxed);
        }
        if WRITE && (watch_others(entry, address, thread) || watched || !own) {
            written(entry, address, local, own);
        }
        if !own && is_shared {
            last_accessor(entry).store(WATCHED, Relaxed);
        }
    }
}

/// Whether a thread that loads from its chunk in the line of `address` may soon store there.
fn is_waited_for(address: u64) -> bool {
    let loads = |it: &Entry| it.turns.fetch_add(LOAD, Relaxed) / LOAD;
    find(address / LINE_BYTES * LINE_BYTES).is_some_and(|it| loads(it) < MAX_LOADS)
}

/// Lets the threads of other chunks in the line of `address` tell of their next stores. Whether
/// there is such a chunk of another thread than `thread`, which writes to that of `entry`.
///
/// # Safety
///
/// `entry` is that of a chunk in the capture.
unsafe fn watch_others(entry: *mut Chunk, address: u64, thread: u16) -> bool {
    let line = address / LINE_BYTES * LINE_BYTES;
    // SAFETY: `entry` is that of a chunk in the capture (`# Safety`). These fields are written
    // before the chunk is found by its address.
    let (start, size) = unsafe { ((*entry).start, (*entry).size()) };
    let (mut found, mut before) = (false, 0);
    let is_all = start <= line && line + LINE_BYTES <= start + size;
    for word in 0..if is_all { 0 } else { LINE_BYTES / 8 } {
        let id = shadow::find(line + word * 8);
        if id == 0 || id == before || chunk(id) == entry {
            continue;
        }
        before = id;
        let mut by: u16;
        // SAFETY: entries of all numbers lie in the capture, which is mapped for good. In assembly,
        // since others write whole entries meanwhile. A chunk that is being made or freed is then
        // watched in vain, until its next store or until it is made.
        unsafe {
            let last_accessor = (&raw mut (*chunk(id)).last_accessor).cast::<u16>();
            core::arch::asm!("mov {0:x}, word ptr [{1}]", out(reg) by, in(reg) last_accessor,
                options(readonly, nostack, preserves_flags));
            // Of threads that do not own it, stores are looked at anyway.
            if by & NON_OWNER == 0 && by != thread {
                core::arch::asm!("mov word ptr [{1}], {0:x}", in(reg) WATCHED,
                    in(reg) last_accessor, options(nostack, preserves_flags));
                by = WATCHED;
            }
        }
        found |= by == WATCHED;
    }
    found
}

/// Notes the calling thread's store at `address`, in the chunk of `entry`, which is its `own`.
///
/// # Safety
///
/// `local` is the calling thread's; `entry` is that of a chunk in the capture.
unsafe fn written(entry: *mut Chunk, address: u64, local: *mut Local, own: bool) {
    let line = address / LINE_BYTES * LINE_BYTES;
    let Some(found) = find(line) else { return };
    found.turns.fetch_and(LOAD - 1, Relaxed);
    // SAFETY: `local` is this thread's, and nobody else uses it (`# Safety`).
    let (now, thread) = unsafe { ((*local).now, (*local).thread) };
    // SAFETY: `entry` is that of a chunk in the capture (`# Safety`). These fields are written
    // before the chunk is found by its address.
    let (start, site, born) = unsafe { ((*entry).start, (*entry).site, (*entry).allocated) };
    let place = u64::from(site) << 32 | address.wrapping_sub(start).min(APART - 1);
    // Which thread wrote, in which chunk.
    let writer = u64::from(thread) | (born & (u64::MAX >> 16)) << 16;
    let word = &found.words[(address % LINE_BYTES / 8) as usize];
    let (before, last) = (word.swap(writer, Relaxed), found.last.swap(writer, Relaxed));
    let of_owner = if own { APART } else { 0 };
    let last_place = found.last_place.swap(place | of_owner, Relaxed);
    if last == 0 || last as u16 == thread {
        return;
    }
    // Memory that one thread has freed and another was given is not shared.
    let is_apart = last >> 16 != writer >> 16;
    if is_apart && !is_alive(line, last) {
        found.words.iter().for_each(|word| word.store(0, Relaxed));
        word.store(writer, Relaxed);
        return;
    }
    if before == 0 || before as u16 == thread {
        // Where both own what they write, all turns are seen: one in `LOOKED_AT` counts.
        let all_seen = is_apart && last_place & of_owner != 0;
        let turns = u64::from(!all_seen || is_drawn(now));
        found.turns.fetch_add(turns, Relaxed);
        found.places[0].store(last_place & !APART, Relaxed);
        let apart = if is_apart { APART } else { 0 };
        found.places[1].store(place | apart, Relaxed);
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
        let turns = |it: &Entry| it.turns.load(Relaxed) % LOAD;
        let least = entries.min_by_key(|it| turns(it))?;
        if turns(least) >= KEPT_TURNS {
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
