//! Orders and heads without rhyme or reason: some answer or a panic, never a lost or doubly dropped
//! entry, never an access to what is not there (which the interpreter and the sanitizers find out).

use std::cell::Cell;
use std::cmp::Ordering;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ctree::map::Entry;
use ctree::{CTreeMap, Head};
use quickcheck::{Arbitrary, Gen, QuickCheck};

use super::kinds::{Counted, Value};
use crate::times;

thread_local! {
    /// Where the next answer comes from.
    static ANSWERS: Cell<u64> = const { Cell::new(0) };
    /// How many answers in 256 are right.
    static RIGHT: Cell<u64> = const { Cell::new(0) };
}

fn next_answer() -> u64 {
    let answers = ANSWERS.get();
    ANSWERS.set(
        answers
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407),
    );
    answers >> 33
}

/// A key whose comparisons are sometimes right.
#[derive(Clone, Debug)]
struct Lawless(Box<u16>);

impl Ord for Lawless {
    fn cmp(&self, other: &Lawless) -> Ordering {
        if next_answer() % 256 < RIGHT.get() {
            return self.0.cmp(&other.0);
        }
        match next_answer() % 3 {
            0 => Ordering::Less,
            1 => Ordering::Equal,
            _ => Ordering::Greater,
        }
    }
}

impl PartialOrd for Lawless {
    fn partial_cmp(&self, other: &Lawless) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Lawless {
    fn eq(&self, other: &Lawless) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Lawless {}

// SAFETY: the type has no lifetimes.
unsafe impl Head for Lawless {
    fn head(&self) -> u64 {
        if next_answer() % 256 < RIGHT.get() {
            (*self.0).into()
        } else {
            next_answer() << 32 | next_answer()
        }
    }
}

/// A key of whose comparisons each is right but that of two odd numbers, which is the other way
/// round: wrong, but always the same.
#[derive(Clone, Debug)]
struct Inconsistent(Box<u16>);

impl Ord for Inconsistent {
    fn cmp(&self, other: &Inconsistent) -> Ordering {
        let order = self.0.cmp(&other.0);
        if *self.0 % 2 == 1 && *other.0 % 2 == 1 {
            order.reverse()
        } else {
            order
        }
    }
}

impl PartialOrd for Inconsistent {
    fn partial_cmp(&self, other: &Inconsistent) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Inconsistent {
    fn eq(&self, other: &Inconsistent) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Inconsistent {}

/// A value of which a node holds few, and which is counted.
#[derive(Clone, Debug)]
struct Few(
    #[expect(dead_code, reason = "is there to be counted")] Counted,
    #[expect(dead_code, reason = "takes room")] [u64; 200],
);

impl Few {
    fn new(number: u16) -> Few {
        Few(Counted::numbered(number.into()), [number.into(); 200])
    }
}

/// One step of a program, with the numbers of keys.
#[derive(Clone, Debug)]
enum Op {
    Insert(u16),
    InsertMany(u16, u8),
    Remove(u16),
    Entry(u16),
    Get(u16),
    Range(u16, u16),
    RangeMut(u16, u16),
    Retain(u8),
    ExtractIf(u16, u16, u8),
    Append(u16, u8),
    SplitOff(u16, bool),
    Cursor(u16, Vec<u8>),
    Rebuild,
    Compact,
    Clone,
    Pop(bool),
    Compare,
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Op {
        let key = u16::arbitrary(g) % 256;
        let other = u16::arbitrary(g) % 256;
        match u8::arbitrary(g) % 24 {
            0..4 => Op::Insert(key),
            4..7 => Op::InsertMany(key, u8::arbitrary(g)),
            7..10 => Op::Remove(key),
            10 => Op::Entry(key),
            11 => Op::Get(key),
            12 => Op::Range(key, other),
            13 => Op::RangeMut(key, other),
            14 => Op::Retain(u8::arbitrary(g) % 5),
            15 => Op::ExtractIf(key, other, u8::arbitrary(g) % 5),
            16 => Op::Append(key, u8::arbitrary(g) % 80),
            17 => Op::SplitOff(key, bool::arbitrary(g)),
            18 | 19 => Op::Cursor(key, Vec::arbitrary(g)),
            20 => Op::Rebuild,
            21 => Op::Compact,
            22 => Op::Clone,
            _ if bool::arbitrary(g) => Op::Pop(bool::arbitrary(g)),
            _ => Op::Compare,
        }
    }
}

fn run_op<K: Ord + Clone>(map: &mut CTreeMap<K, Few>, key: fn(u16) -> K, op: Op) {
    let entries = |start: u16, count: u8| {
        (start..start + u16::from(count)).map(move |number| (key(number), Few::new(number)))
    };
    match op {
        Op::Insert(number) => drop(map.insert(key(number), Few::new(number))),
        Op::InsertMany(start, count) => map.insert_many(entries(start, count)),
        Op::Remove(number) => drop(map.remove(&key(number))),
        Op::Entry(number) => match map.entry(key(number)) {
            Entry::Occupied(entry) => drop(entry.remove_entry()),
            Entry::Vacant(entry) => drop(entry.insert(Few::new(number)).clone()),
        },
        Op::Get(number) => {
            let keys: Vec<K> = (number..number + 50).map(key).collect();
            let mut results = vec![None; keys.len()];
            map.get_many(&keys, &mut results);
            // Whatever is found is there.
            let copies: Vec<Few> = results.into_iter().flatten().cloned().collect();
            assert!(copies.len() <= keys.len());
            assert!(map.rank(&key(number)) <= map.len());
            assert!(
                map.get_index_of(&key(number))
                    .is_none_or(|rank| rank < map.len())
            );
            drop(map.get_mut(&key(number)).map(|value| value.clone()));
        }
        Op::Range(start, end) => {
            // Ends that have passed each other must not run into what is not theirs.
            let len = map.len();
            let range = map.range(key(start)..key(end));
            assert!(range.clone().count() <= len);
            assert!(range.clone().rev().count() <= len);
            let mut both = range;
            let mut count = 0;
            while let Some((_, value)) = if count % 2 == 0 {
                both.next()
            } else {
                both.next_back()
            } {
                drop(value.clone());
                count += 1;
            }
            assert!(count <= len);
        }
        Op::RangeMut(start, end) => {
            let bounds = (Bound::Excluded(key(start)), Bound::Included(key(end)));
            let mut all: Vec<&mut Few> = map.range_mut(bounds).map(|(_, value)| value).collect();
            // Were any of them the same, the interpreter would say so.
            all.iter_mut().for_each(|value| **value = Few::new(7));
        }
        Op::Retain(one_in) => {
            let mut calls = 0;
            map.retain(|_, _| {
                calls += 1;
                calls % (u16::from(one_in) + 1) != 0
            });
        }
        Op::ExtractIf(start, end, one_in) => {
            let mut calls = 0;
            let range = key(start)..=key(end);
            let extracted = map.extract_if(range, |_, _| {
                calls += 1;
                calls % (u16::from(one_in) + 1) == 0
            });
            drop(extracted.take(20).collect::<Vec<_>>());
        }
        Op::Append(start, count) => {
            let mut other: CTreeMap<K, Few> = entries(start, count).collect();
            map.append(&mut other);
            assert!(other.is_empty());
        }
        Op::SplitOff(number, keep_lower) => {
            let before = map.len();
            let upper = map.split_off(&key(number));
            assert_eq!(map.len() + upper.len(), before);
            assert_eq!(upper.iter().count(), upper.len());
            if !keep_lower {
                *map = upper;
            }
        }
        Op::Cursor(number, steps) => {
            let mut cursor = map.upper_bound_mut(Bound::Included(&key(number)));
            for step in steps {
                match step % 6 {
                    0 => drop(cursor.next().map(|(_, value)| value.clone())),
                    1 => drop(cursor.prev().map(|(_, value)| value.clone())),
                    2 => drop(cursor.insert_before(key(number), Few::new(number))),
                    3 => drop(cursor.insert_after(key(number), Few::new(number))),
                    4 => drop(cursor.remove_next()),
                    _ => drop(cursor.remove_prev()),
                }
            }
        }
        Op::Rebuild => {
            let len = map.len();
            let entries: Vec<(K, Few)> = std::mem::take(map).into_iter().collect();
            assert_eq!(entries.len(), len);
            *map = entries.into_iter().collect();
        }
        Op::Compact => map.compact(),
        Op::Clone => *map = map.clone(),
        Op::Pop(first) => drop(if first {
            map.pop_first()
        } else {
            map.pop_last()
        }),
        Op::Compare => {
            // Any verdict will do.
            let _in_order = map.check();
            let _order = map.keys().cmp(map.keys().rev());
        }
    }
}

fn survives<K: Ord + Clone>(make: fn() -> CTreeMap<K, Few>, key: fn(u16) -> K, ops: Vec<Op>) {
    let alive = Counted::alive();
    let mut map = make();
    for op in ops {
        // It may panic: sorting may find out, and so may the bounds of a range.
        let _panic = catch_unwind(AssertUnwindSafe(|| run_op(&mut map, key, op)));
        assert_eq!(map.iter().count(), map.len());
        assert_eq!(map.iter().rev().count(), map.len());
        assert_eq!(Counted::alive() - alive, map.len());
        if map.len() > 400 {
            map.clear();
        }
    }
    drop(map);
    assert_eq!(Counted::alive(), alive);
}

fn checker() -> QuickCheck {
    QuickCheck::new()
        .rng(Gen::new(if cfg!(miri) { 10 } else { 100 }))
        .tests(times(200) as u64)
}

#[test]
fn an_order_without_laws_loses_nothing() {
    fn holds(seed: u64, right: u8, ops: Vec<Op>) -> bool {
        ANSWERS.set(seed);
        RIGHT.set(right.into());
        survives(
            CTreeMap::new,
            |number| Lawless(Box::new(number)),
            ops.clone(),
        );
        survives(
            CTreeMap::with_heads,
            |number| Lawless(Box::new(number)),
            ops.clone(),
        );
        survives(
            CTreeMap::with_ranks,
            |number| Lawless(Box::new(number)),
            ops,
        );
        true
    }
    checker().quickcheck(holds as fn(u64, u8, Vec<Op>) -> bool);
}

#[test]
fn an_order_that_contradicts_itself_loses_nothing() {
    fn holds(ops: Vec<Op>) -> bool {
        survives(CTreeMap::new, |number| Inconsistent(Box::new(number)), ops);
        true
    }
    checker().quickcheck(holds as fn(Vec<Op>) -> bool);
}

#[test]
fn keys_that_change_within_the_map_lose_nothing() {
    /// A key that can be given another number through a shared reference.
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
    struct Changing(Cell<u16>);
    fn holds(ops: Vec<Op>, changes: Vec<u16>) -> bool {
        let alive = Counted::alive();
        let mut map: CTreeMap<Changing, Few> = CTreeMap::new();
        for (op, change) in ops.into_iter().zip(changes.into_iter().cycle()) {
            let key = |number| Changing(Cell::new(number));
            let _panic = catch_unwind(AssertUnwindSafe(|| run_op(&mut map, key, op)));
            for (key, _) in map.iter().step_by(3) {
                key.0.set(key.0.get() ^ change);
            }
            assert_eq!(map.iter().count(), map.len());
            assert_eq!(Counted::alive() - alive, map.len());
        }
        true
    }
    checker().quickcheck(holds as fn(Vec<Op>, Vec<u16>) -> bool);
}
