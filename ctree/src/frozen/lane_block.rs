//! The lanes of a block that are not keys: index and filler. Knows the width of a lane, but neither
//! the type of the keys nor the values, so that it is compiled once for each width rather than once
//! for each map.

use core::convert::Infallible;
use core::ptr::NonNull;

use crate::lane::{LaneKind, by_lane};
use crate::narrow::Lane;
use crate::plan::{NODE_BYTES, Plan};

/// Offset of the key of a rank, or of the filler after the last key.
fn key_at(plan: &Plan, lane_bytes: usize, rank: usize) -> usize {
    let lanes = NODE_BYTES / lane_bytes;
    plan.leaf_at(rank / lanes) + rank % lanes * lane_bytes
}

/// Filler: the lanes of the last leaf that hold no key.
fn filler(plan: &Plan, lane_bytes: usize) -> impl Iterator<Item = usize> {
    let slots = plan.leaf_count() * (NODE_BYTES / lane_bytes);
    (plan.len()..slots).map(move |slot| key_at(plan, lane_bytes, slot))
}

/// Calls `visit` for every lane of the index with its offset and what it should hold, until there
/// is an error.
///
/// # Safety
/// - `base` is the start of a block that was laid out after `plan`, for lanes of type `L`;
/// - the keys of all ranks below `plan.len()` are initialised.
unsafe fn for_each_separator<L: Lane, E>(
    base: NonNull<u8>,
    plan: &Plan,
    mut visit: impl FnMut(usize, Separator<L>) -> Result<(), E>,
) -> Result<(), E> {
    for (lane_at, rank) in plan.separators() {
        let key = rank.map(|rank| {
            // SAFETY: the plan names ranks below its length only, whose keys are initialised
            // integers of this type.
            unsafe {
                base.add(key_at(plan, size_of::<L>(), rank))
                    .cast::<L>()
                    .read()
            }
        });
        let separator = match plan.narrowing() {
            Some(narrowing) => {
                Separator::Narrow(key.map_or(u32::MAX, |key| narrowing.head(key.ordered_bits())))
            }
            None => Separator::Whole(key.unwrap_or(L::LARGEST)),
        };
        visit(lane_at, separator)?;
    }
    Ok(())
}

/// What a lane of the index holds.
enum Separator<L> {
    /// A key.
    Whole(L),
    /// The head of one.
    Narrow(u32),
}

/// Address of a lane.
///
/// # Safety
/// `lane_at` is the offset, in a block that was laid out after `plan` and starts at `base`, of a
/// lane of type `L`.
unsafe fn lane<L>(base: NonNull<u8>, plan: &Plan, lane_at: usize) -> NonNull<L> {
    debug_assert!(
        lane_at + size_of::<L>() <= plan.block_bytes() && lane_at.is_multiple_of(size_of::<L>()),
        "a lane of {} B at {lane_at} of {} B",
        size_of::<L>(),
        plan.block_bytes()
    );
    // SAFETY: the lane lies inside the block.
    unsafe { base.add(lane_at).cast::<L>() }
}

/// Writes index and filler of a block whose keys are written.
///
/// # Safety
/// - `base` is the start of a block that was laid out after `plan`, for lanes of `kind`, and that
///   nothing else uses meanwhile;
/// - the keys of all ranks below `plan.len()` are initialised.
pub(super) unsafe fn fill(kind: LaneKind, base: NonNull<u8>, plan: &Plan) {
    by_lane!(kind, L => {
        for lane_at in filler(plan, size_of::<L>()) {
            // SAFETY: the plan has lanes of this type in its leaves, and this is none of the keys.
            unsafe { lane::<L>(base, plan, lane_at).write(L::LARGEST) };
        }
        let write = |lane_at, separator| {
            match separator {
                // SAFETY: the plan has lanes of this type in its index, and none of them is a key.
                Separator::Whole(key) => unsafe { lane::<L>(base, plan, lane_at).write(key) },
                // SAFETY: with a narrowing the plan has lanes of `u32` in its index, none of them a
                // key.
                Separator::Narrow(head) => unsafe { lane::<u32>(base, plan, lane_at).write(head) },
            }
            Ok::<(), Infallible>(())
        };
        // SAFETY: the caller promises the block after `plan`, with initialised keys.
        let Ok(()) = unsafe { for_each_separator::<L, Infallible>(base, plan, write) };
    });
}

/// Whether index and filler hold what [`fill`] wrote; if not, the offset of a lane that does not.
///
/// # Safety
/// `base` is the start of a block that was laid out after `plan`, for lanes of `kind`, filled, and
/// that nothing writes to meanwhile.
pub(super) unsafe fn check(kind: LaneKind, base: NonNull<u8>, plan: &Plan) -> Result<(), usize> {
    by_lane!(kind, L => {
        for lane_at in filler(plan, size_of::<L>()) {
            // SAFETY: the plan gives offsets of lanes inside the block, which `fill` has
            // initialised.
            if unsafe { lane::<L>(base, plan, lane_at).read() } != L::LARGEST {
                return Err(lane_at);
            }
        }
        let compare = |lane_at, separator| {
            let holds = match separator {
                // SAFETY: the plan gives offsets of lanes inside the block, which `fill` has
                // initialised with this type.
                Separator::Whole(key) => unsafe { lane::<L>(base, plan, lane_at).read() == key },
                // SAFETY: with a narrowing `fill` has initialised this lane as a `u32`.
                Separator::Narrow(head) => unsafe {
                    lane::<u32>(base, plan, lane_at).read() == head
                },
            };
            if holds { Ok(()) } else { Err(lane_at) }
        };
        // SAFETY: the caller promises that the block was laid out after `plan` and is filled, which
        // includes the keys.
        unsafe { for_each_separator::<L, usize>(base, plan, compare) }
    })
}
