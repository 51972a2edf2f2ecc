//! Random programs on a `CTreeSet` and a `BTreeSet`.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Bound;

use ctree::set::Entry;
use ctree::{CTreeSet, TotalF64};
use quickcheck::{Arbitrary, Gen, QuickCheck};

use super::kinds::{Headed, Key};
use super::operation::{Bounds, Choices, Ends, KeyNumber, Run, Step, any_bound, any_key};
use super::program::{Length, assert_walk, hash_of, is_refused, keys_of, picks, place_of};
use crate::memory::held_bytes;
use crate::times;

/// One step of a program.
#[derive(Clone, Debug)]
enum Op {
    Insert(KeyNumber),
    Replace(KeyNumber),
    Entry(KeyNumber, u8),
    Get(KeyNumber),
    Remove(KeyNumber),
    Take(KeyNumber),
    Pop(bool, u8),
    InsertMany(Run),
    Extend(Run),
    RemoveMany(Run),
    ContainsMany(Run),
    /// Everything that two sets can be asked together.
    Algebra(Run),
    Range(Bounds, Ends),
    Iterate(Ends),
    MoveOut(Ends, usize),
    Retain(u8),
    ExtractIf(Bounds, u8, usize),
    Append(Run),
    SplitOff(KeyNumber, bool),
    Clear,
    Clone(Option<Run>),
    Compact,
    Rebuild(bool),
    Cursor(bool, Bound<KeyNumber>, Vec<Step>),
    Rank(KeyNumber),
    Index(usize),
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Op {
        match g.byte() % 60 {
            0..5 => Op::Insert(any_key(g)),
            5 => Op::Entry(any_key(g), g.byte()),
            6 => Op::Replace(any_key(g)),
            7 | 8 => Op::Get(any_key(g)),
            9..13 => Op::Remove(any_key(g)),
            13 => Op::Take(any_key(g)),
            14 => Op::Pop(g.flip(), g.byte() % 40),
            15..19 => Op::InsertMany(Run::any(g)),
            19 | 20 => Op::Extend(Run::any(g)),
            21..25 => Op::RemoveMany(Run::any(g)),
            25 | 26 => Op::ContainsMany(Run::any(g)),
            27..33 => Op::Algebra(Run::any(g)),
            33..36 => Op::Range((any_bound(g), any_bound(g)), Ends::any(g)),
            36 => Op::Iterate(Ends::any(g)),
            37 => Op::MoveOut(Ends::any(g), g.below(300)),
            38 => Op::Retain(g.byte() % 8),
            39 | 40 => Op::ExtractIf((any_bound(g), any_bound(g)), g.byte() % 8, g.below(100)),
            41..43 => Op::Append(Run::any(g)),
            43..46 => Op::SplitOff(any_key(g), g.flip()),
            46 if g.byte() < 64 => Op::Clear,
            46 | 47 => Op::Clone(None),
            48 => Op::Clone(Some(Run::any(g))),
            49 => Op::Compact,
            50 | 51 => Op::Rebuild(g.flip()),
            52..56 => {
                let (lower, bound, steps) = (g.flip(), any_bound(g), g.below(30));
                Op::Cursor(lower, bound, (0..steps).map(|_| Step::any(g)).collect())
            }
            56 | 57 => Op::Rank(any_key(g)),
            _ => Op::Index(g.below(1000)),
        }
    }
}

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
            Op::Insert(key) => {
                assert_eq!(ours.insert(K::nth(*key)), theirs.insert(K::nth(*key)));
            }
            Op::Replace(key) => {
                assert_eq!(ours.replace(K::nth(*key)), theirs.replace(K::nth(*key)));
            }
            Op::Entry(key, way) => {
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
            Op::Take(key) => {
                let key = K::nth(*key);
                assert_eq!(ours.take(&key), theirs.take(&key));
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
            Op::InsertMany(run) => {
                ours.insert_many(keys(*run));
                theirs.extend(keys::<K>(*run));
            }
            Op::Extend(run) => {
                ours.extend(keys::<K>(*run));
                theirs.extend(keys::<K>(*run));
            }
            Op::RemoveMany(run) => {
                for key in keys(*run) {
                    assert_eq!(ours.remove::<K>(&key), theirs.remove(&key));
                }
            }
            Op::ContainsMany(run) => {
                let keys: Vec<K> = keys(*run).collect();
                let expected: Vec<bool> = keys.iter().map(|key| theirs.contains(key)).collect();
                let mut found: Vec<bool> = expected.iter().map(|is_there| !is_there).collect();
                ours.contains_many(&keys, &mut found);
                assert_eq!(found, expected);
            }
            Op::Algebra(run) => self.algebra(*run),
            Op::Range(bounds, ends) => {
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
            Op::Iterate(ends) => {
                assert_walk(ours.iter(), theirs.iter(), *ends, Length::Exact);
                assert_walk((&*ours).into_iter(), theirs.iter(), *ends, Length::Exact);
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
                assert_eq!(format!("{:?}", ours.iter()), format!("{:?}", theirs.iter()));
                assert!(*ours == *theirs);
                assert!(*theirs == *ours);
                assert_eq!(ours.iter().last(), theirs.iter().last());
                assert_eq!(ours.iter().max(), theirs.iter().max());
            }
            Op::MoveOut(ends, stop) => {
                assert_walk(
                    ours.clone().into_iter(),
                    theirs.clone(),
                    *ends,
                    Length::Exact,
                );
                let mut rest = ours.clone().into_iter();
                let taken = rest.by_ref().take(*stop).count();
                assert_eq!(taken, theirs.len().min(*stop));
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
                    for key in &expected {
                        assert!(theirs.remove(key));
                    }
                }
            }
            Op::Append(run) => {
                let mut others = self.others(*run);
                self.ours.append(&mut others.0);
                self.theirs.append(&mut others.1);
                assert!(others.0.is_empty());
                assert_eq!(others.0.check(), Ok(()));
            }
            Op::SplitOff(key, keep_lower) => {
                let key = K::nth(*key);
                let (our_upper, their_upper) = (ours.split_off(&key), theirs.split_off(&key));
                assert_eq!(our_upper.check(), Ok(()));
                assert!(our_upper.iter().eq(&their_upper));
                assert!(ours.iter().eq(&*theirs));
                if !keep_lower {
                    (self.ours, self.theirs) = (our_upper, their_upper);
                }
            }
            Op::Clear => {
                ours.clear();
                theirs.clear();
            }
            Op::Clone(None) => {
                let copy = ours.clone();
                assert_eq!(copy, *ours);
                self.ours = copy;
            }
            Op::Clone(Some(run)) => {
                let mut copy = self.others(*run).0;
                copy.clone_from(&self.ours);
                self.ours = copy;
            }
            Op::Compact => {
                let before = ours.memory_usage();
                ours.compact();
                assert!(ours.memory_usage() <= before);
            }
            Op::Rebuild(sorted) => {
                let keys: Vec<K> = std::mem::take(ours).into_iter().collect();
                assert!(keys.iter().eq(&*theirs));
                *ours = if *sorted {
                    CTreeSet::from_sorted_iter(keys).expect("the keys of a set are in order")
                } else {
                    keys.iter().rev().chain(&keys).cloned().collect()
                };
            }
            Op::Cursor(lower, bound, steps) => self.cursor(*lower, *bound, steps),
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

    fn algebra(&self, run: Run) {
        let (ours, theirs) = (&self.ours, &self.theirs);
        let (our_other, their_other) = self.others(run);
        // One of the sets may be the other, and either may be the larger.
        for (a, b, c, d) in [
            (ours, theirs, &our_other, &their_other),
            (&our_other, &their_other, ours, theirs),
            (ours, theirs, ours, theirs),
        ] {
            assert_forward(a.difference(c), b.difference(d));
            assert_forward(a.symmetric_difference(c), b.symmetric_difference(d));
            assert_forward(a.intersection(c), b.intersection(d));
            assert_forward(a.union(c), b.union(d));
            assert_eq!(
                format!("{:?}", a.intersection(c).max()),
                format!("{:?}", b.intersection(d).max())
            );
            assert_eq!(a.is_disjoint(c), b.is_disjoint(d));
            assert_eq!(a.is_subset(c), b.is_subset(d));
            assert_eq!(a.is_superset(c), b.is_superset(d));
            assert_eq!(a.cmp(c), b.cmp(d));
            assert_eq!(a == c, b == d);
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
    }

    fn cursor(&mut self, lower: bool, bound: Bound<KeyNumber>, steps: &[Step]) {
        let mut keys: Vec<K> = std::mem::take(&mut self.theirs).into_iter().collect();
        let bound = bound.map(K::nth);
        let mut left = place_of(keys.iter(), lower, bound.as_ref());
        let shared = if lower {
            self.ours.lower_bound(bound.as_ref())
        } else {
            self.ours.upper_bound(bound.as_ref())
        };
        assert_eq!(shared.peek_next(), keys.get(left));
        let mut cursor = if lower {
            self.ours.lower_bound_mut(bound.as_ref())
        } else {
            self.ours.upper_bound_mut(bound.as_ref())
        };
        for step in steps {
            match *step {
                Step::Next => {
                    let expected = keys.get(left);
                    left += usize::from(expected.is_some());
                    assert_eq!(cursor.next(), expected);
                }
                Step::Prev => {
                    let expected = left.checked_sub(1).map(|prev| &keys[prev]);
                    left -= usize::from(expected.is_some());
                    assert_eq!(cursor.prev(), expected);
                }
                Step::Peek | Step::Change(..) => {
                    let mut walk = cursor.as_cursor();
                    assert_eq!(walk.next(), keys.get(left));
                    if left < keys.len() {
                        assert_eq!(walk.prev(), keys.get(left));
                    }
                }
                Step::InsertBefore(key, _) | Step::InsertAfter(key, _) => {
                    let key = K::nth(key);
                    let fits = left.checked_sub(1).is_none_or(|prev| keys[prev] < key)
                        && keys.get(left).is_none_or(|next| key < *next);
                    let before = matches!(step, Step::InsertBefore(..));
                    let inserted = if before {
                        cursor.insert_before(key.clone())
                    } else {
                        cursor.insert_after(key.clone())
                    };
                    assert_eq!(inserted.is_ok(), fits);
                    if fits {
                        keys.insert(left, key);
                        left += usize::from(before);
                    }
                }
                Step::RemoveNext => {
                    let expected = (left < keys.len()).then(|| keys.remove(left));
                    assert_eq!(cursor.remove_next(), expected);
                }
                Step::RemovePrev => {
                    let expected = left.checked_sub(1).map(|prev| keys.remove(prev));
                    left -= usize::from(expected.is_some());
                    assert_eq!(cursor.remove_prev(), expected);
                }
            }
            assert_eq!(cursor.peek_next(), keys.get(left));
            assert_eq!(
                cursor.peek_prev(),
                left.checked_sub(1).map(|prev| &keys[prev])
            );
        }
        self.theirs = keys.into_iter().collect();
    }
}

/// Asserts that two lazy results are the same, also when they are copied on the way.
fn assert_forward<'a, K: Key + 'a>(
    ours: impl Iterator<Item = &'a K> + Clone,
    theirs: impl Iterator<Item = &'a K> + Clone,
) {
    let expected: Vec<&K> = theirs.clone().collect();
    assert!(ours.clone().eq(theirs.clone()));
    assert_eq!(ours.clone().min(), theirs.min());
    let mut ours = ours;
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
