//! What all borrowing iterators have in common: a range of ranks, and where keys and values are.

use core::ops::Range;

use super::key_tree::KeyTree;
use super::strided::Strided;

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

/// A range of entries of a map, as references to keys and addresses of values.
///
/// Invariants, promised to [`Entries::new`]:
/// - the keys of `ranks` are initialised and may be borrowed shared for `'a`;
/// - the values of `ranks` are initialised for `'a`. The iterators say who may borrow them.
///
/// `ranks` only shrinks.
pub(super) struct Entries<'a, K, V> {
    keys: Keys<'a, K>,
    values: Strided<V>,
    pub(super) ranks: Range<usize>,
}

impl<'a, K, V> Entries<'a, K, V> {
    /// # Safety
    /// The invariants above hold.
    pub(super) unsafe fn new(
        keys: Keys<'a, K>,
        values: Strided<V>,
        ranks: Range<usize>,
    ) -> Entries<'a, K, V> {
        Entries {
            keys,
            values,
            ranks,
        }
    }

    /// # Safety
    /// `rank` is or was one of `ranks`.
    #[inline(always)]
    pub(super) unsafe fn key(&self, rank: usize) -> &'a K {
        match self.keys {
            // SAFETY: by the invariants the key is initialised and may be borrowed shared for `'a`.
            Keys::Lanes(keys) => unsafe { &*keys.at(rank) },
            Keys::Tree(keys) => keys.key(rank),
        }
    }

    #[inline(always)]
    pub(super) fn value(&self, rank: usize) -> *mut V {
        self.values.at(rank)
    }
}

impl<K, V> Clone for Entries<'_, K, V> {
    fn clone(&self) -> Self {
        Entries {
            ranks: self.ranks.clone(),
            ..*self
        }
    }
}
