//! A list that is walked. `model advise` said that no layout was faster than random, although the
//! simulator counted half of the misses in the order of the links.

use ccmodel::{
    Accesses, CacheGeometry, CacheLevel, Hierarchy, Inclusion, Layout, Level, LevelKind, Machine,
    NO_NODE, NodeExtent, PageSize, Predictor, Shape, Simulator,
};
use ccmorph::{Morph, Operation, Verdict};

/// 64 KiB, known by its size alone.
fn machine() -> Machine {
    let cache = Level::new("cache", LevelKind::Data, 64, 65_536.0, 10.0);
    Machine::new("one cache", Machine::thesis().search, vec![cache]).unwrap()
}

/// Misses of the second walk of two, in a cache of that size.
fn simulated(walks: &Accesses) -> f64 {
    let cache = CacheLevel::lru("cache", CacheGeometry::new(64, 64, 16).unwrap());
    let hierarchy = Hierarchy::new(vec![cache], Inclusion::NonInclusive, Vec::new()).unwrap();
    let mut simulator = Simulator::new(&hierarchy, ccmodel::Frames::Identity);
    let (mut operations, mut reads) = (walks.operations(1), Vec::new());
    for _ in 0..2 {
        simulator.reset_counts();
        operations.next_into(&mut reads);
        for read in &reads {
            simulator.access(read.address, read.bytes);
        }
    }
    simulator.counts().caches[0].misses as f64
}

#[test]
fn predictions_of_walks_know_the_order_of_nodes() {
    let parents: Vec<u32> = (0..100_000u32)
        .map(|v| v.checked_sub(1).unwrap_or(NO_NODE))
        .collect();
    let list = Shape::from_parents(&parents).unwrap();
    let node = NodeExtent::new(32, 8).unwrap();
    let machine = machine();
    let misses = |layout: Layout| {
        let walks = Accesses::in_order(
            &list,
            &layout.place(&list, node),
            node.bytes,
            list.preorder(),
        );
        let predictor = Predictor::of(&walks);
        let prediction = predictor.predict_accesses(&walks, PageSize::Small4K, &machine);
        let predicted = prediction.misses("cache").unwrap();
        let counted = simulated(&walks);
        assert!(
            (predicted / counted - 1.0).abs() < 0.01,
            "{layout}: {predicted} predicted, {counted} simulated"
        );
        predicted
    };
    let (random, in_order) = (
        misses(Layout::Random { seed: 1 }),
        misses(Layout::DepthFirst),
    );
    assert!(in_order < 0.52 * random, "{random} {in_order}");
}

struct Node {
    key: usize,
    next: Option<Box<Node>>,
}

#[test]
fn a_scattered_list_becomes_better() {
    const LEN: usize = 20_000;
    let mut nodes: Vec<Option<Box<Node>>> = (0..LEN)
        .map(|key| Some(Box::new(Node { key, next: None })))
        .collect();
    let mut list = None;
    for i in 0..LEN {
        // The length has no common factor with the step, so each node comes once.
        let mut node = nodes[i * 7_919 % LEN].take().unwrap();
        node.next = list;
        list = Some(node);
    }
    let machine = machine();
    let morph = Morph::new()
        .machine(&machine)
        .operation(Operation::Walk)
        .predict(true);
    let report = morph
        .run(&mut list, |node, visit| visit(&mut node.next))
        .unwrap();
    assert_eq!(
        (report.nodes, report.verdict()),
        (LEN, Verdict::Better),
        "{report}"
    );
    assert!(report.predicted_speedup().unwrap() > 1.5, "{report}");
    let again = morph
        .run(&mut list, |node, visit| visit(&mut node.next))
        .unwrap();
    assert_eq!(again.verdict(), Verdict::Same, "{again}");

    let keys =
        std::iter::successors(list.as_deref(), |node| node.next.as_deref()).map(|node| node.key);
    assert!(keys.eq((0..LEN).rev().map(|i| i * 7_919 % LEN)));
}
