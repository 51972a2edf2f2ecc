//! Rival: std's `BTreeMap`.

use std::collections::BTreeMap;

use crate::ordered_map::{Key, Kind, OrderedMap};

/// Its name in names of comparisons.
pub const SLUG: &str = "btreemap";

/// Its name in words.
pub const NAME: &str = "std BTreeMap";

pub(super) const fn kind<K: Key>() -> Kind<K> {
    Kind::of::<BTreeMap<K, u64>>(SLUG, NAME)
}

impl<K: Key> OrderedMap<K> for BTreeMap<K, u64> {
    #[inline]
    fn get(&self, key: &K) -> Option<&u64> {
        BTreeMap::get(self, key)
    }

    #[inline]
    fn insert(&mut self, key: K, value: u64) -> Option<u64> {
        BTreeMap::insert(self, key, value)
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<u64> {
        BTreeMap::remove(self, key)
    }

    #[inline]
    fn for_each(&self, mut visit: impl FnMut(&K, &u64)) {
        for (key, value) in self {
            visit(key, value);
        }
    }

    #[inline]
    fn for_each_from(&self, start: &K, count: usize, mut visit: impl FnMut(&K, &u64)) {
        for (key, value) in self.range(start..).take(count) {
            visit(key, value);
        }
    }
}
