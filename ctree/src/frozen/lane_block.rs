//! The lanes of a block that are not keys: index and filler. Knows the width of a lane, but neither the type of the keys nor the values,
//! so that it is compiled once for each width rather than once for each map.

use core::ptr::NonNull;

use crate::lane::{LaneKind, by_lane};
use crate::plan::{NODE_BYTES, Plan};

/// Offset of the key of a rank, or of the filler after the last key.
fn key_at(plan: &Plan, lane_bytes: usize, rank: usize) -> usize {
    let lanes = NODE_BYTES / lane_bytes;
    plan.leaf_at(rank / lanes) + rank % lanes * lane_bytes
}

/// Every lane of leaves and index that is not a key, with the offset of the key that it repeats; filler repeats none.
fn lanes_beside_keys(
    plan: &Plan,
    lane_bytes: usize,
) -> impl Iterator<Item = (usize, Option<usize>)> {
    let slots = plan.leaf_count() * (NODE_BYTES / lane_bytes);
    let filler = (plan.len()..slots).map(move |slot| (key_at(plan, lane_bytes, slot), None));
    let separators = plan
        .separators()
        .map(move |(at, rank)| (at, rank.map(|rank| key_at(plan, lane_bytes, rank))));
    filler.chain(separators)
}

/// Writes index and filler of a block whose keys are written.
///
/// # Safety
/// - `base` is the start of a block that was laid out after `plan`, for lanes of `kind`, and that nobody else uses meanwhile;
/// - the keys of all ranks below `plan.len()` are initialised.
pub(super) unsafe fn fill(kind: LaneKind, base: NonNull<u8>, plan: &Plan) {
    by_lane!(kind, Lane => {
        for (lane_at, key_at) in lanes_beside_keys(plan, size_of::<Lane>()) {
            // SAFETY: the plan names ranks below its length only, whose keys are initialised integers of this kind.
            let lane = key_at.map_or(Lane::MAX, |key_at| unsafe { base.add(key_at).cast::<Lane>().read() });
            debug_assert!(
                lane_at + size_of::<Lane>() <= plan.block_bytes() && lane_at.is_multiple_of(size_of::<Lane>()),
                "a lane of {} B at {lane_at} of {} B",
                size_of::<Lane>(),
                plan.block_bytes()
            );
            // SAFETY: the plan gives offsets of lanes inside the block, aligned for them; no one of them is that of a key.
            unsafe { base.add(lane_at).cast::<Lane>().write(lane) };
        }
    });
}

/// Whether index and filler hold what [`fill`] wrote; if not, the offset of a lane that does not.
///
/// # Safety
/// `base` is the start of a block that was laid out after `plan`, for lanes of `kind`, filled, and that nobody writes to meanwhile.
pub(super) unsafe fn check(kind: LaneKind, base: NonNull<u8>, plan: &Plan) -> Result<(), usize> {
    by_lane!(kind, Lane => {
        for (lane_at, key_at) in lanes_beside_keys(plan, size_of::<Lane>()) {
            // SAFETY: the plan names ranks below its length only, whose keys are initialised integers of this kind.
            let expected = key_at.map_or(Lane::MAX, |key_at| unsafe { base.add(key_at).cast::<Lane>().read() });
            // SAFETY: the plan gives offsets of lanes inside the block, which `fill` has initialised.
            if unsafe { base.add(lane_at).cast::<Lane>().read() } != expected {
                return Err(lane_at);
            }
        }
    });
    Ok(())
}
