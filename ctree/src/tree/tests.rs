//! The core alone, held against std's map; the public maps are tested by the crate's integration
//! tests.

use alloc::collections::BTreeMap;
use core::fmt::Debug;

use allocator_api2::alloc::Global;
use quickcheck::{Arbitrary, Gen, QuickCheck};

use super::{Builder, Edge, Found, Options, Tree};
use crate::Head;

/// One step of a random program.
#[derive(Clone, Debug)]
enum Op<K> {
    Insert(K),
    Remove(K),
    RemoveMany(K, u8),
    InsertMany(K, u8),
    SplitOff(K),
    Compact,
    Rebuild,
}

impl<K: Arbitrary> Arbitrary for Op<K> {
    fn arbitrary(g: &mut Gen) -> Self {
        let key = K::arbitrary(g);
        match u8::arbitrary(g) % 32 {
            0..=9 => Op::Insert(key),
            10..=17 => Op::Remove(key),
            18..=22 => Op::RemoveMany(key, u8::arbitrary(g)),
            23..=28 => Op::InsertMany(key, u8::arbitrary(g)),
            29 => Op::SplitOff(key),
            30 => Op::Compact,
            _ => Op::Rebuild,
        }
    }
}

/// Keys that have a known successor.
trait Step: Ord + Clone + Debug + 'static {
    fn step(&self, by: u8) -> Self;
}

impl Step for u64 {
    fn step(&self, by: u8) -> Self {
        self.wrapping_add(u64::from(by) * 7)
    }
}

impl Step for u8 {
    fn step(&self, by: u8) -> Self {
        self.wrapping_add(by.wrapping_mul(3))
    }
}

impl Step for String {
    fn step(&self, by: u8) -> Self {
        format!(
            "a/long/common/prefix/{}/{by}",
            self.chars().take(2).collect::<String>()
        )
    }
}

impl Step for (u32, u32) {
    fn step(&self, by: u8) -> Self {
        (self.0 / 3, self.1.wrapping_add(u32::from(by)))
    }
}

impl Step for (u8, bool) {
    fn step(&self, by: u8) -> Self {
        (self.0.wrapping_add(by), self.1)
    }
}

/// A key that shares its head with many others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Coarse(u8, bool);

// SAFETY: the type has no lifetimes.
unsafe impl Head for Coarse {
    fn head(&self) -> u64 {
        u64::from(self.0 / 8)
    }
}

impl Arbitrary for Coarse {
    fn arbitrary(g: &mut Gen) -> Self {
        Coarse(u8::arbitrary(g), bool::arbitrary(g))
    }
}

impl Step for Coarse {
    fn step(&self, by: u8) -> Self {
        Coarse(self.0.wrapping_add(by), self.1)
    }
}

fn insert<K: Ord, V>(tree: &mut Tree<K, V, Global>, key: K, value: V) -> bool {
    match tree.find(&key) {
        Found::Entry(_) => false,
        Found::Gap(edge) => {
            // SAFETY: the edge is where the key belongs.
            let place = unsafe { tree.insert_at(edge, key, value) };
            // SAFETY: the node of the entry that was just inserted.
            assert!(unsafe { tree.form().len(place.node) } > place.slot);
            true
        }
    }
}

fn remove<K: Ord, V>(tree: &mut Tree<K, V, Global>, key: &K) -> Option<(K, V, Edge)> {
    match tree.find(key) {
        // SAFETY: the place was just found.
        Found::Entry(place) => Some(unsafe { tree.remove_at(place) }),
        Found::Gap(_) => None,
    }
}

/// Moves the first entry out again and again.
fn into_entries<K: Ord + Clone, V>(mut tree: Tree<K, V, Global>) -> Vec<(K, V)> {
    let mut entries = Vec::new();
    while tree.len() > 0 {
        let mut edge = tree.first_edge();
        // SAFETY: the tree has entries.
        let place = unsafe { tree.form().next(&mut edge) }.unwrap();
        // SAFETY: the place of the first entry.
        let (key, value, edge) = unsafe { tree.remove_at(place) };
        assert_eq!(edge, tree.first_edge());
        entries.push((key, value));
    }
    entries
}

fn run<K: Step, V: Clone + PartialEq + Debug>(
    ops: &[Op<K>],
    options: Options<K, V>,
    value: impl Fn(usize) -> V,
) {
    let mut tree = Tree::<K, V, Global>::new_in(Global, options);
    let mut model = BTreeMap::new();
    for (turn, op) in ops.iter().enumerate() {
        match op {
            Op::Insert(key) => {
                assert_eq!(
                    insert(&mut tree, key.clone(), value(turn)),
                    !model.contains_key(key)
                );
                model.entry(key.clone()).or_insert(value(turn));
            }
            Op::InsertMany(key, count) => {
                for by in 0..*count {
                    insert(&mut tree, key.step(by), value(turn));
                    model.entry(key.step(by)).or_insert(value(turn));
                }
            }
            Op::Remove(key) => {
                let removed = remove(&mut tree, key);
                assert_eq!(removed.is_some(), model.remove(key).is_some());
            }
            Op::RemoveMany(key, count) => {
                let from: Vec<K> = model
                    .range(key.clone()..)
                    .take(usize::from(*count))
                    .map(|(k, _)| k.clone())
                    .collect();
                let mut edge = tree.lower_edge(key);
                for expected in from {
                    // SAFETY: the edge is one of this tree as it is now.
                    let place = unsafe { tree.form().next(&mut edge) }.unwrap();
                    // SAFETY: as above.
                    let (key, value, gap) = unsafe { tree.remove_at(place) };
                    assert_eq!(key, expected);
                    assert_eq!(Some(value), model.remove(&key));
                    edge = gap;
                }
            }
            Op::SplitOff(key) => {
                let edge = tree.lower_edge(key);
                // SAFETY: an edge of this tree.
                let right = unsafe { tree.split_off(edge) };
                right.check().unwrap();
                assert_eq!(into_entries(right), Vec::from_iter(model.split_off(key)));
            }
            Op::Compact => {
                tree.compact();
            }
            Op::Rebuild => {
                let mut builder = Builder::new_in(Global, options);
                for (key, value) in into_entries(tree) {
                    builder.push(key, value);
                }
                assert_eq!(
                    builder.last_key(),
                    model.last_key_value().map(|(key, _)| key)
                );
                tree = builder.finish();
            }
        }
        if let Err(error) = tree.check() {
            panic!("{error} after step {turn}: {op:?}");
        }
        assert_eq!(tree.len(), model.len());
    }
    assert_eq!(found_many(&tree, &model), Ok(()));
    assert_eq!(into_entries(tree), Vec::from_iter(model));
}

/// Looks for all keys at once, and for as many others.
fn found_many<K: Step, V: Clone + PartialEq + Debug>(
    tree: &Tree<K, V, Global>,
    model: &BTreeMap<K, V>,
) -> Result<(), K> {
    let queries: Vec<K> = model
        .keys()
        .flat_map(|key| [key.clone(), key.step(1)])
        .collect();
    let (mut wrong, mut next) = (None, 0);
    tree.find_many(&queries, |index, place| {
        assert_eq!(index, next, "answers come in the order of the queries");
        next += 1;
        let found = place.map(|place| {
            // SAFETY: the place was just found.
            unsafe {
                let form = tree.form();
                (
                    (*form.key_at(place.node, place.slot)).clone(),
                    (*form.value_at(place.node, place.slot)).clone(),
                )
            }
        });
        let expected = model.get_key_value(&queries[index]);
        if found != expected.map(|(key, value)| (key.clone(), value.clone())) {
            wrong = Some(queries[index].clone());
        }
    });
    assert_eq!(next, queries.len());
    wrong.map_or(Ok(()), Err)
}

/// Fewer under what makes programs slow: the interpreter, and the checkers of memory accesses,
/// which ask for few cases themselves.
fn checks() -> QuickCheck {
    if std::env::var_os("QUICKCHECK_TESTS").is_some() {
        return QuickCheck::new();
    }
    QuickCheck::new().tests(if cfg!(miri) { 3 } else { 80 })
}

macro_rules! programs {
    ($($name:ident: $key:ty, $options:expr, $value:expr;)*) => {$(
        #[test]
        fn $name() {
            fn property(ops: Vec<Op<$key>>) -> bool {
                run(&ops, $options, $value);
                true
            }
            checks().quickcheck(property as fn(Vec<Op<$key>>) -> bool);
        }
    )*};
}

programs! {
    integers: u64, Options::PLAIN, |turn| turn as u64;
    integers_in_small_nodes: u64, Options::RANKED, |turn| [turn as u64; 512];
    bytes_in_small_nodes: u8, Options::PLAIN, |turn| [turn as u64; 300];
    strings: String, Options::PLAIN, |turn| turn.to_string();
    strings_in_small_nodes: String, Options::RANKED, |turn| [turn as u64; 512];
    tuples_by_heads: (u32, u32), Options::PLAIN, |turn| [turn as u64; 512];
    keys_without_heads: (u8, bool), Options::RANKED, |turn| [turn as u64; 512];
    keys_with_heads_of_the_user: Coarse, Options::HEADED, |turn| [turn as u64; 512];
    values_without_size: u64, Options::RANKED, |_| ();
}

#[test]
fn ends_grow_into_full_nodes() {
    let ascending = (0..100_000u64).collect::<Vec<_>>();
    let descending = ascending.iter().rev().copied().collect::<Vec<_>>();
    for keys in [ascending, descending] {
        let mut tree = Tree::<u64, u64, Global>::new_in(Global, Options::PLAIN);
        for &key in &keys {
            insert(&mut tree, key, key);
        }
        tree.check().unwrap();
        assert!(tree.level_count() >= 3);
        let bytes_in_use = tree.memory_bytes() as f64 / 100_000.0;
        assert!(bytes_in_use < 40.0, "{bytes_in_use} B a key");
    }
}

/// Splits a tree of many levels at each of its gaps.
fn splits_everywhere<K: Step>(options: Options<K, [u64; 128]>, key: impl Fn(usize) -> K) {
    // A prime, so that the multiples of another number go through all indices.
    let len = if cfg!(miri) { 41 } else { 331 };
    for at in 0..=len {
        let mut tree = Tree::<K, [u64; 128], Global>::new_in(Global, options);
        for index in 0..len {
            let index = index * 137 % len;
            insert(&mut tree, key(index), [index as u64; 128]);
        }
        assert!(tree.level_count() > 2);
        let edge = tree.lower_edge(&key(at));
        // SAFETY: an edge of this tree.
        let right = unsafe { tree.split_off(edge) };
        for (part, indices) in [(tree, 0..at), (right, at..len)] {
            assert_eq!(part.check(), Ok(()), "split of {len} at {at}");
            let expected = indices.map(|index| (key(index), [index as u64; 128]));
            assert!(
                into_entries(part).into_iter().eq(expected),
                "split of {len} at {at}"
            );
        }
    }
}

#[test]
fn trees_split_at_each_gap() {
    splits_everywhere(Options::PLAIN, |index| index as u64);
    splits_everywhere(Options::RANKED, |index| {
        format!("{:03}/a/common/{index:03}", index / 100)
    });
    splits_everywhere(Options::HEADED, |index| {
        Coarse(u8::try_from(index / 2).unwrap(), index % 2 == 1)
    });
}
