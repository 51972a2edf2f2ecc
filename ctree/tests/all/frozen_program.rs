//! The programs of the dynamic maps on a `FrozenCTreeMap` and a `BTreeMap`: what changes the
//! entries builds the frozen map again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use ctree::{FrozenCTreeMap, FrozenCTreeSet};
use quickcheck::{Arbitrary, Gen, QuickCheck};

use crate::dynamic::kinds::{Counted, Huge, Key, Value, Weightless};
use crate::dynamic::operation::{Op, Run};
use crate::dynamic::program::{Length, assert_walk, hash_of, is_refused, keys_of, picks};

/// A map and its model.
struct World<K, V> {
    ours: FrozenCTreeMap<K, V>,
    theirs: BTreeMap<K, V>,
}

impl<K: Key, V: Value> World<K, V> {
    fn entries(run: Run) -> impl Iterator<Item = (K, V)> + Clone {
        run.numbers()
            .take(300)
            .map(|(key, value)| (K::nth(key), V::numbered(value)))
    }

    /// Builds the frozen map from the model by one of several constructors.
    fn rebuild(&mut self, constructor: usize) {
        let theirs = self.theirs.clone();
        self.ours = match constructor % 3 {
            0 => theirs.into_iter().rev().collect(),
            1 => FrozenCTreeMap::from_sorted_iter(theirs).expect("a BTreeMap is sorted"),
            _ => FrozenCTreeMap::from(theirs),
        };
    }

    fn run(&mut self, op: &Op) {
        let (ours, theirs) = (&mut self.ours, &mut self.theirs);
        match op {
            Op::Insert(key, value) | Op::TryInsert(key, value) => {
                theirs.insert(K::nth(*key), V::numbered(*value));
            }
            Op::InsertMany(run) | Op::Extend(run) | Op::Append(run, _) | Op::Merge(run, _) => {
                theirs.extend(Self::entries(*run));
            }
            Op::Remove(key) | Op::RemoveEntry(key) => drop(theirs.remove(&K::nth(*key))),
            Op::RemoveMany(run) => {
                for (key, _) in Self::entries(*run) {
                    theirs.remove(&key);
                }
            }
            Op::Retain(one_in) | Op::ExtractIf(_, one_in, _) => {
                theirs.retain(|key, _| !picks(*one_in, key));
            }
            Op::Get(key) => {
                let key = K::nth(*key);
                assert_eq!(ours.get(&key), theirs.get(&key));
                assert_eq!(ours.get_key_value(&key), theirs.get_key_value(&key));
                assert_eq!(ours.contains_key(&key), theirs.contains_key(&key));
            }
            Op::GetMut(key, value) | Op::Entry(key, _, value) => {
                let key = K::nth(*key);
                assert_eq!(ours.get_mut(&key), theirs.get_mut(&key));
                if let (Some(ours), Some(theirs)) = (ours.get_mut(&key), theirs.get_mut(&key)) {
                    *ours = V::numbered(*value);
                    *theirs = V::numbered(*value);
                }
            }
            Op::GetMany(run, others) => {
                let mut keys: Vec<K> = Self::entries(*run).map(|(key, _)| key).collect();
                keys.extend(others.iter().map(|key| K::nth(*key)));
                // Few keys are searched for one by one, many together.
                for count in [keys.len(), 3, 4] {
                    let keys = &keys[..count.min(keys.len())];
                    let mut results = vec![None; keys.len()];
                    ours.get_many(keys, &mut results);
                    assert!(
                        results
                            .into_iter()
                            .eq(keys.iter().map(|key| theirs.get(key)))
                    );
                    let mut ranks = vec![usize::MAX; keys.len()];
                    ours.rank_many(keys, &mut ranks);
                    let expected = keys.iter().map(|key| theirs.range(..key).count());
                    assert!(ranks.into_iter().eq(expected));
                }
            }
            Op::Rank(key) | Op::SplitOff(key, _) => {
                let key = K::nth(*key);
                let below = theirs.range(..&key).count();
                let upto = theirs.range(..=&key).count();
                assert_eq!((ours.rank(&key), ours.rank_after(&key)), (below, upto));
                assert_eq!(ours.get_index_of(&key), (below < upto).then_some(below));
            }
            Op::Index(rank) => {
                assert_eq!(ours.get_index(*rank), theirs.iter().nth(*rank));
                assert_eq!(ours.get_index_mut(*rank), theirs.iter_mut().nth(*rank));
            }
            Op::Range(bounds, ends) => {
                let range = keys_of::<K>(*bounds);
                if !is_refused(&range) {
                    let range = (range.0.as_ref(), range.1.as_ref());
                    let expected: Vec<(&K, &V)> = theirs.range::<K, _>(range).collect();
                    assert_walk(ours.range::<K, _>(range), expected, *ends, Length::Exact);
                }
            }
            Op::RangeMut(bounds, _, value) => {
                let range = keys_of::<K>(*bounds);
                if !is_refused(&range) {
                    let range = (range.0.as_ref(), range.1.as_ref());
                    let ours = ours.range_mut::<K, _>(range).map(|(_, value)| value);
                    let theirs = theirs.range_mut::<K, _>(range).map(|(_, value)| value);
                    ours.chain(theirs)
                        .for_each(|place| *place = V::numbered(*value));
                }
            }
            Op::Iterate(ends) | Op::IterateMut(ends, _) => {
                assert_walk(ours.iter(), theirs.iter(), *ends, Length::Exact);
                assert_walk(ours.keys(), theirs.keys(), *ends, Length::Exact);
                assert_walk(ours.values(), theirs.values(), *ends, Length::Exact);
                assert_walk(ours.iter_mut(), theirs.iter_mut(), *ends, Length::Exact);
                assert_walk(ours.values_mut(), theirs.values_mut(), *ends, Length::Exact);
            }
            Op::Jump(front, back) => {
                let (mut ours, mut theirs) = (ours.iter(), theirs.iter());
                assert_eq!(ours.nth(*front), theirs.nth(*front));
                assert_eq!(ours.nth_back(*back), theirs.nth_back(*back));
                assert_eq!(ours.size_hint(), theirs.size_hint());
                assert_eq!(ours.clone().last(), theirs.clone().last());
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
                assert_eq!(ours.count(), theirs.count());
            }
            Op::MoveOut(ends, stop) => {
                let (ours, theirs) = (|| self.ours.clone(), || self.theirs.clone());
                assert_walk(ours().into_iter(), theirs(), *ends, Length::Exact);
                let (keys, values) = (theirs().into_keys(), theirs().into_values());
                assert_walk(ours().into_keys(), keys, *ends, Length::Exact);
                assert_walk(ours().into_values(), values, *ends, Length::Exact);
                let (mut ours, mut theirs) = (ours().into_iter(), theirs().into_iter());
                for front in ends.fronts().take(*stop) {
                    if front {
                        assert_eq!(ours.next(), theirs.next());
                    } else {
                        assert_eq!(ours.next_back(), theirs.next_back());
                    }
                }
                assert_eq!(ours.len(), theirs.len());
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            }
            Op::Compare(run) => {
                let theirs_too: BTreeMap<K, V> = Self::entries(*run).collect();
                let ours_too = FrozenCTreeMap::from(theirs_too.clone());
                let (ours, theirs) = (&*ours, &*theirs);
                assert_eq!(ours.cmp(&ours_too), theirs.cmp(&theirs_too));
                assert_eq!(ours.partial_cmp(&ours_too), theirs.partial_cmp(&theirs_too));
                assert_eq!(*ours == ours_too, *theirs == theirs_too);
                assert_eq!(hash_of(ours), hash_of(theirs));
                assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            }
            Op::Clone(_) | Op::Compact => {
                let copy = ours.clone();
                assert_eq!(&copy, ours);
                *ours = copy;
            }
            Op::Rebuild(sorted) => self.rebuild(usize::from(*sorted)),
            Op::Pop(..) | Op::EndEntry(..) | Op::Clear | Op::Cursor(..) | Op::Walk(..) => {
                assert_eq!(ours.first_key_value(), theirs.first_key_value());
                assert_eq!(ours.last_key_value(), theirs.last_key_value());
            }
        }
        if self.ours.len() != self.theirs.len() || !self.ours.iter().eq(&self.theirs) {
            self.rebuild(self.theirs.len());
            assert!(self.ours.iter().eq(&self.theirs));
        }
        assert_eq!(self.ours.check(), Ok(()));
        assert_eq!(self.ours.is_empty(), self.theirs.is_empty());
    }
}

/// A checker that runs `tests` cases with collections of up to `size` elements.
fn checker(tests: u64, size: usize) -> QuickCheck {
    if cfg!(miri) {
        return QuickCheck::new()
            .rng(Gen::new(size.min(40)))
            .tests(tests.min(3));
    }
    QuickCheck::new().rng(Gen::new(size)).tests(tests)
}

macro_rules! programs {
    ($($name:ident: $key:ty => $value:ty;)*) => {$(
        #[test]
        fn $name() {
            fn holds(ops: Vec<Op>) -> bool {
                let alive = Counted::alive();
                let mut world = World::<$key, $value> {
                    ours: FrozenCTreeMap::new(),
                    theirs: BTreeMap::new(),
                };
                ops.iter().for_each(|op| world.run(op));
                assert!(BTreeMap::from(world.ours) == world.theirs);
                drop(world.theirs);
                assert_eq!(Counted::alive(), alive);
                true
            }
            checker(60, 100).quickcheck(holds as fn(Vec<Op>) -> bool);
        }
    )*};
}

programs! {
    integers_to_integers: u64 => u64;
    bytes_to_counted_values: u8 => Counted;
    signed_integers_to_huge_values: i32 => Huge;
    texts_to_counted_values: String => Counted;
    pairs_to_integers: (u32, u32) => u64;
    keys_without_heads_to_integers: Box<u64> => u64;
    nothing_to_weightless_values: () => Weightless;
}

/// What jumps over entries at either end lead to, and what they leave.
fn jump<T>(
    mut iterator: impl DoubleEndedIterator<Item = T>,
    (front, back): (usize, usize),
) -> (Option<T>, Option<T>, Vec<T>) {
    let ends = (iterator.nth(front), iterator.nth_back(back));
    (ends.0, ends.1, iterator.collect())
}

fn sets_agree<K: Arbitrary + Key>(left: Vec<K>, right: Vec<K>) -> bool {
    let sets = |keys: &[K]| -> (FrozenCTreeSet<K>, BTreeSet<K>) {
        (
            keys.iter().cloned().collect(),
            keys.iter().cloned().collect(),
        )
    };
    let ((ours, theirs), (our_right, their_right)) = (sets(&left), sets(&right));
    let others = (&our_right, &their_right);
    assert_eq!((ours.len(), ours.check()), (theirs.len(), Ok(())));
    assert_eq!((ours.first(), ours.last()), (theirs.first(), theirs.last()));
    let (mut found, mut ranks) = (vec![false; right.len()], vec![usize::MAX; right.len()]);
    ours.contains_many(&right, &mut found);
    ours.rank_many(&right, &mut ranks);
    for (index, key) in right.iter().enumerate() {
        assert_eq!(
            (found[index], ours.get(key)),
            (theirs.contains(key), theirs.get(key))
        );
        assert_eq!(
            (ranks[index], ours.rank(key)),
            (theirs.range(..key).count(), ranks[index])
        );
        assert_eq!(ours.rank_after(key), theirs.range(..=key).count());
        assert!(ours.range(key..).rev().eq(theirs.range(key..).rev()));
    }
    for (rank, key) in theirs.iter().enumerate() {
        assert_eq!(
            (ours.get_index(rank), ours.get_index_of(key)),
            (Some(key), Some(rank))
        );
    }
    macro_rules! operation_agrees {
        ($method:ident, $operator:tt) => {{
            let expected: Vec<&K> = theirs.$method(&their_right).collect();
            let iterator = ours.$method(&our_right);
            let (least, most) = iterator.size_hint();
            assert!(least <= expected.len() && most.is_some_and(|most| most >= expected.len()));
            assert!(iterator.eq(expected.iter().copied()));
            let built = &ours $operator &our_right;
            assert_eq!(built.check(), Ok(()));
            assert!(built.iter().eq(expected));
        }};
    }
    operation_agrees!(union, |);
    operation_agrees!(intersection, &);
    operation_agrees!(difference, -);
    operation_agrees!(symmetric_difference, ^);
    assert_eq!(ours.is_disjoint(others.0), theirs.is_disjoint(others.1));
    assert_eq!(ours.is_subset(others.0), theirs.is_subset(others.1));
    assert_eq!(ours.is_superset(others.0), theirs.is_superset(others.1));
    assert_eq!(ours.cmp(&our_right), theirs.cmp(&their_right));
    assert_eq!(ours == our_right, theirs == their_right);
    assert_eq!(hash_of(&ours), hash_of(&theirs));
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    assert_eq!(FrozenCTreeSet::from(theirs.clone()), ours);
    let ends = (right.len() % 20, left.len() % 20);
    assert_eq!(jump(ours.iter(), ends), jump(theirs.iter(), ends));
    if let Some(key) = right.first() {
        assert_eq!(
            jump(ours.range(key..), ends),
            jump(theirs.range(key..), ends)
        );
    }
    let moved = jump(ours.clone().into_iter(), ends);
    assert_eq!(moved, jump(theirs.clone().into_iter(), ends));
    BTreeSet::from(ours) == theirs
}

#[test]
fn sets_behave_as_btree_sets() {
    fn check<K: Arbitrary + Key>() {
        checker(60, 300).quickcheck(sets_agree::<K> as fn(Vec<K>, Vec<K>) -> bool);
    }
    check::<u8>();
    check::<i32>();
    check::<String>();
    check::<()>();
}

#[test]
fn borrowed_forms_are_accepted_everywhere() {
    let mut map: FrozenCTreeMap<String, u32> = (0..300).map(|n| (format!("{n:03}"), n)).collect();
    let key = "123";
    assert_eq!((map.get(key), map[key]), (Some(&123), 123));
    assert_eq!(map.get_mut(key), Some(&mut 123));
    assert_eq!((map.rank(key), map.rank_after(key)), (123, 124));
    let bounds = (Bound::Included("297"), Bound::Unbounded);
    assert_eq!(map.range::<str, _>(bounds).count(), 3);
}
