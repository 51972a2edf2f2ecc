//! A `BTreeMap` whose entries are read in order.
//!
//! The keys came in random order, so the leaves lie in the order in which they were split.
//! `CTreeMap` has fewer and larger ones.

use super::{mix, shuffled};

in_maps!(BTreeMap, CTreeMap, |size| {
    let mut map = Map::new();
    map.extend(shuffled(size).zip(0..));
    let value = |sum, (key, value): (&u64, &u64)| mix(sum, key ^ value);
    (0..20).fold(0, |sum, _| map.iter().fold(sum, value))
});
