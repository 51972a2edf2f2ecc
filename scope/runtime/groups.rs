//! Groups of a site's chunks that were allocated shortly after each other, for the score of
//! lifetimes.

use core::sync::atomic::{Ordering, compiler_fence};

use super::capture::{self, at};
use crate::capture_format::{Chunk, Group, Site};

/// Groups that a site has room for. With a threshold of at least 1/4096 of the run there are no
/// more gaps that long.
const MAX_GROUPS: u64 = 4096;

/// Puts a new chunk into the site's last group, or begins one.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped; `sum` is of it, and was made.
#[inline(always)]
pub(crate) unsafe fn join(sum: *mut Site, time: u64) {
    // SAFETY: the lock is held (`# Safety`), so `sum` is ours, with `groups_len` groups at `groups`
    // and room for `groups_room`. After `coarsen` gaps are longer than 1/2000 of the run, so there
    // are fewer than `MAX_GROUPS`, and one has room.
    unsafe {
        let sum = &mut *sum;
        // The longest power of two that is at most a thousandth of the run so far.
        let threshold = || 1_u64 << (time / 1000).max(1).ilog2();
        let groups = |offset: u64| at::<Group>(offset);
        if sum.groups_len > 0 {
            let last = groups(sum.groups).add(sum.groups_len as usize - 1);
            let gap = time.saturating_sub((*last).last_allocated);
            // It is longer than half of that.
            if gap <= time >> 11 || gap <= threshold() {
                (*last).last_allocated = time;
                (*last).chunks += 1;
                return;
            }
        }
        let bytes = |room: u64| room * size_of::<Group>() as u64;
        if sum.groups_len == sum.groups_room {
            coarsen(sum, threshold());
        }
        if sum.groups_len == sum.groups_room && sum.groups_room < MAX_GROUPS {
            let room = (sum.groups_room * 2).max(2);
            let new = capture::take(bytes(room));
            if new == 0 {
                return;
            }
            let (old, old_room) = (sum.groups, bytes(sum.groups_room));
            if old_room > 0 {
                at::<u8>(new).copy_from_nonoverlapping(at(old), old_room as usize);
            }
            sum.groups = new;
            sum.groups_room = room;
            // The process may be killed between the two.
            compiler_fence(Ordering::SeqCst);
            if old_room > 0 {
                capture::give(old, old_room);
            }
        }
        *groups(sum.groups).add(sum.groups_len as usize) = Group {
            first_allocated: time,
            last_allocated: time,
            chunks: 1,
            lifetimes: 0,
            last_freed: 0,
        };
        sum.groups_len += 1;
    }
}

/// Joins neighbours that are less than `threshold` apart: it has grown since they were made.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn coarsen(sum: &mut Site, threshold: u64) {
    if sum.groups_len == 0 {
        return;
    }
    // SAFETY: the lock is held (`# Safety`), so all `groups_len` entries are ours, and `kept < i`.
    unsafe {
        let groups: *mut Group = at(sum.groups);
        let mut kept = 0;
        for i in 1..sum.groups_len as usize {
            let (into, from) = (&mut *groups.add(kept), *groups.add(i));
            if from.first_allocated - into.last_allocated <= threshold {
                into.last_allocated = from.last_allocated;
                into.chunks += from.chunks;
                into.lifetimes += from.lifetimes;
                into.last_freed = into.last_freed.max(from.last_freed);
            } else {
                kept += 1;
                *groups.add(kept) = from;
            }
        }
        sum.groups_len = kept as u64 + 1;
    }
}

/// Adds a dead chunk's lifetime to the group in which it was allocated.
///
/// # Safety
///
/// As for [`join`].
#[inline(always)]
pub(crate) unsafe fn leave(sum: *mut Site, old: &Chunk, time: u64) {
    // SAFETY: the lock is held (`# Safety`), so these `groups_len` entries are ours; 0 of them may
    // lie anywhere in the capture.
    unsafe {
        let groups =
            core::slice::from_raw_parts_mut(at::<Group>((*sum).groups), (*sum).groups_len as usize);
        let began = |group: &Group| group.first_allocated <= old.allocated;
        // Most chunks die young, and a search in thousands of groups misses the cache.
        let after = match groups.last() {
            Some(last) if began(last) => groups.len(),
            _ => groups.partition_point(began),
        };
        if let Some(group) = groups[..after].last_mut() {
            group.lifetimes += time.saturating_sub(old.allocated);
            group.last_freed = group.last_freed.max(time);
        }
    }
}
