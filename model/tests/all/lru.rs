//! The characteristic time compared with simulated caches.

use ccmodel::{
    Accesses, CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, Layout, Level, LevelKind,
    Machine, NO_NODE, NodeExtent, PageSize, Replacement, ReplacementPolicy, Shape, Simulator,
    predict_tree,
};

const NODE_BYTES: u32 = 32;

fn node() -> NodeExtent {
    NodeExtent::new(NODE_BYTES, 8).unwrap()
}

/// Misses of an operation in one set of `ways` lines, over `counted` operations.
fn simulated(accesses: &Accesses, ways: u64, policy: ReplacementPolicy, counted: u32) -> f64 {
    let mut cache = CacheLevel::lru("L1", CacheGeometry::new(1, 64, ways).unwrap());
    cache.policy = policy;
    let hierarchy = Hierarchy::new(vec![cache], Inclusion::NonInclusive, Vec::new()).unwrap();
    let mut simulator = Simulator::new(&hierarchy, Frames::Identity);
    let (mut operations, mut reads) = (accesses.operations(1), Vec::new());
    for operation in 0..2 * counted {
        if operation == counted {
            simulator.reset_counts();
        }
        operations.next_into(&mut reads);
        for read in &reads {
            simulator.access(read.address, read.bytes);
        }
    }
    simulator.cache_misses()[0] as f64 / f64::from(counted)
}

#[test]
fn characteristic_time_agrees_with_simulated_caches() {
    let shapes = [
        Shape::random_binary(20_000, 5),
        Shape::complete_binary(16_383),
    ];
    let layouts = ["random:1", "dfs", "veb"].map(|name| name.parse::<Layout>().unwrap());
    let cases = shapes
        .iter()
        .flat_map(|shape| layouts.map(|layout| (shape, layout)));
    for (shape, layout) in cases {
        let placement = layout.place(shape, node());
        let accesses = Accesses::searches(shape, &placement, NODE_BYTES, None);
        let footprint = accesses.block_probabilities(64).footprint();
        for (policy, replacement) in [
            (ReplacementPolicy::Lru, Replacement::Lru),
            (ReplacementPolicy::Random, Replacement::Random),
        ] {
            for capacity in [256, 1024] {
                let simulated = simulated(&accesses, capacity, policy, 10_000);
                let predicted = footprint.misses(capacity as f64, replacement);
                let error = predicted / simulated - 1.0;
                let what = format!("{layout}, {capacity}, {policy:?}: {error}");
                assert!(error.abs() < 0.08, "{what}");
            }
        }
    }
}

#[test]
fn operations_as_long_as_the_cache_miss_more_than_predicted() {
    // A known limit: walks along one list come in an order, which the independent reference model
    // does not know.
    let nodes = 2000;
    let parent = |v: u32| v.checked_sub(1).unwrap_or(NO_NODE);
    let parents: Vec<u32> = (0..nodes).map(parent).collect();
    let list = Shape::from_parents(&parents).unwrap();
    let node = NodeExtent::new(NODE_BYTES, 64).unwrap();
    let placement = Layout::DepthFirst.place(&list, node);
    let accesses = Accesses::searches(&list, &placement, NODE_BYTES, None);
    let footprint = accesses.block_probabilities(64).footprint();
    for capacity in [200, 1000] {
        let simulated = simulated(&accesses, capacity, ReplacementPolicy::Lru, 600);
        let predicted = footprint.misses(capacity as f64, Replacement::Lru);
        assert!(predicted < 0.95 * simulated, "{predicted} {simulated}");
        // So the prediction says that it is not to be believed.
        let level = Level::new("L1", LevelKind::Data, 64, (64 * capacity) as f64, 1.0);
        let machine = Machine::new("one cache", Machine::thesis().search, vec![level]).unwrap();
        let prediction = predict_tree(&list, &placement, node, PageSize::Huge2M, &machine);
        assert_eq!(prediction.crowded_levels().count(), 1);
    }
}
