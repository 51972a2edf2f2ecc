//! Keys and values that misbehave: wrong orders, panics in comparisons, copies and drops. Never a
//! lost or doubly dropped object.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use ctree::{FrozenCTreeMap, FrozenCTreeSet};
use quickcheck::quickcheck;

/// What happened to the doubles of one test, and what is still to happen.
#[derive(Default)]
struct Record {
    alive: Cell<usize>,
    made: Cell<usize>,
    comparisons_until_panic: Cell<Option<usize>>,
    clones_until_panic: Cell<Option<usize>>,
    drops_until_panic: Cell<Option<usize>>,
}

impl Record {
    fn dummy(self: &Rc<Record>, number: u32) -> Dummy {
        self.alive.set(self.alive.get() + 1);
        self.made.set(self.made.get() + 1);
        Dummy {
            number,
            record: Rc::clone(self),
        }
    }
}

/// Counts down and panics at zero, once.
fn tick(until_panic: &Cell<Option<usize>>, what: &str) {
    match until_panic.get() {
        Some(0) => {
            until_panic.set(None);
            panic!("{what} was told to panic");
        }
        Some(left) => until_panic.set(Some(left - 1)),
        None => {}
    }
}

/// An object that is counted while it lives, and panics on demand.
struct Dummy {
    number: u32,
    record: Rc<Record>,
}

impl Clone for Dummy {
    fn clone(&self) -> Dummy {
        tick(&self.record.clones_until_panic, "clone");
        self.record.dummy(self.number)
    }
}

impl Drop for Dummy {
    fn drop(&mut self) {
        self.record.alive.set(self.record.alive.get() - 1);
        if !std::thread::panicking() {
            tick(&self.record.drops_until_panic, "drop");
        }
    }
}

impl PartialEq for Dummy {
    fn eq(&self, other: &Dummy) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Dummy {}

impl PartialOrd for Dummy {
    fn partial_cmp(&self, other: &Dummy) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Dummy {
    fn cmp(&self, other: &Dummy) -> Ordering {
        tick(&self.record.comparisons_until_panic, "comparison");
        self.number.cmp(&other.number)
    }
}

/// Runs `action`, expecting a panic that a double was told to raise.
fn expect_panic<R>(action: impl FnOnce() -> R) {
    let payload = catch_unwind(AssertUnwindSafe(action))
        .err()
        .expect("the double did not panic");
    let message = payload
        .downcast_ref::<String>()
        .expect("a panic with a message");
    assert!(message.ends_with("was told to panic"), "{message}");
}

#[test]
fn every_key_and_value_is_dropped_once() {
    for len in [0, 1, 15, 16, 17, 255, 256, 1000] {
        let record = Rc::new(Record::default());
        let keys: FrozenCTreeMap<Dummy, Dummy> = (0..len)
            .map(|n| (record.dummy(n), record.dummy(n)))
            .collect();
        let lanes: FrozenCTreeMap<u32, Dummy> = (0..len).map(|n| (n, record.dummy(n))).collect();
        let len = len as usize;
        assert_eq!(record.alive.get(), 3 * len);
        let copies = (keys.clone(), lanes.clone());
        assert_eq!(record.alive.get(), 6 * len);
        drop(copies);
        // Moving out partly, from both ends, and forgetting about the rest.
        let (mut keys, mut lanes) = (keys.into_iter(), lanes.into_iter());
        assert_eq!(
            keys.by_ref().take(len / 3).count(),
            lanes.by_ref().take(len / 3).count()
        );
        assert_eq!(
            keys.by_ref().rev().take(len / 4).count(),
            lanes.by_ref().rev().take(len / 4).count()
        );
        assert_eq!(record.alive.get(), 3 * keys.len());
        assert_eq!(keys.len(), lanes.len());
        drop((keys, lanes));
        assert_eq!(record.alive.get(), 0);
    }
}

#[test]
fn of_equal_keys_the_last_entry_stays_and_the_others_are_dropped() {
    let record = Rc::new(Record::default());
    let entries = |map: &mut dyn FnMut(Dummy, Dummy)| {
        (0..300).for_each(|n| map(record.dummy(n % 7), record.dummy(n)));
    };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    entries(&mut |key, value| ours.push((key, value)));
    entries(&mut |key, value| theirs.push((key, value)));
    let (ours, theirs): (FrozenCTreeMap<_, _>, BTreeMap<_, _>) =
        (ours.into_iter().collect(), theirs.into_iter().collect());
    assert_eq!(record.alive.get(), 28);
    assert!(
        ours.values()
            .map(|value| value.number)
            .eq(theirs.values().map(|value| value.number))
    );
}

#[test]
fn a_refused_input_is_dropped() {
    let record = Rc::new(Record::default());
    let error = FrozenCTreeMap::from_sorted_iter(
        [1, 2, 5, 4, 6].map(|n| (record.dummy(n), record.dummy(n))),
    )
    .err()
    .unwrap();
    assert_eq!(error.index(), 3);
    assert_eq!(record.alive.get(), 0);
}

#[test]
fn a_panicking_comparison_loses_nothing() {
    for after in [0, 1, 10, 100, 500] {
        let record = Rc::new(Record::default());
        let entries: Vec<(Dummy, Dummy)> = (0..300)
            .rev()
            .map(|n| (record.dummy(n * 7 % 300), record.dummy(n)))
            .collect();
        record.comparisons_until_panic.set(Some(after));
        expect_panic(|| entries.into_iter().collect::<FrozenCTreeMap<_, _>>());
        assert_eq!(record.alive.get(), 0);
    }
    let record = Rc::new(Record::default());
    let map: FrozenCTreeSet<Dummy> = (0..300).map(|n| record.dummy(n)).collect();
    let query = record.dummy(77);
    for after in 0..4 {
        record.comparisons_until_panic.set(Some(after));
        expect_panic(|| map.contains(&query));
        record.comparisons_until_panic.set(Some(after));
        expect_panic(|| map.range(&query..).count());
        assert!(map.contains(&query));
    }
    drop((map, query));
    assert_eq!(record.alive.get(), 0);
}

#[test]
fn a_panicking_clone_loses_nothing() {
    let record = Rc::new(Record::default());
    let keys: FrozenCTreeMap<Dummy, Dummy> = (0..100)
        .map(|n| (record.dummy(n), record.dummy(n)))
        .collect();
    let lanes: FrozenCTreeMap<u64, Dummy> =
        (0..100).map(|n| (u64::from(n), record.dummy(n))).collect();
    for after in [0, 1, 50, 99] {
        record.clones_until_panic.set(Some(after));
        expect_panic(|| keys.clone());
        record.clones_until_panic.set(Some(after));
        expect_panic(|| lanes.clone());
        assert_eq!(record.alive.get(), 300);
    }
    assert_eq!((keys.check(), lanes.check()), (Ok(()), Ok(())));
}

#[test]
fn a_panicking_drop_still_drops_the_others() {
    for after in [0, 1, 20, 99, 150] {
        let record = Rc::new(Record::default());
        let keys: FrozenCTreeMap<Dummy, Dummy> = (0..100)
            .map(|n| (record.dummy(n), record.dummy(n)))
            .collect();
        record.drops_until_panic.set(Some(after));
        expect_panic(|| drop(keys));
        assert_eq!(record.alive.get(), 0);

        let lanes: FrozenCTreeMap<i8, Dummy> = (0..100u8)
            .map(|n| (n.cast_signed(), record.dummy(n.into())))
            .collect();
        let mut entries = lanes.into_iter();
        assert_eq!(entries.next().map(|entry| entry.0), Some(0));
        record.drops_until_panic.set(Some(after.min(80)));
        expect_panic(|| drop(entries));
        assert_eq!(record.alive.get(), 0);
    }
}

#[test]
fn a_panicking_source_loses_nothing() {
    let record = Rc::new(Record::default());
    let source = (0..100).map(|n| {
        assert!(n < 60, "the source was told to panic");
        (record.dummy(n), record.dummy(n))
    });
    assert!(catch_unwind(AssertUnwindSafe(|| source.collect::<FrozenCTreeMap<_, _>>())).is_err());
    assert_eq!(record.alive.get(), 0);
}

/// A key whose comparisons are drawn from a list of answers, whatever is compared.
#[derive(Clone, Debug)]
struct Lawless<'a> {
    answers: &'a Cell<u64>,
    #[expect(dead_code, reason = "gives the key something to own")]
    body: String,
}

impl Ord for Lawless<'_> {
    fn cmp(&self, _: &Lawless<'_>) -> Ordering {
        let answers = self.answers.get();
        self.answers.set(
            answers
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407),
        );
        match (answers >> 33) % 3 {
            0 => Ordering::Less,
            1 => Ordering::Equal,
            _ => Ordering::Greater,
        }
    }
}

impl PartialOrd for Lawless<'_> {
    fn partial_cmp(&self, other: &Lawless<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Lawless<'_> {
    fn eq(&self, other: &Lawless<'_>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Lawless<'_> {}

quickcheck! {
    fn a_lawless_order_gives_some_answer(seed: u64, len: u16) -> bool {
        let len = usize::from(len % 700);
        let answers = Cell::new(seed);
        let key = |n: usize| Lawless { answers: &answers, body: n.to_string() };
        // Sorting with such an order may panic, as it may in std; what is built without comparisons
        // has all entries.
        let entries = (0..len).map(|n| (key(n), n));
        let Ok(sorted) = catch_unwind(AssertUnwindSafe(|| entries.collect::<BTreeMap<_, _>>())) else {
            return true;
        };
        let mut map = FrozenCTreeMap::from(sorted);
        let len = map.len();
        for n in 0..200 {
            let query = key(n);
            assert!(map.lower_bound(&query) <= len && map.upper_bound(&query) <= len);
            assert!(map.get(&query).is_none_or(|value| *value < 700));
            // Panics if the bounds are said to be in the wrong order; otherwise gives some of the
            // entries.
            if let Ok(within) = catch_unwind(AssertUnwindSafe(|| map.range_mut(&query..&key(n + 1)).count())) {
                assert!(within <= len);
            }
        }
        let _verdict = map.check();
        map.iter().count() == len && map.into_iter().count() == len
    }
}
