//! Free maps as words: a set bit is a free granule, a byte is a block, eight words are a page.

use crate::geometry::{BLOCK_GRANULES, GRANULE_BYTES};

/// A page's free map, as read.
pub(crate) type PageMap = [u64; 8];

/// Repeats a byte in each lane.
const fn lanes(byte: u8) -> u64 {
    0x0101_0101_0101_0101 * byte as u64
}

/// For a run of `granules`, the steps by which it doubles and is completed.
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

/// The first granule of the page (0..512) from which `granules` (1..=8) granules of one block are
/// free.
#[inline]
pub(crate) fn first_fit(map: &PageMap, granules: usize, align: usize) -> Option<usize> {
    #[inline(always)]
    fn first<const GRANULES: usize>(map: &PageMap, starts: u64) -> Option<usize> {
        map.iter().enumerate().find_map(|(index, &word)| {
            let starts = run_starts(word, GRANULES) & starts;
            (starts != 0).then(|| index * 64 + starts.trailing_zeros() as usize)
        })
    }
    // Starts that leave room for the run in their block.
    let starts = start_lanes(align) & lanes(0xff >> (granules - 1));
    // The steps are constants in each.
    match granules {
        1 => first::<1>(map, starts),
        2 => first::<2>(map, starts),
        3 => first::<3>(map, starts),
        4 => first::<4>(map, starts),
        5 => first::<5>(map, starts),
        6 => first::<6>(map, starts),
        7 => first::<7>(map, starts),
        _ => first::<8>(map, starts),
    }
}

/// The granules of a word at which an object of the alignment `align` (in bytes, up to a block) may
/// start.
#[inline(always)]
pub(crate) const fn start_lanes(align: usize) -> u64 {
    lanes(match align.div_ceil(GRANULE_BYTES) {
        0 | 1 => 0xff,
        2 => 0x55,
        4 => 0x11,
        _ => 0x01,
    })
}

/// For runs of 1 to 8 granules: the first granule from which that many are free in a block, by the
/// block's map; 8 if there is none.
static FITS: [[u8; 256]; BLOCK_GRANULES] = {
    let mut fits = [[8; 256]; BLOCK_GRANULES];
    let mut more = 0;
    while more < BLOCK_GRANULES {
        let mut map = 0;
        while map < 256 {
            let starts = run_starts(map as u64, more + 1);
            #[expect(
                clippy::indexing_slicing,
                clippy::cast_possible_truncation,
                reason = "evaluated by the compiler, which checks every index; a byte has 8 bits"
            )]
            if starts != 0 {
                fits[more][map] = starts.trailing_zeros() as u8;
            }
            map += 1;
        }
        more += 1;
    }
    fits
};

/// The first granule (0..8) of a block with the map `block_map` from which `granules` (1..=8)
/// granules are free, at the alignment `align` (in bytes, up to a block). By a table for small
/// alignments: each hinted allocation waits for this answer.
#[inline(always)]
pub(crate) fn fit_in_block(block_map: u8, granules: usize, align: usize) -> Option<usize> {
    if align > GRANULE_BYTES {
        let starts = run_starts(u64::from(block_map), granules) & start_lanes(align);
        return (starts != 0).then(|| starts.trailing_zeros() as usize);
    }
    let start = *FITS
        .get(granules.wrapping_sub(1))?
        .get(usize::from(block_map))?;
    (start < 8).then_some(usize::from(start))
}

/// The bits of `word` from which `granules` (1..=64) bits in a row are set; a run ends with its
/// word.
#[inline]
pub(crate) const fn run_starts(word: u64, granules: usize) -> u64 {
    if granules > BLOCK_GRANULES {
        return long_run_starts(word, granules);
    }
    #[expect(
        clippy::indexing_slicing,
        reason = "one more steps than a block has granules"
    )]
    let [first, second, third] = RUN_STEPS[granules];
    // Zeros are shifted in at the end, and a step of 0 changes nothing.
    let mut starts = word;
    starts &= starts >> first;
    starts &= starts >> second;
    starts & starts >> third
}

/// [`run_starts`] for more granules than a block has.
#[inline]
const fn long_run_starts(word: u64, granules: usize) -> u64 {
    // Of what is left, as much as is known to be free already: 8 granules, 16, 32.
    let left = granules - BLOCK_GRANULES;
    let first = if left < 8 { left } else { 8 };
    let left = left - first;
    let second = if left < 16 { left } else { 16 };
    let mut starts = run_starts(word, BLOCK_GRANULES);
    starts &= starts >> first;
    starts &= starts >> second;
    starts & starts >> (left - second)
}

/// The granule of the page (0..512) nearest to `granule` at which `granules` (1..=64) granules of
/// one word are free.
#[inline]
pub(crate) fn nearest_run(
    map: &PageMap,
    granule: usize,
    granules: usize,
    align: usize,
) -> Option<usize> {
    let home = granule / 64;
    let here = *map.get(home)?;
    let lanes = start_lanes(align);
    if let Some(bit) = nearest(run_starts(here, granules) & lanes, granule % 64) {
        return Some(home * 64 + bit);
    }
    // Most pages that are asked about from here on are full.
    let starts = all_run_starts(map, granules);
    if starts.iter().fold(0, |any, word| any | word) & lanes == 0 {
        return None;
    }
    let starts_in = |word: usize| starts.get(word).map_or(0, |starts| starts & lanes);
    (1..8).find_map(|step| {
        let up = starts_in(home + step);
        if up != 0 {
            return Some((home + step) * 64 + up.trailing_zeros() as usize);
        }
        let below = home.checked_sub(step)?;
        let down = starts_in(below);
        (down != 0).then(|| below * 64 + 63 - down.leading_zeros() as usize)
    })
}

/// [`run_starts`] of each word.
#[inline]
fn all_run_starts(map: &PageMap, granules: usize) -> PageMap {
    // The steps are constants in each.
    #[inline(always)]
    fn each<const GRANULES: usize>(map: &PageMap) -> PageMap {
        // `map.map(..)` compiles to more instructions.
        let mut starts = *map;
        for word in &mut starts {
            *word = run_starts(*word, GRANULES);
        }
        starts
    }
    match granules {
        1 => each::<1>(map),
        2 => each::<2>(map),
        3 => each::<3>(map),
        4 => each::<4>(map),
        5 => each::<5>(map),
        6 => each::<6>(map),
        7 => each::<7>(map),
        8 => each::<8>(map),
        _ => map.map(|word| run_starts(word, granules)),
    }
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

/// The set bit of `set` to use after `bit` for a whole block: in the same aligned group of four
/// (256 B, about one DRAM access), else the next upwards, else the lowest.
#[inline]
pub(crate) fn next_in_group(set: u64, bit: usize) -> Option<usize> {
    let group = set & (0xf << (bit & !3));
    let above = set & !((1u64 << bit) - 1);
    [group, above, set]
        .into_iter()
        .find(|&candidates| candidates != 0)
        .map(|candidates| candidates.trailing_zeros() as usize)
}

/// [`next_in_group`] of [`empty_blocks`] for a hint at granule `near` (0..64) of `word`, if this
/// one word has what it needs: the first granule (0..64) of that block.
#[inline(always)]
pub(crate) fn next_empty_in_word(word: u64, near: usize) -> Option<usize> {
    let empty = empty_lanes(word);
    let group = empty & (0xffff_ffff << (near & 32));
    let above = empty & (!0 << (near & !7));
    let candidates = if group != 0 { group } else { above };
    (candidates != 0).then(|| candidates.trailing_zeros() as usize & !7)
}

/// The highest bit of each lane of which all bits are set.
#[inline]
const fn empty_lanes(word: u64) -> u64 {
    let taken = !word;
    // Without its highest bit, a lane that has any bit carries into it.
    !((taken & lanes(0x7f)).wrapping_add(lanes(0x7f)) | taken | lanes(0x7f))
}

/// Whether two or more of the blocks of a word are wholly free.
#[inline]
pub(crate) const fn has_two_empty_blocks(word: u64) -> bool {
    let empty = empty_lanes(word);
    empty & empty.wrapping_sub(1) != 0
}

/// Blocks of a page (bit = block) that are wholly free, sixteen bytes at once.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
#[inline]
pub(crate) fn empty_blocks(map: &PageMap) -> u64 {
    use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let of = |low: u64, high: u64| {
        // SAFETY: this is compiled only where every processor has SSE2.
        let empty = unsafe {
            let bytes = _mm_set_epi64x(high.cast_signed(), low.cast_signed());
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(-1)))
        };
        u64::from(empty.cast_unsigned())
    };
    let [a, b, c, d, e, f, g, h] = *map;
    of(a, b) | of(c, d) << 16 | of(e, f) << 32 | of(g, h) << 48
}
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) use empty_blocks_by_words as empty_blocks;

/// [`empty_blocks`] without instructions of one processor.
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
#[inline]
pub(crate) fn empty_blocks_by_words(map: &PageMap) -> u64 {
    map.iter().rev().fold(0, |blocks, &word| {
        // The multiplication moves bit 8i to bit 56 + i; no two products meet.
        let empty = (empty_lanes(word) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        blocks << 8 | empty
    })
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

    /// A page of full, sparse and empty words.
    fn mixed(words: PageMap, more: PageMap) -> PageMap {
        std::array::from_fn(|i| match i {
            0 | 5 => words[i],
            1 => words[i] | more[i],
            2 => 0,
            4 => !0 << 40,
            7 => !0,
            _ => words[i] & more[i],
        })
    }

    #[test]
    fn fit_in_block_is_exact() {
        for map in 0..=255 {
            for granules in 1..=8 {
                for align in [1, 2, 4, 8] {
                    let fit = naive_fit(map, granules, align);
                    let bytes = align * GRANULE_BYTES;
                    let found = fit_in_block(map, granules, bytes);
                    assert_eq!(found, fit, "{map:08b} {granules} {align}");
                    let mut page = [0; 8];
                    page[3] = u64::from(map) << 24;
                    let expected = fit.map(|fit| 3 * 64 + 24 + fit);
                    assert_eq!(first_fit(&page, granules, bytes), expected);
                }
            }
        }
    }

    quickcheck! {
        fn page_searches_agree_with_block_searches(
            words: PageMap, more: PageMap, granules: usize, align: u8
        ) -> bool {
            let map = mixed(words, more);
            let (granules, align) = (granules % 8 + 1, 1_usize << (align % 4));
            let block = |i: usize| map[i / 8].to_le_bytes()[i % 8];
            let first = (0..64).find_map(|i| Some(i * 8 + naive_fit(block(i), granules, align)?));
            let empty = empty_blocks(&map);
            first_fit(&map, granules, align * GRANULE_BYTES) == first
                && (0..64).all(|i| (empty >> i & 1 == 1) == (block(i) == 0xff))
                && empty_blocks_by_words(&map) == empty
        }

        fn next_empty_block_is_the_next_in_the_group(
            map: PageMap, full: Vec<u8>, block: usize
        ) -> bool {
            // Random words have hardly an empty block; a few bytes of ones make some.
            let mut map = map;
            for place in full.into_iter().map(usize::from) {
                map[place / 8 % 8] |= 0xff << (place % 8 * 8);
                map[place / 16 % 8] &= !(0x80 << (place / 2 % 8 * 8));
            }
            let block = block % 64;
            let in_word = next_empty_in_word(map[block / 8], block % 8 * 8 + block % 3);
            let on_page = next_in_group(empty_blocks(&map), block);
            match in_word {
                Some(granule) => granule % 8 == 0 && Some(block / 8 * 8 + granule / 8) == on_page,
                // Another word has it, or none.
                None => on_page.is_none_or(|found| found / 8 != block / 8 || found < block),
            }
        }

        fn nearest_run_is_free_and_as_near_as_its_word_allows(
            words: PageMap, more: PageMap, granule: usize, granules: usize, align: u8
        ) -> bool {
            let map = mixed(words, more);
            let (granule, align) = (granule % 512, 1_usize << (align % 4));
            let granules = granules / 2 % if granules.is_multiple_of(2) { 64 } else { 8 } + 1;
            let is_start = |&g: &usize| {
                g.is_multiple_of(align)
                    && g % 64 + granules <= 64
                    && (g..g + granules).all(|g| map[g / 64] >> (g % 64) & 1 == 1)
            };
            let home = granule / 64;
            // By the distance of the words, upwards first; then by the distance in the home word,
            // or the end that is nearer.
            let key = |&g: &usize| {
                let word = g / 64;
                let inside = match word.cmp(&home) {
                    std::cmp::Ordering::Equal => (g.abs_diff(granule), usize::from(g < granule)),
                    std::cmp::Ordering::Greater => (g % 64, 0),
                    std::cmp::Ordering::Less => (63 - g % 64, 0),
                };
                (word.abs_diff(home), word < home, inside)
            };
            nearest_run(&map, granule, granules, align * GRANULE_BYTES)
                == (0..512).filter(is_start).min_by_key(key)
        }

        fn nearest_is_nearest(set: u64, bit: usize) -> bool {
            let bit = bit % 64;
            let naive = (0..64usize)
                .filter(|&b| set >> b & 1 == 1)
                .min_by_key(|&b| (b.abs_diff(bit), usize::from(b < bit)));
            nearest(set, bit) == naive
        }

        fn run_starts_are_exact(set: u64, more: u64, length: usize) -> bool {
            // Long runs as well.
            let (set, length) = if more.is_multiple_of(2) {
                (set | more | more << 9, length % 64 + 1)
            } else {
                (set, length % 9 + 1)
            };
            let starts = run_starts(set, length);
            let is_start = |i| i + length <= 64 && (i..i + length).all(|b| set >> b & 1 == 1);
            (0..64).all(|i| (starts >> i & 1 == 1) == is_start(i))
        }

        fn the_group_comes_first(set: u64, bit: usize) -> bool {
            let bit = bit % 64;
            let in_group = (0..64).any(|b| set >> b & 1 == 1 && b / 4 == bit / 4);
            next_in_group(set, bit).map_or(set == 0, |found| {
                set >> found & 1 == 1 && (!in_group || found / 4 == bit / 4)
            })
        }
    }
}
