//! Totals of sites, threads and the process, which change when chunks are allocated and freed.

use core::sync::atomic::{AtomicU64, Ordering};

use super::capture::{at, header, site, thread};
use super::maps::touched_bytes;
use super::stack_cache::Nodes;
use super::unwind::SharedFrames;
use super::{curves, groups, recording, sys};
use crate::capture_format::{self, Chunk, FreedChunk, Site, Thread, flags, layout};

const PROCESS_POINTS: u32 = 2048;
const SITE_POINTS: u32 = 128;
const THREAD_POINTS: u32 = 64;

/// What an allocation is.
pub(crate) struct Allocation<'a> {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) usable: u64,
    /// Its site, or 0 if that follows from the stack.
    pub(crate) site: u32,
    /// Return addresses, innermost first.
    pub(crate) stack: &'a [u64],
    pub(crate) kept: SharedFrames,
    /// Nodes of the thread's last stack, for `kept`.
    pub(crate) nodes: Option<&'a Nodes>,
}

/// A chunk that `realloc` has taken out of the records until it knows the outcome.
pub(crate) struct Detached {
    pub(crate) chunk: Chunk,
    pub(crate) usable: u64,
}

pub(crate) fn total() -> *mut Site {
    // SAFETY: only the address is computed.
    unsafe { &raw mut (*header()).total }
}

/// What a chunk had already that `realloc` resized in place.
#[derive(Clone, Copy, Default)]
pub(crate) struct InPlace {
    bytes: u64,
    usable: u64,
}

impl InPlace {
    pub(crate) fn of(old: &Detached, new: &Allocation<'_>) -> InPlace {
        if old.chunk.start != new.start {
            return InPlace::default();
        }
        InPlace {
            bytes: old.chunk.size().min(new.size),
            usable: old.usable.min(new.usable),
        }
    }
}

/// For how many chunks one of this size counts.
#[inline(always)]
pub(crate) fn weight(size: u64) -> u64 {
    capture_format::weight(size, recording::options().sample)
}

/// Adds a new chunk to the sums.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped; `sum` is of it, and was made.
pub(crate) unsafe fn grow(sum: *mut Site, new: &Allocation<'_>, kept: InPlace, time: u64) {
    // SAFETY: the lock is held, and `sum` was made (`# Safety`): by the lock invariant it is ours.
    unsafe {
        draw(sum, time);
        let (sum, weight) = (&mut *sum, weight(new.size));
        sum.allocations += weight;
        sum.bytes += weight * (new.size - kept.bytes);
        sum.kept_bytes += weight * kept.bytes;
        sum.usable += weight * (new.usable - kept.usable);
        sum.live_chunks += weight;
        sum.live_bytes += weight * new.size;
        sum.live_usable += weight * new.usable;
        if sum.live_usable > sum.peak_usable {
            sum.peak_usable = sum.live_usable;
            sum.peak_time = time;
            sum.peak_chunks = sum.live_chunks;
        }
        sum.curve.peak = sum.curve.peak.max(sum.live_usable);
    }
}

/// Adds a new chunk to what is only told of sites.
pub(crate) fn note_size(sum: &mut Site, size: u64, time: u64) {
    sum.smallest = sum.smallest.min(size);
    sum.largest = sum.largest.max(size);
    if sum.first_time == 0 {
        sum.first_time = time;
    }
    sum.last_time = time;
    sum.run = if size > sum.last_size { sum.run + 1 } else { 1 };
    sum.longest_run = sum.longest_run.max(sum.run);
    sum.last_size = size;
}

/// Before the first change after a peak of the process: notes what a site had then.
///
/// # Safety
///
/// As for [`grow`].
pub(crate) unsafe fn note_peak(sum: *mut Site) {
    // SAFETY: the lock is held, and `sum` was made (`# Safety`): by the lock invariant it is ours.
    unsafe {
        let peak = (*total()).peak_time;
        if (*sum).peak_seen != peak {
            (*sum).peak_seen = peak;
            (*sum).at_peak_usable = (*sum).live_usable;
            (*sum).at_peak_bytes = (*sum).live_bytes;
            (*sum).at_peak_chunks = (*sum).live_chunks;
            (*sum).at_peak_touched = 0;
        }
    }
}

fn bits(n: u64) -> usize {
    ((64 - n.leading_zeros()) as usize).min(47)
}

/// Folds a dead chunk into its site, its thread and the process.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped; `old` was detached, with its map.
#[inline(never)]
pub(crate) unsafe fn retire(old: &Detached, time: u64, temporary: bool) {
    // SAFETY: all that it asks for is asked of callers (`# Safety`).
    unsafe { fold_into_sums(old, time, temporary) }
}

/// # Safety
///
/// As for [`retire`].
#[inline(always)]
pub(crate) unsafe fn fold_into_sums(old: &Detached, time: u64, temporary: bool) {
    // SAFETY: the lock is held; the chunk was `detached`, so its thread and its site were made and
    // its map is not given back (`# Safety`).
    unsafe {
        let of_thread = &mut *thread(old.chunk.thread());
        draw_thread(of_thread, time);
        let weight = weight(old.chunk.size());
        of_thread.live = of_thread.live.saturating_sub(weight * old.usable);
        of_thread.curve.peak = of_thread.curve.peak.max(of_thread.live);
        let touched = touched_bytes(&old.chunk);
        let sum = site(old.chunk.site);
        note_peak(sum);
        if old.chunk.allocated <= (*total()).peak_time {
            (*sum).at_peak_touched += touched;
        }
        for sum in [sum, total()] {
            draw(sum, time);
            shrink(&mut *sum, &old.chunk, old.usable, touched, weight);
        }
        fold(&mut *sum, &old.chunk, time, touched, weight);
        (*sum).temporary += weight * u64::from(temporary);
        groups::leave(site(old.chunk.site), &old.chunk, time);
        let full = recording::options().full;
        if full || is_sampled((*site(old.chunk.site)).frees) {
            let chunk = Chunk {
                touched,
                ..old.chunk
            };
            put(FreedChunk { chunk, freed: time }, full);
        }
    }
}

/// Whether the `nth` chunk of a site to be freed is kept: the first 31, and 16 for each doubling.
fn is_sampled(nth: u64) -> bool {
    nth.trailing_zeros() as usize + 5 >= bits(nth)
}

/// Turns in which the tool may make room before a dead chunk is given up.
const PATIENCE: u32 = 1 << 20;

/// Puts a dead chunk into the ring that the tool empties. Without `full`, a chunk for which there
/// is no room is left out of the sample.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn put(dead: FreedChunk, full: bool) {
    // SAFETY: the lock is held (`# Safety`), and the tool writes `freed_taken` only, so the entry
    // at `freed_put` is ours. A position is below the ring's length.
    unsafe {
        let header = header();
        let taken = AtomicU64::from_ptr(&raw mut (*header).freed_taken);
        let mut turns = 0;
        while (*header).freed_put - taken.load(Ordering::Acquire) >= layout::FREED_LEN {
            if !full {
                return;
            }
            turns += 1;
            if turns > PATIENCE {
                (*header).freed_lost += 1;
                return;
            }
            sys::sched_yield();
        }
        let index = (*header).freed_put % layout::FREED_LEN;
        *at::<FreedChunk>(layout::FREED + index * size_of::<FreedChunk>() as u64) = dead;
        AtomicU64::from_ptr(&raw mut (*header).freed_put)
            .store((*header).freed_put + 1, Ordering::Release);
    }
}

/// Takes a dead chunk off what is live.
#[inline(always)]
fn shrink(sum: &mut Site, old: &Chunk, usable: u64, touched: u64, weight: u64) {
    sum.frees += weight;
    sum.live_chunks -= weight;
    sum.live_bytes -= weight * old.size();
    sum.live_usable = sum.live_usable.saturating_sub(weight * usable);
    sum.live_touched = sum.live_touched.saturating_sub(touched);
    sum.curve.peak = sum.curve.peak.max(sum.live_usable);
}

/// Adds a dead chunk to the sums of its site.
#[inline(always)]
fn fold(sum: &mut Site, old: &Chunk, time: u64, touched: u64, weight: u64) {
    // Numbers below 2^63, which take fewer instructions than others.
    let double = |number: u64| number.cast_signed() as f64;
    let add = |sum: &mut u64, value: f64| {
        *sum = (f64::from_bits(*sum) + value).to_bits();
    };
    let life = time.saturating_sub(old.allocated);
    sum.lifetime += weight * life;
    sum.shortest_life = sum.shortest_life.min(life);
    sum.longest_life = sum.longest_life.max(life);
    for count in [
        &mut sum.lifetimes[bits(life)],
        &mut sum.sizes[bits(old.size())],
    ] {
        *count = count.saturating_add(weight as u32);
    }
    let bytes = double(weight * old.size());
    if old.first == 0 {
        sum.untouched_chunks += weight;
        add(&mut sum.drag, bytes * double(life));
        return;
    }
    sum.reads += u64::from(old.reads);
    sum.writes += u64::from(old.writes);
    sum.touched_bytes += touched;
    match (old.reads > 0, old.writes > 0) {
        (true, true) => sum.useful_bytes += touched,
        (true, false) => sum.unwritten_chunks += 1,
        (false, true) => sum.unread_chunks += 1,
        (false, false) => sum.untouched_chunks += 1,
    }
    sum.shared_chunks += u64::from(old.flags & flags::SHARED != 0);
    // Times of two threads differ until these add up their events.
    let active = old.last.min(time).saturating_sub(old.first);
    let after = time.saturating_sub(old.last);
    let before = old.first.saturating_sub(old.allocated);
    add(&mut sum.active_ratio, double(active) / double(life.max(1)));
    add(&mut sum.drag, bytes * double(after));
    add(&mut sum.wait, bytes * double(before));
}

/// Counts what a move has copied.
///
/// # Safety
///
/// As for [`retire`].
pub(crate) unsafe fn moved(old: &Detached, new: &Allocation<'_>) {
    // SAFETY: the lock is held, and the chunk's site was made (`# Safety`).
    unsafe {
        let sum = site(old.chunk.site);
        (*sum).reallocs += 1;
        if old.chunk.start != new.start {
            (*sum).moved_bytes += old.chunk.size().min(new.size);
        }
    }
}

/// Before a change of a site or of the process.
///
/// # Safety
///
/// As for [`grow`].
#[inline(always)]
pub(crate) unsafe fn draw(sum: *mut Site, time: u64) {
    // SAFETY: the lock is held, and `sum` was made (`# Safety`), so its curve is ours;
    // `live_touched`, which accesses change, is read by an atomic.
    unsafe {
        let room = if sum == total() {
            PROCESS_POINTS
        } else {
            SITE_POINTS
        };
        let touched = AtomicU64::from_ptr(&raw mut (*sum).live_touched);
        let level = move || {
            let touched = touched.load(Ordering::Relaxed);
            let (usable, requested) = ((*sum).live_usable, (*sum).live_bytes);
            [usable, requested, touched, (*sum).allocations]
        };
        if curves::before(&mut (*sum).curve, room, time, level) && sum == total() {
            ((*header()).last_ns, (*header()).last_tsc) = sys::clocks();
        }
    }
}

/// The same of a thread.
///
/// # Safety
///
/// As for [`draw`].
#[inline(always)]
pub(crate) unsafe fn draw_thread(of: *mut Thread, time: u64) {
    // SAFETY: the lock is held, and `of` is an entry (`# Safety`), whose curve is ours.
    unsafe {
        let level = move || [(*of).live, (*of).live, (*of).live, (*of).allocations];
        curves::before(&mut (*of).curve, THREAD_POINTS, time, level);
    }
}
