//! Keys with heads: byte strings that share prefixes of all lengths, tuples, wide integers, floats;
//! every search against `BTreeMap`.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt::Debug;

use ctree::{FrozenCTreeMap, TotalF32, TotalF64};
use quickcheck::{Gen, QuickCheck};

/// Looks every query up in both maps.
fn agree<K, Q>(keys: &[K], queries: &[&Q])
where
    K: Ord + Clone + Debug + Borrow<Q>,
    Q: ?Sized + Ord + Debug,
{
    let model: BTreeMap<K, usize> = keys.iter().cloned().zip(0..).collect();
    let frozen: FrozenCTreeMap<K, usize> = keys.iter().cloned().zip(0..).collect();
    assert_eq!(frozen.check(), Ok(()));
    let sorted: Vec<&K> = model.keys().collect();
    for &query in queries {
        assert_eq!(
            frozen.get(query),
            model.get(query),
            "{query:?} among {sorted:?}"
        );
        let below = sorted.partition_point(|key| (*key).borrow() < query);
        assert_eq!(frozen.rank(query), below, "{query:?} among {sorted:?}");
        let up_to = sorted.partition_point(|key| (*key).borrow() <= query);
        assert_eq!(
            frozen.rank_after(query),
            up_to,
            "{query:?} among {sorted:?}"
        );
    }
    let copy = frozen.clone();
    assert_eq!(copy.check(), Ok(()));
    assert!(copy.into_iter().eq(model));
}

fn checker(tests: u64) -> QuickCheck {
    QuickCheck::new()
        .rng(Gen::new(if cfg!(miri) { 40 } else { 300 }))
        .tests(if cfg!(miri) { 2 } else { tests })
}

/// A few different letters, the extremes among them, behind one of a few prefixes.
fn bytes_of(choice: &[u8]) -> Vec<u8> {
    let prefixes: [&[u8]; 4] = [
        b"",
        b"\0\0",
        b"a long prefix that many share/",
        b"a long prefix\xff\xff",
    ];
    let (&first, rest) = choice.split_first().unwrap_or((&0, &[]));
    let letters = rest
        .iter()
        .take(12)
        .map(|byte| [0, 1, b'a', 0xff][usize::from(byte % 4)]);
    prefixes[usize::from(first) % 4]
        .iter()
        .copied()
        .chain(letters)
        .collect()
}

#[test]
fn byte_strings_are_found_whatever_they_share() {
    fn holds(keys: Vec<Vec<u8>>, queries: Vec<Vec<u8>>) -> bool {
        let keys: Vec<Vec<u8>> = keys.iter().map(|choice| bytes_of(choice)).collect();
        let mut queries: Vec<Vec<u8>> = queries.iter().map(|choice| bytes_of(choice)).collect();
        queries.extend(keys.iter().take(50).cloned());
        let queries: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
        agree::<Vec<u8>, [u8]>(&keys, &queries);
        let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        agree::<&[u8], [u8]>(&borrowed, &queries);
        let boxed: Vec<Box<[u8]>> = keys.iter().map(|key| key.as_slice().into()).collect();
        agree::<Box<[u8]>, [u8]>(&boxed, &queries);
        true
    }
    checker(60).quickcheck(holds as fn(Vec<Vec<u8>>, Vec<Vec<u8>>) -> bool);
}

#[test]
fn strings_are_found_by_all_their_borrowed_forms() {
    fn holds(keys: Vec<String>, queries: Vec<String>) -> bool {
        let mut queries = queries;
        queries.extend(keys.iter().take(50).cloned());
        let texts: Vec<&str> = queries.iter().map(String::as_str).collect();
        agree::<String, str>(&keys, &texts);
        agree::<String, String>(&keys, &queries.iter().collect::<Vec<_>>());
        let borrowed: Vec<&str> = keys.iter().map(String::as_str).collect();
        agree::<&str, str>(&borrowed, &texts);
        agree::<&str, &str>(&borrowed, &texts.iter().collect::<Vec<_>>());
        let boxed: Vec<Box<str>> = keys.iter().map(|key| key.as_str().into()).collect();
        agree::<Box<str>, str>(&boxed, &texts);
        true
    }
    checker(40).quickcheck(holds as fn(Vec<String>, Vec<String>) -> bool);
}

#[test]
fn paths_that_share_most_of_their_bytes_are_told_apart() {
    let count = if cfg!(miri) { 300 } else { 20_000u32 };
    let path = |n: u32| {
        format!(
            "/usr/share/a common folder/{}/deeper/{:04}/file-{n}.txt",
            n % 7,
            n % 1000
        )
    };
    let map: FrozenCTreeMap<String, u32> = (0..count).map(|n| (path(n), n)).collect();
    assert_eq!(map.check(), Ok(()));
    for n in 0..count {
        assert_eq!(map.get(path(n).as_str()), Some(&n));
        assert_eq!(map.get(format!("{}x", path(n)).as_str()), None);
    }
    // Queries that do not share what all keys share.
    for (query, rank) in [
        ("", 0),
        ("/usr", 0),
        ("/usr/share/a", 0),
        ("/usr/share/b", count),
        ("zz", count),
        ("\0", 0),
    ] {
        assert_eq!(map.rank(query), rank as usize, "{query:?}");
        assert_eq!(map.get(query), None);
    }
}

#[test]
fn strings_that_only_zeroes_tell_apart_have_equal_heads() {
    // A head is filled up with zeroes where a string ends.
    let keys: Vec<Vec<u8>> = (0..200).map(|len| vec![0; len]).collect();
    let queries: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    agree::<Vec<u8>, [u8]>(&keys, &queries);
    let largest: Vec<Vec<u8>> = (0..200).map(|len| vec![0xff; len]).collect();
    let queries: Vec<&[u8]> = largest.iter().chain(&keys).map(Vec::as_slice).collect();
    agree::<Vec<u8>, [u8]>(&largest, &queries);
}

macro_rules! values_with_heads {
    ($($name:ident: $key:ty, |$low:ident, $high:ident| $make:expr;)*) => {$(
        #[test]
        fn $name() {
            fn holds(keys: Vec<(i64, i64)>, queries: Vec<(i64, i64)>, bits: u8) -> bool {
                // Of few bits many are equal, in one half or in both.
                let shift = u32::from(bits % 63);
                let make = |&(low, high): &(i64, i64)| -> $key {
                    let ($low, $high) = (low >> shift, high >> shift);
                    $make
                };
                let keys: Vec<$key> = keys.iter().map(make).collect();
                let held = keys.iter().take(50).copied();
                let queries: Vec<$key> = queries.iter().map(make).chain(held).collect();
                agree::<$key, $key>(&keys, &queries.iter().collect::<Vec<_>>());
                true
            }
            checker(40).quickcheck(holds as fn(Vec<(i64, i64)>, Vec<(i64, i64)>, u8) -> bool);
        }
    )*};
}

values_with_heads! {
    pairs_of_u64: (u64, u64), |low, high| (high.cast_unsigned(), low.cast_unsigned());
    pairs_of_i64: (i64, i64), |low, high| (high, low);
    signed_wide_integers: i128,
        |low, high| (i128::from(high) << 64) | i128::from(low.cast_unsigned());
    wide_integers: u128,
        |low, high| (u128::from(high.cast_unsigned()) << 64) | u128::from(low.cast_unsigned());
    double_floats: TotalF64,
        |low, high| TotalF64(f64::from_bits((low ^ high.rotate_left(17)).cast_unsigned()));
    single_floats: TotalF32, |low, high| {
        let bits = ((low ^ high) & 0xffff_ffff).cast_unsigned();
        TotalF32(f32::from_bits(bits.try_into().unwrap()))
    };
}
