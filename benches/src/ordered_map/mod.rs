//! Ordered maps as the workloads see them: one trait, an adapter for each map in
//! [`mod@crate::rivals::maps`].
//!
//! [`OrderedMap`] has the single operations. Workloads time whole passes over thousands of them
//! ([`Passes`], [`ManyPasses`]), compiled for each map: the one virtual call of a pass does not
//! show. Values are `u64` everywhere.

mod passes;

use std::fmt::Debug;

pub use passes::{ManyPasses, Passes, Updates};
pub(crate) use passes::{add_in_order, low_half};

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
