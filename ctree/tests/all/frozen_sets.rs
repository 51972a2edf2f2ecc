//! Operations on two sets, against `BTreeSet`; serialization and parallel building, where their
//! features are on.

use std::collections::BTreeSet;
use std::fmt::Debug;

use ctree::FrozenCTreeSet;
use quickcheck::{Arbitrary, QuickCheck};

fn operations_agree<K: Arbitrary + Ord + Debug>(left: Vec<K>, right: Vec<K>) -> bool {
    let ours: (FrozenCTreeSet<K>, FrozenCTreeSet<K>) = (
        left.iter().cloned().collect(),
        right.iter().cloned().collect(),
    );
    let theirs: (BTreeSet<K>, BTreeSet<K>) =
        (left.into_iter().collect(), right.into_iter().collect());
    macro_rules! agrees {
        ($method:ident, $operator:tt) => {{
            let expected: Vec<&K> = theirs.0.$method(&theirs.1).collect();
            let iterator = ours.0.$method(&ours.1);
            let (least, most) = iterator.size_hint();
            assert!(least <= expected.len() && most.is_some_and(|most| most >= expected.len()));
            assert!(iterator.clone().eq(expected.iter().copied()));
            let mut passed = iterator;
            assert_eq!(passed.by_ref().count(), expected.len());
            assert!(passed.next().is_none() && passed.next().is_none());
            let built = &ours.0 $operator &ours.1;
            assert_eq!(built.check(), Ok(()));
            assert!(built.iter().eq(expected));
        }};
    }
    agrees!(union, |);
    agrees!(intersection, &);
    agrees!(difference, -);
    agrees!(symmetric_difference, ^);
    true
}

#[test]
fn operations_agree_with_btree_set() {
    let tests = if cfg!(miri) { 2 } else { 100 };
    QuickCheck::new()
        .tests(tests)
        .quickcheck(operations_agree::<u8> as fn(Vec<u8>, Vec<u8>) -> bool);
    QuickCheck::new()
        .tests(tests)
        .quickcheck(operations_agree::<String> as fn(Vec<String>, Vec<String>) -> bool);
    QuickCheck::new()
        .tests(tests)
        .quickcheck(operations_agree::<()> as fn(Vec<()>, Vec<()>) -> bool);
}

#[cfg(feature = "serde")]
mod serialization {
    use std::collections::{BTreeMap, BTreeSet};

    use ctree::{FrozenCTreeMap, FrozenCTreeSet};

    #[test]
    fn maps_and_sets_are_written_as_those_of_std() {
        fn holds(entries: Vec<(u16, String)>) -> bool {
            let ours: FrozenCTreeMap<u16, String> = entries.iter().cloned().collect();
            let theirs: BTreeMap<u16, String> = entries.iter().cloned().collect();
            let text = serde_json::to_string(&theirs).unwrap();
            assert_eq!(serde_json::to_string(&ours).unwrap(), text);
            let read: FrozenCTreeMap<u16, String> = serde_json::from_str(&text).unwrap();
            assert_eq!(read.check(), Ok(()));
            assert_eq!(read, ours);

            let ours: FrozenCTreeSet<String> =
                entries.iter().map(|entry| entry.1.clone()).collect();
            let theirs: BTreeSet<String> = entries.iter().map(|entry| entry.1.clone()).collect();
            let text = serde_json::to_string(&theirs).unwrap();
            assert_eq!(serde_json::to_string(&ours).unwrap(), text);
            assert_eq!(
                serde_json::from_str::<FrozenCTreeSet<String>>(&text).unwrap(),
                ours
            );
            true
        }
        quickcheck::quickcheck(holds as fn(Vec<(u16, String)>) -> bool);
    }

    #[test]
    fn unsorted_and_repeated_input_is_brought_into_order() {
        let map: FrozenCTreeMap<u8, u8> =
            serde_json::from_str(r#"{"3": 1, "1": 2, "3": 9}"#).unwrap();
        assert_eq!(map, FrozenCTreeMap::from([(1, 2), (3, 9)]));
        let set: FrozenCTreeSet<i32> = serde_json::from_str("[5, -1, 5, 0]").unwrap();
        assert_eq!(set, FrozenCTreeSet::from([-1, 0, 5]));
        assert!(
            serde_json::from_str::<FrozenCTreeSet<i32>>("7")
                .unwrap_err()
                .to_string()
                .contains("a sequence")
        );
        assert!(
            serde_json::from_str::<FrozenCTreeMap<u8, u8>>("[7]")
                .unwrap_err()
                .to_string()
                .contains("a map")
        );
    }
}

#[cfg(feature = "rayon")]
mod parallel {
    use ctree::{FrozenCTreeMap, FrozenCTreeSet};
    use rayon::prelude::*;

    #[test]
    fn parallel_building_gives_the_same_map() {
        let len = if cfg!(miri) { 200 } else { 30_000u64 };
        let entries: Vec<(u64, u64)> = (0..len).map(|n| (n * 7919 % (len / 2 + 1), n)).collect();
        let one_by_one: FrozenCTreeMap<u64, u64> = entries.iter().copied().collect();
        let parallel: FrozenCTreeMap<u64, u64> = entries.par_iter().copied().collect();
        assert_eq!(parallel.check(), Ok(()));
        assert_eq!(parallel, one_by_one);

        let texts = |&(key, value): &(u64, u64)| (key.to_string(), value.to_string());
        let one_by_one: FrozenCTreeMap<String, String> = entries.iter().map(texts).collect();
        assert_eq!(
            entries
                .par_iter()
                .map(texts)
                .collect::<FrozenCTreeMap<_, _>>(),
            one_by_one
        );

        let keys: FrozenCTreeSet<u64> = entries.par_iter().map(|entry| entry.0).collect();
        assert!(keys.iter().eq(parallel.keys()));
        let none: FrozenCTreeMap<u64, u64> = entries[..0].par_iter().copied().collect();
        assert!(none.is_empty() && none.check().is_ok());
    }
}
