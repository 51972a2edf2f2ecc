//! Memory of free slots goes back to the OS in time, also that of arenas whose threads are idle.
//!
//! A thread that takes memory looks now and then through the arenas of all: a *sweep*. It takes no
//! slot and unmaps no chunk, but leaves the memory of slots that have long been free not resident.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::arena::{ALL_ARENAS, Arena};
use crate::chunk::{ChunkDesc, SlotRef, slots_mask};
use crate::geometry::SLOT_BYTES;
use crate::list::Listed;
use crate::{extents, options, sys};

/// Chunks with huge pages give back the memory of this many free slots or more: it cuts huge pages
/// into small ones, so a few are not worth it.
const SWEPT_HUGE_SLOTS_MIN: u32 = 8;
/// How many arenas are looked through at a time.
const ARENAS_AT_A_TIME: usize = 64;

/// When the latest sweep began.
static SWEPT_AT: AtomicUsize = AtomicUsize::new(0);
/// Where the next one begins; null for the first arena.
static NEXT: AtomicPtr<Arena> = AtomicPtr::new(null_mut());

/// Sweeps if it is time to, at the time `now`.
#[inline]
pub(crate) fn tick(now: usize) {
    let time = options::decay_milliseconds();
    let swept_at = SWEPT_AT.load(Ordering::Relaxed);
    // Saturating, here and below: another thread's clock may be ahead by a tick.
    if now.saturating_sub(swept_at) > time
        && (SWEPT_AT.compare_exchange(swept_at, now, Ordering::Relaxed, Ordering::Relaxed)).is_ok()
    {
        extents::decay(now);
        let is_due = |chunk: &ChunkDesc, idle: u32| {
            (idle.count_ones() >= SWEPT_HUGE_SLOTS_MIN || !chunk.huge.get())
                && now.saturating_sub(chunk.freed_at.get()) > time
        };
        let next = sweep(NEXT.load(Ordering::Acquire), ARENAS_AT_A_TIME, is_due).0;
        NEXT.store(next, Ordering::Release);
    }
}

/// Leaves the memory of all free slots not resident, and returns how many bytes.
pub(crate) fn sweep_all() -> usize {
    sweep(null_mut(), usize::MAX, |_, _| true).1
}

/// Looks through `count` arenas from `first` on, or the first of all if that is null, for chunks
/// that, with these free slots that have been used, are due to be cleared of them. Returns the next
/// arena, or null, and how many bytes it has left not resident.
fn sweep(
    first: *mut Arena,
    count: usize,
    is_due: impl Fn(&ChunkDesc, u32) -> bool,
) -> (*mut Arena, usize) {
    let (mut next, mut cleared) = (first, 0);
    if next.is_null() {
        next = ALL_ARENAS.load(Ordering::Acquire);
    }
    for _ in 0..count {
        // SAFETY: null or an arena in the list of all, which live for ever.
        let Some(arena) = (unsafe { next.as_ref() }) else {
            break;
        };
        next = arena.next_arena.load(Ordering::Acquire);
        let mut after = None;
        while let Some(desc) = clear_next(arena, after, &is_due, &mut cleared) {
            after = Some(desc);
        }
    }
    (next, cleared)
}

/// Clears the next chunk behind `after` that is due, and adds to `cleared`. `None` when there is
/// none, or the owner is at work. The owner waits for no more than one chunk.
fn clear_next<'a>(
    arena: &'a Arena,
    after: Option<&'a ChunkDesc>,
    is_due: &impl Fn(&ChunkDesc, u32) -> bool,
    cleared: &mut usize,
) -> Option<&'a ChunkDesc> {
    let _slots = arena.slots_lock.try_enter()?;
    let mut desc = match after {
        None => arena.open.get(),
        // Still in the list, since it has a free slot.
        Some(after) if after.free_slots.get() != 0 => after.links().next.get(),
        Some(_) => return None,
    };
    // SAFETY: null or a descriptor in the list, whose lock is held; descriptors live for ever.
    while let Some(open) = unsafe { desc.as_ref() } {
        desc = open.links().next.get();
        let all = if open.resident.get() { !0 } else { 0 };
        let idle = open.free_slots.get() & (open.used_slots.get() | all);
        if idle != 0 && is_due(open, idle) {
            // SAFETY: an open chunk of `arena`, whose lock is held; `idle` are free slots of it.
            *cleared += unsafe { clear_slots(open, idle) };
            return Some(open);
        }
    }
    None
}

/// Bytes of the free slots of an arena's chunks; 0 if its owner is changing them.
pub(crate) fn free_bytes(arena: &Arena) -> usize {
    let Some(_slots) = arena.slots_lock.try_enter() else {
        return 0;
    };
    let (mut slots, mut desc) = (0, arena.open.get());
    // SAFETY: null or a descriptor in the list, whose lock is held; descriptors live for ever.
    while let Some(open) = unsafe { desc.as_ref() } {
        desc = open.links().next.get();
        slots += open.free_slots.get().count_ones() as usize;
    }
    slots * SLOT_BYTES
}

/// Gives the memory of the free slots `idle` of an open chunk back to the OS, and returns how many
/// bytes.
///
/// # Safety
/// - The caller has the lock of the slots of the arena that the chunk is of.
unsafe fn clear_slots(desc: &ChunkDesc, mut idle: u32) -> usize {
    // SAFETY: an open chunk is mapped: its owner unmaps it with the lock, which the caller has.
    let Some(chunk) = (unsafe { desc.chunk.get().as_ref() }) else {
        return 0;
    };
    desc.resident.set(false);
    let mut cleared = 0;
    while idle != 0 {
        let first = idle.trailing_zeros();
        let count = (idle >> first).trailing_ones();
        let run = slots_mask(first as usize, count as usize);
        let start = SlotRef::new(chunk, first as usize).base();
        // SAFETY: whole slots of a mapped chunk, in no use: with the lock, nobody takes them.
        if unsafe { sys::clear(start, count as usize * SLOT_BYTES) } {
            desc.used_slots.set(desc.used_slots.get() & !run);
            cleared += count as usize * SLOT_BYTES;
        }
        idle &= !run;
    }
    cleared
}
