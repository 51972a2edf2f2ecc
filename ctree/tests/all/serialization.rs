//! Maps and sets are written and read as those of the standard library.

use std::collections::{BTreeMap, BTreeSet};

use ctree::{CTreeMap, CTreeSet, FrozenCTreeMap, FrozenCTreeSet};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Compares the text of a collection with that of the standard library's, and reads it again.
fn agrees<C, S>(ours: &C, theirs: &S)
where
    C: Serialize + DeserializeOwned + PartialEq,
    S: Serialize,
{
    let text = serde_json::to_string(theirs).unwrap();
    assert_eq!(serde_json::to_string(ours).unwrap(), text);
    assert!(serde_json::from_str::<C>(&text).unwrap() == *ours);
}

#[test]
fn maps_and_sets_are_written_as_those_of_std() {
    fn holds(entries: Vec<(u16, String)>) -> bool {
        let theirs: BTreeMap<u16, String> = entries.iter().cloned().collect();
        agrees(&CTreeMap::from(theirs.clone()), &theirs);
        agrees(&FrozenCTreeMap::from(theirs.clone()), &theirs);
        let theirs: BTreeSet<String> = theirs.into_values().collect();
        agrees(&CTreeSet::from(theirs.clone()), &theirs);
        agrees(&FrozenCTreeSet::from(theirs.clone()), &theirs);
        true
    }
    quickcheck::quickcheck(holds as fn(Vec<(u16, String)>) -> bool);
}

#[test]
fn unsorted_and_repeated_input_is_brought_into_order() {
    let text = r#"{"3": 1, "1": 2, "3": 9}"#;
    let map: FrozenCTreeMap<u8, u8> = serde_json::from_str(text).unwrap();
    assert_eq!(map, FrozenCTreeMap::from([(1, 2), (3, 9)]));
    let map: CTreeMap<u8, u8> = serde_json::from_str(text).unwrap();
    assert_eq!(
        (map.check(), map),
        (Ok(()), CTreeMap::from([(1, 2), (3, 9)]))
    );
    let set: FrozenCTreeSet<i32> = serde_json::from_str("[5, -1, 5, 0]").unwrap();
    assert_eq!(set, FrozenCTreeSet::from([-1, 0, 5]));
}

#[test]
fn other_input_is_refused() {
    let error = |text| serde_json::from_str::<FrozenCTreeSet<i32>>(text).unwrap_err();
    assert!(error("7").to_string().contains("a sequence"));
    assert!(error("[3, 1").is_eof());
    let error = |text| serde_json::from_str::<CTreeMap<u8, u8>>(text).unwrap_err();
    assert!(error("[7]").to_string().contains("a map"));
    assert!(error(r#"{"5":1,"7":"#).is_eof());
}
