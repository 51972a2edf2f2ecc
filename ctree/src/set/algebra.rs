//! Difference, intersection, union and subsets of two [`CTreeSet`]s.

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeSet;
use super::iter::Iter;
use crate::algebra::{self, SortedSet, impl_set_algebra};
use crate::map::CTreeMap;

/// The keys of one set that are not in the other, in order, from [`CTreeSet::difference`].
pub type Difference<'a, K, A = Global> =
    algebra::Difference<Iter<'a, K>, &'a K, &'a CTreeSet<K, A>>;

/// The keys that are in both of two sets, in order, from [`CTreeSet::intersection`].
pub type Intersection<'a, K, A = Global> =
    algebra::Intersection<Iter<'a, K>, &'a K, &'a CTreeSet<K, A>>;

/// The keys that are in one of two sets and not in both, in order, from
/// [`CTreeSet::symmetric_difference`].
pub type SymmetricDifference<'a, K> = algebra::SymmetricDifference<Iter<'a, K>, &'a K>;

/// The keys that are in at least one of two sets, in order, from [`CTreeSet::union`].
pub type Union<'a, K> = algebra::Union<Iter<'a, K>, &'a K>;

impl_set_algebra!(CTreeSet<K, A>, |like, keys| CTreeSet {
    map: CTreeMap::from_ascending(
        keys.map(|key| (key, ())),
        like.allocator().clone(),
        like.map.tree.options(),
    ),
});
