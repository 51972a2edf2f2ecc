//! The public face of the map against std's, where the tree below has several levels. (The tree
//! itself, and long programs of all operations, are tested elsewhere.)

use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Bound;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use quickcheck::{TestResult, quickcheck};

use super::{CTreeMap, Entry};

/// Entries enough for three levels of nodes of small entries.
const LEN: usize = if cfg!(miri) { 300 } else { 5000 };

/// A value so large that nodes hold few of them, and maps of some hundred entries have many levels.
type Large = [u64; 64];

/// The map of `2 n -> n`, and the same in std's.
fn even_maps(len: usize) -> (CTreeMap<u32, usize>, BTreeMap<u32, usize>) {
    let entries = (0..len).map(|n| (u32::try_from(2 * n).unwrap(), n));
    (entries.clone().collect(), entries.collect())
}

/// A value that counts its drops.
#[derive(Clone)]
struct Counted(Rc<Cell<usize>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn both_ends_meet_wherever_they_do() {
    let map: CTreeMap<u16, Large> = (0..60).map(|key| (key, [u64::from(key); 64])).collect();
    for front_len in 0..=60 {
        let mut iter = map.iter();
        let front: Vec<u16> = iter.by_ref().take(front_len).map(|(key, _)| *key).collect();
        assert_eq!(iter.len(), 60 - front_len);
        let back: Vec<u16> = iter.by_ref().rev().map(|(key, _)| *key).collect();
        assert_eq!((iter.next(), iter.next_back(), iter.len()), (None, None, 0));
        assert!(front.iter().chain(back.iter().rev()).copied().eq(0..60));

        let mut range = map.range::<u16, _>(..);
        let front: Vec<u16> = range
            .by_ref()
            .take(front_len)
            .map(|(key, _)| *key)
            .collect();
        let back: Vec<u16> = range.by_ref().rev().map(|(key, _)| *key).collect();
        assert_eq!(
            (range.next(), range.next_back(), range.next()),
            (None, None, None)
        );
        assert!(front.iter().chain(back.iter().rev()).copied().eq(0..60));
    }
}

#[test]
fn owned_entries_come_from_both_ends() {
    for front_len in [0, 1, LEN / 3, LEN] {
        let (map, model) = even_maps(LEN);
        let (mut iter, mut expected) = (map.into_iter(), model.into_iter());
        for _ in 0..front_len {
            assert_eq!(iter.next(), expected.next());
        }
        assert_eq!(iter.len(), expected.len());
        assert!(iter.rev().eq(expected.rev()));
    }
}

quickcheck! {
    fn ranges_are_those_of_std(keys: Vec<u8>, start: Bound<u8>, end: Bound<u8>, ends: Vec<bool>) -> TestResult {
        let model: BTreeMap<u8, Large> = keys.iter().map(|key| (*key, [u64::from(*key); 64])).collect();
        let mut map: CTreeMap<u8, Large> = model.clone().into();
        let is_valid = match (start, end) {
            (Bound::Excluded(start), Bound::Excluded(end)) => start < end,
            (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start <= end,
            _ => true,
        };
        if !is_valid {
            let panics = catch_unwind(|| map.range((start, end)).count()).is_err();
            return TestResult::from_bool(panics || model.is_empty());
        }
        let expected: Vec<_> = model.range((start, end)).collect();
        assert!(map.range((start, end)).eq(expected.iter().copied()));
        assert!(map.range((start, end)).rev().eq(expected.iter().rev().copied()));
        // `fold` and `rfold` go leaf by leaf.
        let mut folded = Vec::new();
        map.range((start, end)).for_each(|entry| folded.push(entry));
        assert_eq!(folded, expected);
        folded.clear();
        map.range((start, end)).rev().for_each(|entry| folded.push(entry));
        folded.reverse();
        assert_eq!(folded, expected);
        // From both ends in any order, then the loops over the rest.
        let (mut iter, mut model_iter) = (map.range((start, end)), model.range((start, end)));
        for is_front in ends {
            if is_front {
                assert_eq!(iter.next(), model_iter.next());
            } else {
                assert_eq!(iter.next_back(), model_iter.next_back());
            }
            assert!(iter.clone().eq(model_iter.clone()));
            assert_eq!(iter.clone().count(), model_iter.clone().count());
            let mut rest = Vec::new();
            iter.clone().rev().for_each(|entry| rest.push(entry));
            assert!(rest.into_iter().eq(model_iter.clone().rev()));
        }
        for (key, value) in map.range_mut((start, end)) {
            value[0] = u64::from(*key) + 1000;
        }
        for (key, value) in &map {
            let inside = model.range((start, end)).any(|(other, _)| other == key);
            assert_eq!(value[0], u64::from(*key) + if inside { 1000 } else { 0 });
        }
        TestResult::passed()
    }

    fn jumps_are_steps(len: u16, jumps: Vec<(bool, u8)>) -> bool {
        let len = usize::from(len) % LEN;
        let (map, model) = even_maps(len);
        let (mut iter, mut expected) = (map.iter(), model.iter());
        jumps.into_iter().all(|(is_front, count)| {
            let count = usize::from(count);
            let same = if is_front {
                iter.nth(count) == expected.nth(count)
            } else {
                iter.nth_back(count) == expected.nth_back(count)
            };
            let (mut rest, mut rest_back) = (Vec::new(), Vec::new());
            iter.clone().for_each(|entry| rest.push(entry));
            iter.clone().rev().for_each(|entry| rest_back.push(entry));
            same && iter.len() == expected.len()
                && rest.into_iter().eq(expected.clone())
                && rest_back.into_iter().eq(expected.clone().rev())
        })
    }

    fn of_equal_keys_the_last_stays(entries: Vec<(u8, u32)>) -> bool {
        let map: CTreeMap<u8, u32> = entries.iter().copied().collect();
        let model: BTreeMap<u8, u32> = entries.into_iter().collect();
        let copy = CTreeMap::from(model.clone());
        let is_same = map.check().is_ok() && map.iter().eq(&model) && map == copy;
        let back = BTreeMap::from(map);
        is_same && back == model
    }

    fn appending_is_merging(left: Vec<(u8, Large)>, right: Vec<(u8, Large)>) -> bool {
        let (mut map, mut other): (CTreeMap<_, _>, CTreeMap<_, _>) =
            (left.iter().copied().collect(), right.iter().copied().collect());
        let (mut model, mut other_model): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (left.into_iter().collect(), right.into_iter().collect());
        map.append(&mut other);
        model.append(&mut other_model);
        map.check().is_ok() && map.iter().eq(&model) && other.is_empty()
    }

    fn extraction_stops_anywhere(keys: Vec<u8>, modulus: u8, asked: usize, range: (u8, u8)) -> bool {
        let modulus = modulus.max(1);
        let range = range.0.min(range.1)..=range.0.max(range.1);
        let mut map: CTreeMap<u8, Large> = keys.iter().map(|key| (*key, [0; 64])).collect();
        let mut model: BTreeMap<u8, Large> = keys.iter().map(|key| (*key, [0; 64])).collect();
        let asked = asked % 10;
        let mut iter = map.extract_if(range.clone(), |key, _| key % modulus == 0);
        let taken: Vec<u8> = iter.by_ref().take(asked).map(|(key, _)| key).collect();
        let expected: Vec<u8> = model.extract_if(range, |key, _| key % modulus == 0).take(asked).map(|(key, _)| key).collect();
        map.check().is_ok() && taken == expected && map.iter().eq(&model)
    }

    fn retained_is_what_was_chosen(keys: Vec<u16>, modulus: u16) -> bool {
        let modulus = modulus % 7 + 1;
        let mut map: CTreeMap<u16, u16> = keys.iter().map(|key| (*key, *key)).collect();
        let mut model: BTreeMap<u16, u16> = keys.iter().map(|key| (*key, *key)).collect();
        map.retain(|key, value| { *value = value.wrapping_add(1); key % modulus == 0 });
        model.retain(|key, value| { *value = value.wrapping_add(1); key % modulus == 0 });
        map.check().is_ok() && map.iter().eq(&model)
    }

    fn cursors_walk_insert_and_remove(keys: Vec<u8>, start: Bound<u8>, steps: Vec<(u8, u8)>) -> bool {
        let mut map: CTreeMap<u8, Large> = keys.iter().map(|key| (*key, [0; 64])).collect();
        // The model of a cursor: an index into a sorted vector.
        let mut model: Vec<u8> = map.keys().copied().collect();
        let mut at = match start {
            Bound::Included(start) => model.partition_point(|key| *key < start),
            Bound::Excluded(start) => model.partition_point(|key| *key <= start),
            Bound::Unbounded => 0,
        };
        let mut cursor = map.lower_bound_mut(start.as_ref());
        for (step, key) in steps {
            let fits = at.checked_sub(1).is_none_or(|prev| model[prev] < key) && model.get(at).is_none_or(|next| *next > key);
            match step % 6 {
                0 => {
                    assert_eq!(cursor.next().map(|(key, _)| *key), model.get(at).copied());
                    at = (at + 1).min(model.len());
                }
                1 => {
                    assert_eq!(cursor.prev().map(|(key, _)| *key), at.checked_sub(1).map(|prev| model[prev]));
                    at = at.saturating_sub(1);
                }
                2 => {
                    assert_eq!(cursor.insert_before(key, [0; 64]).is_ok(), fits);
                    if fits {
                        model.insert(at, key);
                        at += 1;
                    }
                }
                3 => {
                    assert_eq!(cursor.insert_after(key, [0; 64]).is_ok(), fits);
                    if fits {
                        model.insert(at, key);
                    }
                }
                4 => {
                    let expected = (at < model.len()).then(|| model.remove(at));
                    assert_eq!(cursor.remove_next().map(|(key, _)| key), expected);
                }
                _ => {
                    let expected = at.checked_sub(1).map(|prev| model.remove(prev));
                    at = at.saturating_sub(1);
                    assert_eq!(cursor.remove_prev().map(|(key, _)| key), expected);
                }
            }
            assert_eq!(cursor.peek_prev().map(|(key, _)| *key), at.checked_sub(1).map(|prev| model[prev]));
            assert_eq!(cursor.as_cursor().peek_next().map(|(key, _)| *key), model.get(at).copied());
        }
        map.check().is_ok() && map.into_keys().eq(model)
    }

    fn bounds_are_those_of_a_sorted_list(keys: Vec<u8>, bound: Bound<u8>) -> bool {
        let map: CTreeMap<u8, Large> = keys.iter().map(|key| (*key, [0; 64])).collect();
        let sorted: Vec<u8> = map.keys().copied().collect();
        let (lower, upper) = match bound {
            Bound::Included(bound) => (sorted.partition_point(|key| *key < bound), sorted.partition_point(|key| *key <= bound)),
            Bound::Excluded(bound) => (sorted.partition_point(|key| *key <= bound), sorted.partition_point(|key| *key < bound)),
            Bound::Unbounded => (0, sorted.len()),
        };
        let next = |index: usize| sorted.get(index).copied();
        map.lower_bound(bound.as_ref()).peek_next().map(|(key, _)| *key) == next(lower)
            && map.upper_bound(bound.as_ref()).peek_next().map(|(key, _)| *key) == next(upper)
            && map.upper_bound(bound.as_ref()).peek_prev().map(|(key, _)| *key) == upper.checked_sub(1).map(|prev| sorted[prev])
    }

    fn ranks_count_lesser_keys(keys: Vec<u16>, query: u16, with_ranks: bool) -> bool {
        let mut map = if with_ranks { CTreeMap::with_ranks() } else { CTreeMap::new() };
        map.extend(keys.iter().map(|key| (*key, ())));
        let sorted: Vec<u16> = map.keys().copied().collect();
        map.rank(&query) == sorted.partition_point(|key| *key < query)
            && map.get_index_of(&query) == sorted.binary_search(&query).ok()
            && sorted.iter().enumerate().all(|(rank, key)| map.get_index(rank) == Some((key, &())) && map.get_index_of(key) == Some(rank))
            && map.get_index(sorted.len()).is_none()
    }

    fn many_at_once_are_one_by_one(entries: Vec<(u16, u16)>, queries: Vec<u16>) -> bool {
        let mut map: CTreeMap<u16, u16> = CTreeMap::new();
        map.insert_many(entries.iter().copied());
        let mut model = BTreeMap::new();
        model.extend(entries);
        let (mut values, mut flags) = (alloc::vec![None; queries.len()], alloc::vec![false; queries.len()]);
        map.get_many(&queries, &mut values);
        map.contains_many(&queries, &mut flags);
        map.iter().eq(&model)
            && queries.iter().zip(&values).all(|(query, value)| *value == model.get(query))
            && queries.iter().zip(&flags).all(|(query, flag)| *flag == model.contains_key(query))
    }
}

/// Enough entries for four levels of small entries, and for chunks of huge pages.
#[test]
#[cfg_attr(miri, ignore = "takes hours")]
fn large_maps_change_as_those_of_std() {
    const KEYS: u64 = 1 << 20;
    let mut state = 1u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % KEYS
    };
    let (mut map, mut model) = (CTreeMap::new(), BTreeMap::new());
    let mut levels_max = 0;
    for round in 0..16 {
        for _ in 0..50_000 {
            let key = random();
            assert_eq!(map.insert(key, round), model.insert(key, round));
        }
        levels_max = levels_max.max(map.level_count());
        let at = random();
        match round % 4 {
            0 => {
                for key in at..at + KEYS / 8 {
                    assert_eq!(map.remove(&key), model.remove(&key));
                }
            }
            1 | 2 => {
                let (mut high, high_model) = (map.split_off(&at), model.split_off(&at));
                assert_eq!((map.check(), high.check()), (Ok(()), Ok(())));
                assert!(map.iter().eq(&model) && high.iter().eq(&high_model));
                map = map.clone();
                high.append(&mut map);
                (map, model) = (high, model.into_iter().chain(high_model).collect());
            }
            _ => {
                map.retain(|key, _| key % 8 != at % 8);
                model.retain(|key, _| key % 8 != at % 8);
                map.compact();
            }
        }
        assert_eq!(map.check(), Ok(()));
        assert!(map.iter().eq(&model));
    }
    assert!(levels_max > 3, "{levels_max} levels");
}

#[test]
fn long_insertions_go_in_batches() {
    // More than the size from which on insertions are batched, in an order that is neither
    // ascending nor random.
    let len = if cfg!(miri) { 500 } else { 6000_u64 };
    let entries = (0..len).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15), [n; 64]));
    let mut map = CTreeMap::new();
    map.extend(entries.clone());
    assert_eq!(map.check(), Ok(()));
    assert!(map.iter().eq(&entries.collect::<BTreeMap<_, _>>()));
}

#[test]
fn an_iterator_that_has_ended_is_not_asked_again() {
    /// Gives entries again after its end.
    struct Unfused(u32);
    impl Iterator for Unfused {
        type Item = (u32, Large);
        fn next(&mut self) -> Option<(u32, Large)> {
            self.0 += 1;
            (self.0 < 6000 || self.0 > 6001).then_some((self.0, [0; 64]))
        }
        fn size_hint(&self) -> (usize, Option<usize>) {
            (usize::MAX, None)
        }
    }
    let mut map = CTreeMap::new();
    map.extend(Unfused(0));
    assert_eq!(map.len(), 5999);
    assert_eq!(map.last_key_value(), Some((&5999, &[0; 64])));
}

#[test]
fn a_short_map_appended_to_a_long_one_keeps_the_keys_of_the_long_one() {
    let mut long: CTreeMap<String, u32> = (0..200)
        .map(|n: u32| (alloc::format!("{n:03}"), n))
        .collect();
    let mut word = String::with_capacity(100);
    word.push_str("007");
    let mut short = CTreeMap::from([(word, 7000)]);
    long.append(&mut short);
    assert_eq!(long["007"], 7000);
    assert!(
        long.get_key_value("007")
            .is_some_and(|(key, _)| key.capacity() < 100)
    );
    assert!(short.is_empty());
}

#[test]
fn appending_keeps_what_each_map_was_made() {
    let mut ranked = CTreeMap::with_ranks();
    let mut plain: CTreeMap<u32, ()> = (0..1000).map(|key| (key, ())).collect();
    ranked.append(&mut plain);
    assert!(ranked.tree.has_ranks() && !plain.tree.has_ranks());
    assert_eq!((ranked.rank(&500), plain.len()), (500, 0));
    assert_eq!(ranked.check(), Ok(()));
    assert!(ranked.split_off(&600).tree.has_ranks());
    assert!(ranked.clone().tree.has_ranks());
}

#[test]
fn entries_do_what_their_names_say() {
    let mut map: CTreeMap<u32, Large> = (0..100).map(|key| (2 * key, [0; 64])).collect();
    for key in 0..200 {
        match map.entry(key) {
            Entry::Occupied(mut entry) => {
                assert_eq!((*entry.key() % 2, entry.get()[0]), (0, 0));
                entry.get_mut()[0] = 1;
                assert_eq!(entry.insert([2; 64])[0], 1);
                if key % 4 == 0 {
                    assert_eq!(entry.remove_entry(), (key, [2; 64]));
                }
            }
            Entry::Vacant(entry) => {
                assert_eq!(*entry.key(), key);
                if key % 3 == 0 {
                    assert_eq!(entry.into_key(), key);
                } else {
                    let mut entry = entry.insert_entry([u64::from(key); 64]);
                    assert_eq!((*entry.key(), entry.get_mut()[0]), (key, u64::from(key)));
                    entry.into_mut()[1] = 5;
                }
            }
        }
        assert_eq!(map.check(), Ok(()));
    }
    let expected = (0..200).filter(|key| key % 4 == 2 || (key % 2 == 1 && key % 3 != 0));
    assert!(map.keys().copied().eq(expected));
    assert_eq!(map.get(&1).map(|value| value[1]), Some(5));
    assert_eq!(map.entry(0).or_insert_with(|| [7; 64])[0], 7);
    assert_eq!(map.entry(0).or_insert([8; 64])[0], 7);
    assert_eq!(
        map.entry(4).or_insert_with_key(|key| [u64::from(*key); 64])[0],
        4
    );
    assert_eq!(
        map.entry(0)
            .and_modify(|value| value[0] = 9)
            .or_insert([0; 64])[0],
        9
    );
    assert_eq!(map.entry(8).insert_entry([1; 64]).remove()[0], 1);
    assert_eq!(map.first_entry().map(|entry| entry.remove()[0]), Some(9));
    assert_eq!(map.last_entry().map(|entry| *entry.key()), Some(199));
    let mut counts: CTreeMap<&str, u32> = CTreeMap::new();
    *counts.entry("a").or_default() += 1;
    assert_eq!(counts["a"], 1);
}

#[test]
fn an_owning_iterator_drops_the_rest_once() {
    for taken in [0, 1, 30, LEN] {
        let drops = Rc::new(Cell::new(0));
        let map: CTreeMap<usize, Counted> =
            (0..LEN).map(|n| (n, Counted(Rc::clone(&drops)))).collect();
        let mut iter = map.into_iter();
        for _ in 0..taken / 2 {
            drop((iter.next(), iter.next_back()));
        }
        assert_eq!(drops.get(), taken / 2 * 2);
        drop(iter);
        assert_eq!(drops.get(), LEN);
    }
}

#[test]
fn an_owning_iterator_drops_the_rest_when_a_drop_panics() {
    /// Panics when it is dropped, if told so.
    struct Bomb(
        bool,
        #[expect(dead_code, reason = "dropped with the bomb")] Counted,
    );
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.0, "a drop panics");
        }
    }
    let len = 200;
    for bomb in [0, 1, 57, len - 1] {
        let drops = Rc::new(Cell::new(0));
        let map: CTreeMap<usize, Bomb> = (0..len)
            .map(|n| (n, Bomb(n == bomb, Counted(Rc::clone(&drops)))))
            .collect();
        let result = catch_unwind(AssertUnwindSafe(|| drop(map.into_iter())));
        assert!(result.is_err());
        assert_eq!(drops.get(), len);
    }
}

#[test]
fn a_panicking_closure_leaves_a_whole_map() {
    for at in [0, 50, 199] {
        let drops = Rc::new(Cell::new(0));
        let mut map: CTreeMap<usize, Counted> =
            (0..200).map(|n| (n, Counted(Rc::clone(&drops)))).collect();
        let result = catch_unwind(AssertUnwindSafe(|| {
            map.retain(|key, _| {
                assert!(*key != at, "the closure panics");
                key % 2 == 0
            });
        }));
        assert!(result.is_err());
        assert_eq!(map.check(), Ok(()));
        assert_eq!(map.len() + drops.get(), 200);
        assert!(map.contains_key(&at));
        drop(map);
        assert_eq!(drops.get(), 200);
    }
}

#[test]
fn ranges_of_contradictory_bounds_give_nothing_twice() {
    use core::borrow::Borrow;
    use core::cmp::Ordering;

    std::thread_local! {
        static ANSWERS: Cell<u64> = const { Cell::new(0) };
    }

    /// A borrowed form of the key whose order is drawn by lot.
    #[derive(Debug, PartialEq, Eq)]
    struct Lots(u16);
    impl Ord for Lots {
        fn cmp(&self, _: &Lots) -> Ordering {
            let answers = ANSWERS.get();
            ANSWERS.set(answers.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1));
            match answers >> 62 {
                0 | 1 => Ordering::Less,
                2 => Ordering::Equal,
                _ => Ordering::Greater,
            }
        }
    }
    impl PartialOrd for Lots {
        fn partial_cmp(&self, other: &Lots) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Key(Lots);
    impl Borrow<Lots> for Key {
        fn borrow(&self) -> &Lots {
            &self.0
        }
    }

    let len = 100;
    let entries = (0..len).map(|key| (Key(Lots(key)), [0; 64]));
    // Built without a comparison, so that the keys are in the order of their numbers.
    let mut map: CTreeMap<Key, Large> = CTreeMap::from_ascending(
        entries,
        allocator_api2::alloc::Global,
        crate::tree::Options::PLAIN,
    );
    let mut crossed = 0;
    for seed in 0..if cfg!(miri) { 20 } else { 2000_u64 } {
        ANSWERS.set(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let bounds = (Bound::Included(Lots(0)), Bound::Excluded(Lots(0)));
        let Ok(mut range) = catch_unwind(AssertUnwindSafe(|| map.range_mut(bounds))) else {
            continue;
        };
        let mut given = [0; 100];
        let mut firsts = [None; 2];
        for step in 0_u64.. {
            let is_front = (seed >> (step % 7)) & 1 == 0;
            let entry = if is_front {
                range.next()
            } else {
                range.next_back()
            };
            let Some((key, value)) = entry else { break };
            value[0] += 1;
            given[usize::from(key.0.0)] += 1;
            firsts[usize::from(is_front)].get_or_insert(key.0.0);
        }
        assert_eq!((range.next(), range.next_back()), (None, None));
        assert!(given.iter().all(|times| *times <= 1));
        let [last, first] = firsts;
        crossed += usize::from(last.is_some() && first > last);
    }
    assert!(
        crossed > 0 || cfg!(miri),
        "no range had its bounds the wrong way round"
    );
}

#[test]
fn constants_and_frozen_maps() {
    const EMPTY: CTreeMap<String, Vec<u8>> = CTreeMap::new();
    assert!(EMPTY.is_empty());
    let frozen: crate::FrozenCTreeMap<u32, u32> = (0..500).map(|n| (n, 2 * n)).collect();
    let map = CTreeMap::from(frozen.clone());
    assert_eq!(map.check(), Ok(()));
    assert!(map.into_iter().eq(frozen));
}

#[test]
fn empty_maps_are_empty_everywhere() {
    let mut map: CTreeMap<u32, u32> = CTreeMap::new();
    assert_eq!(map.memory_usage(), 0);
    for _ in 0..2 {
        assert_eq!(
            (map.len(), map.iter().len(), map.range(..).next()),
            (0, 0, None)
        );
        assert_eq!((map.first_key_value(), map.last_key_value()), (None, None));
        assert_eq!(
            (map.pop_first(), map.pop_last(), map.remove(&1)),
            (None, None, None)
        );
        assert_eq!(map.range(1..2).next(), None);
        assert_eq!(map.range_mut(..=5).next_back(), None);
        assert_eq!(
            (map.rank(&7), map.get_index(0), map.get_index_of(&7)),
            (0, None, None)
        );
        assert_eq!(map.extract_if(.., |_, _| true).next(), None);
        assert_eq!(map.lower_bound(Bound::Included(&1)).peek_next(), None);
        let mut cursor = map.upper_bound_mut(Bound::<&u32>::Unbounded);
        assert_eq!(cursor.next(), None);
        assert_eq!((cursor.remove_prev(), cursor.remove_next()), (None, None));
        assert!(map.split_off(&3).is_empty());
        assert_eq!(map.clone().into_iter().next_back(), None);
        map.compact();
        assert_eq!(map.check(), Ok(()));
        // Once more, emptied by removal.
        map.insert(1, 1);
        assert_eq!(map.remove(&1), Some(1));
    }
    let mut cursor = map.lower_bound_mut(Bound::<&u32>::Unbounded);
    assert_eq!(cursor.insert_after(3, 30), Ok(()));
    assert_eq!(cursor.insert_before(2, 20), Ok(()));
    assert_eq!(
        cursor.insert_before(3, 0).unwrap_err(),
        super::UnorderedKeyError {}
    );
    assert!(map.into_iter().eq([(2, 20), (3, 30)]));
}

#[test]
fn iterators_of_nothing_by_default() {
    assert_eq!(super::Iter::<u32, u32>::default().next(), None);
    assert_eq!(super::IterMut::<u32, u32>::default().next_back(), None);
    assert_eq!(super::Keys::<u32, u32>::default().len(), 0);
    assert_eq!(super::Values::<u32, u32>::default().nth(3), None);
    assert_eq!(super::ValuesMut::<u32, u32>::default().last(), None);
    assert_eq!(super::Range::<u32, u32>::default().next(), None);
    assert_eq!(super::RangeMut::<u32, u32>::default().next_back(), None);
    assert_eq!(super::IntoIter::<u32, u32>::default().next(), None);
    assert_eq!(super::IntoKeys::<u32, u32>::default().max(), None);
    assert_eq!(super::IntoValues::<u32, u32>::default().count(), 0);
}

#[test]
fn debug_prints_what_is_left() {
    let mut map = CTreeMap::from([(1, 'a'), (2, 'b'), (3, 'c')]);
    assert_eq!(alloc::format!("{map:?}"), "{1: 'a', 2: 'b', 3: 'c'}");
    let mut iter = map.iter_mut();
    iter.next();
    assert_eq!(alloc::format!("{iter:?}"), "[(2, 'b'), (3, 'c')]");
    assert_eq!(
        alloc::format!("{:?}", map.range(2..)),
        "[(2, 'b'), (3, 'c')]"
    );
    assert_eq!(alloc::format!("{:?}", map.keys()), "[1, 2, 3]");
    assert_eq!(alloc::format!("{:?}", map.values_mut()), "['a', 'b', 'c']");
    assert_eq!(
        alloc::format!("{:?}", map.lower_bound(Bound::Included(&2))),
        "Cursor { prev: Some((1, 'a')), next: Some((2, 'b')) }"
    );
    assert_eq!(
        alloc::format!("{:?}", map.entry(4)),
        "Entry(VacantEntry(4))"
    );
    assert_eq!(
        alloc::format!("{:?}", map.extract_if(2.., |_, _| true)),
        "ExtractIf { peek: Some((2, 'b')), .. }"
    );
    assert_eq!(alloc::format!("{:?}", map.into_values()), "['a', 'b', 'c']");
}

#[test]
fn auto_traits_are_those_of_std() {
    use core::panic::{RefUnwindSafe, UnwindSafe};
    fn all<T: Send + Sync + Unpin + UnwindSafe + RefUnwindSafe>() {}
    fn unpin<T: Unpin>() {}
    all::<CTreeMap<u32, String>>();
    all::<super::Iter<'_, u32, String>>();
    all::<super::Range<'_, u32, String>>();
    all::<super::Cursor<'_, u32, String>>();
    all::<super::IntoIter<u32, String>>();
    unpin::<CTreeMap<core::marker::PhantomPinned, core::marker::PhantomPinned>>();
    unpin::<super::IntoIter<core::marker::PhantomPinned, core::marker::PhantomPinned>>();
}

#[cfg(feature = "serde")]
#[test]
fn serde_reads_what_it_writes() {
    let map: CTreeMap<u32, String> = (0..1000).map(|n| (n, alloc::format!("{n}"))).collect();
    let text = serde_json::to_string(&map).unwrap();
    let model: BTreeMap<u32, String> = serde_json::from_str(&text).unwrap();
    assert_eq!(text, serde_json::to_string(&model).unwrap());
    let read: CTreeMap<u32, String> = serde_json::from_str(&text).unwrap();
    assert_eq!((read.check(), &read), (Ok(()), &map));
    // Out of order, with a key twice.
    let read: CTreeMap<u32, char> =
        serde_json::from_str(r#"{"5":"a","7":"b","6":"c","5":"d"}"#).unwrap();
    assert!(read.into_iter().eq([(5, 'd'), (6, 'c'), (7, 'b')]));
    assert!(serde_json::from_str::<CTreeMap<u32, char>>(r#"{"5":"a","7":"#).is_err());
    assert!(serde_json::from_str::<CTreeMap<u32, char>>("[1]").is_err());
}
