//! Parallel iterators give what the others give, and each owned entry once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use ctree::{CTreeMap, CTreeSet, FrozenCTreeMap, FrozenCTreeSet};
use rayon::prelude::*;

const LENS: [u32; 9] = [0, 1, 2, 17, 31, 33, 300, 1000, 20_000];

/// Maps that grew one by one, so that their nodes are unequally full.
fn maps<V>(value: impl Fn(u32) -> V + Copy) -> impl Iterator<Item = CTreeMap<u32, V>> {
    LENS.into_iter()
        .map(|len| if cfg!(miri) { len.min(100) } else { len })
        .map(move |len| {
            let mut map = CTreeMap::new();
            for n in 0..len {
                let key = n.wrapping_mul(40_503) % 65_536;
                map.insert(key, value(key));
            }
            map
        })
}

#[test]
fn entries_come_in_order() {
    for mut map in maps(u64::from) {
        let entries: Vec<(u32, u64)> = map.iter().map(|(key, value)| (*key, *value)).collect();
        let parallel: Vec<(u32, u64)> = map.par_iter().map(|(key, value)| (*key, *value)).collect();
        assert_eq!(parallel, entries);
        map.par_iter_mut()
            .for_each(|(key, value)| *value += u64::from(*key));
        assert!(map.iter().all(|(key, value)| *value == 2 * u64::from(*key)));
        let set: CTreeSet<u32> = map.keys().copied().collect();
        let keys: Vec<&u32> = set.par_iter().collect();
        assert!(keys.into_iter().eq(map.keys()));
        let keys: Vec<u32> = set.clone().into_par_iter().collect();
        assert!(set.iter().eq(&keys));

        let mut frozen: FrozenCTreeMap<u32, u64> = entries.iter().copied().collect();
        assert_eq!(frozen.par_iter().len(), entries.len());
        assert!(
            frozen
                .par_iter()
                .zip(&entries)
                .all(|((key, _), entry)| *key == entry.0)
        );
        frozen.par_iter_mut().for_each(|(_, value)| *value += 1);
        let owned: Vec<(u32, u64)> = frozen.into_par_iter().collect();
        let expected = entries.iter().map(|(key, value)| (*key, value + 1));
        assert!(owned.into_iter().eq(expected));
        let frozen: FrozenCTreeSet<u32> = set.par_iter().copied().collect();
        assert!(frozen.par_iter().map(|key| *key).collect::<Vec<_>>() == keys);
        assert!(frozen.into_par_iter().collect::<Vec<_>>() == keys);
        assert_eq!(
            map.into_par_iter().map(|(key, _)| key).collect::<Vec<_>>(),
            keys
        );
    }
}

#[test]
fn each_owned_entry_is_dropped_once() {
    let token = Arc::new(());
    for map in maps(|_| Arc::clone(&token)) {
        let len = map.len();
        assert_eq!(Arc::strong_count(&token), len + 1);
        // Some are given out, the others not.
        let found = map.into_par_iter().find_any(|(key, _)| key % 3 == 0);
        assert_eq!(Arc::strong_count(&token), 1 + usize::from(found.is_some()));
        drop(found);
    }
    for map in maps(|_| Arc::clone(&token)) {
        let len = map.len();
        let kept: Vec<_> = map
            .into_par_iter()
            .filter(|(key, _)| key % 2 == 0)
            .collect();
        assert_eq!(Arc::strong_count(&token), kept.len() + 1);
        assert!(kept.len() <= len);
    }
    for map in maps(|_| Arc::clone(&token)) {
        let is_hit = map.contains_key(&0);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            map.into_par_iter().for_each(|(key, _)| {
                if key == 0 {
                    std::panic::resume_unwind(Box::new("the first key"));
                }
            });
        }));
        assert_eq!(panic.is_err(), is_hit);
        assert_eq!(Arc::strong_count(&token), 1);
    }
    drop(
        maps(|_| Arc::clone(&token))
            .map(IntoParallelIterator::into_par_iter)
            .collect::<Vec<_>>(),
    );
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn maps_are_built_and_extended() {
    let len = if cfg!(miri) { 200 } else { 30_000_u64 };
    let entries: Vec<(u64, u64)> = (0..len).map(|n| (n * 7919 % (len / 2 + 1), n)).collect();
    let one_by_one: CTreeMap<u64, u64> = entries.iter().copied().collect();
    let parallel: CTreeMap<u64, u64> = entries.par_iter().copied().collect();
    assert_eq!((parallel.check(), &parallel), (Ok(()), &one_by_one));
    let frozen: FrozenCTreeMap<u64, u64> = entries.par_iter().copied().collect();
    assert_eq!(frozen.check(), Ok(()));
    assert!(frozen.iter().eq(&one_by_one));
    let texts = entries
        .par_iter()
        .map(|(key, value)| (key.to_string(), *value));
    let frozen: FrozenCTreeMap<String, u64> = texts.collect();
    assert_eq!((frozen.check(), frozen.len()), (Ok(()), parallel.len()));
    let frozen: FrozenCTreeSet<u64> = entries.par_iter().map(|entry| entry.0).collect();
    assert!(frozen.iter().eq(parallel.keys()));
    let none: FrozenCTreeMap<u64, u64> = entries[..0].par_iter().copied().collect();
    assert_eq!((none.len(), none.check()), (0, Ok(())));

    let mut extended = CTreeMap::with_ranks();
    extended.insert(u64::MAX, 0);
    extended.par_extend(entries.par_iter().copied());
    extended.par_extend(one_by_one.par_iter());
    assert_eq!(extended.pop_last(), Some((u64::MAX, 0)));
    assert_eq!((extended.check(), &extended), (Ok(()), &one_by_one));

    let mut set: CTreeSet<u64> = entries.par_iter().map(|entry| entry.0).collect();
    assert!(set.iter().eq(parallel.keys()));
    set.par_extend(vec![7, u64::MAX]);
    assert_eq!((set.check(), set.len()), (Ok(()), parallel.len() + 1));
}
