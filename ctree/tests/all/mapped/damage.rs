//! Files that are cut, damaged, made to deceive, or of other types: an error, or at worst a wrong
//! answer.

use std::cmp::Ordering;
use std::fs;

use ctree::{MappedCTreeMap, OpenError, OpenOptions, Plain, Stored, StoredKey, WriteError};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::{Folder, open_all};
use crate::dynamic::lawless;

/// A small map that has all sections.
fn small() -> Vec<u8> {
    let entries = (0..40).map(|n| (format!("key {n:02}"), format!("value {n}")));
    MappedCTreeMap::<str, str>::to_bytes(entries).unwrap()
}

/// Opens and verifies.
fn verified<K: StoredKey + ?Sized, V: Stored + ?Sized>(bytes: &[u8]) -> Result<usize, OpenError> {
    let map = OpenOptions::new().verify(true).from_bytes::<K, V>(bytes)?;
    Ok(map.len())
}

#[test]
fn every_flipped_bit_is_found() {
    fn flip<K: StoredKey + ?Sized, V: Stored + ?Sized>(bytes: &[u8], len: usize, step: usize) {
        let mut flipped = bytes.to_vec();
        let (mut at_open, mut by_verify) = (0, 0);
        for bit in (0..8 * bytes.len()).step_by(if cfg!(miri) { 997 } else { step }) {
            flipped[bit / 8] ^= 1 << (bit % 8);
            // Without verification: an error, or a map that answers.
            if let Ok(map) = MappedCTreeMap::<K, V>::from_bytes(&flipped) {
                assert_eq!(map.iter().count(), len);
                assert!(map.verify().is_err(), "bit {bit}");
                by_verify += 1;
            } else {
                at_open += 1;
            }
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(at_open > 0 && by_verify > 0);
        assert_eq!(verified::<K, V>(&flipped).unwrap(), len);
    }
    // Every bit of a small file.
    let entries = (0..40u64).map(|n| (n << 40, n));
    flip::<u64, u64>(
        &MappedCTreeMap::<u64, u64>::to_bytes(entries).unwrap(),
        40,
        1,
    );
    // Bits of one with heaps: a step that is prime hits each place of a byte.
    flip::<str, str>(&small(), 40, 11);
}

#[test]
fn damage_in_a_large_file_is_found() {
    let len = if cfg!(miri) { 500 } else { 50_000 };
    let entries = (0..len).map(|n: u32| (format!("{n:08}"), n));
    let bytes = MappedCTreeMap::<str, u32>::to_bytes(entries).unwrap();
    let queries: Vec<String> = (0..len)
        .step_by(1 + len as usize / 300)
        .map(|n| format!("{n:08}"))
        .collect();
    let mut seed = 1u64;
    let mut random = |end: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from((seed >> 33) % end as u64).unwrap()
    };
    let mut opened = 0;
    for _ in 0..if cfg!(miri) { 3 } else { 60 } {
        let mut damaged = bytes.clone();
        let (at, run) = (random(bytes.len()), 1 + random(5000));
        let end = bytes.len().min(at + run);
        damaged[at..end]
            .iter_mut()
            .for_each(|byte| *byte = u8::try_from(random(256)).unwrap());
        if damaged == bytes {
            continue;
        }
        assert!(verified::<str, u32>(&damaged).is_err());
        if let Ok(map) = MappedCTreeMap::<str, u32>::from_bytes(&damaged) {
            opened += 1;
            map.get_many_with(&queries, |_, value| assert!(value.is_none_or(|_| true)));
            assert!(queries.iter().all(|query| map.rank(query) <= map.len()));
            assert_eq!(map.iter().rev().count(), len as usize);
        }
    }
    assert!(opened > 0, "most of a file is not its header and index");
}

#[test]
fn truncated_and_extended_files_are_refused() {
    let bytes = small();
    for len in (0..bytes.len()).step_by(if cfg!(miri) { 501 } else { 1 }) {
        let error = MappedCTreeMap::<str, str>::from_bytes(&bytes[..len]).unwrap_err();
        let expected_bytes = bytes.len() as u64;
        match error {
            OpenError::TooShort { file_bytes } => assert!(file_bytes == len as u64 && len < 4096),
            OpenError::Length {
                expected_bytes: expected,
                found_bytes,
            } => {
                assert_eq!((expected, found_bytes), (expected_bytes, len as u64));
            }
            other => panic!("{len} bytes: {other}"),
        }
    }
    for more in [1, 8, 4096, 100_000] {
        let longer = [&bytes[..], &vec![0; more]].concat();
        let error = MappedCTreeMap::<str, str>::from_bytes(&longer).unwrap_err();
        assert!(matches!(error, OpenError::Length { .. }), "{error}");
    }
    // The same by path.
    let folder = Folder::new();
    let path = folder.join("map");
    for len in [0, 1, 4095, 4096, 4097, bytes.len() - 1, bytes.len() + 1] {
        let mut file = bytes.clone();
        file.resize(len, 0);
        fs::write(&path, file).unwrap();
        for result in open_all::<str, str>(&path) {
            let error = result.unwrap_err();
            assert!(
                matches!(error, OpenError::TooShort { .. } | OpenError::Length { .. }),
                "{error}"
            );
        }
    }
}

#[test]
fn other_types_versions_and_machines_are_refused() {
    let bytes = MappedCTreeMap::<u64, u64>::to_bytes([(1, 1)]).unwrap();
    fn key_type<K: StoredKey + ?Sized>(bytes: &[u8]) -> bool {
        let map = MappedCTreeMap::<K, u64>::from_bytes(bytes);
        matches!(map, Err(OpenError::KeyType { found }) if found == "u64")
    }
    assert!(key_type::<i64>(&bytes) && key_type::<u32>(&bytes) && key_type::<str>(&bytes));
    assert!(key_type::<[u8; 8]>(&bytes) && key_type::<[u64; 1]>(&bytes));
    fn value_type<V: Stored + ?Sized>(bytes: &[u8]) -> bool {
        let map = MappedCTreeMap::<u64, V>::from_bytes(bytes);
        matches!(map, Err(OpenError::ValueType { found }) if found == "u64")
    }
    assert!(value_type::<f64>(&bytes) && value_type::<()>(&bytes) && value_type::<[u8]>(&bytes));
    let text = MappedCTreeMap::<str, str>::to_bytes([("a", "b")]).unwrap();
    assert!(matches!(
        MappedCTreeMap::<[u8], str>::from_bytes(&text),
        Err(OpenError::KeyType { .. })
    ));

    let with = |at: usize, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        MappedCTreeMap::<u64, u64>::from_bytes(&bytes).unwrap_err()
    };
    let other_order: Vec<u8> = bytes[8..12].iter().rev().copied().collect();
    assert!(matches!(with(8, &other_order), OpenError::ByteOrder));
    assert!(matches!(
        with(12, &7u32.to_ne_bytes()),
        OpenError::Version { found: 7 }
    ));
    // Version 1 had another checksum.
    assert_eq!(
        with(12, &1u32.to_ne_bytes()).to_string(),
        "the file has format version 1, and this library reads version 2"
    );
    assert!(matches!(with(0, b"SQLite f"), OpenError::Magic));
    assert!(matches!(with(4000, b"x"), OpenError::HeaderChecksum));
    assert_eq!(with(0, b"SQLite f").to_string(), "not a ctree file");
}

#[test]
fn names_of_types_must_fit() {
    #[derive(
        Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, FromBytes, IntoBytes, Immutable,
    )]
    #[repr(transparent)]
    struct Long(u8);
    impl Plain for Long {
        fn type_name() -> String {
            "x".repeat(96)
        }
    }
    let error = MappedCTreeMap::<Long, ()>::to_bytes([(Long(1), ())]).unwrap_err();
    assert!(
        matches!(&error, WriteError::TypeName { name } if name.len() == 96),
        "{error}"
    );
    let other = MappedCTreeMap::<u8, ()>::to_bytes([(1, ())]).unwrap();
    assert!(matches!(
        MappedCTreeMap::<Long, ()>::from_bytes(&other),
        Err(OpenError::KeyType { .. })
    ));
}

/// A key whose comparisons are sometimes right.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable)]
#[repr(transparent)]
struct Lawless(u32);

impl Plain for Lawless {
    fn type_name() -> String {
        "test/Lawless".into()
    }
}

impl Ord for Lawless {
    fn cmp(&self, other: &Lawless) -> Ordering {
        lawless::compare(&self.0, &other.0)
    }
}

ordered_by_cmp!(Lawless);

#[test]
fn a_lawless_order_leads_to_wrong_answers_only() {
    lawless::RIGHT.set(256);
    let entries: Vec<(Lawless, u32)> = (0..1000).map(|n| (Lawless(n), n)).collect();
    let bytes = MappedCTreeMap::<Lawless, u32>::to_bytes(entries).unwrap();
    let map = MappedCTreeMap::<Lawless, u32>::from_bytes(&bytes).unwrap();
    assert_eq!(map.get(&Lawless(7)), Some(7));
    for seed in 1..if cfg!(miri) { 3 } else { 200 } {
        lawless::ANSWERS.set(seed.into());
        lawless::RIGHT.set(u64::from(seed) / 2);
        let query = Lawless(seed);
        assert!(map.rank(&query) <= map.len());
        assert!(map.get(&query).is_none_or(|value| value < 1000));
        map.get_many_with(&[query; 100], |_, value| {
            assert!(value.is_none_or(|value| value < 1000));
        });
        let _any = (
            map.verify(),
            MappedCTreeMap::<Lawless, u32>::from_bytes(&bytes),
        );
    }
}
