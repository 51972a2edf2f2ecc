//! Iterators over a [`FrozenCTreeMap`](super::FrozenCTreeMap), ascending by key, from both ends.
//!
//! All know their exact length and are fused. Those that borrow jump (`nth`, `nth_back`, and with
//! them `skip` and `step_by`) in constant time, ranges too, where `BTreeMap` has to walk: a rank is
//! an address. Those that own have to drop what they pass over, one by one.

use alloc::vec;
use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;

use super::entries::Entries;
use super::key_tree;
use super::lane_tree;

/// The methods and traits that follow from how one entry becomes one item.
macro_rules! impl_entries_iterator {
    ($name:ident, $item:ty, |$key:ident, $value:ident| $of_entry:expr) => {
        impl<'a, K, V> Iterator for $name<'a, K, V> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.entries.next().map(|($key, $value)| $of_entry)
            }

            #[inline]
            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.entries.len(), Some(self.entries.len()))
            }

            #[inline]
            fn count(self) -> usize {
                self.entries.len()
            }

            #[inline]
            fn nth(&mut self, count: usize) -> Option<$item> {
                self.entries.skip_front(count);
                self.next()
            }

            #[inline]
            fn last(mut self) -> Option<$item> {
                self.next_back()
            }
        }

        impl<'a, K, V> DoubleEndedIterator for $name<'a, K, V> {
            #[inline]
            fn next_back(&mut self) -> Option<$item> {
                self.entries.next_back().map(|($key, $value)| $of_entry)
            }

            #[inline]
            fn nth_back(&mut self, count: usize) -> Option<$item> {
                self.entries.skip_back(count);
                self.next_back()
            }
        }

        impl<K, V> ExactSizeIterator for $name<'_, K, V> {}
        impl<K, V> FusedIterator for $name<'_, K, V> {}
    };
}

/// Splits an iterator that borrows the map.
#[cfg(feature = "rayon")]
macro_rules! impl_split_at {
    ($($name:ident)*) => {$(
        impl<K, V> $name<'_, K, V> {
            /// The first `index` of the entries left, and the others.
            pub(super) fn split_at(self, index: usize) -> (Self, Self) {
                let (mut left, mut right) = (self.entries.clone(), self.entries);
                right.skip_front(index);
                left.skip_back(right.len());
                // SAFETY: the two have no entry in common, and each has some of those that this
                // iterator could give out.
                unsafe { ($name::new(left), $name::new(right)) }
            }
        }
    )*};
}

#[cfg(feature = "rayon")]
impl_split_at!(Iter IterMut);

/// An iterator that borrows the map shared.
macro_rules! shared_iterator {
    ($(#[$doc:meta])* $name:ident, $item:ty, |$key:ident, $value:ident| $of_entry:expr) => {
        $(#[$doc])*
        pub struct $name<'a, K, V> {
            entries: Entries<'a, K, V>,
            /// What the addresses in `entries` are used as.
            marker: PhantomData<(&'a K, &'a V)>,
        }

        impl<'a, K, V> $name<'a, K, V> {
            /// Iterates over `entries`.
            ///
            /// # Safety
            /// The values may be borrowed shared for `'a`: no `&mut` to one of them is used
            /// meanwhile.
            pub(super) unsafe fn new(entries: Entries<'a, K, V>) -> Self {
                $name { entries, marker: PhantomData }
            }
        }

        impl_entries_iterator!($name, $item, |$key, $value| $of_entry);

        impl<K, V> Clone for $name<'_, K, V> {
            fn clone(&self) -> Self {
                $name { entries: self.entries.clone(), marker: PhantomData }
            }
        }
    };
}

/// An iterator that borrows the map exclusively.
macro_rules! exclusive_iterator {
    ($(#[$doc:meta])* $name:ident, $shared:ident, $item:ty, |$key:ident, $value:ident| $of_entry:expr) => {
        $(#[$doc])*
        pub struct $name<'a, K, V> {
            entries: Entries<'a, K, V>,
            /// What the addresses in `entries` are used as.
            marker: PhantomData<(&'a K, &'a mut V)>,
        }

        impl<'a, K, V> $name<'a, K, V> {
            /// Iterates over `entries`.
            ///
            /// # Safety
            /// For `'a` nobody else reaches the values.
            pub(super) unsafe fn new(entries: Entries<'a, K, V>) -> Self {
                $name { entries, marker: PhantomData }
            }

            /// The entries left, for reading.
            fn shared(&self) -> $shared<'_, K, V> {
                // SAFETY: the result borrows this iterator, which alone reaches the values left, so
                // that no `&mut` to one is made meanwhile.
                unsafe { $shared::new(self.entries.clone()) }
            }
        }

        impl_entries_iterator!($name, $item, |$key, $value| $of_entry);
    };
}

shared_iterator! {
    /// The entries of a map, from [`FrozenCTreeMap::iter`](super::FrozenCTreeMap::iter).
    Iter, (&'a K, &'a V), |key, value| {
        // SAFETY: by the contract of `Entries` the value is initialised, and by that of `new` it
        // may be borrowed shared for `'a`.
        (key, unsafe { &*value })
    }
}

shared_iterator! {
    /// The entries within bounds, from [`FrozenCTreeMap::range`](super::FrozenCTreeMap::range).
    Range, (&'a K, &'a V), |key, value| {
        // SAFETY: by the contract of `Entries` the value is initialised, and by that of `new` it
        // may be borrowed shared for `'a`.
        (key, unsafe { &*value })
    }
}

shared_iterator! {
    /// The keys of a map, from [`FrozenCTreeMap::keys`](super::FrozenCTreeMap::keys).
    Keys, &'a K, |key, _value| key
}

shared_iterator! {
    /// The values of a map in the order of their keys, from
    /// [`FrozenCTreeMap::values`](super::FrozenCTreeMap::values).
    Values, &'a V, |_key, value| {
        // SAFETY: by the contract of `Entries` the value is initialised, and by that of `new` it
        // may be borrowed shared for `'a`.
        unsafe { &*value }
    }
}

exclusive_iterator! {
    /// The entries of a map with values to change, from
    /// [`FrozenCTreeMap::iter_mut`](super::FrozenCTreeMap::iter_mut).
    IterMut, Iter, (&'a K, &'a mut V), |key, value| {
        // SAFETY: by the contract of `Entries` the value is initialised, by that of `new` nobody
        // else reaches it, and no rank is given out twice.
        (key, unsafe { &mut *value })
    }
}

exclusive_iterator! {
    /// The entries within bounds with values to change, from
    /// [`FrozenCTreeMap::range_mut`](super::FrozenCTreeMap::range_mut).
    RangeMut, Range, (&'a K, &'a mut V), |key, value| {
        // SAFETY: by the contract of `Entries` the value is initialised, by that of `new` nobody
        // else reaches it, and no rank is given out twice.
        (key, unsafe { &mut *value })
    }
}

exclusive_iterator! {
    /// The values of a map, to change them, from
    /// [`FrozenCTreeMap::values_mut`](super::FrozenCTreeMap::values_mut).
    ValuesMut, Values, &'a mut V, |_key, value| {
        // SAFETY: by the contract of `Entries` the value is initialised, by that of `new` nobody
        // else reaches it, and no rank is given out twice.
        unsafe { &mut *value }
    }
}

macro_rules! impl_debug {
    ($(<$($param:ident $(: $bound:path)?),*> $name:ident, |$iterator:ident| $shared:expr;)*) => {$(
        impl<$($param $(: $bound)?),*> fmt::Debug for $name<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $iterator = self;
                f.debug_list().entries($shared).finish()
            }
        }
    )*};
}

impl_debug! {
    <K: fmt::Debug, V: fmt::Debug> Iter, |iterator| iterator.clone();
    <K: fmt::Debug, V: fmt::Debug> Range, |iterator| iterator.clone();
    <K: fmt::Debug, V> Keys, |iterator| iterator.clone();
    <K, V: fmt::Debug> Values, |iterator| iterator.clone();
    <K: fmt::Debug, V: fmt::Debug> IterMut, |iterator| iterator.shared();
    <K: fmt::Debug, V: fmt::Debug> RangeMut, |iterator| iterator.shared();
    <K, V: fmt::Debug> ValuesMut, |iterator| iterator.shared();
}

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
