//! The tree for integer keys: one block of lanes (see [`plan`](crate::plan)), searched by SIMD.
//!
//! Values that need no drop and have at most [`JOINED_VALUE_BYTES_MAX`] bytes follow the keys of
//! their leaf, which saves requests to memory. Others are a `Vec` in key order, which drops them:
//! nothing in this module can be dropped twice. While a search waits for the keys of a leaf, the
//! lines of its values are prefetched if there are at most [`EAGER_LINES_MAX`].
//!
//! Memory is read and written here, in [`lane_block`] and in [`simd`], on a
//! [`block`](crate::block). The iterators ([`entries`](super::entries),
//! [`map_iter`](super::map_iter)) turn the addresses of [`strided`](super::strided) into
//! references.

use alloc::vec::{self, Vec};
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::lane_block;
use super::strided::Strided;
use crate::block::{Block, LINE_BYTES, advise_vec};
use crate::lane::{LaneKind, ordered_bits};
use crate::narrow::{KEYS_PER_DISPLACED_MIN, Narrowing};
use crate::plan::{NODE_BYTES, Plan};
use crate::simd::{self, EagerValues, Isa, Place};

/// Largest value that is kept beside its key.
///
/// Nanoseconds a lookup, beside the key / apart, 2 million `u64` keys, medians of three runs
/// (machine and day as for [`NODE_BYTES`]): values of 8 B independent 44 / 43, dependent 181 / 174,
/// `get_many_with` 23 / 27; of 16 B 46 / 54, 185 / 219, 29 / 42.
pub(super) const JOINED_VALUE_BYTES_MAX: usize = 16;

/// Most lines of values that a search prefetches while it waits for the keys of their leaf.
///
/// For values of 24 and 32 B, to prefetch made dependent lookups 1.4 and 1.5 times as fast, and
/// independent ones, which wait for bandwidth, 1.3 to 1.5 times as slow (measured as above).
const EAGER_LINES_MAX: usize = 8;

/// Bytes that narrow separators must save in the index if they save no level. A smaller index is
/// in the nearest caches anyway.
const NARROW_GAIN_BYTES_MIN: usize = 32 << 10;

/// What a batch of searches is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Ranks alone: whether keys are there, and where.
    Ranks,
    /// The values of these ranks, which are prefetched.
    Values,
}

/// Sorted integer keys with their values, at least one.
///
/// Invariants:
/// - `LaneKind::of::<K>()` is `Some`;
/// - `block` has `plan.block_bytes()` bytes, and `plan` was made for `K`'s size and, if
///   [`joined`](LaneTree::joined), `V`'s, so that its leaves have `LEAF_BYTES`;
/// - the first `plan.len()` key slots of the leaves hold keys, all other lanes of leaves and index
///   hold what `plan` says;
/// - `joined`: the first `plan.len()` value slots hold valid values, and `values` is empty; else
///   `values.len() == plan.len()`.
#[derive(Debug)]
pub(crate) struct LaneTree<K, V> {
    block: Block,
    plan: Plan,
    isa: Isa,
    eager: EagerValues,
    values: Vec<V>,
    /// The block owns keys and, perhaps, values.
    marker: PhantomData<(K, V)>,
}

impl<K, V> LaneTree<K, V> {
    /// The kind of the keys. Folds to a constant.
    #[inline(always)]
    fn kind() -> LaneKind {
        LaneKind::of::<K>().expect("a lane tree has integer keys")
    }

    /// Keys in a leaf. (Keys without size are no integers.)
    const LANES: usize = match size_of::<K>() {
        0 => 1,
        bytes => NODE_BYTES / bytes,
    };

    /// From one leaf to the next, as in the plan: a constant here saves a multiplication.
    const LEAF_BYTES: usize =
        (NODE_BYTES + Self::LANES * Self::JOINED_BYTES).next_multiple_of(LINE_BYTES);

    /// Size of a value that lies in a leaf, 0 for one that does not.
    const JOINED_BYTES: usize = if Self::joined() { size_of::<V>() } else { 0 };

    /// Whether values lie in the leaves. Folds to a constant.
    #[inline(always)]
    pub(super) const fn joined() -> bool {
        !core::mem::needs_drop::<V>()
            && size_of::<V>() <= JOINED_VALUE_BYTES_MAX
            && align_of::<V>() <= LINE_BYTES
    }

    /// Builds the tree from `entries`, which should be strictly ascending.
    ///
    /// # Panics
    /// When there are no entries, `K` is not an integer, or the size overflows.
    pub(crate) fn from_sorted(entries: Vec<(K, V)>) -> LaneTree<K, V> {
        let Some(plan) = Self::plan(&entries) else {
            panic!("capacity overflow: {} entries", entries.len());
        };
        assert!(
            plan.leaf_bytes() == Self::LEAF_BYTES,
            "leaves of {} B, planned with {} B",
            Self::LEAF_BYTES,
            plan.leaf_bytes()
        );
        let mut tree = LaneTree::<K, V> {
            block: Block::new(plan.block_bytes()),
            plan,
            isa: Isa::detect(),
            eager: EagerValues::NONE,
            values: Vec::new(),
            marker: PhantomData,
        };
        let (keys, joined_values) = (tree.keys(), tree.joined_values());
        if !Self::joined() {
            tree.values.reserve_exact(entries.len());
            advise_vec(&tree.values);
        }
        for (rank, (key, value)) in entries.into_iter().enumerate() {
            // SAFETY: `rank < plan.len()`: this is the aligned place of a key within the block.
            unsafe { keys.at(rank).write(key) };
            if Self::joined() {
                // SAFETY: `rank < plan.len()`, and the plan has an aligned place of a value for
                // each.
                unsafe { joined_values.at(rank).write(value) };
            } else {
                tree.values.push(value);
            }
        }
        // SAFETY: the block was made for this plan and kind, and all keys are written.
        unsafe { lane_block::fill(Self::kind(), tree.block.base(), &tree.plan) };
        tree.eager = tree.eager_values();
        tree
    }

    /// The plan for the entries: with narrow separators if they save a level or much of the index,
    /// and few keys are displaced.
    fn plan(entries: &[(K, V)]) -> Option<Plan> {
        let kind = Self::kind();
        let whole = Plan::new(entries.len(), kind.bytes(), Self::JOINED_BYTES)?;
        let Some(narrowing) = Self::narrowing(entries) else {
            return Some(whole);
        };
        let narrow = Plan::with_index(
            entries.len(),
            kind.bytes(),
            Self::JOINED_BYTES,
            Some(narrowing),
        )?;
        let gains = narrow.height() < whole.height()
            || narrow.index_bytes() + NARROW_GAIN_BYTES_MIN <= whole.index_bytes();
        Some(if gains { narrow } else { whole })
    }

    /// How to narrow the keys, if they have 64 bits and few would be displaced.
    fn narrowing(entries: &[(K, V)]) -> Option<Narrowing> {
        let bits = |rank: usize| ordered_bits(&entries[rank].0);
        let narrowing = Narrowing::new(bits(0)?, bits(entries.len() - 1)?);
        let head = |rank: usize| bits(rank).map(|bits| narrowing.head(bits));
        let displaced = (Self::LANES..entries.len())
            .step_by(Self::LANES)
            .map(|start| {
                // Heads ascend with the keys, so that the displaced ones of a leaf come first.
                let before = head(start - 1);
                let end = entries.len().min(start + Self::LANES);
                (start..end)
                    .take_while(|&rank| head(rank) == before)
                    .count()
            })
            .sum::<usize>();
        (displaced.saturating_mul(KEYS_PER_DISPLACED_MIN) <= entries.len()).then_some(narrowing)
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.plan.len()
    }

    /// The addresses of the keys, valid for ranks below `len` as long as the block lives.
    #[inline(always)]
    pub(super) fn keys(&self) -> Strided<K> {
        // SAFETY: the first leaf starts inside the block.
        let base = unsafe { self.block.base().add(self.plan.leaf_at(0)) };
        Strided::new(base, Self::LANES.trailing_zeros(), Self::LEAF_BYTES)
    }

    #[inline(always)]
    fn joined_values(&self) -> Strided<V> {
        // SAFETY: the keys of the first leaf lie inside the block, and their end is at most one
        // past its last byte.
        let base = unsafe { self.block.base().add(self.plan.leaf_at(0) + NODE_BYTES) };
        Strided::new(base, Self::LANES.trailing_zeros(), Self::LEAF_BYTES)
    }

    /// The addresses of the values, for shared access as long as the tree is borrowed.
    #[inline(always)]
    pub(super) fn values(&self) -> Strided<V> {
        if Self::joined() {
            self.joined_values()
        } else {
            Strided::from_slice(&self.values)
        }
    }

    /// The addresses of the values, for exclusive access as long as the tree is borrowed mutably.
    #[inline(always)]
    pub(super) fn values_mut(&mut self) -> Strided<V> {
        if Self::joined() {
            self.joined_values()
        } else {
            Strided::from_mut_slice(&mut self.values)
        }
    }

    #[inline(always)]
    pub(super) fn key(&self, rank: usize) -> &K {
        assert!(rank < self.len(), "rank {rank} of {}", self.len());
        // SAFETY: keys of ranks below `len` are initialised, and never written again while the tree
        // lives.
        unsafe { &*self.keys().at(rank) }
    }

    #[inline(always)]
    pub(super) fn value(&self, rank: usize) -> &V {
        assert!(rank < self.len(), "rank {rank} of {}", self.len());
        // SAFETY: values of ranks below `len` are initialised; they change through `&mut self`
        // alone.
        unsafe { &*self.values().at(rank) }
    }

    #[inline(always)]
    pub(super) fn value_mut(&mut self, rank: usize) -> &mut V {
        assert!(rank < self.len(), "rank {rank} of {}", self.len());
        // SAFETY: values of ranks below `len` are initialised, and `&mut self` is the only access.
        unsafe { &mut *self.values_mut().at(rank) }
    }

    /// The values to prefetch, if those of a leaf fill few lines.
    fn eager_values(&self) -> EagerValues {
        let leaf_value_bytes = Self::LANES * size_of::<V>();
        let first = self.values().at(0).cast::<u8>().cast_const();
        let lines_filled = leaf_value_bytes.div_ceil(LINE_BYTES);
        let (stride_bytes, lines) = if Self::joined() {
            // They follow the keys, which end on a line boundary.
            (self.plan.leaf_bytes(), lines_filled)
        } else if leaf_value_bytes.is_multiple_of(LINE_BYTES) {
            // The values of all leaves start at the same offset within a line.
            let lines = simd::lines_spanned(first, leaf_value_bytes);
            (leaf_value_bytes, lines)
        } else {
            // They start at any offset within a line.
            (leaf_value_bytes, lines_filled + 1)
        };
        let lines = if lines_filled <= EAGER_LINES_MAX {
            lines
        } else {
            0
        };
        EagerValues::new(first, stride_bytes, lines, size_of::<V>())
    }

    #[inline(always)]
    fn place(&self, query: &K) -> Place {
        let query = NonNull::from(query).cast();
        // SAFETY: by the invariants the block is filled after the plan with lanes of the kind of
        // `K`; the query is a `K`.
        let place = unsafe {
            simd::place(
                Self::kind(),
                self.isa,
                self.block.base(),
                &self.plan,
                &self.eager,
                query,
            )
        };
        debug_assert!(
            place.rank(Self::LANES) <= self.len(),
            "{place:?} of {}",
            self.len()
        );
        place
    }

    /// Whether `query` stands at the place that was found for it. If so, its rank is below `len`.
    ///
    /// # Safety
    /// `place` is what [`place`](Self::place) of this tree gave for this query.
    #[inline(always)]
    unsafe fn is_at(&self, place: Place, query: &K) -> bool {
        let query = NonNull::from(query).cast();
        // SAFETY: by the invariants the block is filled after the plan; `place` was found for this
        // query, which is a `K`.
        unsafe { simd::is_at(Self::kind(), self.block.base(), &self.plan, place, query) }
    }

    /// Number of keys less than `query`, at most `len`.
    #[cfg(test)]
    pub(crate) fn lower_bound(&self, query: &K) -> usize {
        self.place(query).rank(Self::LANES)
    }

    /// The rank of `query`, or the number of keys less than it, at most `len`.
    #[inline(always)]
    pub(super) fn search(&self, query: &K) -> Result<usize, usize> {
        let place = self.place(query);
        let rank = place.rank(Self::LANES);
        // SAFETY: `place` was found for this query just now.
        if unsafe { self.is_at(place, query) } {
            Ok(rank)
        } else {
            Err(rank)
        }
    }

    /// Where the value of `query` lies, valid as [`values`](LaneTree::values).
    #[inline(always)]
    fn value_place(&self, query: &K, values: Strided<V>) -> Option<NonNull<V>> {
        let place = self.place(query);
        // SAFETY: `place` was found for this query just now.
        if unsafe { !self.is_at(place, query) } {
            return None;
        }
        NonNull::new(if Self::joined() {
            values.at_slot(place.leaf, place.slot)
        } else {
            values.at(place.rank(Self::LANES))
        })
    }

    #[inline(always)]
    pub(super) fn get(&self, query: &K) -> Option<&V> {
        let value = self.value_place(query, self.values())?;
        // SAFETY: the rank is below `len`, its value initialised; values change through `&mut self`
        // alone.
        Some(unsafe { value.as_ref() })
    }

    /// The value of `query`, to change it.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, query: &K) -> Option<&mut V> {
        let values = self.values_mut();
        let mut value = self.value_place(query, values)?;
        // SAFETY: the rank is below `len`, its value initialised; `&mut self` is the only access.
        Some(unsafe { value.as_mut() })
    }

    /// Number of keys less than each query.
    ///
    /// # Panics
    /// When the lengths differ or exceed [`simd::BATCH`].
    #[inline(always)]
    pub(crate) fn lower_bound_many(&self, queries: &[K], ranks: &mut [usize], wanted: Wanted) {
        assert!(
            queries.len() == ranks.len() && ranks.len() <= simd::BATCH,
            "{} queries, {} ranks",
            queries.len(),
            ranks.len()
        );
        let queries = NonNull::from(queries).cast();
        // SAFETY: by the invariants the block is filled after the plan; the queries are of `K`, and
        // as many as the ranks (asserted).
        unsafe {
            simd::lower_bound_many(
                Self::kind(),
                self.isa,
                self.block.base(),
                &self.plan,
                match wanted {
                    Wanted::Ranks => &EagerValues::NONE,
                    Wanted::Values => &self.eager,
                },
                queries,
                ranks,
            );
        }
    }

    /// Bytes allocated for the tree.
    pub(super) fn memory_bytes(&self) -> usize {
        // Zero-sized values have an unlimited capacity, of no bytes.
        self.block.bytes() + self.values.capacity() * size_of::<V>()
    }

    /// Whether all lanes outside the keys hold what the plan says; if not, the offset of one that
    /// does not.
    pub(super) fn check_lanes(&self) -> Result<(), usize> {
        // SAFETY: by the invariants the block is laid out and filled so, and it is never written to
        // but for values.
        unsafe { lane_block::check(Self::kind(), self.block.base(), &self.plan) }
    }

    /// The same tree, searched with other instructions.
    #[cfg(test)]
    pub(crate) fn with_isa(mut self, isa: Isa) -> LaneTree<K, V> {
        self.isa = isa;
        self
    }
}

impl<K: Clone, V: Clone> Clone for LaneTree<K, V> {
    /// Rebuilds the tree from clones of its entries, in O(n).
    fn clone(&self) -> LaneTree<K, V> {
        let entries = (0..self.len())
            .map(|rank| (self.key(rank).clone(), self.value(rank).clone()))
            .collect();
        LaneTree::from_sorted(entries)
    }
}

impl<K, V> IntoIterator for LaneTree<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> IntoIter<K, V> {
        let (keys, joined_values, end) = (self.keys(), self.joined_values(), self.len());
        IntoIter {
            _block: self.block,
            keys,
            joined_values,
            values: self.values.into_iter(),
            start: 0,
            end,
            marker: PhantomData,
        }
    }
}

/// Moves the entries out, from both ends.
///
/// Invariants: `keys` and `joined_values` point into `_block`; the entries of the ranks
/// `start..end` have not been moved out, and are the ones left in `values` unless joined.
pub(crate) struct IntoIter<K, V> {
    _block: Block,
    keys: Strided<K>,
    joined_values: Strided<V>,
    values: vec::IntoIter<V>,
    start: usize,
    end: usize,
    marker: PhantomData<(K, V)>,
}

impl<K, V> IntoIter<K, V> {
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// The key and the value of a rank that has just been taken from the range of those left;
    /// `split_value` is what `values` gave for it.
    ///
    /// # Safety
    /// `rank` was in `start..end` until now, and no longer is.
    unsafe fn move_out(&self, rank: usize, split_value: Option<V>) -> (K, V) {
        // SAFETY: the rank is below `len`, its key initialised; integers are `Copy`.
        let key = unsafe { self.keys.at(rank).read() };
        let value = if LaneTree::<K, V>::joined() {
            // SAFETY: the rank is below `len`, its joined value initialised; it is moved out once,
            // as the caller says.
            unsafe { self.joined_values.at(rank).read() }
        } else {
            split_value.expect("values that are not joined are as many as the ranks left")
        };
        (key, value)
    }

    /// The entries left, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        (self.start..self.end).map(|rank| {
            // SAFETY: the rank is below `len`, its key initialised, and keys are never written
            // again.
            let key = unsafe { &*self.keys.at(rank) };
            let value = if LaneTree::<K, V>::joined() {
                // SAFETY: the rank is below `len`, its joined value initialised; it is moved out
                // through `&mut self` alone.
                unsafe { &*self.joined_values.at(rank) }
            } else {
                &self.values.as_slice()[rank - self.start]
            };
            (key, value)
        })
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        if self.start == self.end {
            return None;
        }
        let rank = self.start;
        self.start += 1;
        let split_value = self.values.next();
        // SAFETY: the range of those left has just been shortened by this rank.
        Some(unsafe { self.move_out(rank, split_value) })
    }
}

impl<K, V> DoubleEndedIterator for IntoIter<K, V> {
    fn next_back(&mut self) -> Option<(K, V)> {
        if self.start == self.end {
            return None;
        }
        self.end -= 1;
        let split_value = self.values.next_back();
        // SAFETY: the range of those left has just been shortened by this rank.
        Some(unsafe { self.move_out(self.end, split_value) })
    }
}
