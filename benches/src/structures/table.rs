//! A hash table whose buckets are chains of boxes, as textbooks have it.

use ccmorph::{Morph, MorphError, Report, TreeNode};

use super::Structure;

/// One entry: 24 bytes.
#[derive(Clone, Debug, TreeNode)]
pub struct Entry {
    key: u64,
    value: u64,
    #[child]
    next: Option<Box<Entry>>,
}

const _: () = assert!(size_of::<Entry>() == 24);

/// Entries for each bucket: a key that is there is the 2.5th of its chain on average.
pub const LOAD_FACTOR: usize = 4;

/// A map from `u64` to `u64` in chains. It does not grow.
#[derive(Clone, Debug)]
pub struct Table {
    buckets: Vec<Option<Box<Entry>>>,
}

impl Table {
    /// A table with buckets for `entries` at [`LOAD_FACTOR`], at least one.
    pub fn for_entries(entries: usize) -> Table {
        let buckets = entries.div_ceil(LOAD_FACTOR).max(1);
        Table {
            buckets: (0..buckets).map(|_| None).collect(),
        }
    }

    /// A table at [`LOAD_FACTOR`] with `keys`, inserted in their order; the value of a key is the
    /// key with its halves exchanged.
    ///
    /// A key that comes twice is there twice, and found where it came last.
    pub fn with_keys(keys: &[u64]) -> Table {
        let mut table = Table::for_entries(keys.len());
        for &key in keys {
            table.push(key, key.rotate_left(32));
        }
        table
    }

    /// Puts an entry in front of its chain.
    pub fn push(&mut self, key: u64, value: u64) {
        let bucket = self.bucket(key);
        let next = self.buckets[bucket].take();
        self.buckets[bucket] = Some(Box::new(Entry { key, value, next }));
    }

    /// The value of `key`. Walks its chain as far as the key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u64> {
        let mut rest = self.buckets[self.bucket(key)].as_deref();
        while let Some(entry) = rest {
            if entry.key == key {
                return Some(entry.value);
            }
            rest = entry.next.as_deref();
        }
        None
    }

    /// The chain of `key`, by multiplication and shift.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the high half of the product is below the number of buckets"
    )]
    fn bucket(&self, key: u64) -> usize {
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((u128::from(hash) * self.buckets.len() as u128) >> 64) as usize
    }
}

impl Structure for Table {
    fn copy(&self) -> Self {
        self.clone()
    }

    fn morph(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError> {
        morph.run(&mut self.buckets, Entry::children)
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half is what is asked for"
    )]
    fn answer(&self, query: u64) -> u32 {
        self.get(query).map_or(u32::MAX, |value| value as u32)
    }
}
