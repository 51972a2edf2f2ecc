//! Iterators that borrow a [`CTreeMap`](super::CTreeMap) whole: they know how many entries are
//! left.

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;

use super::walk::Walk;

/// The methods of `Iterator` that follow from how one entry becomes one item. The iterator has a
/// field `walk`.
macro_rules! forward {
    (|$key:ident, $value:ident| $item:expr) => {
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.walk.next().map(|($key, $value)| $item)
        }

        #[inline]
        fn last(mut self) -> Option<Self::Item> {
            self.next_back()
        }

        #[inline]
        fn fold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, mut f: F) -> B {
            self.walk
                .fold(init, |result, ($key, $value)| f(result, $item))
        }
    };
}
pub(super) use forward;

/// The same for `DoubleEndedIterator`.
macro_rules! backward {
    (|$key:ident, $value:ident| $item:expr) => {
        #[inline]
        fn next_back(&mut self) -> Option<Self::Item> {
            self.walk.next_back().map(|($key, $value)| $item)
        }

        #[inline]
        fn rfold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, mut f: F) -> B {
            self.walk
                .rfold(init, |result, ($key, $value)| f(result, $item))
        }
    };
}
pub(super) use backward;

/// What items in the order of the keys allow: the smallest is the first.
macro_rules! first_is_min {
    () => {
        #[inline]
        fn min(mut self) -> Option<Self::Item>
        where
            Self::Item: Ord,
        {
            self.next()
        }

        #[inline]
        fn max(mut self) -> Option<Self::Item>
        where
            Self::Item: Ord,
        {
            self.next_back()
        }
    };
}
pub(super) use first_is_min;

/// What a known length allows.
macro_rules! counted {
    () => {
        #[inline]
        fn size_hint(&self) -> (usize, Option<usize>) {
            (self.walk.len(), Some(self.walk.len()))
        }

        #[inline]
        fn count(self) -> usize {
            self.walk.len()
        }

        #[inline]
        fn nth(&mut self, count: usize) -> Option<Self::Item> {
            self.walk.skip_front(count);
            self.next()
        }
    };
}

/// What a known length allows from the back.
macro_rules! counted_back {
    () => {
        #[inline]
        fn nth_back(&mut self, count: usize) -> Option<Self::Item> {
            self.walk.skip_back(count);
            self.next_back()
        }
    };
}

/// An iterator that borrows the map shared.
macro_rules! shared_iterator {
    (
        $(#[$doc:meta])*
        $name:ident -> $item:ty, |$key:ident, $value:ident| $of_entry:expr, { $($more:tt)* }
    ) => {
        $(#[$doc])*
        #[must_use = "iterators are lazy and do nothing unless consumed"]
        pub struct $name<'a, K, V> {
            walk: Walk<K, V>,
            /// What the addresses of the walk are used as.
            marker: PhantomData<(&'a K, &'a V)>,
        }

        impl<'a, K, V> $name<'a, K, V> {
            /// Iterates over what `walk` walks over.
            ///
            /// # Safety
            /// For `'a` the nodes are neither changed nor freed, and no `&mut` to one of the
            /// entries left is used.
            #[inline(always)]
            pub(super) unsafe fn new(walk: Walk<K, V>) -> Self {
                $name { walk, marker: PhantomData }
            }
        }

        impl<'a, K, V> Iterator for $name<'a, K, V> {
            type Item = $item;

            forward!(|$key, $value| $of_entry);
            counted!();
            $($more)*
        }

        impl<'a, K, V> DoubleEndedIterator for $name<'a, K, V> {
            backward!(|$key, $value| $of_entry);
            counted_back!();
        }

        impl<K, V> ExactSizeIterator for $name<'_, K, V> {}
        impl<K, V> FusedIterator for $name<'_, K, V> {}

        impl<K, V> Clone for $name<'_, K, V> {
            #[inline]
            fn clone(&self) -> Self {
                $name { walk: self.walk, marker: PhantomData }
            }
        }

        impl<K, V> Default for $name<'_, K, V> {
            /// An iterator over nothing.
            fn default() -> Self {
                $name { walk: Walk::NONE, marker: PhantomData }
            }
        }
    };
}

/// An iterator that borrows the map mutably.
macro_rules! exclusive_iterator {
    (
        $(#[$doc:meta])*
        $name:ident, for reading $shared:ident -> $item:ty, |$key:ident, $value:ident| $of_entry:expr, { $($more:tt)* }
    ) => {
        $(#[$doc])*
        #[must_use = "iterators are lazy and do nothing unless consumed"]
        pub struct $name<'a, K, V> {
            walk: Walk<K, V>,
            /// What the addresses of the walk are used as. Invariant in `K` and `V`: through a
            /// shortened iterator, values that live too short could be put into the map.
            marker: PhantomData<&'a mut (K, V)>,
        }

        impl<'a, K, V> $name<'a, K, V> {
            /// Iterates over what `walk` walks over.
            ///
            /// # Safety
            /// For `'a` the nodes are neither changed nor freed, and no other code reaches the
            /// entries left.
            #[inline(always)]
            pub(super) unsafe fn new(walk: Walk<K, V>) -> Self {
                $name { walk, marker: PhantomData }
            }

            /// The entries left, for reading.
            fn shared(&self) -> $shared<'_, K, V> {
                // SAFETY: the result borrows this iterator, which alone reaches the entries left,
                // so that meanwhile no `&mut` to one is made; the nodes stay as they are for longer
                // than that.
                unsafe { $shared::new(self.walk) }
            }
        }

        impl<'a, K, V> Iterator for $name<'a, K, V> {
            type Item = $item;

            forward!(|$key, $value| $of_entry);
            counted!();
            $($more)*
        }

        impl<'a, K, V> DoubleEndedIterator for $name<'a, K, V> {
            backward!(|$key, $value| $of_entry);
            counted_back!();
        }

        impl<K, V> ExactSizeIterator for $name<'_, K, V> {}
        impl<K, V> FusedIterator for $name<'_, K, V> {}

        impl<K, V> Default for $name<'_, K, V> {
            /// An iterator over nothing.
            fn default() -> Self {
                $name { walk: Walk::NONE, marker: PhantomData }
            }
        }
    };
}

shared_iterator! {
    /// The entries of a map in the order of their keys, from
    /// [`CTreeMap::iter`](super::CTreeMap::iter).
    Iter -> (&'a K, &'a V), |key, value| {
        // SAFETY: the walk gives addresses of entries, which by the contract of `new` may be
        // borrowed shared for `'a`.
        unsafe { (&*key, &*value) }
    }, { first_is_min!(); }
}

shared_iterator! {
    /// The keys of a map in order, from [`CTreeMap::keys`](super::CTreeMap::keys).
    Keys -> &'a K, |key, _value| {
        // SAFETY: the walk gives addresses of entries, which by the contract of `new` may be
        // borrowed shared for `'a`.
        unsafe { &*key }
    }, { first_is_min!(); }
}

shared_iterator! {
    /// The values of a map in the order of their keys, from
    /// [`CTreeMap::values`](super::CTreeMap::values).
    Values -> &'a V, |_key, value| {
        // SAFETY: the walk gives addresses of entries, which by the contract of `new` may be
        // borrowed shared for `'a`.
        unsafe { &*value }
    }, {}
}

exclusive_iterator! {
    /// The entries of a map in the order of their keys, the values to change, from
    /// [`CTreeMap::iter_mut`](super::CTreeMap::iter_mut).
    IterMut, for reading Iter -> (&'a K, &'a mut V), |key, value| {
        // SAFETY: the walk gives addresses of entries, each once; by the contract of `new` nobody
        // else reaches them for `'a`.
        unsafe { (&*key, &mut *value) }
    }, { first_is_min!(); }
}

exclusive_iterator! {
    /// The values of a map in the order of their keys, to change them, from
    /// [`CTreeMap::values_mut`](super::CTreeMap::values_mut).
    ValuesMut, for reading Values -> &'a mut V, |_key, value| {
        // SAFETY: the walk gives addresses of entries, each once; by the contract of `new` nobody
        // else reaches them for `'a`.
        unsafe { &mut *value }
    }, {}
}

/// `Debug`: the list of the items left.
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
pub(super) use impl_debug;

impl_debug! {
    <K: fmt::Debug, V: fmt::Debug> Iter, |iterator| iterator.clone();
    <K: fmt::Debug, V> Keys, |iterator| iterator.clone();
    <K, V: fmt::Debug> Values, |iterator| iterator.clone();
    <K: fmt::Debug, V: fmt::Debug> IterMut, |iterator| iterator.shared();
    <K, V: fmt::Debug> ValuesMut, |iterator| iterator.shared();
}
