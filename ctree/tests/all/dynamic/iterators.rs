//! Iterators and ranges at every place; auto traits and variance, compared with the standard
//! library's.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, btree_map, btree_set};
use std::fmt::Debug;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Bound;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::rc::Rc;

use ctree::{CTreeMap, CTreeSet, FrozenCTreeMap, FrozenCTreeSet, frozen_map, map, set};

use super::program::is_refused;
use crate::times;

/// [`ends_meet`] of an iterator that knows its length.
fn meets<T: PartialEq + Debug>(
    iterator: impl ExactSizeIterator<Item = T> + DoubleEndedIterator + FusedIterator,
    expected: &[T],
    front: usize,
) {
    assert_eq!(iterator.len(), expected.len());
    ends_meet(iterator, expected, front);
}

/// Takes `front` elements from the front and all others from the back, and compares them.
fn ends_meet<T: PartialEq + Debug>(
    mut iterator: impl DoubleEndedIterator<Item = T> + FusedIterator,
    expected: &[T],
    front: usize,
) {
    for expected_item in &expected[..front] {
        assert_eq!(iterator.next().as_ref(), Some(expected_item));
    }
    for expected_item in expected[front..].iter().rev() {
        assert_eq!(iterator.next_back().as_ref(), Some(expected_item));
    }
    for _ in 0..3 {
        assert!(iterator.next().is_none() && iterator.next_back().is_none());
    }
}

/// Every number of elements from the front, of maps of every size up to a few nodes.
fn all_iterators_meet<V: Clone + PartialEq + Debug>(value: fn(u16) -> V, len_max: u16) {
    for len in 0..=len_max {
        let entries: Vec<(u16, V)> = (0..len).map(|n| (n, value(n))).collect();
        let mut map: CTreeMap<u16, V> = CTreeMap::new();
        // In another order than that of the keys, so that nodes are not all full.
        for n in (0..len).step_by(2).chain((1..len).step_by(2)) {
            map.insert(n, value(n));
        }
        let fronts = if len < 50 {
            1
        } else {
            1 + usize::from(len) / 7
        };
        for front in (0..=entries.len()).step_by(fronts) {
            let pairs: Vec<(&u16, &V)> = entries.iter().map(|(key, value)| (key, value)).collect();
            meets(map.iter(), &pairs, front);
            ends_meet(map.range(..), &pairs, front);
            ends_meet(map.range(0..len), &pairs, front);
            let keys: Vec<u16> = (0..len).collect();
            meets(map.keys().copied(), &keys, front);
            meets(map.clone().into_keys().fuse(), &keys, front);
            let values: Vec<V> = (0..len).map(value).collect();
            meets(map.values().cloned().fuse(), &values, front);
            meets(map.clone().into_values().fuse(), &values, front);
            meets(map.clone().into_iter(), &entries, front);
            // All of them held at the same time.
            let mut copies = entries.clone();
            let pairs: Vec<(&u16, &mut V)> = copies.iter_mut().map(|(key, v)| (&*key, v)).collect();
            let mut ours = Vec::new();
            let mut mutable = map.iter_mut();
            ours.extend(mutable.by_ref().take(front));
            let mut back: Vec<(&u16, &mut V)> = mutable.rev().collect();
            back.reverse();
            ours.extend(back);
            assert_eq!(ours, pairs);
            let mut ours: Vec<(&u16, &mut V)> = map.range_mut(..).rev().collect();
            ours.reverse();
            assert_eq!(ours, pairs);
        }
    }
}

#[test]
fn all_iterators_meet_in_wide_nodes() {
    all_iterators_meet(u64::from, if cfg!(miri) { 40 } else { 160 });
}

#[test]
fn all_iterators_meet_in_small_nodes() {
    all_iterators_meet(|n| [n; 800], if cfg!(miri) { 12 } else { 60 });
}

/// Every pair of bounds, on, between and beyond all keys.
fn all_ranges<V: Clone + Ord + Debug>(value: fn(u16) -> V, len: u16) {
    let entries = || (0..len).map(|n| (3 * n + 2, value(n)));
    let mut map: CTreeMap<u16, V> = entries().rev().collect();
    let theirs: BTreeMap<u16, V> = entries().collect();
    let bounds = || {
        (0..=3 * len + 3)
            .flat_map(|key| [Bound::Included(key), Bound::Excluded(key)])
            .chain([Bound::Unbounded])
    };
    let mut ranges = 0;
    for start in bounds().step_by(if cfg!(miri) { 7 } else { 1 }) {
        for end in bounds().step_by(if cfg!(miri) { 5 } else { 1 }) {
            if is_refused(&(start, end)) {
                continue;
            }
            ranges += 1;
            let expected: Vec<(&u16, &V)> = theirs.range((start, end)).collect();
            let ours = map.range((start, end));
            assert!(
                ours.clone().eq(expected.iter().copied()),
                "{start:?} {end:?}"
            );
            assert!(ours.clone().rev().eq(expected.iter().rev().copied()));
            assert_eq!(ours.clone().min(), expected.first().copied());
            let middle = expected.len() / 2;
            ends_meet(ours.clone(), &expected, middle);
            // The loops over leaves, with the ends anywhere.
            let mut rest = ours.clone();
            rest.by_ref().take(middle).for_each(drop);
            rest.next_back();
            let left = &expected[middle..expected.len().max(middle + 1) - 1];
            let (mut folded, mut folded_back) = (Vec::new(), Vec::new());
            rest.clone().for_each(|entry| folded.push(entry));
            rest.rev().for_each(|entry| folded_back.push(entry));
            folded_back.reverse();
            assert_eq!((folded.as_slice(), folded_back.as_slice()), (left, left));
            assert_eq!(ours.last(), expected.last().copied());
            assert_eq!(map.range_mut((start, end)).count(), expected.len());
        }
    }
    assert!(ranges > 100);
}

#[test]
fn all_ranges_of_wide_nodes() {
    all_ranges(u64::from, u16::try_from(times(70)).expect("a small number"));
}

#[test]
fn all_ranges_of_small_nodes() {
    all_ranges(|n| [n; 800], if cfg!(miri) { 5 } else { 20 });
}

/// Whether a type, without parameters left open, implements a trait: the inherent constant, where
/// its bounds hold, hides the trait's.
macro_rules! implements {
    ($type:ty: $bound:path) => {{
        struct Probe<T: ?Sized>(PhantomData<T>);
        #[allow(
            dead_code,
            reason = "not looked at where the inherent constant is found"
        )]
        trait Otherwise {
            const YES: bool = false;
        }
        impl<T: ?Sized> Otherwise for Probe<T> {}
        #[allow(dead_code, reason = "found only for types that have the trait")]
        impl<T: ?Sized + $bound> Probe<T> {
            const YES: bool = true;
        }
        <Probe<$type>>::YES
    }};
}

/// Asserts that two types implement the same auto traits.
macro_rules! alike {
    ($($ours:ty as $theirs:ty;)*) => {$(
        alike!($ours as $theirs: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
    )*};
    ($ours:ty as $theirs:ty: $($bound:path),*) => {$(
        assert_eq!(
            implements!($ours: $bound),
            implements!($theirs: $bound),
            "{} of {}",
            stringify!($bound),
            std::any::type_name::<$ours>()
        );
    )*};
}

macro_rules! all_types_alike {
    ($key:ty, $value:ty) => {{
        alike! {
            CTreeMap<$key, $value> as BTreeMap<$key, $value>;
            map::Iter<'static, $key, $value> as btree_map::Iter<'static, $key, $value>;
            map::IterMut<'static, $key, $value> as btree_map::IterMut<'static, $key, $value>;
            map::IntoIter<$key, $value> as btree_map::IntoIter<$key, $value>;
            map::Keys<'static, $key, $value> as btree_map::Keys<'static, $key, $value>;
            map::Values<'static, $key, $value> as btree_map::Values<'static, $key, $value>;
            map::ValuesMut<'static, $key, $value> as btree_map::ValuesMut<'static, $key, $value>;
            map::IntoKeys<$key, $value> as btree_map::IntoKeys<$key, $value>;
            map::IntoValues<$key, $value> as btree_map::IntoValues<$key, $value>;
            map::Range<'static, $key, $value> as btree_map::Range<'static, $key, $value>;
            map::RangeMut<'static, $key, $value> as btree_map::RangeMut<'static, $key, $value>;
            map::Entry<'static, $key, $value> as btree_map::Entry<'static, $key, $value>;
            map::VacantEntry<'static, $key, $value>
                as btree_map::VacantEntry<'static, $key, $value>;
            map::OccupiedEntry<'static, $key, $value>
                as btree_map::OccupiedEntry<'static, $key, $value>;
            CTreeSet<$key> as BTreeSet<$key>;
            set::Iter<'static, $key> as btree_set::Iter<'static, $key>;
            set::IntoIter<$key> as btree_set::IntoIter<$key>;
            set::Range<'static, $key> as btree_set::Range<'static, $key>;
            set::Difference<'static, $key> as btree_set::Difference<'static, $key>;
            set::Intersection<'static, $key> as btree_set::Intersection<'static, $key>;
            set::SymmetricDifference<'static, $key>
                as btree_set::SymmetricDifference<'static, $key>;
            set::Union<'static, $key> as btree_set::Union<'static, $key>;
        }
        type FrozenIter = frozen_map::Iter<'static, $key, $value>;
        alike!(FrozenCTreeMap<$key, $value> as BTreeMap<$key, $value>: Send, Sync);
        alike!(FrozenIter as btree_map::Iter<'static, $key, $value>: Send, Sync);
        alike!(frozen_map::IntoIter<$key, $value> as btree_map::IntoIter<$key, $value>: Send, Sync);
        alike!(FrozenCTreeSet<$key> as BTreeSet<$key>: Send, Sync);
    }};
}

#[test]
fn auto_traits_are_those_of_std() {
    all_types_alike!(u64, String);
    // Neither sent nor shared; sent but not shared; shared but not sent; neither unwind safe.
    all_types_alike!(Rc<u8>, u8);
    all_types_alike!(u8, Rc<u8>);
    all_types_alike!(Cell<u8>, u8);
    all_types_alike!(u64, Cell<u8>);
    all_types_alike!(std::sync::MutexGuard<'static, u8>, u8);
    all_types_alike!(u8, std::sync::MutexGuard<'static, u8>);
    all_types_alike!(&'static mut u8, u8);
    all_types_alike!(u8, &'static mut u8);
    all_types_alike!(std::marker::PhantomPinned, u8);
    all_types_alike!(u8, std::marker::PhantomPinned);
    type ExtractIf<K> = map::ExtractIf<'static, K, u8, std::ops::RangeFull, Pick<K, u8>>;
    type FrozenIterMut<V> = frozen_map::IterMut<'static, u8, V>;
    assert!(implements!(FrozenIterMut<u8>: Send) && !implements!(FrozenIterMut<Rc<u8>>: Send));
    type CursorMut<V> = map::CursorMut<'static, u8, V>;
    assert!(implements!(CursorMut<u8>: Send) && !implements!(CursorMut<Rc<u8>>: Send));
    assert!(implements!(CursorMut<u8>: Sync) && !implements!(CursorMut<Cell<u8>>: Sync));
    type Cursor<V> = map::Cursor<'static, u8, V>;
    assert!(implements!(Cursor<u8>: Send) && !implements!(Cursor<Cell<u8>>: Send));
    assert!(implements!(ExtractIf<u64>: Send) && implements!(ExtractIf<u64>: Sync));
    assert!(!implements!(ExtractIf<Rc<u8>>: Send) && !implements!(ExtractIf<Rc<u8>>: Sync));
}

type Pick<K, V> = fn(&K, &mut V) -> bool;

/// Functions that turn a type of static texts into the same of texts that live less long: they
/// compile for covariant types only.
macro_rules! covariant {
    ($($name:ident: $($type:ident)::+;)*) => {$(
        #[expect(dead_code, reason = "only the type checker reads it")]
        fn $name<'a>(it: $($type)::+<&'static str, &'static str>) -> $($type)::+<&'a str, &'a str> {
            it
        }
    )*};
    ($($name:ident<'_, K, V>: $($type:ident)::+;)*) => {$(
        #[expect(dead_code, reason = "only the type checker reads it")]
        fn $name<'a>(
            it: $($type)::+<'static, &'static str, &'static str>,
        ) -> $($type)::+<'a, &'a str, &'a str> {
            it
        }
    )*};
    ($($name:ident<'_, K>: $($type:ident)::+;)*) => {$(
        #[expect(dead_code, reason = "only the type checker reads it")]
        fn $name<'a>(it: $($type)::+<'static, &'static str>) -> $($type)::+<'a, &'a str> {
            it
        }
    )*};
    ($($name:ident<K>: $($type:ident)::+;)*) => {$(
        #[expect(dead_code, reason = "only the type checker reads it")]
        fn $name<'a>(it: $($type)::+<&'static str>) -> $($type)::+<&'a str> {
            it
        }
    )*};
}

covariant! {
    map_is_covariant: CTreeMap;
    into_iter_is_covariant: map::IntoIter;
    into_keys_is_covariant: map::IntoKeys;
    into_values_is_covariant: map::IntoValues;
    frozen_map_is_covariant: FrozenCTreeMap;
}

covariant! {
    iter_is_covariant<'_, K, V>: map::Iter;
    keys_is_covariant<'_, K, V>: map::Keys;
    values_is_covariant<'_, K, V>: map::Values;
    range_is_covariant<'_, K, V>: map::Range;
    cursor_is_covariant<'_, K, V>: map::Cursor;
    frozen_iter_is_covariant<'_, K, V>: frozen_map::Iter;
    frozen_keys_is_covariant<'_, K, V>: frozen_map::Keys;
    frozen_values_is_covariant<'_, K, V>: frozen_map::Values;
}

covariant! {
    set_iter_is_covariant<'_, K>: set::Iter;
    set_range_is_covariant<'_, K>: set::Range;
    difference_is_covariant<'_, K>: set::Difference;
    intersection_is_covariant<'_, K>: set::Intersection;
    symmetric_difference_is_covariant<'_, K>: set::SymmetricDifference;
    union_is_covariant<'_, K>: set::Union;
}

covariant! {
    set_is_covariant<K>: CTreeSet;
    set_into_iter_is_covariant<K>: set::IntoIter;
    frozen_set_is_covariant<K>: FrozenCTreeSet;
}

#[test]
fn maps_and_sets_may_borrow_what_is_dropped_first() {
    // Dropping them uses no borrowed key or value: this compiles only with a drop check as std's.
    let (map, set, frozen, text);
    text = String::from("text");
    map = CTreeMap::from([(text.as_str(), text.as_str())]);
    set = CTreeSet::from([text.as_str()]);
    frozen = FrozenCTreeMap::from([(1u64, text.as_str())]);
    assert_eq!(frozen.get(&1), Some(&"text"));
    assert!(set.iter().eq(map.keys()) && map.values().eq(["text"].iter()));
}

#[test]
fn iterators_over_nothing() {
    // Neither of them has a map, nor a lifetime of one.
    assert_eq!(map::Iter::<u8, u8>::default().len(), 0);
    assert_eq!(map::IterMut::<u8, u8>::default().next_back(), None);
    assert_eq!(map::Keys::<u8, u8>::default().next(), None);
    assert_eq!(map::Values::<u8, u8>::default().next(), None);
    assert_eq!(map::ValuesMut::<u8, u8>::default().next(), None);
    assert_eq!(map::IntoIter::<u8, u8>::default().next_back(), None);
    assert_eq!(map::IntoKeys::<u8, u8>::default().len(), 0);
    assert_eq!(map::IntoValues::<u8, u8>::default().len(), 0);
    assert_eq!(map::Range::<u8, u8>::default().next_back(), None);
    assert_eq!(map::RangeMut::<u8, u8>::default().next(), None);
    assert_eq!(set::Iter::<u8>::default().len(), 0);
    assert_eq!(set::IntoIter::<u8>::default().next(), None);
    assert_eq!(set::Range::<u8>::default().next_back(), None);
}
