//! Iterators over a part of a [`CTreeMap`](super::CTreeMap), between two keys: they end where their
//! two ends meet.

use core::fmt;
use core::iter::FusedIterator;
use core::marker::PhantomData;

use super::iter::{backward, first_is_min, forward, impl_debug};
use super::walk::RangeWalk;

/// The entries within bounds, from [`CTreeMap::range`](super::CTreeMap::range).
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct Range<'a, K, V> {
    walk: RangeWalk<K, V>,
    /// What the addresses of the walk are used as.
    marker: PhantomData<(&'a K, &'a V)>,
}

impl<'a, K, V> Range<'a, K, V> {
    /// Iterates over what `walk` walks over.
    ///
    /// # Safety
    /// For `'a` the nodes are neither changed nor freed, and no `&mut` to one of the entries left
    /// is used.
    #[inline(always)]
    pub(super) unsafe fn new(walk: RangeWalk<K, V>) -> Self {
        Range {
            walk,
            marker: PhantomData,
        }
    }
}

impl<'a, K, V> Iterator for Range<'a, K, V> {
    type Item = (&'a K, &'a V);

    forward!(|key, value| {
        // SAFETY: the walk gives addresses of entries, which by the contract of `new` may be
        // borrowed shared for `'a`.
        unsafe { (&*key, &*value) }
    });
    first_is_min!();
}

impl<K, V> DoubleEndedIterator for Range<'_, K, V> {
    backward!(|key, value| {
        // SAFETY: the walk gives addresses of entries, which by the contract of `new` may be
        // borrowed shared for `'a`.
        unsafe { (&*key, &*value) }
    });
}

impl<K, V> FusedIterator for Range<'_, K, V> {}

impl<K, V> Clone for Range<'_, K, V> {
    #[inline]
    fn clone(&self) -> Self {
        Range {
            walk: self.walk,
            marker: PhantomData,
        }
    }
}

impl<K, V> Default for Range<'_, K, V> {
    /// An iterator over nothing.
    fn default() -> Self {
        Range {
            walk: RangeWalk::NONE,
            marker: PhantomData,
        }
    }
}

/// The entries within bounds, the values to change, from
/// [`CTreeMap::range_mut`](super::CTreeMap::range_mut).
#[must_use = "iterators are lazy and do nothing unless consumed"]
pub struct RangeMut<'a, K, V> {
    walk: RangeWalk<K, V>,
    /// What the addresses of the walk are used as. Invariant in `K` and `V`, as
    /// [`IterMut`](super::IterMut).
    marker: PhantomData<&'a mut (K, V)>,
}

impl<'a, K, V> RangeMut<'a, K, V> {
    /// Iterates over what `walk` walks over.
    ///
    /// # Safety
    /// For `'a` the nodes are neither changed nor freed, and no other code reaches the entries.
    #[inline(always)]
    pub(super) unsafe fn new(walk: RangeWalk<K, V>) -> Self {
        RangeMut {
            walk,
            marker: PhantomData,
        }
    }

    /// The entries left, for reading.
    fn shared(&self) -> Range<'_, K, V> {
        // SAFETY: the result borrows this iterator, which alone reaches the entries left, so that
        // meanwhile no `&mut` to one is made; the nodes stay as they are for longer than that.
        unsafe { Range::new(self.walk) }
    }
}

impl<'a, K, V> Iterator for RangeMut<'a, K, V> {
    type Item = (&'a K, &'a mut V);

    forward!(|key, value| {
        // SAFETY: the walk gives addresses of entries, each once; by the contract of `new` nobody
        // else reaches them for `'a`.
        unsafe { (&*key, &mut *value) }
    });
    first_is_min!();
}

impl<K, V> DoubleEndedIterator for RangeMut<'_, K, V> {
    backward!(|key, value| {
        // SAFETY: the walk gives addresses of entries, each once; by the contract of `new` nobody
        // else reaches them for `'a`.
        unsafe { (&*key, &mut *value) }
    });
}

impl<K, V> FusedIterator for RangeMut<'_, K, V> {}

impl<K, V> Default for RangeMut<'_, K, V> {
    /// An iterator over nothing.
    fn default() -> Self {
        RangeMut {
            walk: RangeWalk::NONE,
            marker: PhantomData,
        }
    }
}

impl_debug! {
    <K: fmt::Debug, V: fmt::Debug> Range, |iterator| iterator.clone();
    <K: fmt::Debug, V: fmt::Debug> RangeMut, |iterator| iterator.shared();
}
