//! A hash table whose buckets are chains of boxes, as textbooks have it.

use ccmorph::{Morph, MorphError, Report, TreeNode};

use super::Structure;
use crate::keys::bucket_of;
use crate::ordered_map::low_half;

#[derive(Clone, Debug, TreeNode)]
struct Entry {
    key: u64,
    value: u64,
    #[child]
    next: Option<Box<Entry>>,
}

const _: () = assert!(size_of::<Entry>() == 24);

const LOAD_FACTOR: usize = 4;

/// A map from `u64` to `u64` in chains. It does not grow.
#[derive(Clone, Debug)]
pub struct Table {
    buckets: Vec<Option<Box<Entry>>>,
}

impl Table {
    /// A table with `entries`. A key that comes twice is found where it came last.
    pub fn with_entries(entries: impl ExactSizeIterator<Item = (u64, u64)>) -> Table {
        let buckets = entries.len().div_ceil(LOAD_FACTOR).max(1);
        let mut table = Table {
            buckets: (0..buckets).map(|_| None).collect(),
        };
        for (key, value) in entries {
            let bucket = bucket_of(key, buckets);
            let next = table.buckets[bucket].take();
            table.buckets[bucket] = Some(Box::new(Entry { key, value, next }));
        }
        table
    }

    /// A table with `keys`; the value of a key is the key with its halves exchanged.
    pub fn with_keys(keys: &[u64]) -> Table {
        Table::with_entries(keys.iter().map(|&key| (key, key.rotate_left(32))))
    }

    /// The value of `key`. Walks its chain as far as the key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<&u64> {
        let mut rest = self.buckets[bucket_of(key, self.buckets.len())].as_deref();
        while let Some(entry) = rest {
            if entry.key == key {
                return Some(&entry.value);
            }
            rest = entry.next.as_deref();
        }
        None
    }
}

impl Structure for Table {
    fn morph(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError> {
        morph.run(&mut self.buckets, Entry::children)
    }

    #[inline]
    fn answer(&self, query: u64) -> u32 {
        low_half(self.get(query))
    }
}
