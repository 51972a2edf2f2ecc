//! Rival: brie-tree, a B+ tree for integer keys alone, of which the largest is its own.

use brie_tree::BTree;
use brie_tree::nonmax::NonMaxU64;

use crate::ordered_map::{Kind, OrderedMap};

/// Its name in names of comparisons.
const SLUG: &str = "brie";

/// Its name in words.
const NAME: &str = "brie-tree";

pub(super) const fn kind() -> Kind<u64> {
    Kind::of::<BTree<NonMaxU64, u64>>(SLUG, NAME)
}

/// `key` as its type of keys.
///
/// # Panics
/// When `key` is the largest integer.
#[inline]
fn key_of(key: u64) -> NonMaxU64 {
    NonMaxU64::new(key).expect("no workload uses the largest key")
}

impl OrderedMap<u64> for BTree<NonMaxU64, u64> {
    #[inline]
    fn get(&self, key: &u64) -> Option<&u64> {
        BTree::get(self, key_of(*key))
    }

    #[inline]
    fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        BTree::insert(self, key_of(key), value)
    }

    #[inline]
    fn remove(&mut self, key: &u64) -> Option<u64> {
        BTree::remove(self, key_of(*key))
    }

    #[inline]
    fn for_each(&self, mut visit: impl FnMut(&u64, &u64)) {
        for (key, value) in self {
            visit(&key.get(), value);
        }
    }

    #[inline]
    fn for_each_from(&self, start: &u64, count: usize, mut visit: impl FnMut(&u64, &u64)) {
        for (key, value) in self.range(key_of(*start)..).take(count) {
            visit(&key.get(), value);
        }
    }
}
