//! Whole passes over a map or over many small ones: what is timed.

use super::{Key, OrderedMap, value_of};
use crate::queries::Chain;

/// Passes over one map. Each returns a sum over its answers, which all maps must agree on.
pub trait Passes<K> {
    fn get_dependent(&self, chain: &Chain<K>) -> u64;

    fn get_independent(&self, queries: &[K]) -> u64;

    /// Looks `queries` up all at once, if the map can.
    fn get_many(&self, queries: &[K]) -> u64;

    fn iterate(&self) -> u64;

    /// Visits the first `count` entries from each of `starts` on.
    fn ranges(&self, starts: &[K], count: usize) -> u64;

    /// Inserts `keys` one by one, each with the [value of](value_of) its place.
    fn insert_all(&mut self, keys: &[K]) -> u64;

    fn remove_all(&mut self, keys: &[K]) -> u64;

    /// Gets, inserts and removes in turns, and leaves the map with the keys that it had.
    fn mixed(&mut self, updates: &Updates<K>) -> u64;
}

/// Operations, half of them lookups and half updates, that leave a map with the keys that it had.
/// It gets, inserts `arriving[0]`, gets, removes `leaving[0]`, and so on, and then all goes back.
#[derive(Clone, Debug)]
pub struct Updates<K> {
    /// Keys that stay in the map, in the order of the lookups: two for each pair of updates.
    pub queries: Vec<K>,
    /// Keys that are in the map before and afterwards.
    pub leaving: Vec<K>,
    /// Keys that are not, as many.
    pub arriving: Vec<K>,
}

impl<K> Updates<K> {
    pub fn operations(&self) -> usize {
        2 * 4 * self.leaving.len()
    }
}

impl<K: Key, M: OrderedMap<K>> Passes<K> for M {
    fn get_dependent(&self, chain: &Chain<K>) -> u64 {
        chain.follow(|key| low_half(self.get(key)))
    }

    fn get_independent(&self, queries: &[K]) -> u64 {
        let answers = queries.iter().map(|key| self.get(key).copied());
        answers.fold(0, add_in_order)
    }

    fn get_many(&self, queries: &[K]) -> u64 {
        let mut sum = 0;
        OrderedMap::get_many(self, queries, |value| {
            sum = add_in_order(sum, value.copied());
        });
        sum
    }

    fn iterate(&self) -> u64 {
        // Not in order, so that the sum is no chain.
        let mut sum = 0_u64;
        self.for_each(|key, value| sum = sum.wrapping_add(key.digest() ^ value));
        sum
    }

    fn ranges(&self, starts: &[K], count: usize) -> u64 {
        let mut sum = 0_u64;
        for start in starts {
            let mut of_range = 0_u64;
            self.for_each_from(start, count, |key, value| {
                of_range = of_range.wrapping_add(key.digest() ^ value);
            });
            sum = add_in_order(sum, Some(of_range));
        }
        sum
    }

    fn insert_all(&mut self, keys: &[K]) -> u64 {
        let keys = keys.iter().enumerate();
        let answers = keys.map(|(place, key)| self.insert(key.clone(), value_of(place)));
        answers.fold(0, add_in_order)
    }

    fn remove_all(&mut self, keys: &[K]) -> u64 {
        let answers = keys.iter().map(|key| self.remove(key));
        answers.fold(0, add_in_order)
    }

    fn mixed(&mut self, updates: &Updates<K>) -> u64 {
        let there = updates.arriving.iter().zip(&updates.leaving);
        let back = updates.leaving.iter().zip(&updates.arriving);
        let queries = updates.queries.chunks_exact(2);
        let mut sum = 0;
        for ((queries, (new, old)), place) in queries.zip(there.chain(back)).zip(0..) {
            sum = add_in_order(sum, self.get(&queries[0]).copied());
            sum = add_in_order(sum, self.insert(new.clone(), value_of(place)));
            sum = add_in_order(sum, self.get(&queries[1]).copied());
            let removed = self.remove(old);
            sum = add_in_order(sum, removed.map(|_value| 0));
        }
        sum
    }
}

pub trait ManyPasses<K> {
    /// Looks keys up, each in the map of the number beside it.
    fn get(&self, queries: &[(usize, K)]) -> u64;

    fn iterate(&self) -> u64;

    /// Makes a map for each of `groups`, inserts its keys, and drops it.
    fn build_and_drop(&self, groups: &[Vec<K>]) -> u64;
}

impl<K: Key, M: OrderedMap<K>> ManyPasses<K> for Vec<M> {
    fn get(&self, queries: &[(usize, K)]) -> u64 {
        let answers = queries
            .iter()
            .map(|(map, key)| self[*map].get(key).copied());
        answers.fold(0, add_in_order)
    }

    fn iterate(&self) -> u64 {
        self.iter().map(Passes::iterate).fold(0, u64::wrapping_add)
    }

    fn build_and_drop(&self, groups: &[Vec<K>]) -> u64 {
        groups.iter().fold(0, |sum, keys| {
            let mut map = M::default();
            sum.wrapping_add(map.insert_all(keys))
        })
    }
}

/// Half of a value: the answer that chooses the next query.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "asked for")]
pub(crate) fn low_half(value: Option<&u64>) -> u32 {
    value.map_or(u32::MAX, |&value| value as u32)
}

/// `sum` with one more answer; another order of the same answers gives another sum.
#[inline]
pub(crate) fn add_in_order(sum: u64, value: Option<u64>) -> u64 {
    sum.rotate_left(1).wrapping_add(value.unwrap_or(1))
}
