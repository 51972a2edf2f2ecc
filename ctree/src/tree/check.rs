//! The whole structure, looked at: for tests.

use allocator_api2::alloc::Allocator;

use super::node::{Form, NodePtr};
use super::{Found, Place, Tree};
use crate::error::{CheckError, Fault};
use crate::head::{bytes_of, head_of_bytes};
use crate::lane::{LaneKind, by_lane};

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Checks all invariants, the order of the keys, and that each key is found.
    ///
    /// # Errors
    /// What is wrong first.
    pub(crate) fn check(&self) -> Result<(), CheckError>
    where
        K: Ord,
    {
        let form = self.form();
        let node_fault = |what| Err(CheckError::new(Fault::Node { what }));
        let Some(root) = self.raw.root else {
            return if self.raw.len == 0 {
                Ok(())
            } else {
                node_fault("a tree with entries has no nodes")
            };
        };
        // SAFETY: the root is a node of this tree.
        if unsafe { form.parent(root) }.is_some() {
            return node_fault("the root has a parent");
        }
        // SAFETY: the root is a node of this tree.
        if unsafe { form.level(root) } != self.height() {
            return node_fault("the root is not of the tree's height");
        }
        let head = self.head_function();
        // SAFETY: the root is a node of this tree, which is borrowed: nothing below it changes.
        let entries = unsafe { check_below(form, root, None, None, head) };
        match entries {
            Err(what) => return node_fault(what),
            Ok(entries) if entries != self.raw.len => {
                return node_fault("the number of entries is not the length");
            }
            Ok(_) => {}
        }
        if let Err(what) = self.check_memory() {
            return node_fault(what);
        }
        let mut edge = self.first_edge();
        let mut previous: Option<&K> = None;
        // SAFETY: the tree has nodes; places are those of entries, which are not written meanwhile.
        unsafe {
            let mut rank = 0;
            while let Some(place) = form.next(&mut edge) {
                let key = &*form.key_at(place.node, place.slot);
                if previous.is_some_and(|previous| previous >= key) {
                    return Err(CheckError::new(Fault::Order { rank }));
                }
                if !matches!(self.find(key), Found::Entry(found) if found == place) {
                    return Err(CheckError::new(Fault::Search { rank }));
                }
                if self.has_ranks()
                    && (self.place_of_rank(rank) != Some(place)
                        || self.rank_of(form.edge_before(place)) != rank)
                {
                    return node_fault("a count is wrong");
                }
                previous = Some(key);
                rank += 1;
            }
            let mut edge_back = self.last_edge();
            if edge_back != edge {
                return node_fault("the last edge is not where a walk ends");
            }
            let mut backwards = 0;
            while form.prev(&mut edge_back).is_some() {
                backwards += 1;
            }
            if backwards != rank || edge_back != self.first_edge() {
                return node_fault("a walk backwards does not end at the first edge");
            }
        }
        Ok(())
    }
}

impl<K, V, A: Allocator> Tree<K, V, A> {
    /// Checks that arenas and first leaf hold as many nodes as the tree has, and no more free ones
    /// than [`trim`](Self::trim) leaves.
    fn check_memory(&self) -> Result<(), &'static str> {
        let (form, store) = (self.form(), self.raw.store());
        let mut counts = [0; 2];
        if let Some(root) = self.raw.root
            && !form.is_first_leaf()
        {
            // SAFETY: the root is a node of this tree.
            unsafe { count_nodes(form, root, &mut counts) };
        }
        if form.is_first_leaf() && self.height() > 0 {
            return Err("a first leaf has children");
        }
        for (level, arena) in [&store.leaves, &store.inners].into_iter().enumerate() {
            // SAFETY: this is the memory of the arena's nodes.
            unsafe { arena.check(counts[level], form.grown().memory(level == 0))? };
        }
        Ok(())
    }
}

/// # Safety
/// `node` is a node of a tree of this form.
unsafe fn count_nodes<K, V>(form: Form<K, V>, node: NodePtr, counts: &mut [usize; 2]) {
    // SAFETY: children up to the length are nodes.
    unsafe {
        let level = form.level(node);
        counts[level.min(1)] += 1;
        if level > 0 {
            for index in 0..=form.len(node) {
                count_nodes(form, form.child(node, index), counts);
            }
        }
    }
}

/// Checks a node and all below it, and gives the number of entries there.
///
/// # Safety
/// `node` is a node of a tree of this form; the fences are places of entries.
unsafe fn check_below<K, V>(
    form: Form<K, V>,
    node: NodePtr,
    left: Option<Place>,
    right: Option<Place>,
    head: Option<fn(&K) -> u64>,
) -> Result<usize, &'static str> {
    // SAFETY: header, slots below the length, lanes and children are initialised.
    unsafe {
        let (len, level) = (form.len(node), form.level(node));
        if len > form.capacity() {
            return Err("a node has more entries than it has room for");
        }
        if len == 0 && form.parent(node).is_some() {
            return Err("a node that is not the root has no entries");
        }
        if let Some(kind) = LaneKind::of::<K>() {
            by_lane!(kind, Lane => {
                for lane in len..form.shape().lane_count {
                    if node.cast::<Lane>().add(lane).read() != Lane::MAX {
                        return Err("a lane without an entry holds no filler");
                    }
                }
            });
        } else if form.has_heads() {
            for lane in len..form.shape().lane_count {
                if node.cast::<u64>().add(lane).read() != u64::MAX {
                    return Err("a lane without an entry holds no filler");
                }
            }
            for slot in 0..len {
                let key = &*form.key_at(node, slot);
                let expected = match bytes_of(key) {
                    Some(bytes) => head_of_bytes(bytes, form.prefix_bytes(node)),
                    None => head.map_or(0, |head| head(key)),
                };
                if form.head_at(node, slot).read() != expected {
                    return Err("a head is not that of its key");
                }
            }
        }
        if form.prefix_bytes(node) > 0 {
            let shared = match (left, right) {
                (Some(left), Some(right)) => {
                    form.shared_bytes((left.node, left.slot), (right.node, right.slot))
                }
                _ => 0,
            };
            if form.prefix_bytes(node) > shared {
                return Err("heads leave out more than the fences share");
            }
        }
        let mut entries = len;
        if level > 0 {
            for index in 0..=len {
                let child = form.child(node, index);
                if form.parent(child) != Some(node) {
                    return Err("a child has another parent");
                }
                if form.level(child) + 1 != level {
                    return Err("a child is not one level below");
                }
                let left = match index.checked_sub(1) {
                    Some(slot) => Some(Place { node, slot }),
                    None => left,
                };
                let right = if index < len {
                    Some(Place { node, slot: index })
                } else {
                    right
                };
                let below = check_below(form, child, left, right, head)?;
                if form.has_counts() && form.count_at(node, index).read() != below {
                    return Err("a count is not that of the entries below");
                }
                entries += below;
            }
        }
        Ok(entries)
    }
}
