//! Adapters of the ordered maps.

use std::convert::identity;

use crate::ordered_map::{Key, OrderedMap};

/// `ctree`'s dynamic map, in names of comparisons.
pub const OURS: &str = "ctree";
/// std's map in names of comparisons.
pub const BTREEMAP: &str = "btreemap";
pub const BTREEMAP_NAME: &str = "std BTreeMap";

/// Implements [`OrderedMap`] for a map with std's interface, with further methods `$own`. `$stored`
/// makes what the map takes for a key or a reference to one, and `$shown` turns it back.
macro_rules! adapter {
    ($($map:ident)::+ $({ $($own:tt)* })?) => {
        adapter!([K: Key] K, $($map)::+<K, u64>, identity, identity, { $($($own)*)? });
    };
    ([$($bound:tt)*] $K:ty, $map:ty, $stored:path, $shown:path, { $($own:tt)* }) => {
        impl<$($bound)*> OrderedMap<$K> for $map {
            #[inline]
            fn get(&self, key: &$K) -> Option<&u64> {
                <$map>::get(self, $stored(key))
            }

            #[inline]
            fn insert(&mut self, key: $K, value: u64) -> Option<u64> {
                <$map>::insert(self, $stored(key), value)
            }

            #[inline]
            fn remove(&mut self, key: &$K) -> Option<u64> {
                <$map>::remove(self, $stored(key))
            }

            #[inline]
            fn for_each(&self, mut visit: impl FnMut(&$K, &u64)) {
                for (key, value) in self.iter() {
                    let key = $shown(key);
                    visit(&key, value);
                }
            }

            #[inline]
            fn for_each_from(&self, start: &$K, count: usize, mut visit: impl FnMut(&$K, &u64)) {
                for (key, value) in self.range($stored(start)..).take(count) {
                    let key = $shown(key);
                    visit(&key, value);
                }
            }

            $($own)*
        }
    };
}

adapter!(std::collections::BTreeMap);

adapter!(ctree::CTreeMap {
    #[inline]
    fn get_many(&self, keys: &[K], mut use_value: impl FnMut(Option<&u64>)) {
        self.get_many_with(keys, |_, value| use_value(value));
    }
});

#[cfg(feature = "indexset")]
adapter!(indexset::BTreeMap);

/// bbtree, which looks up by inline keys and in batches; and its map in a file.
#[cfg(feature = "bbtree")]
pub mod bbtree {
    use std::convert::identity;
    use std::fs::File;
    use std::io::{self, BufWriter, Write};

    use bbtree::file::{FileMap, FileWriter};
    use bbtree::unsync::BBTreeMap;

    use super::{Key, OrderedMap};

    /// Calls `use_value` with the value of each of `keys`: `get_many` wants them as an array.
    #[inline(always)]
    fn in_batches<'m, K>(
        keys: &[K],
        get_many: impl Fn([&K; BATCH]) -> [Option<&'m u64>; BATCH],
        get: impl Fn(&K) -> Option<&'m u64>,
        mut use_value: impl FnMut(Option<&u64>),
    ) {
        let (batches, rest) = keys.as_chunks();
        for batch in batches {
            let values = get_many(batch.each_ref());
            values.into_iter().for_each(&mut use_value);
        }
        rest.iter().map(get).for_each(use_value);
    }

    const BATCH: usize = 32;

    adapter!(BBTreeMap {
        #[inline]
        fn get_many(&self, keys: &[K], use_value: impl FnMut(Option<&u64>)) {
            let one = |key: &K| BBTreeMap::get(self, key);
            in_batches(keys, |keys| BBTreeMap::get_many(self, keys), one, use_value);
        }
    });

    pub fn write_file(map: &BBTreeMap<u64, u64>, file: File) -> io::Result<()> {
        let mut out = BufWriter::new(file);
        FileWriter::from(map).write(|bytes| out.write_all(bytes))?;
        out.flush()
    }

    /// Calls `use_value` with the value of each of `keys` in a file map, in their order.
    #[inline]
    pub fn get_many_of_file(
        map: &FileMap<'_, u64, u64>,
        keys: &[u64],
        use_value: impl FnMut(Option<&u64>),
    ) {
        let one = |key: &u64| map.get(key);
        in_batches(keys, |keys| map.get_many(keys), one, use_value);
    }
}

/// brie-tree, a B+ tree for integer keys alone, which reserves the largest key.
#[cfg(feature = "brie-tree")]
mod brie {
    use std::borrow::Borrow;

    use brie_tree::BTree;
    use brie_tree::nonmax::NonMaxU64;

    use super::OrderedMap;

    #[inline]
    fn stored(key: impl Borrow<u64>) -> NonMaxU64 {
        NonMaxU64::new(*key.borrow()).expect("no workload uses the largest key")
    }

    adapter!([] u64, BTree<NonMaxU64, u64>, stored, u64::from, {});
}
