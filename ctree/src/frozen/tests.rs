//! What only the inside can see: which tree is chosen, and that a damaged one is noticed.

use core::borrow::Borrow;
use core::cmp::Ordering;
use core::ops::Bound;

use super::lane_tree::LaneTree;
use super::{FrozenCTreeMap, FrozenCTreeSet};

#[test]
fn small_plain_values_lie_beside_their_keys_and_others_do_not() {
    assert!(LaneTree::<u64, u64>::joined());
    assert!(LaneTree::<u64, (u64, u64)>::joined());
    assert!(LaneTree::<u64, ()>::joined());
    assert!(LaneTree::<u64, &str>::joined());
    assert!(!LaneTree::<u64, [u64; 3]>::joined());
    assert!(!LaneTree::<u64, Box<u64>>::joined());

    #[derive(Clone, Copy)]
    #[repr(align(128))]
    struct WidelyAligned;
    assert!(!LaneTree::<u64, WidelyAligned>::joined());
    let map: FrozenCTreeMap<u64, WidelyAligned> =
        (0..100).map(|key| (key, WidelyAligned)).collect();
    assert!(
        map.values()
            .all(|value| core::ptr::from_ref(value).addr() % 128 == 0)
    );
}

/// A borrowed form of `u16` with an order of its own: `Borrow` forbids that, but the compiler
/// cannot.
#[derive(PartialEq, Eq)]
#[repr(transparent)]
struct Backwards(u16);

impl Ord for Backwards {
    fn cmp(&self, other: &Backwards) -> Ordering {
        other.0.cmp(&self.0)
    }
}

impl PartialOrd for Backwards {
    fn partial_cmp(&self, other: &Backwards) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Borrow<Backwards> for u16 {
    fn borrow(&self) -> &Backwards {
        // SAFETY: `Backwards` is a transparent wrapper of `u16`.
        unsafe { &*core::ptr::from_ref(self).cast::<Backwards>() }
    }
}

#[test]
fn borrowed_integers_with_an_order_of_their_own_are_compared_by_it() {
    // The order contradicts that of the keys: answers are arbitrary, but each lies within the map.
    let set: FrozenCTreeSet<u16> = (0..1000).collect();
    for query in 0..1001 {
        assert!(set.rank(&Backwards(query)) <= set.len());
        assert!(set.get(&Backwards(query)).is_none_or(|key| *key == query));
    }
    assert_eq!(
        set.range::<Backwards, _>((Bound::Included(&Backwards(5)), Bound::Unbounded))
            .count(),
        0
    );
    // In the middle, where a binary search looks first, even this order finds its key.
    assert_eq!(set.get(&Backwards(500)), Some(&500));
    let mut found = [false; 2];
    set.contains_many(&[Backwards(500), Backwards(1)], &mut found);
    assert_eq!(found, [true, false]);
}

#[test]
fn check_notices_keys_out_of_order() {
    let map = FrozenCTreeMap::from_sorted_vec(vec![(1u64, ()), (3, ()), (2, ())]);
    assert_eq!(
        map.check().unwrap_err().to_string(),
        "the key of rank 2 is not greater than the key before it"
    );
    let map = FrozenCTreeMap::from_sorted_vec(vec![("b", ()), ("b", ())]);
    assert_eq!(
        map.check().unwrap_err().to_string(),
        "the key of rank 1 is not greater than the key before it"
    );
    let map = FrozenCTreeMap::from_sorted_vec(vec![("a", ()), ("b", ())]);
    assert_eq!(map.check(), Ok(()));
}

#[test]
fn unsorted_keys_cost_answers_but_no_more() {
    // Nothing public builds such a map; the search must stay inside it all the same.
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state
    };
    for len in [1, 16, 17, 272, 273, 5_000] {
        let map = FrozenCTreeMap::from_sorted_vec((0..len).map(|_| (next(), 0u8)).collect());
        let queries: Vec<u64> = (0..500).map(|_| next()).chain([0, u64::MAX]).collect();
        assert!(queries.iter().all(|query| map.rank(query) <= map.len()));
        let mut ranks = vec![0; queries.len()];
        map.rank_many(&queries, &mut ranks);
        assert!(
            ranks
                .iter()
                .zip(&queries)
                .all(|(&rank, query)| rank == map.rank(query))
        );
    }
}
