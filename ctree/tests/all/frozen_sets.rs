//! Serialization and parallel building of frozen maps and sets, where their features are on.

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
