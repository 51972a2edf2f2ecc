//! Removing what a closure chooses: `extract_if` and `retain`.

use core::fmt;
use core::iter::FusedIterator;
use core::ops::{Bound, RangeBounds};

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeMap;
use crate::tree::Edge;

/// The entries that a closure chooses, removed one by one as the iterator is asked for them, from
/// [`CTreeMap::extract_if`].
///
/// Each entry leaves the map when it is given out and not before, so that nothing is lost or leaked
/// when the iterator is dropped, or forgotten, half way.
#[must_use = "iterators are lazy and do nothing unless consumed; \
    use `retain` or `extract_if().for_each(drop)` to remove and discard elements"]
pub struct ExtractIf<'a, K, V, R, F, A: Allocator = Global> {
    pred: F,
    extraction: Extraction<'a, K, V, R, A>,
}

/// An [`ExtractIf`] without its closure, for maps and sets.
///
/// Invariant: `edge` is an edge of the tree of `map`, as it is now; `None` at the end, or when a
/// closure has panicked.
pub(crate) struct Extraction<'a, K, V, R, A: Allocator> {
    map: &'a mut CTreeMap<K, V, A>,
    edge: Option<Edge>,
    range: R,
}

impl<'a, K, V, R, A: Allocator> Extraction<'a, K, V, R, A> {
    /// Looks up the start of the range.
    pub(crate) fn new(map: &'a mut CTreeMap<K, V, A>, range: R) -> Self
    where
        K: Ord,
        R: RangeBounds<K>,
    {
        let edge = map.tree.root().map(|_| {
            map.edge_at_start(range.start_bound())
                .unwrap_or_else(|| map.tree.first_edge())
        });
        Extraction { map, edge, range }
    }

    /// The entry that the closure will be asked about next, unless it is behind the end of the
    /// range.
    pub(crate) fn peek(&self) -> Option<(&K, &V)> {
        let mut edge = self.edge?;
        // SAFETY: by the invariant this is an edge of a tree with nodes, which is borrowed.
        let place = unsafe { self.map.tree.form().next(&mut edge) }?;
        // SAFETY: this is the place of an entry, and the map is borrowed by the result.
        Some(unsafe { self.map.entry_at(place) })
    }

    /// Removes the next entry in the range that `pred` chooses.
    pub(crate) fn next(&mut self, mut pred: impl FnMut(&K, &mut V) -> bool) -> Option<(K, V)>
    where
        K: PartialOrd,
        R: RangeBounds<K>,
    {
        // Taken out, so that a panic in foreign code below ends the iterator.
        let mut edge = self.edge.take()?;
        loop {
            // SAFETY: by the invariant, and by what follows, this is an edge of a tree with nodes.
            let place = unsafe { self.map.tree.form().next(&mut edge) }?;
            // SAFETY: this is the place of an entry.
            let (key, value) = unsafe { self.map.entry_at_mut(place) };
            let within = match self.range.end_bound() {
                Bound::Included(end) => key <= end,
                Bound::Excluded(end) => key < end,
                Bound::Unbounded => true,
            };
            if !within {
                return None;
            }
            if pred(key, value) {
                // SAFETY: this is the place of an entry. Of all edges and places only the one that
                // comes back is used from here on.
                let (key, value, gap) = unsafe { self.map.tree.remove_at(place) };
                self.edge = self.map.tree.root().map(|_| gap);
                return Some((key, value));
            }
        }
    }

    /// Bounds for the number of entries to come.
    pub(crate) fn size_hint(&self) -> (usize, Option<usize>) {
        let most = if self.edge.is_some() {
            self.map.len()
        } else {
            0
        };
        (0, Some(most))
    }
}

impl<K, V, R, F, A: Allocator> Iterator for ExtractIf<'_, K, V, R, F, A>
where
    K: PartialOrd,
    R: RangeBounds<K>,
    F: FnMut(&K, &mut V) -> bool,
{
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        self.extraction.next(&mut self.pred)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.extraction.size_hint()
    }
}

impl<K, V, R, F, A: Allocator> FusedIterator for ExtractIf<'_, K, V, R, F, A>
where
    K: PartialOrd,
    R: RangeBounds<K>,
    F: FnMut(&K, &mut V) -> bool,
{
}

impl<K: fmt::Debug, V: fmt::Debug, R, F, A: Allocator> fmt::Debug for ExtractIf<'_, K, V, R, F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtractIf")
            .field("peek", &self.extraction.peek())
            .finish_non_exhaustive()
    }
}

impl<K: Ord, V, A: Allocator> CTreeMap<K, V, A> {
    /// Removes the entries within `range` for which `pred` returns true, and returns them in the
    /// order of their keys, each when the iterator is asked for it.
    ///
    /// What the iterator was not asked for stays in the map. The closure may change the values that
    /// stay. To drop what is removed, see [`retain`](Self::retain).
    ///
    /// Costs a lookup, then O(1) for each entry that stays and one removal without a search for
    /// each that goes.
    ///
    /// # Examples
    /// ```
    /// let mut map: ctree::CTreeMap<i32, i32> = (0..8).map(|n| (n, n)).collect();
    /// let evens: Vec<_> = map.extract_if(.., |key, _| key % 2 == 0).map(|(key, _)| key).collect();
    /// assert_eq!(evens, [0, 2, 4, 6]);
    /// assert_eq!(map.into_keys().collect::<Vec<_>>(), [1, 3, 5, 7]);
    /// ```
    pub fn extract_if<F, R>(&mut self, range: R, pred: F) -> ExtractIf<'_, K, V, R, F, A>
    where
        R: RangeBounds<K>,
        F: FnMut(&K, &mut V) -> bool,
    {
        ExtractIf {
            pred,
            extraction: Extraction::new(self, range),
        }
    }

    /// Keeps the entries for which `f` returns true, and drops all others. They are visited in the
    /// order of their keys.
    ///
    /// Keeps and returns memory as [`remove`](Self::remove) does; [`compact`](Self::compact)
    /// afterwards fills the nodes again.
    pub fn retain<F>(&mut self, mut f: F)
    where
        F: FnMut(&K, &mut V) -> bool,
    {
        let mut extraction = Extraction::new(self, ..);
        while let Some(entry) = extraction.next(|key, value| !f(key, value)) {
            drop(entry);
        }
    }
}
