//! Ours, in the rivals' form: `ctree`'s dynamic map.

use ctree::CTreeMap;

use crate::ordered_map::{Key, Kind, OrderedMap};

/// Its name in complaints.
pub const NAME: &str = "ctree";

pub(super) const fn kind<K: Key>() -> Kind<K> {
    Kind::of::<CTreeMap<K, u64>>(NAME, NAME)
}

impl<K: Key> OrderedMap<K> for CTreeMap<K, u64> {
    #[inline]
    fn get(&self, key: &K) -> Option<&u64> {
        CTreeMap::get(self, key)
    }

    #[inline]
    fn get_many(&self, keys: &[K], mut use_value: impl FnMut(Option<&u64>)) {
        self.get_many_with(keys, |_, value| use_value(value));
    }

    #[inline]
    fn insert(&mut self, key: K, value: u64) -> Option<u64> {
        CTreeMap::insert(self, key, value)
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<u64> {
        CTreeMap::remove(self, key)
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
