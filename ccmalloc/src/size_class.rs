//! Size classes of the unhinted path.
//!
//! Eight classes of 8 to 64 B in steps of a granule, then four to each doubling up to 32 KiB.
//! Alignments above 16 are served by powers of two. A slab of one class is one 64 KiB slot.

use crate::geometry::{GRANULE_BYTES, SLOT_BYTES};

/// The largest size, in bytes, and the largest alignment, that is served from slabs.
pub(crate) const SMALL_BYTES_MAX: usize = 32 * 1024;
/// How many classes there are.
pub(crate) const CLASSES: usize = 44;

/// Sizes up to this many bytes find their class by one table look-up.
const TABLE_BYTES_MAX: usize = 1024;

/// A size class. Invariant: the number is less than [`CLASSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u8);

/// Bytes of an object of each class.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which checks every index"
)]
const SIZES: [u32; CLASSES] = {
    let mut sizes = [0; CLASSES];
    let mut class = 0;
    let mut bytes = 0;
    while class < CLASSES {
        // Above 64, steps of a quarter of the last power of two.
        bytes += if bytes < 64 {
            8
        } else {
            (1 << u32::ilog2(bytes)) / 4
        };
        sizes[class] = bytes;
        class += 1;
    }
    sizes
};

/// Class of each size up to [`TABLE_BYTES_MAX`], by granules, rounded up.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which checks every index"
)]
const TABLE: [Class; TABLE_BYTES_MAX / GRANULE_BYTES + 1] = {
    let mut table = [Class(0); TABLE_BYTES_MAX / GRANULE_BYTES + 1];
    let mut granules = 1;
    let mut class = 0;
    while granules < table.len() {
        while (SIZES[class as usize] as usize) < granules * GRANULE_BYTES {
            class += 1;
        }
        table[granules] = Class(class);
        granules += 1;
    }
    table
};

/// As [`TABLE`], for sizes at the alignment that C's `malloc` gives them: 16 from 16 bytes on. A
/// size of 0 counts as 1.
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which checks every index"
)]
const NATURAL_TABLE: [Class; TABLE.len()] = {
    let mut table = [Class(0); TABLE.len()];
    let mut granules = 2;
    while granules < table.len() {
        table[granules] = TABLE[granules.next_multiple_of(2)];
        granules += 1;
    }
    table
};

/// For each class: `inverse`, 2^32 divided by the bytes of an object, rounded up, and the offset of
/// the last object in a slot. Modulo 2^32, an offset times `inverse` is less than `inverse` only
/// for multiples of an object (D. Lemire, O. Kaser and N. Kurz, *Faster remainder by direct
/// computation*, 2019).
#[expect(
    clippy::indexing_slicing,
    reason = "evaluated by the compiler, which checks every index"
)]
const STARTS: [(u32, u32); CLASSES] = {
    let mut starts = [(0, 0); CLASSES];
    let mut class = 0;
    while class < CLASSES {
        starts[class] = (
            u32::MAX / SIZES[class] + 1,
            SIZES[CLASSES - 1] * 2 - SIZES[class],
        );
        class += 1;
    }
    starts
};

const _: () =
    assert!(SIZES[CLASSES - 1] as usize == SMALL_BYTES_MAX && SLOT_BYTES == 2 * SMALL_BYTES_MAX);

impl Class {
    /// The smallest class whose objects hold `bytes` (0 counts as 1), or `None` above
    /// [`SMALL_BYTES_MAX`].
    ///
    /// Objects of the class are aligned to the largest power of two that divides its size; see
    /// [`Class::for_layout`].
    #[inline]
    pub(crate) fn for_bytes(bytes: usize) -> Option<Class> {
        match TABLE.get(bytes.div_ceil(GRANULE_BYTES)) {
            Some(&class) => Some(class),
            None => Self::for_bytes_large(bytes),
        }
    }

    /// As [`Class::for_bytes`], past the table.
    fn for_bytes_large(bytes: usize) -> Option<Class> {
        if bytes > SMALL_BYTES_MAX {
            return None;
        }
        // The doubling that `bytes` lies in: 2^d < bytes <= 2^(d + 1), cut in quarters.
        let doubling = (bytes - 1).ilog2();
        let quarter = (bytes - 1) >> (doubling - 2) & 3;
        let class = 8 + (doubling as usize - 6) * 4 + quarter;
        // Below CLASSES, because `bytes <= SMALL_BYTES_MAX`; the tests go through every size.
        u8::try_from(class).ok().map(Class)
    }

    /// As [`Class::for_layout`], for the layouts that most objects have; `None` for others.
    #[inline(always)]
    pub(crate) fn for_common_layout(bytes: usize, align: usize) -> Option<Class> {
        // Of alignments up to 8 it is 7, of 16 it is 15. A size of 0 is none of these: rounded, it
        // would be no multiple of 16.
        let mask = (align - 1) | (GRANULE_BYTES - 1);
        if bytes.wrapping_sub(1) < TABLE_BYTES_MAX && mask < 16 {
            let granules = ((bytes + mask) & !mask) / GRANULE_BYTES;
            // SAFETY: `bytes` is at most TABLE_BYTES_MAX, a multiple of 16; so is `bytes` rounded
            // up to a multiple of 8 or 16.
            Some(unsafe { *TABLE.get_unchecked(granules) })
        } else {
            None
        }
    }

    /// As [`Class::for_common_layout`], at the alignment that C's `malloc` gives `bytes`: 8 below
    /// 16 bytes, then 16.
    #[inline(always)]
    pub(crate) fn for_malloc(bytes: usize) -> Option<Class> {
        if bytes > TABLE_BYTES_MAX {
            return None;
        }
        NATURAL_TABLE.get(bytes.div_ceil(GRANULE_BYTES)).copied()
    }

    /// The smallest class whose objects hold `bytes` at the alignment `align`, a power of two.
    #[inline]
    pub(crate) fn for_layout(bytes: usize, align: usize) -> Option<Class> {
        if align <= GRANULE_BYTES {
            Self::for_bytes(bytes)
        } else if align <= 16 {
            // Multiples of 16 fall into classes that are multiples of 16: all the sizes above 64
            // are, and 16, 32, 48, 64.
            Self::for_bytes(bytes.max(1).checked_add(align - 1)? & !(align - 1))
        } else if align <= SMALL_BYTES_MAX && bytes <= SMALL_BYTES_MAX {
            // A power of two is a class of its own from 16 up, and divides the slot that its
            // objects start in.
            Self::for_bytes(bytes.max(align).next_power_of_two())
        } else {
            None
        }
    }

    /// The class with the number `index`; the last one, if there is none.
    #[inline]
    pub(crate) fn from_index(index: usize) -> Class {
        #[expect(clippy::cast_possible_truncation, reason = "less than CLASSES")]
        let number = index.min(CLASSES - 1) as u8;
        Class(number)
    }

    /// The class's number, less than [`CLASSES`].
    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Granules of an object of this class: at least 1.
    pub(crate) fn granules(self) -> usize {
        (self.bytes() as usize / GRANULE_BYTES).max(1)
    }

    /// Whether an object of a slab of this class starts at `offset` in the slab, in bytes.
    #[inline]
    pub(crate) fn starts_at(self, offset: usize) -> bool {
        // SAFETY: a class's number is less than CLASSES.
        let (inverse, last) = unsafe { *STARTS.get_unchecked(self.index()) };
        #[expect(clippy::cast_possible_truncation, reason = "less than SLOT_BYTES")]
        let offset = offset as u32;
        offset.wrapping_mul(inverse) < inverse && offset <= last
    }

    /// Bytes of an object of this class.
    #[inline]
    pub(crate) fn bytes(self) -> u32 {
        SIZES.get(self.index()).copied().unwrap_or(0)
    }
}

/// The alignment that C's `malloc` gives an object of `bytes`: 16, or 8 below 16 bytes.
#[inline]
#[must_use]
pub const fn natural_align(bytes: usize) -> usize {
    if bytes < 16 { 8 } else { 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_gets_the_smallest_class_that_holds_it() {
        assert_eq!(Class::for_bytes(0).map(Class::index), Some(0));
        // A few thousand of them under Miri.
        for bytes in (1..=SMALL_BYTES_MAX).step_by(if cfg!(miri) { 11 } else { 1 }) {
            let class = Class::for_bytes(bytes).unwrap();
            let expected = SIZES.iter().position(|&size| size as usize >= bytes);
            assert_eq!(Some(class.index()), expected, "{bytes}");
        }
        assert_eq!(Class::for_bytes(SMALL_BYTES_MAX + 1), None);
        assert_eq!(Class::for_bytes(usize::MAX), None);
    }

    #[test]
    fn objects_start_at_multiples_of_their_size() {
        for class in (0..CLASSES).map(Class::from_index) {
            let bytes = class.bytes() as usize;
            for offset in (0..SLOT_BYTES).step_by(if cfg!(miri) { 1000 } else { 1 }) {
                let expected = offset.is_multiple_of(bytes) && offset + bytes <= SLOT_BYTES;
                assert_eq!(class.starts_at(offset), expected, "{bytes} at {offset}");
            }
        }
    }

    #[test]
    fn common_layouts_have_the_same_class() {
        for bytes in 0..2 * TABLE_BYTES_MAX {
            for align in [1, 2, 4, 8, 16, 32, 64] {
                let is_common = (1..=TABLE_BYTES_MAX).contains(&bytes) && align <= 16;
                let expected = Class::for_layout(bytes, align).filter(|_| is_common);
                assert_eq!(Class::for_common_layout(bytes, align), expected);
            }
            let class = Class::for_layout(bytes, natural_align(bytes));
            let expected = class.filter(|_| bytes <= TABLE_BYTES_MAX);
            assert_eq!(Class::for_malloc(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn every_alignment_divides_the_class() {
        const SIZES: [usize; 14] = [0, 1, 7, 8, 9, 24, 63, 64, 65, 100, 1000, 1025, 5000, 32_768];
        for align in (0..16).map(|shift| 1 << shift) {
            for bytes in SIZES {
                let class = Class::for_layout(bytes, align).unwrap().bytes() as usize;
                assert!(class >= bytes);
                assert!(class.is_multiple_of(align.max(8)), "{bytes} at {align}");
            }
        }
        assert_eq!(Class::for_layout(8, 2 * SMALL_BYTES_MAX), None);
        assert_eq!(Class::for_layout(usize::MAX, 16), None);
    }
}
