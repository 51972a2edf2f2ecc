//! Iterators of several kinds of maps: over ranges of ranks, for maps that read the entry of a rank
//! in constant time, and over one half of each owned entry.

use core::ops::{Bound, Range};

/// Implements the traits of an iterator whose field `$ranks` holds the ranks that are left.
///
/// All of them know their length, are fused, and skip entries in constant time.
macro_rules! impl_rank_iterator {
    (
        [$($params:tt)*] $type:ty, $item:ty, $($ranks:ident).+,
        |$iter:ident, $rank:ident| $read:expr
    ) => {
        impl<$($params)*> Iterator for $type {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                let $rank = self.$($ranks).+.next()?;
                let $iter = self;
                Some($read)
            }

            #[inline]
            fn size_hint(&self) -> (usize, Option<usize>) {
                self.$($ranks).+.size_hint()
            }

            #[inline]
            fn count(self) -> usize {
                self.len()
            }

            #[inline]
            fn nth(&mut self, count: usize) -> Option<$item> {
                let $rank = self.$($ranks).+.nth(count)?;
                let $iter = self;
                Some($read)
            }

            #[inline]
            fn last(mut self) -> Option<$item> {
                self.next_back()
            }
        }

        impl<$($params)*> DoubleEndedIterator for $type {
            #[inline]
            fn next_back(&mut self) -> Option<$item> {
                let $rank = self.$($ranks).+.next_back()?;
                let $iter = self;
                Some($read)
            }

            #[inline]
            fn nth_back(&mut self, count: usize) -> Option<$item> {
                let $rank = self.$($ranks).+.nth_back(count)?;
                let $iter = self;
                Some($read)
            }
        }

        impl<$($params)*> ExactSizeIterator for $type {}
        impl<$($params)*> core::iter::FusedIterator for $type {}
    };
}
pub(crate) use impl_rank_iterator;

/// Defines an iterator over one half of each entry of an `IntoIter`.
macro_rules! half_of_entries {
    (
        $(#[$doc:meta])*
        $name:ident<K, V $(, $alloc:ident)?> -> $item:ident, $half:tt, { $($more:tt)* }
    ) => {
        $(#[$doc])*
        pub struct $name<K, V $(, $alloc: Allocator = Global)?> {
            entries: IntoIter<K, V $(, $alloc)?>,
        }

        impl<K, V $(, $alloc: Allocator)?> $name<K, V $(, $alloc)?> {
            #[inline]
            pub(super) fn new(entries: IntoIter<K, V $(, $alloc)?>) -> Self {
                $name { entries }
            }

            /// What is left, for reading.
            pub(crate) fn iter(&self) -> impl Iterator<Item = &$item> {
                self.entries.iter().map(|entry| entry.$half)
            }
        }

        impl<K, V $(, $alloc: Allocator)?> Iterator for $name<K, V $(, $alloc)?> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.entries.next().map(|entry| entry.$half)
            }

            #[inline]
            fn size_hint(&self) -> (usize, Option<usize>) {
                self.entries.size_hint()
            }

            #[inline]
            fn last(mut self) -> Option<$item> {
                self.next_back()
            }

            $($more)*
        }

        impl<K, V $(, $alloc: Allocator)?> DoubleEndedIterator for $name<K, V $(, $alloc)?> {
            #[inline]
            fn next_back(&mut self) -> Option<$item> {
                self.entries.next_back().map(|entry| entry.$half)
            }
        }

        impl<K, V $(, $alloc: Allocator)?> ExactSizeIterator for $name<K, V $(, $alloc)?> {}
        impl<K, V $(, $alloc: Allocator)?> FusedIterator for $name<K, V $(, $alloc)?> {}

        impl<K, V $(, $alloc: Allocator)?> fmt::Debug for $name<K, V $(, $alloc)?>
        where
            $item: fmt::Debug,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.iter()).finish()
            }
        }
    };
}
pub(crate) use half_of_entries;

/// Asserts that a batch has a place for each result.
#[inline]
pub(crate) fn assert_same_length(keys: usize, results: usize) {
    assert!(keys == results, "{keys} keys but {results} results");
}

/// Asserts that a range is one that `BTreeMap::range` accepts.
#[inline]
pub(crate) fn assert_range<Q: ?Sized + Ord>(start: Bound<&Q>, end: Bound<&Q>) {
    match (start, end) {
        (Bound::Excluded(start), Bound::Excluded(end)) if start == end => {
            panic!("range start and end are equal and excluded");
        }
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) if start > end => {
            panic!("range start is greater than range end");
        }
        _ => {}
    }
}

/// The ranks within a range in a map of `len` entries, given the number of keys less than one, and
/// less than or equal to one.
///
/// # Panics
/// As `BTreeMap::range`, unless the map is empty.
pub(crate) fn ranks_within<Q: ?Sized + Ord>(
    (start, end): (Bound<&Q>, Bound<&Q>),
    len: usize,
    lower_bound: impl Fn(&Q) -> usize,
    upper_bound: impl Fn(&Q) -> usize,
) -> Range<usize> {
    if len == 0 {
        return 0..0;
    }
    assert_range(start, end);
    let start = match start {
        Bound::Included(key) => lower_bound(key),
        Bound::Excluded(key) => upper_bound(key),
        Bound::Unbounded => 0,
    };
    let end = match end {
        Bound::Included(key) => upper_bound(key),
        Bound::Excluded(key) => lower_bound(key),
        Bound::Unbounded => len,
    };
    // With a wrong `Ord` the bounds may cross.
    start.min(end)..end.min(len)
}
