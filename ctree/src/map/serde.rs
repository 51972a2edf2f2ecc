//! `serde` for [`CTreeMap`]: a map of its entries in order, as std's maps write themselves.
//!
//! Reading is streaming. Input that a map wrote is in order and goes straight into full nodes; from
//! the first key on that is not greater than the one before it, entries are inserted one by one.
//! The number of entries that the input announces is not believed: memory grows with what has been
//! read.

use core::cmp::Ordering;
use core::fmt;
use core::marker::PhantomData;

use allocator_api2::alloc::{Allocator, Global};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::CTreeMap;
use crate::tree::{Builder, Options};

impl<K: Serialize, V: Serialize, A: Allocator> Serialize for CTreeMap<K, V, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for CTreeMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CTreeMap<K, V>, D::Error> {
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

/// Makes a map of what it is shown.
struct MapVisitor<K, V>(PhantomData<fn() -> (K, V)>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for MapVisitor<K, V> {
    type Value = CTreeMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut entries: M) -> Result<CTreeMap<K, V>, M::Error> {
        read_ascending_first(|| entries.next_entry())
    }
}

/// Builds a map from what `next_entry` gives: the ascending part in O(n), the rest by insertion. Of
/// equal keys the last value stays.
pub(crate) fn read_ascending_first<K: Ord, V, E>(
    mut next_entry: impl FnMut() -> Result<Option<(K, V)>, E>,
) -> Result<CTreeMap<K, V>, E> {
    let mut builder = Builder::<K, V, _>::new_in(Global, Options::PLAIN);
    let disordered = loop {
        let Some((key, value)) = next_entry()? else {
            break None;
        };
        let ascends = builder
            .last_key()
            .is_none_or(|last| last.cmp(&key) == Ordering::Less);
        if !ascends {
            break Some((key, value));
        }
        builder.push(key, value);
    };
    let mut map = CTreeMap {
        tree: builder.finish(),
    };
    if let Some((key, value)) = disordered {
        map.insert(key, value);
        while let Some((key, value)) = next_entry()? {
            map.insert(key, value);
        }
    }
    Ok(map)
}
