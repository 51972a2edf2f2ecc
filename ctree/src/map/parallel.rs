//! Parallel iterators, behind the feature `rayon`: the tree is split at its nodes, down to single
//! entries where rayon asks for that.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::mem::needs_drop;

use allocator_api2::alloc::{Allocator, Global};
use rayon::iter::plumbing::{Folder, UnindexedConsumer, UnindexedProducer, bridge_unindexed};
use rayon::iter::{FromParallelIterator, IntoParallelIterator, ParallelExtend, ParallelIterator};

use super::CTreeMap;
use super::walk::RangeWalk;
use crate::frozen::{keep_last, sort_in_parallel};
use crate::tree::{Options, Piece, Place, Tree};

/// What the entries of a map become in a parallel iterator.
pub trait Items {
    /// The type of keys.
    type Key;
    /// The type of values.
    type Value;
    /// What an entry becomes.
    type Item: Send;
    /// Whether the iterator owns the entries, and drops those that it does not give out.
    const OWNS: bool;

    /// An item.
    ///
    /// # Safety
    /// These are the addresses of an entry that the iterator may give out as `Item`, and gives out
    /// once.
    unsafe fn item(key: *mut Self::Key, value: *mut Self::Value) -> Self::Item;
}

/// Entries that are borrowed shared.
#[derive(Debug)]
pub struct Shared<'a, K, V>(PhantomData<(&'a K, &'a V)>);

/// Entries whose values are borrowed mutably.
#[derive(Debug)]
pub struct Exclusive<'a, K, V>(PhantomData<(&'a K, &'a mut V)>);

/// Entries that are owned.
#[derive(Debug)]
struct Owned<K, V>(PhantomData<(K, V)>);

impl<'a, K: Sync, V: Sync> Items for Shared<'a, K, V> {
    type Key = K;
    type Value = V;
    type Item = (&'a K, &'a V);
    const OWNS: bool = false;

    unsafe fn item(key: *mut K, value: *mut V) -> (&'a K, &'a V) {
        // SAFETY: by the contract.
        unsafe { (&*key, &*value) }
    }
}

impl<'a, K: Sync, V: Send> Items for Exclusive<'a, K, V> {
    type Key = K;
    type Value = V;
    type Item = (&'a K, &'a mut V);
    const OWNS: bool = false;

    unsafe fn item(key: *mut K, value: *mut V) -> (&'a K, &'a mut V) {
        // SAFETY: by the contract.
        unsafe { (&*key, &mut *value) }
    }
}

impl<K: Send, V: Send> Items for Owned<K, V> {
    type Key = K;
    type Value = V;
    type Item = (K, V);
    const OWNS: bool = true;

    unsafe fn item(key: *mut K, value: *mut V) -> (K, V) {
        // SAFETY: by the contract.
        unsafe { (key.read(), value.read()) }
    }
}

/// A part of a map's entries, to be split further or to be gone through.
///
/// Invariant: the nodes stay as they are for as long as this lives, and the entries of `piece` may
/// be given out as items, by this part alone unless they are shared.
struct Part<I: Items> {
    piece: Option<Piece<I::Key, I::Value>>,
    items: PhantomData<I>,
}

/// The items of a part.
///
/// Invariant: that of [`Part`], for the entries that `before` and `walk` have left.
struct PartIter<I: Items> {
    before: Option<Place>,
    walk: RangeWalk<I::Key, I::Value>,
    items: PhantomData<I>,
}

impl<I: Items> Part<I> {
    /// # Safety
    /// The invariant holds for all entries of the tree.
    unsafe fn whole<A: Allocator>(tree: &Tree<I::Key, I::Value, A>) -> Self {
        Part {
            piece: Piece::whole(tree),
            items: PhantomData,
        }
    }

    /// The items, after which the part is empty.
    fn take(&mut self) -> PartIter<I> {
        let Some(piece) = self.piece.take() else {
            return PartIter {
                before: None,
                walk: RangeWalk::NONE,
                items: PhantomData,
            };
        };
        // SAFETY: by the invariant the nodes are as they were.
        let (before, edges, form, root) = unsafe { piece.edges() };
        PartIter {
            before,
            // SAFETY: these are edges of the tree, and the nodes stay as they are.
            walk: unsafe { RangeWalk::between_edges(form, root, edges) },
            items: PhantomData,
        }
    }
}

impl<I: Items> Drop for Part<I> {
    fn drop(&mut self) {
        if I::OWNS {
            drop(self.take());
        }
    }
}

impl<I: Items> Iterator for PartIter<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        let (key, value) = match self.before.take() {
            Some(place) => self.walk.entry(place),
            None => self.walk.next()?,
        };
        // SAFETY: by the invariant the entry may be given out, and it is not among those left any
        // more.
        Some(unsafe { I::item(key, value) })
    }
}

impl<I: Items> Drop for PartIter<I> {
    /// Drops the entries left, if they are owned. When one drop panics, the others still run.
    fn drop(&mut self) {
        struct Rest<'a, I: Items>(&'a mut PartIter<I>);
        impl<I: Items> Drop for Rest<'_, I> {
            fn drop(&mut self) {
                self.0.for_each(drop);
            }
        }
        if I::OWNS && const { needs_drop::<I::Key>() || needs_drop::<I::Value>() } {
            let rest = Rest(self);
            rest.0.for_each(drop);
        }
    }
}

impl<I: Items + Send> UnindexedProducer for Part<I> {
    type Item = I::Item;

    fn split(mut self) -> (Self, Option<Self>) {
        // SAFETY: by the invariant the nodes are as they were.
        let second = self
            .piece
            .as_mut()
            .and_then(|piece| unsafe { piece.split() });
        let second = second.map(|piece| Part {
            piece: Some(piece),
            items: PhantomData,
        });
        (self, second)
    }

    fn fold_with<F: Folder<I::Item>>(mut self, folder: F) -> F {
        folder.consume_iter(self.take())
    }
}

/// The borrowed entries of a map, in parallel: what `par_iter` and `par_iter_mut` give.
pub struct ParIter<I: Items> {
    part: Part<I>,
}

impl<I: Items> fmt::Debug for ParIter<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParIter").finish_non_exhaustive()
    }
}

impl<I: Items + Send> ParallelIterator for ParIter<I> {
    type Item = I::Item;

    fn drive_unindexed<C: UnindexedConsumer<I::Item>>(self, consumer: C) -> C::Result {
        bridge_unindexed(self.part, consumer)
    }
}

/// The owned entries of a map, in parallel: what `into_par_iter` gives.
#[derive(Debug)]
pub struct IntoParIter<K, V, A: Allocator = Global> {
    tree: Tree<K, V, A>,
}

impl<K: Send, V: Send, A: Allocator + Send> ParallelIterator for IntoParIter<K, V, A> {
    type Item = (K, V);

    fn drive_unindexed<C: UnindexedConsumer<(K, V)>>(self, consumer: C) -> C::Result {
        let mut tree = self.tree;
        // SAFETY: the tree forgets its entries, and keeps its nodes until all parts are gone: until
        // `bridge_unindexed` returns or unwinds, since it waits for all threads.
        let part = unsafe { Part::<Owned<K, V>>::whole(&tree) };
        tree.forget_entries();
        bridge_unindexed(part, consumer)
    }
}

impl<'a, K: Sync, V: Sync, A: Allocator> IntoParallelIterator for &'a CTreeMap<K, V, A> {
    type Item = (&'a K, &'a V);
    type Iter = ParIter<Shared<'a, K, V>>;

    /// The entries, in parallel. `collect` and the like keep their order.
    ///
    /// # Examples
    /// ```
    /// use rayon::prelude::*;
    ///
    /// let mut map: ctree::CTreeMap<u64, u64> = (0..1000u64).into_par_iter().map(|n| (n,
    /// n)).collect(); map.par_iter_mut().for_each(|(_, value)| *value += 1);
    /// assert_eq!(map.par_iter().map(|(_, value)| value).sum::<u64>(), 500_500);
    /// assert_eq!(map.into_par_iter().filter(|(key, _)| key % 2 == 0).count(), 500);
    /// ```
    fn into_par_iter(self) -> Self::Iter {
        ParIter {
            // SAFETY: the map is borrowed shared for `'a`.
            part: unsafe { Part::whole(&self.tree) },
        }
    }
}

impl<'a, K: Sync, V: Send, A: Allocator> IntoParallelIterator for &'a mut CTreeMap<K, V, A> {
    type Item = (&'a K, &'a mut V);
    type Iter = ParIter<Exclusive<'a, K, V>>;

    /// The entries with values to change, in parallel.
    fn into_par_iter(self) -> Self::Iter {
        ParIter {
            // SAFETY: the map is borrowed mutably for `'a`, and a part is split into parts without
            // common entries.
            part: unsafe { Part::whole(&self.tree) },
        }
    }
}

impl<K: Send, V: Send, A: Allocator + Send> IntoParallelIterator for CTreeMap<K, V, A> {
    type Item = (K, V);
    type Iter = IntoParIter<K, V, A>;

    /// The owned entries, in parallel. The nodes are freed at the end.
    fn into_par_iter(self) -> Self::Iter {
        IntoParIter { tree: self.tree }
    }
}

/// Entries in the order of their keys, of equal keys the last one: collected and sorted in
/// parallel.
fn sorted<K: Ord + Send, V: Send>(
    entries: impl IntoParallelIterator<Item = (K, V)>,
) -> Vec<(K, V)> {
    let mut entries: Vec<(K, V)> = entries.into_par_iter().collect();
    sort_in_parallel(&mut entries);
    keep_last(&mut entries);
    entries
}

impl<K: Ord + Send, V: Send> FromParallelIterator<(K, V)> for CTreeMap<K, V> {
    /// Builds a map from entries in any order; of equal keys the last entry stays. Entries are
    /// collected and sorted in parallel.
    fn from_par_iter<I: IntoParallelIterator<Item = (K, V)>>(entries: I) -> Self {
        CTreeMap::from_ascending(sorted(entries), Global, Options::PLAIN)
    }
}

impl<K: Ord + Send, V: Send, A: Allocator> ParallelExtend<(K, V)> for CTreeMap<K, V, A> {
    /// Inserts entries, of equal keys the last one. They are collected and sorted in parallel, then
    /// inserted in order.
    fn par_extend<I: IntoParallelIterator<Item = (K, V)>>(&mut self, entries: I) {
        self.insert_many(sorted(entries));
    }
}

impl<'a, K, V, A: Allocator> ParallelExtend<(&'a K, &'a V)> for CTreeMap<K, V, A>
where
    K: 'a + Ord + Copy + Send + Sync,
    V: 'a + Copy + Send + Sync,
{
    /// As for owned entries.
    fn par_extend<I: IntoParallelIterator<Item = (&'a K, &'a V)>>(&mut self, entries: I) {
        let entries = entries.into_par_iter();
        self.par_extend(entries.map(|(key, value)| (*key, *value)));
    }
}
