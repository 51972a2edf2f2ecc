//! Narrow separators: 32 bits of a 64-bit key, so that twice as many fit into a node of the index.
//!
//! With separators of 4 B in the place of 8 B a node has 33 children, not 17, and the index half
//! the size: 4 levels and 0.5 MB in the place of 5 and 1 MB for 2 million keys.
//!
//! ```text
//! head(q) = the top 32 bits of q - min, counted from the top bit of max - min;
//!           0 below min, all ones above max
//! ```
//!
//! `a <= b` implies `head(a) <= head(b)`. A search for `q` goes to the first leaf whose largest key
//! has a head that is not below that of `q`. If that key is itself below `q`, with the same head,
//! then `q` belongs in a later leaf, which the search finds by comparing keys. Such **displaced**
//! keys are counted when a tree is built. If there are more than one in [`KEYS_PER_DISPLACED_MIN`],
//! the index has separators of full width.

use core::fmt::Debug;

/// Fewest keys per displaced one for an index of narrow separators. A displaced key costs a second
/// leaf and a misprediction; narrow separators gain a tenth of a lookup.
pub(crate) const KEYS_PER_DISPLACED_MIN: usize = 64;

/// How keys become heads of 32 bits: less the smallest key, then shifted.
///
/// Any values are valid: a wrong one costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Narrowing {
    /// Ordered bits of the smallest key.
    min: u64,
    /// Bits left out at the bottom, at most 32.
    shift: u32,
}

impl Narrowing {
    /// Heads for keys from `min` to `max`, given by their [ordered bits](Lane::ordered_bits).
    pub(crate) fn new(min: u64, max: u64) -> Narrowing {
        let range_bits = u64::BITS - max.saturating_sub(min).leading_zeros();
        Narrowing {
            min,
            shift: range_bits.saturating_sub(u32::BITS),
        }
    }

    #[inline(always)]
    pub(crate) fn head(self, ordered_bits: u64) -> u32 {
        let head = ordered_bits.saturating_sub(self.min) >> (self.shift & 63);
        // Above the largest key the shift leaves more than 32 bits.
        u32::try_from(head).unwrap_or(u32::MAX)
    }
}

/// An integer that is searched for by SIMD.
pub(crate) trait Lane: Copy + Ord + Debug {
    /// Whether 32 bits are less than the whole of it.
    const NARROWS: bool;
    const LARGEST: Self;

    /// 64 bits in the order of the integers.
    fn ordered_bits(self) -> u64;
}

macro_rules! impl_lane {
    ($($lane:ty, |$key:ident| $unsigned:expr;)*) => {$(
        impl Lane for $lane {
            const NARROWS: bool = size_of::<$lane>() > size_of::<u32>();
            const LARGEST: $lane = <$lane>::MAX;

            #[inline(always)]
            fn ordered_bits(self) -> u64 {
                let $key = self;
                u64::from($unsigned)
            }
        }
    )*};
}

// The top bit of a signed integer is set in the lower half of the order; turned round, the order is
// that of unsigned integers.
impl_lane! {
    u8, |key| key;
    u16, |key| key;
    u32, |key| key;
    u64, |key| key;
    i8, |key| key.cast_unsigned() ^ (1 << 7);
    i16, |key| key.cast_unsigned() ^ (1 << 15);
    i32, |key| key.cast_unsigned() ^ (1 << 31);
    i64, |key| key.cast_unsigned() ^ (1 << 63);
}

#[cfg(test)]
mod tests {
    use super::{Lane, Narrowing};

    #[test]
    fn heads_keep_the_order_of_any_keys() {
        fn holds(min: u64, max: u64, left: u64, right: u64) -> bool {
            let narrowing = Narrowing::new(min, max);
            let (low, high) = (left.min(right), left.max(right));
            narrowing.head(low) <= narrowing.head(high)
        }
        quickcheck::quickcheck(holds as fn(u64, u64, u64, u64) -> bool);
    }

    #[test]
    fn heads_tell_the_keys_of_a_small_range_apart() {
        let base = 1_700_000_000_000_000_000;
        let narrowing = Narrowing::new(base, base + u64::from(u32::MAX));
        assert_eq!(
            [0, 1, 77, u32::MAX].map(|n| narrowing.head(base + u64::from(n))),
            [0, 1, 77, u32::MAX]
        );
        assert_eq!((narrowing.head(0), narrowing.head(base - 1)), (0, 0));
        assert_eq!(
            (narrowing.head(base + (1 << 32)), narrowing.head(u64::MAX)),
            (u32::MAX, u32::MAX)
        );
    }

    #[test]
    fn heads_of_the_whole_range_are_its_upper_half() {
        let narrowing = Narrowing::new(0, u64::MAX);
        assert_eq!(
            [0, 1 << 32, u64::MAX].map(|key| narrowing.head(key)),
            [0, 1, u32::MAX]
        );
    }

    #[test]
    fn ordered_bits_have_the_order_of_their_integers() {
        fn ascending<L: Lane>(lanes: &[L]) -> bool {
            lanes
                .windows(2)
                .all(|pair| pair[0] < pair[1] && pair[0].ordered_bits() < pair[1].ordered_bits())
        }
        assert!(ascending(&[i8::MIN, -1, 0, 1, i8::MAX]));
        assert!(ascending(&[i16::MIN, -1, 0, 1, i16::MAX]));
        assert!(ascending(&[i32::MIN, -1, 0, 1, i32::MAX]));
        assert!(ascending(&[i64::MIN, -1, 0, 1, i64::MAX]));
        assert!(ascending(&[0, 1, u8::MAX]) && ascending(&[0, 1, u16::MAX]));
        assert!(ascending(&[0, 1, u32::MAX]) && ascending(&[0, 1, u64::MAX]));
    }
}
