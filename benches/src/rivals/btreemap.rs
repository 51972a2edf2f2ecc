//! Rival: std's `BTreeMap`, its nodes in the system's malloc, as it stands in nearly every program.

use std::collections::BTreeMap;

use examples::switch::{Source, born_in};

/// Its name in names of comparisons.
pub const SLUG: &str = "btreemap";

/// Its name in words.
pub const NAME: &str = "std BTreeMap";

/// A map with `entries`, inserted in their order.
pub fn build(entries: &[(u64, u64)]) -> BTreeMap<u64, u64> {
    born_in(Source::System, || {
        let mut map = BTreeMap::new();
        for &(key, value) in entries {
            map.insert(key, value);
        }
        map
    })
}
