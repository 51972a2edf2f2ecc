//! The adapters of ordered maps against std's, and that whole passes agree.

use std::collections::BTreeMap;

use ctree::CTreeMap;
use measure::ordered_map::{Kind, OrderedMap, Passes, Updates, value_of};
use measure::queries::Chain;
use measure::rng::Rng;
use measure::{keys, rivals};
use quickcheck::quickcheck;

/// Few enough that many steps meet a key that is there.
fn key(byte: u8) -> u64 {
    u64::from(byte) << 8
}

/// Runs `steps`, each an insertion or a removal, and asks `queries` after them: whether an adapter
/// does what it does for `BTreeMap`.
fn does_what_std_does<M: OrderedMap<u64>>(steps: &[(u8, bool)], queries: &[u8]) -> bool {
    let mut map = M::default();
    let mut model = BTreeMap::new();
    for (place, &(byte, inserts)) in steps.iter().enumerate() {
        let (got, expected) = if inserts {
            let value = value_of(place);
            (map.insert(key(byte), value), model.insert(key(byte), value))
        } else {
            (map.remove(&key(byte)), model.remove(&key(byte)))
        };
        if got != expected {
            return false;
        }
    }
    let queries: Vec<u64> = queries.iter().map(|&byte| key(byte)).collect();
    let expected: Vec<Option<u64>> = queries.iter().map(|key| model.get(key).copied()).collect();
    let one_by_one = queries.iter().map(|key| map.get(key).copied());
    let mut at_once = Vec::new();
    map.get_many(&queries, |value| at_once.push(value.copied()));

    let mut entries = Vec::new();
    map.for_each(|&key, &value| entries.push((key, value)));
    // A start between two keys as well, and more entries than there are.
    let ranges_agree = queries.iter().all(|&query| {
        [query, query + 1].iter().all(|start| {
            let mut entries = Vec::new();
            map.for_each_from(start, 3, |&key, &value| entries.push((key, value)));
            let expected = model.range(start..).take(3);
            entries
                .into_iter()
                .eq(expected.map(|(&key, &value)| (key, value)))
        })
    });
    one_by_one.eq(expected.iter().copied())
        && at_once == expected
        && entries.into_iter().eq(model)
        && ranges_agree
}

quickcheck! {
    fn std_agrees_with_itself(steps: Vec<(u8, bool)>, queries: Vec<u8>) -> bool {
        does_what_std_does::<BTreeMap<u64, u64>>(&steps, &queries)
    }

    fn ctree_does_what_std_does(steps: Vec<(u8, bool)>, queries: Vec<u8>) -> bool {
        does_what_std_does::<CTreeMap<u64, u64>>(&steps, &queries)
    }

    #[cfg(feature = "bbtree")]
    fn bbtree_does_what_std_does(steps: Vec<(u8, bool)>, queries: Vec<u8>) -> bool {
        does_what_std_does::<bbtree::unsync::BBTreeMap<u64, u64>>(&steps, &queries)
    }

    #[cfg(feature = "brie-tree")]
    fn brie_does_what_std_does(steps: Vec<(u8, bool)>, queries: Vec<u8>) -> bool {
        does_what_std_does::<brie_tree::BTree<brie_tree::nonmax::NonMaxU64, u64>>(&steps, &queries)
    }

    #[cfg(feature = "indexset")]
    fn indexset_does_what_std_does(steps: Vec<(u8, bool)>, queries: Vec<u8>) -> bool {
        does_what_std_does::<indexset::BTreeMap<u64, u64>>(&steps, &queries)
    }
}

/// Keys of the maps that passes run over.
const KEYS: usize = 3000;

/// What all passes over a map of one kind return.
fn sums(kind: &Kind<u64>) -> Vec<u64> {
    let all = keys::random(KEYS + KEYS / 4, 1);
    let (inside, outside) = all.split_at(KEYS);
    let mut rng = Rng::new(2);
    let queries: Vec<u64> = (0..2 * KEYS).map(|_| all[rng.below(all.len())]).collect();
    let chain = Chain::draw(KEYS, || all[rng.below(all.len())]);
    let (leaving, staying) = inside.split_at(outside.len());
    let updates = Updates {
        queries: (0..4 * leaving.len())
            .map(|_| staying[rng.below(staying.len())])
            .collect(),
        leaving: leaving.to_vec(),
        arriving: outside.to_vec(),
    };
    let mut map: Box<dyn Passes<u64>> = kind.empty();
    let mut sums = vec![map.insert_all(inside)];
    let get = map.get_independent(&queries);
    assert_eq!(get, map.get_many(&queries), "{}", kind.slug);
    let mixed = map.mixed(&updates);
    assert_eq!(mixed, map.mixed(&updates), "{}", kind.slug);
    sums.extend([
        get,
        map.get_dependent(&chain),
        map.iterate(),
        map.ranges(&queries, 7),
        mixed,
        map.remove_all(&queries),
        map.iterate(),
    ]);

    let groups: Vec<Vec<u64>> = inside.chunks(16).map(<[u64]>::to_vec).collect();
    let small = kind.many(&groups);
    let queries: Vec<(usize, u64)> = queries
        .iter()
        .map(|&key| (rng.below(groups.len()), key))
        .collect();
    sums.extend([
        small.get(&queries),
        small.iterate(),
        small.build_and_drop(&groups),
    ]);
    sums
}

#[test]
fn all_passes_agree() {
    let kinds = rivals::integer_maps();
    assert!(kinds.len() >= 2, "there is ours, and std's");
    let expected = sums(&kinds[1]);
    assert!(
        (1..expected.len()).any(|index| expected[index] != expected[0]),
        "the passes do something"
    );
    for kind in &kinds {
        assert_eq!(sums(kind), expected, "{}", kind.slug);
    }
}

#[test]
fn maps_of_other_keys_agree() {
    fn check<K: measure::ordered_map::Key>(keys: &[K]) {
        let mut sums = rivals::maps::<K>().into_iter().map(|kind| {
            let map = kind.with_keys(keys);
            (map.iterate(), map.get_many(keys), map.get_independent(keys))
        });
        let first = sums.next();
        assert!(sums.all(|sum| Some(sum) == first));
    }
    check(&keys::events(1000, 1));
    check(&keys::words_and_paths(1000, 1));
    check(&keys::long_prefixes(1000, 1));
}
