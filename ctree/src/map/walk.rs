//! The double-ended walk over the entries of a tree, which all iterators of maps and sets use.
//!
//! Almost every step stays within a leaf: an end of a walk is an [`Edge`], and at the front also
//! the length of its leaf. Behind the last entry of a leaf come an entry of an inner node and the
//! next leaf ([`Ends::cross_front`], [`Ends::cross_back`]). `fold` goes leaf by leaf.
//!
//! [`Walk`] counts the entries left. [`RangeWalk`] stops where its two edges meet.
//!
//! An end is looked up when it is first used, and is [`Edge::NOWHERE`] until then:
//! `map.range(key..).next()` does not need the last leaf.

use allocator_api2::alloc::Allocator;

use crate::tree::{Edge, Form, NO_GUESS, NodePtr, Place, Root, Tree};

/// Addresses of the key and the value of one entry.
type Entry<K, V> = (*mut K, *mut V);

/// Entries that a range returns before it prefetches the leaves behind its first one. A search for
/// a successor, which takes fewer, does not need them.
const MIN_LEN_FOR_PREFETCH: usize = 3;

/// The two ends of a walk, without a notion of where they meet.
///
/// Invariants, for as long as the nodes are as they were when the walk was made:
/// - `root` is the root of a tree of the form `form`, or `None` and both edges are `Edge::NOWHERE`;
/// - each edge is `Edge::NOWHERE` or an edge of that tree;
/// - below `front_end`, the leaf of `front` has an entry in each slot; it is 0 for `Edge::NOWHERE`.
struct Ends<K, V> {
    form: Form<K, V>,
    root: Option<Root>,
    front: Edge,
    front_end: usize,
    /// A guess at the index of the front edge's leaf among its neighbours, which spares the next
    /// crossing a search. See [`Form::next_near`].
    front_index: usize,
    back: Edge,
    /// The same for the back edge.
    back_index: usize,
}

impl<K, V> Clone for Ends<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Ends<K, V> {}

impl<K, V> Ends<K, V> {
    /// Ends of a walk over nothing.
    const NONE: Self = Ends {
        form: Form::NONE,
        root: None,
        front: Edge::NOWHERE,
        front_end: 0,
        front_index: NO_GUESS,
        back: Edge::NOWHERE,
        back_index: NO_GUESS,
    };

    /// Key and value of an entry that was just passed.
    #[inline(always)]
    fn entry(&self, place: Place) -> Entry<K, V> {
        // SAFETY: the methods below call this with places of the tree, which is as it was when the
        // walk was made, by the promise to `Walk::over` or `RangeWalk::between`.
        unsafe {
            (
                self.form.key_at(place.node, place.slot),
                self.form.value_at(place.node, place.slot),
            )
        }
    }

    /// The entry behind the front edge, if it is in the same leaf.
    #[inline(always)]
    fn next_in_leaf(&mut self) -> Option<Place> {
        let Edge { leaf, slot } = self.front;
        if slot < self.front_end {
            self.front.slot = slot + 1;
            Some(Place { node: leaf, slot })
        } else {
            None
        }
    }

    /// The entry before the back edge, if it is in the same leaf.
    #[inline(always)]
    fn prev_in_leaf(&mut self) -> Option<Place> {
        // An edge that is still to be looked up has slot 0.
        let slot = self.back.slot.checked_sub(1)?;
        self.back.slot = slot;
        Some(Place {
            node: self.back.leaf,
            slot,
        })
    }

    /// The entry behind the front edge, wherever it is, unless the ends have met: once a leaf.
    #[inline(always)]
    fn cross_front(&mut self) -> Option<Place> {
        let (form, root) = (self.form, self.root?);
        // SAFETY: by the invariants `root` is the root of a tree of this form, and both edges are
        // its own, or `NOWHERE`.
        let crossing = unsafe { cross_front(form, root, self.front, self.front_index, self.back) }?;
        self.front = crossing.edge;
        self.front_index = crossing.index;
        self.front_end = crossing.end;
        Some(crossing.place)
    }

    /// The entry before the back edge, wherever it is, unless the ends have met: once a leaf.
    #[inline(always)]
    fn cross_back(&mut self) -> Option<Place> {
        let (form, root) = (self.form, self.root?);
        // SAFETY: by the invariants `root` is the root of a tree of this form, and both edges are
        // its own, or `NOWHERE`.
        let crossing = unsafe { cross_back(form, root, self.back, self.back_index, self.front) }?;
        self.back = crossing.edge;
        self.back_index = crossing.index;
        Some(crossing.place)
    }
}

/// What crossing from one leaf into a neighbour gives.
struct Crossing {
    /// The entry passed.
    place: Place,
    /// The edge behind it, or before it where the walk comes from the back.
    edge: Edge,
    /// The guess for the next crossing.
    index: usize,
    /// What [`Ends::front_end`] is then.
    end: usize,
}

/// How far a walk from `front` may go within the leaf: to the edge `back` if that is there, or to
/// the last of `len` entries.
#[inline(always)]
fn end_in_leaf(front: Edge, back: Edge, len: usize) -> usize {
    if front.leaf == back.leaf && front.slot <= back.slot {
        back.slot
    } else {
        len
    }
}

/// The entry behind the edge `front`, in whatever node; `None` at `back` and at the end of the
/// tree. Where the walk is still within a leaf, it has just begun, and the leaves that follow are
/// prefetched.
///
/// Takes and returns values: a walk whose address is not taken stays in registers.
///
/// # Safety
/// `root` is the root of a tree of this form; the edges are edges of it, or `Edge::NOWHERE`.
#[inline(never)]
unsafe fn cross_front<K, V>(
    form: Form<K, V>,
    root: Root,
    front: Edge,
    mut index: usize,
    back: Edge,
) -> Option<Crossing> {
    let mut edge = front;
    if edge == Edge::NOWHERE {
        // SAFETY: the caller promises that `root` is the root of a tree of this form.
        edge = unsafe { form.first_edge_below(root.0) };
        if edge == back {
            return None;
        }
    }
    // SAFETY: this is an edge of the tree, by the contract or as found above.
    unsafe {
        if edge.slot < form.len(edge.leaf) {
            form.prefetch_leaves_after(edge.leaf, &mut index);
        }
        let place = form.next_near(&mut edge, &mut index)?;
        let end = end_in_leaf(edge, back, form.len(edge.leaf));
        Some(Crossing {
            place,
            edge,
            index,
            end,
        })
    }
}

/// The entry before the edge `back`, in whatever node; `None` at `front` and at the beginning of
/// the tree.
///
/// # Safety
/// As [`cross_front`].
#[inline(never)]
unsafe fn cross_back<K, V>(
    form: Form<K, V>,
    root: Root,
    back: Edge,
    mut index: usize,
    front: Edge,
) -> Option<Crossing> {
    let mut edge = back;
    if edge == Edge::NOWHERE {
        // SAFETY: the caller promises that `root` is the root of a tree of this form.
        edge = unsafe { form.last_edge_below(root.0) };
        if edge == front {
            return None;
        }
    }
    // SAFETY: this is an edge of the tree, by the contract or as found above.
    let place = unsafe { form.prev_near(&mut edge, &mut index) }?;
    Some(Crossing {
        place,
        edge,
        index,
        end: 0,
    })
}

/// A walk over all entries of a tree, which knows how many are left.
///
/// Invariant: between the two ends there are `left` entries. (So an end never passes the other, and
/// none is given out twice.)
pub(crate) struct Walk<K, V> {
    ends: Ends<K, V>,
    left: usize,
}

impl<K, V> Clone for Walk<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for Walk<K, V> {}

impl<K, V> Walk<K, V> {
    /// A walk over nothing.
    pub(crate) const NONE: Self = Walk {
        ends: Ends::NONE,
        left: 0,
    };

    /// A walk over all entries of `tree`. Looks up neither end, unless the root is a leaf.
    ///
    /// # Safety
    /// For as long as the walk or a copy of it is used, the nodes of the tree are neither changed
    /// nor freed, but for what the walk has left behind, and nodes that move
    /// ([`move_with`](Self::move_with)).
    pub(crate) unsafe fn over<A: Allocator>(tree: &Tree<K, V, A>) -> Self {
        let mut ends = Ends {
            form: tree.form(),
            root: tree.root(),
            ..Ends::NONE
        };
        let left = tree.len();
        if tree.level_count() == 1
            && let Some(Root(leaf)) = tree.root()
        {
            ends.front = Edge { leaf, slot: 0 };
            ends.front_end = left;
        }
        Walk { ends, left }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.left
    }

    /// The first of the entries left.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Entry<K, V>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let place = match self.ends.next_in_leaf() {
            Some(place) => place,
            None => self.ends.cross_front()?,
        };
        Some(self.ends.entry(place))
    }

    /// The last of the entries left.
    #[inline(always)]
    pub(crate) fn next_back(&mut self) -> Option<Entry<K, V>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let place = match self.ends.prev_in_leaf() {
            Some(place) => place,
            None => self.ends.cross_back()?,
        };
        Some(self.ends.entry(place))
    }

    /// The first of the entries left, if it is in the leaf of the front edge.
    #[inline(always)]
    pub(super) fn next_in_leaf(&mut self) -> Option<Entry<K, V>> {
        if self.left == 0 {
            return None;
        }
        let place = self.ends.next_in_leaf()?;
        self.left -= 1;
        Some(self.ends.entry(place))
    }

    /// The last of the entries left, if it is in the leaf of the back edge.
    #[inline(always)]
    pub(super) fn prev_in_leaf(&mut self) -> Option<Entry<K, V>> {
        if self.left == 0 {
            return None;
        }
        let place = self.ends.prev_in_leaf()?;
        self.left -= 1;
        Some(self.ends.entry(place))
    }

    /// The place of the first of the entries left, wherever it is, and the leaf that the front edge
    /// was at.
    pub(super) fn cross_front(&mut self) -> (Option<NodePtr>, Option<Place>) {
        if self.left == 0 {
            return (None, None);
        }
        self.left -= 1;
        let leaf = (self.ends.front != Edge::NOWHERE).then_some(self.ends.front.leaf);
        (leaf, self.ends.cross_front())
    }

    /// The place of the last of the entries left, wherever it is, and the leaf that the back edge
    /// was at.
    pub(super) fn cross_back(&mut self) -> (Option<NodePtr>, Option<Place>) {
        if self.left == 0 {
            return (None, None);
        }
        self.left -= 1;
        let leaf = (self.ends.back != Edge::NOWHERE).then_some(self.ends.back.leaf);
        (leaf, self.ends.cross_back())
    }

    /// Stays where it is when a node moves.
    pub(super) fn move_with(&mut self, from: NodePtr, to: NodePtr) {
        self.ends.front.move_with(from, to);
        self.ends.back.move_with(from, to);
        if let Some(root) = &mut self.ends.root {
            root.move_with(from, to);
        }
    }

    /// Remembers that all before the leaf of the front edge was cut off: it is the first of its
    /// parent.
    pub(super) fn front_is_first(&mut self) {
        self.ends.front_index = 0;
    }

    /// Passes over `count` entries from the front, or all that are left; a step a leaf.
    pub(crate) fn skip_front(&mut self, count: usize) {
        let mut skip = count.min(self.left);
        self.left -= skip;
        while skip > 0 {
            let within = skip.min(self.ends.front_end - self.ends.front.slot);
            self.ends.front.slot += within;
            skip -= within;
            if skip > 0 {
                if self.ends.cross_front().is_none() {
                    return;
                }
                skip -= 1;
            }
        }
    }

    /// Passes over `count` entries from the back, or all that are left; a step a leaf.
    pub(crate) fn skip_back(&mut self, count: usize) {
        let mut skip = count.min(self.left);
        self.left -= skip;
        while skip > 0 {
            let within = skip.min(self.ends.back.slot);
            self.ends.back.slot -= within;
            skip -= within;
            if skip > 0 {
                if self.ends.cross_back().is_none() {
                    return;
                }
                skip -= 1;
            }
        }
    }

    /// Calls `f` for each entry left, from the front, leaf by leaf.
    #[inline]
    pub(crate) fn fold<B>(mut self, init: B, mut f: impl FnMut(B, Entry<K, V>) -> B) -> B {
        let mut result = init;
        while self.left > 0 {
            let Edge { leaf, slot } = self.ends.front;
            let end = self.ends.front_end.min(slot + self.left);
            self.left -= end - slot;
            for slot in slot..end {
                result = f(result, self.ends.entry(Place { node: leaf, slot }));
            }
            self.ends.front.slot = end;
            if self.left == 0 {
                break;
            }
            let Some(entry) = self.next() else { break };
            result = f(result, entry);
        }
        result
    }

    /// Calls `f` for each entry left, from the back, leaf by leaf.
    #[inline]
    pub(crate) fn rfold<B>(mut self, init: B, mut f: impl FnMut(B, Entry<K, V>) -> B) -> B {
        let mut result = init;
        while self.left > 0 {
            let Edge { leaf, slot } = self.ends.back;
            let start = slot - slot.min(self.left);
            self.left -= slot - start;
            for slot in (start..slot).rev() {
                result = f(result, self.ends.entry(Place { node: leaf, slot }));
            }
            self.ends.back.slot = start;
            if self.left == 0 {
                break;
            }
            let Some(entry) = self.next_back() else { break };
            result = f(result, entry);
        }
        result
    }
}

/// A walk over the entries between two edges.
///
/// It is over when the edges are equal. At most one of them is still to be looked up, unless there
/// is no tree.
///
/// Invariant: where both edges are in one leaf and the front one is before the other, `front_end`
/// is at most the slot of the back one. So a step from the front within a leaf needs one
/// comparison, and steps from the back keep that true.
///
/// With a wrong `Ord`, the edge of a range's start may lie behind that of its end. Then they never
/// meet: each end goes on to the end of the tree, and no entry is given out twice either.
pub(crate) struct RangeWalk<K, V> {
    ends: Ends<K, V>,
}

impl<K, V> Clone for RangeWalk<K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for RangeWalk<K, V> {}

impl<K, V> RangeWalk<K, V> {
    /// A walk over nothing.
    pub(crate) const NONE: Self = RangeWalk { ends: Ends::NONE };

    /// A walk over the entries between two edges; `None` stands for the beginning or the end of the
    /// tree, and is looked up when needed.
    ///
    /// # Safety
    /// - The edges are edges of `tree`, as it is now.
    /// - For as long as the walk or a copy of it is used, the nodes of the tree are neither changed
    ///   nor freed.
    pub(crate) unsafe fn between<A: Allocator>(
        tree: &Tree<K, V, A>,
        start: Option<Edge>,
        end: Option<Edge>,
    ) -> Self {
        let mut ends = Ends {
            form: tree.form(),
            root: tree.root(),
            back: end.unwrap_or(Edge::NOWHERE),
            ..Ends::NONE
        };
        // Two ends still to be looked up would look like two that have met.
        let start = match (start, end) {
            (None, None) => Some(tree.first_edge()),
            _ => start,
        };
        if let Some(edge) = start
            && edge != Edge::NOWHERE
        {
            ends.front = edge;
            // SAFETY: by the contract this is an edge of the tree, which has nodes.
            let len = unsafe { ends.form.len(edge.leaf) };
            ends.front_end =
                end_in_leaf(edge, ends.back, len).min(edge.slot + MIN_LEN_FOR_PREFETCH);
        }
        RangeWalk { ends }
    }

    /// The first of the entries left.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<Entry<K, V>> {
        let place = match self.ends.next_in_leaf() {
            Some(place) => place,
            None if self.ends.front == self.ends.back => return None,
            None => match self.ends.cross_front() {
                Some(place) => place,
                None => {
                    *self = Self::NONE;
                    return None;
                }
            },
        };
        Some(self.ends.entry(place))
    }

    /// The last of the entries left.
    #[inline(always)]
    pub(crate) fn next_back(&mut self) -> Option<Entry<K, V>> {
        if self.ends.front == self.ends.back {
            return None;
        }
        let place = match self.ends.prev_in_leaf() {
            Some(place) => place,
            None => match self.ends.cross_back() {
                Some(place) => place,
                None => {
                    *self = Self::NONE;
                    return None;
                }
            },
        };
        if self.ends.back.leaf == self.ends.front.leaf {
            self.ends.front_end = self.ends.front_end.min(self.ends.back.slot);
        }
        Some(self.ends.entry(place))
    }

    /// Calls `f` for each entry left, from the front, leaf by leaf.
    #[inline]
    pub(crate) fn fold<B>(mut self, init: B, mut f: impl FnMut(B, Entry<K, V>) -> B) -> B {
        let mut result = init;
        while let Some(entry) = self.next() {
            result = f(result, entry);
            let Edge { leaf, slot } = self.ends.front;
            // Never behind the edge, which has just moved within its leaf or into a new one.
            let end = self.ends.front_end.max(slot);
            for slot in slot..end {
                result = f(result, self.ends.entry(Place { node: leaf, slot }));
            }
            self.ends.front.slot = end;
        }
        result
    }

    /// Calls `f` for each entry left, from the back, leaf by leaf.
    #[inline]
    pub(crate) fn rfold<B>(mut self, init: B, mut f: impl FnMut(B, Entry<K, V>) -> B) -> B {
        let mut result = init;
        while let Some(entry) = self.next_back() {
            result = f(result, entry);
            let Edge { leaf, slot } = self.ends.back;
            let front = self.ends.front;
            let start = if front.leaf == leaf && front.slot <= slot {
                front.slot
            } else {
                0
            };
            for slot in (start..slot).rev() {
                result = f(result, self.ends.entry(Place { node: leaf, slot }));
            }
            self.ends.back.slot = start;
        }
        result
    }
}
