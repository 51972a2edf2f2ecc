//! The programs of the maps on a `CTreeSet` and a `BTreeSet`, which take the keys of each operation
//! and ignore the values; and what only sets do.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::ops::Bound;

use ctree::set::Entry;
use ctree::{CTreeSet, TotalF64};
use quickcheck::{Gen, QuickCheck};

use super::kinds::{Headed, Key};
use super::operation::{Op, Run};
use super::program::{Length, assert_walk, hash_of, is_refused, keys_of, picks};
use crate::memory::held_bytes;
use crate::times;

/// A set and its model.
struct World<K> {
    ours: CTreeSet<K>,
    theirs: BTreeSet<K>,
    make: fn() -> CTreeSet<K>,
}

fn keys<K: Key>(run: Run) -> impl Iterator<Item = K> + Clone {
    run.numbers().map(|(key, _)| K::nth(key))
}

impl<K: Key> World<K> {
    fn others(&self, run: Run) -> (CTreeSet<K>, BTreeSet<K>) {
        let mut ours = (self.make)();
        ours.extend(keys(run));
        (ours, keys(run).collect())
    }

    fn run(&mut self, op: &Op) {
        let (ours, theirs) = (&mut self.ours, &mut self.theirs);
        match op {
            Op::Insert(key, _) => {
                assert_eq!(ours.insert(K::nth(*key)), theirs.insert(K::nth(*key)));
            }
            Op::TryInsert(key, _) | Op::GetMut(key, _) => {
                assert_eq!(ours.replace(K::nth(*key)), theirs.replace(K::nth(*key)));
            }
            Op::Entry(key, _, way) => {
                let key = K::nth(*key);
                let entry = ours.entry(key.clone());
                assert_eq!(entry.get(), &key);
                match (way % 4, entry) {
                    (0, entry) => entry.or_insert(),
                    (1, entry) => assert_eq!(entry.insert().get(), &key),
                    (2, Entry::Vacant(entry)) => assert_eq!(entry.into_value(), key),
                    (_, Entry::Vacant(entry)) => entry.insert(),
                    (_, Entry::Occupied(entry)) => {
                        assert_eq!(theirs.take(&key), Some(entry.remove()));
                        return;
                    }
                }
                if way % 4 != 2 {
                    theirs.insert(key);
                }
            }
            Op::Get(key) => {
                let key = K::nth(*key);
                assert_eq!(ours.get(&key), theirs.get(&key));
                assert_eq!(ours.contains(&key), theirs.contains(&key));
            }
            Op::Remove(key) => {
                let key = K::nth(*key);
                assert_eq!(ours.remove(&key), theirs.remove(&key));
            }
            Op::RemoveEntry(key) => {
                let key = K::nth(*key);
                assert_eq!(ours.take(&key), theirs.take(&key));
            }
            Op::EndEntry(first, ..) | Op::Pop(first, _) => {
                let popped = if *first {
                    (ours.pop_first(), theirs.pop_first())
                } else {
                    (ours.pop_last(), theirs.pop_last())
                };
                assert_eq!(popped.0, popped.1);
            }
            Op::InsertMany(run) => {
                ours.insert_many(keys(*run));
                theirs.extend(keys::<K>(*run));
            }
            Op::Extend(run) => {
                ours.extend(keys(*run));
                theirs.extend(keys::<K>(*run));
            }
            Op::RemoveMany(run) => {
                for key in keys(*run) {
                    assert_eq!(ours.remove::<K>(&key), theirs.remove(&key));
                }
            }
            Op::GetMany(run, _) => {
                let keys: Vec<K> = keys(*run).collect();
                let expected: Vec<bool> = keys.iter().map(|key| theirs.contains(key)).collect();
                let mut found: Vec<bool> = expected.iter().map(|is_there| !is_there).collect();
                ours.contains_many(&keys, &mut found);
                assert_eq!(found, expected);
            }
            Op::Compare(run) | Op::Merge(run, _) => {
                let others = self.others(*run);
                assert_algebra((&self.ours, &self.theirs), (&others.0, &others.1));
                assert_algebra((&others.0, &others.1), (&self.ours, &self.theirs));
                assert_algebra((&self.ours, &self.theirs), (&self.ours, &self.theirs));
            }
            Op::Range(bounds, ends) | Op::RangeMut(bounds, ends, _) => {
                let range = keys_of::<K>(*bounds);
                if !is_refused(&range) {
                    let range = (range.0.as_ref(), range.1.as_ref());
                    let (ours, theirs) = (ours.range::<K, _>(range), theirs.range::<K, _>(range));
                    assert_walk(ours.clone(), theirs.clone(), *ends, Length::Bounded);
                    assert_eq!(ours.clone().last(), theirs.clone().last());
                    assert_eq!(ours.clone().min(), theirs.clone().min());
                    assert_eq!(ours.max(), theirs.max());
                }
            }
            Op::Iterate(ends) | Op::IterateMut(ends, _) => {
                assert_walk(ours.iter(), theirs.iter(), *ends, Length::Exact);
                assert_walk((&*ours).into_iter(), theirs.iter(), *ends, Length::Exact);
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
                assert_eq!(ours, theirs);
                assert_eq!(theirs, ours);
                assert_eq!(ours.iter().last(), theirs.iter().last());
                assert_eq!(ours.iter().max(), theirs.iter().max());
            }
            Op::Jump(front, back) => {
                let (mut ours, mut theirs) = (ours.iter(), theirs.iter());
                assert_eq!(ours.nth(*front), theirs.nth(*front));
                assert_eq!(ours.nth_back(*back), theirs.nth_back(*back));
                assert_eq!(ours.count(), theirs.count());
            }
            Op::MoveOut(ends, stop) => {
                let copies = (ours.clone(), theirs.clone());
                assert_walk(copies.0.into_iter(), copies.1, *ends, Length::Exact);
                let mut rest = ours.clone().into_iter();
                let taken = rest.by_ref().take(*stop).count();
                assert_eq!(rest.len(), theirs.len() - taken);
            }
            Op::Retain(one_in) => {
                ours.retain(|key| picks(*one_in, key));
                theirs.retain(|key| picks(*one_in, key));
            }
            Op::ExtractIf(bounds, one_in, stop) => {
                let range = keys_of::<K>(*bounds);
                if !is_refused(&range) {
                    let expected: Vec<K> = theirs
                        .range(range.clone())
                        .filter(|key| picks(*one_in, key))
                        .take(*stop)
                        .cloned()
                        .collect();
                    let taken = ours.extract_if(range, |key| picks(*one_in, key));
                    assert_eq!(taken.take(*stop).collect::<Vec<K>>(), expected);
                    theirs.retain(|key| expected.binary_search(key).is_err());
                }
            }
            Op::Append(run, _) => {
                let mut others = self.others(*run);
                self.ours.append(&mut others.0);
                self.theirs.append(&mut others.1);
                assert_eq!((others.0.len(), others.0.check()), (0, Ok(())));
            }
            Op::SplitOff(key, keep_lower) => {
                let key = K::nth(*key);
                let (our_upper, their_upper) = (ours.split_off(&key), theirs.split_off(&key));
                assert_eq!(our_upper.check(), Ok(()));
                assert!(our_upper.iter().eq(&their_upper));
                if !keep_lower {
                    (self.ours, self.theirs) = (our_upper, their_upper);
                }
            }
            Op::Clear => {
                ours.clear();
                theirs.clear();
            }
            Op::Clone(None) => *ours = ours.clone(),
            Op::Clone(Some(run)) => {
                let mut copy = self.others(*run).0;
                copy.clone_from(&self.ours);
                self.ours = copy;
            }
            Op::Compact => {
                // (What a small part of a split map moved to may be smaller than what it grows to.)
                let most = ours.memory_usage().max(ours.clone().memory_usage());
                ours.compact();
                assert!(ours.memory_usage() <= most);
            }
            Op::Rebuild(sorted) => {
                let keys: Vec<K> = std::mem::take(ours).into_iter().collect();
                *ours = if *sorted {
                    CTreeSet::from_sorted_iter(keys).expect("the keys of a set are in order")
                } else {
                    keys.iter().rev().chain(&keys).cloned().collect()
                };
            }
            Op::Cursor(_, bound, _) | Op::Walk(_, bound, _) => {
                let bound = bound.map(K::nth);
                let mut shared = ours.lower_bound(bound.as_ref());
                assert_eq!(shared.clone().next(), shared.peek_next());
                assert_eq!(shared.prev(), ours.lower_bound(bound.as_ref()).peek_prev());
                let next = ours.upper_bound(bound.as_ref()).peek_next().cloned();
                let mut cursor = ours.upper_bound_mut(bound.as_ref());
                assert_eq!(cursor.remove_next(), next);
                if let Some(next) = next {
                    assert!(cursor.insert_after(next.clone()).is_ok());
                    assert!(cursor.insert_before(next).is_err());
                }
            }
            Op::Rank(key) => {
                let key = K::nth(*key);
                let rank = theirs.range(..&key).count();
                assert_eq!(ours.rank(&key), rank);
                let expected = theirs.contains(&key).then_some(rank);
                assert_eq!(ours.get_index_of(&key), expected);
            }
            Op::Index(rank) => assert_eq!(ours.get_index(*rank), theirs.iter().nth(*rank)),
        }
        assert_eq!(self.ours.check(), Ok(()));
        assert_eq!(self.ours.len(), self.theirs.len());
        assert!(self.ours.iter().eq(&self.theirs));
        assert_eq!(self.ours.first(), self.theirs.first());
        assert_eq!(self.ours.last(), self.theirs.last());
        assert_eq!(self.ours.is_empty(), self.theirs.is_empty());
    }
}

/// A set and its model.
type Both<'a, K> = (&'a CTreeSet<K>, &'a BTreeSet<K>);

/// Compares all that two sets do together with what their models do.
fn assert_algebra<K: Key>((a, b): Both<'_, K>, (c, d): Both<'_, K>) {
    assert_forward(a.difference(c), b.difference(d));
    assert_forward(a.symmetric_difference(c), b.symmetric_difference(d));
    assert_forward(a.intersection(c), b.intersection(d));
    assert_forward(a.union(c), b.union(d));
    assert_eq!(a.is_disjoint(c), b.is_disjoint(d));
    assert_eq!(a.is_subset(c), b.is_subset(d));
    assert_eq!(a.is_superset(c), b.is_superset(d));
    assert_eq!((a.cmp(c), a == c), (b.cmp(d), b == d));
    for (mine, other) in [
        (a - c, b - d),
        (a ^ c, b ^ d),
        (a & c, b & d),
        (a | c, b | d),
    ] {
        assert_eq!(mine.check(), Ok(()));
        assert!(mine.iter().eq(&other));
        assert_eq!(hash_of(&mine), hash_of(&other));
    }
}

/// Asserts that two lazy results are the same, also when they are copied on the way.
fn assert_forward<'a, K: Key + 'a>(
    mut ours: impl Iterator<Item = &'a K> + Clone,
    theirs: impl Iterator<Item = &'a K> + Clone,
) {
    let expected: Vec<&K> = theirs.clone().collect();
    assert_eq!(ours.clone().min(), theirs.min());
    for taken in 0..=expected.len() {
        let (least, most) = ours.size_hint();
        let left = expected.len() - taken;
        assert!(least <= left && most.is_none_or(|most| left <= most));
        if taken == expected.len() / 2 {
            assert!(ours.clone().eq(expected[taken..].iter().copied()));
        }
        assert_eq!(ours.next(), expected.get(taken).copied());
    }
    assert_eq!(ours.next(), None);
}

fn run<'a, K: Key>(make: fn() -> CTreeSet<K>, ops: impl Iterator<Item = &'a Op>) {
    let _first = K::nth(0);
    let held = held_bytes();
    let mut world = World {
        ours: make(),
        theirs: BTreeSet::new(),
        make,
    };
    for op in ops {
        world.run(op);
    }
    assert!(world.ours.into_iter().eq(world.theirs));
    assert_eq!(held_bytes(), held);
}

macro_rules! programs {
    ($($name:ident: $key:ty, $make:expr;)*) => {$(
        #[test]
        fn $name() {
            fn holds(ops: Vec<Op>) -> bool {
                run::<$key>($make, ops.iter());
                true
            }
            QuickCheck::new()
                .rng(Gen::new(if cfg!(miri) { 12 } else { 120 }))
                .tests(times(60) as u64)
                .quickcheck(holds as fn(Vec<Op>) -> bool);
        }
    )*};
}

programs! {
    sets_of_bytes: u8, CTreeSet::new;
    sets_of_integers: u64, CTreeSet::new;
    sets_of_integers_with_ranks: u64, CTreeSet::with_ranks;
    sets_of_characters: char, CTreeSet::new;
    sets_of_floats: TotalF64, CTreeSet::new;
    sets_of_byte_strings: Vec<u8>, CTreeSet::new;
    sets_of_wide_pairs: (u64, u64), CTreeSet::new;
    sets_of_boxes: Box<u64>, CTreeSet::new;
    sets_of_keys_with_heads: Headed, CTreeSet::with_heads;
    sets_of_reversed_integers_with_ranks: Reverse<u64>, CTreeSet::with_ranks;
    sets_of_nothing: (), CTreeSet::new;
}

#[test]
fn key_ranges_touch_or_do_not() {
    let set = |keys: std::ops::Range<u64>| -> (CTreeSet<u64>, BTreeSet<u64>) {
        (keys.clone().collect(), keys.collect())
    };
    let sets = [0..0, 5..6, 5..10, 0..10, 10..20, 0..11, 0..20, 0..2000].map(set);
    for left in &sets {
        for right in &sets {
            assert_algebra((&left.0, &left.1), (&right.0, &right.1));
        }
    }
}

#[test]
fn cursors_change_sets() {
    let mut set = CTreeSet::from([1, 5]);
    let mut cursor = set.lower_bound_mut(Bound::Included(&5));
    assert!(cursor.insert_before(3).is_ok() && cursor.insert_after(4).is_ok());
    assert_eq!(cursor.peek_prev(), Some(&3));
    assert_eq!(cursor.as_cursor().peek_next(), Some(&4));
    assert_eq!(cursor.remove_prev(), Some(3));
    assert_eq!(cursor.next(), Some(&4));
    assert_eq!(cursor.prev(), Some(&4));
    assert_eq!(
        format!("{cursor:?}"),
        "CursorMut { prev: Some(1), next: Some(4) }"
    );
    assert!(set.iter().eq(&[1, 4, 5]));
}

#[test]
fn iterators_are_printed_as_those_of_std() {
    macro_rules! printed {
        ($set:ident) => {{
            let texts = std::cell::RefCell::new(Vec::new());
            let print = |iterator: &dyn Debug| {
                texts.borrow_mut().push(format!("{iterator:?}"));
                texts.borrow_mut().push(format!("{iterator:#?}"));
            };
            let set = |keys: std::ops::Range<u32>| keys.collect::<$set<u32>>();
            let (few, many, none) = (set(3..4), set(0..64), set(0..0));
            let (low, high, end) = (set(0..5), set(2..8), set(4..6));
            print(&(&low.iter(), &low.range(1..), &low.clone().into_iter()));
            for (left, right) in [
                (&low, &high),
                (&few, &many),
                (&many, &few),
                (&low, &end),
                (&low, &none),
            ] {
                let mut difference = left.difference(right);
                let mut intersection = left.intersection(right);
                let mut union = left.union(right);
                let mut symmetric = left.symmetric_difference(right);
                for _ in 0..4 {
                    print(&(&difference, &intersection, &union, &symmetric));
                    let _one = (difference.next(), intersection.next());
                    let _two = (union.next(), symmetric.next());
                }
            }
            texts.into_inner()
        }};
    }
    assert_eq!(printed!(CTreeSet), printed!(BTreeSet));
}
