//! Many searches at once: they go down the tree together, level by level, so that their cache
//! misses overlap.

use core::borrow::Borrow;
use core::ops::Range;
use core::ptr::NonNull;

use allocator_api2::alloc::Allocator;

use super::node::NodePtr;
use super::shape::LANE_BYTES;
use super::{Found, Place, Tree};
use crate::block::LINE_BYTES;
use crate::head::{bytes_of, head_of_bytes, is_byte_string};
use crate::lane::{LaneKind, same_integers};
use crate::simd::{self, CHILD_LINES, Hit, prefetch, prefetch_fixed};

/// Queries that go down together. In one run, nanoseconds a query among 2 million keys: 32 together
/// 34.3, 64 together 33.1, 128 together 34.
const BATCH: usize = 64;

const _: () = assert!(BATCH <= simd::BATCH);

/// Fewest queries for which a batch is worth its set-up.
const BATCH_MIN: usize = 4;

/// Queries by heads that go down together: each has more lines to prefetch.
const BATCH_BY_HEADS: usize = 32;

/// Where a query of a batch has come to.
#[derive(Clone)]
struct Position {
    /// A node of the level that the batch has come to, or that of the entry.
    node: NodePtr,
    /// In a leaf, the slots whose heads are that of the query; once an entry was found, its slot as
    /// the start.
    slots: Range<usize>,
    /// Whether the entry has been found, in an inner node.
    found: bool,
}

impl Position {
    const fn at(node: NodePtr) -> Self {
        Position {
            node,
            slots: 0..0,
            found: false,
        }
    }
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// [`find`](Self::find) for many queries; calls `use_place(i, place)` for each `i` in turn,
    /// with the place of the entry if there is one.
    ///
    /// Integers go down the tree in batches, so that their misses overlap.
    #[inline]
    pub(crate) fn find_many<Q: Ord>(
        &self,
        queries: &[Q],
        mut use_place: impl FnMut(usize, Option<Place>),
    ) where
        K: Borrow<Q>,
    {
        if queries.len() >= BATCH_MIN
            && !self.raw.flags.first_leaf
            && let (Some(root), Some(kind), Some(queries)) = (
                self.raw.root,
                LaneKind::of::<K>(),
                same_integers::<K, Q>(queries),
            )
        {
            let map = &self.form().shape().map;
            let mut hits = [Hit::at(root); BATCH];
            let mut index = 0;
            for batch in queries.chunks(BATCH) {
                let hits = &mut hits[..batch.len()];
                let lanes = NonNull::from(batch).cast::<u8>();
                let (isa, height) = (self.raw.flags.isa, self.height());
                // SAFETY: the root and all below it keep the node invariant; keys and queries are
                // integers of this kind, and there are as many hits as queries.
                unsafe { simd::find_many(kind, isa, root, height, map, lanes, hits) };
                for (hit, query) in hits.iter().zip(batch) {
                    // SAFETY: the hit is that of this query.
                    let place = match unsafe { self.form().found(*hit, query) } {
                        Found::Entry(place) => Some(place),
                        Found::Gap(_) => None,
                    };
                    use_place(index, place);
                    index += 1;
                }
            }
            return;
        }
        if queries.len() >= BATCH_MIN
            && let Some(root) = self.raw.root
            && self.form().has_heads()
        {
            if self.form().has_prefixes() {
                if is_byte_string::<Q>() {
                    let head = |query: &Q, prefix| {
                        head_of_bytes(bytes_of(query).unwrap_or_default(), prefix)
                    };
                    return self.find_many_by_heads(root, queries, head, use_place);
                }
            } else if let Some(head) = self.head_function()
                && typeid::of::<Q>() == typeid::of::<K>()
            {
                let head = |query: &Q, _| {
                    // SAFETY: equal ids mean that `Q` is `K`, but perhaps with other lifetimes in
                    // it, of which heads are independent (contract of `Head`).
                    head(unsafe { NonNull::from(query).cast::<K>().as_ref() })
                };
                return self.find_many_by_heads(root, queries, head, use_place);
            }
        }
        for (index, query) in queries.iter().enumerate() {
            let place = match self.find(query) {
                Found::Entry(place) => Some(place),
                Found::Gap(_) => None,
            };
            use_place(index, place);
        }
    }

    /// [`find_many`](Self::find_many) by heads; `head` gives the head of a query behind a prefix.
    ///
    /// Three things of a leaf may miss the cache: its heads, the key whose head is that of the
    /// query, and what this key refers to. A batch prefetches each of them for all queries before
    /// it reads any.
    fn find_many_by_heads<Q: Ord>(
        &self,
        root: NodePtr,
        queries: &[Q],
        head: impl Fn(&Q, usize) -> u64,
        mut use_place: impl FnMut(usize, Option<Place>),
    ) where
        K: Borrow<Q>,
    {
        let (form, isa) = (self.form(), self.raw.flags.isa);
        let mut positions = [const { Position::at(NodePtr::dangling()) }; BATCH_BY_HEADS];
        let mut index = 0;
        for batch in queries.chunks(BATCH_BY_HEADS) {
            let positions = &mut positions[..batch.len()];
            positions.fill(Position::at(root));
            for level in (1..=self.height()).rev() {
                for (position, query) in positions
                    .iter_mut()
                    .zip(batch)
                    .filter(|(position, _)| !position.found)
                {
                    // SAFETY: the node is an inner node of this tree, and has heads.
                    unsafe { self.step_by_heads(position, query, &head, level) };
                }
            }
            for (position, query) in positions
                .iter_mut()
                .zip(batch)
                .filter(|(position, _)| !position.found)
            {
                // SAFETY: the node is a leaf of this tree, and has heads.
                unsafe {
                    let head = head(query, form.prefix_bytes(position.node));
                    position.slots = form.slots_of_head(isa, position.node, head);
                    if !position.slots.is_empty() {
                        prefetch(form.key_at(position.node, position.slots.start));
                        prefetch(form.value_at(position.node, position.slots.start));
                    }
                }
            }
            if form.has_prefixes() {
                for position in positions
                    .iter()
                    .filter(|position| !position.found && !position.slots.is_empty())
                {
                    // SAFETY: the slot is one of an entry, whose key is not written while the tree
                    // is borrowed.
                    let key = unsafe { &*form.key_at(position.node, position.slots.start) };
                    prefetch(bytes_of(key).unwrap_or_default().as_ptr());
                }
            }
            for (position, query) in positions.iter().zip(batch) {
                let Position {
                    node,
                    ref slots,
                    found,
                } = *position;
                let slot = if found {
                    Ok(slots.start)
                } else {
                    // SAFETY: these are slots of entries of a leaf of this tree.
                    unsafe { form.search_keys(node, slots.start, slots.end, query) }
                };
                use_place(index, slot.ok().map(|slot| Place { node, slot }));
                index += 1;
            }
        }
    }

    /// Takes a query of a batch from an inner node to its child, which is prefetched, or to the
    /// entry.
    ///
    /// # Safety
    /// `position.node` is an inner node of this tree, of this level, and has heads.
    #[inline(always)]
    unsafe fn step_by_heads<Q: Ord>(
        &self,
        position: &mut Position,
        query: &Q,
        head: impl Fn(&Q, usize) -> u64,
        level: usize,
    ) where
        K: Borrow<Q>,
    {
        let form = self.form();
        // SAFETY: the slots are those of entries of the node, and an inner node has one child more.
        unsafe {
            let head = head(query, form.prefix_bytes(position.node));
            let slots = form.slots_of_head(self.raw.flags.isa, position.node, head);
            match form.search_keys(position.node, slots.start, slots.end, query) {
                Ok(slot) => {
                    position.slots = slot..slot;
                    position.found = true;
                }
                Err(slot) => {
                    position.node = form.child(position.node, slot);
                    let (start, shape) = (position.node.as_ptr(), form.shape());
                    prefetch_fixed::<{ LANE_BYTES / LINE_BYTES }>(start);
                    prefetch(start.wrapping_add(shape.header_at));
                    if level > 1 {
                        prefetch_fixed::<CHILD_LINES>(start.wrapping_add(shape.children_at));
                    }
                }
            }
        }
    }

    /// Brings the nodes on the path to each key into the cache, if keys are integers: for
    /// insertions that are about to follow.
    pub(crate) fn prefetch_many(&self, entries: &[(K, V)]) {
        let (Some(root), Some(kind)) = (self.raw.root, LaneKind::of::<K>()) else {
            return;
        };
        if self.height() == 0 || entries.len() < BATCH_MIN {
            return;
        }
        let form = self.form();
        let map = &form.shape().map;
        let mut hits = [Hit::at(root); BATCH];
        for batch in entries.chunks(BATCH) {
            let hits = &mut hits[..batch.len()];
            let mut keys = [const { core::mem::MaybeUninit::<K>::uninit() }; BATCH];
            for (slot, (key, _)) in keys.iter_mut().zip(batch) {
                // SAFETY: integers are `Copy`; the entry keeps its own.
                slot.write(unsafe { core::ptr::read(key) });
            }
            // SAFETY: the root and all below it keep the node invariant; keys are integers of this
            // kind, of which this batch has initialised as many as there are hits. These are at
            // leaves then.
            unsafe {
                simd::find_many(
                    kind,
                    self.raw.flags.isa,
                    root,
                    self.height(),
                    map,
                    NonNull::from(&keys).cast(),
                    hits,
                );
                for hit in &*hits {
                    prefetch(form.header(hit.leaf).as_ptr());
                }
            }
        }
    }
}
