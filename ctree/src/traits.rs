//! The traits that follow from the entries of a map, or the keys of a set, in order: for dynamic
//! and frozen maps and sets.

/// Implements the traits of `$map`, whose iterators are `Iter` and `IterMut`, given how it is made
/// from a vector of entries in any order.
macro_rules! impl_map_traits {
    ($map:ident<K, V $(, $alloc:ident)?>, $from_unsorted:path) => {
        impl<K, V> Default for $map<K, V> {
            /// An empty map.
            fn default() -> $map<K, V> {
                $map::new()
            }
        }

        impl<K: Ord, V> FromIterator<(K, V)> for $map<K, V> {
            /// Builds a map from entries in any order; of equal keys the last entry stays.
            ///
            /// Takes O(n log n), O(n) for sorted input. When the order is known,
            /// `from_sorted_iter` also checks it.
            fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> $map<K, V> {
                $from_unsorted(entries.into_iter().collect())
            }
        }

        impl<K: Ord, V, const N: usize> From<[(K, V); N]> for $map<K, V> {
            /// As [`FromIterator`].
            fn from(entries: [(K, V); N]) -> $map<K, V> {
                entries.into_iter().collect()
            }
        }

        impl<K: Ord, V $(, $alloc: Allocator)?> From<$map<K, V $(, $alloc)?>> for BTreeMap<K, V> {
            /// Moves the entries over.
            fn from(map: $map<K, V $(, $alloc)?>) -> Self {
                map.into_iter().collect()
            }
        }

        impl<K: PartialEq, V: PartialEq $(, $alloc: Allocator)?> PartialEq
            for $map<K, V $(, $alloc)?>
        {
            fn eq(&self, other: &Self) -> bool {
                self.len() == other.len() && self.iter().eq(other)
            }
        }

        impl<K: Eq, V: Eq $(, $alloc: Allocator)?> Eq for $map<K, V $(, $alloc)?> {}

        impl<K: PartialOrd, V: PartialOrd $(, $alloc: Allocator)?> PartialOrd
            for $map<K, V $(, $alloc)?>
        {
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                self.iter().partial_cmp(other)
            }
        }

        impl<K: Ord, V: Ord $(, $alloc: Allocator)?> Ord for $map<K, V $(, $alloc)?> {
            fn cmp(&self, other: &Self) -> core::cmp::Ordering {
                self.iter().cmp(other)
            }
        }

        impl<K: core::hash::Hash, V: core::hash::Hash $(, $alloc: Allocator)?> core::hash::Hash
            for $map<K, V $(, $alloc)?>
        {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                state.write_usize(self.len());
                self.iter().for_each(|entry| entry.hash(state));
            }
        }

        impl<K, Q: ?Sized, V $(, $alloc: Allocator)?> core::ops::Index<&Q>
            for $map<K, V $(, $alloc)?>
        where
            K: core::borrow::Borrow<Q> + Ord,
            Q: Ord,
        {
            type Output = V;

            /// The value of `key`.
            ///
            /// # Panics
            /// When the key is not in the map.
            #[inline]
            fn index(&self, key: &Q) -> &V {
                self.get(key).expect("no entry found for key")
            }
        }

        impl<K: fmt::Debug, V: fmt::Debug $(, $alloc: Allocator)?> fmt::Debug
            for $map<K, V $(, $alloc)?>
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self.iter()).finish()
            }
        }

        impl<'a, K, V $(, $alloc: Allocator)?> IntoIterator for &'a $map<K, V $(, $alloc)?> {
            type Item = (&'a K, &'a V);
            type IntoIter = Iter<'a, K, V>;

            #[inline]
            fn into_iter(self) -> Iter<'a, K, V> {
                self.iter()
            }
        }

        impl<'a, K, V $(, $alloc: Allocator)?> IntoIterator for &'a mut $map<K, V $(, $alloc)?> {
            type Item = (&'a K, &'a mut V);
            type IntoIter = IterMut<'a, K, V>;

            #[inline]
            fn into_iter(self) -> IterMut<'a, K, V> {
                self.iter_mut()
            }
        }
    };
}
pub(crate) use impl_map_traits;

/// Implements the traits of `$set`, whose iterator is `Iter`.
macro_rules! impl_set_traits {
    ($set:ident<K $(, $alloc:ident)?>) => {
        impl<K> Default for $set<K> {
            /// An empty set.
            fn default() -> $set<K> {
                $set::new()
            }
        }

        impl<K: Ord> FromIterator<K> for $set<K> {
            /// Builds a set from keys in any order; of equal keys the last one stays.
            fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> $set<K> {
                $set {
                    map: keys.into_iter().map(|key| (key, ())).collect(),
                }
            }
        }

        impl<K: Ord, const N: usize> From<[K; N]> for $set<K> {
            /// As [`FromIterator`].
            fn from(keys: [K; N]) -> $set<K> {
                keys.into_iter().collect()
            }
        }

        impl<K: Ord $(, $alloc: Allocator)?> From<$set<K $(, $alloc)?>>
            for alloc::collections::BTreeSet<K>
        {
            /// Moves the keys over.
            fn from(set: $set<K $(, $alloc)?>) -> Self {
                set.into_iter().collect()
            }
        }

        impl<K: PartialEq $(, $alloc: Allocator)?> PartialEq for $set<K $(, $alloc)?> {
            fn eq(&self, other: &Self) -> bool {
                self.map == other.map
            }
        }

        impl<K: Eq $(, $alloc: Allocator)?> Eq for $set<K $(, $alloc)?> {}

        impl<K: PartialOrd $(, $alloc: Allocator)?> PartialOrd for $set<K $(, $alloc)?> {
            fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
                self.iter().partial_cmp(other)
            }
        }

        impl<K: Ord $(, $alloc: Allocator)?> Ord for $set<K $(, $alloc)?> {
            fn cmp(&self, other: &Self) -> core::cmp::Ordering {
                self.iter().cmp(other)
            }
        }

        impl<K: core::hash::Hash $(, $alloc: Allocator)?> core::hash::Hash
            for $set<K $(, $alloc)?>
        {
            fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
                state.write_usize(self.len());
                self.iter().for_each(|key| key.hash(state));
            }
        }

        impl<K: fmt::Debug $(, $alloc: Allocator)?> fmt::Debug for $set<K $(, $alloc)?> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_set().entries(self).finish()
            }
        }

        impl<'a, K $(, $alloc: Allocator)?> IntoIterator for &'a $set<K $(, $alloc)?> {
            type Item = &'a K;
            type IntoIter = Iter<'a, K>;

            #[inline]
            fn into_iter(self) -> Iter<'a, K> {
                self.iter()
            }
        }
    };
}
pub(crate) use impl_set_traits;
