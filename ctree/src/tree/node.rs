//! Nodes as raw memory: how to get at their parts, and how to move entries and children within and
//! between them.
//!
//! This module does not know that keys are sorted, nor what a tree is. What it keeps up is the
//! **node invariant**, which all of the tree's unsafe code rests on. For a node of a [`Form`]:
//!
//! - it is `leaf_bytes` or `inner_bytes` (`counted_inner_bytes` in a form with ranks) of memory,
//!   aligned to `align`, by its [`Shape`];
//! - its header is initialised; `level` is 0 in a leaf and above 0 in an inner node; `len <=
//!   capacity`;
//! - the keys and values of the slots below `len` are initialised, their heads too where there are
//!   heads;
//! - in an inner node the children `0..=len` are initialised, and are nodes of the same form, one
//!   level below, whose `parent` is this node;
//! - **filler**: all lanes from `len` up hold the largest integer.
//!
//! Functions that break it for a moment say so. Nothing here calls a user's code, except that heads
//! of byte strings are read (which are std's types).

use core::alloc::Layout;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};

use super::arena::NodeMemory;
use super::shape::{Shape, shape_of};
use crate::head::{bytes_of, head_of_bytes, is_byte_string, recognised};
use crate::lane::{LaneKind, by_lane};

/// A node: leaf or inner.
pub(crate) type NodePtr = NonNull<u8>;

/// What a node says of itself. It lies behind the entries, because a search does not read it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Header {
    /// The inner node that this is a child of; `None` in the root.
    pub(crate) parent: Option<NodePtr>,
    /// Leading bytes of the keys that their heads leave out; 0 unless the keys are byte strings.
    pub(crate) prefix_bytes: u32,
    pub(crate) len: u16,
    /// Number of levels below.
    pub(crate) level: u8,
}

const _: () = assert!(size_of::<Header>() <= 16);

/// How the nodes of a tree are laid out. For integer keys without ranks it folds to a constant.
pub(crate) struct Form<K, V> {
    headed: bool,
    ranked: bool,
    /// Whether the only node is a first leaf.
    first: bool,
    marker: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Clone for Form<K, V> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Form<K, V> {}

impl<K, V> core::fmt::Debug for Form<K, V> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Form")
            .field("shape", self.shape())
            .field("ranked", &self.ranked)
            .finish()
    }
}

impl<K, V> Form<K, V> {
    /// The form of a tree that has no nodes.
    pub(crate) const NONE: Self = Form {
        headed: false,
        ranked: false,
        first: false,
        marker: PhantomData,
    };

    /// The form with counts in inner nodes, and with heads if the type has them by itself or the
    /// user gives them; or that of a map's first leaf.
    #[inline(always)]
    pub(crate) fn new(ranked: bool, user_heads: bool, first: bool) -> Self {
        Form {
            headed: LaneKind::of::<K>().is_none()
                && (is_byte_string::<K>() || recognised::<K>().is_some() || user_heads),
            ranked,
            first,
            marker: PhantomData,
        }
    }

    /// The form of a tree that has outgrown its first leaf.
    #[inline(always)]
    pub(crate) fn grown(self) -> Self {
        Form {
            first: false,
            ..self
        }
    }

    #[inline(always)]
    pub(crate) fn is_first_leaf(self) -> bool {
        self.first
    }

    /// Where everything lies.
    #[inline(always)]
    pub(crate) fn shape(self) -> &'static Shape {
        shape_of::<K, V>(self.headed, self.first)
    }

    /// Entries that a node has room for.
    #[inline(always)]
    pub(crate) fn capacity(self) -> usize {
        self.shape().capacity
    }

    #[inline(always)]
    pub(crate) fn has_heads(self) -> bool {
        self.headed
    }

    /// Whether inner nodes count the entries below each child.
    #[inline(always)]
    pub(crate) fn has_counts(self) -> bool {
        self.ranked
    }

    #[inline]
    pub(crate) fn memory(self, leaf: bool) -> NodeMemory {
        let shape = self.shape();
        let bytes = match (leaf, self.ranked) {
            (true, _) => shape.leaf_bytes,
            (false, false) => shape.inner_bytes,
            (false, true) => shape.counted_inner_bytes,
        };
        NodeMemory {
            layout: Layout::from_size_align(bytes, shape.align)
                .expect("a node fits into the address space"),
            header_at: shape.header_at,
        }
    }

    /// # Safety
    /// `node` is the memory of a node of this form.
    #[inline(always)]
    pub(crate) unsafe fn header(self, node: NodePtr) -> NonNull<Header> {
        // SAFETY: the header lies inside the node.
        unsafe { node.add(self.shape().header_at).cast() }
    }

    /// # Safety
    /// `node` is a node of this form.
    #[inline(always)]
    pub(crate) unsafe fn len(self, node: NodePtr) -> usize {
        // SAFETY: the header is initialised.
        usize::from(unsafe { (*self.header(node).as_ptr()).len })
    }

    /// Sets the number of entries, and nothing else.
    ///
    /// # Safety
    /// `node` is a node of this form, and the caller brings the rest of the invariant into line.
    #[inline(always)]
    pub(crate) unsafe fn set_len(self, node: NodePtr, len: usize) {
        debug_assert!(
            len <= self.capacity(),
            "{len} entries in a node of {}",
            self.capacity()
        );
        #[expect(clippy::cast_possible_truncation, reason = "at most 256 entries")]
        // SAFETY: the header is initialised.
        unsafe {
            (*self.header(node).as_ptr()).len = len as u16;
        }
    }

    /// # Safety
    /// `node` is a node of this form.
    #[inline(always)]
    pub(crate) unsafe fn level(self, node: NodePtr) -> usize {
        // SAFETY: the header is initialised.
        usize::from(unsafe { (*self.header(node).as_ptr()).level })
    }

    /// # Safety
    /// `node` is a node of this form.
    #[inline(always)]
    pub(crate) unsafe fn parent(self, node: NodePtr) -> Option<NodePtr> {
        // SAFETY: the header is initialised.
        unsafe { (*self.header(node).as_ptr()).parent }
    }

    /// # Safety
    /// `node` is a node of this form, used by nobody else, and the caller brings the rest of the
    /// invariant into line.
    #[inline(always)]
    pub(crate) unsafe fn set_parent(self, node: NodePtr, parent: Option<NodePtr>) {
        // SAFETY: the header is initialised.
        unsafe { (*self.header(node).as_ptr()).parent = parent };
    }

    /// Leading bytes that heads leave out.
    ///
    /// # Safety
    /// `node` is a node of this form.
    #[inline(always)]
    pub(crate) unsafe fn prefix_bytes(self, node: NodePtr) -> usize {
        // SAFETY: the header is initialised.
        unsafe { (*self.header(node).as_ptr()).prefix_bytes as usize }
    }

    /// # Safety
    /// `node` is a node of this form, `slot <= capacity`.
    #[inline(always)]
    pub(crate) unsafe fn key_at(self, node: NodePtr, slot: usize) -> *mut K {
        debug_assert!(
            slot <= self.capacity(),
            "slot {slot} of {}",
            self.capacity()
        );
        // SAFETY: the keys, and their end, lie inside the node.
        unsafe {
            node.add(self.shape().keys_at)
                .cast::<K>()
                .as_ptr()
                .add(slot)
        }
    }

    /// # Safety
    /// `node` is a node of this form, `slot <= capacity`.
    #[inline(always)]
    pub(crate) unsafe fn value_at(self, node: NodePtr, slot: usize) -> *mut V {
        debug_assert!(
            slot <= self.capacity(),
            "slot {slot} of {}",
            self.capacity()
        );
        // SAFETY: the values, and their end, lie inside the node.
        unsafe {
            node.add(self.shape().values_at)
                .cast::<V>()
                .as_ptr()
                .add(slot)
        }
    }

    /// # Safety
    /// `node` is a node of this form, which has heads, `slot <= capacity`.
    #[inline(always)]
    pub(crate) unsafe fn head_at(self, node: NodePtr, slot: usize) -> *mut u64 {
        debug_assert!(self.has_heads(), "a form without heads");
        // SAFETY: the lanes lie at the start of the node.
        unsafe { node.cast::<u64>().as_ptr().add(slot) }
    }

    /// # Safety
    /// `node` is an inner node of this form, `index <= capacity + 1`.
    #[inline(always)]
    unsafe fn child_at(self, node: NodePtr, index: usize) -> *mut NodePtr {
        // SAFETY: the children, and their end, lie inside the node.
        unsafe {
            node.add(self.shape().children_at)
                .cast::<NodePtr>()
                .as_ptr()
                .add(index)
        }
    }

    /// # Safety
    /// `node` is an inner node of this form, `index <= len`.
    #[inline(always)]
    pub(crate) unsafe fn child(self, node: NodePtr, index: usize) -> NodePtr {
        // SAFETY: the children up to `len` are initialised.
        unsafe { self.child_at(node, index).read() }
    }

    /// # Safety
    /// `node` is an inner node of this form, `index <= capacity`, `child` is a node of this form.
    #[inline]
    pub(crate) unsafe fn set_child(self, node: NodePtr, index: usize, child: NodePtr) {
        // SAFETY: the place of the pointer lies inside the node; the child is a node.
        unsafe {
            self.child_at(node, index).write(child);
            self.set_parent(child, Some(node));
        }
    }

    /// Where the number of entries below a child lies.
    ///
    /// # Safety
    /// `node` is an inner node of this form, which has counts, `index <= capacity + 1`.
    #[inline(always)]
    pub(crate) unsafe fn count_at(self, node: NodePtr, index: usize) -> *mut usize {
        debug_assert!(self.ranked, "a form without counts");
        // SAFETY: the counts, and their end, lie inside the node.
        unsafe {
            node.add(self.shape().counts_at)
                .cast::<usize>()
                .as_ptr()
                .add(index)
        }
    }

    /// Which child of `parent` a node is.
    ///
    /// Searches the pointers, which lie in 4 lines at most. An index kept in each child would
    /// change in all children behind an insertion, most of them out of the cache.
    ///
    /// # Safety
    /// `parent` is an inner node of this form, and `child` one of its children.
    #[inline]
    pub(crate) unsafe fn index_of(self, parent: NodePtr, child: NodePtr) -> usize {
        // SAFETY: the children up to `len` are initialised.
        let children =
            unsafe { core::slice::from_raw_parts(self.child_at(parent, 0), self.len(parent) + 1) };
        let index = children.iter().position(|&other| other == child);
        debug_assert!(index.is_some(), "not a child of its parent");
        // SAFETY: the caller promises that it is one of them.
        unsafe { index.unwrap_unchecked() }
    }

    /// [`index_of`](Self::index_of), with a guess: walks from child to child know which one comes
    /// next.
    ///
    /// # Safety
    /// As for `index_of`; the guess may be any number.
    #[inline]
    pub(crate) unsafe fn index_near(self, parent: NodePtr, child: NodePtr, guess: usize) -> usize {
        // SAFETY: the children up to `len` are initialised.
        unsafe {
            if guess <= self.len(parent) && self.child(parent, guess) == child {
                return guess;
            }
            self.index_of(parent, child)
        }
    }

    /// Turns memory into a node without entries, parent and children.
    ///
    /// (An inner node without its first child breaks the invariant until it is given one.)
    ///
    /// # Safety
    /// `node` is memory for a node of this form of the kind that `level` says.
    pub(crate) unsafe fn init(self, node: NodePtr, level: usize) {
        // SAFETY: header and lanes lie inside the memory.
        unsafe {
            self.header(node).write(Header {
                parent: None,
                prefix_bytes: 0,
                len: 0,
                level: u8::try_from(level).expect("a tree has less than 256 levels"),
            });
            self.fill_lanes(node, 0);
        }
    }

    /// Writes filler into all lanes from `start` up.
    ///
    /// # Safety
    /// `node` is memory for a node of this form; lanes from `start` up hold nothing that is still
    /// needed.
    #[inline]
    pub(crate) unsafe fn fill_lanes(self, node: NodePtr, start: usize) {
        let end = self.shape().lane_count;
        if let Some(kind) = LaneKind::of::<K>() {
            by_lane!(kind, Lane => {
                for lane in start..end {
                    // SAFETY: the lanes lie at the start of the node.
                    unsafe { node.cast::<Lane>().add(lane).write(Lane::MAX) };
                }
            });
        } else if self.headed {
            for lane in start..end {
                // SAFETY: the lanes of heads lie at the start of the node, and are of 64 bits.
                unsafe { node.cast::<u64>().add(lane).write(u64::MAX) };
            }
        }
    }

    /// Moves the entries from `slot` up by `count` slots, which then hold nothing, and adds them to
    /// `len`.
    ///
    /// The invariant is broken until the slots `slot..slot + count` have been written.
    ///
    /// # Safety
    /// `node` is a node of this form, `slot <= len`, `len + count <= capacity`.
    #[inline]
    pub(crate) unsafe fn open_gap(self, node: NodePtr, slot: usize, count: usize) {
        // SAFETY: the header is initialised.
        let len = unsafe { self.len(node) };
        debug_assert!(
            slot <= len && len + count <= self.capacity(),
            "a gap of {count} at {slot} of {len} entries"
        );
        let moved = len - slot;
        // SAFETY: source and target lie within the slots of the node.
        unsafe {
            ptr::copy(
                self.key_at(node, slot),
                self.key_at(node, slot + count),
                moved,
            );
            ptr::copy(
                self.value_at(node, slot),
                self.value_at(node, slot + count),
                moved,
            );
            if self.has_heads() {
                ptr::copy(
                    self.head_at(node, slot),
                    self.head_at(node, slot + count),
                    moved,
                );
            }
            self.set_len(node, len + count);
        }
    }

    /// Moves the entries behind the `count` slots at `slot` down over them, and takes them from
    /// `len`. What they held is forgotten, not dropped.
    ///
    /// # Safety
    /// `node` is a node of this form (but for the contents of the slots), `slot + count <= len`.
    #[inline]
    pub(crate) unsafe fn close_gap(self, node: NodePtr, slot: usize, count: usize) {
        // SAFETY: the header is initialised.
        let len = unsafe { self.len(node) };
        debug_assert!(
            slot + count <= len,
            "{count} slots at {slot} of {len} entries"
        );
        let moved = len - slot - count;
        // SAFETY: source and target lie within the slots of the node. The lanes from the new length
        // up are no longer needed.
        unsafe {
            self.copy_entries(node, slot + count, self, node, slot, moved);
            self.truncate(node, len - count);
        }
    }

    /// Shortens a node to `len` entries; those behind are forgotten, not dropped.
    ///
    /// # Safety
    /// `node` is a node of this form, of at least `len` entries.
    #[inline]
    pub(crate) unsafe fn truncate(self, node: NodePtr, len: usize) {
        // SAFETY: lanes from the old length up are filler already; those between are not needed any
        // more.
        unsafe {
            let end = self.len(node);
            self.set_len(node, len);
            if let Some(kind) = LaneKind::of::<K>() {
                by_lane!(kind, Lane => {
                    for lane in len..end {
                        node.cast::<Lane>().add(lane).write(Lane::MAX);
                    }
                });
            } else if self.headed {
                for lane in len..end {
                    self.head_at(node, lane).write(u64::MAX);
                }
            }
        }
    }

    /// Moves `count` entries to slots of another node that hold nothing. Neither length changes.
    ///
    /// # Safety
    /// Both are different nodes of this form; the `count` slots at `from_slot` are initialised and
    /// hold nothing afterwards, and those at `to_slot` are within capacity.
    pub(crate) unsafe fn move_entries(
        self,
        from: NodePtr,
        from_slot: usize,
        to: NodePtr,
        to_slot: usize,
        count: usize,
    ) {
        debug_assert!(
            from != to
                && from_slot + count <= self.capacity()
                && to_slot + count <= self.capacity()
        );
        // SAFETY: the caller promises the slots, and forgets the originals.
        unsafe { self.copy_entries(from, from_slot, self, to, to_slot, count) };
    }

    /// Copies `count` entries bit by bit to slots that hold nothing, or that it copies from.
    /// Neither length changes.
    ///
    /// # Safety
    /// `from` is a node of this form with `count` initialised slots at `from_slot`. `to` is the
    /// same node or one of `form_to`, which may differ only in that one of the two is a first leaf;
    /// the `count` slots at `to_slot` are within its capacity. Either the copies or the originals
    /// are forgotten.
    #[inline]
    pub(crate) unsafe fn copy_entries(
        self,
        from: NodePtr,
        from_slot: usize,
        form_to: Self,
        to: NodePtr,
        to_slot: usize,
        count: usize,
    ) {
        // SAFETY: the slots lie within the nodes.
        unsafe {
            ptr::copy(
                self.key_at(from, from_slot),
                form_to.key_at(to, to_slot),
                count,
            );
            ptr::copy(
                self.value_at(from, from_slot),
                form_to.value_at(to, to_slot),
                count,
            );
            if self.has_heads() {
                ptr::copy(
                    self.head_at(from, from_slot),
                    form_to.head_at(to, to_slot),
                    count,
                );
                if is_byte_string::<K>() && self.prefix_bytes(from) != form_to.prefix_bytes(to) {
                    form_to.refresh_heads(to, to_slot, count);
                }
            }
        }
    }

    /// Recomputes the heads of byte strings.
    ///
    /// # Safety
    /// `node` is a node of this form, which has heads; `K` is a byte string; the keys of the
    /// `count` slots at `slot` are initialised.
    unsafe fn refresh_heads(self, node: NodePtr, slot: usize, count: usize) {
        // SAFETY: the header is initialised.
        let prefix_bytes = unsafe { self.prefix_bytes(node) };
        for slot in slot..slot + count {
            // SAFETY: the key is initialised, and not written meanwhile.
            let key = unsafe { &*self.key_at(node, slot) };
            let bytes = bytes_of(key).expect("keys are byte strings");
            // SAFETY: the lane of this slot.
            unsafe {
                self.head_at(node, slot)
                    .write(head_of_bytes(bytes, prefix_bytes));
            }
        }
    }

    /// Lets the heads of a node of byte strings leave out `prefix_bytes` bytes.
    ///
    /// # Safety
    /// `node` is a node of this form, which has heads; `K` is a byte string.
    pub(crate) unsafe fn set_prefix(self, node: NodePtr, prefix_bytes: usize) {
        let prefix_bytes = u32::try_from(prefix_bytes).unwrap_or(u32::MAX);
        // SAFETY: header and keys are initialised.
        unsafe {
            (*self.header(node).as_ptr()).prefix_bytes = prefix_bytes;
            self.refresh_heads(node, 0, self.len(node));
        }
    }

    /// Writes an entry into a slot that holds nothing.
    ///
    /// # Safety
    /// `node` is a node of this form, `slot < capacity`.
    #[inline(always)]
    pub(crate) unsafe fn write_entry(
        self,
        node: NodePtr,
        slot: usize,
        head: u64,
        key: K,
        value: V,
    ) {
        // SAFETY: the slot lies within the node.
        unsafe {
            self.key_at(node, slot).write(key);
            self.value_at(node, slot).write(value);
            if self.has_heads() {
                self.head_at(node, slot).write(head);
            }
        }
    }

    /// Moves an entry out of its slot, which then holds nothing.
    ///
    /// # Safety
    /// `node` is a node of this form whose slot `slot` is initialised.
    #[inline(always)]
    pub(crate) unsafe fn read_entry(self, node: NodePtr, slot: usize) -> (K, V) {
        // SAFETY: key and value are initialised.
        unsafe {
            (
                self.key_at(node, slot).read(),
                self.value_at(node, slot).read(),
            )
        }
    }

    /// Moves the children from `index` up by `count` places. `child_count` is how many there are.
    ///
    /// # Safety
    /// `node` is an inner node of this form with `child_count` initialised children; `child_count +
    /// count <= capacity + 1`.
    pub(crate) unsafe fn open_child_gap(
        self,
        node: NodePtr,
        index: usize,
        count: usize,
        child_count: usize,
    ) {
        debug_assert!(index <= child_count && child_count + count <= self.capacity() + 1);
        // SAFETY: source and target lie within the places of the node.
        unsafe { self.copy_children(node, index, node, index + count, child_count - index) };
    }

    /// Moves the children behind the `count` ones at `index` down over them.
    ///
    /// # Safety
    /// `node` is an inner node of this form with `child_count` initialised children; `index + count
    /// <= child_count`.
    pub(crate) unsafe fn close_child_gap(
        self,
        node: NodePtr,
        index: usize,
        count: usize,
        child_count: usize,
    ) {
        debug_assert!(index + count <= child_count);
        let moved = child_count - index - count;
        // SAFETY: source and target lie within the places of the node.
        unsafe { self.copy_children(node, index + count, node, index, moved) };
    }

    /// Moves `count` children, with their counts, to places of another node.
    ///
    /// # Safety
    /// Both are different inner nodes of this form; the children at `from_index` are initialised,
    /// the places at `to_index` within capacity.
    pub(crate) unsafe fn move_children(
        self,
        from: NodePtr,
        from_index: usize,
        to: NodePtr,
        to_index: usize,
        count: usize,
    ) {
        debug_assert!(from != to && to_index + count <= self.capacity() + 1);
        // SAFETY: the places lie within two different nodes; children are nodes.
        unsafe {
            self.copy_children(from, from_index, to, to_index, count);
            for index in to_index..to_index + count {
                self.set_parent(self.child(to, index), Some(to));
            }
        }
    }

    /// Copies `count` pointers to children, with their counts, and changes nothing in the children.
    ///
    /// # Safety
    /// Both are inner nodes of this form, perhaps the same; the children at `from_index` are
    /// initialised, the places at `to_index` within capacity.
    unsafe fn copy_children(
        self,
        from: NodePtr,
        from_index: usize,
        to: NodePtr,
        to_index: usize,
        count: usize,
    ) {
        // SAFETY: the places lie within the nodes.
        unsafe {
            ptr::copy(
                self.child_at(from, from_index),
                self.child_at(to, to_index),
                count,
            );
            if self.ranked {
                ptr::copy(
                    self.count_at(from, from_index),
                    self.count_at(to, to_index),
                    count,
                );
            }
        }
    }

    /// Entries in the node and below it, by the counts.
    ///
    /// # Safety
    /// `node` is a node of this form, which has counts that are right.
    pub(crate) unsafe fn entries_below(self, node: NodePtr) -> usize {
        // SAFETY: the header is initialised, and so are the counts of all children.
        unsafe {
            let len = self.len(node);
            if self.level(node) == 0 {
                return len;
            }
            let counts = core::slice::from_raw_parts(self.count_at(node, 0), len + 1);
            len + counts.iter().sum::<usize>()
        }
    }

    /// Sets the count of entries below a child; does nothing in a form without counts.
    ///
    /// # Safety
    /// `node` is an inner node of this form, `index <= len`, and the counts in the child are right.
    #[inline]
    pub(crate) unsafe fn recount(self, node: NodePtr, index: usize) {
        if self.ranked {
            // SAFETY: the child is a node, the place of its count lies within this one.
            unsafe {
                self.count_at(node, index)
                    .write(self.entries_below(self.child(node, index)));
            }
        }
    }
}
