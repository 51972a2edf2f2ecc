//! A file with its index: all that finds an entry, in terms of stored bytes and ranks.
//!
//! ```text
//! query -> index (in memory, on huge pages if large)     -> number of the leaf
//!       -> leaf (in the file), keys and values requested -> slot
//!       -> for variable length: heap (in the file)       -> key to compare with, value
//! ```
//!
//! Memory safety rests on the length of the file, which is checked when it is opened, and on its
//! layout, which is computed ([`Layout`]). After each search the numbers of leaf and slot are
//! limited to the bounds of the layout. All else is slices.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::marker::PhantomData;
use core::ptr::NonNull;

use crate::block::LINE_BYTES;
use crate::lane::LaneKind;
use crate::simd::{self, BATCH, Isa};

use super::error::{OpenError, VerifyError};
use super::header::Sums;
use super::layout::{Layout, PAGE_BYTES, SUM_BYTES, Section, Shape, checksum};
use super::source::Source;
use super::stored::{HEAP_CELL_BYTES, Stored, StoredKey};
use super::write::filler;

/// Most lines of a leaf, or of its keys in the heap, that are prefetched.
const EAGER_LINES_MAX: usize = 8;

/// Integers whose searches take a step together.
///
/// Nanoseconds of processor time per query of a long batch, 16, 32 and 64 together: 33.7, 35.5 and
/// 35.8 among 2,097,151 pairs of 8 B; 10.1, 9.0 and 9.4 among 20,000, in the cache (machine and day
/// as for [`NODE_BYTES`](crate::plan::NODE_BYTES)).
const STEP: usize = 16;
const _: () = assert!(STEP <= BATCH);

/// Size of the length before a heap entry.
const LENGTH_BYTES: usize = size_of::<u32>();

/// Room for `N` integer keys side by side, aligned for any of them.
#[repr(C)]
struct Lanes<const N: usize>([u64; N]);

/// A file that is open, and its index.
///
/// Invariants: `source` has exactly `layout.file_bytes` bytes, `layout` was made for the shape of
/// `K` and `V`.
pub(super) struct Tree<K: StoredKey + ?Sized, V: Stored + ?Sized> {
    source: Source,
    layout: Layout,
    sums: Sums,
    index: K::Index,
    isa: Isa,
    marker: PhantomData<fn() -> Box<V>>,
}

impl<K: StoredKey + ?Sized, V: Stored + ?Sized> Tree<K, V> {
    /// Reads the index of a file whose header says `layout` and `sums`.
    ///
    /// # Panics
    /// When the source does not have the bytes of the layout.
    pub(super) fn new(source: Source, layout: Layout, sums: Sums) -> Result<Tree<K, V>, OpenError> {
        let shape = Self::shape();
        assert!(
            source.bytes().len() == layout.file_bytes,
            "{} bytes where the layout has {}",
            source.bytes().len(),
            layout.file_bytes
        );
        let section = layout.index.of(source.bytes());
        if checksum(section) != sums.index {
            return Err(OpenError::IndexChecksum);
        }
        let index = if shape.keys_in_heap {
            let ends_bytes = layout.leaf_count.saturating_sub(1) * HEAP_CELL_BYTES;
            let (ends, bytes) = section.split_at(ends_bytes);
            let mut start = 0;
            let mut separators = Vec::new();
            for end in ends.chunks_exact(HEAP_CELL_BYTES) {
                let end = usize::try_from(u64::load(end)).map_err(|_| OpenError::Index)?;
                separators.push(bytes.get(start..end).ok_or(OpenError::Index)?);
                start = end;
            }
            if start != bytes.len() {
                return Err(OpenError::Index);
            }
            K::build_index(separators.into_iter())
        } else {
            // Of keys without size there is one, and no separator.
            K::build_index(section.chunks_exact(shape.key_bytes.max(1)))
        };
        Ok(Tree {
            index: index.ok_or(OpenError::Index)?,
            source,
            layout,
            sums,
            isa: Isa::detect(),
            marker: PhantomData,
        })
    }

    /// What leaves look like. Folds to a constant.
    #[inline(always)]
    fn shape() -> Shape {
        Shape::of::<K, V>()
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.layout.len
    }

    /// Where the bytes come from.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let copy = if self.source.in_memory() {
            self.layout.file_bytes
        } else {
            0
        };
        copy + K::index_bytes(&self.index)
    }

    /// The bytes at a place of the file that the layout has computed.
    #[inline(always)]
    fn cell(&self, at: usize, bytes: usize) -> &[u8] {
        &self.source.bytes()[at..at + bytes]
    }

    /// The entry of a heap that a cell refers to; empty if there is none.
    #[inline(always)]
    fn entry(&self, heap: Section, cell: &[u8]) -> &[u8] {
        let at = u64::load(cell);
        usize::try_from(at)
            .ok()
            .and_then(|at| heap.of(self.source.bytes()).get(at..))
            .and_then(|rest| rest.split_first_chunk::<LENGTH_BYTES>())
            .and_then(|(length, rest)| {
                rest.get(..usize::try_from(u32::from_ne_bytes(*length)).ok()?)
            })
            .unwrap_or_default()
    }

    #[inline(always)]
    fn key_cell(&self, leaf: usize, slot: usize) -> &[u8] {
        let at = self.layout.leaf_at(Self::shape(), leaf) + slot * Self::shape().key_bytes;
        self.cell(at, Self::shape().key_bytes)
    }

    #[inline(always)]
    fn key_in(&self, leaf: usize, slot: usize) -> &[u8] {
        let cell = self.key_cell(leaf, slot);
        if K::FIXED_BYTES.is_none() {
            self.entry(self.layout.key_heap, cell)
        } else {
            cell
        }
    }

    /// What is kept for the value of a rank below `len`.
    #[inline(always)]
    fn value_cell(&self, rank: usize) -> &[u8] {
        let (leaf, slot) = Self::shape().place(rank);
        let at = self.layout.value_at(Self::shape(), leaf, slot);
        self.cell(at, Self::shape().value_bytes)
    }

    /// The bytes of the key of a rank.
    ///
    /// # Panics
    /// When `rank >= len`.
    #[inline(always)]
    pub(super) fn key_bytes(&self, rank: usize) -> &[u8] {
        assert!(rank < self.len(), "rank {rank} of {}", self.len());
        let (leaf, slot) = Self::shape().place(rank);
        self.key_in(leaf, slot)
    }

    /// The bytes of the value of a rank.
    ///
    /// # Panics
    /// When `rank >= len`.
    #[inline(always)]
    pub(super) fn value_bytes(&self, rank: usize) -> &[u8] {
        assert!(rank < self.len(), "rank {rank} of {}", self.len());
        let cell = self.value_cell(rank);
        if V::FIXED_BYTES.is_none() {
            self.entry(self.layout.value_heap, cell)
        } else {
            cell
        }
    }

    /// Turns the number of each query's leaf into the number of keys less than the query, which is
    /// too large if the last leaf is damaged. There must be some keys, integers of `kind`.
    ///
    /// # Panics
    /// If there are more than `N` queries, or not as many as ranks.
    #[inline(always)]
    fn count_in_leaves<const N: usize, Q: Borrow<K>>(
        &self,
        kind: LaneKind,
        queries: &[Q],
        ranks: &mut [usize],
    ) {
        assert!(
            queries.len() == ranks.len() && ranks.len() <= N,
            "{} queries, {} ranks",
            queries.len(),
            ranks.len()
        );
        for leaf in &mut *ranks {
            *leaf = (*leaf).min(self.layout.leaf_count - 1);
        }
        let mut lanes;
        let start = if typeid::of::<Q>() == typeid::of::<K>() {
            // `K` is an integer, which has no lifetimes: `Q` is that integer as well.
            NonNull::from(queries).cast()
        } else {
            lanes = Lanes([0; N]);
            let start = NonNull::from(&mut lanes.0).cast::<u8>();
            for (number, query) in queries.iter().enumerate() {
                let query = query.borrow().stored_bytes();
                debug_assert_eq!(
                    query.len(),
                    kind.bytes(),
                    "an integer has the size of its lane"
                );
                // SAFETY: the number is below `N`, so that a lane of at most eight bytes ends
                // within as many times eight bytes; an integer has the bytes of its lane.
                unsafe {
                    start
                        .add(number * kind.bytes())
                        .copy_from_nonoverlapping(NonNull::from(query).cast(), kind.bytes());
                }
            }
            start
        };
        let leaves = self.layout.leaves.of(self.source.bytes());
        // SAFETY:
        // - the file starts on a page boundary, its leaves one page later; leaves of integers are
        //   two lines or a larger power of two;
        // - the leaves asked for are among the `leaf_count` that the section holds, and start with
        //   their keys;
        // - as many integers of this kind as ranks stand in a row, in `queries` itself or in
        //   `lanes`, which is aligned for any.
        unsafe {
            simd::count_in_leaves(
                kind,
                self.isa,
                NonNull::from(leaves).cast(),
                Self::shape().leaf_bytes,
                start,
                ranks,
            );
        }
    }

    /// The search for one integer: all lines that it needs after the index are requested at once.
    #[inline(always)]
    fn search_lane(&self, kind: LaneKind, query: &K) -> usize {
        let leaf = K::leaf_of(&self.index, query);
        self.request_leaf(leaf, Self::shape().leaf_bytes);
        if !Self::shape().joined {
            let bytes = Self::shape().leaf_keys * Self::shape().value_bytes;
            self.request(
                self.layout.value_at(Self::shape(), leaf, 0),
                bytes.min(EAGER_LINES_MAX * LINE_BYTES),
            );
        }
        let mut rank = [leaf];
        self.count_in_leaves::<1, &K>(kind, &[query], &mut rank);
        rank[0]
    }

    /// First step for some integers: numbers of their leaves, whose keys are requested.
    #[inline(always)]
    fn start_lanes<Q: Borrow<K>>(&self, queries: &[Q], leaves: &mut [usize]) {
        K::leaves_of(&self.index, queries, leaves);
        for &leaf in &*leaves {
            let at = self.layout.leaf_at(Self::shape(), leaf);
            let start = self.source.bytes().as_ptr().wrapping_add(at);
            simd::prefetch_far(start);
            simd::prefetch_far(start.wrapping_add(LINE_BYTES));
        }
    }

    /// Second step: ranks from the numbers of leaves; the values of the ranks are requested.
    #[inline(always)]
    fn count_lanes<Q: Borrow<K>>(&self, kind: LaneKind, queries: &[Q], ranks: &mut [usize]) {
        self.count_in_leaves::<STEP, Q>(kind, queries, ranks);
        for &rank in &*ranks {
            let (leaf, slot) = Self::shape().place(rank);
            self.request(
                self.layout.value_at(Self::shape(), leaf, slot),
                Self::shape().value_bytes.min(EAGER_LINES_MAX * LINE_BYTES),
            );
        }
    }

    /// [`search`](Tree::search) for many integers, in a tree that is not empty.
    ///
    /// Each of three steps waits for what the one before has requested, while other batches go on:
    ///
    /// ```text
    /// step 0: start batch 0
    /// step 1: start batch 1, count batch 0
    /// step 2: start batch 2, count batch 1, use batch 0
    /// ```
    #[inline(always)]
    fn search_many_lanes<Q: Borrow<K>>(
        &self,
        kind: LaneKind,
        queries: &[Q],
        mut use_rank: impl FnMut(usize, Result<usize, usize>),
    ) {
        let batch = |number: usize| queries.chunks(STEP).nth(number);
        let mut ranks = [[0; STEP]; 3];
        for step in 0..queries.len().div_ceil(STEP) + 2 {
            if let Some(queries) = batch(step) {
                self.start_lanes(queries, &mut ranks[step % 3][..queries.len()]);
            }
            if let Some(number) = step.checked_sub(1)
                && let Some(queries) = batch(number)
            {
                self.count_lanes(kind, queries, &mut ranks[number % 3][..queries.len()]);
            }
            if let Some(number) = step.checked_sub(2)
                && let Some(queries) = batch(number)
            {
                for (index, (&rank, query)) in ranks[number % 3].iter().zip(queries).enumerate() {
                    use_rank(number * STEP + index, self.found(rank, query.borrow()));
                }
            }
        }
    }

    /// Requests the lines of a piece of the file, whether it exists or not.
    #[inline(always)]
    fn request(&self, at: usize, bytes: usize) {
        simd::prefetch_bytes(self.source.bytes().as_ptr().wrapping_add(at), bytes);
    }

    /// Requests the first `bytes` of a leaf, at most [`EAGER_LINES_MAX`] lines.
    #[inline(always)]
    fn request_leaf(&self, leaf: usize, bytes: usize) {
        let start = self
            .source
            .bytes()
            .as_ptr()
            .wrapping_add(self.layout.leaf_at(Self::shape(), leaf));
        // A leaf starts with a line.
        for line in 0..(bytes / LINE_BYTES).min(EAGER_LINES_MAX) {
            simd::prefetch(start.wrapping_add(line * LINE_BYTES));
        }
    }

    fn request_heap(&self, leaf: usize) {
        let heap = self.layout.key_heap;
        if let Some(last) = self.layout.keys_in(Self::shape(), leaf).checked_sub(1) {
            let first = self.entry(heap, self.key_cell(leaf, 0)).as_ptr();
            let bytes = self
                .entry(heap, self.key_cell(leaf, last))
                .as_ptr()
                .addr()
                .saturating_sub(first.addr());
            simd::prefetch_bytes(first, bytes.clamp(1, EAGER_LINES_MAX * LINE_BYTES));
        }
    }

    /// The rank of the key of `leaf` that equals `query`, or else of the first that is greater, by
    /// comparisons.
    fn search_leaf(&self, leaf: usize, query: &K) -> Result<usize, usize> {
        let (mut start, mut end) = (0, self.layout.keys_in(Self::shape(), leaf));
        let rank_of = |slot| leaf * Self::shape().leaf_keys + slot;
        while start < end {
            let middle = start + (end - start) / 2;
            match K::compare_stored(self.key_in(leaf, middle), query) {
                Ordering::Less => start = middle + 1,
                Ordering::Greater => end = middle,
                Ordering::Equal => return Ok(rank_of(middle)),
            }
        }
        Err(rank_of(start))
    }

    /// Whether a rank that a search in lanes has ended at is that of the query.
    #[inline(always)]
    fn found(&self, rank: usize, query: &K) -> Result<usize, usize> {
        // Lanes that are no keys are counted if a damaged file says that they are small.
        let rank = rank.min(self.len());
        if rank < self.len() && K::compare_stored(self.key_bytes(rank), query) == Ordering::Equal {
            Ok(rank)
        } else {
            Err(rank)
        }
    }

    /// The rank of the key that equals `query`, or else the number of keys less than it.
    #[inline]
    pub(super) fn search(&self, query: &K) -> Result<usize, usize> {
        if self.len() == 0 {
            return Err(0);
        }
        if let Some(kind) = Self::shape().lane {
            return self.found(self.search_lane(kind, query), query);
        }
        let leaf = K::leaf_of(&self.index, query).min(self.layout.leaf_count - 1);
        self.request_leaf(leaf, Self::shape().leaf_bytes);
        self.search_leaf(leaf, query)
    }

    /// [`search`](Tree::search) for many queries, a batch at a time.
    #[inline]
    pub(super) fn search_many<Q: Borrow<K>>(
        &self,
        queries: &[Q],
        mut use_rank: impl FnMut(usize, Result<usize, usize>),
    ) {
        if self.len() == 0 {
            (0..queries.len()).for_each(|index| use_rank(index, Err(0)));
            return;
        }
        if let Some(kind) = Self::shape().lane {
            return self.search_many_lanes(kind, queries, use_rank);
        }
        let mut leaves = [0; BATCH];
        for (number, batch) in queries.chunks(BATCH).enumerate() {
            // As far as the leaf for all, then its keys for all, so that the misses of a step
            // overlap.
            let leaves = &mut leaves[..batch.len()];
            for (leaf, query) in leaves.iter_mut().zip(batch) {
                *leaf = K::leaf_of(&self.index, query.borrow()).min(self.layout.leaf_count - 1);
                self.request_leaf(*leaf, Self::shape().leaf_bytes);
            }
            if Self::shape().keys_in_heap {
                leaves.iter().for_each(|&leaf| self.request_heap(leaf));
            }
            for (index, (&leaf, query)) in leaves.iter().zip(batch).enumerate() {
                use_rank(
                    number * BATCH + index,
                    self.search_leaf(leaf, query.borrow()),
                );
            }
        }
    }

    /// Reads the whole file, and compares it with its checksums and with what a writer would have
    /// written.
    pub(super) fn verify(&self) -> Result<(), VerifyError> {
        let (file, layout) = (self.source.bytes(), &self.layout);
        let sums = layout.sums.of(file);
        if checksum(sums) != self.sums.sums {
            return Err(VerifyError::Checksums);
        }
        let pages = file[..layout.sums.at].chunks_exact(PAGE_BYTES).enumerate();
        for ((page, bytes), sum) in pages.skip(1).zip(sums.chunks_exact(SUM_BYTES)) {
            if checksum(bytes) != u64::load(sum) {
                return Err(VerifyError::Page { page });
            }
        }

        // What the sums say has been written; now whether that makes a map.
        let (mut key_heap_end, mut value_heap_end) = (0, 0);
        let mut before: Option<&[u8]> = None;
        for rank in 0..self.len() {
            let (leaf, slot) = Self::shape().place(rank);
            let key = self.key_in(leaf, slot);
            let value = self.value_bytes(rank);
            if K::FIXED_BYTES.is_none() {
                follows(self.key_cell(leaf, slot), &mut key_heap_end, key)
                    .ok_or(VerifyError::Heap { rank })?;
            }
            if V::FIXED_BYTES.is_none() {
                follows(self.value_cell(rank), &mut value_heap_end, value)
                    .ok_or(VerifyError::Heap { rank })?;
            }
            if !K::is_stored(key) {
                return Err(VerifyError::Key { rank });
            }
            if !V::is_stored(value) {
                return Err(VerifyError::Value { rank });
            }
            if before.is_some_and(|before| !in_order::<K>(before, key)) {
                return Err(VerifyError::Order { rank });
            }
            before = Some(key);
            // First and last key of a leaf are what its separators are next to.
            if (slot == 0 || slot + 1 == layout.keys_in(Self::shape(), leaf))
                && !self.finds(key, rank)
            {
                return Err(VerifyError::Index { rank });
            }
        }
        if (key_heap_end, value_heap_end) != (layout.key_heap.bytes, layout.value_heap.bytes) {
            return Err(VerifyError::Heap { rank: self.len() });
        }
        if let (Some(kind), Some(leaf)) = (Self::shape().lane, layout.leaf_count.checked_sub(1)) {
            let (filler, bytes) = filler(kind);
            let filled = (layout.keys_in(Self::shape(), leaf)..Self::shape().leaf_keys)
                .all(|slot| self.key_cell(leaf, slot) == &filler[..bytes]);
            if !filled {
                return Err(VerifyError::Filler);
            }
        }
        Ok(())
    }

    fn finds(&self, key: &[u8], rank: usize) -> bool {
        K::with_stored(key, |key| self.search(key) == Ok(rank))
    }
}

/// Whether one key is less than another.
fn in_order<K: StoredKey + ?Sized>(before: &[u8], key: &[u8]) -> bool {
    K::with_stored(key, |key| K::compare_stored(before, key) == Ordering::Less)
}

/// Whether a cell refers to the entry that follows those before; if so, where the next one follows.
fn follows(cell: &[u8], end: &mut usize, entry: &[u8]) -> Option<()> {
    if usize::try_from(u64::load(cell)) != Ok(*end) {
        return None;
    }
    *end = end.checked_add(LENGTH_BYTES)?.checked_add(entry.len())?;
    Some(())
}
