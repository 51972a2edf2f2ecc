//! The search of a page's map with words alone.

use super::{PageMap, lanes};

/// Gathers "lane is not zero" into one bit a lane.
#[inline]
fn lane_mask(word: u64) -> u64 {
    // High bit of a lane is set when any of its bits is: the low seven carry into it, or it is set
    // itself.
    let high = ((word & lanes(0x7f)).wrapping_add(lanes(0x7f)) | word) & lanes(0x80);
    // Multiplication by the eight shifted ones moves bit 8i + 7 to bit 56 + i; no two products
    // meet.
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Blocks of a page (bit = block) that are wholly free.
#[inline]
pub(crate) fn empty_blocks(map: &PageMap) -> u64 {
    let mut blocks = 0;
    for (i, &word) in map.iter().enumerate() {
        blocks |= (!lane_mask(!word) & 0xff) << (8 * i);
    }
    blocks
}
