//! Bookkeeping: updates the records of chunks and sites when one is allocated, resized or freed.
//!
//! All of it happens under one lock. Accesses do not take it: they count in the chunk's entry.

use core::sync::atomic::{AtomicU64, Ordering};

use super::call_tree::{self, Stacks, UNKNOWN};
use super::capture::{self, LOCK, chunk, header, site, thread};
use super::compact::{self, compact_chunk};
use super::local::Local;
use super::maps::{give_map, histogram, map_of};
use super::sums::{
    Allocation, Detached, InPlace, draw, draw_thread, fold_into_sums, grow, moved, note_peak,
    note_size, retire, total, weight,
};
use super::{clock, entries, groups, recording, sampling, shadow};
use crate::capture_format::{Chunk, CompactChunk, NO_THREAD, flags, layout};

/// What the lock guards beside the capture.
struct LockedState {
    stacks: Stacks,
    /// Entries of chunks that were freed: a list through the `next` of compact chunks and the
    /// `touched` of others.
    free: u32,
}

struct Guarded(core::cell::UnsafeCell<LockedState>);

// SAFETY: used under `LOCK` only.
unsafe impl Sync for Guarded {}

static LOCKED_STATE: Guarded = Guarded(core::cell::UnsafeCell::new(LockedState {
    stacks: Stacks::NEW,
    free: 0,
}));

fn compact_flag() -> &'static AtomicU64 {
    // SAFETY: the counter is a field of the header.
    unsafe { AtomicU64::from_ptr(&raw mut (*header()).compact) }
}

/// Whether accesses are looked up. Until the first, chunks are [compact](super::compact), and no
/// map of their touched bytes is kept.
#[inline(always)]
pub(crate) fn looked_up() -> bool {
    compact_flag().load(Ordering::Acquire) == 0
}

/// Records an allocation and returns its site; `from` is the chunk that it replaces, by `realloc`.
///
/// # Safety
///
/// `local` is the calling thread's, marked as busy; the capture is mapped; the bytes belong to
/// nobody else until the chunk is freed. `from` is of [`detached`].
pub(crate) unsafe fn allocated(
    local: *mut Local,
    new: &Allocation<'_>,
    mut from: Option<Detached>,
) -> u32 {
    let hash = if new.site == 0 && new.kept.hash == 0 {
        call_tree::hash(new.stack)
    } else {
        new.kept.hash
    };
    LOCK.with(|| {
        // SAFETY: the lock is held. `local` is this thread's, and the bytes are the chunk's alone
        // (`# Safety`). Of `from`, `detached` has said that its site, thread and map exist.
        unsafe {
            let state = &mut *LOCKED_STATE.0.get();
            let time = clock::event(local);
            let kept = from
                .as_ref()
                .map_or_else(InPlace::default, |old| InPlace::of(old, new));
            if let Some(old) = &mut from {
                moved(old, new);
                if old.chunk.first != 0 {
                    // Its content is read.
                    old.chunk.reads = old.chunk.reads.saturating_add(1);
                    old.chunk.last = time;
                }
                retire(old, time, false);
            }
            if !recording::options().sites {
                note_peak(total());
                grow(total(), new, kept, time);
                return UNKNOWN;
            }
            let id = if new.site == 0 {
                let nodes = new.nodes.map(|nodes| (nodes, new.kept.frames));
                state.stacks.site(new.stack, hash, nodes)
            } else {
                new.site
            };
            note_peak(site(id));
            grow(site(id), new, kept, time);
            note_size(&mut *site(id), new.size, time);
            (*site(id)).threads |= 1 << (*local).thread.min(63);
            // After the site: a peak of the process includes this chunk.
            grow(total(), new, kept, time);
            let of_thread = &mut *thread((*local).thread);
            draw_thread(of_thread, time);
            let weight = weight(new.size);
            of_thread.allocations += weight;
            of_thread.live += weight * new.usable;
            of_thread.peak = of_thread.peak.max(of_thread.live);
            of_thread.curve.peak = of_thread.curve.peak.max(of_thread.live);
            ((*local).last_allocated, (*local).last_site) = (time, id);
            let is_same = |old: &Detached| old.chunk.size() == new.size;
            (*site(id)).same_size += u64::from(from.as_ref().is_some_and(is_same));
            groups::join(site(id), time);
            let kept = histogram(site(id), new.size);
            let generation = from.as_ref().map_or(0, |old| {
                let is_larger = new.size > old.chunk.size();
                old.chunk.generation.saturating_add(is_larger.into())
            });
            let entry = state.take_entry();
            let chunk = Chunk {
                start: new.start,
                size_and_thread: new.size | u64::from((*local).thread) << 48,
                reads: 0,
                writes: 0,
                touched: 0,
                allocated: time,
                first: 0,
                last: 0,
                site: id,
                last_accessor: NO_THREAD,
                generation,
                flags: if kept { flags::HISTOGRAM } else { 0 },
            };
            if entry == 0 || !state.put_entry(entry, &chunk) {
                (*header()).lost_chunks += 1;
                return id;
            }
            if let Some(old) = &from {
                entries::inherit(local, &old.chunk, capture::chunk(entry));
                give_map(&old.chunk);
                let sum = site(id);
                (*sum).longest_chain = (*sum).longest_chain.max(u64::from(generation));
            }
            id
        }
    })
}

/// Takes the chunk at `start` out, before its memory is given back to the allocator.
///
/// # Safety
///
/// As for [`allocated`]; nobody accesses the chunk any more.
pub(crate) unsafe fn freed(local: *mut Local, start: u64, usable: u64) {
    LOCK.with(|| {
        // SAFETY: the lock is held, the thread is marked as busy, and nobody accesses the chunk (`#
        // Safety`), so its entry and its map are ours to give back.
        unsafe {
            let time = clock::event(local);
            if !recording::options().sites {
                draw(total(), time);
                let sum = &mut *total();
                sum.frees += 1;
                sum.live_chunks = sum.live_chunks.saturating_sub(1);
                sum.live_usable = sum.live_usable.saturating_sub(usable);
                sum.curve.peak = sum.curve.peak.max(sum.live_usable);
                return;
            }
            let newest = (*local).last_allocated;
            let is_temporary = |old: &Detached| {
                old.chunk.allocated == newest && old.chunk.thread() == (*local).thread
            };
            if looked_up() {
                if let Some(old) = detach::<false>(start, usable) {
                    retire(&old, time, is_temporary(&old));
                    give_map(&old.chunk);
                    sampling::remove(start);
                }
            } else if let Some(old) = detach::<true>(start, usable) {
                sampling::remove(start);
                // Compiled once more, for chunks that nobody has accessed.
                fold_into_sums(&old, time, is_temporary(&old));
            }
        }
    });
}

/// Takes the chunk at `start` from its place, for `realloc`, which then calls [`allocated`] or
/// [`attach`].
///
/// # Safety
///
/// As for [`freed`].
pub(crate) unsafe fn detached(start: u64, usable: u64) -> Option<Detached> {
    // SAFETY: the lock is held, and nobody accesses the chunk any more (`# Safety`).
    LOCK.with(|| unsafe {
        if looked_up() {
            detach::<false>(start, usable)
        } else {
            detach::<true>(start, usable)
        }
    })
}

/// Puts a chunk back, because `realloc` failed.
///
/// # Safety
///
/// As for [`allocated`]; `old` is of [`detached`], and not used again.
pub(crate) unsafe fn attach(old: &Detached) {
    LOCK.with(|| {
        // SAFETY: the lock is held. `old` was taken out of the records, so its map and its bytes
        // are nobody else's (`# Safety`), and the entry is new.
        unsafe {
            let state = &mut *LOCKED_STATE.0.get();
            let entry = state.take_entry();
            if entry != 0 {
                // It may have been compact.
                let flags = old.chunk.flags | flags_of(&old.chunk);
                state.put_entry(entry, &Chunk { flags, ..old.chunk });
            }
        }
    });
}

/// Ends a chunk that `realloc` to 0 bytes has freed.
///
/// # Safety
///
/// As for [`freed`]; `old` is of [`detached`], and not used again.
pub(crate) unsafe fn gone(local: *mut Local, old: &Detached) {
    LOCK.with(|| {
        // SAFETY: the lock is held. `old` was taken out of the records (`# Safety`), so its map is
        // ours.
        unsafe {
            retire(old, clock::event(local), false);
            give_map(&old.chunk);
        }
    });
}

/// Forgets everything, for a new capture.
///
/// # Safety
///
/// No other thread exists.
pub(crate) unsafe fn forget() {
    LOCK.reset();
    compact_flag().store((!recording::options().accesses).into(), Ordering::Relaxed);
    // SAFETY: there is no other thread.
    unsafe {
        *LOCKED_STATE.0.get() = LockedState {
            stacks: Stacks::NEW,
            free: 0,
        };
        capture::forget();
        call_tree::new_site(0);
    }
    sampling::begin();
    shadow::forget();
    compact::forget();
}

impl LockedState {
    /// # Safety
    ///
    /// The caller holds the lock and the capture is mapped.
    unsafe fn take_entry(&mut self) -> u32 {
        // SAFETY: the lock is held (`# Safety`): by the lock invariant listed entries were made and
        // are nobody's, and a new one is below `MAX_CHUNKS`, so it lies in its table.
        unsafe {
            if self.free != 0 {
                let entry = self.free;
                self.free = if looked_up() {
                    (*chunk(entry)).touched as u32
                } else {
                    (*compact_chunk(entry)).next
                };
                return entry;
            }
            let next = (*header()).chunks.max(1);
            if next >= layout::MAX_CHUNKS {
                return 0;
            }
            (*header()).chunks = next + 1;
            next as u32
        }
    }

    /// Makes `entry` that of `new`, which is found by its address from now on. If there is no room
    /// for that, gives the entry back and returns false.
    ///
    /// # Safety
    ///
    /// As for [`LockedState::take_entry`], of which `entry` comes; nobody refers to it.
    #[inline(always)]
    unsafe fn put_entry(&mut self, entry: u32, new: &Chunk) -> bool {
        // SAFETY: the lock is held; `entry` comes of `take_entry`, and nobody refers to it (`#
        // Safety`). The bytes are of no other chunk, as its maker has promised.
        unsafe {
            let found = if looked_up() {
                let touched = if new.touched == 0 {
                    map_of(new.size())
                } else {
                    new.touched
                };
                *chunk(entry) = Chunk { touched, ..*new };
                let set = shadow::set(new.start, new.size(), entry);
                if !set {
                    shadow::set(new.start, new.size(), 0);
                }
                set
            } else {
                *compact_chunk(entry) = CompactChunk {
                    start: new.start,
                    size_and_thread: new.size_and_thread,
                    allocated: new.allocated,
                    site_and_generation: new.site | u32::from(new.generation) << 24,
                    next: 0,
                };
                compact::insert(new.start, entry)
            };
            if !found {
                self.give_entry(entry);
            }
            found
        }
    }

    /// # Safety
    ///
    /// As for [`LockedState::put_entry`]; nobody finds `entry` by an address.
    unsafe fn give_entry(&mut self, entry: u32) {
        // SAFETY: the lock is held; `entry` lies in its table, and nobody refers to it (`#
        // Safety`).
        unsafe {
            if looked_up() {
                (*chunk(entry)).start = 0;
                (*chunk(entry)).touched = u64::from(self.free);
            } else {
                (*compact_chunk(entry)).start = 0;
                (*compact_chunk(entry)).next = self.free;
            }
        }
        self.free = entry;
    }
}

/// Before the first access of a thread: from now on all bytes of a chunk lead to it.
///
/// # Safety
///
/// The capture is mapped, and the thread is not within these functions.
pub(crate) unsafe fn look_up() {
    LOCK.with(|| {
        if looked_up() {
            return;
        }
        // SAFETY: the lock is held, so by the lock invariant all entries below the count were made
        // as compact chunks. No access is looked up yet, so nobody else uses the chunks' entries.
        unsafe {
            for id in 1..(*header()).chunks as u32 {
                let mut new = (*compact_chunk(id)).chunk();
                if new.start == 0 {
                    (*chunk(id)).touched = u64::from((*compact_chunk(id)).next);
                    continue;
                }
                new.flags = flags_of(&new);
                new.touched = map_of(new.size());
                *chunk(id) = new;
                // One whose end was not seen is no longer found.
                if compact::find(new.start) == id && !shadow::set(new.start, new.size(), id) {
                    (*header()).lost_chunks += 1;
                    shadow::set(new.start, new.size(), 0);
                }
            }
        }
        compact_flag().store(0, Ordering::Release);
    });
}

/// What a compact chunk does not say: whether its site has a histogram.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn flags_of(new: &Chunk) -> u8 {
    // SAFETY: the lock is held, and a chunk's site was made (`# Safety`).
    let kept = unsafe { (*site(new.site)).hist_size };
    match new.size() {
        size if size > 0 && size == kept => flags::HISTOGRAM,
        _ => 0,
    }
}

/// # Safety
///
/// The caller holds the lock and the capture is mapped; chunks are compact if `COMPACT`.
#[inline(always)]
unsafe fn detach<const COMPACT: bool>(start: u64, usable: u64) -> Option<Detached> {
    // SAFETY: the lock is held (`# Safety`), so by the lock invariant what `find` and `remove` give
    // is 0, whose entry is mapped too, or a live chunk's. If it begins at `start`, nobody accesses
    // it.
    unsafe {
        let (entry, mut old) = if COMPACT {
            let entry = compact::remove(start);
            (entry, (*compact_chunk(entry)).chunk())
        } else {
            let entry = shadow::find(start);
            (entry, *chunk(entry))
        };
        if entry == 0 || old.start != start {
            if recording::options().sites && !sampling::is_on() {
                (*header()).unknown_frees += 1;
            }
            return None;
        }
        if !COMPACT {
            if old.flags & flags::NON_OWNER != 0 {
                entries::add_non_owner_counts(chunk(entry), &mut old);
            }
            shadow::set(start, old.size(), 0);
        }
        (*LOCKED_STATE.0.get()).give_entry(entry);
        // What allocators do not tell is what was asked for.
        Some(Detached {
            chunk: old,
            usable: usable.max(old.size()),
        })
    }
}
