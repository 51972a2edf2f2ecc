//! Free maps as words: a set bit is a free granule, a byte is a block, eight words are a page.
//!
//! The whole map of a page is one cache line: it is searched in one go, with words (`portable`) or, where every processor has them, with
//! registers of sixteen bytes (`sse2`), in fewer instructions than a branch mispredicted costs.

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod portable;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod sse2;

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) use portable::{blocks_with_room, empty_blocks};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) use sse2::{blocks_with_room, empty_blocks};

use core::cell::Cell;

use crate::geometry::BLOCK_GRANULES;

/// A page's free map, as read.
pub(crate) type PageMap = [u64; 8];

/// Repeats a byte in each lane.
const fn lanes(byte: u8) -> u64 {
    0x0101_0101_0101_0101 * byte as u64
}

/// Bits of a byte at which an object of the alignment `align_granules` (1, 2, 4 or 8) may start.
#[inline]
const fn start_bits(align_granules: usize) -> u8 {
    match align_granules {
        1 => 0xff,
        2 => 0x55,
        4 => 0x11,
        _ => 0x01,
    }
}

/// For a run of so many granules, the steps by which it doubles and is completed.
const RUN_STEPS: [[u8; 3]; BLOCK_GRANULES + 1] = [
    [0, 0, 0],
    [0, 0, 0],
    [1, 0, 0],
    [1, 1, 0],
    [1, 2, 0],
    [1, 2, 1],
    [1, 2, 2],
    [1, 2, 3],
    [1, 2, 4],
];

/// The first granule (0..8) of `block_map` from which `granules` granules are free.
#[inline]
pub(crate) fn fit_in_block(block_map: u8, granules: usize, align_granules: usize) -> Option<usize> {
    debug_assert!((1..=BLOCK_GRANULES).contains(&granules));
    // As `portable::runs`, of one lane and without branches: zeros are shifted in at its end, and a step of 0 changes nothing.
    let [first, second, third] = RUN_STEPS.get(granules).copied().unwrap_or([7; 3]);
    let mut starts = u32::from(block_map);
    starts &= starts >> first;
    starts &= starts >> second;
    starts &= starts >> third;
    starts &= u32::from(start_bits(align_granules));
    (starts != 0).then(|| starts.trailing_zeros() as usize)
}

/// For runs of 1 to 8 granules, in an array each: the first granule from which that many are free in a block, by the block's map; 8 if there is none.
static FITS: [[u8; 256]; BLOCK_GRANULES] = {
    let mut fits = [[8; 256]; BLOCK_GRANULES];
    let mut more = 0;
    while more < BLOCK_GRANULES {
        let mut map = 0;
        while map < 256 {
            let mut start = 0;
            while start + more < BLOCK_GRANULES {
                let run = ((2 << more) - 1) << start;
                if map & run == run {
                    break;
                }
                start += 1;
            }
            #[expect(
                clippy::indexing_slicing,
                clippy::cast_possible_truncation,
                reason = "evaluated by the compiler, which checks every index; start is at most 8"
            )]
            {
                fits[more][map] = if start + more < BLOCK_GRANULES {
                    start as u8
                } else {
                    8
                };
            }
            map += 1;
        }
        more += 1;
    }
    fits
};

/// [`fit_in_block`] by a table, for `granules` (1..=8) that may start anywhere; `None` for more.
#[inline(always)]
pub(crate) fn fit_anywhere(block_map: u8, granules: usize) -> Option<usize> {
    let start = *FITS
        .get(granules.wrapping_sub(1))?
        .get(usize::from(block_map))?;
    (start < 8).then_some(usize::from(start))
}

/// The set bit of `set` nearest to `bit` (0..64), the higher of two at equal distance.
#[inline]
pub(crate) fn nearest(set: u64, bit: usize) -> Option<usize> {
    let above = set >> bit;
    let below = set & ((1u64 << bit) - 1);
    let up = (above != 0).then(|| bit + above.trailing_zeros() as usize);
    let down = (below != 0).then(|| 63 - below.leading_zeros() as usize);
    match (up, down) {
        (Some(up), Some(down)) if bit - down < up - bit => Some(down),
        (Some(up), _) => Some(up),
        (None, down) => down,
    }
}

/// The set bit of `set` to use after `bit` when a whole block is wanted: within the same aligned group of four (the 256 B that
/// one DRAM access tends to bring), else the next one upwards, else the lowest.
#[inline]
pub(crate) fn next_in_group(set: u64, bit: usize) -> Option<usize> {
    let group = set & (0xf << (bit & !3));
    let above = set & !((1u64 << bit) - 1);
    [group, above, set]
        .into_iter()
        .find(|&candidates| candidates != 0)
        .map(|candidates| candidates.trailing_zeros() as usize)
}

/// [`next_in_group`] of [`empty_blocks`], which looks at one word only when that has what it needs, as for most calls.
#[inline(always)]
pub(crate) fn next_empty(map: &[Cell<u64>; 8], block: usize) -> Option<usize> {
    let home = block / 8;
    let here = empty_lanes(map.get(home)?.get());
    if here != 0 {
        let group = here & (0xffff_ffff << (32 * (block / 4 % 2)));
        let above = here & (!0 << (8 * (block % 8)));
        if group | above != 0 {
            let candidates = if group != 0 { group } else { above };
            return Some(home * 8 + candidates.trailing_zeros() as usize / 8);
        }
    }
    next_in_group(empty_blocks(&map.each_ref().map(Cell::get)), block)
}

/// The highest bit of each lane of which all bits are set.
#[inline]
const fn empty_lanes(word: u64) -> u64 {
    let taken = !word;
    // Without its highest bit, a lane that has any bit carries into it.
    !((taken & lanes(0x7f)).wrapping_add(lanes(0x7f)) | taken | lanes(0x7f))
}

/// Positions in `empty` (bit = block) from which `blocks` blocks in a row are set. `blocks` is 1..=64.
#[inline]
pub(crate) fn block_runs(empty: u64, blocks: usize) -> u64 {
    let mut starts = empty;
    let mut have = 1;
    while have < blocks {
        let step = have.min(blocks - have);
        starts &= starts >> step;
        have += step;
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    fn naive_fit(map: u8, granules: usize, align: usize) -> Option<usize> {
        (0..8).step_by(align).find(|&start| {
            start + granules <= 8 && (start..start + granules).all(|bit| map >> bit & 1 == 1)
        })
    }

    #[test]
    fn fit_in_block_is_exact() {
        for map in 0..=255 {
            for granules in 1..=8 {
                for align in [1, 2, 4, 8] {
                    assert_eq!(
                        fit_in_block(map, granules, align),
                        naive_fit(map, granules, align),
                        "{map:08b} {granules} {align}"
                    );
                    assert_eq!(fit_anywhere(map, granules), naive_fit(map, granules, 1));
                }
            }
        }
    }

    quickcheck! {
        fn page_searches_agree_with_block_searches(words: (u64, u64, u64, u64), more: (u64, u64, u64, u64), granules: usize, align: u8) -> bool {
            let map = [words.0, words.1 & words.2, words.2 | words.0, words.3, more.0 | more.1, more.1, !0, more.2 | more.3];
            let granules = granules % 8 + 1;
            let align = 1 << (align % 4);
            let block = |i: usize| map[i / 8].to_le_bytes()[i % 8];
            let room = blocks_with_room(&map, granules, align);
            let empty = empty_blocks(&map);
            (0..64).all(|i| {
                (room >> i & 1 == 1) == naive_fit(block(i), granules, align).is_some() && (empty >> i & 1 == 1) == (block(i) == 0xff)
            }) && portable::blocks_with_room(&map, granules, align) == room && portable::empty_blocks(&map) == empty
        }

        fn the_next_empty_block_is_the_next_in_the_group(words: (u64, u64, u64, u64), full: Vec<u8>, block: usize) -> bool {
            // Random words have hardly an empty block; a few bytes of ones make some.
            let mut bytes: Vec<u8> = [words.0, words.1, words.2, words.3, 0, !0, words.0, words.1].iter().flat_map(|word| word.to_le_bytes()).collect();
            for place in full {
                bytes[usize::from(place) % 64] = 0xff;
                bytes[usize::from(place / 2) % 64] = 0x7f;
            }
            let mut map = [0; 8];
            for (word, bytes) in map.iter_mut().zip(bytes.chunks(8)) {
                *word = u64::from_le_bytes(bytes.try_into().unwrap());
            }
            let block = block % 64;
            next_empty(&map.map(Cell::new), block) == next_in_group(empty_blocks(&map), block)
        }

        fn nearest_is_nearest(set: u64, bit: usize) -> bool {
            let bit = bit % 64;
            let naive = (0..64usize).filter(|&b| set >> b & 1 == 1).min_by_key(|&b| (b.abs_diff(bit), usize::from(b < bit)));
            nearest(set, bit) == naive
        }

        fn runs_of_blocks(set: u64, blocks: usize) -> bool {
            let blocks = blocks % 9 + 1;
            let starts = block_runs(set, blocks);
            (0..64).all(|i| (starts >> i & 1 == 1) == (i + blocks <= 64 && (i..i + blocks).all(|b| set >> b & 1 == 1)))
        }

        fn the_group_comes_first(set: u64, bit: usize) -> bool {
            let bit = bit % 64;
            match next_in_group(set, bit) {
                None => set == 0,
                Some(found) => {
                    let in_group = (0..64).any(|b| set >> b & 1 == 1 && b / 4 == bit / 4);
                    set >> found & 1 == 1 && (!in_group || found / 4 == bit / 4)
                }
            }
        }
    }
}
