//! Iterators over a [`FrozenCTreeMap`](super::FrozenCTreeMap), ascending by key, from both ends.
//!
//! All know their exact length and are fused. Those that borrow skip entries (`nth`, `nth_back`,
//! and with them `skip` and `step_by`) in constant time. Those that own drop what they skip.

use alloc::vec;
use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;

use super::entries::Entries;
use super::key_tree;
use super::lane_tree;
use crate::rank_iter::{half_of_entries, impl_rank_iterator};

/// An iterator that borrows the map, and uses the addresses of its values as `$value`s. It becomes
/// a `$shared` for reading.
macro_rules! iterator {
    (
        $(#[$doc:meta])* $name:ident($value:ty) -> $item:ty, |$iter:ident, $rank:ident| $read:expr,
        $shared:ident: $($param:ident $(: $debug:path)?),*
    ) => {
        $(#[$doc])*
        pub struct $name<'a, K, V> {
            entries: Entries<'a, K, V>,
            marker: PhantomData<(&'a K, $value)>,
        }

        impl<'a, K, V> $name<'a, K, V> {
            /// # Safety
            /// For `'a` no reference to one of the values is used that conflicts with the items.
            pub(super) unsafe fn new(entries: Entries<'a, K, V>) -> Self {
                $name { entries, marker: PhantomData }
            }
        }

        impl_rank_iterator!(['a, K, V] $name<'a, K, V>, $item, entries.ranks, |$iter, $rank| $read);

        impl<$($param $(: $debug)?),*> fmt::Debug for $name<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // SAFETY: this borrows the iterator, so that no `&mut` to a value that is left is
                // made meanwhile.
                let shared = unsafe { $shared::new(self.entries.clone()) };
                f.debug_list().entries(shared).finish()
            }
        }
    };
}

iterator! {
    /// The entries of a map, from [`FrozenCTreeMap::iter`](super::FrozenCTreeMap::iter) and
    /// [`range`](super::FrozenCTreeMap::range).
    Iter(&'a V) -> (&'a K, &'a V), |iter, rank| {
        // SAFETY: the rank was one of those left. By the contract of `Entries` its value is
        // initialised, and by that of `new` it may be borrowed shared for `'a`.
        unsafe { (iter.entries.key(rank), &*iter.entries.value(rank)) }
    }, Iter: K: fmt::Debug, V: fmt::Debug
}

iterator! {
    /// The keys of a map, from [`FrozenCTreeMap::keys`](super::FrozenCTreeMap::keys).
    Keys(&'a V) -> &'a K, |iter, rank| {
        // SAFETY: the rank was one of those left.
        unsafe { iter.entries.key(rank) }
    }, Keys: K: fmt::Debug, V
}

iterator! {
    /// The values of a map in the order of their keys, from
    /// [`FrozenCTreeMap::values`](super::FrozenCTreeMap::values).
    Values(&'a V) -> &'a V, |iter, rank| {
        // SAFETY: the rank was one of those left, so its value is initialised (contract of
        // `Entries`), and may be borrowed shared for `'a` (contract of `new`).
        unsafe { &*iter.entries.value(rank) }
    }, Values: K, V: fmt::Debug
}

iterator! {
    /// The entries of a map with mutable values, from
    /// [`FrozenCTreeMap::iter_mut`](super::FrozenCTreeMap::iter_mut) and
    /// [`range_mut`](super::FrozenCTreeMap::range_mut).
    IterMut(&'a mut V) -> (&'a K, &'a mut V), |iter, rank| {
        // SAFETY: the rank was one of those left, so key and value are initialised (contract of
        // `Entries`). No rank is returned twice, and `new` was promised that no other reference to
        // the value is used for `'a`.
        unsafe { (iter.entries.key(rank), &mut *iter.entries.value(rank)) }
    }, Iter: K: fmt::Debug, V: fmt::Debug
}

iterator! {
    /// The mutable values of a map, from
    /// [`FrozenCTreeMap::values_mut`](super::FrozenCTreeMap::values_mut).
    ValuesMut(&'a mut V) -> &'a mut V, |iter, rank| {
        // SAFETY: the value of a rank that was left is initialised (contract of `Entries`), and no
        // rank is returned twice; by the contract of `new` nothing else refers to it for `'a`.
        unsafe { &mut *iter.entries.value(rank) }
    }, Values: K, V: fmt::Debug
}

/// The entries within bounds, from [`FrozenCTreeMap::range`](super::FrozenCTreeMap::range).
pub type Range<'a, K, V> = Iter<'a, K, V>;

/// The entries within bounds with mutable values, from
/// [`FrozenCTreeMap::range_mut`](super::FrozenCTreeMap::range_mut).
pub type RangeMut<'a, K, V> = IterMut<'a, K, V>;

macro_rules! impl_clone {
    ($($name:ident)*) => {$(
        impl<K, V> Clone for $name<'_, K, V> {
            fn clone(&self) -> Self {
                $name { entries: self.entries.clone(), marker: PhantomData }
            }
        }
    )*};
}

impl_clone!(Iter Keys Values);

/// The owned entries of a map, from
/// [`FrozenCTreeMap::into_iter`](super::FrozenCTreeMap#impl-IntoIterator-for-FrozenCTreeMap<K,+V>).
pub struct IntoIter<K, V>(pub(super) Owned<K, V>);

/// The two kinds of trees, being taken apart.
pub(super) enum Owned<K, V> {
    /// Keys and as many values.
    Tree(key_tree::IntoIter<K>, vec::IntoIter<V>),
    Lanes(lane_tree::IntoIter<K, V>),
}

impl<K, V> IntoIter<K, V> {
    /// The entries left, for reading.
    fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (tree, lanes) = match &self.0 {
            Owned::Tree(keys, values) => (Some(keys.iter().zip(values.as_slice())), None),
            Owned::Lanes(entries) => (None, Some(entries.iter())),
        };
        let tree = tree.into_iter().flatten();
        tree.chain(lanes.into_iter().flatten())
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        match &mut self.0 {
            Owned::Tree(keys, values) => keys.next().zip(values.next()),
            Owned::Lanes(entries) => entries.next(),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = match &self.0 {
            Owned::Tree(_, values) => values.len(),
            Owned::Lanes(entries) => entries.len(),
        };
        (len, Some(len))
    }
}

impl<K, V> DoubleEndedIterator for IntoIter<K, V> {
    #[inline]
    fn next_back(&mut self) -> Option<(K, V)> {
        match &mut self.0 {
            Owned::Tree(keys, values) => keys.next_back().zip(values.next_back()),
            Owned::Lanes(entries) => entries.next_back(),
        }
    }
}

impl<K, V> ExactSizeIterator for IntoIter<K, V> {}
impl<K, V> FusedIterator for IntoIter<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for IntoIter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

half_of_entries! {
    /// The owned keys of a map, from
    /// [`FrozenCTreeMap::into_keys`](super::FrozenCTreeMap::into_keys).
    IntoKeys<K, V> -> K, 0, {}
}

half_of_entries! {
    /// The owned values of a map, from
    /// [`FrozenCTreeMap::into_values`](super::FrozenCTreeMap::into_values).
    IntoValues<K, V> -> V, 1, {}
}
