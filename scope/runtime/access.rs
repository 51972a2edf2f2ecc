//! The access path: what every instrumented load and store runs through.
//!
//! It takes no lock, allocates nothing and makes no system call; now and then [`pause`] does the
//! rest. While the process has one thread, counts are plain additions; from the second on they are
//! atomic, so that no count is lost. Times and maps of touched bytes of chunks that
//! several threads access at once may be those of either.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::arena::{at, chunk, header, site};
use super::local::{Local, local};
use super::shadow::Page;
use super::{chunks, copies, shadow, start, windows};
use crate::format::{BLOCK, Chunk, MAX_MAPPED_BYTES, flags};

/// Whether a second thread has been started.
pub(crate) static MANY: AtomicBool = AtomicBool::new(false);

/// Accesses until a thread adds its events to the capture's.
pub(crate) const QUOTA: u64 = 1 << 16;

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

/// One access of `size` bytes, which the program makes next.
///
/// This is the common case without a call and without saved registers: nothing is due, there is one
/// thread, and the address is outside the heap or in a page of one chunk that was touched before.
#[inline(always)]
pub(crate) fn access<const WRITE: bool>(address: u64, size: u64) {
    let local = local();
    // SAFETY: the block is this thread's; a signal handler may have changed it in between, which
    // shifts times by some events.
    unsafe {
        let now = (*local).now + 1;
        if now > (*local).alone_limit {
            return crowded::<WRITE>(address, size);
        }
        match shadow::page(address) {
            Page::Full(id) => {
                let entry = chunk(id);
                (*entry).last = now;
                (*local).now = now;
                add_one::<WRITE, false>(entry);
            }
            Page::Nobody => {
                (*local).other[usize::from(WRITE)] += 1;
                (*local).now = now;
            }
            Page::Other(word) => apart::<WRITE>(address, size, word),
        }
    }
}

/// [`access`] of the only thread in a page of several chunks, where the bytes were touched before.
/// Everything else is left to [`rare`], with nothing counted yet.
#[inline(never)]
fn apart<const WRITE: bool>(address: u64, size: u64, word: u32) {
    let local = local();
    // SAFETY: as for `access`.
    unsafe {
        let now = (*local).now + 1;
        let id = shadow::in_page(word, address);
        if id == 0 {
            (*local).other[usize::from(WRITE)] += 1;
            (*local).now = now;
            return;
        }
        let entry = chunk(id);
        let offset = address.wrapping_sub((*entry).start);
        let (all, flags) = ((*entry).size(), (*entry).flags);
        if flags & flags::TOUCHED == 0 && !touched(entry, offset, size, all) {
            return rare::<WRITE>(address, size);
        }
        if flags & flags::HISTOGRAM != 0 {
            tally::<WRITE, false>(entry, offset, size, all);
        }
        (*entry).last = now;
        (*local).now = now;
        add_one::<WRITE, false>(entry);
    }
}

/// [`access`] when there were several threads, where the bytes were touched before and this thread
/// was the last to access the chunk. Everything else is left to [`rare`].
#[inline(never)]
fn crowded<const WRITE: bool>(address: u64, size: u64) {
    let local = local();
    // SAFETY: as for `access`.
    unsafe {
        let now = (*local).now + 1;
        if now > (*local).limit {
            return rare::<WRITE>(address, size);
        }
        let (id, full) = shadow::look_up(address);
        if id == 0 {
            (*local).other[usize::from(WRITE)] += 1;
            (*local).now = now;
            return;
        }
        let entry = chunk(id);
        if (*entry).toucher != (*local).thread {
            return rare::<WRITE>(address, size);
        }
        if !full {
            let offset = address.wrapping_sub((*entry).start);
            let (all, flags) = ((*entry).size(), (*entry).flags);
            if flags & flags::TOUCHED == 0 && !touched(entry, offset, size, all) {
                return rare::<WRITE>(address, size);
            }
            if flags & flags::HISTOGRAM != 0 {
                tally::<WRITE, true>(entry, offset, size, all);
            }
        }
        (*entry).last = now;
        (*local).now = now;
        add_one::<WRITE, true>(entry);
    }
}

/// Adds one to a chunk's reads or writes.
///
/// # Safety
///
/// `entry` is that of a chunk that the program may access now.
#[inline(always)]
unsafe fn add_one<const WRITE: bool, const MANY: bool>(entry: *mut Chunk) {
    // SAFETY: the caller's. The counters of an entry are written as atomics only.
    unsafe {
        let counter = if WRITE {
            &raw mut (*entry).writes
        } else {
            &raw mut (*entry).reads
        };
        let counter = AtomicU32::from_ptr(counter);
        let before = if MANY {
            counter.fetch_add(1, Ordering::Relaxed)
        } else {
            let before = counter.load(Ordering::Relaxed);
            counter.store(before.wrapping_add(1), Ordering::Relaxed);
            before
        };
        if before == u32::MAX {
            spill::<WRITE>(entry);
        }
    }
}

/// Counts in the site's what has just overflowed in the chunk's.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's.
#[cold]
#[inline(never)]
unsafe fn spill<const WRITE: bool>(entry: *mut Chunk) {
    // SAFETY: the caller's.
    unsafe {
        set_flag(entry, flags::SPILLED);
        for sum in [site((*entry).site), &raw mut (*header()).total] {
            let sum = if WRITE {
                &raw mut (*sum).writes
            } else {
                &raw mut (*sum).reads
            };
            add64(sum, 1 << 32, true);
        }
    }
}

/// # Safety
///
/// As for [`add_one`].
unsafe fn set_flag(entry: *mut Chunk, flag: u8) {
    // SAFETY: the caller's.
    unsafe { AtomicU8::from_ptr(&raw mut (*entry).flags).fetch_or(flag, Ordering::Relaxed) };
}

/// Whether these bytes were touched before, if that can be said at once.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's.
#[inline(always)]
unsafe fn touched(entry: *mut Chunk, offset: u64, size: u64, all: u64) -> bool {
    // SAFETY: the caller's; the map has a bit for each byte or block of the chunk.
    unsafe {
        let map = (*entry).touched;
        if all <= 64 {
            return size <= 64
                && offset <= 64 - size
                && (!map << (64 - size - offset)) >> (64 - size) == 0;
        }
        if map == 0 {
            return false;
        }
        let (unit, len) = if all > MAX_MAPPED_BYTES {
            (offset / BLOCK, (offset % BLOCK + size).div_ceil(BLOCK))
        } else {
            (offset, size)
        };
        if size > all || offset > all - size || unit % 64 + len > 64 {
            return false;
        }
        let word: *mut u64 = at(map + unit / 64 * 8);
        (!*word >> (unit % 64)) << (64 - len) == 0
    }
}

/// Counts the access in the site's histogram.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's.
#[inline(always)]
unsafe fn tally<const WRITE: bool, const MANY: bool>(
    entry: *mut Chunk,
    offset: u64,
    size: u64,
    all: u64,
) {
    // SAFETY: the caller's. A histogram has a place for each byte of a chunk, and one more.
    unsafe {
        let hist = (*site((*entry).site)).hist;
        // An allocator for bytes may put chunks into one granule, of which the last is found: the
        // offset of another's byte wraps.
        if hist != 0 && size <= all && offset <= all - size {
            let row: *mut u64 = at(hist + if WRITE { (all + 1) * 8 } else { 0 });
            add64(row.add(offset as usize), 1, MANY);
            add64(row.add((offset + size) as usize), u64::MAX, MANY);
        }
    }
}

/// [`access`] in every case.
#[cold]
#[inline(never)]
fn rare<const WRITE: bool>(address: u64, size: u64) {
    let local = local();
    // SAFETY: as for `access`.
    unsafe {
        (*local).now += 1;
        if (*local).now > (*local).limit {
            pause(local, address, size, WRITE);
        }
        let (id, full) = shadow::look_up(address);
        if id == 0 {
            (*local).other[usize::from(WRITE)] += 1;
            return;
        }
        let entry = chunk(id);
        let now = (*local).now;
        if (*entry).toucher != (*local).thread {
            // Two threads that are here at once may both seem to be the first.
            if (*entry).first == 0 {
                (*entry).first = now;
            } else {
                set_flag(entry, flags::SHARED);
            }
            (*entry).toucher = (*local).thread;
        }
        let offset = address.wrapping_sub((*entry).start);
        add_one::<WRITE, true>(entry);
        (*entry).last = now;
        if !full {
            touch(entry, offset, size);
            if (*entry).flags & flags::HISTOGRAM != 0 {
                tally::<WRITE, true>(entry, offset, size, (*entry).size());
            }
        }
    }
}

/// Marks `size` bytes from `offset` on as touched.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's.
unsafe fn touch(entry: *mut Chunk, offset: u64, size: u64) {
    // SAFETY: the caller's; `end` is within the chunk, and so the bits are within the map.
    unsafe {
        let all = (*entry).size();
        let end = offset.saturating_add(size).min(all);
        if offset >= end {
            return;
        }
        let unit = if all <= MAX_MAPPED_BYTES { 1 } else { BLOCK };
        let map: *mut u64 = match (*entry).touched {
            _ if all <= 64 => &raw mut (*entry).touched,
            0 => return,
            map => at(map),
        };
        let (first, last) = (offset / unit, (end - 1) / unit);
        let mut new = 0;
        for index in first / 64..=last / 64 {
            let from = first.max(index * 64) % 64;
            let to = last.min(index * 64 + 63) % 64;
            let mask = (u64::MAX >> (63 - (to - from))) << from;
            let word = AtomicU64::from_ptr(map.add(index as usize));
            let old = word.fetch_or(mask, Ordering::Relaxed);
            new += u64::from((mask & !old).count_ones()) * unit;
            // The last block of a chunk may be shorter.
            let tail = (all - 1) / unit;
            if unit > 1 && tail / 64 == index && mask & !old & 1 << (tail % 64) != 0 {
                new -= (BLOCK - all % BLOCK) % BLOCK;
            }
            if unit > 1 && old != u64::MAX && old | mask == u64::MAX {
                filled((*entry).start, map, index);
            }
        }
        if new > 0 {
            // Frees subtract under the lock while others add without it, hence atomics.
            add64(&raw mut (*site((*entry).site)).live_touched, new, true);
            add64(&raw mut (*header()).total.live_touched, new, true);
            if is_complete(map, all.div_ceil(unit)) {
                set_flag(entry, flags::TOUCHED);
            }
        }
    }
}

/// Whether `bits` bits from `map` on are all set; false for large maps, whose chunks have pages
/// that say so.
///
/// # Safety
///
/// The map has that many bits.
unsafe fn is_complete(map: *mut u64, bits: u64) -> bool {
    let words = bits.div_ceil(64);
    // SAFETY: the caller's.
    let word = |index: u64| unsafe { AtomicU64::from_ptr(map.add(index as usize)) };
    let is_full = |index| {
        let mask = u64::MAX >> ((64 - bits.min(index * 64 + 64) % 64) % 64);
        word(index).load(Ordering::Relaxed) == mask
    };
    words <= MAX_MAPPED_BYTES / 64 && (0..words).all(is_full)
}

/// The 4 KiB of a large chunk that the word `index` of its map stands for are touched. Pages that
/// lie in them, or in them and their neighbours if these are touched, need no look at the map
/// from now on.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's.
unsafe fn filled(start: u64, map: *mut u64, index: u64) {
    let from = start + index * 64 * BLOCK;
    // SAFETY: the caller's: the map has a word for each 4 KiB that the page overlaps.
    unsafe {
        if start.is_multiple_of(4096) {
            return shadow::fill(from);
        }
        if index > 0 && *map.add(index as usize - 1) == u64::MAX {
            shadow::fill(from);
        }
        // The last page of a chunk is not wholly the chunk's, and `fill` leaves it as it is; the
        // word after the last is of the same piece of memory or another's, and read as it is.
        if shadow::whole(from + 4096) && *map.add(index as usize + 1) == u64::MAX {
            shadow::fill(from + 4096);
        }
    }
}

/// `len` bytes that a block operation reads or writes: one access.
pub(crate) fn block<const WRITE: bool>(address: u64, len: u64) {
    if len == 0 {
        return;
    }
    access::<WRITE>(address, len);
    if shadow::find(address) != 0 {
        // SAFETY: the counter is a field of the header.
        add64(
            unsafe { &raw mut (*header()).block_bytes },
            len,
            MANY.load(Ordering::Relaxed),
        );
    }
}

/// What `realloc` carries over to the new chunk: its content, hence one write of it, and a read of
/// the old.
///
/// # Safety
///
/// As for [`chunks::allocated`]; `old`'s map still exists.
pub(crate) unsafe fn inherit(local: *mut Local, old: &Chunk, new: *mut Chunk) {
    if old.first == 0 {
        return;
    }
    // SAFETY: the caller's.
    unsafe {
        let now = (*local).now;
        (*new).first = now;
        (*new).last = now;
        (*new).toucher = (*local).thread;
        (*new).writes = u32::from(old.writes > 0);
        chunks::touched_ranges(old, |offset, len| touch(new, offset, len));
    }
}

/// Adds this thread's events and one more to the capture's; returns the time of that one.
///
/// # Safety
///
/// `local` is the calling thread's, and the capture is mapped.
pub(crate) unsafe fn event(local: *mut Local) -> u64 {
    // SAFETY: the caller's.
    unsafe {
        if (*local).thread == 0 {
            start::thread(local);
        }
        (*local).now += 1;
        sync(local)
    }
}

/// Adds this thread's events to the capture's; returns the time.
///
/// # Safety
///
/// As for [`event`].
pub(crate) unsafe fn sync(local: *mut Local) -> u64 {
    // SAFETY: the caller's.
    unsafe {
        let mine = (*local).now - (*local).synced;
        let events = AtomicU64::from_ptr(&raw mut (*header()).events);
        let time = events.fetch_add(mine, Ordering::Relaxed) + mine;
        // What other threads have added meanwhile does not count as accesses of this one.
        (*local).set_limit((*local).limit + time - (*local).now);
        (*local).now = time;
        (*local).synced = time;
        let of_thread = super::arena::thread((*local).thread);
        (*of_thread).events += mine;
        let [reads, writes] = core::mem::take(&mut (*local).other);
        let many = MANY.load(Ordering::Relaxed);
        add64(&raw mut (*header()).other_reads, reads, many);
        add64(&raw mut (*header()).other_writes, writes, many);
        time
    }
}

/// What cannot be done at each access: begins a thread, a window or a new quota, and records the
/// access if a window is under way.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's.
#[cold]
#[inline(never)]
unsafe fn pause(local: *mut Local, address: u64, size: u64, write: bool) {
    // SAFETY: the caller's.
    unsafe {
        if !start::active() {
            start::require_table();
            (*local).alone = true;
            (*local).set_limit(u64::MAX);
            return;
        }
        if (*local).thread == 0 {
            if (*local).busy {
                return;
            }
            (*local).busy = true;
            start::thread(local);
            (*local).busy = false;
            (*local).now += 1;
        }
        windows::pause(local, address, size, write);
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
        #[allow(non_snake_case, reason = "the compiler's name")]
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

/// Instead of `memcpy`.
///
/// # Safety
///
/// As for `memcpy`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn __asan_memcpy(
    to: *mut c_void,
    from: *const c_void,
    len: usize,
) -> *mut c_void {
    block::<false>(from as u64, len as u64);
    block::<true>(to as u64, len as u64);
    // SAFETY: the caller's.
    unsafe { copies::move_bytes(to, from, len) }
}

/// Instead of `memmove`.
///
/// # Safety
///
/// As for `memmove`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn __asan_memmove(
    to: *mut c_void,
    from: *const c_void,
    len: usize,
) -> *mut c_void {
    block::<false>(from as u64, len as u64);
    block::<true>(to as u64, len as u64);
    // SAFETY: the caller's.
    unsafe { copies::move_bytes(to, from, len) }
}

/// Instead of `memset`.
///
/// # Safety
///
/// As for `memset`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn __asan_memset(
    to: *mut c_void,
    byte: i32,
    len: usize,
) -> *mut c_void {
    block::<true>(to as u64, len as u64);
    // SAFETY: the caller's.
    unsafe { copies::set_bytes(to, byte, len) }
}

macro_rules! ignored {
    ($($name:ident)*) => {$(
        /// Part of the interface of `AddressSanitizer`; nothing to do.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $name() {}
    )*};
}

ignored! {
    __asan_init __asan_handle_no_return __asan_before_dynamic_init __asan_after_dynamic_init
    __asan_register_globals __asan_unregister_globals __asan_register_elf_globals
    __asan_unregister_elf_globals __asan_register_image_globals __asan_unregister_image_globals
    __asan_version_mismatch_check_v8 __asan_poison_stack_memory __asan_unpoison_stack_memory
    __asan_alloca_poison __asan_allocas_unpoison
}
