//! Iterators over a [`FrozenCTreeSet`](super::FrozenCTreeSet): those of the map, without its
//! values.

use core::fmt;
use core::iter::FusedIterator;

use super::map_iter;

/// Wraps an iterator of the map, given what its items become.
macro_rules! set_iterator {
    (
        $(#[$doc:meta])*
        $name:ident<$($param:tt),*> { $inner:ty } -> $item:ty, $of_inner:expr
    ) => {
        $(#[$doc])*
        pub struct $name<$($param),*> {
            inner: $inner,
        }

        impl<$($param),*> $name<$($param),*> {
            /// Iterates over the keys that `inner` iterates over.
            pub(super) fn new(inner: $inner) -> Self {
                $name { inner }
            }
        }

        impl<$($param),*> Iterator for $name<$($param),*> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.inner.next().map($of_inner)
            }

            #[inline]
            fn size_hint(&self) -> (usize, Option<usize>) {
                self.inner.size_hint()
            }

            #[inline]
            fn nth(&mut self, count: usize) -> Option<$item> {
                self.inner.nth(count).map($of_inner)
            }

            #[inline]
            fn last(mut self) -> Option<$item> {
                self.next_back()
            }
        }

        impl<$($param),*> DoubleEndedIterator for $name<$($param),*> {
            #[inline]
            fn next_back(&mut self) -> Option<$item> {
                self.inner.next_back().map($of_inner)
            }

            #[inline]
            fn nth_back(&mut self, count: usize) -> Option<$item> {
                self.inner.nth_back(count).map($of_inner)
            }
        }

        impl<$($param),*> ExactSizeIterator for $name<$($param),*> {}
        impl<$($param),*> FusedIterator for $name<$($param),*> {}
    };
}

set_iterator! {
    /// The keys of a set, from [`FrozenCTreeSet::iter`](super::FrozenCTreeSet::iter).
    Iter<'a, K> { map_iter::Keys<'a, K, ()> } -> &'a K, |key| key
}

set_iterator! {
    /// The keys within bounds, from [`FrozenCTreeSet::range`](super::FrozenCTreeSet::range).
    Range<'a, K> { map_iter::Range<'a, K, ()> } -> &'a K, |(key, ())| key
}

set_iterator! {
    /// The owned keys of a set, from
    /// [`FrozenCTreeSet::into_iter`](super::FrozenCTreeSet#impl-IntoIterator-for-FrozenCTreeSet<K>).
    IntoIter<K> { map_iter::IntoKeys<K, ()> } -> K, |key| key
}

impl<K> Clone for Iter<'_, K> {
    fn clone(&self) -> Self {
        Iter {
            inner: self.inner.clone(),
        }
    }
}

impl<K> Clone for Range<'_, K> {
    fn clone(&self) -> Self {
        Range {
            inner: self.inner.clone(),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Iter<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<K: fmt::Debug> fmt::Debug for Range<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

impl<K: fmt::Debug> fmt::Debug for IntoIter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
