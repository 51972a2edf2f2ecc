//! Orders and heads that contradict themselves: any answer or a panic, but no entry is lost or
//! dropped twice, and no memory is accessed that is not there (the sanitizers and Miri find that).

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ctree::map::Entry;
use ctree::{CTreeMap, Head};
use quickcheck::{Gen, QuickCheck};

use super::kinds::{Counted, Value};
use super::operation::{Op, Run, Step};
use super::program::take_all;
use crate::times;

thread_local! {
    /// Where the next answer comes from.
    pub(crate) static ANSWERS: Cell<u64> = const { Cell::new(0) };
    /// How many answers in 256 are right.
    pub(crate) static RIGHT: Cell<u64> = const { Cell::new(0) };
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

/// A comparison that is sometimes right.
pub(crate) fn compare<T: Ord>(left: &T, right: &T) -> Ordering {
    if next_answer() % 256 < RIGHT.get() {
        return left.cmp(right);
    }
    match next_answer() % 3 {
        0 => Ordering::Less,
        1 => Ordering::Equal,
        _ => Ordering::Greater,
    }
}

/// A key whose comparisons are sometimes right.
#[derive(Clone, Debug)]
pub(crate) struct Lawless(pub(crate) Box<u16>);

impl Ord for Lawless {
    fn cmp(&self, other: &Lawless) -> Ordering {
        compare(&self.0, &other.0)
    }
}

ordered_by_cmp!(Lawless);

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

/// A key whose odd numbers are in reverse order among themselves, but not beside even ones.
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

ordered_by_cmp!(Inconsistent);

/// A large value that is counted.
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

/// Runs an operation on a map alone: any answer will do.
fn run_op<K: Ord + Clone>(map: &mut CTreeMap<K, Few>, key: fn(u16) -> K, op: Op) {
    let entries = |run: Run| {
        run.numbers()
            .take(80)
            .map(move |(number, _)| (key(number), Few::new(number)))
    };
    let len = map.len();
    match op {
        Op::Insert(number, _) => drop(map.insert(key(number), Few::new(number))),
        Op::InsertMany(run) | Op::Extend(run) => map.insert_many(entries(run)),
        Op::Remove(number) => drop(map.remove(&key(number))),
        Op::RemoveEntry(number) => drop(map.remove_entry(&key(number))),
        Op::RemoveMany(run) => {
            for (key, _) in entries(run) {
                drop(map.remove(&key));
            }
        }
        Op::Entry(number, ..) | Op::TryInsert(number, _) => match map.entry(key(number)) {
            Entry::Occupied(entry) => drop(entry.remove_entry()),
            Entry::Vacant(entry) => drop(entry.insert(Few::new(number)).clone()),
        },
        Op::Get(number) | Op::GetMut(number, _) | Op::Rank(number) => {
            assert!(map.rank(&key(number)) <= len);
            let rank = map.get_index_of(&key(number));
            assert!(rank.is_none_or(|rank| rank < len));
            drop(map.get_mut(&key(number)).map(|value| value.clone()));
        }
        Op::GetMany(run, _) => {
            let keys: Vec<K> = entries(run).map(|(key, _)| key).collect();
            let mut results = vec![None; keys.len()];
            map.get_many(&keys, &mut results);
            // Whatever is found is there.
            drop(results.into_iter().flatten().cloned().collect::<Vec<Few>>());
        }
        Op::Range(bounds, ends) => {
            // Ends that have passed each other must stay within the map.
            let bounds = (bounds.0.map(key), bounds.1.map(key));
            let mut range = map.range(bounds);
            assert!(range.clone().count() <= len && range.clone().rev().count() <= len);
            let mut fronts = ends.fronts();
            let mut count = 0;
            while let Some((_, value)) = if fronts.next() == Some(true) {
                range.next()
            } else {
                range.next_back()
            } {
                drop(value.clone());
                count += 1;
            }
            assert!(count <= len);
        }
        Op::RangeMut(bounds, ends, _) => {
            let range = map.range_mut((bounds.0.map(key), bounds.1.map(key)));
            let mut all: Vec<&mut Few> = take_all(range, ends)
                .into_iter()
                .map(|(_, value)| value)
                .collect();
            all.iter_mut().for_each(|value| **value = Few::new(7));
            // Each value is given out once.
            let addresses: BTreeSet<*const Few> =
                all.iter().map(|value| &raw const **value).collect();
            assert_eq!(addresses.len(), all.len());
        }
        Op::Retain(one_in) => {
            let mut calls = 0;
            map.retain(|_, _| {
                calls += 1;
                calls % (u16::from(one_in) + 1) != 0
            });
        }
        Op::ExtractIf(bounds, one_in, stop) => {
            let mut calls = 0;
            let bounds = (bounds.0.map(key), bounds.1.map(key));
            let extracted = map.extract_if(bounds, |_, _| {
                calls += 1;
                calls % (u16::from(one_in) + 1) == 0
            });
            drop(extracted.take(stop).collect::<Vec<_>>());
        }
        Op::Append(run, _) => {
            let mut other: CTreeMap<K, Few> = entries(run).collect();
            map.append(&mut other);
            assert!(other.is_empty());
        }
        Op::Merge(run, keep) => map.merge(
            entries(run).collect(),
            |_, mine, other| {
                if keep { mine } else { other }
            },
        ),
        Op::SplitOff(number, keep_lower) => {
            let upper = map.split_off(&key(number));
            assert_eq!(map.len() + upper.len(), len);
            assert_eq!(upper.iter().count(), upper.len());
            if !keep_lower {
                *map = upper;
            }
        }
        Op::Cursor(_, bound, steps) => {
            let mut cursor = map.upper_bound_mut(bound.map(key).as_ref());
            for step in steps {
                match step {
                    Step::Next | Step::Peek => drop(cursor.next().map(|(_, value)| value.clone())),
                    Step::Prev | Step::Change(..) => {
                        drop(cursor.prev().map(|(_, value)| value.clone()));
                    }
                    Step::InsertBefore(number, _) => {
                        drop(cursor.insert_before(key(number), Few::new(number)));
                    }
                    Step::InsertAfter(number, _) => {
                        drop(cursor.insert_after(key(number), Few::new(number)));
                    }
                    Step::RemoveNext => drop(cursor.remove_next()),
                    Step::RemovePrev => drop(cursor.remove_prev()),
                }
            }
        }
        Op::Rebuild(_) => {
            let entries: Vec<(K, Few)> = std::mem::take(map).into_iter().collect();
            assert_eq!(entries.len(), len);
            *map = entries.into_iter().collect();
        }
        Op::Compact => map.compact(),
        Op::Clone(_) => *map = map.clone(),
        Op::Pop(first, _) | Op::EndEntry(first, ..) => drop(if first {
            map.pop_first()
        } else {
            map.pop_last()
        }),
        Op::Clear
        | Op::Iterate(_)
        | Op::IterateMut(..)
        | Op::Jump(..)
        | Op::MoveOut(..)
        | Op::Walk(..)
        | Op::Index(_)
        | Op::Compare(_) => {
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
        let makers = [
            CTreeMap::new as fn() -> _,
            CTreeMap::with_heads,
            CTreeMap::with_ranks,
        ];
        for make in makers {
            survives(make, |number| Lawless(Box::new(number)), ops.clone());
        }
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
