//! Where everything lies in a node: arithmetic on types, evaluated by the compiler.
//!
//! ```text
//! leaf     | lanes: 4 lines, 32 of u64 | keys | values | header |
//! inner    | lanes                     | keys | values | header | children | counts |
//! u64:     0                           -      256      496      512        760
//! ```
//!
//! - **Lanes** are what a search compares by SIMD. They come first, so that their lines are
//!   requested before anything else is known. Of integer keys they *are* the keys. Otherwise they
//!   are the keys' heads (see `head`), if the map has heads, and absent if not. Lanes without an
//!   entry hold the largest integer, so that a search need not know how many there are.
//! - Leaves and inner nodes share the offsets of all that both have.
//! - The **first leaf** of a map is of the same kind, smaller, and aligned to no line. No SIMD
//!   reads it.
//! - **Counts** of the entries below each child are there in maps with ranks only.
//!
//! A node has as many entries as there are lanes in [`LANE_BYTES`], a few less where that saves a
//! line; for large keys and values as many as fit into [`ENTRY_BYTES_MAX`], but at least
//! [`CAPACITY_MIN`]. The sizes that were tried are in `docs/inside/ctree.md`.

use core::mem::offset_of;

use super::node::Header;
use crate::block::LINE_BYTES;
use crate::lane::LaneKind;
use crate::simd::NodeMap;

pub(crate) use crate::simd::LANE_BYTES;

/// Most bytes of keys and values in a node, unless [`CAPACITY_MIN`] entries are larger.
const ENTRY_BYTES_MAX: usize = 4096;

/// Fewest entries that a node has room for. Three would do for all that happens to a node.
const CAPACITY_MIN: usize = 4;

/// Size of the first leaf of a map, unless one entry is larger.
const FIRST_LEAF_BYTES: usize = 256;

/// Entries that a first leaf has room for even if it is larger than that, up to
/// [`FIRST_LEAF_BYTES_MAX`]: maps of a few strings are common, and a leaf of full size takes five
/// times as much, in a block that most allocators keep no list for.
const FIRST_LEAF_ENTRIES: usize = 8;

/// Size of a first leaf of [`FIRST_LEAF_ENTRIES`], at most.
const FIRST_LEAF_BYTES_MAX: usize = 512;

/// Size of a tree that a second-level cache holds.
const NEAR_BYTES: usize = 1 << 20;

/// Most lines of values that a single search asks for before it knows the slot.
const EAGER_VALUE_LINES_MAX: usize = 4;

/// Offsets within the nodes of one kind of tree, in bytes.
///
/// Invariants: all parts are disjoint, aligned for what they hold when the node is aligned to
/// [`Shape::align`], and end within `leaf_bytes` (up to the header) and `inner_bytes` (with
/// children), or `counted_inner_bytes` (with counts); `CAPACITY_MIN
/// <= capacity` but in a first leaf, and `capacity <= lane_count` where there are lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Entries that a node has room for. An inner node has one child more.
    pub(crate) capacity: usize,
    /// Lanes, or 0 where there are none.
    pub(crate) lane_count: usize,
    pub(crate) keys_at: usize,
    pub(crate) values_at: usize,
    pub(crate) header_at: usize,
    /// Start of the pointers to children in an inner node.
    pub(crate) children_at: usize,
    /// Start of the numbers of entries below each child in an inner node of a tree with ranks.
    pub(crate) counts_at: usize,
    pub(crate) leaf_bytes: usize,
    /// Size of an inner node without counts.
    pub(crate) inner_bytes: usize,
    pub(crate) counted_inner_bytes: usize,
    /// Alignment of nodes.
    pub(crate) align: usize,
    /// What a search of integer keys needs to know of all this.
    pub(crate) map: NodeMap,
}

/// What the lanes of a tree are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lanes {
    Keys,
    Heads,
    /// There are none.
    Absent,
}

const fn next_multiple(bytes: usize, of: usize) -> usize {
    match bytes.checked_next_multiple_of(of) {
        Some(bytes) => bytes,
        None => panic!("a node of this map exceeds the address space"),
    }
}

const fn product(count: usize, bytes: usize) -> usize {
    match count.checked_mul(bytes) {
        Some(bytes) => bytes,
        None => panic!("a node of this map exceeds the address space"),
    }
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

/// Height of the highest tree whose leaves, if all nodes are full, take [`NEAR_BYTES`] at most.
const fn near_height(capacity: usize, leaf_bytes: usize) -> usize {
    let (mut height, mut bytes) = (0, leaf_bytes.saturating_mul(capacity + 1));
    // (The shape of integers has no entries where the keys are large, and is not used there.)
    while capacity > 0 && bytes <= NEAR_BYTES {
        height += 1;
        bytes = bytes.saturating_mul(capacity + 1);
    }
    height
}

impl Shape {
    /// The shape of nodes with `capacity` entries, aligned to `align_min` at least, with
    /// `lane_count` lanes if there are any.
    const fn with_capacity<K, V>(
        lanes: Lanes,
        lane_count: usize,
        capacity: usize,
        align_min: usize,
    ) -> Shape {
        let (lane_count, keys_at, keys_end) = match lanes {
            Lanes::Keys => (lane_count, 0, product(lane_count, size_of::<K>())),
            Lanes::Heads => {
                let keys_at = next_multiple(product(lane_count, size_of::<u64>()), align_of::<K>());
                let keys_end = keys_at + product(capacity, size_of::<K>());
                (lane_count, keys_at, keys_end)
            }
            Lanes::Absent => (0, 0, product(capacity, size_of::<K>())),
        };
        let values_at = next_multiple(keys_end, align_of::<V>());
        let values_end = values_at + product(capacity, size_of::<V>());
        let value_lines = product(capacity, size_of::<V>()).div_ceil(LINE_BYTES);
        let header_at = next_multiple(values_end, align_of::<Header>());
        let align = max(align_min, max(align_of::<K>(), align_of::<V>()));
        let header_end = header_at + size_of::<Header>();
        let children_at = next_multiple(header_end, align_of::<*mut u8>());
        let children_bytes = (capacity + 1) * size_of::<*mut u8>();
        let counts_at = children_at + children_bytes;
        let counts_bytes = (capacity + 1) * size_of::<usize>();
        let leaf_bytes = next_multiple(header_end, align);
        Shape {
            capacity,
            lane_count,
            keys_at,
            values_at,
            header_at,
            children_at,
            counts_at,
            leaf_bytes,
            inner_bytes: next_multiple(counts_at, align),
            counted_inner_bytes: next_multiple(counts_at + counts_bytes, align),
            align,
            map: NodeMap {
                len_at: header_at + offset_of!(Header, len),
                children_at,
                values_at,
                value_bytes: size_of::<V>(),
                eager_value_lines: if value_lines <= EAGER_VALUE_LINES_MAX {
                    value_lines
                } else {
                    0
                },
                near_height_max: near_height(capacity, leaf_bytes),
            },
        }
    }

    const fn of_lanes<K, V>(lanes: Lanes) -> Shape {
        let key_bytes = match lanes {
            // The keys are the lanes.
            Lanes::Keys => 0,
            Lanes::Heads | Lanes::Absent => size_of::<K>(),
        };
        let lane_count = match lanes {
            Lanes::Keys => LANE_BYTES / max(size_of::<K>(), 1),
            Lanes::Heads | Lanes::Absent => LANE_BYTES / size_of::<u64>(),
        };
        let entry_bytes = key_bytes.saturating_add(size_of::<V>());
        let fitting = ENTRY_BYTES_MAX / max(entry_bytes, 1);
        let capacity = if fitting > lane_count {
            lane_count
        } else {
            max(fitting, CAPACITY_MIN)
        };
        // The header may begin a line of its own, or even spill over by little: a few entries less
        // can save that line.
        let shape = Shape::with_capacity::<K, V>(lanes, lane_count, capacity, LINE_BYTES);
        let mut less = capacity;
        while less > CAPACITY_MIN && less > capacity - capacity / 8 {
            less -= 1;
            let candidate = Shape::with_capacity::<K, V>(lanes, lane_count, less, LINE_BYTES);
            if candidate.leaf_bytes < shape.leaf_bytes {
                return candidate;
            }
        }
        shape
    }

    /// The shape of the first leaf of a map: as many entries as fit into [`FIRST_LEAF_BYTES`], or
    /// [`FIRST_LEAF_ENTRIES`], at most half of a leaf's and at least one.
    const fn of_first_leaf<K, V>(lanes: Lanes) -> Shape {
        let align = max(align_of::<Header>(), align_of::<u64>());
        let mut capacity = Shape::of_lanes::<K, V>(lanes).capacity / 2;
        loop {
            let shape = Shape::with_capacity::<K, V>(lanes, capacity, capacity, align);
            let bytes_max = if capacity <= FIRST_LEAF_ENTRIES {
                FIRST_LEAF_BYTES_MAX
            } else {
                FIRST_LEAF_BYTES
            };
            if shape.leaf_bytes <= bytes_max || capacity == 1 {
                return shape;
            }
            capacity -= 1;
        }
    }
}

/// The shapes that a map of these types may have: of its nodes, and of its first leaf.
struct Shapes<K, V>(core::marker::PhantomData<(K, V)>);

impl<K, V> Shapes<K, V> {
    const INTEGERS: [&Shape; 2] = [
        &Shape::of_lanes::<K, V>(Lanes::Keys),
        &Shape::of_first_leaf::<K, V>(Lanes::Keys),
    ];
    const HEADED: [&Shape; 2] = [
        &Shape::of_lanes::<K, V>(Lanes::Heads),
        &Shape::of_first_leaf::<K, V>(Lanes::Heads),
    ];
    const PLAIN: [&Shape; 2] = [
        &Shape::of_lanes::<K, V>(Lanes::Absent),
        &Shape::of_first_leaf::<K, V>(Lanes::Absent),
    ];
}

/// The shape of the nodes of a map, or of its first leaf. What depends on neither flag folds to a
/// constant.
#[inline(always)]
pub(crate) fn shape_of<K, V>(headed: bool, first: bool) -> &'static Shape {
    let [shape, of_first_leaf] = if LaneKind::of::<K>().is_some() {
        Shapes::<K, V>::INTEGERS
    } else if headed {
        Shapes::<K, V>::HEADED
    } else {
        Shapes::<K, V>::PLAIN
    };
    if first { of_first_leaf } else { shape }
}

// (With pointers of four bytes an inner node is smaller.)
#[cfg(target_pointer_width = "64")]
const _: () = {
    let [shape, first_leaf] = Shapes::<u64, u64>::INTEGERS;
    assert!(first_leaf.capacity == 15 && first_leaf.leaf_bytes == 256);
    assert!(shape.capacity == 30 && shape.leaf_bytes == 512 && shape.inner_bytes == 768);
    assert!(shape.header_at == 496 && offset_of!(Header, parent) == 0);
};

#[cfg(test)]
mod tests {
    use super::{CAPACITY_MIN, LANE_BYTES, Lanes, Shape};
    use crate::tree::node::Header;

    fn check<K, V>(lanes: Lanes) {
        let shape = Shape::of_lanes::<K, V>(lanes);
        assert!(shape.capacity >= CAPACITY_MIN, "{shape:?}");
        match lanes {
            Lanes::Keys => {
                assert_eq!(
                    (shape.lane_count * size_of::<K>(), shape.keys_at),
                    (LANE_BYTES, 0)
                );
                assert!(shape.values_at >= LANE_BYTES && shape.capacity <= shape.lane_count);
            }
            Lanes::Heads => {
                assert!(shape.keys_at >= LANE_BYTES && shape.capacity <= shape.lane_count);
                assert!(shape.values_at >= shape.keys_at + shape.capacity * size_of::<K>());
            }
            Lanes::Absent => {
                assert!(shape.values_at >= shape.keys_at + shape.capacity * size_of::<K>());
            }
        }
        assert!(shape.header_at >= shape.values_at + shape.capacity * size_of::<V>());
        assert!(shape.children_at >= shape.header_at + size_of::<Header>());
        assert!(shape.leaf_bytes >= shape.header_at + size_of::<Header>());
        let word_bytes = size_of::<usize>() * (shape.capacity + 1);
        assert!(shape.counts_at >= shape.children_at + word_bytes);
        assert!(
            shape.inner_bytes >= shape.counts_at
                && shape.counted_inner_bytes >= shape.counts_at + word_bytes
        );
        for (at, align) in [
            (shape.keys_at, align_of::<K>()),
            (shape.values_at, align_of::<V>()),
            (shape.header_at, align_of::<Header>()),
            (shape.children_at, align_of::<*mut u8>()),
            (shape.leaf_bytes, shape.align),
            (shape.inner_bytes, shape.align),
            (shape.counted_inner_bytes, shape.align),
        ] {
            assert!(
                at.is_multiple_of(align) && shape.align.is_multiple_of(align),
                "{shape:?}"
            );
        }
    }

    #[test]
    fn parts_are_disjoint_and_aligned() {
        #[repr(align(256))]
        struct Wide;
        check::<u64, u64>(Lanes::Keys);
        check::<u8, ()>(Lanes::Keys);
        check::<u16, Wide>(Lanes::Keys);
        check::<u32, [u8; 3]>(Lanes::Keys);
        check::<char, [u64; 1000]>(Lanes::Keys);
        for lanes in [Lanes::Heads, Lanes::Absent] {
            check::<String, u64>(lanes);
            check::<(), ()>(lanes);
            check::<[u8; 5000], u8>(lanes);
            check::<Wide, (u8, u32)>(lanes);
            check::<u128, [u64; 9]>(lanes);
        }
    }

    #[test]
    fn lines_are_saved_where_a_few_entries_less_save_one() {
        assert_eq!(Shape::of_lanes::<u64, u64>(Lanes::Keys).capacity, 30);
        assert_eq!(Shape::of_lanes::<u64, ()>(Lanes::Keys).capacity, 32);
        assert_eq!(Shape::of_lanes::<u32, u32>(Lanes::Keys).capacity, 60);
        assert_eq!(Shape::of_lanes::<u64, [u8; 4096]>(Lanes::Keys).capacity, 4);
    }
}
