//! Single cases at the edges: the largest keys, all small sizes, refused ranges, traits that types
//! should have.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;

use ctree::{FrozenCTreeMap, FrozenCTreeSet, OrderError};

use crate::dynamic::edges::{Hinted, message};

/// Every size up to a few nodes, and around the powers where a level is added.
#[test]
fn every_small_size_finds_all_its_keys_and_nothing_else() {
    let sizes = (0..=2000).chain([4_095, 4_096, 4_097, 4_623, 4_624, 4_625]);
    for len in sizes.step_by(if cfg!(miri) { 331 } else { 1 }) {
        let odd = || (0..len).map(|n| (2 * n + 1, n));
        let lanes: FrozenCTreeMap<u32, u32> = odd().collect();
        let tuples: FrozenCTreeMap<(u32, bool), u32> =
            odd().map(|(key, n)| ((key, true), n)).collect();
        assert_eq!((lanes.len(), tuples.len()), (len as usize, len as usize));
        let queries = (0..=2 * len).step_by(if len < 300 { 1 } else { 1 + len as usize / 97 });
        for query in queries {
            let expected = (query % 2 == 1).then_some(query / 2);
            assert_eq!(lanes.get(&query).copied(), expected, "{query} of {len}");
            assert_eq!(
                tuples.get(&(query, true)).copied(),
                expected,
                "{query} of {len}"
            );
            assert_eq!(tuples.get(&(query, false)), None);
            assert_eq!(lanes.rank(&query), query as usize / 2);
            assert_eq!(tuples.rank(&(query, true)), query as usize / 2);
        }
        assert_eq!(
            lanes.last_key_value().map(|entry| entry.1 + 1),
            (len > 0).then_some(len)
        );
        assert!(lanes.iter().map(|(key, n)| (*key, *n)).eq(odd()));
        assert!(
            tuples
                .iter()
                .rev()
                .map(|(key, n)| (key.0, *n))
                .eq(odd().rev())
        );
    }
}

macro_rules! extremes {
    ($($name:ident: $key:ty;)*) => {$(
        #[test]
        fn $name() {
            let (min, max) = (<$key>::MIN, <$key>::MAX);
            for inner in [0, 1, 5, 40, 100] {
                let inner = || (0..inner).map(|n: $key| n + 3);
                let all = || inner().chain([min, max]).map(|key| (key, key));
                let map: FrozenCTreeMap<$key, $key> = all().collect();
                let model: BTreeMap<$key, $key> = all().collect();
                assert_eq!(map.check(), Ok(()));
                assert_eq!((map.get(&max), map.get(&min)), (Some(&max), Some(&min)));
                assert_eq!(map.rank_after(&max), map.len());
                assert_eq!(map.rank(&min), 0);
                assert!(map.range(max..).eq(model.range(max..)));
                let last = (Bound::Excluded(max - 1), Bound::Included(max));
                assert!(map.range(last).eq(model.range(max..)));

                let without: FrozenCTreeSet<$key> = inner().collect();
                assert!(!without.contains(&max) && !without.contains(&min));
                assert_eq!(without.rank(&max), without.len());
                assert_eq!(without.range(max..).next(), None);
                let mut found = [true; 2];
                without.contains_many(&[min, max], &mut found);
                assert_eq!(found, [false; 2]);
            }
        }
    )*};
}

// (All other integers: in the tests of the search itself, which hold each path against counting by
// hand.)
extremes! {
    u16_extremes_are_keys_like_others: u16;
    u64_extremes_are_keys_like_others: u64;
    i32_extremes_are_keys_like_others: i32;
    u128_extremes_are_keys_like_others: u128;
}

#[test]
fn all_bytes_and_all_shorts_fit() {
    let bytes: FrozenCTreeSet<u8> = (0..=u8::MAX).collect();
    assert!((0..=u8::MAX).all(|key| bytes.get_index_of(&key) == Some(key.into())));
    let shorts: FrozenCTreeSet<i16> = (i16::MIN..=i16::MAX).rev().collect();
    assert_eq!(shorts.len(), 1 << 16);
    assert!(
        (i16::MIN..=i16::MAX)
            .step_by(7)
            .all(|key| shorts.get(&key) == Some(&key))
    );
    let letters: FrozenCTreeSet<char> = ['ß', 'a', '\u{10FFFF}', '\0', '€'].into();
    assert_eq!(letters.iter().collect::<String>(), "\0aß€\u{10FFFF}");
}

#[test]
fn an_empty_map_answers() {
    fn holds<K: Ord + Copy + Debug + Default>() {
        let mut map: FrozenCTreeMap<K, Box<K>> = FrozenCTreeMap::new();
        let key = K::default();
        assert!(map.is_empty() && map.memory_usage() == 0);
        assert_eq!((map.get(&key).cloned(), map.get_mut(&key)), (None, None));
        assert_eq!((map.first_key_value(), map.last_key_value()), (None, None));
        assert_eq!((map.rank(&key), map.rank_after(&key)), (0, 0));
        assert_eq!((map.get_index(0), map.range(key..).next()), (None, None));
        assert_eq!(
            (map.iter_mut().count(), map.clone().into_iter().count()),
            (0, 0)
        );
        map.get_many(&[] as &[K], &mut []);
        assert_eq!(map.check(), Ok(()));
        assert_eq!(format!("{map:?}"), "{}");
        assert_eq!(map, FrozenCTreeMap::default());
    }
    holds::<u64>();
    holds::<i8>();
    holds::<(u8, u8)>();
    holds::<()>();
}

#[test]
fn from_sorted_iter_names_the_first_offender() {
    let index = |keys: &[i64]| {
        FrozenCTreeSet::from_sorted_iter(keys.iter().copied())
            .map_err(|error: OrderError| error.index())
            .map(|set| set.len())
    };
    assert_eq!(index(&[]), Ok(0));
    assert_eq!(index(&[-5, 0, 7]), Ok(3));
    assert_eq!(index(&[-5, -5]), Err(1));
    assert_eq!(index(&[1, 2, 3, 2, 1]), Err(3));
    let error = FrozenCTreeMap::from_sorted_iter([("b", 1), ("a", 2)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the key at index 1 is not greater than the key before it"
    );
}

#[test]
fn sources_may_lie_about_their_length() {
    let boast = || Hinted(std::iter::empty::<(u64, u64)>(), (usize::MAX, None));
    assert_eq!(
        FrozenCTreeMap::from_sorted_iter(boast()),
        Ok(FrozenCTreeMap::new())
    );
    let keys = boast().map(|(key, _)| key);
    assert_eq!(
        FrozenCTreeSet::from_sorted_iter(keys),
        Ok(FrozenCTreeSet::new())
    );
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "this is what is tested")]
fn what_std_refuses_is_refused() {
    let map: FrozenCTreeMap<u64, u64> = [(1, 1)].into();
    let excluded = (Bound::Excluded(3), Bound::Excluded(3));
    for (said, expected) in [
        (
            message(|| map.range(3..2).count()),
            "range start is greater than range end",
        ),
        (
            message(|| map.range(excluded).count()),
            "range start and end are equal and excluded",
        ),
        (
            message(|| map.get_many(&[1, 2], &mut [None])),
            "2 keys but 1 results",
        ),
        (message(|| map[&2]), "no entry found for key"),
    ] {
        assert_eq!(said, expected);
    }
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "this is what is tested")]
fn an_empty_map_refuses_no_range() {
    let mut ours: FrozenCTreeMap<u64, u64> = FrozenCTreeMap::new();
    let theirs: BTreeMap<u64, u64> = BTreeMap::new();
    assert_eq!(
        (ours.range(3..2).next(), theirs.range(3..2).next()),
        (None, None)
    );
    let excluded = (Bound::Excluded(3), Bound::Excluded(3));
    assert_eq!(
        (ours.range(excluded).next(), theirs.range(excluded).next()),
        (None, None)
    );
    assert_eq!(ours.range_mut(3..2).next(), None);
    let set: FrozenCTreeSet<String> = [].into();
    let inverted = (Bound::Included("b"), Bound::Included("a"));
    assert_eq!(set.range::<str, _>(inverted).next(), None);
}

#[test]
fn mutable_references_to_all_values_can_be_held_together() {
    fn swap_ends<V: Copy>(map: &mut FrozenCTreeMap<u16, V>) {
        let mut all: Vec<&mut V> = map.values_mut().collect();
        if let [first, .., last] = all.as_mut_slice() {
            std::mem::swap(*first, *last);
        }
    }
    let mut joined: FrozenCTreeMap<u16, u32> = (0..1000).map(|n| (n, n.into())).collect();
    let mut apart: FrozenCTreeMap<u16, [u64; 8]> = (0..1000).map(|n| (n, [n.into(); 8])).collect();
    swap_ends(&mut joined);
    swap_ends(&mut apart);
    assert_eq!((joined[&0], joined[&999]), (999, 0));
    assert_eq!((apart[&0], apart[&999]), ([999; 8], [0; 8]));
    assert!(joined.values().skip(1).take(998).copied().eq(1..999));
}

#[test]
fn values_may_borrow_what_is_dropped_first() {
    // This compiles only with a drop check as that of std's maps: dropping a map uses no value.
    let (map, text);
    text = String::from("value");
    map = FrozenCTreeMap::from([(1u64, text.as_str())]);
    assert_eq!(map.get(&1), Some(&"value"));
}
