//! Iterators over maps that read the entry of a rank in constant time.

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
