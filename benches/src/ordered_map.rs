//! Ordered maps as the workloads see them: one trait, an adapter for each map in
//! [`mod@crate::rivals::maps`].
//!
//! [`OrderedMap`] has the single operations. Workloads time whole passes over thousands of them
//! ([`Passes`], [`ManyPasses`]), compiled for each map: the one virtual call of a pass does not
//! show. Values are `u64` everywhere.

use std::fmt::Debug;

use crate::queries::Chain;

pub trait Key: Ord + Clone + Debug + 'static {
    /// A number that is read from the key: passes over entries must touch their keys.
    fn digest(&self) -> u64;
}

impl Key for u64 {
    #[inline]
    fn digest(&self) -> u64 {
        *self
    }
}

impl Key for (u32, u64) {
    #[inline]
    fn digest(&self) -> u64 {
        u64::from(self.0) ^ self.1
    }
}

impl Key for String {
    #[inline]
    fn digest(&self) -> u64 {
        self.len() as u64
    }
}

pub trait OrderedMap<K>: Default {
    fn get(&self, key: &K) -> Option<&u64>;

    /// Calls `use_value` with the value of each of `keys` in order, all at once if the map can.
    #[inline]
    fn get_many(&self, keys: &[K], mut use_value: impl FnMut(Option<&u64>)) {
        for key in keys {
            use_value(self.get(key));
        }
    }

    /// Adds an entry and returns the value that it replaces.
    fn insert(&mut self, key: K, value: u64) -> Option<u64>;

    /// Removes an entry and returns its value.
    fn remove(&mut self, key: &K) -> Option<u64>;

    /// Visits all entries in order, in the map's own `for` loop.
    fn for_each(&self, visit: impl FnMut(&K, &u64));

    /// Visits the first `count` entries with keys not less than `start` in the same way.
    fn for_each_from(&self, start: &K, count: usize, visit: impl FnMut(&K, &u64));
}

type MakeMany<K> = fn(&[Vec<K>]) -> Box<dyn ManyPasses<K>>;

/// A kind of map, to make and measure.
#[derive(Debug)]
pub struct Kind<K> {
    pub slug: &'static str,
    pub(crate) name: &'static str,
    /// Makes an empty map.
    pub empty: fn() -> Box<dyn Passes<K>>,
    /// Makes a small map for each group of keys, filled as [`Kind::with_keys`] does.
    pub many: MakeMany<K>,
}

impl<K: Key> Kind<K> {
    pub const fn of<M: OrderedMap<K> + 'static>(slug: &'static str, name: &'static str) -> Self {
        Kind {
            slug,
            name,
            empty: || Box::new(M::default()),
            many: |groups| {
                let filled = groups.iter().map(|keys| {
                    let mut map = M::default();
                    map.insert_all(keys);
                    map
                });
                Box::new(filled.collect::<Vec<M>>())
            },
        }
    }

    /// A map with `keys`, inserted in their order, each with the [value of](value_of) its place.
    pub fn with_keys(&self, keys: &[K]) -> Box<dyn Passes<K>> {
        let mut map = (self.empty)();
        map.insert_all(keys);
        map
    }
}

/// The value of the `place`-th key: different for each, and its lowest bit, which chooses the next
/// query of a chain, is as good as random.
#[inline]
pub fn value_of(place: usize) -> u64 {
    (place as u64)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(32)
}

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
