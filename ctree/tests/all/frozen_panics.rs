//! User code that panics at its n-th call, for every n, and an order that contradicts itself, in
//! frozen maps: no entry is lost or dropped twice.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use ctree::FrozenCTreeMap;
use quickcheck::quickcheck;

use crate::dynamic::lawless::{ANSWERS, Lawless, RIGHT};
use crate::dynamic::panics::{Fuse, Piece};

/// What a scenario is given: a map with a tree of keys, and one with keys in lanes.
type Maps = (FrozenCTreeMap<Piece, Piece>, FrozenCTreeMap<u32, Piece>);

/// The entries of some numbers, from an iterator that burns the fuse.
fn entries(
    numbers: impl Iterator<Item = u32>,
    fuse: &Rc<Fuse>,
) -> impl Iterator<Item = (Piece, Piece)> {
    numbers.map(move |number| {
        fuse.burn();
        (Piece::new(number, fuse), Piece::new(number, fuse))
    })
}

type Scenario = fn(Maps, u32, &Rc<Fuse>);

const SCENARIOS: [(&str, Scenario); 6] = [
    ("collect", |_, len, fuse| {
        // In no order, each key three times.
        let numbers = (0..3 * len).map(|n| n * 7 % len);
        let map: FrozenCTreeMap<_, _> = entries(numbers, fuse).collect();
        assert_eq!(map.len(), len as usize);
    }),
    ("from_sorted_iter", |_, len, fuse| {
        assert!(FrozenCTreeMap::from_sorted_iter(entries(0..len, fuse)).is_ok());
        let refused = FrozenCTreeMap::from_sorted_iter(entries((0..len).chain(0..len), fuse));
        assert_eq!(
            refused.err().map(|error| error.index()),
            (len > 0).then_some(len as usize)
        );
    }),
    ("clone", |maps, _, _| {
        let copies = (maps.0.clone(), maps.1.clone());
        assert_eq!(copies.0.len(), copies.1.len());
    }),
    ("get", |(map, _), len, fuse| {
        let query = Piece::new(len / 2, fuse);
        assert_eq!(map.contains_key(&query), len > 0);
        let range = map.range::<Piece, _>(&query..);
        assert_eq!(range.len(), (len - len / 2) as usize);
    }),
    ("drop", |maps, _, _| drop(maps)),
    ("into_iter", |(keys, lanes), len, _| {
        let (mut keys, mut lanes) = (keys.into_iter(), lanes.into_iter());
        let some = len as usize / 3;
        drop(keys.by_ref().take(some).collect::<Vec<_>>());
        drop(lanes.by_ref().take(some).collect::<Vec<_>>());
        drop(keys.by_ref().rev().take(some).collect::<Vec<_>>());
        drop(lanes.by_ref().rev().take(some).collect::<Vec<_>>());
        assert_eq!(keys.len(), lanes.len());
    }),
];

/// Runs a scenario on maps of `len` entries, in which the call of user code panics that follows
/// `calls` others. Returns whether one did.
fn panics(name: &str, scenario: Scenario, len: u32, calls: Option<usize>) -> bool {
    let fuse = Rc::new(Fuse::default());
    let lanes = (0..len).map(|n| (n, Piece::new(n, &fuse))).collect();
    let maps = (entries(0..len, &fuse).collect(), lanes);
    fuse.calls_left.set(calls);
    let outcome = catch_unwind(AssertUnwindSafe(|| scenario(maps, len, &fuse)));
    fuse.calls_left.set(None);
    assert_eq!(fuse.alive.get(), 0, "{name} of {len}, {calls:?} calls");
    let Err(payload) = outcome else {
        return false;
    };
    let message = payload.downcast_ref::<&str>().copied();
    assert_eq!(message, Some("the fuse has burnt down"), "{name}");
    true
}

#[test]
fn every_call_of_user_code_may_panic() {
    for (name, scenario) in SCENARIOS {
        let mut calls = (0..).step_by(if cfg!(miri) { 101 } else { 1 });
        assert!(calls.any(|calls| !panics(name, scenario, 40, Some(calls))));
        for len in [0, 1, 15, 16, 17, 255, 256, 1000] {
            assert!(!panics(name, scenario, len, None));
        }
    }
}

quickcheck! {
    fn an_order_without_laws_gives_some_answer(seed: u64, len: u16) -> bool {
        let key = |n: u16| Lawless(Box::new(n));
        RIGHT.set(256);
        let sorted: BTreeMap<Lawless, u16> = (0..len % 700).map(|n| (key(n), n)).collect();
        RIGHT.set(0);
        ANSWERS.set(seed);
        // Built without comparisons.
        let mut map = FrozenCTreeMap::from(sorted);
        let len = map.len();
        for n in 0..200 {
            let query = key(n);
            assert!(map.rank(&query) <= len && map.rank_after(&query) <= len);
            assert!(map.get(&query).is_none_or(|value| *value < 700));
            // Panics if the bounds are said to be in the wrong order.
            let range = || map.range_mut(&query..&key(n + 1)).count();
            assert!(catch_unwind(AssertUnwindSafe(range)).unwrap_or(0) <= len);
        }
        let _verdict = map.check();
        map.iter().count() == len && map.into_iter().count() == len
    }
}
