//! Live bytes over time, as a step function of bounded size.
//!
//! A point is written only when a value changes and holds until the next (M. Jurenz et al., 2007,
//! section 3.2). When the room is used up, twice as many events share a point; its peak is kept.

use core::sync::atomic::{Ordering, compiler_fence};

use super::capture::{at, give, take};
use super::sys;
use crate::capture_format::{Curve, CurveTail, Point};

/// What a curve shows: usable, requested and touched bytes, and allocations so far.
pub(crate) type Level = [u64; 4];

/// Room of a new curve.
const FIRST_ROOM: u32 = 8;

fn bytes(room: u32) -> u64 {
    (size_of::<Curve>() + room as usize * size_of::<Point>()) as u64
}

/// Before a change of `level`: adds a point if the last one does not stand for `time`. Returns
/// whether it has: only then is the time-stamp counter read, which takes as long as the rest.
///
/// # Safety
///
/// The caller holds the lock; the curve is this tail's alone.
#[inline(always)]
pub(crate) unsafe fn before(
    tail: &mut CurveTail,
    max_room: u32,
    time: u64,
    level: impl FnOnce() -> Level,
) -> bool {
    // SAFETY: the lock is held, and the curve is this tail's (`# Safety`).
    time >= tail.until && unsafe { extend(tail, max_room, time, level()) }
}

fn points(curve: *mut Curve) -> *mut Point {
    curve.wrapping_add(1).cast()
}

/// [`before`] with a new point.
///
/// # Safety
///
/// As for [`before`].
#[cold]
#[inline(never)]
unsafe fn extend(tail: &mut CurveTail, max_room: u32, time: u64, level: Level) -> bool {
    let [usable, requested, touched, allocations] = level;
    // SAFETY: the lock is held (`# Safety`), so `take` and `give` may be called, and the curve is
    // ours. `room` points follow its header, and after `coarsen` `len` is below
    // `room`.
    unsafe {
        if tail.offset == 0 {
            tail.offset = take(bytes(FIRST_ROOM));
            if tail.offset == 0 {
                return false;
            }
            (*at::<Curve>(tail.offset)).room = FIRST_ROOM;
        }
        let mut curve: *mut Curve = at(tail.offset);
        let room = (*curve).room;
        if (*curve).len == room && room < max_room {
            let new = take(bytes(room * 2));
            if new == 0 {
                return false;
            }
            at::<u8>(new).copy_from_nonoverlapping(curve.cast(), bytes(room) as usize);
            let old = core::mem::replace(&mut tail.offset, new);
            // The process may be killed between the two.
            compiler_fence(Ordering::SeqCst);
            give(old, bytes(room));
            curve = at(new);
            (*curve).room = room * 2;
        }
        if (*curve).len > 0 {
            let last = &mut *points(curve).add((*curve).len as usize - 1);
            last.peak = tail.peak;
            last.allocations = allocations - last.allocations;
            (last.usable, last.requested, last.touched) = (usable, requested, touched);
        }
        if (*curve).len == (*curve).room {
            coarsen(curve, points(curve));
        }
        *points(curve).add((*curve).len as usize) = Point {
            time,
            tsc: sys::tsc(),
            usable: 0,
            peak: 0,
            requested: 0,
            touched: 0,
            allocations,
        };
        (*curve).len += 1;
        tail.until = ((time >> (*curve).shift) + 1) << (*curve).shift;
        tail.peak = 0;
        true
    }
}

/// Doubles the events that share a point until half of the points are gone.
///
/// # Safety
///
/// As for [`before`].
unsafe fn coarsen(curve: *mut Curve, points: *mut Point) {
    // SAFETY: the curve's `len` points are ours (`# Safety`); `kept` stays below the point that is
    // read.
    unsafe {
        let target = (*curve).room / 2;
        while (*curve).len > target {
            (*curve).shift += 1;
            let mut kept = 0;
            for i in 1..(*curve).len as usize {
                let (into, from) = (points.add(kept), points.add(i));
                if (*into).time >> (*curve).shift == (*from).time >> (*curve).shift {
                    let peak = (*into).peak.max((*from).peak);
                    let allocations = (*into).allocations + (*from).allocations;
                    let (time, tsc) = ((*into).time, (*into).tsc);
                    *into = Point {
                        time,
                        tsc,
                        peak,
                        allocations,
                        ..*from
                    };
                } else {
                    kept += 1;
                    *points.add(kept) = *from;
                }
            }
            (*curve).len = kept as u32 + 1;
        }
    }
}
