//! Which chunk an address belongs to, in two loads.
//!
//! A table has a word for each page of the address space. A page that lies within one chunk names
//! it; a page with several has a table of its own with a word for each granule of 8 bytes, and
//! a bit for each byte, set once it is known to be touched. Words tell by a flag that all bytes
//! were touched: most accesses need no other map.
//! All are parts of the capture that nobody else reads; most of their pages do not exist.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::capture::{BASE, at};
use super::counts::or64;
use crate::capture_format::{Chunk, layout};

const PAGE_BITS: u32 = 12;
const PAGE: u64 = 1 << PAGE_BITS;
/// No allocator puts two chunks into so many aligned bytes.
const GRANULE_BITS: u32 = 3;
const GRANULES_OF_PAGE: u64 = 1 << (PAGE_BITS - GRANULE_BITS);
/// Pages of the lower half of the address space, which is the program's.
const PAGES: u64 = 1 << (47 - PAGE_BITS);
/// Set in the word of a page or granule that names a chunk. Numbers begin above the flags.
const WHOLE: u32 = 1;
/// Set beside it when all of its bytes were touched.
const FULL: u32 = 2;
const FLAG_BITS: u32 = 2;

/// Tables of granules in use.
static TABLES: AtomicU64 = AtomicU64::new(0);

#[inline(always)]
fn page_word(page: u64) -> &'static AtomicU32 {
    // SAFETY: `page` is below `PAGES`, so the word lies in the mapped table.
    unsafe { AtomicU32::from_ptr(at(layout::PAGES + page * 4)) }
}

/// A table of granules, as a page's word names it.
#[derive(Clone, Copy)]
pub(crate) struct GranuleTable(u32);

impl GranuleTable {
    fn number(number: u32) -> GranuleTable {
        GranuleTable(number << FLAG_BITS)
    }

    /// Number of the granule of an address among those of all tables.
    #[inline(always)]
    fn granule(self, address: u64) -> u64 {
        let mut granule = u64::from(self.0) * (GRANULES_OF_PAGE >> FLAG_BITS)
            + (address >> GRANULE_BITS) % GRANULES_OF_PAGE;
        // SAFETY: nothing is done. The compiler would compute places from the address, each anew.
        unsafe {
            core::arch::asm!("/* {0} */", inout(reg) granule,
                options(pure, nomem, nostack, preserves_flags));
        }
        granule
    }

    /// The word of a granule.
    #[inline(always)]
    fn word(self, address: u64) -> &'static AtomicU32 {
        // SAFETY: tables are numbered below `MAX_GRANULE_TABLES`, so the word lies in the mapped
        // part.
        unsafe { AtomicU32::from_ptr(at(layout::GRANULES + self.granule(address) * 4)) }
    }

    /// Bits of 64 bytes.
    #[inline(always)]
    fn seen_word(self, address: u64) -> &'static AtomicU64 {
        // SAFETY: granules of all tables are below `MAX_GRANULE_TABLES * GRANULES_OF_PAGE`, and
        // `SEEN` has a byte for each: the aligned word lies in the mapped part.
        unsafe { AtomicU64::from_ptr(at(layout::SEEN + self.granule(address) / 8 * 8)) }
    }

    /// What is known of a granule by one load.
    #[inline(always)]
    pub(crate) fn find(self, address: u64) -> Granule {
        Granule(self.word(address).load(Ordering::Relaxed))
    }

    /// Whether `SIZE` aligned bytes, or any if that is 0, are known to be touched. Not known of
    /// many that were: of those across two words, for instance.
    #[inline(always)]
    pub(crate) fn seen<const SIZE: u64>(self, address: u64, size: u64) -> bool {
        if SIZE == 0 {
            let unseen = !self.seen_word(address).load(Ordering::Relaxed);
            // The bits shifted in at the top stand for bytes of the next word.
            let from = address % 64;
            return size <= 64 - from && (unseen >> from) << (64 - size) == 0;
        }
        let bits: u32;
        // SAFETY: `SIZE` aligned bytes lie in one or two granules of one table, whose bytes in
        // `SEEN` are mapped. In assembly, since others write whole words.
        unsafe {
            core::arch::asm!(
                "movzx {0:e}, word ptr [{1}]",
                out(reg) bits,
                in(reg) at::<u8>(layout::SEEN + self.granule(address)),
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        match SIZE {
            16 => bits == 0xFFFF,
            _ => (!bits >> (address % 8)) & ((1 << SIZE) - 1) == 0,
        }
    }
}

/// The word of a granule.
#[derive(Clone, Copy)]
pub(crate) struct Granule(u32);

impl Granule {
    #[inline(always)]
    pub(crate) fn is_unowned(self) -> bool {
        self.0 == 0
    }

    /// Whether all of its bytes are known to be touched.
    #[inline(always)]
    pub(crate) fn is_full(self) -> bool {
        self.0 & FULL != 0
    }

    /// The entry of its chunk, if it is full or not.
    #[inline(always)]
    pub(crate) fn entry<const IS_FULL: bool>(self) -> *mut Chunk {
        entry(if IS_FULL { self.0 } else { self.0 | FULL })
    }
}

/// The word of what belongs to a chunk, or to nobody if that is 0.
fn name(id: u32) -> u32 {
    if id == 0 { 0 } else { id << FLAG_BITS | WHOLE }
}

/// The entry of the chunk that a word with both flags names. No instruction takes them off.
#[inline(always)]
fn entry(word: u32) -> *mut Chunk {
    const ROOM: u64 = size_of::<Chunk>() as u64 >> FLAG_BITS;
    at(layout::CHUNKS - (WHOLE | FULL) as u64 * ROOM + u64::from(word) * ROOM)
}

/// Whether bytes lie in one page, and `SIZE` of up to 8 in one granule.
#[inline(always)]
pub(crate) fn is_even<const SIZE: u64>(address: u64, size: u64) -> bool {
    match SIZE {
        0 => !is_beyond_page(address, size),
        // Vectors of 16 bytes are often aligned as their elements are.
        16 => {
            address.is_multiple_of(16) || address.is_multiple_of(8) && !is_beyond_page(address, 16)
        }
        _ => address.is_multiple_of(SIZE),
    }
}

/// Whether bytes are not all of the page that the first is of.
#[inline(always)]
pub(crate) fn is_beyond_page(address: u64, size: u64) -> bool {
    size > PAGE - address % PAGE
}

/// What is known of a page by one load.
pub(crate) enum Page {
    /// No chunk has bytes in it.
    NoChunk,
    /// It lies within the chunk of this entry, and was touched everywhere.
    Full(*mut Chunk),
    /// It lies within the chunk of this entry.
    Part(*mut Chunk),
    Several(GranuleTable),
}

#[inline(always)]
pub(crate) fn page(address: u64) -> Page {
    // An address that no program has ends up in another page: its access fails anyway.
    let word = page_word((address >> PAGE_BITS) % PAGES).load(Ordering::Relaxed);
    if word & FULL != 0 {
        Page::Full(entry(word))
    } else if word == 0 {
        Page::NoChunk
    } else if word & WHOLE != 0 {
        Page::Part(entry(word | FULL))
    } else {
        Page::Several(GranuleTable(word))
    }
}

/// Notes that bytes of one chunk were touched. See [`or64`] for `many`.
pub(crate) fn see(address: u64, len: u64, many: bool) {
    each_seen(address, len, |table, at, bits, mask| {
        let seen = or64(table.seen_word(at), mask, many) | mask;
        for granule in at >> GRANULE_BITS..(at + bits).div_ceil(1 << GRANULE_BITS) {
            let at = granule << GRANULE_BITS;
            if (seen >> (at % 64)) as u8 == 0xFF {
                let word = table.word(at);
                if many {
                    word.fetch_or(FULL, Ordering::Relaxed);
                } else {
                    word.store(word.load(Ordering::Relaxed) | FULL, Ordering::Relaxed);
                }
            }
        }
    });
}

/// Calls `work` for the words that have bits of these bytes: with the table, the first byte, how
/// many there are, and their bits.
fn each_seen(address: u64, len: u64, work: impl Fn(GranuleTable, u64, u64, u64)) {
    let end = address + len;
    let mut at = address;
    while at < end {
        let Page::Several(table) = page(at) else {
            at = (at | (PAGE - 1)) + 1;
            continue;
        };
        let bits = (64 - at % 64).min(end - at);
        work(table, at, bits, u64::MAX >> (64 - bits) << (at % 64));
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
        (word >> FLAG_BITS, word & FULL != 0)
    } else {
        let name = GranuleTable(word).word(address).load(Ordering::Relaxed);
        (name >> FLAG_BITS, false)
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
            let old = word.swap(name(id), Ordering::Relaxed);
            if old != 0 && old & WHOLE == 0 {
                // SAFETY: the lock is held, and the bytes are of no other chunk (`# Safety`), so
                // the page was the only one to lead to its table.
                unsafe { retire(GranuleTable(old)) };
            }
        } else {
            let mut table = GranuleTable(word.load(Ordering::Relaxed));
            if table.0 == 0 || table.0 & WHOLE != 0 {
                // SAFETY: the lock is held (`# Safety`).
                table = unsafe { new_table() };
                if table.0 == 0 {
                    return false;
                }
                word.store(table.0, Ordering::Relaxed);
            }
            let last = end.min(page_end).div_ceil(1 << GRANULE_BITS);
            for granule in at >> GRANULE_BITS..last {
                let word = table.word(granule << GRANULE_BITS);
                word.store(name(id), Ordering::Relaxed);
            }
            if id != 0 {
                // What was known of these bytes was of chunks before.
                each_seen(at, end.min(page_end) - at, |table, at, _, mask| {
                    let word = table.seen_word(at);
                    if word.load(Ordering::Relaxed) & mask != 0 {
                        word.fetch_and(!mask, Ordering::Relaxed);
                    }
                });
            }
        }
        at = page_end;
    }
    true
}

/// First of the tables that are not in use; its first word names the next, 0 none. Nobody looks a
/// chunk up in them: their pages have none.
static RETIRED: AtomicU32 = AtomicU32::new(0);

/// # Safety
///
/// The caller holds the lock; no page refers to `table`.
unsafe fn retire(table: GranuleTable) {
    for granule in 1..GRANULES_OF_PAGE {
        let word = table.word(granule << GRANULE_BITS);
        word.store(0, Ordering::Relaxed);
    }
    let next = RETIRED.swap(table.0, Ordering::Relaxed);
    table.word(0).store(next, Ordering::Relaxed);
}

/// An empty table, or that of number 0.
///
/// # Safety
///
/// The caller holds the lock.
unsafe fn new_table() -> GranuleTable {
    let table = GranuleTable(RETIRED.load(Ordering::Relaxed));
    if table.0 != 0 {
        let next = table.word(0).swap(0, Ordering::Relaxed);
        RETIRED.store(next, Ordering::Relaxed);
        return table;
    }
    let number = TABLES.load(Ordering::Relaxed) + 1;
    if number >= layout::MAX_GRANULE_TABLES {
        return GranuleTable::number(0);
    }
    TABLES.store(number, Ordering::Relaxed);
    GranuleTable::number(number as u32)
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
    // The last byte is read with one after it.
    assert!(tables * PAGE / 8 <= layout::END - layout::SEEN);
    assert!(tables <= 1 << (32 - FLAG_BITS) && layout::MAX_CHUNKS <= 1 << (32 - FLAG_BITS));
};
