//! Each path of this machine, compared with counting by hand.

use core::fmt::Debug;

use quickcheck::{Arbitrary, QuickCheck};

use super::{BATCH, Isa, lines_spanned};
use crate::block::LINE_BYTES;
use crate::frozen::{LaneTree, Wanted};

/// Searches for every query on every path, alone and in batches, without values, with values beside
/// the keys, and with values apart, which prefetch different lines.
fn paths_agree<K>(keys: &[K], queries: &[K])
where
    K: Copy + Ord + Debug,
{
    paths_agree_with_values(keys, queries, |_| ());
    paths_agree_with_values(keys, queries, |rank| rank);
    paths_agree_with_values(keys, queries, |rank| [rank; 3]);
}

fn paths_agree_with_values<K, V>(keys: &[K], queries: &[K], value: impl Fn(usize) -> V)
where
    K: Copy + Ord + Debug,
{
    if keys.is_empty() {
        return;
    }
    for isa in Isa::available() {
        let entries = keys
            .iter()
            .enumerate()
            .map(|(rank, &key)| (key, value(rank)));
        let tree = LaneTree::from_sorted(entries.collect()).with_isa(isa);
        let expected: Vec<usize> = queries
            .iter()
            .map(|query| keys.partition_point(|key| key < query))
            .collect();
        for (query, &expected) in queries.iter().zip(&expected) {
            assert_eq!(
                tree.lower_bound(query),
                expected,
                "{query:?} among {} keys with {isa:?}",
                keys.len()
            );
        }
        for (queries, expected) in queries.chunks(BATCH).zip(expected.chunks(BATCH)) {
            let mut ranks = vec![usize::MAX; queries.len()];
            for wanted in [Wanted::Ranks, Wanted::Values] {
                tree.lower_bound_many(queries, &mut ranks, wanted);
                assert_eq!(ranks, expected, "{} queries with {isa:?}", queries.len());
            }
        }
    }
}

/// Keys and queries of any kind; the extremes are always among the queries, now and then among the
/// keys.
fn property<K>(mut keys: Vec<K>, mut queries: Vec<K>, min: K, max: K) -> bool
where
    K: Copy + Ord + Debug,
{
    queries.extend_from_slice(&keys);
    queries.extend([min, max]);
    if keys.len().is_multiple_of(2) {
        keys.extend([min, max]);
    }
    keys.sort_unstable();
    keys.dedup();
    paths_agree(&keys, &queries);
    true
}

macro_rules! property_tests {
    ($($name:ident: $lane:ty;)*) => {$(
        #[test]
        fn $name() {
            fn holds(keys: Vec<$lane>, queries: Vec<$lane>) -> bool {
                property(keys, queries, <$lane>::MIN, <$lane>::MAX)
            }
            checks().quickcheck(holds as fn(Vec<$lane>, Vec<$lane>) -> bool);
        }
    )*};
}

/// As many cases as the checker of memory accesses leaves time for.
fn checks() -> QuickCheck {
    QuickCheck::new().tests(if cfg!(miri) { 5 } else { 60 })
}

property_tests! {
    u8_paths_agree: u8;
    u16_paths_agree: u16;
    u32_paths_agree: u32;
    u64_paths_agree: u64;
    usize_paths_agree: usize;
    i8_paths_agree: i8;
    i16_paths_agree: i16;
    i32_paths_agree: i32;
    i64_paths_agree: i64;
    isize_paths_agree: isize;
    char_paths_agree: char;
}

#[test]
fn arbitrary_integers_include_the_extremes() {
    // The properties above lean on it that quickcheck draws large integers too, not only small
    // ones.
    let mut source = quickcheck::Gen::new(100);
    assert!((0..1000).any(|_| u64::arbitrary(&mut source) > u64::MAX / 2));
}

#[test]
fn requested_lines_cover_the_first_byte_and_the_last() {
    let lines = [0u8; 6 * LINE_BYTES];
    let line_of = |start: *const u8| start.addr() / LINE_BYTES;
    for offset in 0..2 * LINE_BYTES {
        for bytes in 1..=3 * LINE_BYTES {
            let start = lines[offset..].as_ptr();
            let last = lines[offset + bytes - 1..].as_ptr();
            assert_eq!(
                lines_spanned(start, bytes),
                line_of(last) - line_of(start) + 1,
                "{bytes} B at {start:?}"
            );
        }
        assert_eq!(lines_spanned(lines[offset..].as_ptr(), 0), 0);
    }
}

/// Every number of keys around the capacities of leaf, one level, two levels.
#[test]
fn every_height_and_every_filling_of_the_last_node() {
    let capacities = [16, 16 * 17, 16 * 17 * 17];
    let around = |capacity: usize| capacity - 17..=capacity + 17;
    let step = if cfg!(miri) { 101 } else { 1 };
    for len in (1..=capacities[1] + 17)
        .chain(around(capacities[2]))
        .step_by(step)
    {
        let keys: Vec<u64> = (0..len as u64).map(|key| 3 * key + 1).collect();
        let queries: Vec<u64> = (0..=3 * len as u64 + 2)
            .step_by(len.div_ceil(200))
            .collect();
        paths_agree(&keys, &queries);
    }
}

#[test]
fn the_largest_integers_are_keys_like_others() {
    for len in 1..=40 {
        let keys: Vec<u64> = (0..len).map(|key| u64::MAX - (len - 1 - key)).collect();
        paths_agree(
            &keys,
            &[0, u64::MAX - 41, u64::MAX - len, u64::MAX - 1, u64::MAX],
        );
        let keys: Vec<i32> = (0..len)
            .map(|key| i32::MAX - i32::try_from(len - 1 - key).unwrap())
            .collect();
        paths_agree(&keys, &[i32::MIN, -1, 0, i32::MAX - 1, i32::MAX]);
    }
    let all: Vec<u8> = (0..=u8::MAX).collect();
    paths_agree(&all, &all);
    let all: Vec<i16> = (i16::MIN..=i16::MAX).collect();
    let queries: Vec<i16> = all.iter().copied().step_by(97).collect();
    paths_agree(&all, &queries);
}
