//! The fast path: what every instrumented load and store runs through.
//!
//! It is compiled twice: into the library, and in an archive (`fast_path_archive.rs`) that is
//! linked into each instrumented program and library, where a call of it takes no detour. Whatever
//! it does not do itself is left to [`slow_path`](super::slow_path) in the library, with nothing
//! counted yet.
//!
//! **Entry invariant**: entries of chunks stay mapped as long as the capture. That of a chunk is
//! the chunk's until `free` takes it out under the lock, before its memory is given back: so while
//! a program may access a chunk, its entry, its map and its site's histogram are its own.
//!
//! **Histogram invariant**: a chunk with [`flags::HISTOGRAM`] is as large as its site's histogram
//! was made for, whose rows stay: in each shard one for each byte of the chunk up to the end of its
//! last granule, and nine more. Where a chunk's `last_accessor` is a thread's `mark`, that thread
//! owns the chunk, which begins at a granule, and has a shard.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::capture::{BASE, at, site};
use super::counts::{add64, word};
use super::local::{Local, local};
use super::shadow::{self, Page};
use crate::capture_format::{BLOCK, Chunk, flags, layout};

/// One access of `size` bytes, at least 1, which the program makes next.
#[inline(always)]
pub(crate) fn access<const WRITE: bool>(address: u64, size: u64) {
    match size {
        1 => common::<WRITE, 1>(address, size),
        2 => common::<WRITE, 2>(address, size),
        4 => common::<WRITE, 4>(address, size),
        8 => common::<WRITE, 8>(address, size),
        16 => common::<WRITE, 16>(address, size),
        _ => common::<WRITE, 0>(address, size),
    }
}

// `slow_path` and `entries` of the library define these.
unsafe extern "C" {
    #[cold]
    safe fn ccscope_load(address: u64, size: u64);
    #[cold]
    safe fn ccscope_store(address: u64, size: u64);
    #[cold]
    fn ccscope_spill(entry: *mut Chunk, write: bool);
}

#[inline(always)]
fn rare<const WRITE: bool>(address: u64, size: u64) {
    if WRITE {
        ccscope_store(address, size);
    } else {
        ccscope_load(address, size);
    }
}

/// One access of `SIZE` bytes, or of any size if that is 0. Here it is counted if it is outside
/// the heap, or of bytes that are known to be touched, in a chunk that this thread has allocated
/// and was the last to access.
#[inline(always)]
fn common<const WRITE: bool, const SIZE: u64>(address: u64, size: u64) {
    let local = local();
    // SAFETY: the block is this thread's; a signal handler may have changed it in between, which
    // shifts times by some events. The program accesses the chunk, so its entry is valid.
    unsafe {
        let now = (*local).now + 1;
        if now > (*local).limit || !shadow::is_even::<SIZE>(address, size) {
            return rare::<WRITE>(address, size);
        }
        let entry = match shadow::page(address) {
            Page::NoChunk => return elsewhere::<WRITE>(local, now),
            Page::Several(table) => {
                let granule = table.find(address);
                let entry = if (1..=8).contains(&SIZE) && granule.is_full() {
                    granule.entry::<true>()
                } else if granule.is_unowned() {
                    return elsewhere::<WRITE>(local, now);
                } else if SIZE != 8 && table.seen::<SIZE>(address, size) {
                    granule.entry::<false>()
                } else {
                    return rare::<WRITE>(address, size);
                };
                if last_accessor(entry).load(Ordering::Relaxed) != (*local).mark {
                    return rare::<WRITE>(address, size);
                }
                if flags_of(entry) & flags::HISTOGRAM != 0 {
                    tally::<WRITE, SIZE>(local, entry, address, size);
                }
                entry
            }
            Page::Part(entry) if !touched(entry, address, size) => {
                return rare::<WRITE>(address, size);
            }
            Page::Part(entry) | Page::Full(entry) => {
                if last_accessor(entry).load(Ordering::Relaxed) != (*local).mark {
                    return rare::<WRITE>(address, size);
                }
                entry
            }
        };
        last(entry).store(now, Ordering::Relaxed);
        (*local).now = now;
        add_one::<WRITE, true>(entry);
    }
}

/// Counts an access outside the heap.
///
/// # Safety
///
/// `local` is the calling thread's, whose time is `now` with this access; nothing is due.
#[inline(always)]
unsafe fn elsewhere<const WRITE: bool>(local: *mut Local, now: u64) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        (*local).other[usize::from(WRITE)] += 1;
        (*local).now = now;
    }
}

/// Whether these bytes, in a page that lies within the chunk, are of one block that was touched.
///
/// # Safety
///
/// `entry` is that of a chunk that the program may access now.
#[inline(always)]
unsafe fn touched(entry: *mut Chunk, address: u64, size: u64) -> bool {
    // SAFETY: the chunk is not being freed (`# Safety`), so by the entry invariant its map is its
    // own. It is a page at least, so the map has a bit for each of its blocks.
    unsafe {
        let map = (*entry).touched;
        let offset = address - (*entry).start;
        let block = offset / BLOCK;
        map != 0
            && size <= BLOCK - offset % BLOCK
            && word(at(map + block / 64 * 8)) >> (block % 64) & 1 != 0
    }
}

macro_rules! shared {
    ($($name:ident $field:ident $type:ty)*) => {$(
        /// A field of an entry that threads which access the chunk at once change.
        ///
        /// # Safety
        ///
        /// `entry` is one of the table of chunks, and its chunk is not being made or freed.
        #[inline(always)]
        pub(crate) unsafe fn $name(entry: *mut Chunk) -> &'static $type {
            // SAFETY: the table is aligned and mapped for good (entry invariant). Only who makes or
            // frees the chunk uses the field without atomics, and nobody does (`# Safety`).
            unsafe { <$type>::from_ptr(&raw mut (*entry).$field) }
        }
    )*};
}
shared! {
    first first AtomicU64
    last last AtomicU64
    last_accessor last_accessor AtomicU16
    flags flags AtomicU8
}

/// The flags of an entry.
///
/// # Safety
///
/// As for [`flags`](flags()).
#[inline(always)]
pub(crate) unsafe fn flags_of(entry: *mut Chunk) -> u8 {
    // SAFETY: the chunk is not being made or freed (`# Safety`).
    unsafe { flags(entry) }.load(Ordering::Relaxed)
}

/// Where the accesses of a chunk by threads that do not own it are counted: reads, then writes.
pub(crate) fn non_owner_counts(entry: *mut Chunk) -> *mut [u32; 2] {
    let offset = entry.addr() as u64 - BASE - layout::CHUNKS;
    at(layout::NON_OWNER_COUNTS + offset / size_of::<Chunk>() as u64 * 8)
}

/// Adds one to a chunk's reads or writes: to its `OWN`er's, which nobody else changes, or to those
/// of those threads.
///
/// # Safety
///
/// As for [`touched`]; the chunk is the calling thread's if `OWN`.
#[inline(always)]
pub(crate) unsafe fn add_one<const WRITE: bool, const OWN: bool>(entry: *mut Chunk) {
    // SAFETY: `entry` is that of a chunk that may be accessed (`# Safety`), so by the entry
    // invariant it is mapped, and what others change at once is changed by atomics.
    unsafe {
        if !OWN {
            let counter = &raw mut (*non_owner_counts(entry))[usize::from(WRITE)];
            if AtomicU32::from_ptr(counter).fetch_add(1, Ordering::Relaxed) == u32::MAX {
                ccscope_spill(entry, WRITE);
            }
            return;
        }
        // One instruction, so that what a signal handler counts in between is not lost.
        core::arch::asm!(
            "inc dword ptr [{entry} + {counter}]",
            "jz {spill}",
            entry = in(reg) entry,
            counter = const if WRITE {
                core::mem::offset_of!(Chunk, writes)
            } else {
                core::mem::offset_of!(Chunk, reads)
            },
            spill = label {
                // SAFETY: `entry` is that of a chunk that may be accessed (`# Safety`), so by the
                // entry invariant it is mapped, and what others change at once is atomic or only a
                // time.
                unsafe { ccscope_spill(entry, WRITE) }
            },
            options(nostack),
        );
    }
}

/// Counts the access in the site's histogram: in the thread's shard, or with others in the first.
/// `SIZE` aligned bytes need not be looked at: the first is in the granules of the chunk, which
/// begins at one.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's and the chunk's flag set. If `SIZE` is not
/// 0, the access is aligned, its first granule is the chunk's, and `last_accessor` is the thread's
/// mark.
#[inline(always)]
pub(crate) unsafe fn tally<const WRITE: bool, const SIZE: u64>(
    local: *mut Local,
    entry: *mut Chunk,
    address: u64,
    size: u64,
) {
    // SAFETY: by the histogram invariant the row of `offset`, and that of the byte after the
    // access, are in the site's part of the shard: with `SIZE`, this thread owns the chunk and so
    // has a shard (`# Safety`); without, the access is compared with the chunk's bounds.
    unsafe {
        let (offset, all) = (address.wrapping_sub((*entry).start), (*entry).size());
        let hist = (*site((*entry).site)).hist + u64::from(WRITE) * 8;
        if SIZE > 0 {
            let row = (*local).shard + hist + offset * 16;
            // One instruction each, for signal handlers.
            core::arch::asm!("inc qword ptr [{row}]", "dec qword ptr [{row} + 16 * {size}]",
                row = in(reg) row, size = const SIZE, options(nostack));
        } else if size <= all && offset <= all - size {
            let shard = if (*local).shard == 0 {
                BASE + layout::HISTS
            } else {
                (*local).shard
            };
            for (place, amount) in [(offset, 1), (offset + size, u64::MAX)] {
                let row = shard + hist + place * 16;
                add64(
                    core::ptr::with_exposed_provenance_mut(row as usize),
                    amount,
                    (*local).shard == 0,
                );
            }
        }
    }
}
