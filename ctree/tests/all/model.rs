//! Random programs of operations, each run on a frozen map and on a `BTreeMap`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Bound;

use ctree::{FrozenCTreeMap, FrozenCTreeSet};
use quickcheck::{Arbitrary, Gen, QuickCheck, TestResult};

/// One question to a map, or one change of a value.
#[derive(Clone, Debug)]
enum Op<K> {
    Get(K),
    SetValue(K, u32),
    GetMany(Vec<K>),
    Bounds(K),
    Index(usize),
    Range(Bound<K>, Bound<K>),
    RangeMut(Bound<K>, Bound<K>, u32),
    FirstAndLast,
    BothEnds(Vec<bool>),
    Jump(usize, usize),
    Clone,
    MoveOut(Vec<bool>),
}

impl<K: Arbitrary> Arbitrary for Op<K> {
    fn arbitrary(g: &mut Gen) -> Op<K> {
        let bound = |g: &mut Gen| match u8::arbitrary(g) % 3 {
            0 => Bound::Included(K::arbitrary(g)),
            1 => Bound::Excluded(K::arbitrary(g)),
            _ => Bound::Unbounded,
        };
        match u8::arbitrary(g) % 16 {
            0 | 1 => Op::Get(K::arbitrary(g)),
            2 => Op::SetValue(K::arbitrary(g), u32::arbitrary(g)),
            3 | 4 => Op::GetMany(Vec::arbitrary(g)),
            5 => Op::Bounds(K::arbitrary(g)),
            6 => Op::Index(usize::arbitrary(g) % 200),
            7..=9 => Op::Range(bound(g), bound(g)),
            10 => Op::RangeMut(bound(g), bound(g), u32::arbitrary(g)),
            11 => Op::FirstAndLast,
            12 => Op::BothEnds(Vec::arbitrary(g)),
            13 => Op::Jump(usize::arbitrary(g) % 100, usize::arbitrary(g) % 100),
            14 => Op::Clone,
            _ => Op::MoveOut(Vec::arbitrary(g)),
        }
    }
}

/// Whether `BTreeMap::range` would panic, if there are entries.
fn is_refused<K: Ord>(start: &Bound<K>, end: &Bound<K>) -> bool {
    match (start, end) {
        (Bound::Excluded(start), Bound::Excluded(end)) => start >= end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start > end,
        _ => false,
    }
}

fn hash_of<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Takes from either end as `from_front` says, then the rest.
fn drain<T>(
    mut iterator: impl DoubleEndedIterator<Item = T>,
    from_front: &[bool],
) -> Vec<Option<T>> {
    let mut taken: Vec<Option<T>> = from_front
        .iter()
        .map(|&front| {
            if front {
                iterator.next()
            } else {
                iterator.next_back()
            }
        })
        .collect();
    taken.extend(iterator.by_ref().map(Some));
    taken.extend([iterator.next(), iterator.next_back(), iterator.next()]);
    taken
}

fn run<K, V>(frozen: &mut FrozenCTreeMap<K, V>, model: &mut BTreeMap<K, V>, op: Op<K>)
where
    K: Clone + Ord + Debug,
    V: Clone + PartialEq + Debug + From<u32>,
{
    match op {
        Op::Get(key) => {
            assert_eq!(frozen.get(&key), model.get(&key));
            assert_eq!(frozen.get_key_value(&key), model.get_key_value(&key));
            assert_eq!(frozen.contains_key(&key), model.contains_key(&key));
        }
        Op::SetValue(key, value) => {
            assert_eq!(frozen.get_mut(&key), model.get_mut(&key));
            if let (Some(ours), Some(theirs)) = (frozen.get_mut(&key), model.get_mut(&key)) {
                *ours = value.into();
                *theirs = value.into();
            }
        }
        Op::GetMany(mut keys) => {
            keys.extend(model.keys().take(100).cloned());
            // Few keys are searched for one by one, many together.
            for count in [keys.len(), 3, 4] {
                let keys = &keys[..count.min(keys.len())];
                let mut results = vec![None; keys.len()];
                frozen.get_many(keys, &mut results);
                let expected: Vec<Option<&V>> = keys.iter().map(|key| model.get(key)).collect();
                assert_eq!(results, expected);
                let mut ranks = vec![usize::MAX; keys.len()];
                frozen.lower_bound_many(keys, &mut ranks);
                let expected: Vec<usize> =
                    keys.iter().map(|key| model.range(..key).count()).collect();
                assert_eq!(ranks, expected);
            }
        }
        Op::Bounds(key) => {
            let (below, upto) = (model.range(..&key).count(), model.range(..=&key).count());
            assert_eq!(
                (frozen.lower_bound(&key), frozen.upper_bound(&key)),
                (below, upto)
            );
            assert_eq!(frozen.get_index_of(&key), (below < upto).then_some(below));
        }
        Op::Index(rank) => {
            assert_eq!(frozen.get_index(rank), model.iter().nth(rank));
            assert_eq!(frozen.get_index_mut(rank), model.iter_mut().nth(rank));
        }
        Op::Range(start, end) => {
            if !model.is_empty() && is_refused(&start, &end) {
                return;
            }
            let range = (start.as_ref(), end.as_ref());
            let (ours, theirs) = (frozen.range::<K, _>(range), model.range::<K, _>(range));
            assert_eq!(ours.len(), theirs.clone().count());
            assert!(ours.clone().eq(theirs.clone()));
            assert!(ours.rev().eq(theirs.rev()));
        }
        Op::RangeMut(start, end, value) => {
            if !model.is_empty() && is_refused(&start, &end) {
                return;
            }
            let range = (start.as_ref(), end.as_ref());
            for (_, ours) in frozen.range_mut::<K, _>(range) {
                *ours = value.into();
            }
            for (_, theirs) in model.range_mut::<K, _>(range) {
                *theirs = value.into();
            }
        }
        Op::FirstAndLast => {
            assert_eq!(frozen.first_key_value(), model.first_key_value());
            assert_eq!(frozen.last_key_value(), model.last_key_value());
        }
        Op::BothEnds(from_front) => {
            assert_eq!(
                drain(frozen.iter(), &from_front),
                drain(model.iter(), &from_front)
            );
            assert_eq!(
                drain(frozen.keys(), &from_front),
                drain(model.keys(), &from_front)
            );
            assert_eq!(
                drain(frozen.values(), &from_front),
                drain(model.values(), &from_front)
            );
            assert_eq!(
                drain(frozen.iter_mut(), &from_front),
                drain(model.iter_mut(), &from_front)
            );
            assert_eq!(
                drain(frozen.values_mut(), &from_front),
                drain(model.values_mut(), &from_front)
            );
        }
        Op::Jump(front, back) => {
            let (mut ours, mut theirs) = (frozen.iter(), model.iter());
            assert_eq!(ours.nth(front), theirs.nth(front));
            assert_eq!(ours.len(), theirs.len());
            assert_eq!(ours.nth_back(back), theirs.nth_back(back));
            assert_eq!(ours.size_hint(), theirs.size_hint());
            assert_eq!(ours.clone().last(), theirs.clone().last());
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            assert_eq!(ours.count(), theirs.count());
        }
        Op::Clone => {
            let copy = frozen.clone();
            assert_eq!(copy.check(), Ok(()));
            assert_eq!(&copy, frozen);
            *frozen = copy;
        }
        Op::MoveOut(from_front) => {
            assert_eq!(
                drain(frozen.clone().into_iter(), &from_front),
                drain(model.clone().into_iter(), &from_front)
            );
            assert_eq!(
                drain(frozen.clone().into_keys(), &from_front),
                drain(model.clone().into_keys(), &from_front)
            );
            assert_eq!(
                drain(frozen.clone().into_values(), &from_front),
                drain(model.clone().into_values(), &from_front)
            );
            let (mut ours, mut theirs) = (frozen.clone().into_iter(), model.clone().into_iter());
            for &front in &from_front {
                if front {
                    assert_eq!(ours.next(), theirs.next());
                } else {
                    assert_eq!(ours.next_back(), theirs.next_back());
                }
            }
            assert_eq!(ours.len(), theirs.len());
            assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
            assert_eq!(
                format!("{:?}", frozen.clone().into_keys()),
                format!("{:?}", model.clone().into_keys())
            );
            assert_eq!(
                format!("{:?}", frozen.clone().into_values()),
                format!("{:?}", model.clone().into_values())
            );
            // Dropped before its end: the counting doubles and valgrind watch what becomes of the
            // rest.
            let mut rest = frozen.clone().into_iter();
            assert_eq!(
                rest.by_ref().take(from_front.len()).count(),
                from_front.len().min(model.len())
            );
        }
    }
}

/// Builds both maps by one of several constructors, then runs the program.
fn program<K, V>(entries: Vec<(K, u32)>, ops: Vec<Op<K>>, constructor: u8) -> TestResult
where
    K: Clone + Ord + Debug + Hash,
    V: Clone + Ord + Debug + Hash + From<u32>,
{
    let entries: Vec<(K, V)> = entries
        .into_iter()
        .map(|(key, value)| (key, value.into()))
        .collect();
    let mut model: BTreeMap<K, V> = entries.iter().cloned().collect();
    let mut frozen = match constructor % 3 {
        0 => entries.into_iter().collect(),
        1 => FrozenCTreeMap::from_sorted_iter(model.clone()).expect("a BTreeMap is sorted"),
        _ => FrozenCTreeMap::from(model.clone()),
    };
    for op in ops {
        run(&mut frozen, &mut model, op);
        assert_eq!(frozen.check(), Ok(()));
    }
    assert_eq!(frozen.len(), model.len());
    assert_eq!(frozen.is_empty(), model.is_empty());
    assert_eq!(format!("{frozen:?}"), format!("{model:?}"));
    assert_eq!(hash_of(&frozen), hash_of(&model));
    assert_eq!(BTreeMap::from(frozen), model);
    TestResult::passed()
}

/// A checker that runs `tests` cases with collections of up to `size` elements.
fn checker(tests: u64, size: usize) -> QuickCheck {
    let (tests, size) = if cfg!(miri) {
        (tests.min(3), size.min(40))
    } else {
        (tests, size)
    };
    QuickCheck::new().rng(Gen::new(size)).tests(tests)
}

/// Runs random programs on maps from `K` to `V`.
fn check<K, V>()
where
    K: Arbitrary + Ord + Debug + Hash,
    V: Clone + Ord + Debug + Hash + From<u32>,
{
    checker(60, 300).quickcheck(program::<K, V> as fn(Vec<(K, u32)>, Vec<Op<K>>, u8) -> TestResult);
}

/// A value with a heap part, so that values lie apart from integer keys and are dropped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Boxed(Box<u32>);

impl From<u32> for Boxed {
    fn from(value: u32) -> Boxed {
        Boxed(Box::new(value))
    }
}

/// A value larger than several cache lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Huge([u32; 100]);

impl From<u32> for Huge {
    fn from(value: u32) -> Huge {
        Huge([value; 100])
    }
}

/// A value without size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Nothing;

impl From<u32> for Nothing {
    fn from(_: u32) -> Nothing {
        Nothing
    }
}

#[test]
fn integer_keys_behave_as_in_btree_map() {
    check::<u64, u64>();
    // Small keys, so that many queries hit; values beside their keys.
    check::<u8, u32>();
    check::<i8, u64>();
    check::<u8, Boxed>();
    check::<i32, Huge>();
}

#[test]
fn other_keys_behave_as_in_btree_map() {
    check::<String, Boxed>();
    check::<(u32, u32), u64>();
    check::<(), Nothing>();
}

/// What jumps over entries at either end lead to, and what they leave.
fn jump<T>(
    mut iterator: impl DoubleEndedIterator<Item = T>,
    (front, back): (usize, usize),
) -> (Option<T>, Option<T>, Vec<T>) {
    let ends = (iterator.nth(front), iterator.nth_back(back));
    (ends.0, ends.1, iterator.collect())
}

fn sets_agree<K>(left: Vec<K>, right: Vec<K>) -> TestResult
where
    K: Arbitrary + Ord + Debug + Hash,
{
    let (ours, theirs): (FrozenCTreeSet<K>, BTreeSet<K>) = (
        left.iter().cloned().collect(),
        left.iter().cloned().collect(),
    );
    let (our_right, their_right): (FrozenCTreeSet<K>, BTreeSet<K>) = (
        right.iter().cloned().collect(),
        right.iter().cloned().collect(),
    );
    assert_eq!(ours.check(), Ok(()));
    assert_eq!(ours.len(), theirs.len());
    assert_eq!((ours.first(), ours.last()), (theirs.first(), theirs.last()));
    let mut found = vec![false; right.len()];
    ours.contains_many(&right, &mut found);
    for (key, found) in right.iter().zip(found) {
        assert_eq!(found, theirs.contains(key));
        assert_eq!(ours.get(key), theirs.get(key));
        assert_eq!(ours.lower_bound(key), theirs.range(..key).count());
        assert_eq!(ours.upper_bound(key), theirs.range(..=key).count());
        assert!(ours.range(key..).rev().eq(theirs.range(key..).rev()));
    }
    let mut ranks = vec![usize::MAX; right.len()];
    ours.lower_bound_many(&right, &mut ranks);
    for (key, rank) in right.iter().zip(ranks) {
        assert_eq!(rank, theirs.range(..key).count());
    }
    assert!(theirs.iter().enumerate().all(
        |(rank, key)| ours.get_index(rank) == Some(key) && ours.get_index_of(key) == Some(rank)
    ));
    macro_rules! operation_agrees {
        ($method:ident, $operator:tt) => {{
            let expected: Vec<&K> = theirs.$method(&their_right).collect();
            let mut iterator = ours.$method(&our_right);
            let (least, most) = iterator.size_hint();
            assert!(least <= expected.len() && most.is_some_and(|most| most >= expected.len()));
            assert!(iterator.clone().eq(expected.iter().copied()));
            assert_eq!(iterator.by_ref().count(), expected.len());
            assert!(iterator.next().is_none() && iterator.next().is_none());
            let built = &ours $operator &our_right;
            assert_eq!(built.check(), Ok(()));
            assert!(built.iter().eq(expected));
        }};
    }
    operation_agrees!(union, |);
    operation_agrees!(intersection, &);
    operation_agrees!(difference, -);
    operation_agrees!(symmetric_difference, ^);
    assert_eq!(
        ours.is_disjoint(&our_right),
        theirs.is_disjoint(&their_right)
    );
    assert_eq!(ours.is_subset(&our_right), theirs.is_subset(&their_right));
    assert_eq!(
        ours.is_superset(&our_right),
        theirs.is_superset(&their_right)
    );
    assert_eq!(ours.cmp(&our_right), theirs.cmp(&their_right));
    assert_eq!(ours == our_right, theirs == their_right);
    assert_eq!(hash_of(&ours), hash_of(&theirs));
    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
    assert_eq!(FrozenCTreeSet::from(theirs.clone()), ours);
    assert!(ours.iter().rev().eq(theirs.iter().rev()));
    assert!(ours.clone().into_iter().eq(theirs.clone()));
    let front_and_back = (right.len() % 20, left.len() % 20);
    assert_eq!(
        jump(ours.iter(), front_and_back),
        jump(theirs.iter(), front_and_back)
    );
    if let Some(key) = right.first() {
        assert_eq!(
            jump(ours.range(key..), front_and_back),
            jump(theirs.range(key..), front_and_back)
        );
    }
    assert_eq!(
        jump(ours.clone().into_iter(), front_and_back),
        jump(theirs.clone().into_iter(), front_and_back)
    );
    assert_eq!(BTreeSet::from(ours), theirs);
    TestResult::passed()
}

#[test]
fn sets_behave_as_btree_sets() {
    fn check<K: Arbitrary + Ord + Debug + Hash>() {
        checker(60, 300).quickcheck(sets_agree::<K> as fn(Vec<K>, Vec<K>) -> TestResult);
    }
    check::<u8>();
    check::<i32>();
    check::<String>();
    check::<()>();
}

#[test]
fn maps_compare_as_btree_maps() {
    fn holds(left: Vec<(u8, u8)>, right: Vec<(u8, u8)>) -> bool {
        let ours = (
            FrozenCTreeMap::from_iter(left.clone()),
            FrozenCTreeMap::from_iter(right.clone()),
        );
        let theirs = (BTreeMap::from_iter(left), BTreeMap::from_iter(right));
        ours.0.cmp(&ours.1) == theirs.0.cmp(&theirs.1)
            && ours.0.partial_cmp(&ours.1) == theirs.0.partial_cmp(&theirs.1)
            && (ours.0 == ours.1) == (theirs.0 == theirs.1)
    }
    checker(200, 6).quickcheck(holds as fn(Vec<(u8, u8)>, Vec<(u8, u8)>) -> bool);
}

#[test]
fn borrowed_forms_are_accepted_everywhere() {
    let mut map: FrozenCTreeMap<String, u32> = (0..300).map(|n| (format!("{n:03}"), n)).collect();
    let key = "123";
    assert_eq!(map.get(key), Some(&123));
    assert_eq!(map[key], 123);
    assert_eq!(
        map.get_mut(key).map(|value| std::mem::replace(value, 7)),
        Some(123)
    );
    assert_eq!((map.lower_bound(key), map.upper_bound(key)), (123, 124));
    assert_eq!(
        map.range::<str, _>((Bound::Included("297"), Bound::Unbounded))
            .count(),
        3
    );
}
