//! The fuzzer's bytes as a file: as they are, or as edits of a whole file whose checksums are
//! computed anew, so that the fuzzer gets past them. What opens is looked up in every way; nothing
//! may panic, whatever the file holds.
#![no_main]

use std::ops::Bound;
use std::sync::LazyLock;

use ctree::{MappedCTreeMap, Stored, StoredKey};
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_64;

const PAGE_BYTES: usize = 4096;
const HEADER_SUM_AT: usize = 16;
/// Starts and lengths of the index and of the checksums, and where the header keeps their sums.
const INDEX_AT: usize = 128;
const SUMS_AT: usize = 144;
const INDEX_SUM_AT: usize = 160;
const SUMS_SUM_AT: usize = 168;

/// The number at a place of the header.
fn number(file: &[u8], at: usize) -> usize {
    let bytes = file[at..at + 8]
        .try_into()
        .expect("a number has eight bytes");
    usize::try_from(u64::from_ne_bytes(bytes)).unwrap_or(usize::MAX)
}

/// Puts the sum of a section, whose start and length stand in the header, into another place of the
/// header.
fn sign_section(file: &mut [u8], section_at: usize, sum_at: usize) {
    let (start, bytes) = (number(file, section_at), number(file, section_at + 8));
    let section = file.get(start..).and_then(|rest| rest.get(..bytes));
    if let Some(sum) = section.map(XxHash3_64::oneshot) {
        file[sum_at..sum_at + 8].copy_from_slice(&sum.to_ne_bytes());
    }
}

/// Computes the sums of a file anew, as far as its header lets one find them.
fn sign(file: &mut [u8]) {
    let table = number(file, SUMS_AT);
    if (PAGE_BYTES..=file.len()).contains(&table) {
        let (pages, sums) = file.split_at_mut(table);
        for (page, sum) in pages[PAGE_BYTES..]
            .chunks_exact(PAGE_BYTES)
            .zip(sums.chunks_exact_mut(8))
        {
            sum.copy_from_slice(&XxHash3_64::oneshot(page).to_ne_bytes());
        }
    }
    sign_section(file, INDEX_AT, INDEX_SUM_AT);
    sign_section(file, SUMS_AT, SUMS_SUM_AT);
    file[HEADER_SUM_AT..HEADER_SUM_AT + 8].fill(0);
    let sum = XxHash3_64::oneshot(&file[..PAGE_BYTES]);
    file[HEADER_SUM_AT..HEADER_SUM_AT + 8].copy_from_slice(&sum.to_ne_bytes());
}

/// Edits of a whole file: two bytes say where, the next what to write there; the first byte of each
/// says into which half of what.
fn edited(whole: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut file = whole.to_vec();
    for edit in edits.chunks_exact(4) {
        let place = usize::from(u16::from_be_bytes([edit[1], edit[2]]));
        // Of the header only what is not zero; of the rest everything.
        let at = if edit[0] < 64 {
            place % 368
        } else {
            PAGE_BYTES + place % (file.len() - PAGE_BYTES)
        };
        file[at] = edit[3];
    }
    sign(&mut file);
    file
}

/// Opens a file, and calls everything that reads.
fn open<K: StoredKey + ?Sized, V: Stored + ?Sized>(file: &[u8], queries: &[&K])
where
    for<'a> K::Ref<'a>: std::fmt::Debug,
    for<'a> V::Ref<'a>: std::fmt::Debug,
{
    let Ok(map) = MappedCTreeMap::<K, V>::from_bytes(file) else {
        return;
    };
    let verified = map.verify().is_ok();
    for query in queries {
        let rank = map.rank(query);
        assert!(rank <= map.rank_after(query) || !verified);
        assert!(rank <= map.len());
        assert_eq!(map.get(query).is_some(), map.contains_key(query));
        let bounds = (Bound::Included(*query), Bound::Unbounded);
        assert!(map.range::<K>(bounds).len() <= map.len());
    }
    let mut found = 0;
    map.get_many_with(queries, |_, value| found += usize::from(value.is_some()));
    assert!(found <= queries.len());
    if map.len() < 10_000 {
        assert!(format!("{map:?}").len() > 1);
        assert_eq!(map.iter().rev().count(), map.len());
    }
}

static NUMBERS: LazyLock<Vec<u8>> = LazyLock::new(|| {
    MappedCTreeMap::<u64, u32>::to_bytes((0..100).map(|n| (n << 32, 7)))
        .expect("numbers are written to memory")
});
static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    MappedCTreeMap::<str, str>::to_bytes((0..100).map(|n| (format!("key {n:03}"), n.to_string())))
        .expect("text is written to memory")
});
static WIDE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    MappedCTreeMap::<u128, char>::to_bytes((0..100).map(|n| (n, 'x')))
        .expect("numbers are written to memory")
});

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else {
        return;
    };
    let numbers = [0, 1 << 32, 99 << 32, u64::MAX];
    let numbers: Vec<&u64> = numbers.iter().collect();
    let wide = [0, 50, u128::MAX];
    let wide: Vec<&u128> = wide.iter().collect();
    let text = ["", "key 050", "key 0505", "\u{10FFFF}"];
    match kind % 6 {
        0 => open::<u64, u32>(bytes, &numbers),
        1 => open::<u64, u32>(&edited(&NUMBERS, bytes), &numbers),
        2 => open::<str, str>(bytes, &text),
        3 => open::<str, str>(&edited(&TEXT, bytes), &text),
        4 => open::<u128, char>(bytes, &wide),
        _ => open::<u128, char>(&edited(&WIDE, bytes), &wide),
    }
});
