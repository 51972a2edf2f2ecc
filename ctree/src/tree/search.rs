//! Searches: by lanes for integers, by heads where there are any, by comparisons for all other
//! keys.
//!
//! Lanes and heads serve queries that are known to have the key's order: the key type itself, and
//! byte strings for byte strings. Any other borrowed form is compared by its own `Ord`.

use core::borrow::Borrow;
use core::cmp::Ordering;
use core::ops::Range;
use core::ptr::NonNull;

use allocator_api2::alloc::Allocator;

use super::node::{Form, NodePtr};
use super::{Edge, Found, Place, Tree};
use crate::block::LINE_BYTES;
use crate::head::{bytes_of, head_of_bytes, recognised};
use crate::lane::{LaneKind, by_lane, same_integer};
use crate::simd::{self, CHILD_LINES, Hit, Isa, prefetch, prefetch_fixed};

use super::shape::LANE_BYTES;

/// Most entries of a map of one leaf that are searched word by word before an insertion.
const LEN_BY_WORDS_MAX: usize = 16;

impl<K, V> Form<K, V> {
    /// The place or gap of a search for an integer.
    ///
    /// # Safety
    /// The hit is what a search for `query`, of the type of `K`, gave in a tree of this form, which
    /// has not changed since.
    #[inline(always)]
    pub(super) unsafe fn found(self, hit: Hit, query: &K) -> Found {
        let edge = Edge {
            leaf: hit.leaf,
            slot: hit.slot(),
        };
        if hit.is_found() {
            Found::Entry(Place {
                node: edge.leaf,
                slot: edge.slot,
            })
        } else if hit.is_at_end() {
            // SAFETY: the caller promises that the hit is that of `query`, here at the end of its
            // leaf.
            unsafe { self.found_at_end(edge, query) }
        } else {
            Found::Gap(edge)
        }
    }

    /// Searches the keys of a leaf that is the only node of its tree, without vectors.
    ///
    /// # Safety
    /// `leaf` is the root of a tree of this form; keys and query are integers of this kind.
    #[inline]
    unsafe fn find_by_words(self, kind: LaneKind, leaf: NodePtr, query: &K) -> Found {
        // SAFETY: the header is initialised.
        let len = unsafe { self.len(leaf) };
        let (slot, found) = by_lane!(kind, Lane => {
            // SAFETY: the query is an integer of this kind.
            let query = unsafe { NonNull::from(query).cast::<Lane>().read() };
            // SAFETY: the lanes below the length are initialised.
            let keys = unsafe { core::slice::from_raw_parts(leaf.cast::<Lane>().as_ptr(), len) };
            // std's binary search: no branches that depend on keys.
            let slot = keys.partition_point(|&key| key < query);
            (slot, keys.get(slot) == Some(&query))
        });
        if found {
            Found::Entry(Place { node: leaf, slot })
        } else {
            Found::Gap(Edge { leaf, slot })
        }
    }

    /// The entry that follows a leaf if it is the one, else the gap at the end of the leaf.
    ///
    /// # Safety
    /// As for [`found`](Self::found); the edge is at the end of its leaf.
    #[cold]
    unsafe fn found_at_end(self, edge: Edge, query: &K) -> Found {
        // SAFETY: the edge is at a leaf of the tree; keys and query are integers of one type.
        unsafe {
            match self.entry_beside::<true>(edge.leaf) {
                Some(place) if same_integer_value(&*self.key_at(place.node, place.slot), query) => {
                    Found::Entry(place)
                }
                _ => Found::Gap(edge),
            }
        }
    }
}

/// Whether two integers are equal. (`K` is one, but the compiler does not know that it can be
/// compared.)
fn same_integer_value<K>(left: &K, right: &K) -> bool {
    let Some(kind) = LaneKind::of::<K>() else {
        return false;
    };
    by_lane!(kind, Lane => {
        // SAFETY: `K` is an integer of this kind.
        unsafe {
            NonNull::from(left).cast::<Lane>().read() == NonNull::from(right).cast::<Lane>().read()
        }
    })
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// The entry whose key is equal to `query`, or the gap where it would be.
    ///
    /// Touches one node a level. Of integers and heads a node is compared as a whole; of other
    /// keys, log2 of the number of entries are compared.
    #[inline]
    pub(crate) fn find<Q: ?Sized + Ord>(&self, query: &Q) -> Found
    where
        K: Borrow<Q>,
    {
        let Some(root) = self.raw.root else {
            return Found::Gap(Edge::NOWHERE);
        };
        if let Some(kind) = LaneKind::of::<K>() {
            if let Some(query) = same_integer::<K, Q>(query) {
                let form = self.form();
                if form.is_first_leaf() {
                    // SAFETY: the root is the only node; keys and query are integers of this kind.
                    return unsafe { form.find_by_words(kind, root, query) };
                }
                let form = form.grown();
                let (map, lane) = (&form.shape().map, NonNull::from(query).cast::<u8>());
                // SAFETY: the root and all below it keep the node invariant; keys and query are
                // integers of this kind.
                return unsafe {
                    let hit = simd::find(kind, self.raw.flags.isa, root, self.height(), map, lane);
                    form.found(hit, query)
                };
            }
            return self.find_by_order(root, query);
        }
        self.find_among_others(root, query)
    }

    /// [`find`](Self::find) when an insertion will follow, if there is no entry.
    ///
    /// A vector load of words that were stored just before, by the previous insertion, waits for
    /// the store buffer. In a small map a search word by word is faster.
    #[inline]
    pub(crate) fn find_to_change<Q: ?Sized + Ord>(&self, query: &Q) -> Found
    where
        K: Borrow<Q>,
    {
        if self.height() == 0
            && let (Some(leaf), Some(kind)) = (self.raw.root, LaneKind::of::<K>())
            && let Some(query) = same_integer::<K, Q>(query)
        {
            let form = self.form();
            // SAFETY: the root is a node of this tree, and the only one; keys and query are
            // integers of this kind.
            unsafe {
                if form.is_first_leaf() || form.len(leaf) <= LEN_BY_WORDS_MAX {
                    return form.find_by_words(kind, leaf, query);
                }
            }
        }
        self.find(query)
    }

    fn find_among_others<Q: ?Sized + Ord>(&self, root: NodePtr, query: &Q) -> Found
    where
        K: Borrow<Q>,
    {
        if self.form().has_prefixes() {
            if let Some(bytes) = bytes_of(query) {
                return self.find_by_heads(root, query, |prefix| head_of_bytes(bytes, prefix));
            }
        } else if let Some(head) = self.head_function()
            && typeid::of::<Q>() == typeid::of::<K>()
        {
            // SAFETY: equal ids mean that `Q` is `K`, but perhaps with other lifetimes in it, of
            // which a head function is independent: recognised types have none, and `Head` demands
            // it.
            let key = unsafe { NonNull::from(query).cast::<K>().as_ref() };
            let head = head(key);
            return self.find_by_heads(root, query, |_| head);
        }
        self.find_by_order(root, query)
    }

    /// The function that gives the heads of keys of a fixed size.
    #[inline(always)]
    pub(super) fn head_function(&self) -> Option<fn(&K) -> u64> {
        recognised::<K>().or_else(|| self.user_head())
    }

    /// The head of a key as a node would hold it, or anything where there are no heads.
    ///
    /// # Safety
    /// `node` is a node of this tree.
    #[inline]
    pub(super) unsafe fn head_in(&self, node: NodePtr, key: &K) -> u64 {
        if LaneKind::of::<K>().is_some() {
            0
        } else if let Some(bytes) = bytes_of(key) {
            // SAFETY: the header is initialised.
            head_of_bytes(bytes, unsafe { self.form().prefix_bytes(node) })
        } else {
            self.head_function().map_or(0, |head| head(key))
        }
    }

    /// Finds by comparison alone.
    fn find_by_order<Q: ?Sized + Ord>(&self, root: NodePtr, query: &Q) -> Found
    where
        K: Borrow<Q>,
    {
        let form = self.form();
        let mut node = root;
        for _ in 0..self.height() {
            // SAFETY: the node is an inner node of this tree; its children up to its length are.
            unsafe {
                match form.search_keys(node, 0, form.len(node), query) {
                    Ok(slot) => return Found::Entry(Place { node, slot }),
                    Err(slot) => node = form.child(node, slot),
                }
            }
        }
        // SAFETY: the node is a leaf of this tree.
        match unsafe { form.search_keys(node, 0, form.len(node), query) } {
            Ok(slot) => Found::Entry(Place { node, slot }),
            Err(slot) => Found::Gap(Edge { leaf: node, slot }),
        }
    }

    /// Finds by heads, and by comparison among equal heads. `head` gives the head of the query
    /// behind a prefix.
    #[inline(always)]
    fn find_by_heads<Q: ?Sized + Ord>(
        &self,
        root: NodePtr,
        query: &Q,
        head: impl Fn(usize) -> u64,
    ) -> Found
    where
        K: Borrow<Q>,
    {
        let form = self.form();
        let (isa, height) = (self.raw.flags.isa, self.height());
        let mut node = root;
        let mut level = height;
        loop {
            // SAFETY: the node is a node of this tree, of this level, and has heads.
            let searched = unsafe {
                prefetch_fixed::<{ LANE_BYTES / LINE_BYTES }>(node.as_ptr());
                let shape = form.shape();
                prefetch(node.as_ptr().wrapping_add(shape.header_at));
                if level > 0 {
                    prefetch_fixed::<CHILD_LINES>(node.as_ptr().wrapping_add(shape.children_at));
                }
                let slots = form.slots_of_head(isa, node, head(form.prefix_bytes(node)));
                if slots.is_empty() {
                    Err(slots.start)
                } else {
                    // Most likely the entry: its value is on the way while its key is compared.
                    prefetch(form.value_at(node, slots.start));
                    form.search_keys(node, slots.start, slots.end, query)
                }
            };
            match searched {
                Ok(slot) => return Found::Entry(Place { node, slot }),
                Err(slot) if level == 0 => return Found::Gap(Edge { leaf: node, slot }),
                // SAFETY: the node is an inner node, the slot at most its length.
                Err(slot) => node = unsafe { form.child(node, slot) },
            }
            level -= 1;
        }
    }

    /// The gap before the first key that is not less than `query`.
    pub(crate) fn lower_edge<Q: ?Sized + Ord>(&self, query: &Q) -> Edge
    where
        K: Borrow<Q>,
    {
        match self.find(query) {
            // SAFETY: the place was found in this tree.
            Found::Entry(place) => unsafe { self.form().edge_before(place) },
            Found::Gap(edge) => edge,
        }
    }

    /// The gap before the first key that is greater than `query`.
    pub(crate) fn upper_edge<Q: ?Sized + Ord>(&self, query: &Q) -> Edge
    where
        K: Borrow<Q>,
    {
        match self.find(query) {
            // SAFETY: the place was found in this tree.
            Found::Entry(place) => unsafe { self.form().edge_after(place) },
            Found::Gap(edge) => edge,
        }
    }
}

impl<K, V> Form<K, V> {
    /// The slots whose heads are equal to `head`; where there are none, the empty range at the gap
    /// where they would be.
    ///
    /// # Safety
    /// `node` is a node of a tree of this form, which has heads.
    #[inline(always)]
    pub(super) unsafe fn slots_of_head(self, isa: Isa, node: NodePtr, head: u64) -> Range<usize> {
        // SAFETY: the node has heads; slots below its length are asked for.
        unsafe {
            let len = self.len(node);
            let count = |head| {
                if self.is_first_leaf() {
                    let heads = core::slice::from_raw_parts(self.head_at(node, 0), len);
                    return heads.iter().filter(|&&other| other < head).count();
                }
                simd::count_heads(isa, node, head)
            };
            let start = count(head);
            // Filler is not less than any head, so `start <= len`.
            debug_assert!(start <= len, "head {start} of {len}");
            if start >= len || self.head_at(node, start).read() != head {
                return start..start;
            }
            let end = match head.checked_add(1) {
                Some(next) if self.head_at(node, (start + 1).min(len - 1)).read() == head => {
                    count(next)
                }
                // Most heads occur once.
                Some(_) => start + 1,
                None => len,
            };
            start..end.clamp(start, len)
        }
    }

    /// Searches the keys of the slots `start..end`, which should be in order.
    ///
    /// # Safety
    /// `node` is a node of this form, `start <= end <= len`.
    #[inline(always)]
    pub(super) unsafe fn search_keys<Q: ?Sized + Ord>(
        self,
        node: NodePtr,
        mut start: usize,
        mut end: usize,
        query: &Q,
    ) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        while start < end {
            let middle = start + (end - start) / 2;
            // SAFETY: a slot below the length holds a key, which is not written while the tree is
            // borrowed.
            let key = unsafe { &*self.key_at(node, middle) };
            match key.borrow().cmp(query) {
                Ordering::Less => start = middle + 1,
                Ordering::Greater => end = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(start)
    }
}
