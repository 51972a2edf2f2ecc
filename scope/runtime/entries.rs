//! What an access changes in its chunk's entry beyond the counts: who accesses the chunk, and which
//! of its bytes were touched.
//!
//! The thread that has allocated a chunk counts its own accesses by plain additions; those of
//! others are counted elsewhere, by atomic ones, so that no count is lost. Times and maps of
//! touched bytes of chunks that several threads access at once may be those of either.

use core::sync::atomic::{AtomicU64, Ordering};

use super::capture::{at, header, site};
use super::clock::catch_up;
use super::counts::{add64, or64, word};
use super::fast_path::{self, flags_of, non_owner_counts};
use super::local::Local;
use super::recording::several_threads;
use super::{maps, shadow};
use crate::capture_format::{BLOCK, Chunk, MAX_MAPPED_BYTES, NON_OWNER, WATCHED, flags};

/// The clock of a chunk's owner may be so many events behind those of others that access it.
const SLACK: u64 = 64;

/// Counts in the site's what has just overflowed in the chunk's.
///
/// # Safety
///
/// As for [`add_one`](fast_path::add_one).
#[cold]
#[unsafe(no_mangle)]
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
/// As for [`add_one`](fast_path::add_one).
unsafe fn set_flag(entry: *mut Chunk, flag: u8) {
    // SAFETY: `entry` is that of a chunk that may be accessed (`# Safety`): nobody frees it.
    let flags = unsafe { fast_path::flags(entry) };
    if flags.load(Ordering::Relaxed) & flag == 0 {
        flags.fetch_or(flag, Ordering::Relaxed);
    }
}

/// Notes that this thread accesses the chunk; whether it counts in the entry.
///
/// # Safety
///
/// As for [`add_one`](fast_path::add_one), with `local` the calling thread's.
pub(crate) unsafe fn touched_by(local: *mut Local, entry: *mut Chunk) -> bool {
    // SAFETY: `entry` is that of a chunk that may be accessed (`# Safety`), so by the entry
    // invariant it is mapped, and what others change at once is changed by atomics.
    unsafe {
        // An allocator for bytes may put chunks into one granule, of which the last is found: bytes
        // before it would be counted in its histogram.
        let own = (*local).mark == (*entry).thread() && (*entry).start.is_multiple_of(8);
        let last_accessor = (*local).thread | if own { 0 } else { NON_OWNER };
        let before = fast_path::last_accessor(entry).load(Ordering::Relaxed);
        if before != last_accessor {
            let (first, last) = (fast_path::first(entry), fast_path::last(entry));
            catch_up(local, last.load(Ordering::Relaxed).max((*entry).allocated));
            let now = (*local).now;
            // Two threads that are here at once may both seem to be the first.
            if first.load(Ordering::Relaxed) == 0 {
                first.store(now, Ordering::Relaxed);
            } else if !(own && before == WATCHED) && before & !NON_OWNER != (*local).thread {
                // Watched, and not shared yet, are those that their own thread accessed last.
                set_flag(entry, flags::SHARED);
            }
            if !own {
                set_flag(entry, flags::NON_OWNER);
            }
            // What is shared stays so, and its owner need not come here again as long as its clock
            // is not behind and no store of it is waited for.
            let is_ahead = now / SLACK != last.load(Ordering::Relaxed) / SLACK;
            if before != WATCHED && (own || flags_of(entry) & flags::SHARED == 0 || is_ahead) {
                fast_path::last_accessor(entry).store(last_accessor, Ordering::Relaxed);
            }
        }
        own
    }
}

/// Adds what threads that do not own the chunk have counted to the counts of `old`, a copy of
/// `entry`, and forgets it.
///
/// # Safety
///
/// As for [`add_one`](fast_path::add_one); nobody accesses the chunk any more.
pub(crate) unsafe fn add_non_owner_counts(entry: *mut Chunk, old: &mut Chunk) {
    // SAFETY: `entry` is that of a chunk that may be accessed (`# Safety`), so by the entry
    // invariant it is mapped, and what others change at once is changed by atomics.
    unsafe {
        let counts = core::mem::take(&mut *non_owner_counts(entry));
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
/// As for [`add_one`](fast_path::add_one), with `local` the calling thread's.
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
        let (mut new, many) = (0, several_threads());
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
