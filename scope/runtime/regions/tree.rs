//! Regions by call path, in the capture: each track has a tree of its own.
//!
//! Recursion does not make the tree deep: while a function is open, further calls of it count for
//! its outermost call.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::super::capture::{LOCK, at, header};
use super::super::counts::add64;
use super::super::local::Local;
use super::super::recording::{self, several_threads};
use super::super::track::State;
use super::super::{modules, unwind};
use super::{CallKind, LINKS, events, opens};
use crate::capture_format::{Open, Region, Track, layout, region as kinds};

/// Set in keys of spans.
const SPAN: u64 = 1 << 63;
/// Set in keys of levels of recursion.
const LEVEL: u64 = 1 << 62;
/// Deeper levels of recursion count with this one.
const MAX_LEVEL: u32 = 64;
/// Links from here lead from the place of a name to the name that was there last.
const NAME: u32 = u32::MAX;

/// An entry of a track's hash table: the region that `key` leads to from another.
#[derive(Clone, Copy)]
#[repr(C)]
struct Link {
    key: u64,
    from: u32,
    to: u32,
}

const FIRST_LINKS: u64 = 256;
const MAX_LINKS: u64 = 1 << 21;

pub(super) fn region(number: u32) -> *mut Region {
    at(layout::REGIONS + u64::from(number) * size_of::<Region>() as u64)
}

/// Makes the region of a thread.
pub(super) fn root() -> u32 {
    make(0, kinds::THREAD, 0, 1)
}

/// A new region; 0 if there is no more room.
fn make(parent: u32, kind: u32, key: u64, level: u32) -> u32 {
    // SAFETY: the counter is a field of the header. It only grows, and each value is given to one
    // thread, below `MAX_REGIONS`: the entry lies in the table and is nobody else's.
    unsafe {
        let count = AtomicU64::from_ptr(&raw mut (*header()).regions);
        let next = |count: u64| (count + 1 < layout::MAX_REGIONS).then_some(count + 1);
        let Ok(before) = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) else {
            return 0;
        };
        let number = before + 1;
        let new = region(number as u32);
        ((*new).key, (*new).parent, (*new).kind, (*new).level) = (key, parent, kind, level);
        (*new).shift = 12;
        number as u32
    }
}

/// Where a call of `key` leads from the region `from`: the region that later calls are made in,
/// and the one that it opens, or 0.
///
/// # Safety
///
/// `state` is the calling thread's, which is at work.
pub(super) unsafe fn find(state: *mut State, from: u32, kind: CallKind, key: u64) -> (u32, u32) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let to = next(state, from, kind, key);
        if to == from && (*region(to)).key != key {
            return (from, 0);
        }
        let open = match kind {
            CallKind::Span => opens(state).iter().filter(|open| open.region == to).count() as u32,
            _ => (*region(to)).active,
        };
        if open == 0 {
            return (to, to);
        }
        if recording::options().regions < 2 {
            (*region(to)).recursive += 1;
            return (to, 0);
        }
        (to, level(state, to))
    }
}

/// The region to which `key` leads from another; that itself if there is no more room.
///
/// # Safety
///
/// As for [`find`].
pub(super) unsafe fn next(state: *mut State, from: u32, kind: CallKind, key: u64) -> u32 {
    // SAFETY: `state` is this thread's (`# Safety`); by the track invariant links lead to regions
    // that were made, and so do their parents.
    unsafe {
        let mut to = look_up(state, from, key);
        if to != 0 {
            return to;
        }
        to = ancestor(from, key);
        if to == 0 {
            let function = kind == CallKind::Function;
            if function {
                unwind::report(key, modules::note);
            }
            let kind = if function {
                kinds::FUNCTION
            } else {
                kinds::SPAN
            };
            to = make(from, kind, key, 1);
            if to == 0 {
                return from;
            }
        }
        insert(state, from, key, to);
        to
    }
}

/// The region of the next level of recursion.
///
/// # Safety
///
/// As for [`find`]; `of` is a region that was made.
unsafe fn level(state: *mut State, of: u32) -> u32 {
    // SAFETY: `state` is this thread's, and `of` was made (`# Safety`); by the track invariant so
    // were open regions and those that links lead to.
    unsafe {
        let is_level = |open: &&Open| {
            open.region == of || {
                let region = region(open.region);
                (*region).parent == of && (*region).level > 1
            }
        };
        let level = opens(state).iter().filter(is_level).count() as u32 + 1;
        if level > MAX_LEVEL {
            (*region(of)).recursive += 1;
            return 0;
        }
        let key = LEVEL | u64::from(level);
        let mut to = look_up(state, of, key);
        if to == 0 {
            to = make(of, (*region(of)).kind, (*region(of)).key, level);
            if to != 0 {
                insert(state, of, key, to);
            }
        }
        to
    }
}

/// The region of `key` on the path to `from`; 0 if there is none.
///
/// # Safety
///
/// `from` is a region, or 0.
unsafe fn ancestor(mut from: u32, key: u64) -> u32 {
    // SAFETY: `from` is 0 or a region that was made (`# Safety`), and so is the parent of each.
    unsafe {
        while from != 0 && ((*region(from)).key != key || (*region(from)).kind == kinds::THREAD) {
            from = (*region(from)).parent;
        }
    }
    from
}

/// # Safety
///
/// As for [`find`].
unsafe fn links(state: *mut State) -> *mut Link {
    // Tables lie behind each other, each twice as long as the one before.
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let before = ((*state).links_room - FIRST_LINKS) * size_of::<Link>() as u64;
        state.byte_add((LINKS + before) as usize).cast()
    }
}

/// # Safety
///
/// As for [`find`]; the table has a free entry.
#[inline(always)]
unsafe fn place(state: *mut State, from: u32, key: u64) -> *mut Link {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let mask = (*state).links_room - 1;
        let hash = (key ^ u64::from(from) << 40).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut index = hash >> 32 & mask;
        loop {
            let link = links(state).add(index as usize);
            if (*link).to == 0 || (*link).key == key && (*link).from == from {
                return link;
            }
            index = (index + 1) & mask;
        }
    }
}

/// # Safety
///
/// As for [`find`].
#[inline(always)]
unsafe fn look_up(state: *mut State, from: u32, key: u64) -> u32 {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        match (*state).links_room {
            0 => 0,
            _ => (*place(state, from, key)).to,
        }
    }
}

/// # Safety
///
/// As for [`find`].
unsafe fn insert(state: *mut State, from: u32, key: u64, to: u32) {
    // SAFETY: `state` is this thread's (`# Safety`). StackCache for `MAX_LINKS` is mapped, each
    // table behind the one before, and half of a table stays free, so `place` ends.
    unsafe {
        if (*state).links_room == 0 {
            (*state).links_room = FIRST_LINKS;
        } else if (*state).links * 2 >= (*state).links_room {
            if (*state).links_room == MAX_LINKS {
                return;
            }
            let (old, room) = (links(state), (*state).links_room);
            (*state).links_room *= 2;
            for index in 0..room {
                let link = *old.add(index as usize);
                if link.to != 0 {
                    *place(state, link.from, link.key) = link;
                }
            }
        }
        (*state).links += 1;
        *place(state, from, key) = Link { key, from, to };
    }
}

/// The key of a name, which is kept in the capture once.
///
/// # Safety
///
/// As for [`find`]; the name is `len` bytes long and never changes.
pub(super) unsafe fn name(
    local: *mut Local,
    state: *mut State,
    name: *const u8,
    len: usize,
) -> u64 {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let text = core::slice::from_raw_parts(name, len.min(255));
        // Linkers let a name begin another. Another library may have its own at this place later.
        let key = name as u64 ^ (len as u64) << 48;
        let known = look_up(state, NAME, key);
        if known != 0 && interned(known) == text {
            return SPAN | u64::from(known);
        }
        let busy = core::mem::replace(&mut (*local).busy, true);
        let offset = LOCK.with(|| intern(text));
        (*local).busy = busy;
        events::put_name(local, offset, text);
        match known {
            0 => insert(state, NAME, key, offset),
            _ => (*place(state, NAME, key)).to = offset,
        }
        SPAN | u64::from(offset)
    }
}

/// The name with a number.
///
/// # Safety
///
/// [`intern`] has given the number.
unsafe fn interned(number: u32) -> &'static [u8] {
    // SAFETY: `intern` has written the length and the bytes there before it gave the number to
    // anybody, and nobody writes a name again.
    unsafe {
        let place: *mut u8 = at(layout::NAMES + u64::from(number) - 1);
        core::slice::from_raw_parts(place.add(1), usize::from(*place))
    }
}

/// # Safety
///
/// The caller holds the lock.
unsafe fn intern(text: &[u8]) -> u32 {
    const ROOM: u64 = layout::NAMES_END - layout::NAMES;
    // SAFETY: the lock is held (`# Safety`): below `names_used`, which is ours, lie names, each its
    // length and so many bytes; beyond, there is room for `ROOM` in all.
    unsafe {
        let used = &raw mut (*header()).names_used;
        let mut offset = 0;
        while offset < *used {
            let place: *mut u8 = at(layout::NAMES + offset);
            let len = u64::from(*place);
            if core::slice::from_raw_parts(place.add(1), len as usize) == text {
                return offset as u32 + 1;
            }
            offset += 1 + len;
        }
        if offset + 1 + text.len() as u64 > ROOM {
            return 1;
        }
        let place: *mut u8 = at(layout::NAMES + offset);
        *place = text.len() as u8;
        place
            .add(1)
            .copy_from_nonoverlapping(text.as_ptr(), text.len());
        *used = offset + 1 + text.len() as u64;
        offset as u32 + 1
    }
}

/// Adds a footprint to the sums of a region.
///
/// # Safety
///
/// `to` is the number of a region that was made.
unsafe fn note_all(to: *mut Region, touched: [u64; 3], many: bool) {
    // SAFETY: regions are never unmapped, and all of these fields are aligned words. By the sums
    // invariant other threads that change them do so by atomic additions, too, if `many`.
    unsafe {
        for (index, count) in touched.into_iter().enumerate() {
            let sum = &raw mut (*to).touched[index];
            add64(&raw mut (*sum).total, count, many);
            let max = AtomicU64::from_ptr(&raw mut (*sum).max);
            if count > max.load(Ordering::Relaxed) {
                max.fetch_max(count, Ordering::Relaxed);
            }
        }
        let bits = 64 - touched[0].leading_zeros() as usize;
        let footprints = &raw mut (*to).footprints[bits.min(47)];
        if many {
            AtomicU32::from_ptr(footprints).fetch_add(1, Ordering::Relaxed);
        } else {
            *footprints += 1;
        }
        add64(&raw mut (*to).invocations, 1, many);
    }
}

/// Whether sums of a region are changed by several threads.
///
/// **Sums invariant**: sums of a function's region are changed by the thread that has its track
/// only. A thread that closes a span adds to the region of its first visit, perhaps of another
/// track: sums of spans, and of the named regions that share theirs, are changed by atomic
/// operations once there are several threads.
///
/// # Safety
///
/// `of` is a region that was made.
unsafe fn is_shared(of: *mut Region) -> bool {
    // SAFETY: a region's kind does not change once it is made.
    unsafe { (*of).kind == kinds::SPAN && several_threads() }
}

/// Adds an invocation that ends to its region.
///
/// # Safety
///
/// The region is of the calling thread's track.
pub(super) unsafe fn add(open: &Open, track: &Track, now: u64) {
    let touched = open.touched.map(i64::cast_unsigned);
    let new = touched[0].wrapping_sub(open.grown);
    // SAFETY: an open region was made, and this thread's track has it.
    unsafe {
        let counts = since(&open.before, track);
        add_all(open.region, touched, &counts, open.reused, new, now);
    }
}

/// Adds a span that is closed.
///
/// # Safety
///
/// `to` is a region that was made, of the kind of spans.
pub(super) unsafe fn add_span(to: u32, touched: [u64; 3], counts: &Track, reused: u64, now: u64) {
    // SAFETY: by the kind of the region others add to it by atomic operations.
    unsafe { add_all(to, touched, counts, reused, touched[0], now) }
}

/// # Safety
///
/// `to` is a region that was made; it is of the calling thread's track or of a span.
unsafe fn add_all(to: u32, touched: [u64; 3], counts: &Track, reused: u64, new: u64, now: u64) {
    let of = region(to);
    // SAFETY: what `note_all` and `grow` ask for is asked of callers; the counters are aligned
    // words of the capture, which stays mapped.
    unsafe {
        let many = is_shared(of);
        note_all(of, touched, many);
        for (sum, count) in [
            (&raw mut (*of).reads, counts.reads),
            (&raw mut (*of).writes, counts.writes),
            (&raw mut (*of).allocations, counts.allocations),
            (&raw mut (*of).allocated, counts.allocated),
            (&raw mut (*of).fresh, counts.fresh),
            (&raw mut (*of).reused, reused),
        ] {
            add64(sum, count, many);
        }
        grow(to, new, now);
    }
}

/// What has been counted since.
pub(super) fn since(before: &Track, now: &Track) -> Track {
    Track {
        depth: 0,
        reads: now.reads - before.reads,
        writes: now.writes - before.writes,
        fresh: now.fresh - before.fresh,
        allocations: now.allocations - before.allocations,
        allocated: now.allocated - before.allocated,
    }
}

/// Adds bytes that became part of a footprint by `now`.
///
/// # Safety
///
/// As for [`add_all`].
pub(super) unsafe fn grow(number: u32, bytes: u64, now: u64) {
    if bytes == 0 {
        return;
    }
    let of = region(number);
    // SAFETY: the fields are aligned words of the capture. By the sums invariant another thread
    // changes them by the same atomic operations. The index is below `STEPS` by the loop's end:
    // it is computed from the shift that the loop has seen.
    unsafe {
        let first = (&raw mut (*of).growth).cast::<u64>();
        let growth = |index| AtomicU64::from_ptr(first.add(index));
        let shift = AtomicU64::from_ptr(&raw mut (*of).shift);
        let mut seen = shift.load(Ordering::Relaxed);
        while now >> seen >= kinds::STEPS as u64 {
            let next = shift.compare_exchange(seen, seen + 1, Ordering::Relaxed, Ordering::Relaxed);
            if let Err(other) = next {
                seen = other;
                continue;
            }
            // What another thread adds meanwhile is moved at most once too often, and never lost.
            for index in 0..kinds::STEPS {
                let take = |at: usize| match at < kinds::STEPS {
                    true => growth(at).swap(0, Ordering::Relaxed),
                    false => 0,
                };
                let sum = take(2 * index) + take(2 * index + 1);
                growth(index).fetch_add(sum, Ordering::Relaxed);
            }
            seen += 1;
        }
        add64(
            growth((now >> seen) as usize).as_ptr(),
            bytes,
            is_shared(of),
        );
    }
}
