//! `TransparentCTree`: random programs against `BTreeMap`, morphs at any time among them, and keys
//! that misbehave.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use ccmorph::{Layout, LayoutChoice, Morph, MorphError};
use ctree::TransparentCTree;
use quickcheck::{Arbitrary, Gen, QuickCheck, quickcheck};

const LAYOUTS: [Layout; 8] = [
    Layout::Random { seed: 1 },
    Layout::DepthFirst,
    Layout::BreadthFirst,
    Layout::SubtreeCluster { block_bytes: 64 },
    Layout::SubtreeCluster { block_bytes: 256 },
    Layout::VanEmdeBoas,
    Layout::Hierarchical,
    Layout::Weighted,
];

/// One step of a program.
#[derive(Clone, Debug)]
enum Op<K> {
    Insert(K, u32),
    Remove(K),
    SetValue(K, u32),
    Range(Bound<K>, Bound<K>, Vec<bool>),
    IterMut(u32),
    Morph,
    MorphWith(usize, Option<u8>),
    Clone,
    Rebuild,
    MoveOut(usize),
    Clear,
}

impl<K: Arbitrary> Arbitrary for Op<K> {
    fn arbitrary(g: &mut Gen) -> Op<K> {
        let bound = |g: &mut Gen| match u8::arbitrary(g) % 3 {
            0 => Bound::Included(K::arbitrary(g)),
            1 => Bound::Excluded(K::arbitrary(g)),
            _ => Bound::Unbounded,
        };
        match u8::arbitrary(g) % 32 {
            0..=11 => Op::Insert(K::arbitrary(g), u32::arbitrary(g)),
            12..=17 => Op::Remove(K::arbitrary(g)),
            18 => Op::SetValue(K::arbitrary(g), u32::arbitrary(g)),
            19..=22 => Op::Range(bound(g), bound(g), Vec::arbitrary(g)),
            23 => Op::IterMut(u32::arbitrary(g)),
            24 => Op::Morph,
            25..=27 => Op::MorphWith(usize::arbitrary(g), Option::arbitrary(g)),
            28 => Op::Clone,
            29 => Op::Rebuild,
            30 => Op::MoveOut(usize::arbitrary(g) % 20),
            _ => Op::Clear,
        }
    }
}

/// Whether `BTreeMap::range` would panic.
fn is_backwards<K: Ord>(start: &Bound<K>, end: &Bound<K>) -> bool {
    match (start, end) {
        (Bound::Excluded(start), Bound::Excluded(end)) => start >= end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start > end,
        _ => false,
    }
}

/// Draws from both ends of two iterators, as `from_back` says and then from the front.
fn same_from_both_ends<T: PartialEq + Debug>(
    mut ours: impl DoubleEndedIterator<Item = T>,
    mut theirs: impl DoubleEndedIterator<Item = T>,
    from_back: &[bool],
) {
    for from_back in from_back {
        if *from_back {
            assert_eq!(ours.next_back(), theirs.next_back());
        } else {
            assert_eq!(ours.next(), theirs.next());
        }
    }
    assert!(ours.by_ref().eq(theirs));
    assert!(ours.next().is_none() && ours.next_back().is_none());
}

fn run<K: Ord + Clone + Debug>(
    op: Op<K>,
    tree: &mut TransparentCTree<K, u32>,
    model: &mut BTreeMap<K, u32>,
) {
    match op {
        Op::Insert(key, value) => {
            assert_eq!(tree.insert(key.clone(), value), model.insert(key, value));
        }
        Op::Remove(key) => assert_eq!(tree.remove_entry(&key), model.remove_entry(&key)),
        Op::SetValue(key, value) => {
            let (ours, theirs) = (tree.get_mut(&key), model.get_mut(&key));
            assert_eq!(ours, theirs);
            ours.into_iter()
                .chain(theirs)
                .for_each(|place| *place = value);
        }
        Op::Range(start, end, from_back) => {
            if is_backwards(&start, &end) {
                let range = || tree.range((start, end)).count();
                assert!(catch_unwind(AssertUnwindSafe(range)).is_err());
            } else {
                let bounds = (start, end);
                same_from_both_ends(tree.range(bounds.clone()), model.range(bounds), &from_back);
            }
        }
        Op::IterMut(more) => {
            assert_eq!(tree.iter_mut().len(), model.len());
            for ((our_key, ours), (key, theirs)) in tree.iter_mut().zip(model.iter_mut()) {
                assert_eq!(our_key, key);
                *ours = ours.wrapping_add(more);
                *theirs = theirs.wrapping_add(more);
            }
        }
        Op::Morph => {
            let report = tree.morph().expect("there is memory");
            assert_eq!(report.nodes, tree.len());
            assert!(report.placed);
        }
        Op::MorphWith(index, hot_share) => {
            let layout = match LAYOUTS.get(index % (LAYOUTS.len() + 1)) {
                Some(&layout) => LayoutChoice::Fixed(layout),
                None => LayoutChoice::Auto,
            };
            let hot_share = hot_share.map(|share| 0.1 + f64::from(share) / 400.0);
            let report = tree.morph_with(layout, hot_share).expect("there is memory");
            assert_eq!(report.nodes, tree.len());
        }
        Op::Clone => {
            let copy = tree.clone();
            assert_eq!(copy.height(), tree.height());
            *tree = copy;
        }
        Op::Rebuild => {
            let entries = model.clone();
            *tree = TransparentCTree::from_sorted_iter(entries).expect("they are sorted");
            assert_eq!(
                tree.height(),
                model
                    .len()
                    .checked_ilog2()
                    .map_or(0, |log| log as usize + 1)
            );
        }
        Op::MoveOut(taken) => {
            let mut ours = std::mem::take(tree).into_iter();
            let mut theirs = std::mem::take(model).into_iter();
            for _ in 0..taken {
                assert_eq!(ours.len(), theirs.len());
                assert_eq!(ours.next(), theirs.next());
            }
            // In descending order, for a shape of another kind.
            let rest: Vec<(K, u32)> = ours.collect();
            tree.extend(rest.into_iter().rev());
            model.extend(theirs);
        }
        Op::Clear => {
            tree.clear();
            model.clear();
        }
    }
}

fn any_program<K: Ord + Clone + Debug>(ops: Vec<Op<K>>, others: &[K]) -> bool {
    let mut tree = TransparentCTree::new();
    let mut model = BTreeMap::new();
    for op in ops {
        run(op, &mut tree, &mut model);
        assert_eq!(tree.check(), Ok(()));
        assert_eq!(
            (tree.len(), tree.is_empty()),
            (model.len(), model.is_empty())
        );
        assert!(tree.iter().eq(&model));
        assert_eq!(tree.iter().len(), model.len());
        assert_eq!(tree.first_key_value(), model.first_key_value());
        assert_eq!(tree.last_key_value(), model.last_key_value());
        assert_eq!(format!("{tree:?}"), format!("{model:?}"));
    }
    for key in others.iter().chain(model.keys()) {
        assert_eq!(tree.get(key), model.get(key));
        assert_eq!(tree.get_key_value(key), model.get_key_value(key));
        assert_eq!(tree.contains_key(key), model.contains_key(key));
        let path: Vec<&K> = tree.path(key).map(|(key, _)| key).collect();
        assert!(path.len() <= tree.height());
        assert_eq!(path.last() == Some(&key), model.contains_key(key));
    }
    true
}

#[test]
fn any_program_gives_what_a_btree_map_gives() {
    // Few keys, so that most are there; many; and keys that own memory.
    fn few(ops: Vec<Op<u8>>, others: Vec<u8>) -> bool {
        any_program(ops, &others)
    }
    fn many(ops: Vec<Op<(i64, u64)>>, others: Vec<(i64, u64)>) -> bool {
        any_program(ops, &others)
    }
    fn owned(ops: Vec<Op<String>>, others: Vec<String>) -> bool {
        any_program(ops, &others)
    }
    let cases = |tests: u64| {
        let tests = if cfg!(miri) { 2 } else { tests };
        QuickCheck::new()
            .tests(tests)
            .rng(Gen::new(if cfg!(miri) { 20 } else { 200 }))
    };
    cases(150).quickcheck(few as fn(Vec<Op<u8>>, Vec<u8>) -> bool);
    cases(50).quickcheck(many as fn(Vec<Op<(i64, u64)>>, Vec<(i64, u64)>) -> bool);
    cases(30).quickcheck(owned as fn(Vec<Op<String>>, Vec<String>) -> bool);
}

quickcheck! {
    fn a_borrowed_form_finds_what_the_owned_one_does(keys: Vec<String>, query: String) -> bool {
        let mut tree: TransparentCTree<String, usize> = keys.iter().cloned().zip(0..).collect();
        let expected = keys.iter().rposition(|key| *key == query);
        tree.get(query.as_str()).copied() == expected
            && tree.range::<str, _>((Bound::Included(query.as_str()), Bound::Included(query.as_str()))).count() == usize::from(expected.is_some())
            && tree.remove(query.as_str()) == expected
            && !tree.contains_key(query.as_str())
    }

    fn sorted_input_is_checked(keys: Vec<u8>) -> bool {
        let first_wrong = keys.windows(2).position(|pair| pair[0] >= pair[1]);
        match TransparentCTree::from_sorted_iter(keys.iter().map(|key| (*key, ()))) {
            Ok(tree) => first_wrong.is_none() && tree.iter().map(|(key, ())| key).eq(&keys),
            Err(error) => first_wrong == Some(error.index() - 1),
        }
    }
}

#[test]
fn nodes_are_ccmallocs_and_lie_where_the_layout_wants_them() {
    // The global allocator of this program is another one.
    const LEN: u64 = 1023;
    let mut tree = TransparentCTree::from_sorted_iter((0..LEN).map(|key| (key, key))).unwrap();
    let is_ours = |value: &u64| ccmalloc::contains(std::ptr::from_ref(value).cast());
    assert!(tree.iter().all(|(_, value)| is_ours(value)));

    let report = tree
        .morph_with(Layout::SubtreeCluster { block_bytes: 64 }, None)
        .unwrap();
    assert!(report.placed && report.colour.is_none());
    assert!(tree.iter().all(|(_, value)| is_ours(value)));
    // Two nodes of 32 B to a block: of ten nodes on a way, at most every second begins a block.
    let block = |value: &u64| std::ptr::from_ref(value).addr() / 64;
    let mut blocks: Vec<usize> = tree.path(&0).map(|(_, value)| block(value)).collect();
    let nodes = blocks.len();
    blocks.dedup();
    assert!(
        blocks.len() * 3 <= nodes * 2 + 2,
        "{} of {nodes}",
        blocks.len()
    );
    assert_eq!(tree.map().unwrap().nodes().count() as u64, LEN);

    let colour = tree.morph().unwrap().colour.expect("it was asked for");
    assert!(colour.hot_nodes > 0);
    // The hot part of a way is its first half; a way is a page unless the machine says otherwise.
    let way = usize::try_from(colour.colouring.geometry().way_bytes()).unwrap();
    let hot = usize::try_from(colour.colouring.hot_way_bytes()).unwrap();
    let (_, root) = tree.path(&0).next().unwrap();
    assert!(std::ptr::from_ref(root).addr() % way < hot);

    // A new node is hinted at its parent, whose neighbours are all taken: on the same page, or in
    // the same chunk at worst.
    tree.insert(LEN, 0);
    assert!(tree.get(&LEN).is_some_and(is_ours));
}

#[test]
fn what_cannot_be_laid_out_is_left_as_it_is() {
    let mut tree: TransparentCTree<u32, [u8; 5000]> = (0..10).map(|key| (key, [7; 5000])).collect();
    let error = tree.morph_with(Layout::VanEmdeBoas, None).unwrap_err();
    assert!(matches!(error, MorphError::NodeTooLarge { .. }), "{error}");
    let mut small: TransparentCTree<u32, u32> = (0..10).map(|key| (key, key)).collect();
    let error = small
        .morph_with(Layout::VanEmdeBoas, Some(1.5))
        .unwrap_err();
    assert!(matches!(error, MorphError::ColourShare), "{error}");
    assert_eq!((tree.check(), tree.len()), (Ok(()), 10));
    assert_eq!((small.check(), small.len()), (Ok(()), 10));
    // Nothing is laid out without complaint.
    let mut empty: TransparentCTree<u32, u32> = TransparentCTree::default();
    assert_eq!(empty.morph().unwrap().nodes, 0);
    assert_eq!(empty.morph_by(&Morph::new()).unwrap().nodes, 0);
}

#[test]
fn sorted_insertion_makes_a_list_that_still_works() {
    let len = if cfg!(miri) { 50 } else { 3000 };
    let mut tree: TransparentCTree<u32, u32> = (0..len).map(|key| (key, key)).collect();
    assert_eq!(tree.height(), len as usize);
    tree.morph().unwrap();
    assert!(tree.range(1..len - 1).map(|(key, _)| *key).eq(1..len - 1));
    for key in (0..len).step_by(2) {
        assert_eq!(tree.remove(&key), Some(key));
    }
    assert_eq!((tree.check(), tree.len()), (Ok(()), len as usize / 2));
}

#[test]
fn entries_without_a_size_work() {
    let mut tree = TransparentCTree::new();
    assert_eq!((tree.insert((), ()), tree.insert((), ())), (None, Some(())));
    assert_eq!(tree.morph().unwrap().nodes, 1);
    assert_eq!((tree.len(), tree.remove(&())), (1, Some(())));
}

#[test]
fn trees_go_to_other_threads_with_their_entries() {
    fn is_send_and_sync<T: Send + Sync>(_: &T) {}
    let mut tree: TransparentCTree<u32, String> =
        (0..100).map(|key| (key, key.to_string())).collect();
    is_send_and_sync(&tree);
    let back = std::thread::spawn(move || {
        tree.morph().expect("there is memory");
        tree
    });
    assert_eq!(
        back.join().unwrap().get(&42).map(String::as_str),
        Some("42")
    );
}

/// What is alive, and which call is to panic.
#[derive(Default)]
struct Record {
    alive: Cell<usize>,
    calls_until_panic: Cell<Option<usize>>,
}

impl Record {
    fn double(self: &Rc<Record>, number: u32) -> Double {
        self.alive.set(self.alive.get() + 1);
        Double {
            number,
            record: Rc::clone(self),
        }
    }

    /// A tree of `len` entries, inserted in an order that gives nodes with two, one and no
    /// children.
    fn tree(self: &Rc<Record>, len: u32) -> TransparentCTree<Double, Double> {
        let keys = (0..len).map(|n| n * 37 % len);
        keys.map(|n| (self.double(n), self.double(n))).collect()
    }

    /// One call of the kind in question.
    fn tick(&self) {
        match self.calls_until_panic.get() {
            Some(0) => {
                self.calls_until_panic.set(None);
                panic!("told to");
            }
            left => self.calls_until_panic.set(left.map(|left| left - 1)),
        }
    }

    /// Runs `action`, whose call of this number panics.
    fn expect_panic<R>(&self, calls_before: usize, action: impl FnOnce() -> R) {
        self.calls_until_panic.set(Some(calls_before));
        let outcome = catch_unwind(AssertUnwindSafe(action));
        assert_eq!(self.calls_until_panic.take(), None, "too few calls");
        assert!(outcome.is_err());
    }
}

/// A key or value that is counted. Comparisons, copies and drops all count as calls.
struct Double {
    number: u32,
    record: Rc<Record>,
}

impl Ord for Double {
    fn cmp(&self, other: &Double) -> Ordering {
        self.record.tick();
        self.number.cmp(&other.number)
    }
}

impl PartialOrd for Double {
    fn partial_cmp(&self, other: &Double) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Double {
    fn eq(&self, other: &Double) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Double {}

impl Clone for Double {
    fn clone(&self) -> Double {
        self.record.tick();
        self.record.double(self.number)
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.record.alive.set(self.record.alive.get() - 1);
        if !std::thread::panicking() {
            self.record.tick();
        }
    }
}

#[test]
fn every_key_and_value_is_dropped_once() {
    for len in [0, 1, 2, 100, 1000] {
        let record = Rc::new(Record::default());
        let mut tree = record.tree(len);
        let all = 2 * len as usize;
        assert_eq!(record.alive.get(), all);
        tree.morph().unwrap();
        assert_eq!(record.alive.get(), all);
        let mut copy = tree.clone();
        assert_eq!(record.alive.get(), 2 * all);
        for number in (0..len).step_by(3) {
            let query = record.double(number);
            drop(copy.remove(&query));
        }
        assert_eq!(record.alive.get(), all + 2 * copy.len());
        let left = copy.len();
        let mut entries = copy.into_iter();
        assert_eq!(entries.by_ref().take(7).count(), left.min(7));
        drop(entries);
        assert_eq!(record.alive.get(), all);
        // Of equal keys the first stays, and so does the last value.
        tree.extend((0..len).map(|n| (record.double(n), record.double(n + 1))));
        assert_eq!(record.alive.get(), all);
        assert!(
            tree.iter()
                .all(|(key, value)| value.number == key.number + 1)
        );
        drop(tree);
        assert_eq!(record.alive.get(), 0);
    }
}

#[test]
fn a_panicking_comparison_changes_nothing() {
    let record = Rc::new(Record::default());
    let mut tree = record.tree(100);
    for number in [0, 50, 77, 100] {
        // A search makes as many comparisons as there are nodes on its way.
        let depth = tree.path(&record.double(number)).count();
        for before in 0..depth {
            let query = record.double(number);
            record.expect_panic(before, || tree.get(&query).is_some());
            record.expect_panic(before, || tree.remove(&query));
            record.expect_panic(before, || tree.range(&query..).count());
            record.expect_panic(before, || tree.path(&query).count());
            drop(query);
            let entry = (record.double(number), record.double(0));
            record.expect_panic(before, || tree.insert(entry.0, entry.1));
            assert_eq!((tree.len(), record.alive.get()), (100, 200));
        }
    }
    assert_eq!(tree.check(), Ok(()));
    assert!(tree.iter().all(|(key, value)| key.number == value.number));
    let sorted: Vec<_> = (0..50).map(|n| (record.double(n), ())).collect();
    record.expect_panic(30, || TransparentCTree::from_sorted_iter(sorted).is_ok());
    assert_eq!(record.alive.get(), 200);
    drop(tree);
    assert_eq!(record.alive.get(), 0);
}

#[test]
fn a_panicking_clone_loses_nothing() {
    let record = Rc::new(Record::default());
    let tree = record.tree(60);
    for before in [0, 1, 50, 119] {
        record.expect_panic(before, || tree.clone());
        assert_eq!(record.alive.get(), 120);
    }
    assert_eq!(tree.check(), Ok(()));
}

#[test]
fn a_panicking_drop_still_drops_the_others() {
    for before in [0, 1, 40, 119] {
        let record = Rc::new(Record::default());
        let tree = record.tree(60);
        record.expect_panic(before, || drop(tree));
        assert_eq!(record.alive.get(), 0);
        let mut entries = record.tree(60).into_iter();
        assert!(entries.next().is_some_and(|(key, _)| key.number == 0));
        record.expect_panic(before.min(117), || drop(entries));
        assert_eq!(record.alive.get(), 0);
    }
}

/// A key whose comparisons come from a stream of their own, whatever is compared.
struct Lawless<'a> {
    answers: &'a Cell<u64>,
    number: Box<u32>,
}

impl Ord for Lawless<'_> {
    fn cmp(&self, _: &Self) -> Ordering {
        let state = self.answers.get().wrapping_mul(6_364_136_223_846_793_005);
        self.answers
            .set(state.wrapping_add(1_442_695_040_888_963_407));
        match (state >> 33) % 5 {
            0 | 1 => Ordering::Less,
            2 => Ordering::Equal,
            _ => Ordering::Greater,
        }
    }
}

impl PartialOrd for Lawless<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Lawless<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Lawless<'_> {}

quickcheck! {
    fn a_lawless_order_gives_some_answer(seed: u64, steps: Vec<(u8, u32)>) -> bool {
        let answers = Cell::new(seed);
        let key = |number: u32| Lawless { answers: &answers, number: Box::new(number) };
        let mut tree = TransparentCTree::new();
        let mut len = 0;
        for (step, number) in steps {
            match step % 8 {
                0..=3 => len += usize::from(tree.insert(key(number), number).is_none()),
                4 => len -= usize::from(tree.remove(&key(number)).is_some()),
                5 => {
                    // Panics if the bounds are said to be in the wrong order.
                    let both_ends = || {
                        let (low, high) = (key(number), key(1));
                        let mut range = tree.range(&low..&high);
                        let mut count = 0;
                        while range.next().is_some() && range.next_back().is_some() {
                            count += 2;
                        }
                        count
                    };
                    if let Ok(count) = catch_unwind(AssertUnwindSafe(both_ends)) {
                        // The ends may miss each other; each still stops.
                        assert!(count <= 2 * len);
                    }
                }
                6 => assert_eq!(tree.morph().expect("there is memory").nodes, len),
                _ => {
                    let _verdict = tree.check();
                    assert!(tree.path(&key(number)).count() <= tree.height());
                }
            }
            assert_eq!(tree.len(), len);
            assert_eq!(tree.iter().count(), len);
            assert_eq!(tree.iter().rev().count(), len);
        }
        tree.into_iter().map(|(key, _)| u64::from(*key.number)).fold((0, 0), |(n, sum), number| (n + 1, sum + number)).0 == len
    }
}
