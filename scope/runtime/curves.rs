//! Live bytes over time, as a step function of bounded size.
//!
//! A point is written only when a value changes and holds until the next (001, section 3.2). When
//! the room is used up, twice as many events share a point; its peak is kept.

use super::arena::{at, give, take};
use super::sys;
use crate::format::{Curve, Point};

/// What a curve shows.
#[derive(Clone, Copy)]
pub(crate) struct Level {
    pub(crate) usable: u64,
    pub(crate) requested: u64,
    pub(crate) touched: u64,
}

/// Room of a new curve.
const FIRST_ROOM: u32 = 8;

fn bytes(room: u32) -> u64 {
    (size_of::<Curve>() + room as usize * size_of::<Point>()) as u64
}

/// Adds a change to the curve at `offset`, which is made if that is 0. Returns whether it has a new
/// point: only then is the time-stamp counter read, which takes as long as the rest.
///
/// # Safety
///
/// The caller holds the lock; `offset` is this curve's alone.
#[inline(always)]
pub(crate) unsafe fn add(
    offset: &mut u64,
    max_room: u32,
    time: u64,
    level: Level,
    allocated: bool,
) -> bool {
    // SAFETY: by the lock; `room` points follow the header of the curve.
    unsafe {
        if *offset != 0 {
            let curve: *mut Curve = at(*offset);
            // A curve has a point as soon as it is made.
            let last = points(curve).add((*curve).len as usize - 1);
            if (*last).time >> (*curve).shift == time >> (*curve).shift {
                merge(last, level, allocated);
                return false;
            }
        }
        extend(offset, max_room, time, level, allocated)
    }
}

fn points(curve: *mut Curve) -> *mut Point {
    curve.wrapping_add(1).cast()
}

/// [`add`] with a new point.
///
/// # Safety
///
/// As for [`add`].
#[inline(never)]
unsafe fn extend(
    offset: &mut u64,
    max_room: u32,
    time: u64,
    level: Level,
    allocated: bool,
) -> bool {
    // SAFETY: the caller's.
    unsafe {
        if *offset == 0 {
            *offset = take(bytes(FIRST_ROOM));
            if *offset == 0 {
                return false;
            }
            (*at::<Curve>(*offset)).room = FIRST_ROOM;
        }
        let mut curve: *mut Curve = at(*offset);
        if (*curve).len == (*curve).room {
            if (*curve).room < max_room {
                let room = (*curve).room * 2;
                let new = take(bytes(room));
                if new == 0 {
                    return false;
                }
                let old = bytes((*curve).room);
                at::<u8>(new).copy_from_nonoverlapping(at::<u8>(*offset), old as usize);
                give(*offset, old);
                *offset = new;
                curve = at(new);
                (*curve).room = room;
            } else {
                coarsen(curve, points(curve));
            }
        }
        let new = points(curve).add((*curve).len as usize);
        *new = Point {
            time,
            tsc: sys::tsc(),
            usable: level.usable,
            peak: level.usable,
            requested: level.requested,
            touched: level.touched,
            allocations: u64::from(allocated),
        };
        (*curve).len += 1;
        true
    }
}

/// # Safety
///
/// As for [`add`].
#[inline(always)]
unsafe fn merge(last: *mut Point, level: Level, allocated: bool) {
    // SAFETY: the caller's.
    unsafe {
        (*last).usable = level.usable;
        (*last).peak = (*last).peak.max(level.usable);
        (*last).requested = level.requested;
        (*last).touched = level.touched;
        (*last).allocations += u64::from(allocated);
    }
}

/// Doubles the events that share a point until half of the points are gone.
///
/// # Safety
///
/// As for [`add`].
unsafe fn coarsen(curve: *mut Curve, points: *mut Point) {
    // SAFETY: the caller's; `kept` stays below the point that is read.
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
