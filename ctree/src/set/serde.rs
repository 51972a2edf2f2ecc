//! `serde` for [`CTreeSet`]: a sequence of its keys in order, as std's sets write themselves. Read
//! as a map is: streaming.

use core::fmt;
use core::marker::PhantomData;

use allocator_api2::alloc::Allocator;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::CTreeSet;
use crate::map::read_ascending_first;

impl<K: Serialize, A: Allocator> Serialize for CTreeSet<K, A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<'de, K: Deserialize<'de> + Ord> Deserialize<'de> for CTreeSet<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CTreeSet<K>, D::Error> {
        deserializer.deserialize_seq(SetVisitor(PhantomData))
    }
}

/// Makes a set of what it is shown.
struct SetVisitor<K>(PhantomData<fn() -> K>);

impl<'de, K: Deserialize<'de> + Ord> Visitor<'de> for SetVisitor<K> {
    type Value = CTreeSet<K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut keys: S) -> Result<CTreeSet<K>, S::Error> {
        let map = read_ascending_first(|| Ok(keys.next_element()?.map(|key| (key, ()))))?;
        Ok(CTreeSet { map })
    }
}
