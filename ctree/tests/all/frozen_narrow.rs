//! Keys of 64 bits whose separators have 32: spread evenly, in clusters, in a row, at the ends of
//! the range.

use std::fmt::Debug;
use std::hash::Hash;

use ctree::FrozenCTreeMap;
use quickcheck::{Arbitrary, Gen, QuickCheck};

/// Numbers that look random.
fn scrambled(n: u64) -> u64 {
    let mixed = (n ^ (n >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Builds a map of the keys and looks them, their neighbours and the extremes up, one by one and in
/// batches of many lengths.
fn all_found<K>(mut keys: Vec<K>, neighbours: impl Fn(K) -> [K; 2], extremes: [K; 2])
where
    K: Copy + Ord + Debug + Hash,
{
    let map: FrozenCTreeMap<K, K> = keys.iter().map(|&key| (key, key)).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(map.check(), Ok(()));
    let step = keys.len() / 3000 + 1;
    let queries: Vec<K> = keys
        .iter()
        .step_by(step)
        .flat_map(|&key| [key].into_iter().chain(neighbours(key)))
        .chain(extremes)
        .collect();
    let expected: Vec<(usize, Option<K>)> = queries
        .iter()
        .map(|query| {
            (
                keys.partition_point(|key| key < query),
                keys.binary_search(query).is_ok().then_some(*query),
            )
        })
        .collect();
    for (query, &(rank, found)) in queries.iter().zip(&expected) {
        assert_eq!(map.rank(query), rank, "{query:?}");
        assert_eq!(map.get(query).copied(), found, "{query:?}");
    }
    for length in [1, 4, 63, 64, 65, 1000] {
        for (queries, expected) in queries.chunks(length).zip(expected.chunks(length)).take(20) {
            let mut ranks = vec![usize::MAX; queries.len()];
            map.rank_many(queries, &mut ranks);
            assert!(ranks.iter().eq(expected.iter().map(|(rank, _)| rank)));
            let mut values = vec![None; queries.len()];
            map.get_many(queries, &mut values);
            assert!(
                values
                    .iter()
                    .map(|value| value.copied())
                    .eq(expected.iter().map(|(_, found)| *found))
            );
        }
    }
}

fn all_found_unsigned(keys: Vec<u64>) {
    all_found(
        keys,
        |key| [key.wrapping_sub(1), key.wrapping_add(1)],
        [0, u64::MAX],
    );
}

const MANY: u64 = if cfg!(miri) { 700 } else { 40_000 };

#[test]
fn spread_keys() {
    all_found_unsigned((0..MANY).map(scrambled).collect());
    all_found(
        (0..MANY).map(|n| scrambled(n).cast_signed()).collect(),
        |key: i64| [key.wrapping_sub(1), key.wrapping_add(1)],
        [i64::MIN, i64::MAX],
    );
}

#[test]
fn keys_in_a_row_far_from_zero() {
    all_found_unsigned((0..MANY).map(|n| (1 << 63) + n).collect());
    all_found_unsigned((0..MANY).map(|n| u64::MAX - 3 * n).collect());
    all_found(
        (0..MANY).map(|n| n.cast_signed() - 20_000).collect(),
        |key: i64| [key - 1, key + 1],
        [i64::MIN, i64::MAX],
    );
}

#[test]
fn one_key_far_from_all_others() {
    // All others have the same head: separators of full width.
    all_found_unsigned((0..MANY).chain([u64::MAX]).collect());
    all_found_unsigned((0..MANY).map(|n| u64::MAX - n).chain([0]).collect());
}

#[test]
fn a_few_displaced_keys_among_spread_ones() {
    // One cluster of keys with one head, few enough for narrow separators, long enough to go on
    // over many leaves.
    let cluster = MANY / 80;
    let keys = (0..MANY)
        .map(scrambled)
        .chain((0..cluster).map(|n| (scrambled(5) & !0xffff_ffff) + 2 * n));
    all_found_unsigned(keys.collect());
}

#[test]
fn clusters_of_any_width() {
    for gap_bits in [20, 34, 40, 50] {
        for cluster in [3, 17, 300] {
            all_found_unsigned(
                (0..MANY / 4)
                    .map(|n| ((n / cluster) << gap_bits) + n % cluster * 5)
                    .collect(),
            );
        }
    }
}

#[test]
fn keys_of_any_shape() {
    #[derive(Clone, Debug)]
    struct Shape(Vec<u64>);

    impl Arbitrary for Shape {
        fn arbitrary(g: &mut Gen) -> Shape {
            let (mask, base) = (u64::MAX >> (u32::arbitrary(g) % 64), u64::arbitrary(g));
            Shape(
                (0..600)
                    .map(|_| (u64::arbitrary(g) & mask).wrapping_add(base))
                    .collect(),
            )
        }
    }

    fn holds(shapes: (Shape, Shape)) -> bool {
        all_found_unsigned(shapes.0.0.into_iter().chain(shapes.1.0).collect());
        true
    }
    QuickCheck::new()
        .tests(if cfg!(miri) { 1 } else { 60 })
        .quickcheck(holds as fn((Shape, Shape)) -> bool);
}
