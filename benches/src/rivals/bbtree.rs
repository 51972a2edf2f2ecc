//! Rival: bbtree, an ordered map for any `Ord`, nearly with std's interface, that looks up by
//! inline keys and in batches; and its map in a file.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use bbtree::file::{FileMap, FileWriter};
use bbtree::unsync::BBTreeMap;

use crate::ordered_map::{Key, Kind, OrderedMap};

/// Its name in names of comparisons.
const SLUG: &str = "bbtree";

/// Its name in words.
const NAME: &str = "bbtree";

/// The slug of its map in a file.
pub const FILE_SLUG: &str = "bbtree_file";

/// The name of its map in a file, in words.
pub const FILE_NAME: &str = "bbtree file map";

/// Keys of one call to `get_many`, which wants them as an array.
const BATCH: usize = 32;

pub(super) const fn kind<K: Key>() -> Kind<K> {
    Kind::of::<BBTreeMap<K, u64>>(SLUG, NAME)
}

impl<K: Key> OrderedMap<K> for BBTreeMap<K, u64> {
    #[inline]
    fn get(&self, key: &K) -> Option<&u64> {
        BBTreeMap::get(self, key)
    }

    #[inline]
    fn get_many(&self, keys: &[K], mut use_value: impl FnMut(Option<&u64>)) {
        let (batches, rest) = keys.as_chunks::<BATCH>();
        for batch in batches {
            for value in BBTreeMap::get_many(self, batch.each_ref()) {
                use_value(value);
            }
        }
        for key in rest {
            use_value(BBTreeMap::get(self, key));
        }
    }

    #[inline]
    fn insert(&mut self, key: K, value: u64) -> Option<u64> {
        BBTreeMap::insert(self, key, value)
    }

    #[inline]
    fn remove(&mut self, key: &K) -> Option<u64> {
        BBTreeMap::remove(self, key)
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

/// Writes `map` into `file`.
///
/// # Errors
/// That of the operating system.
pub fn write_file(map: &BBTreeMap<u64, u64>, file: File) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    FileWriter::from(map).write(|bytes| out.write_all(bytes))?;
    out.flush()
}

/// Calls `use_value` with the value of each of `keys` in a file map, in their order, looked up in
/// batches.
#[inline]
pub fn get_many_of_file(
    map: &FileMap<'_, u64, u64>,
    keys: &[u64],
    mut use_value: impl FnMut(Option<&u64>),
) {
    let (batches, rest) = keys.as_chunks::<BATCH>();
    for batch in batches {
        for value in map.get_many(batch.each_ref()) {
            use_value(value);
        }
    }
    for key in rest {
        use_value(map.get(key));
    }
}
