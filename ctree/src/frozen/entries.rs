//! What all borrowing iterators have in common: a range of ranks, and where keys and values lie.

use super::key_tree::KeyTree;
use super::strided::Strided;

/// Where keys lie.
pub(super) enum Keys<'a, K> {
    /// In the leaves of a [`LaneTree`](super::lane_tree::LaneTree).
    Lanes(Strided<K>),
    /// In a [`KeyTree`].
    Tree(&'a KeyTree<K>),
}

impl<K> Clone for Keys<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Keys<'_, K> {}

/// Entries `start..end` of a map, from both ends, as references to keys and addresses of values.
///
/// Invariants, promised to [`Entries::new`]:
/// - the keys of ranks below the first `end` are initialised and may be borrowed shared for `'a`;
/// - the values of these ranks are initialised for `'a`. Who may borrow them, and how, is left to
///   the iterators.
///
/// Each rank is given out once by each clone of the iterator.
pub(super) struct Entries<'a, K, V> {
    keys: Keys<'a, K>,
    values: Strided<V>,
    start: usize,
    end: usize,
}

impl<'a, K, V> Entries<'a, K, V> {
    /// The entries `start..end`, or none when `start > end`.
    ///
    /// # Safety
    /// The invariants above hold for `keys` and `values`.
    pub(super) unsafe fn new(
        keys: Keys<'a, K>,
        values: Strided<V>,
        start: usize,
        end: usize,
    ) -> Entries<'a, K, V> {
        Entries {
            keys,
            values,
            start,
            end: end.max(start),
        }
    }

    /// Entries left.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Key and value address of a rank of the original range.
    ///
    /// # Safety
    /// `rank` is below the `end` that the iterator was made with.
    #[inline(always)]
    unsafe fn entry(&self, rank: usize) -> (&'a K, *mut V) {
        let key = match self.keys {
            // SAFETY: by the invariants the key is initialised and may be borrowed shared for `'a`.
            Keys::Lanes(keys) => unsafe { &*keys.at(rank) },
            Keys::Tree(keys) => keys.key(rank),
        };
        (key, self.values.at(rank))
    }

    /// The first of those left.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<(&'a K, *mut V)> {
        if self.start == self.end {
            return None;
        }
        let rank = self.start;
        self.start += 1;
        // SAFETY: the rank was in the range of those left, which only shrinks.
        Some(unsafe { self.entry(rank) })
    }

    /// The last of those left.
    #[inline(always)]
    pub(super) fn next_back(&mut self) -> Option<(&'a K, *mut V)> {
        if self.start == self.end {
            return None;
        }
        self.end -= 1;
        // SAFETY: the rank was in the range of those left, which only shrinks.
        Some(unsafe { self.entry(self.end) })
    }

    /// Passes over `count` entries, or all that are left.
    #[inline]
    pub(super) fn skip_front(&mut self, count: usize) {
        self.start += count.min(self.len());
    }

    /// Passes over the last `count` entries, or all that are left.
    #[inline]
    pub(super) fn skip_back(&mut self, count: usize) {
        self.end -= count.min(self.len());
    }
}

impl<K, V> Clone for Entries<'_, K, V> {
    fn clone(&self) -> Self {
        Entries {
            keys: self.keys,
            values: self.values,
            start: self.start,
            end: self.end,
        }
    }
}
