//! The hot path: what every instrumented load and store runs through.
//!
//! It is compiled twice: into the library, and in an archive (`hot_archive.rs`) that is linked into
//! each instrumented program and library, where a call of it takes no detour. Whatever it does not
//! do itself is left to [`access`](super::access) in the library, with nothing counted yet.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::access::{ccscope_load, ccscope_spill, ccscope_store};
use super::arena::{at, chunk, site};
use super::local::{Local, local};
use super::shadow::{self, Page};
use crate::format::{BLOCK, Chunk, flags};

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
///
/// While there is one thread and nothing is due, it is counted by plain additions.
#[inline(always)]
pub(crate) fn access<const WRITE: bool>(address: u64, size: u64) {
    let local = local();
    // SAFETY: the block is this thread's; a signal handler may have changed it in between, which
    // shifts times by some events.
    unsafe {
        let now = (*local).now + 1;
        if now > (*local).alone_limit {
            crowded::<WRITE>(address, size);
        } else if !counted::<WRITE, false>(local, now, address, size) {
            rare::<WRITE>(address, size);
        }
    }
}

/// [`access`] when there were several threads, or something is due.
#[inline(never)]
fn crowded<const WRITE: bool>(address: u64, size: u64) {
    let local = local();
    // SAFETY: as for `access`.
    unsafe {
        let now = (*local).now + 1;
        if now > (*local).limit || !counted::<WRITE, true>(local, now, address, size) {
            rare::<WRITE>(address, size);
        }
    }
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
/// this thread was the last to access. Otherwise returns false.
///
/// # Safety
///
/// `local` is the calling thread's, whose time is `now` with this access.
#[inline(always)]
unsafe fn counted<const WRITE: bool, const MANY: bool>(
    local: *mut Local,
    now: u64,
    address: u64,
    size: u64,
) -> bool {
    // SAFETY: the caller's; the program accesses the chunk, so its entry is valid.
    unsafe {
        let is_mine = |entry: *mut Chunk| !MANY || (*entry).toucher == (*local).thread;
        let entry = match shadow::page(address) {
            Page::Nobody => return elsewhere::<WRITE>(local, now),
            Page::Full(_) if shadow::is_beyond_page(address, size) => return false,
            Page::Full(id) => chunk(id),
            Page::Part(id) => {
                if !touched(chunk(id), address, size) {
                    return false;
                }
                chunk(id)
            }
            Page::Several(table) => {
                let id = shadow::in_table(table, address);
                if id == 0 {
                    return elsewhere::<WRITE>(local, now);
                }
                let entry = chunk(id);
                if !shadow::seen(table, address, size) || !is_mine(entry) {
                    return false;
                }
                if (*entry).flags & flags::HISTOGRAM != 0 {
                    tally::<WRITE, MANY>(entry, address, size);
                }
                entry
            }
        };
        if !is_mine(entry) {
            return false;
        }
        (*entry).last = now;
        (*local).now = now;
        add_one::<WRITE, MANY>(entry);
        true
    }
}

/// Counts an access outside the heap.
///
/// # Safety
///
/// As for [`counted`].
#[inline(always)]
unsafe fn elsewhere<const WRITE: bool>(local: *mut Local, now: u64) -> bool {
    // SAFETY: the caller's.
    unsafe {
        (*local).other[usize::from(WRITE)] += 1;
        (*local).now = now;
    }
    true
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

/// Adds one to a chunk's reads or writes.
///
/// # Safety
///
/// As for [`touched`].
#[inline(always)]
pub(crate) unsafe fn add_one<const WRITE: bool, const MANY: bool>(entry: *mut Chunk) {
    // SAFETY: the caller's. The counters of an entry are written as atomics only.
    unsafe {
        let counter = if WRITE {
            &raw mut (*entry).writes
        } else {
            &raw mut (*entry).reads
        };
        if MANY {
            if AtomicU32::from_ptr(counter).fetch_add(1, Ordering::Relaxed) == u32::MAX {
                ccscope_spill(entry, WRITE);
            }
            return;
        }
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

/// Counts the access in the site's histogram.
///
/// # Safety
///
/// As for [`touched`], with the chunk's flag set.
#[inline(always)]
pub(crate) unsafe fn tally<const WRITE: bool, const MANY: bool>(
    entry: *mut Chunk,
    address: u64,
    size: u64,
) {
    // SAFETY: the caller's. A histogram has a place for each byte of a chunk, and one more.
    unsafe {
        let hist = (*site((*entry).site)).hist;
        let (offset, all) = (address.wrapping_sub((*entry).start), (*entry).size());
        // An allocator for bytes may put chunks into one granule, of which the last is found: the
        // offset of another's byte wraps.
        if hist != 0 && size <= all && offset <= all - size {
            let row: *mut u64 = at(hist + if WRITE { (all + 1) * 8 } else { 0 });
            add64(row.add(offset as usize), 1, MANY);
            add64(row.add((offset + size) as usize), u64::MAX, MANY);
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
