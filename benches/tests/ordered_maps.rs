//! The adapters of ordered maps against std's, and that whole passes agree.

use std::collections::BTreeMap;

use ctree::CTreeMap;
use measure::ordered_map::{Key, Kind, OrderedMap, Updates, value_of};
use measure::queries::Chain;
#[cfg(target_arch = "x86_64")]
use measure::rivals::static_tree::StaticTree;
use measure::rng::Rng;
use measure::{keys, rivals};
use quickcheck::quickcheck;

/// Runs `steps`, each an insertion or a removal, and asks `queries` after them: an adapter does
/// what it does for `BTreeMap`. Keys are so few that many steps meet one that is there.
fn does_what_std_does<M: OrderedMap<u64>>(steps: &[(u8, bool)], queries: &[u8]) {
    let key = |byte: u8| u64::from(byte) << 8;
    let mut map = M::default();
    let mut model = BTreeMap::new();
    for (place, &(byte, inserts)) in steps.iter().enumerate() {
        let (key, value) = (key(byte), value_of(place));
        match inserts {
            true => assert_eq!(map.insert(key, value), model.insert(key, value)),
            false => assert_eq!(map.remove(&key), model.remove(&key)),
        }
    }
    let queries: Vec<u64> = queries.iter().map(|&byte| key(byte)).collect();
    let expected: Vec<Option<&u64>> = queries.iter().map(|key| model.get(key)).collect();
    let one_by_one: Vec<Option<&u64>> = queries.iter().map(|key| map.get(key)).collect();
    assert_eq!(one_by_one, expected);
    let mut at_once = Vec::new();
    map.get_many(&queries, |value| at_once.push(value.copied()));
    assert!(at_once.iter().map(Option::as_ref).eq(expected));

    let mut entries = Vec::new();
    map.for_each(|&key, &value| entries.push((key, value)));
    // A start between two keys as well, and more entries than there are.
    for start in queries.iter().flat_map(|&query| [query, query + 1]) {
        let mut range = Vec::new();
        map.for_each_from(&start, 3, |&key, &value| range.push((key, value)));
        let expected = model.range(start..).map(|(&key, &value)| (key, value));
        assert!(range.into_iter().eq(expected.take(3)));
    }
    assert!(entries.into_iter().eq(model));
}

quickcheck! {
    fn adapters_do_what_std_does(steps: Vec<(u8, bool)>, queries: Vec<u8>) -> bool {
        does_what_std_does::<BTreeMap<u64, u64>>(&steps, &queries);
        does_what_std_does::<CTreeMap<u64, u64>>(&steps, &queries);
        #[cfg(feature = "bbtree")]
        does_what_std_does::<bbtree::unsync::BBTreeMap<u64, u64>>(&steps, &queries);
        #[cfg(feature = "brie-tree")]
        does_what_std_does::<brie_tree::BTree<brie_tree::nonmax::NonMaxU64, u64>>(
            &steps,
            &queries,
        );
        #[cfg(feature = "indexset")]
        does_what_std_does::<indexset::BTreeMap<u64, u64>>(&steps, &queries);
        true
    }
}

#[cfg(target_arch = "x86_64")]
quickcheck! {
    fn a_static_tree_ranks_as_std(numbers: Vec<u16>, len: u16, queries: Vec<u32>) -> bool {
        let mut keys: Vec<u32> = (0..u32::from(len % 9000)).map(|place| place << 18).collect();
        keys.extend(numbers.into_iter().map(|number| u32::from(number) << 16));
        keys.extend(queries.iter().step_by(2));
        keys.sort_unstable();
        keys.dedup();
        let Some(tree) = StaticTree::new(&keys) else {
            return true;
        };
        let queries = [&queries[..], &keys, &[0, 1, u32::MAX]].concat();
        let mut ranks = vec![0; queries.len()];
        tree.rank_many(&queries, &mut ranks);
        let mut pairs = queries.iter().zip(ranks);
        pairs.all(|(query, rank)| rank == keys.partition_point(|key| key < query))
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
    let staying = (0..4 * leaving.len()).map(|_| staying[rng.below(staying.len())]);
    let updates = Updates {
        queries: staying.collect(),
        leaving: leaving.to_vec(),
        arriving: outside.to_vec(),
    };
    let mut map = (kind.empty)();
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
    let small = (kind.many)(&groups);
    let queries = queries.iter().map(|&key| (rng.below(groups.len()), key));
    sums.extend([small.get(&queries.collect::<Vec<_>>()), small.iterate()]);
    sums.push(small.build_and_drop(&groups));
    sums
}

#[test]
fn all_passes_agree() {
    let kinds = rivals::integer_maps();
    assert!(kinds.len() >= 2, "there is ours, and std's");
    let expected = sums(&kinds[1]);
    let is_other = |&sum: &u64| sum != expected[0];
    assert!(expected.iter().any(is_other), "they do something");
    for kind in &kinds {
        assert_eq!(sums(kind), expected, "{}", kind.slug);
    }
}

#[test]
fn maps_of_other_keys_agree() {
    fn check<K: Key>(keys: &[K]) {
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
