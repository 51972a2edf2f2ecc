//! The traits that follow from the keys of a set in order, for dynamic and frozen sets.

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
