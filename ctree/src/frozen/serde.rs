//! Serialization, behind the feature `serde`: a map as a map, a set as a sequence, both in the
//! order of the keys.
//!
//! What is read may come from anywhere, so that it is sorted like any other input; that takes O(n)
//! where it is in order, as it is when it was written from here. Of equal keys the last one stays,
//! as in std's maps.

use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::map::FrozenCTreeMap;
use super::set::FrozenCTreeSet;

/// Most bytes that are allocated because of an announced length alone.
const ANNOUNCED_BYTES_MAX: usize = 1 << 20;

/// A vector for as many entries as are announced, as far as that is believed.
fn vec_for<T>(announced: Option<usize>) -> Vec<T> {
    let believed = ANNOUNCED_BYTES_MAX / size_of::<T>().max(1);
    Vec::with_capacity(announced.unwrap_or(0).min(believed))
}

impl<K: Serialize, V: Serialize> Serialize for FrozenCTreeMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self)
    }
}

impl<K: Serialize> Serialize for FrozenCTreeSet<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de>
    for FrozenCTreeMap<K, V>
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<K, V>(PhantomData<(K, V)>);

        impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for Entries<K, V> {
            type Value = FrozenCTreeMap<K, V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = vec_for(map.size_hint());
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(FrozenCTreeMap::from_unsorted_vec(entries))
            }
        }

        deserializer.deserialize_map(Entries(PhantomData))
    }
}

impl<'de, K: Deserialize<'de> + Ord> Deserialize<'de> for FrozenCTreeSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys<K>(PhantomData<K>);

        impl<'de, K: Deserialize<'de> + Ord> Visitor<'de> for Keys<K> {
            type Value = FrozenCTreeSet<K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut keys = vec_for(seq.size_hint());
                while let Some(key) = seq.next_element()? {
                    keys.push((key, ()));
                }
                Ok(FrozenCTreeSet::from_map(FrozenCTreeMap::from_unsorted_vec(
                    keys,
                )))
            }
        }

        deserializer.deserialize_seq(Keys(PhantomData))
    }
}
