//! Iterators over a [`CTreeSet`](super::CTreeSet): those of the map, without its values.

use core::fmt;
use core::iter::FusedIterator;
use core::ops::RangeBounds;

use allocator_api2::alloc::{Allocator, Global};

use crate::map::{self, Extraction};

/// What all iterators have in common: the inner iterator's item, changed by a closure. The iterator
/// has a field `inner`.
macro_rules! forward {
    ($of_inner:expr) => {
        #[inline]
        fn next(&mut self) -> Option<Self::Item> {
            self.inner.next().map($of_inner)
        }

        #[inline]
        fn size_hint(&self) -> (usize, Option<usize>) {
            self.inner.size_hint()
        }

        #[inline]
        fn nth(&mut self, count: usize) -> Option<Self::Item> {
            self.inner.nth(count).map($of_inner)
        }

        #[inline]
        fn last(mut self) -> Option<Self::Item> {
            self.next_back()
        }

        #[inline]
        fn fold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, f: F) -> B {
            self.inner.map($of_inner).fold(init, f)
        }

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

/// The same for `DoubleEndedIterator`.
macro_rules! backward {
    ($of_inner:expr) => {
        #[inline]
        fn next_back(&mut self) -> Option<Self::Item> {
            self.inner.next_back().map($of_inner)
        }

        #[inline]
        fn nth_back(&mut self, count: usize) -> Option<Self::Item> {
            self.inner.nth_back(count).map($of_inner)
        }

        #[inline]
        fn rfold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, f: F) -> B {
            self.inner.map($of_inner).rfold(init, f)
        }
    };
}

/// The keys of a set in order, from [`CTreeSet::iter`](super::CTreeSet::iter).
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Iter<'a, K> {
    inner: map::Keys<'a, K, ()>,
}

impl<'a, K> Iter<'a, K> {
    /// Iterates over the keys that `inner` iterates over.
    #[inline]
    pub(super) fn new(inner: map::Keys<'a, K, ()>) -> Self {
        Iter { inner }
    }
}

impl<'a, K> Iterator for Iter<'a, K> {
    type Item = &'a K;

    forward!(|key| key);

    #[inline]
    fn count(self) -> usize {
        self.inner.len()
    }
}

impl<K> DoubleEndedIterator for Iter<'_, K> {
    backward!(|key| key);
}

impl<K> ExactSizeIterator for Iter<'_, K> {}
impl<K> FusedIterator for Iter<'_, K> {}

impl<K> Clone for Iter<'_, K> {
    #[inline]
    fn clone(&self) -> Self {
        Iter {
            inner: self.inner.clone(),
        }
    }
}

impl<K> Default for Iter<'_, K> {
    /// An iterator over nothing.
    fn default() -> Self {
        Iter {
            inner: map::Keys::default(),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Iter<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Iter").field(&self.inner).finish()
    }
}

/// The keys of a set within bounds, from [`CTreeSet::range`](super::CTreeSet::range).
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Range<'a, K> {
    inner: map::Range<'a, K, ()>,
}

impl<'a, K> Range<'a, K> {
    /// Iterates over the keys that `inner` iterates over.
    #[inline]
    pub(super) fn new(inner: map::Range<'a, K, ()>) -> Self {
        Range { inner }
    }
}

impl<'a, K> Iterator for Range<'a, K> {
    type Item = &'a K;

    forward!(|(key, ())| key);
}

impl<K> DoubleEndedIterator for Range<'_, K> {
    backward!(|(key, ())| key);
}

impl<K> FusedIterator for Range<'_, K> {}

impl<K> Clone for Range<'_, K> {
    #[inline]
    fn clone(&self) -> Self {
        Range {
            inner: self.inner.clone(),
        }
    }
}

impl<K> Default for Range<'_, K> {
    /// An iterator over nothing.
    fn default() -> Self {
        Range {
            inner: map::Range::default(),
        }
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

/// The owned keys of a set in order, from `CTreeSet::into_iter`.
pub struct IntoIter<K, A: Allocator = Global> {
    inner: map::IntoKeys<K, (), A>,
}

impl<K, A: Allocator> IntoIter<K, A> {
    /// Iterates over the keys that `inner` iterates over.
    #[inline]
    pub(super) fn new(inner: map::IntoKeys<K, (), A>) -> Self {
        IntoIter { inner }
    }
}

impl<K, A: Allocator> Iterator for IntoIter<K, A> {
    type Item = K;

    forward!(|key| key);
}

impl<K, A: Allocator> DoubleEndedIterator for IntoIter<K, A> {
    backward!(|key| key);
}

impl<K, A: Allocator> ExactSizeIterator for IntoIter<K, A> {}
impl<K, A: Allocator> FusedIterator for IntoIter<K, A> {}

impl<K, A: Allocator + Default> Default for IntoIter<K, A> {
    /// An iterator over nothing.
    fn default() -> Self {
        IntoIter {
            inner: map::IntoKeys::default(),
        }
    }
}

impl<K: fmt::Debug, A: Allocator> fmt::Debug for IntoIter<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter")
            .field("iter", &AsStd(|| self.inner.iter()))
            .finish()
    }
}

/// The keys that a closure chooses, removed one by one as the iterator is asked for them, from
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
