//! Counting with AVX2 and AVX-512.
//!
//! Vector instructions may be used only inside functions that declare them: the entry functions
//! that `entry!` defines. All of this is inlined into those.

use core::arch::x86_64::{
    __m256i, __m512i, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm256_cmpgt_epi8,
    _mm256_cmpgt_epi16, _mm256_cmpgt_epi32, _mm256_cmpgt_epi64, _mm256_load_si256,
    _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32,
    _mm256_set1_epi64x, _mm256_xor_si256, _mm512_cmplt_epi8_mask, _mm512_cmplt_epi16_mask,
    _mm512_cmplt_epi32_mask, _mm512_cmplt_epi64_mask, _mm512_cmplt_epu8_mask,
    _mm512_cmplt_epu16_mask, _mm512_cmplt_epu32_mask, _mm512_cmplt_epu64_mask, _mm512_load_si512,
    _mm512_set1_epi8, _mm512_set1_epi16, _mm512_set1_epi32, _mm512_set1_epi64,
};
use core::ptr::NonNull;

use super::descend::{CountLess, assert_on_line};
use crate::block::LINE_BYTES;
use crate::plan::NODE_BYTES;

const _: () =
    assert!(NODE_BYTES == 2 * size_of::<__m512i>() && NODE_BYTES == 4 * size_of::<__m256i>());
const _: () = assert!(LINE_BYTES.is_multiple_of(align_of::<__m512i>()));

/// Whether the machine has some instructions: detected at run time with `std`, otherwise those that
/// the program was compiled for.
macro_rules! has {
    ($($feature:tt),*) => {{
        #[cfg(feature = "std")]
        let has = true $(&& std::arch::is_x86_feature_detected!($feature))*;
        #[cfg(not(feature = "std"))]
        let has = cfg!(all($(target_feature = $feature),*));
        has
    }};
}

/// Whether this machine, and its operating system, have what [`Avx512`] uses.
pub(super) fn has_avx512() -> bool {
    has!("avx512f", "avx512bw", "popcnt")
}

/// Whether this machine, and its operating system, have what [`Avx2`] uses.
pub(super) fn has_avx2() -> bool {
    has!("avx2", "popcnt")
}

#[inline(always)]
pub(super) fn prefetch(address: *const u8) {
    // SAFETY: a prefetch is a hint that never faults, whatever the address (Intel SDM, PREFETCHh),
    // and belongs to SSE, which every x86_64 machine has.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>()) }
}

/// Prefetches the line of `address` into the second-level cache.
#[inline(always)]
pub(super) fn prefetch_far(address: *const u8) {
    // SAFETY: a prefetch never faults, whatever the address, and belongs to SSE.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(address.cast::<i8>()) }
}

/// Counts with AVX-512: a node is two vectors, and a comparison gives one bit per lane.
pub(super) struct Avx512;

/// Counts with AVX2: a node is four vectors, and a comparison gives as many bits per lane as the
/// lane has bytes.
pub(super) struct Avx2;

/// For each integer: how to fill a 512-bit vector and compare it, and an integer with a bit for
/// each lane of a node.
macro_rules! count_by_avx512 {
    ($($lane:ty, $fill:ident, $less:ident, $bits:ty;)*) => {$(
        impl CountLess<$lane> for Avx512 {
            #[inline(always)]
            unsafe fn count_less(node: NonNull<$lane>, query: $lane) -> usize {
                assert_on_line(node);
                let node = node.cast::<__m512i>().as_ptr();
                // SAFETY: the caller promises the instructions, and two vectors of initialised
                // bytes on a line boundary, as a 512-bit load requires.
                let (low, high) = unsafe {
                    let query = $fill(query as _);
                    let (low, high) = (_mm512_load_si512(node), _mm512_load_si512(node.add(1)));
                    ($less(low, query), $less(high, query))
                };
                let lanes = size_of::<__m512i>() / size_of::<$lane>();
                let bits = <$bits>::from(low) | (<$bits>::from(high) << lanes);
                bits.count_ones() as usize
            }
        }
    )*};
}

/// For each integer: how to fill a 256-bit vector and compare it, and the bit to flip so that its
/// order becomes the signed one, the only one that AVX2 has.
macro_rules! count_by_avx2 {
    ($($lane:ty, $fill:ident, $greater:ident, $flip:expr;)*) => {$(
        impl CountLess<$lane> for Avx2 {
            #[inline(always)]
            unsafe fn count_less(node: NonNull<$lane>, query: $lane) -> usize {
                assert_on_line(node);
                let node = node.cast::<__m256i>().as_ptr();
                // SAFETY: the caller promises the instructions.
                let (query, flip) = unsafe {
                    let flip = $fill($flip);
                    (_mm256_xor_si256($fill(query as _), flip), flip)
                };
                let less = |vector: usize| {
                    // SAFETY: the caller promises the instructions, and four vectors of initialised
                    // bytes on a line boundary; `vector` is less than four.
                    let bits = unsafe {
                        let lanes = _mm256_xor_si256(_mm256_load_si256(node.add(vector)), flip);
                        _mm256_movemask_epi8($greater(query, lanes))
                    };
                    u64::from(bits.cast_unsigned())
                };
                let (low, high) = (less(0) | (less(1) << 32), less(2) | (less(3) << 32));
                (low.count_ones() + high.count_ones()) as usize / size_of::<$lane>()
            }
        }
    )*};
}

count_by_avx512! {
    u8, _mm512_set1_epi8, _mm512_cmplt_epu8_mask, u128;
    i8, _mm512_set1_epi8, _mm512_cmplt_epi8_mask, u128;
    u16, _mm512_set1_epi16, _mm512_cmplt_epu16_mask, u64;
    i16, _mm512_set1_epi16, _mm512_cmplt_epi16_mask, u64;
    u32, _mm512_set1_epi32, _mm512_cmplt_epu32_mask, u32;
    i32, _mm512_set1_epi32, _mm512_cmplt_epi32_mask, u32;
    u64, _mm512_set1_epi64, _mm512_cmplt_epu64_mask, u16;
    i64, _mm512_set1_epi64, _mm512_cmplt_epi64_mask, u16;
}

count_by_avx2! {
    u8, _mm256_set1_epi8, _mm256_cmpgt_epi8, i8::MIN;
    i8, _mm256_set1_epi8, _mm256_cmpgt_epi8, 0;
    u16, _mm256_set1_epi16, _mm256_cmpgt_epi16, i16::MIN;
    i16, _mm256_set1_epi16, _mm256_cmpgt_epi16, 0;
    u32, _mm256_set1_epi32, _mm256_cmpgt_epi32, i32::MIN;
    i32, _mm256_set1_epi32, _mm256_cmpgt_epi32, 0;
    u64, _mm256_set1_epi64x, _mm256_cmpgt_epi64, i64::MIN;
    i64, _mm256_set1_epi64x, _mm256_cmpgt_epi64, 0;
}
