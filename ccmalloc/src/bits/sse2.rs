//! Searches of a page's map, sixteen bytes at once.

use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_cvtsi32_si128, _mm_movemask_epi8, _mm_set_epi64x,
    _mm_set1_epi8, _mm_setzero_si128, _mm_srl_epi16,
};

use super::{PageMap, RUN_STEPS, start_bits};

/// Blocks of a page (bit = block) in which `granules` (1..=8) granules are free in a row: some sixty instructions for all.
#[inline(always)]
pub(crate) fn blocks_with_room(map: &PageMap, granules: usize, align_granules: usize) -> u64 {
    // So that the steps are constants in each, and those of 0 are none.
    match granules {
        1 => with_runs(map, 1, align_granules),
        2 => with_runs(map, 2, align_granules),
        3 => with_runs(map, 3, align_granules),
        4 => with_runs(map, 4, align_granules),
        5 => with_runs(map, 5, align_granules),
        6 => with_runs(map, 6, align_granules),
        7 => with_runs(map, 7, align_granules),
        8 => with_runs(map, 8, align_granules),
        _ => 0,
    }
}

#[inline(always)]
fn with_runs(map: &PageMap, granules: usize, align_granules: usize) -> u64 {
    let [first, second, third] = RUN_STEPS.get(granules).copied().unwrap_or_default();
    let run = |starts: __m128i, step: u8| {
        // SAFETY: this is compiled only where every processor has SSE2; so for the other blocks.
        unsafe {
            // What a shift of two bytes brings into one from the other is cut off.
            let kept = _mm_set1_epi8((0xff_u8 >> step).cast_signed());
            let shifted = _mm_srl_epi16(starts, _mm_cvtsi32_si128(i32::from(step)));
            _mm_and_si128(starts, _mm_and_si128(shifted, kept))
        }
    };
    sixteen_by_sixteen(map, |bytes| {
        let runs = run(run(run(bytes, first), second), third);
        // SAFETY: as above.
        unsafe {
            let starts = _mm_set1_epi8(start_bits(align_granules).cast_signed());
            let none = _mm_cmpeq_epi8(_mm_and_si128(runs, starts), _mm_setzero_si128());
            !_mm_movemask_epi8(none) & 0xffff
        }
    })
}

/// Blocks of a page (bit = block) that are wholly free: some twenty instructions for all.
#[inline]
pub(crate) fn empty_blocks(map: &PageMap) -> u64 {
    sixteen_by_sixteen(map, |bytes| {
        // SAFETY: this is compiled only where every processor has SSE2.
        unsafe { _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(-1))) }
    })
}

/// Calls `search` for each sixteen blocks of a page, and puts its answers, of sixteen bits, together.
#[inline(always)]
fn sixteen_by_sixteen(map: &PageMap, search: impl Fn(__m128i) -> i32) -> u64 {
    let of = |low: u64, high: u64| {
        // SAFETY: this is compiled only where every processor has SSE2.
        let bytes = unsafe { _mm_set_epi64x(high.cast_signed(), low.cast_signed()) };
        u64::from(search(bytes).cast_unsigned())
    };
    let [a, b, c, d, e, f, g, h] = *map;
    of(a, b) | of(c, d) << 16 | of(e, f) << 32 | of(g, h) << 48
}
