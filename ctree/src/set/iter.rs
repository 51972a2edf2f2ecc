//! Iterators over a [`CTreeSet`](super::CTreeSet): those of the map, without its values.

use core::fmt;
use core::iter::FusedIterator;
use core::ops::RangeBounds;

use allocator_api2::alloc::{Allocator, Global};

use crate::map::{self, Extraction};

/// An iterator of the map, with its items changed by `$of_inner`: the parameters of the type, those
/// of its implementations, and its arguments.
macro_rules! set_iterator {
    (
        $(#[$doc:meta])*
        $name:ident [$($decl:tt)*] [$($params:tt)*] [$($args:tt)*],
        $inner:ty => $item:ty, $of_inner:expr
    ) => {
        $(#[$doc])*
        pub struct $name<$($decl)*> {
            inner: $inner,
        }

        impl<$($params)*> $name<$($args)*> {
            /// Iterates over the keys of `inner`.
            #[inline]
            pub(super) fn new(inner: $inner) -> Self {
                $name { inner }
            }
        }

        impl<$($params)*> Iterator for $name<$($args)*> {
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
            fn count(self) -> usize {
                self.inner.count()
            }

            #[inline]
            fn last(mut self) -> Option<$item> {
                self.next_back()
            }

            #[inline]
            fn fold<B, F: FnMut(B, $item) -> B>(self, init: B, f: F) -> B {
                self.inner.map($of_inner).fold(init, f)
            }

            #[inline]
            fn min(mut self) -> Option<$item>
            where
                $item: Ord,
            {
                self.next()
            }

            #[inline]
            fn max(mut self) -> Option<$item>
            where
                $item: Ord,
            {
                self.next_back()
            }
        }

        impl<$($params)*> DoubleEndedIterator for $name<$($args)*> {
            #[inline]
            fn next_back(&mut self) -> Option<$item> {
                self.inner.next_back().map($of_inner)
            }

            #[inline]
            fn nth_back(&mut self, count: usize) -> Option<$item> {
                self.inner.nth_back(count).map($of_inner)
            }

            #[inline]
            fn rfold<B, F: FnMut(B, $item) -> B>(self, init: B, f: F) -> B {
                self.inner.map($of_inner).rfold(init, f)
            }
        }

        impl<$($params)*> FusedIterator for $name<$($args)*> {}
    };
}

/// `Clone` and `Default` of iterators that borrow the set.
macro_rules! clone_and_default {
    ($($name:ident)*) => {$(
        impl<K> Clone for $name<'_, K> {
            #[inline]
            fn clone(&self) -> Self {
                $name { inner: self.inner.clone() }
            }
        }

        impl<K> Default for $name<'_, K> {
            /// An empty iterator.
            fn default() -> Self {
                $name { inner: Default::default() }
            }
        }
    )*};
}

set_iterator! {
    /// The keys of a set in order, from [`CTreeSet::iter`](super::CTreeSet::iter).
    #[must_use = "iterators are lazy and do nothing unless consumed"]
    Iter ['a, K] ['a, K] ['a, K], map::Keys<'a, K, ()> => &'a K, |key| key
}

set_iterator! {
    /// The keys of a set within bounds, from [`CTreeSet::range`](super::CTreeSet::range).
    #[must_use = "iterators are lazy and do nothing unless consumed"]
    Range ['a, K] ['a, K] ['a, K], map::Range<'a, K, ()> => &'a K, |(key, ())| key
}

set_iterator! {
    /// The owned keys of a set in order, from `CTreeSet::into_iter`.
    IntoIter [K, A: Allocator = Global] [K, A: Allocator] [K, A],
    map::IntoKeys<K, (), A> => K, |key| key
}

clone_and_default!(Iter Range);

impl<K> ExactSizeIterator for Iter<'_, K> {}
impl<K, A: Allocator> ExactSizeIterator for IntoIter<K, A> {}

impl<K, A: Allocator + Default> Default for IntoIter<K, A> {
    /// An empty iterator.
    fn default() -> Self {
        IntoIter {
            inner: map::IntoKeys::default(),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Iter<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Iter").field(&self.inner).finish()
    }
}

impl<K: fmt::Debug> fmt::Debug for Range<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { inner } = self;
        f.debug_struct("Range")
            .field("iter", &AsStd(|| inner.clone().map(|(key, ())| key)))
            .finish()
    }
}

impl<K: fmt::Debug, A: Allocator> fmt::Debug for IntoIter<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter")
            .field("iter", &AsStd(|| self.inner.iter()))
            .finish()
    }
}

/// Keys as std's sets print them: as the entries of a map to a unit struct.
struct AsStd<F>(F);

impl<K: fmt::Debug, I: Iterator<Item = K>, F: Fn() -> I> fmt::Debug for AsStd<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[derive(Debug)]
        struct SetValZST;
        let entries = (self.0)().map(|key| (key, SetValZST));
        f.debug_list().entries(entries).finish()
    }
}

/// Removes the keys that a closure chooses, lazily, from
/// [`CTreeSet::extract_if`](super::CTreeSet::extract_if).
#[must_use = "iterators are lazy and do nothing unless consumed; \
    use `retain` or `extract_if().for_each(drop)` to remove and discard elements"]
pub struct ExtractIf<'a, K, R, F, A: Allocator = Global> {
    pred: F,
    extraction: Extraction<'a, K, (), R, A>,
}

impl<'a, K, R, F, A: Allocator> ExtractIf<'a, K, R, F, A> {
    /// Removes what `pred` chooses.
    pub(super) fn new(extraction: Extraction<'a, K, (), R, A>, pred: F) -> Self {
        ExtractIf { pred, extraction }
    }
}

impl<K, R, F, A: Allocator> Iterator for ExtractIf<'_, K, R, F, A>
where
    K: PartialOrd,
    R: RangeBounds<K>,
    F: FnMut(&K) -> bool,
{
    type Item = K;

    fn next(&mut self) -> Option<K> {
        let pred = &mut self.pred;
        self.extraction
            .next(|key, ()| pred(key))
            .map(|(key, ())| key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.extraction.size_hint()
    }
}

impl<K, R, F, A: Allocator> FusedIterator for ExtractIf<'_, K, R, F, A>
where
    K: PartialOrd,
    R: RangeBounds<K>,
    F: FnMut(&K) -> bool,
{
}

impl<K: fmt::Debug, R, F, A: Allocator> fmt::Debug for ExtractIf<'_, K, R, F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractIf")
            .field("peek", &self.extraction.peek().map(|(key, ())| key))
            .finish_non_exhaustive()
    }
}
