//! Maps and sets that are files, compared with `BTreeMap`; damaged bytes in [`damage`], what the
//! file system does in [`files`].

mod damage;
mod files;

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::io::{self, Cursor};
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ctree::{
    AsStored, FrozenCTreeMap, MappedCTreeMap, MappedCTreeSet, OpenError, OpenOptions, Plain,
    Stored, StoredKey, VerifyError, WriteError,
};
use quickcheck::QuickCheck;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::dynamic::program::is_refused;

/// A folder of its own for each test, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ctree-test-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names of all that is in the folder.
    fn names(&self) -> BTreeSet<String> {
        fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Opens a file in two ways: mapped and copied.
fn open_all<K: StoredKey + ?Sized, V: Stored + ?Sized>(
    path: &Path,
) -> [Result<MappedCTreeMap<K, V>, OpenError>; 2] {
    // SAFETY: the file lies in a folder of this test, which changes it while no map is open.
    let mapped = unsafe { MappedCTreeMap::open(path) };
    [mapped, MappedCTreeMap::read(path)]
}

/// The map of a file of these entries.
fn written<K, V, B, C>(entries: impl IntoIterator<Item = (B, C)>) -> MappedCTreeMap<K, V>
where
    K: StoredKey + ?Sized,
    V: Stored + ?Sized,
    B: AsStored<K>,
    C: AsStored<V>,
{
    let bytes = MappedCTreeMap::<K, V>::to_bytes(entries).unwrap();
    MappedCTreeMap::from_bytes(&bytes).unwrap()
}

/// Compares a map with a model: `own_key` and `own_value` make the model's types of what lookups
/// give.
fn agrees<K, V, B, C>(
    map: &MappedCTreeMap<K, V>,
    model: &BTreeMap<B, C>,
    queries: &[B],
    own_key: impl for<'a> Fn(K::Ref<'a>) -> B,
    own_value: impl for<'a> Fn(V::Ref<'a>) -> C,
) where
    K: StoredKey + ?Sized,
    V: Stored + ?Sized,
    B: Borrow<K> + Ord + Clone + Debug,
    C: Clone + PartialEq + Debug,
{
    let own = |(key, value): (K::Ref<'_>, V::Ref<'_>)| (own_key(key), own_value(value));
    let entries: Vec<(B, C)> = model.clone().into_iter().collect();
    assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
    assert_eq!(map.verify(), Ok(()));

    assert_eq!(map.iter().len(), model.len());
    assert!(map.iter().map(own).eq(entries.iter().cloned()));
    assert!(map.iter().rev().map(own).eq(entries.iter().rev().cloned()));
    assert!(map.keys().map(&own_key).eq(model.keys().cloned()));
    assert!(map.values().map(&own_value).eq(model.values().cloned()));
    // Both ends meet, whatever the steps.
    let (mut found, mut expected) = (map.iter(), entries.iter());
    for turn in 0.. {
        let (found, expected) = match turn % 4 {
            0 => (found.next_back(), expected.next_back()),
            1 => (found.nth(1), expected.nth(1)),
            2 => (found.nth_back(2), expected.nth_back(2)),
            _ => (found.next(), expected.next()),
        };
        assert_eq!(found.map(own).as_ref(), expected);
        if expected.is_none() {
            break;
        }
    }
    assert_eq!(map.first_key_value().map(own).as_ref(), entries.first());
    assert_eq!(map.last_key_value().map(own).as_ref(), entries.last());
    for (rank, entry) in entries.iter().enumerate().step_by(1 + entries.len() / 50) {
        assert_eq!(map.get_index(rank).map(own).as_ref(), Some(entry));
    }
    assert!(map.get_index(model.len()).is_none());

    for query in queries {
        let key: &K = query.borrow();
        let lower = entries.partition_point(|entry| entry.0 < *query);
        let expected = entries.get(lower).filter(|entry| entry.0 == *query);
        let upper = lower + usize::from(expected.is_some());
        assert_eq!(
            map.get(key).map(&own_value).as_ref(),
            expected.map(|entry| &entry.1)
        );
        assert_eq!(map.get_key_value(key).map(own).as_ref(), expected);
        assert_eq!(map.contains_key(key), expected.is_some());
        assert_eq!(
            (map.rank(key), map.rank_after(key)),
            (lower, upper),
            "{query:?}"
        );
        assert_eq!(map.get_index_of(key), expected.map(|_| lower));
    }
    // Batches of every length up to a few, and all.
    for len in (0..=queries.len().min(9)).chain([queries.len()]) {
        let queries = &queries[..len];
        // References to keys are queries as well.
        let borrowed: Vec<&K> = queries.iter().map(Borrow::borrow).collect();
        let (mut values, mut by_reference) = (vec![None; len], vec![None; len]);
        map.get_many(queries, &mut values);
        map.get_many(&borrowed, &mut by_reference);
        let (mut present, mut ranks) = (vec![true; len], vec![usize::MAX; len]);
        map.contains_many(queries, &mut present);
        map.rank_many(queries, &mut ranks);
        for (index, query) in queries.iter().enumerate() {
            let expected = model.get::<B>(query);
            assert_eq!(values[index].map(&own_value).as_ref(), expected);
            assert_eq!(by_reference[index].map(&own_value).as_ref(), expected);
            assert_eq!(present[index], expected.is_some());
            assert_eq!(ranks[index], map.rank(query.borrow()));
        }
    }
    let bounds = |key| [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded];
    for pair in queries.windows(2).take(40) {
        let (low, high) = ((&pair[0]).min(&pair[1]), (&pair[0]).max(&pair[1]));
        for start in bounds(low) {
            for end in bounds(high) {
                if is_refused(&(start, end)) {
                    continue;
                }
                let expected = model.range::<B, _>((start, end));
                let bounds: (Bound<&K>, Bound<&K>) =
                    (start.map(Borrow::borrow), end.map(Borrow::borrow));
                let found: Vec<(B, C)> = map.range::<K>(bounds).map(own).collect();
                assert!(found.iter().map(|(key, value)| (key, value)).eq(expected));
            }
        }
    }
}

/// Writes entries in three ways, and compares each file with the model.
fn round_trip<K, V, B, C>(
    entries: Vec<(B, C)>,
    more: Vec<B>,
    own_key: impl for<'a> Fn(K::Ref<'a>) -> B + Copy,
    own_value: impl for<'a> Fn(V::Ref<'a>) -> C + Copy,
) -> bool
where
    K: StoredKey + ?Sized,
    V: Stored + ?Sized,
    B: Borrow<K> + AsStored<K> + Ord + Clone + Debug,
    C: AsStored<V> + Clone + PartialEq + Debug,
    for<'a> &'a B: AsStored<K>,
    for<'a> &'a C: AsStored<V>,
{
    let folder = Folder::new();
    let path = folder.join("map");
    let model: BTreeMap<B, C> = entries.iter().cloned().collect();
    let mut queries = more;
    queries.extend(entries.iter().map(|(key, _)| key.clone()));

    let written = MappedCTreeMap::<K, V>::write_unsorted(&path, entries).unwrap();
    assert_eq!(written, model.len());
    let bytes = MappedCTreeMap::<K, V>::to_bytes(&model).unwrap();
    assert!(
        fs::read(&path).unwrap() == bytes,
        "the same entries make the same file"
    );
    for map in open_all::<K, V>(&path) {
        agrees(&map.unwrap(), &model, &queries, own_key, own_value);
    }
    let frozen: FrozenCTreeMap<B, C> = model.clone().into_iter().collect();
    assert_eq!(
        MappedCTreeMap::<K, V>::write(&path, &frozen).unwrap(),
        model.len()
    );
    let map = OpenOptions::new()
        .verify(true)
        .warm(true)
        .read::<K, V>(&path)
        .unwrap();
    agrees(&map, &model, &queries, own_key, own_value);
    assert_eq!(map.file_bytes(), bytes.len());
    true
}

/// As many cases as the checker of memory accesses, or who set the variable, leaves time for.
fn checks() -> QuickCheck {
    match std::env::var_os("QUICKCHECK_TESTS") {
        Some(_) => QuickCheck::new(),
        None => QuickCheck::new().tests(if cfg!(miri) { 2 } else { 40 }),
    }
}

macro_rules! round_trips {
    ($($name:ident: $key:ty as $own_key:ty, $value:ty as $own_value:ty;)*) => {$(
        #[test]
        fn $name() {
            fn holds(entries: Vec<($own_key, $own_value)>, more: Vec<$own_key>) -> bool {
                round_trip::<$key, $value, _, _>(
                    entries,
                    more,
                    |key| key.to_owned(),
                    |value| value.to_owned(),
                )
            }
            checks().quickcheck(holds as fn(Vec<($own_key, $own_value)>, Vec<$own_key>) -> bool);
        }
    )*};
}

round_trips! {
    u64_to_u64: u64 as u64, u64 as u64;
    u32_to_nothing: u32 as u32, () as ();
    u8_to_bool: u8 as u8, bool as bool;
    i64_to_char: i64 as i64, char as char;
    char_to_i8: char as char, i8 as i8;
    nothing_to_u16: () as (), u16 as u16;
    u128_to_u64: u128 as u128, u64 as u64;
    u64_to_text: u64 as u64, str as String;
    text_to_u64: str as String, u64 as u64;
    text_to_text: str as String, str as String;
    bytes_to_bytes: [u8] as Vec<u8>, [u8] as Vec<u8>;
}

#[test]
fn arrays_to_arrays() {
    fn holds(entries: Vec<(u32, u64)>, more: Vec<u32>) -> bool {
        let key = |n: u32| -> [u8; 5] {
            let [a, b, c, d] = n.to_be_bytes();
            [a, b, c, d, 7]
        };
        let entries = entries
            .into_iter()
            .map(|(k, v)| (key(k), [v, !v, 1]))
            .collect();
        let more = more.into_iter().map(key).collect();
        round_trip::<[u8; 5], [u64; 3], _, _>(entries, more, |key| key, |value| value)
    }
    checks().quickcheck(holds as fn(Vec<(u32, u64)>, Vec<u32>) -> bool);
}

/// Sizes around full leaves and one more level of the index, and keys that share long beginnings.
#[test]
fn every_filling_of_leaves() {
    for len in (0..=70).chain([255, 256, 257, 272, 273, 1000, 4_700]) {
        if cfg!(miri) && len % 17 != 0 {
            continue;
        }
        let odd = || (0..len).map(|n: u32| 2 * n + 1);
        let queries: Vec<u64> = (0..=2 * u64::from(len))
            .step_by(1 + len as usize / 100)
            .collect();
        let model: BTreeMap<u64, u64> = odd().map(|n| (n.into(), n.into())).collect();
        let map = written::<u64, u64, _, _>(&model);
        agrees(&map, &model, &queries, |key| key, |value| value);

        let name = |n: u64| format!("/usr/share/a/rather/long/path/{n:06}/file");
        let queries: Vec<String> = queries.into_iter().map(name).collect();
        let model: BTreeMap<String, u8> = odd().map(|n| (name(n.into()), 1)).collect();
        let map = written::<str, u8, _, _>(&model);
        agrees(&map, &model, &queries, str::to_owned, |value| value);

        let key = |n: u32| [n.into(), 1u64, 2];
        let model: BTreeMap<[u64; 3], u16> = odd().map(|n| (key(n), 1)).collect();
        let queries: Vec<[u64; 3]> = (0..=2 * len)
            .step_by(1 + len as usize / 50)
            .map(key)
            .collect();
        let map = written::<[u64; 3], u16, _, _>(&model);
        agrees(&map, &model, &queries, |key| key, |value| value);
    }
}

#[test]
fn a_million_entries() {
    let folder = Folder::new();
    let path = folder.join("map");
    let len = if cfg!(miri) { 1_000 } else { 1_000_000 };
    let value = |key: u32| format!("{key:x}").repeat(1 + key as usize % 3);
    MappedCTreeMap::<u32, str>::write(&path, (0..len).map(|key| (3 * key, value(key)))).unwrap();
    assert_eq!(
        folder.names(),
        BTreeSet::from(["map".to_string()]),
        "what was kept back is gone"
    );
    for map in open_all::<u32, str>(&path) {
        let map = map.unwrap();
        assert_eq!(map.verify(), Ok(()));
        assert_eq!(map.len(), len as usize);
        let queries: Vec<u32> = (0..3 * len).step_by(101).collect();
        map.get_many_with(&queries, |index, found| {
            let query = queries[index];
            assert_eq!(
                found.map(str::to_owned),
                query.is_multiple_of(3).then(|| value(query / 3))
            );
        });
        // The index is small: a leaf has 32 keys of 4 B.
        let held = map.memory_usage();
        let own = held.checked_sub(map.file_bytes()).unwrap_or(held);
        assert!(own < 2 * len as usize / 8 + 4096, "{own} bytes");
    }
}

#[test]
fn sets_are_maps_to_nothing() {
    let folder = Folder::new();
    let path = folder.join("set");
    assert_eq!(
        MappedCTreeSet::<str>::write_unsorted(&path, ["b", "c", "a", "b"]).unwrap(),
        3
    );
    // SAFETY: nothing else uses the file.
    let mapped = unsafe { MappedCTreeSet::<str>::open(&path) }.unwrap();
    let copied = MappedCTreeSet::<str>::read(&path).unwrap();
    let from_map: MappedCTreeSet<str> = OpenOptions::new().read::<str, ()>(&path).unwrap().into();
    for set in [mapped, copied, from_map] {
        assert!(set.contains("a") && !set.contains("d"));
        let mut found = [false; 3];
        set.contains_many(&["d", "c", "a"], &mut found);
        assert_eq!(found, [false, true, true]);
        assert_eq!(set.iter().rev().collect::<Vec<_>>(), ["c", "b", "a"]);
        assert_eq!(set.into_iter().len(), 3);
        assert_eq!(
            (set.first(), set.last(), set.get_index(1)),
            (Some("a"), Some("c"), Some("b"))
        );
        assert_eq!(
            (set.rank("b"), set.rank_after("b"), set.get_index_of("b")),
            (1, 2, Some(1))
        );
        let mut ranks = [0; 2];
        set.rank_many(&["bb", "a"], &mut ranks);
        assert_eq!(ranks, [2, 0]);
        assert_eq!(set.range("b"..).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(set.verify(), Ok(()));
        assert_eq!(format!("{set:?}"), r#"{"a", "b", "c"}"#);
        assert!(set.file_bytes() > 0 && set.len() == 3 && !set.is_empty());
    }
    let bytes = MappedCTreeSet::<char>::to_bytes("aß".chars()).unwrap();
    let mut written = Cursor::new(Vec::new());
    MappedCTreeSet::<char>::write_to(&mut written, "aß".chars()).unwrap();
    assert!(written.into_inner() == bytes);
    assert_eq!(
        MappedCTreeSet::<char>::from_bytes(&bytes).unwrap().last(),
        Some('ß')
    );
}

#[test]
fn ranges_refuse_what_std_refuses() {
    let map = written::<u64, (), _, _>([(1, ()), (5, ())]);
    let refused = |bounds: (Bound<u64>, Bound<u64>)| {
        catch_unwind(AssertUnwindSafe(|| map.range::<u64>(bounds).len())).is_err()
    };
    assert!(refused((Bound::Included(5), Bound::Excluded(1))));
    assert!(refused((Bound::Excluded(1), Bound::Excluded(1))));
    assert!(!refused((Bound::Included(1), Bound::Excluded(1))));
    assert_eq!(
        map.range(2..=5).map(|(key, ())| key).collect::<Vec<_>>(),
        [5]
    );
    assert_eq!(
        format!("{map:?} {:?} {:?}", map.keys(), map.iter()),
        "{1: (), 5: ()} [1, 5] [(1, ()), (5, ())]"
    );
    let empty = written::<u64, (), u64, ()>([]);
    // As std's: there is nothing to compare with.
    #[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
    let none = empty.range(5..1).len();
    assert_eq!(none, 0);
}

#[test]
fn results_must_be_as_many_as_keys() {
    let map = written::<u64, u64, _, _>([(1, 1)]);
    assert!(catch_unwind(AssertUnwindSafe(|| map.get_many(&[1, 2], &mut [None]))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| map.contains_many(&[1], &mut []))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| map.rank_many(&[1], &mut [0, 0]))).is_err());
}

#[test]
fn types_of_ones_own() {
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable,
    )]
    #[repr(C)]
    struct Version {
        major: u16,
        minor: u16,
        patch: u32,
    }
    impl Plain for Version {
        fn type_name() -> String {
            "test/Version".into()
        }
    }
    let version = |n: u32| Version {
        major: u16::try_from(n / 100).unwrap(),
        minor: u16::try_from(n / 10 % 10).unwrap(),
        patch: n % 10,
    };
    let model: BTreeMap<Version, f32> = (0..700).map(|n| (version(n), 0.5)).collect();
    let map = written::<Version, f32, _, _>(&model);
    let queries: Vec<Version> = (0..=710).step_by(7).map(version).collect();
    agrees(&map, &model, &queries, |key| key, |value| value);
}

#[test]
fn maps_are_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let map = written::<u64, str, _, _>((0..1000).map(|n| (n, n.to_string())));
    shared(&map);
    shared(&map.iter());
}

#[test]
fn errors_are_told_in_words() {
    let error = OpenError::Verify(VerifyError::Page { page: 3 });
    assert_eq!(error.to_string(), "the file is damaged");
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "page 3 is damaged");
    let error = WriteError::from(io::Error::other("no room"));
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        "no room"
    );
    assert_eq!(
        WriteError::Order { index: 4 }.to_string(),
        "the key at index 4 is not greater than the key before it"
    );
}
