//! Difference, intersection, union and subsets of two [`FrozenCTreeSet`]s.

use super::set::{FrozenCTreeSet, Iter};
use crate::algebra::{self, SortedSet, impl_set_algebra};

/// The keys of one set that are not in the other, in order.
pub type Difference<'a, K> = algebra::Difference<Iter<'a, K>, &'a K, &'a FrozenCTreeSet<K>>;

/// The keys that are in both of two sets, in order.
pub type Intersection<'a, K> = algebra::Intersection<Iter<'a, K>, &'a K, &'a FrozenCTreeSet<K>>;

/// The keys that are in one of two sets and not in both, in order.
pub type SymmetricDifference<'a, K> = algebra::SymmetricDifference<Iter<'a, K>, &'a K>;

/// The keys that are in at least one of two sets, in order.
pub type Union<'a, K> = algebra::Union<Iter<'a, K>, &'a K>;

impl_set_algebra!(FrozenCTreeSet<K>, |_like, keys| {
    FrozenCTreeSet::from_ascending(keys)
});
