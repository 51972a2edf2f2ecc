//! Parallel iterators over sets, behind the feature `rayon`: those of the map, without its values.

use allocator_api2::alloc::{Allocator, Global};
use rayon::iter::{
    FromParallelIterator, IntoParallelIterator, Map, ParallelExtend, ParallelIterator,
};

use super::CTreeSet;
use crate::map::CTreeMap;

/// The parallel iterator of a map of type `M` with items of type `I`, that keeps keys of type `K`.
type Keys<M, I, K> = Map<<M as IntoParallelIterator>::Iter, fn(I) -> K>;

impl<'a, K: Sync, A: Allocator> IntoParallelIterator for &'a CTreeSet<K, A> {
    type Item = &'a K;
    type Iter = Keys<&'a CTreeMap<K, (), A>, (&'a K, &'a ()), &'a K>;

    /// The keys, in parallel. `collect` and the like keep their order.
    fn into_par_iter(self) -> Self::Iter {
        self.map.into_par_iter().map(|(key, ())| key)
    }
}

impl<K: Send, A: Allocator + Send> IntoParallelIterator for CTreeSet<K, A> {
    type Item = K;
    type Iter = Keys<CTreeMap<K, (), A>, (K, ()), K>;

    /// The owned keys, in parallel.
    fn into_par_iter(self) -> Self::Iter {
        self.map.into_par_iter().map(|(key, ())| key)
    }
}

impl<K: Ord + Send> FromParallelIterator<K> for CTreeSet<K, Global> {
    /// Builds a set from keys in any order; of equal keys the last one stays. Keys are collected
    /// and sorted in parallel.
    fn from_par_iter<I: IntoParallelIterator<Item = K>>(keys: I) -> Self {
        CTreeSet {
            map: keys.into_par_iter().map(|key| (key, ())).collect(),
        }
    }
}

impl<K: Ord + Send, A: Allocator> ParallelExtend<K> for CTreeSet<K, A> {
    /// Adds keys. They are collected and sorted in parallel, then added in order.
    fn par_extend<I: IntoParallelIterator<Item = K>>(&mut self, keys: I) {
        self.map
            .par_extend(keys.into_par_iter().map(|key| (key, ())));
    }
}
