//! `serde` for maps and sets: maps of entries and sequences of keys in order, as those of std.
//!
//! Reading is streaming. Ascending input goes straight into full nodes; after the first key that is
//! not greater than the one before it, entries are inserted one by one. Of equal keys the last
//! value stays. Announced lengths are ignored: memory grows with what has been read.

use core::cmp::Ordering;
use core::fmt;
use core::marker::PhantomData;

use allocator_api2::alloc::{Allocator, Global};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::frozen::{FrozenCTreeMap, FrozenCTreeSet};
use crate::map::CTreeMap;
use crate::set::CTreeSet;
use crate::tree::{Builder, Options};

macro_rules! impl_serialize {
    ($([$($params:tt)*] $type:ty, $collect:ident;)*) => {$(
        impl<$($params)*> Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.$collect(self)
            }
        }
    )*};
}

impl_serialize! {
    [K: Serialize, V: Serialize, A: Allocator] CTreeMap<K, V, A>, collect_map;
    [K: Serialize, V: Serialize] FrozenCTreeMap<K, V>, collect_map;
    [K: Serialize, A: Allocator] CTreeSet<K, A>, collect_seq;
    [K: Serialize] FrozenCTreeSet<K>, collect_seq;
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for CTreeMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CTreeMap<K, V>, D::Error> {
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de>
    for FrozenCTreeMap<K, V>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        CTreeMap::deserialize(deserializer).map(Self::from)
    }
}

impl<'de, K: Deserialize<'de> + Ord> Deserialize<'de> for CTreeSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CTreeSet<K>, D::Error> {
        deserializer.deserialize_seq(SetVisitor(PhantomData))
    }
}

impl<'de, K: Deserialize<'de> + Ord> Deserialize<'de> for FrozenCTreeSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        CTreeSet::deserialize(deserializer).map(Self::from)
    }
}

struct MapVisitor<K, V>(PhantomData<fn() -> (K, V)>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for MapVisitor<K, V> {
    type Value = CTreeMap<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut entries: M) -> Result<CTreeMap<K, V>, M::Error> {
        read(|| entries.next_entry())
    }
}

struct SetVisitor<K>(PhantomData<fn() -> K>);

impl<'de, K: Deserialize<'de> + Ord> Visitor<'de> for SetVisitor<K> {
    type Value = CTreeSet<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut keys: S) -> Result<CTreeSet<K>, S::Error> {
        let map = read(|| Ok(keys.next_element()?.map(|key| (key, ()))))?;
        Ok(CTreeSet { map })
    }
}

/// Builds a map from what `next_entry` gives: the ascending part in O(n), the rest by insertion.
fn read<K: Ord, V, E>(
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
