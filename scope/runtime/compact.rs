//! Compact records of chunks, half as long as others, for programs whose accesses are not recorded.
//! They are found by the chunk's first byte only.
//!
//! A table has a word for each 16 KiB of the address space, which names a table of 512 words, one
//! for each 32 bytes. Chunks that begin in the same 32 bytes are a list. Those of libc never do.
//!
//! Pages that were not written to before take more time than all else here: hence few bytes.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::capture::at;
use crate::capture_format::{CompactChunk, layout};

/// A table is for so many bits of addresses.
const SPAN_BITS: u32 = 14;
const GRANULE_BITS: u32 = 5;
const GRANULES: u64 = 1 << (SPAN_BITS - GRANULE_BITS);
/// Tables for the lower half of the address space, which is the program's.
const SPANS: u64 = 1 << (47 - SPAN_BITS);
const MAX_TABLES: u64 = (layout::END - layout::FIRSTS) / (GRANULES * 4);

const _: () = assert!(SPANS * 4 <= layout::FIRSTS - layout::FIRST_PAGES);

/// Tables in use.
static TABLES: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
pub(crate) fn compact_chunk(id: u32) -> *mut CompactChunk {
    at(layout::COMPACT_CHUNKS + u64::from(id) * size_of::<CompactChunk>() as u64)
}

/// The number of the table for `start`; `None` for an address that no program has.
#[inline(always)]
fn table(start: u64) -> Option<&'static AtomicU32> {
    let span = start >> SPAN_BITS;
    // SAFETY: the word lies in the mapped table.
    (span < SPANS).then(|| unsafe { AtomicU32::from_ptr(at(layout::FIRST_PAGES + span * 4)) })
}

/// The first of the chunks that begin in the 32 bytes of `start`; always 0 if `table` is.
#[inline(always)]
fn granule(table: u32, start: u64) -> &'static AtomicU32 {
    let index = u64::from(table) * GRANULES + (start >> GRANULE_BITS) % GRANULES;
    // SAFETY: tables are numbered below `MAX_TABLES`, so the word lies in the mapped part.
    unsafe { AtomicU32::from_ptr(at(layout::FIRSTS + index * 4)) }
}

/// Lets a chunk be found by its `start`. Returns false if there is no more room for tables.
///
/// # Safety
///
/// The caller holds the lock; `id` is an entry that is not found by another address.
pub(crate) unsafe fn insert(start: u64, id: u32) -> bool {
    let Some(word) = table(start) else {
        return false;
    };
    let mut table = word.load(Ordering::Relaxed);
    if table == 0 {
        let new = TABLES.load(Ordering::Relaxed) + 1;
        if new >= MAX_TABLES {
            return false;
        }
        TABLES.store(new, Ordering::Relaxed);
        table = new as u32;
        word.store(table, Ordering::Relaxed);
    }
    let first = granule(table, start);
    // SAFETY: the lock is held, and `id` is an entry (`# Safety`) that by its condition is in no
    // list.
    unsafe {
        if first.load(Ordering::Relaxed) != 0 {
            // One whose end was not seen.
            remove(start);
        }
        (*compact_chunk(id)).next = first.load(Ordering::Relaxed);
    }
    first.store(id, Ordering::Relaxed);
    true
}

/// The word that leads to the chunk at `start`: of a table, or the `next` of another chunk. It is 0
/// if there is none.
///
/// # Safety
///
/// The caller holds the lock.
#[inline(always)]
unsafe fn place(start: u64) -> &'static AtomicU32 {
    let table = table(start).map_or(0, |table| table.load(Ordering::Relaxed));
    let mut place = granule(table, start);
    loop {
        let id = place.load(Ordering::Relaxed);
        // SAFETY: the lock is held (`# Safety`), so by the lock invariant lists have only entries
        // that were made. Entries are mapped.
        if id == 0 || unsafe { (*compact_chunk(id)).start } == start {
            return place;
        }
        // SAFETY: `id` is not 0, so it is an entry that was made; `next` is one of its aligned
        // words.
        place = unsafe { AtomicU32::from_ptr(&raw mut (*compact_chunk(id)).next) };
    }
}

/// The chunk at `start`; 0 if there is none.
///
/// # Safety
///
/// The caller holds the lock.
pub(crate) unsafe fn find(start: u64) -> u32 {
    // SAFETY: the lock is held (`# Safety`).
    unsafe { place(start) }.load(Ordering::Relaxed)
}

/// The same, which is not found from now on.
///
/// # Safety
///
/// The caller holds the lock.
#[inline(always)]
pub(crate) unsafe fn remove(start: u64) -> u32 {
    // SAFETY: the lock is held (`# Safety`), so lists stay as they are until the store; by the lock
    // invariant `id` is 0 or an entry that was made.
    unsafe {
        let place = place(start);
        let id = place.load(Ordering::Relaxed);
        if id != 0 {
            place.store((*compact_chunk(id)).next, Ordering::Relaxed);
        }
        id
    }
}

/// For a new capture, in which all is zero.
pub(crate) fn forget() {
    TABLES.store(0, Ordering::Relaxed);
}
