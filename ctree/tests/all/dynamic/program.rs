//! Runs an operation on a `CTreeMap` and on a `BTreeMap`, and compares what they give and what they
//! hold then.
//!
//! The same code serves the property tests, the long runs and the fuzz target (`ctree/fuzz`).

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque, btree_map};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;

use ctree::{CTreeMap, map};

use super::kinds::{Key, Value};
use super::operation::{Bounds, Ends, EntryWay, KeyNumber, OccupiedWay, Op, Run, Step};

/// A map and its model.
pub(crate) struct World<K, V> {
    ours: CTreeMap<K, V>,
    theirs: BTreeMap<K, V>,
    make: fn() -> CTreeMap<K, V>,
    levels_max: usize,
}

/// What an operation on an entry showed.
type Seen<K, V> = (Option<K>, Option<V>);

/// A function that does what a way says to an occupied entry of one of the maps.
macro_rules! occupied {
    ($name:ident, $module:ident) => {
        fn $name<K: Key, V: Value>(
            mut entry: $module::OccupiedEntry<'_, K, V>,
            way: OccupiedWay,
            value: V,
        ) -> Seen<K, V> {
            match way {
                OccupiedWay::Look => (Some(entry.key().clone()), Some(entry.get().clone())),
                OccupiedWay::GetMut => (
                    Some(entry.key().clone()),
                    Some(std::mem::replace(entry.get_mut(), value)),
                ),
                OccupiedWay::IntoMut => (None, Some(std::mem::replace(entry.into_mut(), value))),
                OccupiedWay::Insert => (None, Some(entry.insert(value))),
                OccupiedWay::Remove => (None, Some(entry.remove())),
                OccupiedWay::RemoveEntry => {
                    let (key, value) = entry.remove_entry();
                    (Some(key), Some(value))
                }
            }
        }
    };
}

occupied!(our_occupied, map);
occupied!(their_occupied, btree_map);

/// A function that does what a way says to an entry of one of the maps.
macro_rules! entry {
    ($(#[$attribute:meta])? fn $name:ident, $module:ident, $occupied:ident) => {
        $(#[$attribute])?
        fn $name<K: Key, V: Value>(
            entry: $module::Entry<'_, K, V>,
            way: EntryWay,
            value: V,
        ) -> Seen<K, V> {
            use $module::Entry::{Occupied, Vacant};
            match (way, entry) {
                (EntryWay::OrInsert, entry) => (None, Some(entry.or_insert(value).clone())),
                (EntryWay::OrInsertWith, entry) => {
                    (None, Some(entry.or_insert_with(|| value).clone()))
                }
                (EntryWay::OrInsertWithKey, entry) => {
                    let mut seen = None;
                    let place = entry.or_insert_with_key(|key| {
                        seen = Some(key.clone());
                        value
                    });
                    let value = Some(place.clone());
                    (seen, value)
                }
                (EntryWay::OrDefault, entry) => (None, Some(entry.or_default().clone())),
                (EntryWay::AndModify, entry) => {
                    let mut old = None;
                    let entry = entry.and_modify(|place| {
                        old = Some(std::mem::replace(place, value.clone()));
                    });
                    *entry.or_insert_with(V::default) = value;
                    (None, old)
                }
                (EntryWay::InsertEntry(way), entry) => {
                    $occupied(entry.insert_entry(value), way, V::numbered(7))
                }
                (EntryWay::Match(_), Vacant(entry)) => (None, Some(entry.insert(value).clone())),
                (EntryWay::InsertVacantEntry(way), Vacant(entry)) => {
                    $occupied(entry.insert_entry(value), way, V::numbered(7))
                }
                (EntryWay::IntoKey, Vacant(entry)) => (Some(entry.into_key()), None),
                (EntryWay::IntoKey, Occupied(entry)) => $occupied(entry, OccupiedWay::Look, value),
                (EntryWay::Match(way) | EntryWay::InsertVacantEntry(way), Occupied(entry)) => {
                    $occupied(entry, way, value)
                }
            }
        }
    };
}

entry!(fn our_entry, map, our_occupied);
entry!(
    #[expect(
        clippy::incompatible_msrv,
        reason = "what has to build with the oldest Rust is the library; its tests need not"
    )]
    fn their_entry,
    btree_map,
    their_occupied
);

pub(crate) fn hash_of<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Whether one in `one_in` picks this key: 0 picks none.
pub(crate) fn picks<K: Hash>(one_in: u8, key: &K) -> bool {
    one_in > 0 && hash_of(key).is_multiple_of(one_in.into())
}

/// Whether `BTreeMap::range` panics, except perhaps on an empty map.
pub(crate) fn is_refused<K: Ord>((start, end): &(Bound<K>, Bound<K>)) -> bool {
    match (start, end) {
        (Bound::Excluded(start), Bound::Excluded(end)) => start >= end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start > end,
        _ => false,
    }
}

pub(crate) fn keys_of<K: Key>((start, end): Bounds) -> (Bound<K>, Bound<K>) {
    (start.map(K::nth), end.map(K::nth))
}

/// Takes all elements from the ends that are named.
pub(crate) fn take_all<T>(mut iterator: impl DoubleEndedIterator<Item = T>, ends: Ends) -> Vec<T> {
    let mut fronts = ends.fronts();
    std::iter::from_fn(|| {
        if fronts.next()? {
            iterator.next()
        } else {
            iterator.next_back()
        }
    })
    .collect()
}

/// Whether an iterator's hint is its length, or only a bound of it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Length {
    Exact,
    Bounded,
}

/// Takes all elements from the ends that are named, and asserts that they are those of the model
/// and that nothing follows.
pub(crate) fn assert_walk<A: PartialEq<B> + Debug, B: Debug>(
    mut ours: impl DoubleEndedIterator<Item = A>,
    theirs: impl IntoIterator<Item = B>,
    ends: Ends,
    length: Length,
) {
    let mut left: VecDeque<B> = theirs.into_iter().collect();
    let mut fronts = ends.fronts();
    loop {
        let hint = ours.size_hint();
        assert!(hint.0 <= left.len() && hint.1.is_none_or(|most| left.len() <= most));
        assert!(length == Length::Bounded || hint == (left.len(), Some(left.len())));
        let (mine, other) = if fronts.next() == Some(true) {
            (ours.next(), left.pop_front())
        } else {
            (ours.next_back(), left.pop_back())
        };
        match (&mine, &other) {
            (Some(mine), Some(other)) => assert!(mine == other, "{mine:?} for {other:?}"),
            (None, None) => break,
            _ => panic!("{mine:?} for {other:?}"),
        }
    }
    for _ in 0..2 {
        assert!(ours.next().is_none() && ours.next_back().is_none());
    }
}

impl<K: Key, V: Value> World<K, V> {
    /// The most entries that a program comes to: fewer when they are large, so that a step takes
    /// about the same time.
    const LEN_MAX: usize = {
        let fits = (1 << 20) / (size_of::<K>() + size_of::<V>() + 1);
        if fits < 2000 { fits } else { 2000 }
    };

    /// Empty maps; `make` makes ours.
    pub(crate) fn new(make: fn() -> CTreeMap<K, V>) -> World<K, V> {
        World {
            ours: make(),
            theirs: BTreeMap::new(),
            make,
            levels_max: 0,
        }
    }

    fn entries(run: Run) -> impl Iterator<Item = (K, V)> + Clone {
        run.numbers()
            .take(Self::LEN_MAX)
            .map(|(key, value)| (K::nth(key), V::numbered(value)))
    }

    /// The maps of these keys: ours made as this world's is.
    fn others(&self, run: Run) -> (CTreeMap<K, V>, BTreeMap<K, V>) {
        let mut ours = (self.make)();
        ours.extend(Self::entries(run));
        (ours, Self::entries(run).collect())
    }

    /// Runs one operation on both maps.
    ///
    /// # Panics
    /// When they do not agree, or ours finds itself broken.
    pub(crate) fn run(&mut self, op: &Op) {
        match op {
            Op::GetMany(run, others) => self.get_many(*run, others),
            Op::InsertMany(run) => {
                self.ours.insert_many(Self::entries(*run));
                self.theirs.extend(Self::entries(*run));
            }
            Op::Extend(run) => {
                self.ours.extend(Self::entries(*run));
                self.theirs.extend(Self::entries(*run));
            }
            Op::RemoveMany(run) => {
                for (key, _) in run.numbers() {
                    let key = K::nth(key);
                    assert_eq!(self.ours.remove(&key), self.theirs.remove(&key));
                }
            }
            Op::Range(bounds, ends) => self.range(*bounds, *ends),
            Op::RangeMut(bounds, ends, value) => {
                let range = keys_of::<K>(*bounds);
                if !is_refused(&range) {
                    let ours = self.ours.range_mut::<K, _>(range.clone());
                    change(ours, self.theirs.range_mut::<K, _>(range), *ends, *value);
                }
            }
            Op::Iterate(ends) => self.iterate(*ends),
            Op::Jump(front, back) => self.jump(*front, *back),
            Op::IterateMut(ends, value) => {
                let (ours, theirs) = (self.ours.iter_mut(), self.theirs.iter_mut());
                change(ours, theirs, *ends, *value + 1);
                let mut ours = take_all(self.ours.values_mut(), *ends);
                let mut theirs = take_all(self.theirs.values_mut(), *ends);
                assert_eq!(ours, theirs);
                if let ([first, .., last], [their_first, .., their_last]) =
                    (ours.as_mut_slice(), theirs.as_mut_slice())
                {
                    std::mem::swap(*first, *last);
                    std::mem::swap(*their_first, *their_last);
                }
            }
            Op::MoveOut(ends, stop) => self.move_out(*ends, *stop),
            Op::Retain(one_in) => {
                let keep = || {
                    let mut calls = 0;
                    move |key: &K, value: &mut V| {
                        *value = V::numbered(calls);
                        calls += 1;
                        picks(*one_in, key)
                    }
                };
                self.ours.retain(keep());
                self.theirs.retain(keep());
            }
            Op::ExtractIf(bounds, one_in, stop) => self.extract_if(*bounds, *one_in, *stop),
            Op::Append(run, ranked) => {
                let mut others = self.others(*run);
                if *ranked {
                    others.0 = CTreeMap::with_ranks();
                    others.0.insert_many(Self::entries(*run));
                }
                self.ours.append(&mut others.0);
                self.theirs.append(&mut others.1);
                assert!(others.0.is_empty());
                assert_eq!(others.0.check(), Ok(()));
                // What was emptied can be used again.
                assert_eq!(others.0.insert(K::nth(1), V::numbered(1)), None);
            }
            Op::TryInsert(key, value) => {
                let (key, value) = (K::nth(*key), V::numbered(*value));
                let expected = self.theirs.get(&key).cloned();
                match self.ours.try_insert(key.clone(), value.clone()) {
                    Ok(inserted) => assert_eq!((&*inserted, &expected), (&value, &None)),
                    Err(error) => {
                        assert_eq!((error.entry.key(), &error.value), (&key, &value));
                        assert_eq!(Some(error.entry.get()), expected.as_ref());
                        assert!(error.to_string().starts_with("failed to insert"));
                    }
                }
                self.theirs.entry(key).or_insert(value);
            }
            Op::Merge(run, keep) => {
                let (ours, theirs) = self.others(*run);
                self.ours.merge(ours, |key, mine, other| {
                    assert_eq!(theirs.get(key), Some(&other));
                    if *keep { mine } else { other }
                });
                for (key, value) in theirs {
                    if *keep {
                        self.theirs.entry(key).or_insert(value);
                    } else {
                        self.theirs.insert(key, value);
                    }
                }
            }
            Op::SplitOff(key, keep_lower) => {
                let key = K::nth(*key);
                let (ours, theirs) = (self.ours.split_off(&key), self.theirs.split_off(&key));
                assert_eq!(ours.check(), Ok(()));
                assert_eq!(ours.len(), theirs.len());
                assert!(ours.iter().eq(theirs.iter()));
                assert!(self.ours.iter().eq(self.theirs.iter()));
                if !keep_lower {
                    (self.ours, self.theirs) = (ours, theirs);
                }
            }
            Op::Clear => {
                self.ours.clear();
                self.theirs.clear();
            }
            Op::Clone(None) => {
                let copy = self.ours.clone();
                assert_eq!(copy, self.ours);
                self.ours = copy;
            }
            Op::Clone(Some(run)) => {
                let mut copy = self.others(*run).0;
                copy.clone_from(&self.ours);
                assert_eq!(copy, self.ours);
                self.ours = copy;
            }
            Op::Compact => {
                // (What a small part of a split map moved to may be smaller than what it grows to.)
                let most = self
                    .ours
                    .memory_usage()
                    .max(self.ours.clone().memory_usage());
                self.ours.compact();
                assert!(self.ours.memory_usage() <= most);
            }
            Op::Rebuild(sorted) => self.rebuild(*sorted),
            Op::Cursor(lower, bound, steps) => self.cursor(*lower, *bound, steps),
            Op::Walk(lower, bound, ends) => self.walk(*lower, *bound, *ends),
            Op::Rank(key) => {
                let key = K::nth(*key);
                let rank = self.theirs.range(..&key).count();
                assert_eq!(self.ours.rank(&key), rank);
                assert_eq!(
                    self.ours.get_index_of(&key),
                    self.theirs.contains_key(&key).then_some(rank)
                );
            }
            Op::Index(rank) => {
                assert_eq!(self.ours.get_index(*rank), self.theirs.iter().nth(*rank));
            }
            Op::Compare(run) => self.compare(*run),
            one => self.run_one(one),
        }
        self.levels_max = self.levels_max.max(self.ours.level_count());
        if self.theirs.len() > Self::LEN_MAX {
            self.thin_out();
        }
        self.assert_same();
    }

    /// Keeps every second entry.
    fn thin_out(&mut self) {
        let keep = || {
            let mut is_kept = true;
            move |_: &K, _: &mut V| {
                is_kept = !is_kept;
                is_kept
            }
        };
        self.ours.retain(keep());
        self.theirs.retain(keep());
    }

    fn assert_same(&self) {
        assert_eq!(self.ours.check(), Ok(()));
        assert_eq!(self.ours.len(), self.theirs.len());
        assert_eq!(self.ours.is_empty(), self.theirs.is_empty());
        assert!(self.ours.iter().eq(self.theirs.iter()));
        assert_eq!(self.ours.first_key_value(), self.theirs.first_key_value());
        assert_eq!(self.ours.last_key_value(), self.theirs.last_key_value());
    }

    /// Looks for each of the model's keys, and moves everything out. Gives the most levels that the
    /// map has had.
    pub(crate) fn finish(self) -> usize {
        for (rank, (key, value)) in self.theirs.iter().enumerate() {
            assert_eq!(self.ours.get(key), Some(value));
            if rank % 64 == 0 {
                assert_eq!(self.ours.get_index(rank), Some((key, value)));
            }
        }
        assert!(self.ours.into_iter().eq(self.theirs));
        self.levels_max
    }

    fn run_one(&mut self, op: &Op) {
        let (ours, theirs) = (&mut self.ours, &mut self.theirs);
        match op {
            Op::Insert(key, value) => assert_eq!(
                ours.insert(K::nth(*key), V::numbered(*value)),
                theirs.insert(K::nth(*key), V::numbered(*value))
            ),
            Op::Remove(key) => {
                let key = K::nth(*key);
                assert_eq!(ours.remove(&key), theirs.remove(&key));
            }
            Op::RemoveEntry(key) => {
                let key = K::nth(*key);
                assert_eq!(ours.remove_entry(&key), theirs.remove_entry(&key));
            }
            Op::Get(key) => {
                let key = K::nth(*key);
                let expected = theirs.get(&key);
                assert_eq!(ours.get(&key), expected);
                assert_eq!(ours.get_key_value(&key), theirs.get_key_value(&key));
                assert_eq!(ours.contains_key(&key), expected.is_some());
                if let Some(expected) = expected {
                    assert_eq!(ours[&key], *expected);
                }
            }
            Op::GetMut(key, value) => {
                let key = K::nth(*key);
                match (ours.get_mut(&key), theirs.get_mut(&key)) {
                    (Some(ours), Some(theirs)) => {
                        assert_eq!(
                            std::mem::replace(ours, V::numbered(*value)),
                            std::mem::replace(theirs, V::numbered(*value))
                        );
                    }
                    (ours, theirs) => assert_eq!(ours, theirs),
                }
            }
            Op::Entry(key, way, value) => {
                let key = K::nth(*key);
                let (mine, other) = (ours.entry(key.clone()), theirs.entry(key));
                assert_eq!(mine.key(), other.key());
                if size_of::<V>() < 100 {
                    assert_eq!(format!("{mine:?}"), format!("{other:?}"));
                }
                assert_eq!(
                    our_entry(mine, *way, V::numbered(*value)),
                    their_entry(other, *way, V::numbered(*value))
                );
            }
            Op::EndEntry(first, way, value) => {
                let value = || V::numbered(*value);
                let (ours, theirs) = if *first {
                    (ours.first_entry(), theirs.first_entry())
                } else {
                    (ours.last_entry(), theirs.last_entry())
                };
                assert_eq!(
                    ours.map(|entry| our_occupied(entry, *way, value())),
                    theirs.map(|entry| their_occupied(entry, *way, value()))
                );
            }
            Op::Pop(first, times) => {
                for _ in 0..*times {
                    if *first {
                        assert_eq!(ours.pop_first(), theirs.pop_first());
                    } else {
                        assert_eq!(ours.pop_last(), theirs.pop_last());
                    }
                }
            }
            other => unreachable!("{other:?} concerns more than one entry"),
        }
    }

    fn get_many(&self, run: Run, others: &[KeyNumber]) {
        let keys: Vec<K> = run
            .numbers()
            .map(|(key, _)| key)
            .chain(others.iter().copied())
            .map(K::nth)
            .collect();
        let expected: Vec<Option<&V>> = keys.iter().map(|key| self.theirs.get(key)).collect();
        let stale = V::default();
        let mut results = vec![Some(&stale); keys.len()];
        self.ours.get_many(&keys, &mut results);
        assert_eq!(results, expected);
        let mut seen = Vec::new();
        self.ours.get_many_with(&keys, |index, value| {
            assert_eq!(index, seen.len());
            seen.push(value);
        });
        assert_eq!(seen, expected);
        let mut found: Vec<bool> = expected.iter().map(Option::is_none).collect();
        self.ours.contains_many(&keys, &mut found);
        assert!(found.into_iter().eq(expected.iter().map(Option::is_some)));
    }

    fn range(&self, bounds: Bounds, ends: Ends) {
        let range = keys_of::<K>(bounds);
        if is_refused(&range) {
            return;
        }
        let range = (range.0.as_ref(), range.1.as_ref());
        let (ours, theirs) = (
            self.ours.range::<K, _>(range),
            self.theirs.range::<K, _>(range),
        );
        assert_walk(ours.clone(), theirs.clone(), ends, Length::Bounded);
        assert_eq!(ours.clone().min(), theirs.clone().min());
        assert_eq!(ours.clone().max(), theirs.clone().max());
        assert_eq!(ours.clone().last(), theirs.clone().last());
        assert_eq!(ours.clone().nth(3), theirs.clone().nth(3));
        assert_eq!(ours.clone().nth_back(3), theirs.clone().nth_back(3));
        assert_eq!(ours.count(), theirs.count());
    }

    fn iterate(&self, ends: Ends) {
        let (ours, theirs) = (&self.ours, &self.theirs);
        assert_walk(ours.iter(), theirs.iter(), ends, Length::Exact);
        assert_walk(ours.keys(), theirs.keys(), ends, Length::Exact);
        assert_walk(ours.values(), theirs.values(), ends, Length::Exact);
        assert_walk(ours.into_iter(), theirs.iter(), ends, Length::Exact);
    }

    fn jump(&mut self, front: usize, back: usize) {
        let (mut ours, mut theirs) = (self.ours.iter(), self.theirs.iter());
        assert_eq!(ours.nth(front), theirs.nth(front));
        assert_eq!(ours.len(), theirs.len());
        assert_eq!(ours.nth_back(back), theirs.nth_back(back));
        assert_eq!(ours.len(), theirs.len());
        assert_eq!(ours.clone().last(), theirs.clone().last());
        assert_eq!(ours.clone().min(), theirs.clone().min());
        assert_eq!(ours.clone().max(), theirs.clone().max());
        if size_of::<V>() < 100 {
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        }
        // By `fold` and by `next`.
        let mut folded = Vec::new();
        ours.clone().for_each(|entry| folded.push(entry));
        assert!(folded.into_iter().eq(theirs.clone()));
        let mut folded = Vec::new();
        ours.clone().rev().for_each(|entry| folded.push(entry));
        assert!(folded.into_iter().eq(theirs.clone().rev()));
        assert_eq!(ours.count(), theirs.count());

        let (mut ours, mut theirs) = (self.ours.keys(), self.theirs.keys());
        assert_eq!(
            (ours.nth(front), ours.nth_back(back)),
            (theirs.nth(front), theirs.nth_back(back))
        );
        assert_eq!(ours.clone().max(), theirs.clone().max());
        assert_eq!(ours.last(), theirs.last());
        let (mut ours, mut theirs) = (self.ours.values_mut(), self.theirs.values_mut());
        assert_eq!(
            (ours.nth(front), ours.nth_back(back)),
            (theirs.nth(front), theirs.nth_back(back))
        );
        assert_eq!(ours.last(), theirs.last());
    }

    fn move_out(&self, ends: Ends, stop: usize) {
        let (ours, theirs) = (|| self.ours.clone(), || self.theirs.clone());
        assert_walk(ours().into_iter(), theirs(), ends, Length::Exact);
        let (keys, values) = (theirs().into_keys(), theirs().into_values());
        assert_walk(ours().into_keys(), keys, ends, Length::Exact);
        assert_walk(ours().into_values(), values, ends, Length::Exact);
        // Dropped before their end: who counts the values sees what becomes of the rest.
        let (mut ours, mut theirs) = (ours().into_iter(), theirs().into_iter());
        for front in ends.fronts().take(stop) {
            if front {
                assert_eq!(ours.next(), theirs.next());
            } else {
                assert_eq!(ours.next_back(), theirs.next_back());
            }
        }
        assert_eq!(ours.len(), theirs.len());
        if size_of::<V>() < 100 {
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        }
    }

    fn extract_if(&mut self, bounds: Bounds, one_in: u8, stop: usize) {
        let range = keys_of::<K>(bounds);
        if is_refused(&range) {
            return;
        }
        let is_taken = |key: &K, value: &mut V| {
            *value = V::numbered(99);
            picks(one_in, key)
        };
        let (ours, theirs) = (&mut self.ours, &mut self.theirs);
        let taken = ours.extract_if(range.clone(), is_taken).take(stop);
        let taken: Vec<(K, V)> = taken.collect();
        let within: Vec<K> = theirs.range(range).map(|(key, _)| key.clone()).collect();
        let mut expected = Vec::new();
        for key in within {
            if expected.len() == stop {
                break;
            }
            let value = theirs.get_mut(&key);
            if value.is_some_and(|value| is_taken(&key, value)) {
                expected.extend(theirs.remove_entry(&key));
            }
        }
        assert_eq!(taken, expected);
    }

    fn rebuild(&mut self, sorted: bool) {
        let entries: Vec<(K, V)> = std::mem::take(&mut self.ours).into_iter().collect();
        assert!(entries.iter().cloned().eq(self.theirs.clone()));
        let mut built = if sorted {
            CTreeMap::from_sorted_iter(entries).expect("the entries of a map are in order")
        } else {
            // As they were, some with another value, all in reverse, some again with the value that
            // counts.
            let mut all: Vec<(K, V)> = entries.iter().rev().cloned().collect();
            all.iter_mut()
                .filter(|(key, _)| picks(3, key))
                .for_each(|(_, value)| *value = V::numbered(55));
            let again = entries.into_iter().filter(|(key, _)| picks(3, key));
            all.into_iter().chain(again).collect()
        };
        self.ours = (self.make)();
        self.ours.append(&mut built);
    }

    fn cursor(&mut self, lower: bool, bound: Bound<KeyNumber>, steps: &[Step]) {
        // The model: the entries in a vector, and how many of them are on the left.
        let mut entries: Vec<(K, V)> = std::mem::take(&mut self.theirs).into_iter().collect();
        let bound = bound.map(K::nth);
        let mut left = place_of(entries.iter().map(|(key, _)| key), lower, bound.as_ref());
        let mut cursor = if lower {
            self.ours.lower_bound_mut(bound.as_ref())
        } else {
            self.ours.upper_bound_mut(bound.as_ref())
        };
        for step in steps {
            match *step {
                Step::Next => {
                    let expected = entries.get_mut(left).map(|(key, value)| (&*key, value));
                    left += usize::from(expected.is_some());
                    assert_eq!(cursor.next(), expected);
                }
                Step::Prev => {
                    let expected = left.checked_sub(1).map(|prev| {
                        left = prev;
                        let (key, value) = &mut entries[prev];
                        (&*key, value)
                    });
                    assert_eq!(cursor.prev(), expected);
                }
                Step::Peek => {}
                Step::Change(right, value) => {
                    let (index, ours) = if right {
                        (Some(left), cursor.peek_next())
                    } else {
                        (left.checked_sub(1), cursor.peek_prev())
                    };
                    let expected = index.and_then(|index| entries.get_mut(index));
                    match (ours, expected) {
                        (Some(ours), Some(expected)) => {
                            assert_eq!((ours.0, &*ours.1), (&expected.0, &expected.1));
                            *ours.1 = V::numbered(value);
                            expected.1 = V::numbered(value);
                        }
                        (None, None) => {}
                        other => panic!("{other:?}"),
                    }
                }
                Step::InsertBefore(key, value) | Step::InsertAfter(key, value) => {
                    let key = K::nth(key);
                    let fits = left.checked_sub(1).is_none_or(|prev| entries[prev].0 < key)
                        && entries.get(left).is_none_or(|next| key < next.0);
                    let before = matches!(step, Step::InsertBefore(..));
                    let inserted = if before {
                        cursor.insert_before(key.clone(), V::numbered(value))
                    } else {
                        cursor.insert_after(key.clone(), V::numbered(value))
                    };
                    assert_eq!(inserted.is_ok(), fits);
                    if fits {
                        entries.insert(left, (key, V::numbered(value)));
                        left += usize::from(before);
                    }
                }
                Step::RemoveNext => {
                    let expected = (left < entries.len()).then(|| entries.remove(left));
                    assert_eq!(cursor.remove_next(), expected);
                }
                Step::RemovePrev => {
                    let expected = left.checked_sub(1).map(|prev| entries.remove(prev));
                    left -= usize::from(expected.is_some());
                    assert_eq!(cursor.remove_prev(), expected);
                }
            }
            let pair = |(key, value): &(K, V)| (key.clone(), value.clone());
            let (prev, next) = (
                left.checked_sub(1).map(|prev| pair(&entries[prev])),
                entries.get(left).map(pair),
            );
            let shared = cursor.as_cursor();
            let clone = |(key, value): (&K, &V)| (key.clone(), value.clone());
            assert_eq!(shared.peek_prev().map(clone), prev);
            assert_eq!(shared.peek_next().map(clone), next);
            let clone = |(key, value): (&K, &mut V)| (key.clone(), value.clone());
            assert_eq!(cursor.peek_prev().map(clone), prev);
            assert_eq!(cursor.peek_next().map(clone), next);
        }
        self.theirs = entries.into_iter().collect();
    }

    fn walk(&self, lower: bool, bound: Bound<KeyNumber>, ends: Ends) {
        let entries: Vec<(&K, &V)> = self.theirs.iter().collect();
        let bound = bound.map(K::nth);
        let mut left = place_of(self.theirs.keys(), lower, bound.as_ref());
        let mut cursor = if lower {
            self.ours.lower_bound(bound.as_ref())
        } else {
            self.ours.upper_bound(bound.as_ref())
        };
        let mut ends: Vec<bool> = ends.fronts().take(100).collect();
        // Out over the end that lies nearer, and back.
        ends.extend([left * 2 > entries.len(); 40]);
        ends.extend([left * 2 <= entries.len(); 40]);
        for right in ends {
            assert_eq!(cursor.peek_next(), entries.get(left).copied());
            assert_eq!(
                cursor.clone().peek_prev(),
                left.checked_sub(1).map(|prev| entries[prev])
            );
            if right {
                let expected = entries.get(left).copied();
                left += usize::from(expected.is_some());
                assert_eq!(cursor.next(), expected);
            } else {
                let expected = left.checked_sub(1).map(|prev| entries[prev]);
                left -= usize::from(expected.is_some());
                assert_eq!(cursor.prev(), expected);
            }
        }
    }

    fn compare(&self, run: Run) {
        let others = self.others(run);
        assert_eq!(self.ours.cmp(&others.0), self.theirs.cmp(&others.1));
        assert_eq!(
            self.ours.partial_cmp(&others.0),
            self.theirs.partial_cmp(&others.1)
        );
        assert_eq!(self.ours == others.0, self.theirs == others.1);
        assert_eq!(self.ours == others.1, self.theirs == others.1);
        assert_eq!(self.theirs == others.0, self.theirs == others.1);
        assert!(self.ours == self.theirs);
        assert!(self.theirs == self.ours);
        assert_eq!(self.ours.cmp(&self.ours.clone()), Ordering::Equal);
        assert_eq!(hash_of(&self.ours), hash_of(&self.theirs));
        if size_of::<V>() < 100 {
            assert_eq!(format!("{:?}", self.ours), format!("{:?}", self.theirs));
            assert_eq!(
                format!("{:#?}", others.0.iter()),
                format!("{:#?}", others.1.iter())
            );
            assert_eq!(
                format!("{:?} {:?}", self.ours.keys(), self.ours.values()),
                format!("{:?} {:?}", self.theirs.keys(), self.theirs.values())
            );
        }
    }
}

/// How many keys are on the left of the gap that a cursor starts at.
pub(crate) fn place_of<'a, K: Ord + 'a>(
    keys: impl Iterator<Item = &'a K>,
    lower: bool,
    bound: Bound<&K>,
) -> usize {
    keys.take_while(|&key| match (lower, bound) {
        // A lower bound is the gap before the first key within, an upper bound that behind the last
        // key within.
        (true, Bound::Included(bound)) | (false, Bound::Excluded(bound)) => key < bound,
        (true, Bound::Excluded(bound)) | (false, Bound::Included(bound)) => key <= bound,
        (true, Bound::Unbounded) => false,
        (false, Bound::Unbounded) => true,
    })
    .count()
}

/// Holds the mutable references to all entries at once, and then writes through each.
fn change<'a, K: Key + 'a, V: Value + 'a>(
    ours: impl DoubleEndedIterator<Item = (&'a K, &'a mut V)>,
    theirs: impl DoubleEndedIterator<Item = (&'a K, &'a mut V)>,
    ends: Ends,
    value: u32,
) {
    let (ours, theirs) = (take_all(ours, ends), take_all(theirs, ends));
    assert_eq!(ours, theirs);
    for (number, (ours, theirs)) in (value..).zip(ours.into_iter().zip(theirs)) {
        *ours.1 = V::numbered(number);
        *theirs.1 = V::numbered(number);
    }
}
