//! Cursors of a [`CTreeSet`]: those of the map, without its values.

use core::borrow::Borrow;
use core::fmt;
use core::ops::Bound;

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeSet;
use crate::map::{self, UnorderedKeyError};

/// A gap between two keys of a set, from [`CTreeSet::lower_bound`] or [`CTreeSet::upper_bound`].
pub struct Cursor<'a, K> {
    inner: map::Cursor<'a, K, ()>,
}

/// A gap between two keys of a set, to change the set there, from [`CTreeSet::lower_bound_mut`] or
/// [`CTreeSet::upper_bound_mut`].
pub struct CursorMut<'a, K, A: Allocator = Global> {
    inner: map::CursorMut<'a, K, (), A>,
}

impl<'a, K> Cursor<'a, K> {
    /// Moves behind the next key and returns it; at the end of the set does neither.
    #[expect(clippy::should_implement_trait, reason = "the name in std")]
    pub fn next(&mut self) -> Option<&'a K> {
        self.inner.next().map(|(key, ())| key)
    }

    /// Moves before the previous key and returns it; at the beginning of the set does neither.
    pub fn prev(&mut self) -> Option<&'a K> {
        self.inner.prev().map(|(key, ())| key)
    }

    /// The next key, without moving.
    pub fn peek_next(&self) -> Option<&'a K> {
        self.inner.peek_next().map(|(key, ())| key)
    }

    /// The previous key, without moving.
    pub fn peek_prev(&self) -> Option<&'a K> {
        self.inner.peek_prev().map(|(key, ())| key)
    }
}

impl<K> Clone for Cursor<'_, K> {
    fn clone(&self) -> Self {
        Cursor {
            inner: self.inner.clone(),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Cursor<'_, K> {
    /// The keys on both sides.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("prev", &self.peek_prev())
            .field("next", &self.peek_next())
            .finish()
    }
}

impl<K, A: Allocator> CursorMut<'_, K, A> {
    /// Moves behind the next key and returns it; at the end of the set does neither.
    #[expect(clippy::should_implement_trait, reason = "the name in std")]
    pub fn next(&mut self) -> Option<&K> {
        self.inner.next().map(|(key, ())| key)
    }

    /// Moves before the previous key and returns it; at the beginning of the set does neither.
    pub fn prev(&mut self) -> Option<&K> {
        self.inner.prev().map(|(key, ())| key)
    }

    /// The next key, without moving.
    pub fn peek_next(&mut self) -> Option<&K> {
        self.inner.peek_next().map(|(key, ())| key)
    }

    /// The previous key, without moving.
    pub fn peek_prev(&mut self) -> Option<&K> {
        self.inner.peek_prev().map(|(key, ())| key)
    }

    /// A cursor for reading at the same gap.
    pub fn as_cursor(&self) -> Cursor<'_, K> {
        Cursor {
            inner: self.inner.as_cursor(),
        }
    }
}

impl<K: Ord, A: Allocator> CursorMut<'_, K, A> {
    /// Inserts a key before the cursor.
    ///
    /// # Errors
    /// When the key does not lie between the keys on both sides; the set stays as it was, the key
    /// is dropped.
    pub fn insert_before(&mut self, key: K) -> Result<(), UnorderedKeyError> {
        self.inner.insert_before(key, ())
    }

    /// Inserts a key behind the cursor.
    ///
    /// # Errors
    /// As [`insert_before`](Self::insert_before).
    pub fn insert_after(&mut self, key: K) -> Result<(), UnorderedKeyError> {
        self.inner.insert_after(key, ())
    }

    /// Removes the next key, if there is one. The cursor stays between the neighbours.
    pub fn remove_next(&mut self) -> Option<K> {
        self.inner.remove_next().map(|(key, ())| key)
    }

    /// Removes the previous key, if there is one. The cursor stays between the neighbours.
    pub fn remove_prev(&mut self) -> Option<K> {
        self.inner.remove_prev().map(|(key, ())| key)
    }
}

impl<K: fmt::Debug, A: Allocator> fmt::Debug for CursorMut<'_, K, A> {
    /// The keys on both sides.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cursor = self.as_cursor();
        f.debug_struct("CursorMut")
            .field("prev", &cursor.peek_prev())
            .field("next", &cursor.peek_next())
            .finish()
    }
}

impl<K, A: Allocator> CTreeSet<K, A> {
    /// A cursor in the gap before the smallest key that is greater than the bound, or equal to one
    /// that is included. `Unbounded` gives the gap before all keys.
    pub fn lower_bound<Q: ?Sized + Ord>(&self, bound: Bound<&Q>) -> Cursor<'_, K>
    where
        K: Borrow<Q> + Ord,
    {
        Cursor {
            inner: self.map.lower_bound(bound),
        }
    }

    /// A cursor in the gap behind the greatest key that is less than the bound, or equal to one
    /// that is included. `Unbounded` gives the gap behind all keys.
    pub fn upper_bound<Q: ?Sized + Ord>(&self, bound: Bound<&Q>) -> Cursor<'_, K>
    where
        K: Borrow<Q> + Ord,
    {
        Cursor {
            inner: self.map.upper_bound(bound),
        }
    }

    /// [`lower_bound`](Self::lower_bound), to change the set there.
    pub fn lower_bound_mut<Q: ?Sized + Ord>(&mut self, bound: Bound<&Q>) -> CursorMut<'_, K, A>
    where
        K: Borrow<Q> + Ord,
    {
        CursorMut {
            inner: self.map.lower_bound_mut(bound),
        }
    }

    /// [`upper_bound`](Self::upper_bound), to change the set there.
    pub fn upper_bound_mut<Q: ?Sized + Ord>(&mut self, bound: Bound<&Q>) -> CursorMut<'_, K, A>
    where
        K: Borrow<Q> + Ord,
    {
        CursorMut {
            inner: self.map.upper_bound_mut(bound),
        }
    }
}
