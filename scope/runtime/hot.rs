//! The hot path: what every instrumented load and store runs through.
//!
//! It is compiled twice: into the library, and in an archive (`hot_archive.rs`) that is linked into
//! each instrumented program and library, where a call of it takes no detour. Whatever it does not
//! do itself is left to [`access`](super::access) in the library, with nothing counted yet.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::access::{ccscope_load, ccscope_spill, ccscope_store};
use super::arena::{BASE, at, chunk, site};
use super::local::{Local, local};
use super::shadow::{self, Page};
use crate::format::{BLOCK, Chunk, GUEST, flags, layout};

#[inline(always)]
pub(crate) fn add64(counter: *mut u64, amount: u64, many: bool) {
    // SAFETY: counters are aligned fields of the capture, which is mapped for good.
    let counter = unsafe { AtomicU64::from_ptr(counter) };
    if many {
        counter.fetch_add(amount, Ordering::Relaxed);
    } else {
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(amount),
            Ordering::Relaxed,
        );
    }
}

/// One access of `size` bytes, at least 1, which the program makes next.
#[inline(always)]
pub(crate) fn access<const WRITE: bool>(address: u64, size: u64) {
    let local = local();
    // SAFETY: the block is this thread's; a signal handler may have changed it in between, which
    // shifts times by some events.
    unsafe {
        let now = (*local).now + 1;
        if now > (*local).limit {
            rare::<WRITE>(address, size);
        } else {
            count::<WRITE, true>(local, now, address, size);
        }
    }
}

/// [`access`] of a chunk that this thread has not allocated, or not accessed last.
#[inline(never)]
fn guest<const WRITE: bool>(address: u64, size: u64) {
    let local = local();
    // SAFETY: as for `access`.
    unsafe { count::<WRITE, false>(local, (*local).now + 1, address, size) }
}

#[inline(always)]
fn rare<const WRITE: bool>(address: u64, size: u64) {
    if WRITE {
        ccscope_store(address, size);
    } else {
        ccscope_load(address, size);
    }
}

/// Counts an access outside the heap, or of bytes that are known to be touched, in a chunk that
/// this thread was the last to access, as its `OWN` or as a guest.
///
/// # Safety
///
/// `local` is the calling thread's, whose time is `now` with this access; nothing is due.
#[inline(always)]
unsafe fn count<const WRITE: bool, const OWN: bool>(
    local: *mut Local,
    now: u64,
    address: u64,
    size: u64,
) {
    // SAFETY: the caller's; the program accesses the chunk, so its entry is valid.
    unsafe {
        let mut is_counted = false;
        let entry = match shadow::page(address) {
            Page::Nobody => return elsewhere::<WRITE>(local, now),
            Page::Full(_) if shadow::is_beyond_page(address, size) => {
                return rare::<WRITE>(address, size);
            }
            Page::Full(id) => chunk(id),
            Page::Part(id) => {
                if !touched(chunk(id), address, size) {
                    return rare::<WRITE>(address, size);
                }
                chunk(id)
            }
            Page::Several(table) => {
                let id = shadow::in_table(table, address);
                if id == 0 {
                    return elsewhere::<WRITE>(local, now);
                }
                if !shadow::seen(table, address, size) {
                    return rare::<WRITE>(address, size);
                }
                is_counted = (*chunk(id)).flags & flags::HISTOGRAM != 0;
                chunk(id)
            }
        };
        let toucher = if OWN {
            (*local).mark
        } else {
            (*local).thread | GUEST
        };
        if (*entry).toucher != toucher {
            if OWN {
                return guest::<WRITE>(address, size);
            }
            return rare::<WRITE>(address, size);
        }
        if is_counted {
            tally::<WRITE, OWN>(local, entry, address, size);
        }
        (*entry).last = now;
        (*local).now = now;
        add_one::<WRITE, OWN>(entry);
    }
}

/// Counts an access outside the heap.
///
/// # Safety
///
/// As for [`count`].
#[inline(always)]
unsafe fn elsewhere<const WRITE: bool>(local: *mut Local, now: u64) {
    // SAFETY: the caller's.
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
    // SAFETY: the caller's; the chunk is a page at least, so its map has a bit for each block.
    unsafe {
        let map = (*entry).touched;
        let offset = address - (*entry).start;
        let block = offset / BLOCK;
        map != 0
            && size <= BLOCK - offset % BLOCK
            && *at::<u64>(map + block / 64 * 8) >> (block % 64) & 1 != 0
    }
}

/// Where the accesses of a chunk by guests are counted: reads, then writes.
pub(crate) fn guests(entry: *mut Chunk) -> *mut [u32; 2] {
    let offset = entry.addr() as u64 - BASE - layout::CHUNKS;
    at(layout::GUESTS + offset / size_of::<Chunk>() as u64 * 8)
}

/// Adds one to a chunk's reads or writes: to its `OWN`er's, which nobody else changes, or to those
/// of guests.
///
/// # Safety
///
/// As for [`touched`]; the chunk is the calling thread's if `OWN`.
#[inline(always)]
pub(crate) unsafe fn add_one<const WRITE: bool, const OWN: bool>(entry: *mut Chunk) {
    // SAFETY: the caller's.
    unsafe {
        if !OWN {
            let counter = &raw mut (*guests(entry))[usize::from(WRITE)];
            if AtomicU32::from_ptr(counter).fetch_add(1, Ordering::Relaxed) == u32::MAX {
                ccscope_spill(entry, WRITE);
            }
            return;
        }
        let counter = if WRITE {
            &raw mut (*entry).writes
        } else {
            &raw mut (*entry).reads
        };
        // One instruction, so that what a signal handler counts in between is not lost.
        core::arch::asm!(
            "inc dword ptr [{counter}]",
            "jz {spill}",
            counter = in(reg) counter,
            spill = label {
                // SAFETY: the caller's.
                unsafe { ccscope_spill(entry, WRITE) }
            },
            options(nostack),
        );
    }
}

/// Counts the access in the site's histogram: in the thread's lane, or with others in the first.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's and the chunk's flag set.
#[inline(always)]
pub(crate) unsafe fn tally<const WRITE: bool, const OWN: bool>(
    local: *mut Local,
    entry: *mut Chunk,
    address: u64,
    size: u64,
) {
    // SAFETY: the caller's. A histogram has a place for each byte of a chunk, and one more.
    unsafe {
        let mut lane = (*local).lane;
        if !OWN && lane == 0 {
            lane = BASE + layout::HISTS;
        }
        // Such chunks are small; that of an owner is found by no byte before it.
        let (offset, all) = (address.wrapping_sub((*entry).start), (*entry).size() as u32);
        let end = offset.wrapping_add(size);
        if end <= u64::from(all) && (OWN || offset < end) {
            let hist = lane + (*site((*entry).site)).hist + usize::from(WRITE) as u64 * 8;
            let row: *mut u64 = core::ptr::with_exposed_provenance_mut(hist as usize);
            let (from, to) = (row.add(offset as usize * 2), row.add(end as usize * 2));
            if OWN {
                // One instruction each, for signal handlers.
                core::arch::asm!("inc qword ptr [{from}]", "dec qword ptr [{to}]",
                    from = in(reg) from, to = in(reg) to, options(nostack));
            } else {
                add64(from, 1, true);
                add64(to, u64::MAX, true);
            }
        }
    }
}

macro_rules! callbacks {
    ($($load:ident $load_noabort:ident $store:ident $store_noabort:ident $size:literal;)*) => {$(
        /// Before a load.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $load(address: u64) {
            access::<false>(address, $size);
        }

        /// Before a load, for gcc.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $load_noabort(address: u64) {
            access::<false>(address, $size);
        }

        /// Before a store.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $store(address: u64) {
            access::<true>(address, $size);
        }

        /// Before a store, for gcc.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $store_noabort(address: u64) {
            access::<true>(address, $size);
        }
    )*};
}

callbacks! {
    __asan_load1 __asan_load1_noabort __asan_store1 __asan_store1_noabort 1;
    __asan_load2 __asan_load2_noabort __asan_store2 __asan_store2_noabort 2;
    __asan_load4 __asan_load4_noabort __asan_store4 __asan_store4_noabort 4;
    __asan_load8 __asan_load8_noabort __asan_store8 __asan_store8_noabort 8;
    __asan_load16 __asan_load16_noabort __asan_store16 __asan_store16_noabort 16;
}

macro_rules! sized {
    ($($name:ident $write:literal;)*) => {$(
        /// Before an access of any size.
        // Names that are not mangled are not judged.
        #[cfg_attr(test, expect(non_snake_case, reason = "the compiler's name"))]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $name(address: u64, size: u64) {
            if size > 0 {
                access::<$write>(address, size);
            }
        }
    )*};
}

sized! {
    __asan_loadN false;
    __asan_loadN_noabort false;
    __asan_storeN true;
    __asan_storeN_noabort true;
}
