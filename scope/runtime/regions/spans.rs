//! Spans: regions that are entered many times, perhaps by several threads, before they are closed.
//!
//! What a span has touched is kept in a set of its own, to which each visit adds what was new in
//! that visit.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::super::capture::{LOCK, at, give, take};
use super::super::local::Local;
use super::super::track::State;
use super::events::{self, Event};
use super::{CallKind, enter, opens, remove, tree, with_state};
use crate::capture_format::{Open, Track, layout};

/// A span that is not closed. Lives in the capture's heap.
#[repr(C)]
struct Span {
    lock: AtomicU32,
    /// Its region from the first visit on.
    region: AtomicU32,
    key: u64,
    /// Offset of a hash table, and its entries in use and in all.
    set: u64,
    len: u64,
    room: u64,
    bytes: u64,
    reused: u64,
    counts: Track,
}

/// Bytes of a block; none are the end of a chain.
#[derive(Clone, Copy)]
#[repr(C)]
struct Member {
    block: u64,
    bytes: u64,
}

const FIRST_ROOM: u64 = 64;

/// Number of the capture among those of a process and the parents that it was forked from. A
/// program may hold spans of those: their numbers tell, and nothing is done with them.
static CAPTURE: AtomicU64 = AtomicU64::new(0);
const OFFSET_BITS: u32 = 35;
/// Pieces of the heap are aligned to so many bytes.
const UNIT: u64 = 64;
const _: () = assert!(layout::HEAP_END / UNIT <= 1 << OFFSET_BITS);

/// For a new capture.
pub(super) fn forget() {
    let next = (CAPTURE.load(Ordering::Relaxed) + 1) << OFFSET_BITS >> OFFSET_BITS;
    // Not 0, so that no span has this number.
    CAPTURE.store(next.max(1), Ordering::Relaxed);
}

/// What the program calls the span at an offset.
fn number(offset: u64) -> u64 {
    (CAPTURE.load(Ordering::Relaxed) << OFFSET_BITS) | (offset / UNIT)
}

/// Where the span lies; `None` if it is of another capture, or 0.
#[inline(always)]
fn offset(number: u64) -> Option<u64> {
    let is_ours = number >> OFFSET_BITS == CAPTURE.load(Ordering::Relaxed);
    is_ours.then_some(number % (1 << OFFSET_BITS) * UNIT)
}

fn span(number: u64) -> Option<*mut Span> {
    offset(number).map(at)
}

/// Runs `work` while no other thread uses the span.
///
/// # Safety
///
/// `of` is a span that is not closed.
unsafe fn locked<R>(of: *mut Span, work: impl FnOnce(&mut Span) -> R) -> R {
    // SAFETY: the span is not closed (`# Safety`), so it stays; with its lock the reference is the
    // only one. The lock itself is atomic.
    unsafe {
        let lock = &raw const (*of).lock;
        while (*lock).swap(1, Ordering::Acquire) != 0 {
            core::hint::spin_loop();
        }
        let result = work(&mut *of);
        (*lock).store(0, Ordering::Release);
        result
    }
}

/// # Safety
///
/// Called by the owner of `local`, which allocates nothing else meanwhile.
unsafe fn with_heap<R>(local: *mut Local, work: impl FnOnce() -> R) -> R {
    // SAFETY: `local` is this thread's (`# Safety`); marked as busy it does not come here again.
    unsafe {
        let busy = core::mem::replace(&mut (*local).busy, true);
        let result = LOCK.with(work);
        (*local).busy = busy;
        result
    }
}

/// Begins a span; 0 if nothing is recorded.
///
/// # Safety
///
/// As for [`ccscope_region_enter`](super::ccscope_region_enter).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_span_new(name: *const u8, len: usize) -> u64 {
    let made = with_state(|local, state| {
        // SAFETY: the name is `len` bytes long and stays (`# Safety`). The lock is held by
        // `with_heap`, and new memory is zero, which is a span without visits.
        unsafe {
            let key = tree::name(local, state, name, len);
            let offset = with_heap(local, || take(size_of::<Span>() as u64));
            if offset == 0 {
                return 0;
            }
            (*at::<Span>(offset)).key = key;
            let number = number(offset);
            events::put(local, Event::SpanNew, number, key & 0xFFFF_FFFF);
            number
        }
    });
    made.unwrap_or(0)
}

/// The calling thread enters a span.
///
/// # Safety
///
/// The span is not closed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_span_enter(number: u64) {
    let mark = 0_u8;
    let here = (&raw const mark) as u64;
    with_state(|local, state| {
        let Some(span) = span(number) else { return };
        events::put(local, Event::SpanEnter, number, here);
        // SAFETY: the span is not closed (`# Safety`), so it stays, and its key is never written
        // again. Its region, an atomic, is that of its first visit.
        unsafe {
            let region = &(*span).region;
            enter(state, CallKind::Span, (*span).key, here, number);
            if let Some(last) = opens(state).last().filter(|last| last.span == number) {
                let _other =
                    region.compare_exchange(0, last.region, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    });
}

/// The calling thread leaves a span that it has entered, and what it has entered since.
///
/// # Safety
///
/// The span is not closed.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_span_exit(number: u64) {
    with_state(|local, state| {
        if span(number).is_none() {
            return;
        }
        events::put(local, Event::SpanExit, number, 0);
        // SAFETY: the state is this thread's, which is at work; calls below the count are written.
        unsafe {
            let is_it = |index: &u64| {
                let call = *super::call(state, *index);
                call.kind == CallKind::Span && call.span == number
            };
            if let Some(index) = (0..(*state).calls).rev().find(is_it) {
                remove(state, index, (*local).now);
            }
        }
    });
}

/// A span that is open turns out to be called elsewhere: its region is `to` if it was `from`.
///
/// # Safety
///
/// The span is not closed.
pub(super) unsafe fn moved(number: u64, from: u32, to: u32) {
    let Some(span) = span(number) else { return };
    // SAFETY: the span is not closed (`# Safety`), so it stays; the field is atomic.
    let region = unsafe { &(*span).region };
    // Otherwise it is that of another visit.
    let _other = region.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
}

/// Counts a span, which is entered no more.
///
/// # Safety
///
/// The span is not closed, and nobody uses it any more.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_span_close(number: u64) {
    with_state(|local, _| {
        let Some(offset) = offset(number) else { return };
        events::put(local, Event::SpanClose, number, 0);
        // SAFETY: nobody uses the span any more (`# Safety`), so with the lock that `with_heap`
        // takes it is ours to read and to give back.
        unsafe {
            let now = (*local).now;
            with_heap(local, || {
                let span = &mut *at::<Span>(offset);
                let region = span.region.load(Ordering::Relaxed);
                if region != 0 {
                    let touched = [span.bytes, span.len, pages(span)];
                    tree::add_span(region, touched, &span.counts, span.reused, now);
                }
                if span.set != 0 {
                    give(span.set, span.room * size_of::<Member>() as u64);
                }
                give(offset, size_of::<Span>() as u64);
            });
        }
    });
}

/// # Safety
///
/// The caller holds the capture's lock.
unsafe fn pages(of: &Span) -> u64 {
    if of.len == 0 {
        return 0;
    }
    // SAFETY: the lock is held (`# Safety`). Both tables have `room` members, and at most
    // half of those of `of` are in use, so `join` finds a free one.
    unsafe {
        let mut pages = Span {
            lock: AtomicU32::new(0),
            region: AtomicU32::new(0),
            key: 0,
            set: take(of.room * size_of::<Member>() as u64),
            len: 0,
            room: of.room,
            ..core::mem::zeroed()
        };
        if pages.set == 0 {
            return 0;
        }
        for index in 0..of.room {
            let member = *at::<Member>(of.set).add(index as usize);
            if member.bytes != 0 {
                join(&mut pages, member.block / 64, 1);
            }
        }
        give(pages.set, pages.room * size_of::<Member>() as u64);
        pages.len
    }
}

/// Adds bytes of a block; returns those that are new.
///
/// # Safety
///
/// The table is the caller's, and has a free place.
unsafe fn join(to: &mut Span, block: u64, bytes: u64) -> u64 {
    // SAFETY: the table has `room` members, a power of two, and a free one (`# Safety`).
    unsafe {
        let mut index = (block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) & (to.room - 1);
        loop {
            let member = at::<Member>(to.set).add(index as usize);
            if (*member).bytes == 0 || (*member).block == block {
                to.len += u64::from((*member).bytes == 0);
                let new = bytes & !(*member).bytes;
                *member = Member {
                    block,
                    bytes: (*member).bytes | bytes,
                };
                return new;
            }
            index = (index + 1) & (to.room - 1);
        }
    }
}

/// Gives the set room for one more block; false if there is none.
///
/// # Safety
///
/// The calling thread has the span's lock.
unsafe fn make_room(of: &mut Span, local: *mut Local) -> bool {
    if of.len * 2 < of.room {
        return true;
    }
    // SAFETY: the calling thread has the span's lock (`# Safety`), so the table is its own; the new
    // one is zero and twice as long, so half of it is free. `with_heap` takes the heap's lock.
    unsafe {
        let (old, room) = (of.set, of.room);
        let more = (room * 2).max(FIRST_ROOM);
        let new = with_heap(local, || take(more * size_of::<Member>() as u64));
        if new == 0 {
            return false;
        }
        (of.set, of.room, of.len) = (new, more, 0);
        for index in 0..room {
            let member = *at::<Member>(old).add(index as usize);
            if member.bytes != 0 {
                join(of, member.block, member.bytes);
            }
        }
        if old != 0 {
            with_heap(local, || give(old, room * size_of::<Member>() as u64));
        }
        true
    }
}

/// Adds bytes of a block to the spans that are open beyond `level`: for these they are new in this
/// visit.
///
/// # Safety
///
/// `state` is the calling thread's, which is at work.
pub(super) unsafe fn touch(state: *mut State, level: usize, block: u64, bytes: u64) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`); a span that is open is not
    // closed, and `join` follows `make_room`.
    unsafe {
        let local = super::super::local::local();
        for (index, open) in opens(state).iter().enumerate().skip(level) {
            let Some(span) = span(open.span) else {
                continue;
            };
            locked(span, |span| {
                if make_room(span, local) {
                    let new = join(span, block, bytes).count_ones();
                    span.bytes += u64::from(new);
                    // Its caller has touched them, and this visit is where the span meets them.
                    span.reused += if index == level && level > 0 {
                        new.into()
                    } else {
                        0
                    };
                }
            });
        }
    }
}

/// Adds what was counted in a visit that ends.
///
/// # Safety
///
/// The visit is the calling thread's.
pub(super) unsafe fn leave(open: &Open, track: &Track) {
    // SAFETY: the visit is this thread's (`# Safety`), so its span is open and not closed.
    unsafe {
        let Some(span) = span(open.span) else { return };
        locked(span, |span| {
            let new = tree::since(&open.before, track);
            let sums = &mut span.counts;
            sums.reads += new.reads;
            sums.writes += new.writes;
            sums.fresh += new.fresh;
            sums.allocations += new.allocations;
            sums.allocated += new.allocated;
        });
    }
}
