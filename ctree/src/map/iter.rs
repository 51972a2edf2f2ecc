//! Iterators that borrow a [`CTreeMap`](super::CTreeMap). Those of a whole map know how many
//! entries are left; those of a range end where their two ends meet.

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;

use super::walk::{RangeWalk, Walk};

/// An iterator over the entries of a `$walk`, each of which becomes an item by `$of_entry`. It uses
/// the addresses of the entries as a `$marker`.
macro_rules! iterator {
    (
        $(#[$doc:meta])*
        $name:ident($walk:ident) -> $item:ty, $marker:ty, |$key:pat_param, $value:pat_param|
        $of_entry:expr, { $($forward:tt)* } { $($backward:tt)* }
    ) => {
        $(#[$doc])*
        #[must_use = "iterators are lazy and do nothing unless consumed"]
        pub struct $name<'a, K, V> {
            walk: $walk<K, V>,
            marker: PhantomData<$marker>,
        }

        impl<'a, K, V> $name<'a, K, V> {
            /// # Safety
            /// For `'a` the nodes are neither changed nor freed, and no reference to one of the
            /// entries left is used that conflicts with the items.
            #[inline(always)]
            pub(super) unsafe fn new(walk: $walk<K, V>) -> Self {
                $name { walk, marker: PhantomData }
            }
        }

        impl<'a, K, V> Iterator for $name<'a, K, V> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                self.walk.next().map(|($key, $value)| $of_entry)
            }

            #[inline]
            fn last(mut self) -> Option<Self::Item> {
                self.next_back()
            }

            #[inline]
            fn fold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, mut f: F) -> B {
                self.walk
                    .fold(init, |result, ($key, $value)| f(result, $of_entry))
            }

            $($forward)*
        }

        impl<'a, K, V> DoubleEndedIterator for $name<'a, K, V> {
            #[inline]
            fn next_back(&mut self) -> Option<Self::Item> {
                self.walk.next_back().map(|($key, $value)| $of_entry)
            }

            #[inline]
            fn rfold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, mut f: F) -> B {
                self.walk
                    .rfold(init, |result, ($key, $value)| f(result, $of_entry))
            }

            $($backward)*
        }

        impl<K, V> FusedIterator for $name<'_, K, V> {}

        impl<K, V> Default for $name<'_, K, V> {
            /// An iterator over nothing.
            fn default() -> Self {
                $name { walk: $walk::NONE, marker: PhantomData }
            }
        }
    };
}

/// Methods of items in the order of the keys: the smallest is the first.
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

/// Methods of an iterator that knows its length.
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

/// The same from the back.
macro_rules! counted_back {
    () => {
        #[inline]
        fn nth_back(&mut self, count: usize) -> Option<Self::Item> {
            self.walk.skip_back(count);
            self.next_back()
        }
    };
}

iterator! {
    /// The entries of a map in the order of their keys, from
    /// [`CTreeMap::iter`](super::CTreeMap::iter).
    Iter(Walk) -> (&'a K, &'a V), (&'a K, &'a V), |key, value| {
        // SAFETY: the walk gives addresses of entries, which by the contract of `new` may be
        // borrowed shared for `'a`.
        unsafe { (&*key, &*value) }
    }, { first_is_min!(); counted!(); } { counted_back!(); }
}

iterator! {
    /// The keys of a map in order, from [`CTreeMap::keys`](super::CTreeMap::keys).
    Keys(Walk) -> &'a K, (&'a K, &'a V), |key, _| {
        // SAFETY: the walk gives the address of an entry, whose key may be borrowed shared for `'a`
        // by the contract of `new`.
        unsafe { &*key }
    }, { first_is_min!(); counted!(); } { counted_back!(); }
}

iterator! {
    /// The values of a map in the order of their keys, from
    /// [`CTreeMap::values`](super::CTreeMap::values).
    Values(Walk) -> &'a V, (&'a K, &'a V), |_, value| {
        // SAFETY: the walk gives the address of an entry, whose value may be borrowed shared for
        // `'a` by the contract of `new`.
        unsafe { &*value }
    }, { counted!(); } { counted_back!(); }
}

iterator! {
    /// The entries within bounds, from [`CTreeMap::range`](super::CTreeMap::range).
    Range(RangeWalk) -> (&'a K, &'a V), (&'a K, &'a V), |key, value| {
        // SAFETY: the walk gives addresses of entries, which may be borrowed shared for `'a` by the
        // contract of `new`.
        unsafe { (&*key, &*value) }
    }, { first_is_min!(); } {}
}

// The markers of mutable iterators make them invariant in `K` and `V`: through a shortened
// iterator, values that live too short could be put into the map.
iterator! {
    /// The entries of a map in the order of their keys, with mutable values, from
    /// [`CTreeMap::iter_mut`](super::CTreeMap::iter_mut).
    IterMut(Walk) -> (&'a K, &'a mut V), &'a mut (K, V), |key, value| {
        // SAFETY: the walk gives addresses of entries, each once; by the contract of `new` no other
        // code reaches them for `'a`.
        unsafe { (&*key, &mut *value) }
    }, { first_is_min!(); counted!(); } { counted_back!(); }
}

iterator! {
    /// The mutable values of a map in the order of their keys, from
    /// [`CTreeMap::values_mut`](super::CTreeMap::values_mut).
    ValuesMut(Walk) -> &'a mut V, &'a mut (K, V), |_, value| {
        // SAFETY: the walk gives the address of each entry once, and by the contract of `new` no
        // other code uses its value for `'a`.
        unsafe { &mut *value }
    }, { counted!(); } { counted_back!(); }
}

iterator! {
    /// The entries within bounds, with mutable values, from
    /// [`CTreeMap::range_mut`](super::CTreeMap::range_mut).
    RangeMut(RangeWalk) -> (&'a K, &'a mut V), &'a mut (K, V), |key, value| {
        // SAFETY: the walk gives addresses of each entry once, and by the contract of `new` no
        // other code uses the entry for `'a`.
        unsafe { (&*key, &mut *value) }
    }, { first_is_min!(); } {}
}

macro_rules! impl_clone {
    ($($name:ident)*) => {$(
        impl<K, V> Clone for $name<'_, K, V> {
            #[inline]
            fn clone(&self) -> Self {
                $name { walk: self.walk, marker: PhantomData }
            }
        }
    )*};
}

impl_clone!(Iter Keys Values Range);

macro_rules! impl_exact_size {
    ($($name:ident)*) => {$(
        impl<K, V> ExactSizeIterator for $name<'_, K, V> {}
    )*};
}

impl_exact_size!(Iter Keys Values IterMut ValuesMut);

/// `Debug`: the list of the items left, by an iterator that borrows them shared.
macro_rules! impl_debug {
    ($(<$($param:ident $(: $bound:path)?),*> $name:ident as $shared:ident;)*) => {$(
        impl<$($param $(: $bound)?),*> fmt::Debug for $name<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // SAFETY: the new iterator borrows this one, so that no `&mut` to one of the
                // entries left is made meanwhile; the nodes stay as they are for longer than that.
                let shared: $shared<'_, K, V> = unsafe { $shared::new(self.walk) };
                f.debug_list().entries(shared).finish()
            }
        }
    )*};
}

impl_debug! {
    <K: fmt::Debug, V: fmt::Debug> Iter as Iter;
    <K: fmt::Debug, V> Keys as Keys;
    <K, V: fmt::Debug> Values as Values;
    <K: fmt::Debug, V: fmt::Debug> Range as Range;
    <K: fmt::Debug, V: fmt::Debug> IterMut as Iter;
    <K, V: fmt::Debug> ValuesMut as Values;
    <K: fmt::Debug, V: fmt::Debug> RangeMut as Range;
}
