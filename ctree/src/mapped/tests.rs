//! Forged files: random bytes with checksums that fit, so that only bounds protect the lookups.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::ops::Bound;

use super::layout::{PAGE_BYTES, SUM_BYTES, checksum};
use super::{AsStored, MappedCTreeMap, Stored, StoredKey, header};

/// A sequence of numbers that looks random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }
}

/// Computes all checksums of a file again.
fn sign<K: StoredKey + ?Sized, V: Stored + ?Sized>(bytes: &mut [u8]) {
    let page: header::Page = *bytes.first_chunk().unwrap();
    let Ok((layout, _)) = header::parse::<K, V>(&page, bytes.len() as u64) else {
        return;
    };
    let (pages, sums) = bytes.split_at_mut(layout.sums.at);
    for (page, sum) in pages[PAGE_BYTES..]
        .chunks_exact(PAGE_BYTES)
        .zip(sums.chunks_exact_mut(SUM_BYTES))
    {
        sum.copy_from_slice(&checksum(page).to_ne_bytes());
    }
    let sums = header::Sums {
        index: checksum(layout.index.of(bytes)),
        sums: checksum(layout.sums.of(bytes)),
    };
    header::sign(&mut bytes[..PAGE_BYTES], sums);
}

/// Calls everything that reads, and looks at every byte that it gives.
fn use_all<K: StoredKey + ?Sized, V: Stored + ?Sized, Q: Borrow<K>>(
    map: &MappedCTreeMap<K, V>,
    queries: &[Q],
) -> usize
where
    for<'a> K::Ref<'a>: core::fmt::Debug,
    for<'a> V::Ref<'a>: core::fmt::Debug,
{
    let mut seen = map.verify().is_ok().into();
    let mut see = |text: String| seen += text.len();
    for query in queries {
        see(format!(
            "{:?} {} {}",
            map.get(query.borrow()),
            map.rank(query.borrow()),
            map.rank_after(query.borrow())
        ));
        let after = (Bound::Excluded(query.borrow()), Bound::Unbounded);
        see(format!("{:?}", map.range::<K>(after).next()));
        let until = (Bound::Unbounded, Bound::Included(query.borrow()));
        see(format!("{:?}", map.range::<K>(until).next_back()));
    }
    map.get_many_with(queries, |_, value| see(format!("{value:?}")));
    see(format!("{map:?}"));
    see(format!(
        "{:?} {:?}",
        map.first_key_value(),
        map.last_key_value()
    ));
    seen
}

/// Forges files, and uses those that can be opened.
fn forge<K: StoredKey + ?Sized, V: Stored + ?Sized, B, C>(entries: &[(B, C)], seed: u64)
where
    B: Borrow<K>,
    for<'a> &'a B: AsStored<K>,
    for<'a> &'a C: AsStored<V>,
    for<'a> K::Ref<'a>: core::fmt::Debug,
    for<'a> V::Ref<'a>: core::fmt::Debug,
{
    let pairs = entries.iter().map(|(key, value)| (key, value));
    let bytes = MappedCTreeMap::<K, V>::to_bytes(pairs).unwrap();
    let queries: Vec<&K> = entries.iter().map(|(key, _)| key.borrow()).collect();
    let whole = MappedCTreeMap::<K, V>::from_bytes(&bytes).unwrap();
    assert_eq!(whole.verify(), Ok(()));
    let mut same = bytes.clone();
    sign::<K, V>(&mut same);
    assert!(same == bytes, "signing a whole file changes nothing");

    let mut random = Random(seed);
    let (mut opened, mut refused) = (0, 0);
    for _ in 0..if cfg!(miri) { 5 } else { 300 } {
        let mut forged = bytes.clone();
        for _ in 0..=random.below(4) {
            // Anywhere behind the header, most of which is compared rather than used; and often
            // what counts most: a few extremes.
            let at = PAGE_BYTES + random.below(forged.len() - PAGE_BYTES);
            let number = match random.below(4) {
                0 => random.next().to_ne_bytes(),
                1 => [0xFF; 8],
                2 => [0; 8],
                _ => random.next().to_ne_bytes().map(|byte| byte % 4),
            };
            let room = forged.len() - at;
            forged[at..][..room.min(8)].copy_from_slice(&number[..room.min(8)]);
        }
        sign::<K, V>(&mut forged);
        match MappedCTreeMap::<K, V>::from_bytes(&forged) {
            Ok(map) => {
                opened += 1;
                assert!(use_all(&map, &queries) > 0);
            }
            // Only the order of the separators is left to complain of.
            Err(super::OpenError::Index) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(opened > refused, "{opened} opened, {refused} refused");
}

/// Numbers `0..count`, with a gap after each.
fn numbers(count: u32) -> impl Iterator<Item = u32> {
    (0..count).map(|n| 2 * n + 1)
}

#[test]
fn forged_integers() {
    let entries: Vec<(u64, u64)> = numbers(400).map(|n| (n.into(), n.into())).collect();
    forge::<u64, u64, _, _>(&entries, 1);
    let entries: Vec<(i16, [u8; 3])> = (0..300).map(|n: i16| (n - 150, [1, 2, 3])).collect();
    forge::<i16, [u8; 3], _, _>(&entries, 2);
    let entries: Vec<(char, bool)> = ('a'..='z').map(|letter| (letter, letter < 'k')).collect();
    forge::<char, bool, _, _>(&entries, 3);
}

#[test]
fn forged_wide_keys() {
    let entries: Vec<([u8; 20], char)> = numbers(300)
        .map(|n| {
            let mut key = [0; 20];
            key[..4].copy_from_slice(&n.to_be_bytes());
            (key, 'x')
        })
        .collect();
    forge::<[u8; 20], char, _, _>(&entries, 4);
    let entries: Vec<(u128, ())> = numbers(300).map(|n| (n.into(), ())).collect();
    forge::<u128, (), _, _>(&entries, 5);
}

#[test]
fn forged_text() {
    let entries: Vec<(String, String)> = numbers(400)
        .map(|n| (format!("key {n:05}"), format!("{n:x}")))
        .collect();
    forge::<str, str, _, _>(&entries, 6);
    let entries: Vec<(Vec<u8>, Vec<u8>)> = entries
        .into_iter()
        .map(|(key, value)| (key.into(), value.into()))
        .collect();
    forge::<[u8], [u8], _, _>(&entries, 7);
    let entries: Vec<(u32, String)> = numbers(400).map(|n| (n, format!("{n:x}"))).collect();
    forge::<u32, str, _, _>(&entries, 8);
}
