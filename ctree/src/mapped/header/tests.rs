//! Headers that lie, with a checksum that fits: what is refused by comparison alone.

use super::{
    FILE_BYTES_AT, HEADER_SUM_AT, INDEX_LENGTH_AT, INDEX_SUM_AT, KEY_TYPE_AT, LEN_AT, Page,
    SUMS_SUM_AT, header_sum, parse, put, u64_at,
};
use crate::mapped::layout::PAGE_BYTES;
use crate::mapped::{MappedCTreeMap, OpenError};

/// Header of a file with two leaves, and the length of the file.
fn header() -> (Page, u64) {
    let entries = (0..20u64).map(|n| (n, n));
    let bytes = MappedCTreeMap::<u64, u64>::to_bytes(entries).unwrap();
    (*bytes.first_chunk().unwrap(), bytes.len() as u64)
}

/// Gives a header the sum that fits it.
fn sign(page: &mut Page) {
    let sum = header_sum(page);
    put(page, HEADER_SUM_AT, &sum.to_ne_bytes());
}

#[test]
fn a_header_is_read_back() {
    let (page, file_bytes) = header();
    let (layout, sums) = parse::<u64, u64>(&page, file_bytes).unwrap();
    assert_eq!(
        (layout.len, layout.leaf_count, layout.file_bytes as u64),
        (20, 2, file_bytes)
    );
    assert_eq!(
        (sums.index, sums.sums),
        (u64_at(&page, INDEX_SUM_AT), u64_at(&page, SUMS_SUM_AT))
    );
}

#[test]
fn every_changed_byte_that_is_signed_is_refused_but_in_the_sums_of_other_parts() {
    let (page, file_bytes) = header();
    let other_sums = INDEX_SUM_AT..KEY_TYPE_AT;
    // Another number of entries that takes as much room, from 17 to 32, makes another file, which
    // is none the worse.
    let len_low = if cfg!(target_endian = "little") {
        LEN_AT
    } else {
        LEN_AT + 7
    };
    for at in 0..PAGE_BYTES {
        for change in [1, 0x80, 0xFF] {
            let mut forged = page;
            forged[at] ^= change;
            if !(HEADER_SUM_AT..HEADER_SUM_AT + 8).contains(&at) {
                sign(&mut forged);
            }
            let result = parse::<u64, u64>(&forged, file_bytes);
            let expected = other_sums.contains(&at) || (at == len_low && change == 1);
            assert_eq!(result.is_ok(), expected, "byte {at}");
        }
    }
}

#[test]
fn huge_numbers_are_refused() {
    let (page, file_bytes) = header();
    let numbers = [u64::MAX, 1 << 63, 1 << 62, 1 << 60, 1 << 40, 0, 1];
    for at in (FILE_BYTES_AT..INDEX_SUM_AT).step_by(8) {
        for number in numbers {
            let mut forged = page;
            put(&mut forged, at, &number.to_ne_bytes());
            sign(&mut forged);
            if forged != page {
                assert!(
                    parse::<u64, u64>(&forged, file_bytes).is_err(),
                    "{number} at {at}"
                );
            }
        }
    }
    // Of keys with a heap, where sizes are free: no overflow either.
    let bytes = MappedCTreeMap::<str, str>::to_bytes((0..20).map(|n| {
        let text = alloc::format!("{n:02}");
        (text.clone(), text)
    }))
    .unwrap();
    let page: Page = *bytes.first_chunk().unwrap();
    for at in (LEN_AT..=INDEX_LENGTH_AT).step_by(8) {
        for number in numbers {
            let mut forged = page;
            put(&mut forged, at, &number.to_ne_bytes());
            sign(&mut forged);
            if let Ok((layout, _)) = parse::<str, str>(&forged, bytes.len() as u64) {
                assert_eq!(layout.file_bytes, bytes.len(), "{number} at {at}");
            }
        }
    }
}

#[test]
fn a_signed_header_that_contradicts_itself_is_refused() {
    let (page, file_bytes) = header();
    let forged = |at: usize, bytes: &[u8]| {
        let mut page = page;
        put(&mut page, at, bytes);
        sign(&mut page);
        parse::<u64, u64>(&page, file_bytes).unwrap_err()
    };
    assert!(matches!(
        forged(KEY_TYPE_AT, b"\xFFu64"),
        OpenError::KeyType { .. }
    ));
    assert!(matches!(
        forged(LEN_AT, &33u64.to_ne_bytes()),
        OpenError::Layout
    ));
}
