//! Single cases: which of two equal keys stays, refused arguments, sources that lie about their
//! length, iterators that are forgotten, odd sizes and alignments.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::ManuallyDrop;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ctree::map::Entry;
use ctree::{CTreeMap, CTreeSet, FrozenCTreeMap, Head};

use super::kinds::{Counted, Value};
use crate::times;

/// A key with a mark that its order does not see.
#[derive(Clone, Copy, Debug)]
struct Marked(u32, char);

impl Ord for Marked {
    fn cmp(&self, other: &Marked) -> Ordering {
        self.0.cmp(&other.0)
    }
}

ordered_by_cmp!(Marked);

/// The mark of a number.
fn mark(number: u32) -> char {
    char::from_u32(u32::from(b'a') + number).expect("a letter")
}

/// The marks and values of a map, in order.
fn marks<'a>(entries: impl Iterator<Item = (&'a Marked, &'a u32)>) -> Vec<(u32, char, u32)> {
    entries.map(|(key, value)| (key.0, key.1, *value)).collect()
}

/// What is done to either map, in words that both understand.
macro_rules! with_both {
    (|$map:ident| $what:expr) => {{
        let entries = (0..200).map(|n| (Marked(n, 'a'), n));
        let mut ours: CTreeMap<Marked, u32> = entries.clone().collect();
        let mut theirs: BTreeMap<Marked, u32> = entries.collect();
        {
            let $map = &mut ours;
            $what
        }
        {
            let $map = &mut theirs;
            $what
        }
        assert_eq!(marks(ours.iter()), marks(theirs.iter()));
    }};
}

#[test]
fn of_equal_keys_the_one_stays_that_stays_in_std() {
    with_both!(|map| {
        assert_eq!(map.insert(Marked(7, 'b'), 1), Some(7));
        assert_eq!(map.insert(Marked(7, 'c'), 2), Some(1));
    });
    with_both!(|map| map.extend((100..300).map(|n| (Marked(n, 'b'), n + 1))));
    with_both!(|map| map.append(&mut (5..8).map(|n| (Marked(n, 'b'), n + 1)).collect()));
    with_both!(|map| {
        *map.entry(Marked(9, 'b')).or_insert(0) += 1;
        assert_eq!(map.entry(Marked(9, 'c')).key().1, 'a');
        map.entry(Marked(300, 'c')).insert_entry(3).insert(4);
        map.entry(Marked(10, 'c')).insert_entry(3);
    });
    with_both!(|map| {
        assert_eq!(map.remove_entry(&Marked(5, 'x')).unwrap().0.1, 'a');
        assert_eq!(map.get_key_value(&Marked(6, 'x')).unwrap().0.1, 'a');
    });
    // Of equal keys in a source the last one stays.
    let source = || (0..500).map(|n| (Marked(n % 90, mark(n / 90)), n));
    let (ours, theirs): (CTreeMap<_, _>, BTreeMap<_, _>) = (source().collect(), source().collect());
    assert_eq!(marks(ours.iter()), marks(theirs.iter()));
    let frozen: FrozenCTreeMap<_, _> = source().collect();
    assert_eq!(marks(frozen.iter()), marks(theirs.iter()));

    let mut ours: CTreeSet<Marked> = (0..100).map(|n| Marked(n, 'a')).collect();
    assert!(!ours.insert(Marked(4, 'b')));
    assert_eq!(ours.get(&Marked(4, 'x')).unwrap().1, 'a');
    assert_eq!(ours.replace(Marked(4, 'c')).unwrap().1, 'a');
    assert_eq!(ours.get(&Marked(4, 'x')).unwrap().1, 'c');
    assert_eq!(ours.take(&Marked(4, 'x')).unwrap().1, 'c');
    assert_eq!(ours.len(), 99);
    // Of two sets, what both have comes from the left one.
    let left: CTreeSet<Marked> = (0..100).map(|n| Marked(n, 'l')).collect();
    let right: CTreeSet<Marked> = (50..150).map(|n| Marked(n, 'r')).collect();
    assert!(left.intersection(&right).all(|key| key.1 == 'l'));
    assert!(
        left.union(&right)
            .all(|key| (key.1 == 'l') == (key.0 < 100))
    );
    assert!((&left & &right).iter().all(|key| key.1 == 'l'));
}

#[test]
fn insert_many_is_insert_many_times() {
    let mut many: CTreeMap<Marked, u32> = CTreeMap::new();
    let mut one_by_one = many.clone();
    let source = || (0..1000).map(|n| (Marked(n * 31 % 300, mark(n / 300)), n));
    many.insert_many(source());
    for (key, value) in source() {
        one_by_one.insert(key, value);
    }
    assert_eq!(marks(many.iter()), marks(one_by_one.iter()));
}

#[test]
fn insert_many_into_a_large_map_works_in_batches() {
    type Value = (Counted, [u64; 127]);
    let value = |n: u64| -> Value { (Counted::numbered(1), [n; 127]) };
    let alive = Counted::alive();
    // More bytes than a cache has: from there on entries are gathered before they are inserted.
    let large = 2 * (2 << 20) / size_of::<(u64, Value)>() as u64;
    let mut map: CTreeMap<u64, Value> = (0..large).map(|n| (3 * n, value(n))).collect();
    let mut theirs: BTreeMap<u64, u64> = (0..large).map(|n| (3 * n, n)).collect();
    for count in [0, 1, 14, 15, 16, 200] {
        // Some new, some there already, some twice.
        let source = || (0..count).map(|n| (n * n * 7 % (4 * large), n + 5));
        map.insert_many(source().map(|(key, n)| (key, value(n))));
        theirs.extend(source());
        assert_eq!(map.check(), Ok(()));
        assert!(
            map.iter()
                .map(|(key, held)| (*key, held.1[7]))
                .eq(theirs.clone())
        );
        assert_eq!(Counted::alive() - alive, map.len());
    }
    for until_panic in 0..40 {
        let source = (0..100).map(|n| {
            if n == until_panic {
                std::panic::resume_unwind(Box::new("the source has run dry"));
            }
            (3 * n + 1, value(n))
        });
        let outcome = catch_unwind(AssertUnwindSafe(|| map.insert_many(source)));
        assert!(outcome.is_err());
        assert_eq!(map.check(), Ok(()));
        assert_eq!(Counted::alive() - alive, map.len());
    }
    drop(map);
    assert_eq!(Counted::alive(), alive);
}

/// The message that something panics with.
pub(crate) fn message<R>(what: impl FnOnce() -> R) -> String {
    let payload = catch_unwind(AssertUnwindSafe(what)).err().expect("a panic");
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
        .expect("a message")
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "this is what is tested")]
fn what_std_refuses_is_refused() {
    let mut map: CTreeMap<u64, u64> = (0..100).map(|n| (n, n)).collect();
    let set: CTreeSet<u64> = (0..100).collect();
    let excluded = (Bound::Excluded(3), Bound::Excluded(3));
    for said in [
        message(|| map.range(3..2).count()),
        message(|| map.range_mut(3..2).count()),
        message(|| set.range(3..2).count()),
        message(|| set.range(3..=1).count()),
    ] {
        assert_eq!(said, "range start is greater than range end");
    }
    for said in [
        message(|| map.range(excluded).count()),
        message(|| set.range(excluded).count()),
    ] {
        assert_eq!(said, "range start and end are equal and excluded");
    }
    assert_eq!(message(|| map[&100]), "no entry found for key");
    assert_eq!(
        message(|| map.get_many(&[1, 2], &mut [None])),
        "2 keys but 1 results"
    );
    assert_eq!(
        message(|| map.contains_many(&[1], &mut [])),
        "1 keys but 0 results"
    );
    assert_eq!(
        message(|| set.contains_many(&[1], &mut [])),
        "1 keys but 0 results"
    );
    // What std does not refuse.
    assert_eq!(map.extract_if(3..2, |_, _| true).count(), 0);
    assert_eq!((map.len(), map.check()), (100, Ok(())));
}

#[test]
fn from_sorted_iter_names_the_first_offender() {
    let index = |keys: Vec<String>| {
        let entries = keys.into_iter().map(|key| (key, Counted::numbered(1)));
        CTreeMap::from_sorted_iter(entries)
            .map(|map| map.len())
            .map_err(|error| error.index())
    };
    let alive = Counted::alive();
    let keys = |count: u32| (0..count).map(|n| format!("{n:05}")).collect::<Vec<_>>();
    assert_eq!(index(vec![]), Ok(0));
    assert_eq!(index(keys(300)), Ok(300));
    for place in [1, 31, 32, 33, 150, 299] {
        let mut equal = keys(300);
        equal[place] = equal[place - 1].clone();
        assert_eq!(index(equal), Err(place));
        let mut less = keys(300);
        less[place] = String::new();
        assert_eq!(index(less), Err(place));
    }
    assert_eq!(Counted::alive(), alive);
    let error = CTreeSet::from_sorted_iter([2, 1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the key at index 1 is not greater than the key before it"
    );
}

/// A source with a hint of its own.
pub(crate) struct Hinted<I>(pub(crate) I, pub(crate) (usize, Option<usize>));

impl<I: Iterator> Iterator for Hinted<I> {
    type Item = I::Item;
    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.1
    }
}

#[test]
fn sources_may_lie_about_their_length() {
    let count = 500u32;
    let hints = [
        (0, Some(0)),
        (0, None),
        (10_000, None),
        (10_000, Some(1)),
        (count as usize, Some(3)),
    ];
    for hint in hints {
        let entries = || Hinted((0..count).map(|n| (n * 7 % count, n)), hint);
        let sorted = || Hinted((0..count).map(|n| (n, n)), hint);
        let expected: BTreeMap<u32, u32> = entries().collect();
        let collected: CTreeMap<u32, u32> = entries().collect();
        let mut extended = CTreeMap::new();
        extended.extend(entries());
        let mut inserted = CTreeMap::new();
        inserted.insert_many(entries());
        for map in [collected, extended, inserted] {
            assert_eq!((map.len(), map.check()), (500, Ok(())), "{hint:?}");
            assert!(map.iter().eq(&expected), "{hint:?}");
        }
        let built = CTreeMap::from_sorted_iter(sorted()).unwrap();
        assert!(built.iter().eq(sorted().collect::<BTreeMap<_, _>>().iter()));
        let set: CTreeSet<u32> = Hinted(0..count, hint).collect();
        assert_eq!(set.len(), 500);
    }
    // A source that announces more than can be counted, and has nothing.
    let boast = || Hinted(std::iter::empty::<(u8, u8)>(), (usize::MAX, None));
    assert_eq!(CTreeMap::from_sorted_iter(boast()), Ok(CTreeMap::new()));
    let mut map: CTreeMap<u8, u8> = boast().collect();
    map.insert_many(boast());
    map.extend(boast());
    assert!(map.is_empty());
}

#[test]
fn copied_entries_extend() {
    let mut map: CTreeMap<u8, u8> = [(1, 1)].into();
    map.extend([(&2, &2), (&1, &3)]);
    assert_eq!(map, CTreeMap::from([(1, 3), (2, 2)]));
    let mut set: CTreeSet<char> = CTreeSet::new();
    set.extend(&['b', 'a']);
    assert!(set.iter().eq(&['a', 'b']));
}

#[test]
fn forgotten_iterators_leak_at_most() {
    let alive = Counted::alive();
    let make =
        || -> CTreeMap<u16, Counted> { (0..300).map(|n| (n, Counted::numbered(0))).collect() };
    let mut map = make();
    let mut extracted = ManuallyDrop::new(map.extract_if(100.., |_, _| true));
    assert_eq!(extracted.by_ref().take(50).count(), 50);
    assert_eq!((map.len(), map.check()), (250, Ok(())));
    assert_eq!(map.insert(100, Counted::numbered(1)), None);
    let _iterator = ManuallyDrop::new(map.iter_mut());
    let _cursor = ManuallyDrop::new(map.lower_bound_mut(Bound::Included(&200)));
    let mut entry = ManuallyDrop::new(map.entry(200));
    if let Entry::Vacant(_) = &mut *entry {
        panic!("200 is there");
    }
    assert_eq!((map.len(), map.check()), (251, Ok(())));
    drop(map);
    assert_eq!(Counted::alive(), alive);
    // What an owning iterator has not given out goes with its nodes, if anybody drops it; else
    // nothing is touched again.
    let mut entries = ManuallyDrop::new(make().into_iter());
    assert_eq!(entries.next().map(|entry| entry.0), Some(0));
    drop(ManuallyDrop::into_inner(entries));
    assert_eq!(Counted::alive(), alive);
}

/// Inserts, finds and removes values of a type, and asserts that they stay aligned and unharmed.
fn holds_values<V: Clone + PartialEq + std::fmt::Debug>(value: fn(u32) -> V) {
    let count = u32::try_from(times(400)).expect("a small number");
    let mut map: CTreeMap<u32, V> = CTreeMap::new();
    let mut by_value: CTreeMap<String, V> = CTreeMap::new();
    for n in 0..count {
        let n = n * 37 % count;
        map.insert(n, value(n));
        by_value.insert(n.to_string(), value(n));
    }
    assert_eq!((map.check(), by_value.check()), (Ok(()), Ok(())));
    for n in 0..count {
        let (a, b) = (&map[&n], &by_value[n.to_string().as_str()]);
        assert_eq!((a, b), (&value(n), &value(n)));
        assert_eq!(std::ptr::from_ref(a).addr() % align_of::<V>(), 0);
        assert_eq!(std::ptr::from_ref(b).addr() % align_of::<V>(), 0);
    }
    for n in (0..count).step_by(3) {
        assert_eq!(map.remove(&n), Some(value(n)));
        assert_eq!(by_value.remove(n.to_string().as_str()), Some(value(n)));
    }
    map.compact();
    assert!(map.iter().all(|(n, held)| *held == value(*n)));
    assert_eq!((map.check(), by_value.check()), (Ok(()), Ok(())));
}

#[test]
fn odd_sizes_and_alignments() {
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(128))]
    struct Aligned(u8);
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(8192))]
    struct PageAligned(u32);
    #[derive(Clone, Debug, PartialEq)]
    #[repr(align(512))]
    struct AlignedNothing;
    holds_values(|n| Aligned(n.to_le_bytes()[0]));
    holds_values(PageAligned);
    holds_values(|_| AlignedNothing);
    holds_values(|n| [n.to_le_bytes()[0]; 3]);
}

#[test]
fn large_keys_and_keys_without_size() {
    let mut map: CTreeMap<[u16; 3000], u8> = CTreeMap::new();
    for n in 0..60 {
        map.insert([n * 7 % 60; 3000], 1);
    }
    assert_eq!((map.len(), map.check()), (60, Ok(())));
    assert!(map.keys().map(|key| key[2999]).eq(0..60));
    assert!(map.level_count() >= 3);

    let mut set: CTreeSet<()> = CTreeSet::new();
    assert!(set.insert(()) && !set.insert(()));
    assert_eq!(
        (set.len(), set.rank(&()), set.get_index(0)),
        (1, 0, Some(&()))
    );
    assert!(set.remove(&()) && set.is_empty());
}

#[test]
fn a_map_may_be_a_constant() {
    static EMPTY: CTreeMap<u64, String> = CTreeMap::new();
    const RANKED: CTreeSet<u64> = CTreeSet::with_ranks();
    assert_eq!(
        (EMPTY.len(), EMPTY.get(&1), EMPTY.iter().next()),
        (0, None, None)
    );
    let mut set = RANKED;
    set.insert(1);
    assert_eq!((set.len(), RANKED.len()), (1, 0));
}

#[test]
fn an_empty_map_answers() {
    fn holds<K: Ord + Clone + Default + std::fmt::Debug>(mut map: CTreeMap<K, u8>) {
        let key = K::default();
        assert_eq!((map.len(), map.is_empty(), map.check()), (0, true, Ok(())));
        assert_eq!((map.get(&key), map.contains_key(&key)), (None, false));
        assert_eq!(map.get_mut(&key), None);
        assert_eq!(map.remove(&key), None);
        assert_eq!((map.first_key_value(), map.last_key_value()), (None, None));
        assert_eq!((map.pop_first(), map.pop_last()), (None, None));
        assert!(map.first_entry().is_none() && map.last_entry().is_none());
        assert_eq!(
            (map.rank(&key), map.get_index(0), map.get_index_of(&key)),
            (0, None, None)
        );
        assert_eq!(map.range(key.clone()..).next_back(), None);
        assert_eq!(map.range_mut(..key.clone()).next(), None);
        assert_eq!(map.extract_if(.., |_, _| true).next(), None);
        assert_eq!(
            (map.iter().next(), map.clone().into_iter().next_back()),
            (None, None)
        );
        let mut cursor = map.lower_bound_mut(Bound::Included(&key));
        assert_eq!(cursor.next(), None);
        assert_eq!((cursor.remove_prev(), cursor.remove_next()), (None, None));
        assert_eq!(cursor.prev(), None);
        assert!(cursor.insert_after(key.clone(), 1).is_ok());
        assert_eq!(cursor.remove_next(), Some((key.clone(), 1)));
        let mut results = [Some(&3)];
        map.get_many(std::slice::from_ref(&key), &mut results);
        assert_eq!(results, [None]);
        map.get_many(&[] as &[K], &mut []);
        map.clear();
        map.compact();
        map.retain(|_, _| true);
        let mut other = map.clone();
        map.append(&mut other);
        assert!(map.split_off(&key).is_empty());
        assert_eq!(format!("{map:?} {map:#?}"), "{} {}");
        assert_eq!(map, CTreeMap::default());
    }
    // That never had an entry, and that has lost its only one.
    fn both<K: Ord + Clone + Default + std::fmt::Debug>() {
        for make in [
            CTreeMap::new as fn() -> CTreeMap<K, u8>,
            CTreeMap::with_ranks,
        ] {
            holds(make());
            let mut emptied = make();
            emptied.insert(K::default(), 1);
            emptied.remove(&K::default());
            holds(emptied);
        }
    }
    both::<u64>();
    both::<String>();
    both::<Vec<String>>();
    both::<()>();
}

#[test]
fn maps_can_be_read_from_many_threads() {
    let len = if cfg!(miri) { 200 } else { 10_000 };
    let map: CTreeMap<String, u64> = (0..len).map(|n| (format!("{n:06}"), n)).collect();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let map = &map;
            scope.spawn(move || {
                let keys: Vec<String> = (thread..len)
                    .step_by(4)
                    .map(|n| format!("{n:06}"))
                    .collect();
                let mut results = vec![None; keys.len()];
                map.get_many(&keys, &mut results);
                assert!(
                    results
                        .iter()
                        .copied()
                        .eq(keys.iter().map(|key| map.get(key)))
                );
                assert!(results.iter().all(Option::is_some));
            });
        }
    });
}

#[test]
fn std_collections_convert() {
    let theirs: BTreeMap<u8, u8> = (0..200).map(|n| (n, n)).collect();
    let ours = CTreeMap::from(theirs.clone());
    assert!(ours.iter().eq(&theirs));
    assert_eq!(BTreeMap::from(ours), theirs);
    let ours = CTreeMap::from(FrozenCTreeMap::from(theirs.clone()));
    assert_eq!(ours.check(), Ok(()));
    assert!(ours.into_iter().eq(theirs));
    let theirs: BTreeSet<String> = (0..200).map(|n| n.to_string()).collect();
    let ours = CTreeSet::from(theirs.clone());
    assert!(ours.iter().eq(&theirs));
    assert_eq!(BTreeSet::from(ours), theirs);
}

/// Enough entries for four levels of small entries, and for chunks of huge pages.
#[test]
#[ignore = "takes long: CI runs it"]
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
fn ends_grow_into_full_nodes() {
    let grown = |keys: &mut dyn Iterator<Item = u64>| {
        let mut map = CTreeMap::new();
        for key in keys {
            map.insert(key, key);
        }
        assert_eq!(map.check(), Ok(()));
        assert!(map.level_count() >= 3 && map.memory_usage() < 40 * map.len());
    };
    let len = if cfg!(miri) { 2000 } else { 100_000 };
    grown(&mut (0..len));
    grown(&mut (0..len).rev());
}

/// Splits a map of many levels at each of its gaps.
fn splits_everywhere<K: Ord + Clone>(make: fn() -> CTreeMap<K, [u64; 128]>, key: fn(u64) -> K) {
    // A prime, so that the multiples of another number go through all indices.
    let len = if cfg!(miri) { 41 } else { 331 };
    for at in 0..=len {
        let mut map = make();
        for index in (0..len).map(|index| index * 137 % len) {
            map.insert(key(index), [index; 128]);
        }
        assert!(map.level_count() > 2);
        let right = map.split_off(&key(at));
        for (part, indices) in [(map, 0..at), (right, at..len)] {
            assert_eq!(part.check(), Ok(()), "split of {len} at {at}");
            let expected = indices.map(|index| (key(index), [index; 128]));
            assert!(part.into_iter().eq(expected), "split of {len} at {at}");
        }
    }
}

#[test]
fn maps_split_at_each_gap() {
    /// A key that shares its head with another.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
    struct Coarse(u64);
    // SAFETY: the type has no lifetimes.
    unsafe impl Head for Coarse {
        fn head(&self) -> u64 {
            self.0 / 2
        }
    }
    splits_everywhere(CTreeMap::new, |index| index);
    splits_everywhere(CTreeMap::with_ranks, |index| {
        format!("{:03}/a/common/{index:03}", index / 100)
    });
    splits_everywhere(CTreeMap::with_heads, Coarse);
}

#[test]
fn an_iterator_that_has_ended_is_not_asked_again() {
    /// Gives entries again after its end.
    struct Unfused(u32);
    impl Iterator for Unfused {
        type Item = (u32, [u64; 64]);
        fn next(&mut self) -> Option<(u32, [u64; 64])> {
            self.0 += 1;
            (self.0 < 6000 || self.0 > 6001).then_some((self.0, [0; 64]))
        }
    }
    let mut map = CTreeMap::new();
    map.extend(Unfused(0));
    assert_eq!(map.len(), 5999);
    assert_eq!(map.last_key_value(), Some((&5999, &[0; 64])));
}

#[test]
fn debug_prints_what_is_left() {
    let mut map = CTreeMap::from([(1, 'a'), (2, 'b'), (3, 'c')]);
    let mut iter = map.iter_mut();
    iter.next();
    assert_eq!(format!("{iter:?}"), "[(2, 'b'), (3, 'c')]");
    assert_eq!(format!("{:?}", map.range(2..)), "[(2, 'b'), (3, 'c')]");
    assert_eq!(format!("{:?}", map.values_mut()), "['a', 'b', 'c']");
    assert_eq!(
        format!("{:?}", map.lower_bound(Bound::Included(&2))),
        "Cursor { prev: Some((1, 'a')), next: Some((2, 'b')) }"
    );
    assert_eq!(
        format!("{:?}", map.extract_if(2.., |_, _| true)),
        "ExtractIf { peek: Some((2, 'b')), .. }"
    );
    assert_eq!(format!("{:?}", map.into_values()), "['a', 'b', 'c']");
}
