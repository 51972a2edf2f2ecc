//! Searches of a page's map with words alone.

use super::{PageMap, lanes, start_bits};

/// For each lane of `word`, the bits at which a run of `granules` (1..=8) free granules starts that stays inside the lane.
#[inline]
fn runs(word: u64, granules: usize, align_granules: usize) -> u64 {
    let mut starts = word;
    let mut have = 1;
    while have < granules {
        // Doubling: a run of `have` and another right behind it make one of `have + step`.
        let step = have.min(granules - have);
        // Bits that would be shifted in from the lane above are cleared.
        starts &= (starts >> step) & lanes(0xff >> step);
        have += step;
    }
    starts & lanes(start_bits(align_granules))
}

/// Gathers "lane is not zero" into one bit a lane.
#[inline]
fn lane_mask(word: u64) -> u64 {
    // High bit of a lane is set when any of its bits is: the low seven carry into it, or it is set itself.
    let high = ((word & lanes(0x7f)).wrapping_add(lanes(0x7f)) | word) & lanes(0x80);
    // Multiplication by the eight shifted ones moves bit 8i + 7 to bit 56 + i; no two products meet.
    (high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Blocks of a page (bit = block) in which `granules` (1..=8) granules are free in a row.
#[inline]
pub(crate) fn blocks_with_room(map: &PageMap, granules: usize, align_granules: usize) -> u64 {
    let mut blocks = 0;
    for (i, &word) in map.iter().enumerate() {
        blocks |= lane_mask(runs(word, granules, align_granules)) << (8 * i);
    }
    blocks
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
