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
use crate::rank_iter::impl_rank_iterator;

/// An iterator that borrows the map. `$shared` is the type of its clone for reading.
macro_rules! borrowing_iterator {
    (
        $(#[$doc:meta])* $name:ident, $value:ty, $contract:literal, $shared:ident,
        $item:ty, |$iter:ident, $rank:ident| $read:expr, $($debug:path)?, $($debug_key:path)?
    ) => {
        $(#[$doc])*
        pub struct $name<'a, K, V> {
            entries: Entries<'a, K, V>,
            /// What the addresses in `entries` are used as.
            marker: PhantomData<(&'a K, $value)>,
        }

        impl<'a, K, V> $name<'a, K, V> {
            /// Iterates over `entries`.
            ///
            /// # Safety
            #[doc = $contract]
            pub(super) unsafe fn new(entries: Entries<'a, K, V>) -> Self {
                $name { entries, marker: PhantomData }
            }
        }

        impl_rank_iterator!(['a, K, V] $name<'a, K, V>, $item, entries.ranks, |$iter, $rank| $read);

        impl<K $(: $debug_key)?, V $(: $debug)?> fmt::Debug for $name<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // SAFETY: this borrows the iterator, so that no `&mut` to a value that is left is
                // made meanwhile.
                let shared = unsafe { $shared::new(self.entries.clone()) };
                f.debug_list().entries(shared).finish()
            }
        }
    };
}

/// An iterator that borrows the map shared.
macro_rules! shared_iterator {
    (
        $(#[$doc:meta])* $name:ident, $item:ty, |$iter:ident, $rank:ident| $read:expr,
        $($debug:path)?, $($debug_key:path)?
    ) => {
        borrowing_iterator! {
            $(#[$doc])* $name, &'a V, "For `'a` no `&mut` to one of the values is used.", $name,
            $item, |$iter, $rank| $read, $($debug)?, $($debug_key)?
        }

        impl<K, V> Clone for $name<'_, K, V> {
            fn clone(&self) -> Self {
                $name { entries: self.entries.clone(), marker: PhantomData }
            }
        }
    };
}

/// An iterator that borrows the map exclusively.
macro_rules! exclusive_iterator {
    (
        $(#[$doc:meta])* $name:ident, $shared:ident, $item:ty,
        |$iter:ident, $rank:ident| $read:expr, $($debug:path)?, $($debug_key:path)?
    ) => {
        borrowing_iterator! {
            $(#[$doc])* $name, &'a mut V,
            "For `'a` only this iterator reaches the values.", $shared,
            $item, |$iter, $rank| $read, $($debug)?, $($debug_key)?
        }
    };
}

/// The key of a rank.
macro_rules! key {
    ($iter:ident, $rank:ident) => {
        // SAFETY: the rank was one of those left.
        unsafe { $iter.entries.key($rank) }
    };
}

/// The value of a rank, to read.
macro_rules! value {
    ($iter:ident, $rank:ident) => {
        // SAFETY: by the contract of `Entries` the value is initialised, and by that of `new` it
        // may be borrowed shared for `'a`.
        unsafe { &*$iter.entries.value($rank) }
    };
}

/// The value of a rank, to change.
macro_rules! value_mut {
    ($iter:ident, $rank:ident) => {
        // SAFETY: by the contract of `Entries` the value is initialised, by that of `new` it may be
        // borrowed mutably for `'a`, and no rank is returned twice.
        unsafe { &mut *$iter.entries.value($rank) }
    };
}

shared_iterator! {
    /// The entries of a map, from [`FrozenCTreeMap::iter`](super::FrozenCTreeMap::iter) and
    /// [`range`](super::FrozenCTreeMap::range).
    Iter, (&'a K, &'a V), |iter, rank| (key!(iter, rank), value!(iter, rank)),
    fmt::Debug, fmt::Debug
}

shared_iterator! {
    /// The keys of a map, from [`FrozenCTreeMap::keys`](super::FrozenCTreeMap::keys).
    Keys, &'a K, |iter, rank| key!(iter, rank), , fmt::Debug
}

shared_iterator! {
    /// The values of a map in the order of their keys, from
    /// [`FrozenCTreeMap::values`](super::FrozenCTreeMap::values).
    Values, &'a V, |iter, rank| value!(iter, rank), fmt::Debug,
}

exclusive_iterator! {
    /// The entries of a map with mutable values, from
    /// [`FrozenCTreeMap::iter_mut`](super::FrozenCTreeMap::iter_mut) and
    /// [`range_mut`](super::FrozenCTreeMap::range_mut).
    IterMut, Iter, (&'a K, &'a mut V), |iter, rank| (key!(iter, rank), value_mut!(iter, rank)),
    fmt::Debug, fmt::Debug
}

exclusive_iterator! {
    /// The mutable values of a map, from
    /// [`FrozenCTreeMap::values_mut`](super::FrozenCTreeMap::values_mut).
    ValuesMut, Values, &'a mut V, |iter, rank| value_mut!(iter, rank), fmt::Debug,
}

/// The entries within bounds, from [`FrozenCTreeMap::range`](super::FrozenCTreeMap::range).
pub type Range<'a, K, V> = Iter<'a, K, V>;

/// The entries within bounds with mutable values, from
/// [`FrozenCTreeMap::range_mut`](super::FrozenCTreeMap::range_mut).
pub type RangeMut<'a, K, V> = IterMut<'a, K, V>;

/// Splits an iterator that borrows the map.
#[cfg(feature = "rayon")]
macro_rules! impl_split_at {
    ($($name:ident)*) => {$(
        impl<K, V> $name<'_, K, V> {
            /// The first `index` of the entries that are left, and the others.
            pub(super) fn split_at(self, index: usize) -> (Self, Self) {
                let (mut left, mut right) = (self.entries.clone(), self.entries);
                let middle = left.ranks.start + index.min(left.ranks.len());
                left.ranks.end = middle;
                right.ranks.start = middle;
                // SAFETY: the two have no entry in common, and each has some of those of this
                // iterator.
                unsafe { ($name::new(left), $name::new(right)) }
            }
        }
    )*};
}

#[cfg(feature = "rayon")]
impl_split_at!(Iter IterMut);

/// The owned entries of a map, from
/// [`FrozenCTreeMap::into_iter`](super::FrozenCTreeMap#impl-IntoIterator-for-FrozenCTreeMap<K,+V>).
pub struct IntoIter<K, V> {
    repr: IntoIterRepr<K, V>,
}

/// The two kinds of trees, being taken apart.
enum IntoIterRepr<K, V> {
    Tree {
        keys: key_tree::IntoIter<K>,
        values: vec::IntoIter<V>,
    },
    Lanes(lane_tree::IntoIter<K, V>),
}

impl<K, V> IntoIter<K, V> {
    /// From keys and as many values.
    pub(super) fn from_tree(
        keys: key_tree::IntoIter<K>,
        values: vec::IntoIter<V>,
    ) -> IntoIter<K, V> {
        IntoIter {
            repr: IntoIterRepr::Tree { keys, values },
        }
    }

    /// From the entries of a lane tree.
    pub(super) fn from_lanes(entries: lane_tree::IntoIter<K, V>) -> IntoIter<K, V> {
        IntoIter {
            repr: IntoIterRepr::Lanes(entries),
        }
    }
}

impl<K, V> Iterator for IntoIter<K, V> {
    type Item = (K, V);

    #[inline]
    fn next(&mut self) -> Option<(K, V)> {
        match &mut self.repr {
            IntoIterRepr::Tree { keys, values } => keys.next().zip(values.next()),
            IntoIterRepr::Lanes(entries) => entries.next(),
        }
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = match &self.repr {
            IntoIterRepr::Tree { values, .. } => values.len(),
            IntoIterRepr::Lanes(entries) => entries.len(),
        };
        (len, Some(len))
    }
}

impl<K, V> DoubleEndedIterator for IntoIter<K, V> {
    #[inline]
    fn next_back(&mut self) -> Option<(K, V)> {
        match &mut self.repr {
            IntoIterRepr::Tree { keys, values } => keys.next_back().zip(values.next_back()),
            IntoIterRepr::Lanes(entries) => entries.next_back(),
        }
    }
}

impl<K, V> ExactSizeIterator for IntoIter<K, V> {}
impl<K, V> FusedIterator for IntoIter<K, V> {}

impl<K, V> IntoIter<K, V> {
    /// Writes the list of what `item` makes of each entry left.
    fn fmt_list<'a, T: fmt::Debug>(
        &'a self,
        f: &mut fmt::Formatter<'_>,
        item: impl Fn((&'a K, &'a V)) -> T,
    ) -> fmt::Result {
        let mut list = f.debug_list();
        match &self.repr {
            IntoIterRepr::Tree { keys, values } => {
                list.entries(keys.iter().zip(values.as_slice()).map(item))
            }
            IntoIterRepr::Lanes(entries) => list.entries(entries.iter().map(item)),
        };
        list.finish()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for IntoIter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_list(f, |entry| entry)
    }
}

/// The two iterators that keep one half of each owned entry.
macro_rules! half_of_entries {
    ($(#[$doc:meta])* $name:ident, $item:ident, $half:tt) => {
        $(#[$doc])*
        pub struct $name<K, V> {
            entries: IntoIter<K, V>,
        }

        impl<K, V> $name<K, V> {
            /// One half of each of `entries`.
            pub(super) fn new(entries: IntoIter<K, V>) -> Self {
                $name { entries }
            }
        }

        impl<K, V> Iterator for $name<K, V> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.entries.next().map(|entry| entry.$half)
            }

            #[inline]
            fn size_hint(&self) -> (usize, Option<usize>) {
                self.entries.size_hint()
            }
        }

        impl<K, V> DoubleEndedIterator for $name<K, V> {
            #[inline]
            fn next_back(&mut self) -> Option<$item> {
                self.entries.next_back().map(|entry| entry.$half)
            }
        }

        impl<K, V> ExactSizeIterator for $name<K, V> {}
        impl<K, V> FusedIterator for $name<K, V> {}

        impl<K, V> fmt::Debug for $name<K, V>
        where
            $item: fmt::Debug,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.entries.fmt_list(f, |entry| entry.$half)
            }
        }
    };
}

half_of_entries! {
    /// The owned keys of a map, from
    /// [`FrozenCTreeMap::into_keys`](super::FrozenCTreeMap::into_keys).
    IntoKeys, K, 0
}

half_of_entries! {
    /// The owned values of a map, from
    /// [`FrozenCTreeMap::into_values`](super::FrozenCTreeMap::into_values).
    IntoValues, V, 1
}
