//! Cursors: a gap between two entries, to look and move in both directions from, and to insert and
//! remove at.
//!
//! Names and behaviour are those of std's cursors, which are not stable yet.

use core::borrow::Borrow;
use core::error::Error;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Bound;

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeMap;
use crate::tree::{Edge, Form, Place};

/// A gap between two entries of a map, from [`CTreeMap::lower_bound`] or [`CTreeMap::upper_bound`].
///
/// A map of n entries has n + 1 gaps: the first one lies before all entries, the last one behind
/// them.
///
/// Invariant: `edge` is an edge of a tree with nodes, as it is for `'a`, or `Edge::NOWHERE` where
/// there are none.
pub struct Cursor<'a, K, V> {
    edge: Edge,
    form: Form<K, V>,
    /// What the addresses of entries are used as.
    marker: PhantomData<(&'a K, &'a V)>,
}

/// A gap between two entries of a map, to change the map there, from [`CTreeMap::lower_bound_mut`]
/// or [`CTreeMap::upper_bound_mut`].
///
/// Invariant: `edge` is an edge of the tree of `map`, as it is now; `None` when the tree was being
/// changed and foreign code in it (an allocator, a [`Head`](crate::Head)) panicked. Then the cursor
/// stands at the beginning.
pub struct CursorMut<'a, K, V, A: Allocator = Global> {
    map: &'a mut CTreeMap<K, V, A>,
    edge: Option<Edge>,
}

/// The key given to a [`CursorMut`] does not lie between the keys on both sides of the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnorderedKeyError {}

impl fmt::Display for UnorderedKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key does not lie between the keys on both sides of the cursor")
    }
}

impl Error for UnorderedKeyError {}

impl<'a, K, V> Cursor<'a, K, V> {
    /// A cursor at an edge of a map, or at `Edge::NOWHERE` if the map has no nodes.
    fn at<A: Allocator>(map: &'a CTreeMap<K, V, A>, edge: Edge) -> Cursor<'a, K, V> {
        Cursor {
            edge,
            form: map.tree.form(),
            marker: PhantomData,
        }
    }

    /// Moves behind the next entry, and returns its place.
    #[inline]
    fn step_next(&mut self) -> Option<Place> {
        if self.edge == Edge::NOWHERE {
            return None;
        }
        // SAFETY: by the invariant, since only a tree without nodes has the edge `NOWHERE`.
        unsafe { self.form.next(&mut self.edge) }
    }

    /// Moves before the previous entry, and returns its place.
    #[inline]
    fn step_prev(&mut self) -> Option<Place> {
        if self.edge == Edge::NOWHERE {
            return None;
        }
        // SAFETY: by the invariant, since only a tree without nodes has the edge `NOWHERE`.
        unsafe { self.form.prev(&mut self.edge) }
    }

    /// # Safety
    /// `place` is the place of an entry of the tree of this cursor.
    #[inline]
    unsafe fn entry(&self, place: Place) -> (&'a K, &'a V) {
        // SAFETY: by the contract; the tree is borrowed shared for `'a`.
        unsafe {
            (
                &*self.form.key_at(place.node, place.slot),
                &*self.form.value_at(place.node, place.slot),
            )
        }
    }

    /// Moves behind the next entry and returns it; at the end of the map does neither.
    #[expect(clippy::should_implement_trait, reason = "the name in std")]
    pub fn next(&mut self) -> Option<(&'a K, &'a V)> {
        let place = self.step_next()?;
        // SAFETY: this is the place of an entry just passed.
        Some(unsafe { self.entry(place) })
    }

    /// Moves before the previous entry and returns it; at the beginning of the map does neither.
    pub fn prev(&mut self) -> Option<(&'a K, &'a V)> {
        let place = self.step_prev()?;
        // SAFETY: this is the place of an entry just passed.
        Some(unsafe { self.entry(place) })
    }

    /// The next entry, without moving.
    pub fn peek_next(&self) -> Option<(&'a K, &'a V)> {
        self.clone().next()
    }

    /// The previous entry, without moving.
    pub fn peek_prev(&self) -> Option<(&'a K, &'a V)> {
        self.clone().prev()
    }
}

impl<K, V> Clone for Cursor<'_, K, V> {
    fn clone(&self) -> Self {
        Cursor {
            edge: self.edge,
            form: self.form,
            marker: PhantomData,
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Cursor<'_, K, V> {
    /// The entries on both sides.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("prev", &self.peek_prev())
            .field("next", &self.peek_next())
            .finish()
    }
}

impl<K, V, A: Allocator> CursorMut<'_, K, V, A> {
    /// Where the cursor stands.
    #[inline]
    fn edge(&self) -> Edge {
        self.edge.unwrap_or_else(|| self.map.tree.first_edge())
    }

    /// The place of the next entry, and the edge behind it.
    #[inline]
    fn entry_behind(&self) -> Option<(Place, Edge)> {
        let mut cursor = self.as_cursor();
        let place = cursor.step_next()?;
        Some((place, cursor.edge))
    }

    /// The place of the previous entry, and the edge before it.
    #[inline]
    fn entry_before(&self) -> Option<(Place, Edge)> {
        let mut cursor = self.as_cursor();
        let place = cursor.step_prev()?;
        Some((place, cursor.edge))
    }

    /// Moves behind the next entry and returns it; at the end of the map does neither.
    #[expect(clippy::should_implement_trait, reason = "the name in std")]
    pub fn next(&mut self) -> Option<(&K, &mut V)> {
        let (place, edge) = self.entry_behind()?;
        self.edge = Some(edge);
        // SAFETY: this is the place of an entry just passed.
        Some(unsafe { self.map.entry_at_mut(place) })
    }

    /// Moves before the previous entry and returns it; at the beginning of the map does neither.
    pub fn prev(&mut self) -> Option<(&K, &mut V)> {
        let (place, edge) = self.entry_before()?;
        self.edge = Some(edge);
        // SAFETY: this is the place of an entry just passed.
        Some(unsafe { self.map.entry_at_mut(place) })
    }

    /// The next entry, without moving.
    pub fn peek_next(&mut self) -> Option<(&K, &mut V)> {
        let (place, _) = self.entry_behind()?;
        // SAFETY: this is the place of an entry just passed.
        Some(unsafe { self.map.entry_at_mut(place) })
    }

    /// The previous entry, without moving.
    pub fn peek_prev(&mut self) -> Option<(&K, &mut V)> {
        let (place, _) = self.entry_before()?;
        // SAFETY: this is the place of an entry just passed.
        Some(unsafe { self.map.entry_at_mut(place) })
    }

    /// A cursor for reading at the same gap.
    pub fn as_cursor(&self) -> Cursor<'_, K, V> {
        Cursor::at(self.map, self.edge())
    }
}

impl<K: Ord, V, A: Allocator> CursorMut<'_, K, V, A> {
    /// Whether `key` may be inserted here.
    fn check_order(&self, key: &K) -> Result<(), UnorderedKeyError> {
        let cursor = self.as_cursor();
        if cursor.peek_prev().is_some_and(|(prev, _)| key <= prev)
            || cursor.peek_next().is_some_and(|(next, _)| key >= next)
        {
            return Err(UnorderedKeyError {});
        }
        Ok(())
    }

    /// Inserts an entry, whose key must have been checked.
    fn insert_here(&mut self, key: K, value: V) -> Place {
        let edge = self.edge();
        self.edge = None;
        // SAFETY: by the invariant this is an edge of the tree as it is now.
        unsafe { self.map.tree.insert_at(edge, key, value) }
    }

    /// Removes the entry at a place next to the cursor.
    ///
    /// # Safety
    /// `place` is the place of an entry of the tree, as it is now.
    unsafe fn remove_here(&mut self, place: Place) -> (K, V) {
        self.edge = None;
        // SAFETY: by the contract; of all edges only the one that comes back is used from here on.
        let (key, value, gap) = unsafe { self.map.tree.remove_at(place) };
        self.edge = Some(gap);
        (key, value)
    }

    /// Inserts an entry before the cursor.
    ///
    /// # Errors
    /// When the key does not lie between the keys on both sides; the map stays as it was, key and
    /// value are dropped.
    ///
    /// # Examples
    /// ```
    /// use core::ops::Bound;
    ///
    /// let mut map = ctree::CTreeMap::from([(10, "ten"), (30, "thirty")]);
    /// let mut cursor = map.lower_bound_mut(Bound::Included(&20));
    /// assert!(cursor.insert_before(20, "twenty").is_ok());
    /// assert!(cursor.insert_before(15, "fifteen").is_err()); // 20 comes before the cursor
    /// assert_eq!(cursor.peek_prev(), Some((&20, &mut "twenty")));
    /// assert_eq!(map.len(), 3);
    /// ```
    pub fn insert_before(&mut self, key: K, value: V) -> Result<(), UnorderedKeyError> {
        self.check_order(&key)?;
        let place = self.insert_here(key, value);
        // SAFETY: this is the place of the entry just inserted.
        self.edge = Some(unsafe { self.map.tree.form().edge_after(place) });
        Ok(())
    }

    /// Inserts an entry behind the cursor.
    ///
    /// # Errors
    /// As [`insert_before`](Self::insert_before).
    pub fn insert_after(&mut self, key: K, value: V) -> Result<(), UnorderedKeyError> {
        self.check_order(&key)?;
        let place = self.insert_here(key, value);
        // SAFETY: this is the place of the entry just inserted.
        self.edge = Some(unsafe { self.map.tree.form().edge_before(place) });
        Ok(())
    }

    /// Removes the next entry, if there is one. The cursor stays between the neighbours.
    pub fn remove_next(&mut self) -> Option<(K, V)> {
        let (place, _) = self.entry_behind()?;
        // SAFETY: this is the place of an entry just passed.
        Some(unsafe { self.remove_here(place) })
    }

    /// Removes the previous entry, if there is one. The cursor stays between the neighbours.
    pub fn remove_prev(&mut self) -> Option<(K, V)> {
        let (place, _) = self.entry_before()?;
        // SAFETY: this is the place of an entry just passed.
        Some(unsafe { self.remove_here(place) })
    }
}

impl<K: fmt::Debug, V: fmt::Debug, A: Allocator> fmt::Debug for CursorMut<'_, K, V, A> {
    /// The entries on both sides.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cursor = self.as_cursor();
        f.debug_struct("CursorMut")
            .field("prev", &cursor.peek_prev())
            .field("next", &cursor.peek_next())
            .finish()
    }
}

impl<K, V, A: Allocator> CTreeMap<K, V, A> {
    /// The gap before the first key that a lower bound lets through.
    fn lower_edge<Q: ?Sized + Ord>(&self, bound: Bound<&Q>) -> Edge
    where
        K: Borrow<Q> + Ord,
    {
        self.edge_at_start(bound)
            .unwrap_or_else(|| self.tree.first_edge())
    }

    /// The gap behind the last key that an upper bound lets through.
    fn upper_edge<Q: ?Sized + Ord>(&self, bound: Bound<&Q>) -> Edge
    where
        K: Borrow<Q> + Ord,
    {
        match bound {
            Bound::Included(key) => self.tree.upper_edge(key),
            Bound::Excluded(key) => self.tree.lower_edge(key),
            Bound::Unbounded => self.tree.last_edge(),
        }
    }

    /// A cursor in the gap before the smallest key that is greater than the bound, or equal to one
    /// that is included. `Unbounded` gives the gap before all entries.
    ///
    /// # Examples
    /// ```
    /// use core::ops::Bound;
    ///
    /// let map = ctree::CTreeMap::from([(1, "a"), (2, "b"), (3, "c")]);
    /// let mut cursor = map.lower_bound(Bound::Included(&2));
    /// assert_eq!(cursor.peek_prev(), Some((&1, &"a")));
    /// assert_eq!(cursor.next(), Some((&2, &"b")));
    /// assert_eq!(cursor.next(), Some((&3, &"c")));
    /// assert_eq!(cursor.next(), None);
    /// ```
    pub fn lower_bound<Q: ?Sized + Ord>(&self, bound: Bound<&Q>) -> Cursor<'_, K, V>
    where
        K: Borrow<Q> + Ord,
    {
        Cursor::at(self, self.lower_edge(bound))
    }

    /// A cursor in the gap behind the greatest key that is less than the bound, or equal to one
    /// that is included. `Unbounded` gives the gap behind all entries.
    pub fn upper_bound<Q: ?Sized + Ord>(&self, bound: Bound<&Q>) -> Cursor<'_, K, V>
    where
        K: Borrow<Q> + Ord,
    {
        Cursor::at(self, self.upper_edge(bound))
    }

    /// [`lower_bound`](Self::lower_bound), to change the map there.
    pub fn lower_bound_mut<Q: ?Sized + Ord>(&mut self, bound: Bound<&Q>) -> CursorMut<'_, K, V, A>
    where
        K: Borrow<Q> + Ord,
    {
        let edge = Some(self.lower_edge(bound));
        CursorMut { map: self, edge }
    }

    /// [`upper_bound`](Self::upper_bound), to change the map there.
    pub fn upper_bound_mut<Q: ?Sized + Ord>(&mut self, bound: Bound<&Q>) -> CursorMut<'_, K, V, A>
    where
        K: Borrow<Q> + Ord,
    {
        let edge = Some(self.upper_edge(bound));
        CursorMut { map: self, edge }
    }
}
