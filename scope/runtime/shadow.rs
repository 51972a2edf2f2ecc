//! Which chunk an address belongs to, in two loads.
//!
//! A table has a word for each page of the address space. A page that lies within one chunk names
//! it; a page with several has a table of its own with a word for each granule of 8 bytes, and
//! a bit for each byte, set once it is known to be touched: most accesses need no other map.
//! All are parts of the capture that nobody else reads; most of their pages do not exist.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::arena::{BASE, at};
use crate::format::layout;

const PAGE_BITS: u32 = 12;
const PAGE: u64 = 1 << PAGE_BITS;
/// No allocator puts two chunks into so many aligned bytes.
const GRANULE_BITS: u32 = 3;
const GRANULES_OF_PAGE: u64 = 1 << (PAGE_BITS - GRANULE_BITS);
/// Pages of the lower half of the address space, which is the program's.
const PAGES: u64 = 1 << (47 - PAGE_BITS);
/// Set in a page's word that names a chunk.
const WHOLE: u32 = 1 << 31;
/// Set beside it when the whole page was touched.
const FULL: u32 = 1 << 30;

/// Tables of granules in use.
static TABLES: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
fn page_word(page: u64) -> &'static AtomicU32 {
    // SAFETY: `page` is below `PAGES`, so the word lies in the mapped table.
    unsafe { AtomicU32::from_ptr(at(layout::PAGES + page * 4)) }
}

#[inline(always)]
fn granule_word(table: u32, granule: u64) -> &'static AtomicU32 {
    let index = u64::from(table) * GRANULES_OF_PAGE + granule % GRANULES_OF_PAGE;
    // SAFETY: tables are numbered below `MAX_GRANULE_TABLES`, so the word lies in the mapped part.
    unsafe { AtomicU32::from_ptr(at(layout::GRANULES + index * 4)) }
}

/// Bits of 64 bytes of a page with a table.
#[inline(always)]
fn seen_word(table: u32, address: u64) -> &'static AtomicU64 {
    let index = u64::from(table) * (PAGE / 64) + address % PAGE / 64;
    // SAFETY: as for `granule_word`.
    unsafe { AtomicU64::from_ptr(at(layout::SEEN + index * 8)) }
}

/// Whether bytes are not all of the page that the first is of.
#[inline(always)]
pub(crate) fn is_beyond_page(address: u64, size: u64) -> bool {
    size > PAGE - address % PAGE
}

/// What is known of a page by one load.
pub(crate) enum Page {
    /// No chunk has bytes in it.
    Nobody,
    /// It lies within this chunk, and was touched everywhere.
    Full(u32),
    /// It lies within this chunk.
    Part(u32),
    /// It has this table: see [`in_table`].
    Several(u32),
}

#[inline(always)]
pub(crate) fn page(address: u64) -> Page {
    // An address that no program has ends up in another page: its access fails anyway.
    let word = page_word((address >> PAGE_BITS) % PAGES).load(Ordering::Relaxed);
    if word & FULL != 0 {
        Page::Full(word & !(WHOLE | FULL))
    } else if word == 0 {
        Page::Nobody
    } else if word & WHOLE != 0 {
        Page::Part(word & !WHOLE)
    } else {
        Page::Several(word)
    }
}

/// The entry in the table of chunks, 0 if `address` is in none.
#[inline(always)]
pub(crate) fn in_table(table: u32, address: u64) -> u32 {
    granule_word(table, address >> GRANULE_BITS).load(Ordering::Relaxed)
}

/// Whether these bytes of a page with a table are known to be touched. Not known of many that
/// were: of those across two words, for instance.
#[inline(always)]
pub(crate) fn seen(table: u32, address: u64, size: u64) -> bool {
    let unseen = !seen_word(table, address).load(Ordering::Relaxed);
    // The bits shifted in at the top stand for bytes of the next word.
    let from = address % 64;
    size <= 64 - from && (unseen >> from) << (64 - size) == 0
}

/// Notes that bytes of one chunk were touched.
pub(crate) fn see(address: u64, len: u64) {
    each_seen(address, len, |word, mask| {
        word.fetch_or(mask, Ordering::Relaxed);
    });
}

/// Calls `work` with the words that have bits of these bytes, and those bits.
fn each_seen(address: u64, len: u64, work: impl Fn(&AtomicU64, u64)) {
    let end = address + len;
    let mut at = address;
    while at < end {
        let Page::Several(table) = page(at) else {
            at = (at | (PAGE - 1)) + 1;
            continue;
        };
        let bits = (64 - at % 64).min(end - at);
        work(seen_word(table, at), u64::MAX >> (64 - bits) << (at % 64));
        at += bits;
    }
}

/// The entry in the table of chunks, 0 if `address` is in none; and whether its whole page
/// is known to be touched.
#[inline(always)]
pub(crate) fn look_up(address: u64) -> (u32, bool) {
    let page = address >> PAGE_BITS;
    if page >= PAGES {
        return (0, false);
    }
    let word = page_word(page).load(Ordering::Relaxed);
    if word == 0 {
        return (0, false);
    }
    if word & WHOLE != 0 {
        (word & !(WHOLE | FULL), word & FULL != 0)
    } else {
        (in_table(word, address), false)
    }
}

/// The entry in the table of chunks; 0 if `address` is in none.
pub(crate) fn find(address: u64) -> u32 {
    look_up(address).0
}

/// Whether the page at `address` lies within one chunk.
pub(crate) fn whole(address: u64) -> bool {
    let page = address >> PAGE_BITS;
    page < PAGES && page_word(page).load(Ordering::Relaxed) & WHOLE != 0
}

/// Notes that the page at `address` was touched everywhere, if it lies within one chunk.
pub(crate) fn fill(address: u64) {
    if whole(address) {
        page_word(address >> PAGE_BITS).fetch_or(FULL, Ordering::Relaxed);
    }
}

/// Lets `[start, start + len)` belong to `id`, or to nobody if that is 0. Returns false if there is
/// no more room for tables; the caller then clears what was set.
///
/// # Safety
///
/// The caller holds the lock, and the bytes belong to no other chunk.
pub(crate) unsafe fn set(start: u64, len: u64, id: u32) -> bool {
    let end = start + len.max(1);
    let mut at = start;
    while at < end {
        let page = at >> PAGE_BITS;
        let page_end = (page + 1) << PAGE_BITS;
        if page >= PAGES {
            return false;
        }
        let word = page_word(page);
        if at == page << PAGE_BITS && page_end <= end {
            // A table that the page had is lost to it, and used by the next that needs one.
            let old = word.swap(if id == 0 { 0 } else { id | WHOLE }, Ordering::Relaxed);
            if old != 0 && old & WHOLE == 0 {
                // SAFETY: by the lock; the page's chunks are gone.
                unsafe { retire(old) };
            }
        } else {
            let mut table = word.load(Ordering::Relaxed);
            if table == 0 || table & WHOLE != 0 {
                // SAFETY: by the lock.
                table = unsafe { new_table() };
                if table == 0 {
                    return false;
                }
                word.store(table, Ordering::Relaxed);
            }
            let last = end.min(page_end).div_ceil(1 << GRANULE_BITS);
            for granule in at >> GRANULE_BITS..last {
                granule_word(table, granule).store(id, Ordering::Relaxed);
            }
            if id != 0 {
                // What was known of these bytes was of chunks before.
                each_seen(at, end.min(page_end) - at, |word, mask| {
                    word.fetch_and(!mask, Ordering::Relaxed);
                });
            }
        }
        at = page_end;
    }
    true
}

/// [`set`] for the first granule alone.
///
/// # Safety
///
/// As for [`set`].
pub(crate) unsafe fn set_first(start: u64, id: u32) -> bool {
    let page = start >> PAGE_BITS;
    if page < PAGES {
        let table = page_word(page).load(Ordering::Relaxed);
        if table != 0 && table & WHOLE == 0 {
            granule_word(table, start >> GRANULE_BITS).store(id, Ordering::Relaxed);
            return true;
        }
    }
    // SAFETY: the caller's.
    unsafe { set(start, 1, id) }
}

/// First of the tables that are not in use; its first word names the next, 0 none. Nobody looks a
/// chunk up in them: their pages have none.
static RETIRED: AtomicU32 = AtomicU32::new(0);

/// # Safety
///
/// The caller holds the lock; no page refers to `table`.
unsafe fn retire(table: u32) {
    for granule in 1..GRANULES_OF_PAGE {
        granule_word(table, granule).store(0, Ordering::Relaxed);
    }
    granule_word(table, 0).store(RETIRED.swap(table, Ordering::Relaxed), Ordering::Relaxed);
}

/// An empty table, or 0.
///
/// # Safety
///
/// The caller holds the lock.
unsafe fn new_table() -> u32 {
    let table = RETIRED.load(Ordering::Relaxed);
    if table != 0 {
        let next = granule_word(table, 0).swap(0, Ordering::Relaxed);
        RETIRED.store(next, Ordering::Relaxed);
        return table;
    }
    let table = TABLES.load(Ordering::Relaxed) + 1;
    if table >= layout::MAX_GRANULE_TABLES {
        return 0;
    }
    TABLES.store(table, Ordering::Relaxed);
    table as u32
}

/// For a new capture, in which all is zero.
pub(crate) fn forget() {
    RETIRED.store(0, Ordering::Relaxed);
    TABLES.store(0, Ordering::Relaxed);
}

const _: () =
    assert!(BASE.is_multiple_of(1 << 40) && PAGES * 4 <= layout::GRANULES - layout::PAGES);
const _: () = {
    let tables = layout::MAX_GRANULE_TABLES;
    assert!(tables * GRANULES_OF_PAGE * 4 <= layout::SEEN - layout::GRANULES);
    assert!(tables * PAGE / 8 <= layout::END - layout::SEEN);
};
