//! What the hot path leaves: first touches, changes of thread, windows and block operations.
//!
//! Accesses take no lock, allocate nothing and make no system call; now and then [`pause`] does
//! the rest. The thread that has allocated a chunk counts its own accesses by plain additions;
//! those of others are counted elsewhere, by atomic ones, so that no count is lost. Times and maps
//! of touched bytes of chunks that several threads access at once may be those of either.

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::arena::{LOCK, at, chunk, header, site};
use super::hot::{self, access, add_one, add64, flags_of, guests, or64, tally, word};
use super::local::{Local, local};
use super::{copies, lines, maps, regions, shadow, start, windows};
use crate::format::{BLOCK, Chunk, GUEST, MAX_MAPPED_BYTES, WATCHED, flags};

/// Whether a second thread has been started.
pub(crate) static MANY: AtomicBool = AtomicBool::new(false);

/// Accesses until a thread adds its events to the capture's.
pub(crate) const QUOTA: u64 = 1 << 16;

/// The clock of a chunk's owner may be so many events behind those of others that access it.
const SLACK: u64 = 64;

/// Counts in the site's what has just overflowed in the chunk's.
///
/// # Safety
///
/// As for [`add_one`].
#[cold]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_spill(entry: *mut Chunk, write: bool) {
    // SAFETY: `entry` is that of a chunk that may be accessed (`# Safety`), so by the entry
    // invariant it is mapped, and what others change at once is changed by atomics.
    unsafe {
        set_flag(entry, flags::SPILLED);
        for sum in [site((*entry).site), &raw mut (*header()).total] {
            let sum = if write {
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
    // SAFETY: `entry` is that of a chunk that may be accessed (`# Safety`): nobody frees it.
    let flags = unsafe { hot::flags(entry) };
    if flags.load(Ordering::Relaxed) & flag == 0 {
        flags.fetch_or(flag, Ordering::Relaxed);
    }
}

/// A load, in every case.
#[cold]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn ccscope_load(address: u64, size: u64) {
    rare::<false>(address, size);
}

/// A store, in every case.
#[cold]
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn ccscope_store(address: u64, size: u64) {
    rare::<true>(address, size);
}

#[inline(always)]
fn rare<const WRITE: bool>(address: u64, size: u64) {
    let local = local();
    // SAFETY: the block is this thread's. The program accesses the chunk that is found, so nobody
    // frees it meanwhile: what all functions called here ask of its entry.
    unsafe {
        (*local).now += 1;
        let is_due = (*local).now > (*local).limit;
        if is_due {
            pause(local, address, size, WRITE);
        }
        let (id, full) = shadow::look_up(address);
        if id == 0 {
            (*local).other[usize::from(WRITE)] += 1;
            return;
        }
        let entry = chunk(id);
        let own = touched_by(local, entry);
        let now = (*local).now;
        let offset = address.wrapping_sub((*entry).start);
        if own {
            add_one::<WRITE, true>(entry);
        } else {
            add_one::<WRITE, false>(entry);
        }
        let is_drawn = is_due && WRITE && MANY.load(Ordering::Relaxed);
        if !own || is_drawn || hot::toucher(entry).load(Ordering::Relaxed) == WATCHED {
            lines::accessed::<WRITE>(local, entry, address, own);
        }
        hot::last(entry).store(now, Ordering::Relaxed);
        if !full || shadow::is_beyond_page(address, size) {
            touch(entry, offset, size);
            if flags_of(entry) & flags::HISTOGRAM != 0 {
                tally::<WRITE, 0>(local, entry, address, size);
            }
        }
    }
}

/// Notes that this thread accesses the chunk; whether it counts in the entry.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's.
pub(crate) unsafe fn touched_by(local: *mut Local, entry: *mut Chunk) -> bool {
    // SAFETY: `entry` is that of a chunk that may be accessed (`# Safety`), so by the entry
    // invariant it is mapped, and what others change at once is changed by atomics.
    unsafe {
        // An allocator for bytes may put chunks into one granule, of which the last is found: bytes
        // before it would be counted in its histogram.
        let own = (*local).mark == (*entry).thread() && (*entry).start.is_multiple_of(8);
        let toucher = (*local).thread | if own { 0 } else { GUEST };
        let before = hot::toucher(entry).load(Ordering::Relaxed);
        if before != toucher {
            let (first, last) = (hot::first(entry), hot::last(entry));
            catch_up(local, last.load(Ordering::Relaxed).max((*entry).allocated));
            let now = (*local).now;
            // Two threads that are here at once may both seem to be the first.
            if first.load(Ordering::Relaxed) == 0 {
                first.store(now, Ordering::Relaxed);
            } else if !(own && before == WATCHED) && before & !GUEST != (*local).thread {
                // Watched, and not shared yet, are those that their own thread accessed last.
                set_flag(entry, flags::SHARED);
            }
            if !own {
                set_flag(entry, flags::GUESTS);
            }
            // What is shared stays so, and its owner need not come here again as long as its clock
            // is not behind and no store of it is waited for.
            let is_ahead = now / SLACK != last.load(Ordering::Relaxed) / SLACK;
            if before != WATCHED && (own || flags_of(entry) & flags::SHARED == 0 || is_ahead) {
                hot::toucher(entry).store(toucher, Ordering::Relaxed);
            }
        }
        own
    }
}

/// Puts the thread's clock forward to `time`, which another thread has given a chunk: between two
/// quotas, and while a thread waits, its clock falls behind. No event is counted.
///
/// # Safety
///
/// `local` is the calling thread's.
unsafe fn catch_up(local: *mut Local, time: u64) {
    // SAFETY: `local` is the calling thread's (`# Safety`), so nobody else uses the block.
    unsafe {
        let behind = time.saturating_sub((*local).now);
        if behind > 0 {
            (*local).now += behind;
            (*local).synced += behind;
            (*local).limit = (*local).limit.saturating_add(behind);
        }
    }
}

/// Adds what guests have counted to the counts of `old`, a copy of `entry`, and forgets it.
///
/// # Safety
///
/// As for [`add_one`]; nobody accesses the chunk any more.
pub(crate) unsafe fn add_guests(entry: *mut Chunk, old: &mut Chunk) {
    // SAFETY: `entry` is that of a chunk that may be accessed (`# Safety`), so by the entry
    // invariant it is mapped, and what others change at once is changed by atomics.
    unsafe {
        let counts = core::mem::take(&mut *guests(entry));
        let sums = [&mut old.reads, &mut old.writes];
        for ((sum, count), write) in sums.into_iter().zip(counts).zip([false, true]) {
            let (added, is_over) = sum.overflowing_add(count);
            *sum = added;
            if is_over {
                ccscope_spill(entry, write);
                old.flags |= flags::SPILLED;
            }
        }
    }
}

/// Marks `size` bytes from `offset` on as touched.
///
/// # Safety
///
/// As for [`add_one`], with `local` the calling thread's.
pub(crate) unsafe fn touch(entry: *mut Chunk, offset: u64, size: u64) {
    // SAFETY: the chunk is not being freed (`# Safety`), so by the entry invariant its map is its
    // own. `end` is at most its size, for each unit of which the map has a bit; words are atomic.
    unsafe {
        let all = (*entry).size();
        let end = offset.saturating_add(size).min(all);
        if offset >= end {
            return;
        }
        let unit = if all <= MAX_MAPPED_BYTES { 1 } else { BLOCK };
        let map: *mut u64 = if all <= 64 {
            &raw mut (*entry).touched
        } else {
            match (*entry).touched {
                0 => return,
                map => at(map),
            }
        };
        let (first, last) = (offset / unit, (end - 1) / unit);
        let (mut new, many) = (0, MANY.load(Ordering::Relaxed));
        for index in first / 64..=last / 64 {
            let from = first.max(index * 64) % 64;
            let to = last.min(index * 64 + 63) % 64;
            let mask = (u64::MAX >> (63 - (to - from))) << from;
            let word = AtomicU64::from_ptr(map.add(index as usize));
            if word.load(Ordering::Relaxed) & mask == mask {
                continue;
            }
            let old = or64(word, mask, many);
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
            // Frees subtract under the lock while others add without it.
            add64(&raw mut (*site((*entry).site)).live_touched, new, many);
            add64(&raw mut (*header()).total.live_touched, new, many);
        }
        // In a map of bytes, those that were touched before were seen then.
        if new > 0 || unit > 1 {
            shadow::see((*entry).start + offset, end - offset, many);
        }
    }
}

/// The 4 KiB of a large chunk that the word `index` of its map stands for are touched. Pages that
/// lie in them, or in them and their neighbours if these are touched, need no look at the map
/// from now on.
///
/// # Safety
///
/// `map` is that of a chunk of more than [`MAX_MAPPED_BYTES`] at `start`, which is not being freed,
/// and has a word `index`.
unsafe fn filled(start: u64, map: *mut u64, index: u64) {
    let from = start + index * 64 * BLOCK;
    // SAFETY: `map` has the word `index`, so all before it, too, and the piece of the heap that it
    // is in does not end the capture: words are aligned, mapped, and changed by atomics only.
    unsafe {
        if start.is_multiple_of(4096) {
            return shadow::fill(from);
        }
        if index > 0 && word(map.add(index as usize - 1)) == u64::MAX {
            shadow::fill(from);
        }
        // The last page of a chunk is not wholly the chunk's, and `fill` leaves it as it is; the
        // word after the last is of the same piece of memory or another's, and read as it is.
        if shadow::whole(from + 4096) && word(map.add(index as usize + 1)) == u64::MAX {
            shadow::fill(from + 4096);
        }
    }
}

/// `len` bytes that a block operation reads or writes: one access.
pub(crate) fn block<const WRITE: bool>(address: u64, len: u64) {
    if len == 0 {
        return;
    }
    if start::options().regions > 0 {
        return regions::touch::<WRITE>(address, len);
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
/// As for [`allocated`](super::chunks::allocated); `old`'s map still exists.
pub(crate) unsafe fn inherit(local: *mut Local, old: &Chunk, new: *mut Chunk) {
    if old.first == 0 {
        return;
    }
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        let now = (*local).now;
        (*new).last = now;
        touched_by(local, new);
        (*new).writes = u32::from(old.writes > 0);
        maps::touched_ranges(old, |offset, len| touch(new, offset, len));
    }
}

/// Adds this thread's events and one more to the capture's; returns the time of that one.
///
/// # Safety
///
/// `local` is the calling thread's, with a number; the capture is mapped, and the caller holds
/// the lock.
#[inline(always)]
pub(crate) unsafe fn event(local: *mut Local) -> u64 {
    // SAFETY: `local` is this thread's, and the lock is held (`# Safety`). Other threads add events
    // once they have taken it, or, if it is shared, by atomics.
    unsafe {
        (*local).now += 1;
        add_events(local, !LOCK.is_shared())
    }
}

/// Adds this thread's events to the capture's; returns the time.
///
/// # Safety
///
/// `local` is the calling thread's, with a number, and the capture is mapped.
pub(crate) unsafe fn sync(local: *mut Local) -> u64 {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe { add_events(local, false) }
}

/// # Safety
///
/// As for [`sync`]; no other thread adds events meanwhile if this one is `alone`.
#[inline(always)]
unsafe fn add_events(local: *mut Local, alone: bool) -> u64 {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        // A signal handler may have ended between the hot path's load of the time and its store.
        (*local).now = (*local).now.max((*local).synced);
        let mine = (*local).now - (*local).synced;
        let events = AtomicU64::from_ptr(&raw mut (*header()).events);
        let mut before = mine;
        if alone {
            // One instruction, within which no signal handler adds others.
            core::arch::asm!("xadd qword ptr [{}], {}", in(reg) events.as_ptr(),
                inout(reg) before, options(nostack));
        } else {
            before = events.fetch_add(mine, Ordering::Relaxed);
        }
        let time = before + mine;
        // What other threads have added meanwhile does not count as accesses of this one.
        // Nor does what the clock was ahead of the capture's.
        let ahead = time.wrapping_sub((*local).now);
        (*local).limit = (*local).limit.wrapping_add(ahead);
        (*local).now = time;
        (*local).synced = time;
        let of_thread = super::arena::thread((*local).thread);
        (*of_thread).events += mine;
        let [reads, writes] = core::mem::take(&mut (*local).other);
        if reads | writes != 0 {
            let many = MANY.load(Ordering::Relaxed);
            add64(&raw mut (*header()).other_reads, reads, many);
            add64(&raw mut (*header()).other_writes, writes, many);
        }
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
pub(crate) unsafe fn pause(local: *mut Local, address: u64, size: u64, write: bool) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        if !start::active() {
            start::require_table();
            (*local).limit = u64::MAX;
            return;
        }
        if (*local).thread == 0 {
            if (*local).busy {
                return;
            }
            begin_thread(local);
            (*local).now += 1;
        }
        windows::pause(local, address, size, write);
    }
}

/// Gives the thread a number if it has none.
///
/// # Safety
///
/// `local` is the calling thread's, not marked as busy, and the capture is mapped.
pub(crate) unsafe fn begin_thread(local: *mut Local) {
    // SAFETY: the block is this thread's and not in use (`# Safety`); while `thread` runs it is
    // marked as busy, which is what that asks for, with a capture that is mapped.
    unsafe {
        if (*local).thread == 0 {
            (*local).busy = true;
            start::thread(local);
            (*local).busy = false;
        }
    }
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
    // SAFETY: `to` and `from` have `len` bytes to write and to read (`# Safety`).
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
    // SAFETY: `to` and `from` have `len` bytes to write and to read (`# Safety`).
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
    // SAFETY: `to` has `len` bytes to write (`# Safety`).
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
