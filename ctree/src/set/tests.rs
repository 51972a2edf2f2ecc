//! Sets against std's: what does not follow from the map.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::ops::Bound;

use quickcheck::quickcheck;

use super::CTreeSet;

/// Checks an iterator against the keys that it should give: items, hints, clones.
fn assert_gives<'a, I>(mut iter: I, expected: &[u16])
where
    I: Iterator<Item = &'a u16> + Clone,
{
    for (index, key) in expected.iter().enumerate() {
        let (low, high) = iter.size_hint();
        let left = expected.len() - index;
        assert!(
            low <= left && high.is_some_and(|high| high >= left),
            "{low} to {high:?}, not {left}"
        );
        assert_eq!(iter.clone().min(), Some(key));
        assert_eq!(iter.next(), Some(key));
    }
    assert_eq!((iter.next(), iter.next()), (None, None));
}

/// Checks all that two sets have to do with each other.
fn assert_algebra(left: &[u16], right: &[u16]) {
    let (a, b): (CTreeSet<u16>, CTreeSet<u16>) = (
        left.iter()
            .collect::<Vec<_>>()
            .into_iter()
            .copied()
            .collect(),
        right.iter().copied().collect(),
    );
    let (model_a, model_b): (BTreeSet<u16>, BTreeSet<u16>) = (
        left.iter().copied().collect(),
        right.iter().copied().collect(),
    );
    let difference: Vec<u16> = model_a.difference(&model_b).copied().collect();
    let intersection: Vec<u16> = model_a.intersection(&model_b).copied().collect();
    let union: Vec<u16> = model_a.union(&model_b).copied().collect();
    let symmetric: Vec<u16> = model_a.symmetric_difference(&model_b).copied().collect();
    assert_gives(a.difference(&b), &difference);
    assert_gives(a.intersection(&b), &intersection);
    assert_gives(a.union(&b), &union);
    assert_gives(a.symmetric_difference(&b), &symmetric);
    assert!((&a - &b).into_iter().eq(difference));
    assert!((&a & &b).into_iter().eq(intersection));
    assert!((&a | &b).into_iter().eq(union));
    assert!((&a ^ &b).into_iter().eq(symmetric));
    assert_eq!(a.is_disjoint(&b), model_a.is_disjoint(&model_b));
    assert_eq!(a.is_subset(&b), model_a.is_subset(&model_b));
    assert_eq!(a.is_superset(&b), model_a.is_superset(&model_b));
    assert_eq!(
        (a == b, a.cmp(&b)),
        (model_a == model_b, model_a.cmp(&model_b))
    );
}

quickcheck! {
    fn algebra_is_that_of_std(left: Vec<u16>, right: Vec<u16>) -> bool {
        let narrow = |keys: &[u16]| keys.iter().map(|key| key % 64).collect::<Vec<_>>();
        assert_algebra(&left, &right);
        assert_algebra(&narrow(&left), &narrow(&right));
        true
    }

    fn algebra_of_a_short_and_a_long_set(short: Vec<u16>, step: u8) -> bool {
        let long: Vec<u16> = (0..if cfg!(miri) { 100 } else { 2000 }).step_by(usize::from(step % 5) + 1).collect();
        let short: Vec<u16> = short.iter().take(5).map(|key| key % 2100).collect();
        assert_algebra(&short, &long);
        assert_algebra(&long, &short);
        true
    }

    fn sets_do_what_std_does(keys: Vec<u8>, others: Vec<u8>) -> bool {
        let (mut set, mut model) = (CTreeSet::new(), BTreeSet::new());
        for key in &keys {
            assert_eq!(set.insert(*key), model.insert(*key));
        }
        for key in &others {
            assert_eq!((set.contains(key), set.get(key)), (model.contains(key), model.get(key)));
            assert_eq!(set.take(key), model.take(key));
            assert!(!set.remove(key));
        }
        assert!(set.iter().eq(&model) && set.iter().rev().eq(model.iter().rev()));
        assert_eq!((set.first(), set.last()), (model.first(), model.last()));
        let extracted: Vec<u8> = set.extract_if(10.., |key| key % 3 == 0).collect();
        assert!(model.extract_if(10.., |key| key % 3 == 0).eq(extracted));
        set.retain(|key| key % 5 != 0);
        model.retain(|key| key % 5 != 0);
        let high = set.split_off(&100);
        assert!(model.split_off(&100).iter().eq(&high));
        assert_eq!((set.pop_first(), set.pop_last()), (model.pop_first(), model.pop_last()));
        let mut flags = alloc::vec![false; keys.len()];
        set.contains_many(&keys, &mut flags);
        assert!(keys.iter().zip(&flags).all(|(key, flag)| model.contains(key) == *flag));
        set.append(&mut high.clone());
        set.check().is_ok() && BTreeSet::from(set).is_superset(&model)
    }
}

#[test]
fn ranges_touch_or_do_not() {
    let keys = |range: core::ops::Range<u16>| range.collect::<Vec<_>>();
    assert_algebra(&keys(0..10), &keys(10..20));
    assert_algebra(&keys(0..11), &keys(10..20));
    assert_algebra(&keys(10..20), &keys(0..11));
    assert_algebra(&keys(10..20), &keys(0..10));
    assert_algebra(&keys(0..20), &keys(5..10));
    assert_algebra(&[], &keys(5..10));
    assert_algebra(&keys(5..10), &[]);
    assert_algebra(&[], &[]);
    assert_algebra(&[5], &[5]);
}

#[test]
fn cursors_change_sets() {
    let mut set = CTreeSet::from([1, 5]);
    let mut cursor = set.lower_bound_mut(Bound::Included(&5));
    assert!(
        cursor.insert_before(3).is_ok()
            && cursor.insert_after(4).is_ok()
            && cursor.insert_after(9).is_err()
    );
    assert_eq!(cursor.peek_prev(), Some(&3));
    assert_eq!(cursor.as_cursor().peek_next(), Some(&4));
    assert_eq!(cursor.remove_prev(), Some(3));
    assert_eq!(cursor.next(), Some(&4));
    assert_eq!(cursor.prev(), Some(&4));
    assert!(set.iter().eq(&[1, 4, 5]));
    let mut cursor = set.upper_bound(Bound::Excluded(&4));
    assert_eq!(
        (cursor.clone().prev(), cursor.next(), cursor.peek_prev()),
        (Some(&1), Some(&4), Some(&4))
    );
}

#[test]
fn keys_without_size_are_few() {
    let mut set = CTreeSet::new();
    assert!(set.insert(()) && !set.insert(()));
    assert_eq!(
        (set.len(), set.iter().next(), set.range(..).next_back()),
        (1, Some(&()), Some(&()))
    );
    assert_eq!((set.pop_first(), set.pop_first()), (Some(()), None));
}

#[cfg(feature = "serde")]
#[test]
fn serde_reads_what_it_writes() {
    let set: CTreeSet<u32> = (0..1000).collect();
    let text = serde_json::to_string(&set).unwrap();
    assert_eq!(serde_json::from_str::<CTreeSet<u32>>(&text).unwrap(), set);
    let read: CTreeSet<u32> = serde_json::from_str("[3, 1, 2, 3]").unwrap();
    assert_eq!(read, CTreeSet::from([1, 2, 3]));
    assert!(serde_json::from_str::<CTreeSet<u32>>("[3, 1").is_err());
}

#[test]
fn iterators_are_printed_as_those_of_std() {
    macro_rules! printed {
        ($set:ident) => {{
            let texts = core::cell::RefCell::new(Vec::new());
            let print = |iterator: &dyn core::fmt::Debug| {
                texts.borrow_mut().push(alloc::format!("{iterator:?}"));
                texts.borrow_mut().push(alloc::format!("{iterator:#?}"));
            };
            let set = |keys: core::ops::Range<u32>| keys.collect::<$set<u32>>();
            let (few, many, none) = (set(3..4), set(0..64), set(0..0));
            let (low, high, end) = (set(0..5), set(2..8), set(4..6));
            print(&low.iter());
            print(&low.range(1..));
            print(&low.clone().into_iter());
            for (left, right) in [
                (&low, &high),
                (&few, &many),
                (&many, &few),
                (&low, &end),
                (&low, &none),
            ] {
                let mut difference = left.difference(right);
                let mut intersection = left.intersection(right);
                let mut union = left.union(right);
                let mut symmetric = left.symmetric_difference(right);
                for _ in 0..4 {
                    print(&(&difference, &intersection, &union, &symmetric));
                    let _one = (difference.next(), intersection.next());
                    let _two = (union.next(), symmetric.next());
                }
            }
            texts.into_inner()
        }};
    }
    assert_eq!(printed!(CTreeSet), printed!(BTreeSet));
}
