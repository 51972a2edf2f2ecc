//! Where everything lies in a file: arithmetic only, no bytes.
//!
//! ```text
//! page 0   header
//! page 1.. leaves: leaf_bytes each, a power of two or whole pages
//!          values: only if they do not lie in the leaves
//!          key heap, value heap: entries of keys and values of variable length
//!          separators, the index: a key between every two leaves
//!          checksums: one for each page from page 1 to here; ends with the file
//!
//! leaf     | k0 k1 ... k15 | v0 v1 ... v15 |    entry r is slot r % 16 of leaf r / 16 (of 8 B)
//! heap     | length: u32 | bytes | ...          a cell of 8 B in the leaf says where
//! ```
//!
//! Every section but the checksums starts on a page, and the last page is filled with zeros.
//! Numbers are in the byte order of the writing machine. After the last key of the last leaf,
//! integer keys hold the largest integer. Separators of text and bytes are first the end of each as
//! a `u64`, then their bytes.
//!
//! The types, the number of entries and the sizes of three sections decide where everything lies: a
//! header is right if it says what [`Layout::new`] computes.
//!
//! The keys of a leaf fill two lines: 16 integers of 8 B, 32 of 4 B, 16 references to the key heap.
//! Other keys of fixed width fill four lines, or a power of two of bytes that holds one. Values
//! follow their keys if both together are a power of two of bytes, at most a page. So no leaf
//! crosses a page, and its address is a shift.

use twox_hash::XxHash3_64;

use crate::block::LINE_BYTES;
use crate::lane::LaneKind;
use crate::plan::NODE_BYTES;

use super::stored::{HEAP_CELL_BYTES, Stored, StoredKey};

/// Of the format; other versions are refused.
pub(super) const VERSION: u32 = 2;
/// The unit of checksums. A constant of the format, whatever the pages of the machine are.
pub(super) const PAGE_BYTES: usize = 4096;

/// What the keys of a leaf fill if they are of fixed width but no integers.
const WIDE_KEYS_BYTES: usize = 4 * LINE_BYTES;

pub(super) const SUM_BYTES: usize = size_of::<u64>();

/// The checksum of pages, index and header: XXH3 of 64 bits, with seed 0.
///
/// It finds accidents. Memory safety depends on no checksum.
pub(super) fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// How keys and values of two types are stored: all that does not depend on the entries.
///
/// [`Shape::of`] folds to constants, so that a lookup computes addresses by shifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// What a key takes in a leaf.
    pub(super) key_bytes: usize,
    pub(super) keys_in_heap: bool,
    /// The integer that keys are, if any.
    pub(super) lane: Option<LaneKind>,
    pub(super) value_bytes: usize,
    pub(super) values_in_heap: bool,
    /// Keys in a leaf, at least one; all leaves but the last are full.
    pub(super) leaf_keys: usize,
    /// Where the values start in a leaf, which is where its keys end.
    pub(super) leaf_values_at: usize,
    pub(super) leaf_bytes: usize,
    /// Whether values lie in the leaves.
    pub(super) joined: bool,
}

impl Shape {
    #[inline(always)]
    pub(super) fn of<K: StoredKey + ?Sized, V: Stored + ?Sized>() -> Shape {
        let key_bytes = K::FIXED_BYTES.unwrap_or(HEAP_CELL_BYTES);
        let keys_in_heap = K::FIXED_BYTES.is_none();
        let lane = LaneKind::of_id(typeid::of::<K>());
        let value_bytes = V::FIXED_BYTES.unwrap_or(HEAP_CELL_BYTES);
        let room = if lane.is_some() || keys_in_heap {
            NODE_BYTES
        } else {
            WIDE_KEYS_BYTES.max(key_bytes)
        };
        let leaf_values_at = if room <= PAGE_BYTES {
            room.next_power_of_two()
        } else {
            // Crosses pages wherever it starts. (No overflow: a key of the type fits into memory.)
            room.next_multiple_of(PAGE_BYTES)
        };
        let leaf_keys = leaf_values_at / key_bytes.max(1);
        let joined_bytes = leaf_keys
            .saturating_mul(value_bytes)
            .saturating_add(leaf_values_at);
        let joined = joined_bytes.is_power_of_two() && joined_bytes <= PAGE_BYTES;
        Shape {
            key_bytes,
            keys_in_heap,
            lane,
            value_bytes,
            values_in_heap: V::FIXED_BYTES.is_none(),
            leaf_keys,
            leaf_values_at,
            leaf_bytes: if joined { joined_bytes } else { leaf_values_at },
            joined,
        }
    }

    /// The leaf of a rank, and its slot there.
    #[inline(always)]
    pub(super) fn place(self, rank: usize) -> (usize, usize) {
        (rank / self.leaf_keys, rank % self.leaf_keys)
    }
}

/// One part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// Where it starts, in bytes from the start of the file.
    pub(super) at: usize,
    /// How long it is, filler not counted.
    pub(super) bytes: usize,
}

impl Section {
    /// The bytes of the section in those of the file; none if the file does not have them.
    #[inline(always)]
    pub(super) fn of(self, file: &[u8]) -> &[u8] {
        file.get(self.at..)
            .and_then(|rest| rest.get(..self.bytes))
            .unwrap_or_default()
    }
}

/// The places of all parts of one file.
///
/// Invariants: what [`Layout::new`] computes. The sections do not overlap, ascend, and end within
/// `file_bytes`, which is at most `isize::MAX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) len: usize,
    /// Leaves.
    pub(super) leaf_count: usize,
    pub(super) leaves: Section,
    /// The values, unless joined.
    pub(super) values: Section,
    /// Keys of variable length.
    pub(super) key_heap: Section,
    /// Values of variable length.
    pub(super) value_heap: Section,
    /// Separators: fixed-width keys side by side, or the end of each as a `u64`, and then their
    /// bytes.
    pub(super) index: Section,
    /// Checksums of all pages between the header and this section.
    pub(super) sums: Section,
    /// Length of the whole.
    pub(super) file_bytes: usize,
}

/// The sizes that the types and the number of entries do not decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FreeSizes {
    /// Bytes of the key heap, 0 for keys of fixed width.
    pub(super) key_heap_bytes: usize,
    /// Bytes of the value heap, 0 for values of fixed width.
    pub(super) value_heap_bytes: usize,
    /// Bytes of the separators themselves, 0 for keys of fixed width.
    pub(super) separator_bytes: usize,
}

impl Layout {
    /// Lays out `len` entries; `None` if such a file could not be mapped.
    pub(super) fn new(shape: Shape, len: usize, sizes: FreeSizes) -> Option<Layout> {
        let leaf_count = len.div_ceil(shape.leaf_keys);
        let values_bytes = if shape.joined {
            0
        } else {
            len.checked_mul(shape.value_bytes)?
        };
        let separators = leaf_count.saturating_sub(1);
        let index_bytes = separators
            .checked_mul(shape.key_bytes)?
            .checked_add(sizes.separator_bytes)?;

        let mut end = PAGE_BYTES;
        let mut section = |bytes: usize| {
            let at = end;
            end = end
                .checked_add(bytes)?
                .checked_next_multiple_of(PAGE_BYTES)?;
            Some(Section { at, bytes })
        };
        let leaves = section(leaf_count.checked_mul(shape.leaf_bytes)?)?;
        let values = section(values_bytes)?;
        let key_heap = section(sizes.key_heap_bytes)?;
        let value_heap = section(sizes.value_heap_bytes)?;
        let index = section(index_bytes)?;
        let sums = Section {
            at: end,
            bytes: (end / PAGE_BYTES - 1) * SUM_BYTES,
        };
        let file_bytes = sums.at.checked_add(sums.bytes)?;
        isize::try_from(file_bytes).ok()?;
        Some(Layout {
            len,
            leaf_count,
            leaves,
            values,
            key_heap,
            value_heap,
            index,
            sums,
            file_bytes,
        })
    }

    #[inline(always)]
    pub(super) fn keys_in(&self, shape: Shape, leaf: usize) -> usize {
        self.len
            .saturating_sub(leaf.saturating_mul(shape.leaf_keys))
            .min(shape.leaf_keys)
    }

    /// Where a leaf starts in the file, if it exists.
    #[inline(always)]
    pub(super) fn leaf_at(&self, shape: Shape, leaf: usize) -> usize {
        self.leaves
            .at
            .wrapping_add(leaf.wrapping_mul(shape.leaf_bytes))
    }

    #[inline(always)]
    pub(super) fn value_at(&self, shape: Shape, leaf: usize, slot: usize) -> usize {
        if shape.joined {
            self.leaf_at(shape, leaf)
                .wrapping_add(shape.leaf_values_at + slot * shape.value_bytes)
        } else {
            let rank = leaf.wrapping_mul(shape.leaf_keys).wrapping_add(slot);
            self.values
                .at
                .wrapping_add(rank.wrapping_mul(shape.value_bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{FreeSizes, Layout, PAGE_BYTES, Shape};
    use crate::mapped::stored::{Stored, StoredKey};

    /// Leaves and values of a few sizes, `len` entries.
    fn layouts(len: usize) -> [(&'static str, Shape, Layout); 10] {
        fn of<K: StoredKey + ?Sized, V: Stored + ?Sized>(
            name: &'static str,
            len: usize,
        ) -> (&'static str, Shape, Layout) {
            let shape = Shape::of::<K, V>();
            (
                name,
                shape,
                Layout::new(shape, len, FreeSizes::default()).unwrap(),
            )
        }
        [
            of::<u64, u64>("u64 u64", len),
            of::<u64, ()>("u64", len),
            of::<u32, u32>("u32 u32", len),
            of::<u64, u32>("u64 u32", len),
            of::<u8, [u8; 3]>("u8 3", len),
            of::<[u8; 20], u64>("20 u64", len),
            of::<[u8; 600], ()>("600", len),
            of::<[u8; 5000], u8>("5000 u8", len),
            of::<(), ()>("nothing", len),
            of::<str, [u8]>("str", len),
        ]
    }

    #[test]
    fn leaves_stay_in_their_pages() {
        for (name, shape, layout) in layouts(1000) {
            assert!(
                shape.leaf_keys * shape.key_bytes <= shape.leaf_values_at,
                "{name}"
            );
            for leaf in 0..layout.leaf_count {
                let at = layout.leaf_at(shape, leaf);
                assert!(at.is_multiple_of(64), "{name}");
                let (first, last) = (at / PAGE_BYTES, (at + shape.leaf_bytes - 1) / PAGE_BYTES);
                assert!(
                    first == last || at.is_multiple_of(PAGE_BYTES),
                    "{name}: leaf {leaf}"
                );
                assert!(at + shape.leaf_bytes <= layout.leaves.at + layout.leaves.bytes);
            }
        }
    }

    #[test]
    fn values_lie_in_leaves_where_that_wastes_nothing() {
        let joined: Vec<&str> = layouts(10)
            .iter()
            .filter(|(_, shape, _)| shape.joined)
            .map(|(name, ..)| *name)
            .collect();
        assert_eq!(
            joined,
            ["u64 u64", "u64", "u32 u32", "u8 3", "600", "nothing", "str"]
        );
    }

    #[test]
    fn every_rank_has_a_place() {
        for len in [0, 1, 15, 16, 17, 300] {
            for (name, shape, layout) in layouts(len) {
                let counted: usize = (0..layout.leaf_count)
                    .map(|leaf| layout.keys_in(shape, leaf))
                    .sum();
                assert_eq!(counted, len, "{name}");
                assert_eq!(layout.keys_in(shape, layout.leaf_count), 0);
                for rank in 0..len {
                    let (leaf, slot) = shape.place(rank);
                    assert_eq!(leaf * shape.leaf_keys + slot, rank, "{name}");
                    assert!(slot < layout.keys_in(shape, leaf), "{name}");
                    let value_at = layout.value_at(shape, leaf, slot);
                    let end = if shape.joined {
                        layout.leaf_at(shape, leaf + 1)
                    } else {
                        layout.values.at + layout.values.bytes
                    };
                    assert!(
                        value_at + shape.value_bytes <= end,
                        "{name}: {rank} of {len}"
                    );
                }
            }
        }
    }

    #[test]
    fn impossible_files_have_no_layout() {
        let shape = Shape::of::<u64, u64>();
        assert_eq!(Layout::new(shape, usize::MAX, FreeSizes::default()), None);
        assert_eq!(
            Layout::new(shape, usize::MAX / 16, FreeSizes::default()),
            None
        );
        let sizes = FreeSizes {
            key_heap_bytes: usize::MAX - 5000,
            ..FreeSizes::default()
        };
        assert_eq!(Layout::new(shape, 1, sizes), None);
    }
}
