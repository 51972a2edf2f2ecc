use quickcheck::quickcheck;

use super::*;
use crate::{Layout, Level, NeighbourShare, Replacement};

const SMALL: PageSize = PageSize::Small4K;
const HUGE: PageSize = PageSize::Huge2M;
const SCATTERED: Layout = Layout::Random { seed: 5 };

fn node() -> NodeExtent {
    NodeExtent::new(24, 8).unwrap()
}

/// Searches in small pages of a random tree of nodes of 24 bytes.
fn predict(nodes: u32, layout: Layout, machine: &Machine) -> Prediction {
    let shape = Shape::random_binary(nodes, 9);
    let placement = layout.place(&shape, node());
    predict_tree(&shape, &placement, node(), SMALL, machine)
}

/// A machine of these levels.
fn machine(levels: Vec<Level>) -> Machine {
    Machine::new("test", Machine::thesis().search, levels).unwrap()
}

fn one_cache(capacity_bytes: f64, step_ns: f64) -> Machine {
    let level = Level::new("L1", LevelKind::Data, 64, capacity_bytes, step_ns);
    machine(vec![level])
}

/// Two data levels, with neighbours as calibration finds them.
fn with_neighbours() -> Machine {
    let mut machine = machine(vec![
        Level::new("L1", LevelKind::Data, 64, 48e3, 4.0),
        Level::new("L2", LevelKind::Data, 64, 1e6, 100.0),
    ]);
    machine.neighbours = [(128, 0.2), (256, 0.3), (4096, 0.3)]
        .map(|(block_bytes, share)| NeighbourShare { block_bytes, share })
        .to_vec();
    assert_eq!(machine.check(), Ok(()));
    machine
}

#[test]
fn the_parts_add_up_and_what_fits_never_misses() {
    let prediction = predict(50_000, Layout::DepthFirst, Machine::this());
    let parts: f64 = prediction.levels.iter().map(|level| level.ns).sum();
    assert!((prediction.cpu_ns + parts - prediction.ns).abs() < 1e-9);
    assert_eq!(prediction.misses("L1"), Some(prediction.levels[0].misses));
    assert_eq!(prediction.misses("L9"), None);
    assert!(predict(0, Layout::DepthFirst, Machine::this()).ns.abs() < 1e-12);
    let small = predict(100, SCATTERED, Machine::this());
    assert!(small.levels.iter().all(|level| level.misses < 1e-9));
    assert!(small.cpu_ns > 0.0);
}

#[test]
fn large_nodes_of_which_little_is_read() {
    let shape = Shape::complete_binary(10_000);
    let large = NodeExtent::new(1024, 64).unwrap();
    let placement = Layout::DepthFirst.place(&shape, large);
    let whole = Predictor::new(&shape);
    let head = whole.clone().touched_bytes(24);
    let [whole, head] = [whole, head].map(|predictor| {
        let prediction = predictor.predict(&placement, large, HUGE, Machine::this());
        prediction.misses("L1").unwrap()
    });
    assert!(whole > 8.0 * head);
}

#[test]
fn larger_nodes_never_become_cheaper() {
    // Scattered nodes have no neighbours but themselves, and their lines are waited for once.
    for machine in [&with_neighbours(), Machine::this()] {
        let shape = Shape::random_binary(60_000, 3);
        let predictor = Predictor::new(&shape);
        let mut before = 0.0;
        for bytes in [64, 128, 192, 256, 320, 512, 1024] {
            let node = NodeExtent::new(bytes, 64).unwrap();
            let placement = SCATTERED.place(&shape, node);
            let ns = predictor.predict(&placement, node, HUGE, machine).ns;
            assert!(ns >= 0.999 * before, "{bytes} bytes: {ns} after {before}");
            before = ns;
        }
    }
}

#[test]
fn far_misses_near_each_other_are_cheaper() {
    let near = with_neighbours();
    let alone = machine(near.levels.clone());
    let ns = |layout, machine: &Machine| predict(200_000, layout, machine).ns;
    let veb = Layout::VanEmdeBoas;
    assert!(ns(veb, &near) < 0.9 * ns(veb, &alone));
    assert!(ns(SCATTERED, &near) > 0.97 * ns(SCATTERED, &alone));
}

#[test]
fn a_node_larger_than_the_cache_misses_all_its_lines() {
    let shape = Shape::complete_binary(1);
    let node = NodeExtent::new(1_000_000, 8).unwrap();
    let placement = Layout::DepthFirst.place(&shape, node);
    // Known by its capacities.
    let mut machine = Machine::thesis();
    machine.hierarchy = None;
    let prediction = predict_tree(&shape, &placement, node, SMALL, &machine);
    assert!((prediction.misses("L1").unwrap() - 62_500.0).abs() < 1.0);
    assert!(prediction.misses("L2").unwrap().abs() < 1e-9);
    let crowded = prediction.crowded_levels().map(|level| level.name.as_str());
    assert!(crowded.eq(["L1"]), "what fits is not crowded");
    let usual = predict(100_000, Layout::VanEmdeBoas, &with_neighbours());
    assert_eq!(usual.crowded_levels().count(), 0);
}

#[test]
fn page_levels_count_only_for_their_pages() {
    let machine = Machine::this();
    let shape = Shape::complete_binary(3);
    let placement = Layout::DepthFirst.place(&shape, node());
    let levels = |pages| {
        let prediction = predict_tree(&shape, &placement, node(), pages, machine);
        prediction.levels.len()
    };
    let is_translation = |level: &&Level| level.kind != LevelKind::Data;
    let translations = machine.levels.iter().filter(is_translation).count();
    assert_eq!(levels(SMALL), levels(HUGE) + translations);
}

#[test]
fn independent_operations_overlap_as_the_machine_does() {
    let mut machine = with_neighbours();
    machine.overlap = LookAhead {
        misses: 3.0,
        nodes_ahead: 100.0,
        branches: 2.0,
    };
    let mut alone = machine.clone();
    alone.overlap = LookAhead::NONE;
    let shape = Shape::random_binary(100_000, 1);
    let placement = SCATTERED.place(&shape, node());
    for style in [SearchStyle::Branches, SearchStyle::BranchFree] {
        let predict = |overlap, machine: &Machine| {
            let predictor = Predictor::new(&shape).style(style).overlap(overlap);
            predictor.predict(&placement, node(), HUGE, machine)
        };
        let one = predict(Overlap::Dependent, &machine);
        let many = predict(Overlap::Independent, &machine);
        let waits = |prediction: &Prediction| prediction.ns - prediction.cpu_ns;
        let (operations, misses) = match style {
            SearchStyle::Branches => (1.0, 2.0),
            SearchStyle::BranchFree => (1.0 + 100.0 / one.nodes_visited, 3.0),
        };
        assert!((many.cpu_ns * operations - one.cpu_ns).abs() < 1e-9 * one.cpu_ns);
        assert!((waits(&many) * misses - waits(&one)).abs() < 1e-9 * one.ns);
        assert_eq!(many.misses("L2"), one.misses("L2"), "what is missed stays");
        assert!(many.ns_low < many.ns && many.ns < many.ns_high);
        let dependent = predict(Overlap::Dependent, &alone);
        assert_eq!(predict(Overlap::Independent, &alone), dependent);
    }
}

fn level(nodes: f64, node_bytes: f64, lines_per_visit: f64) -> SearchLevel {
    SearchLevel {
        nodes,
        node_bytes,
        lines_per_visit,
        rounds_per_visit: 1.0,
        cpu_ns_per_visit: 5.0,
    }
}

#[test]
fn levels_of_known_structures() {
    // One level of a million lines: hit ratio C / W.
    let array = level(1e6, 64.0, 1.0);
    let prediction = predict_levels(&[array], HUGE, &one_cache(16e6, 100.0));
    assert!((prediction.levels[0].misses - 0.75).abs() < 1e-4);
    assert!((prediction.ns - prediction.cpu_ns - 75.0).abs() < 0.1);
    // Lines that are requested together cost one latency.
    let predict = |levels: &[SearchLevel]| predict_levels(levels, SMALL, Machine::this());
    let b_tree = [1.0, 1e6 / 256.0, 1e6 / 16.0, 1e6].map(|nodes| level(nodes, 256.0, 2.0));
    let in_turn = b_tree.map(|level| SearchLevel {
        rounds_per_visit: 2.0,
        ..level
    });
    let (together, in_turn) = (predict(&b_tree), predict(&in_turn));
    let misses = |prediction: &Prediction| prediction.misses("L2").unwrap();
    assert!((misses(&together) - misses(&in_turn)).abs() < 1e-9);
    assert!(in_turn.ns > 1.3 * together.ns);
    // Levels without nodes, and none.
    let no_nodes = [f64::NAN, 0.0].map(|nodes| level(nodes, 256.0, 2.0));
    assert_eq!(predict(&[&b_tree[..], &no_nodes].concat()), together);
    assert!(predict(&[]).ns.abs() < 1e-12);
    // Levels that read nothing.
    let mut machine = with_neighbours();
    for replacement in [Replacement::Lru, Replacement::Random] {
        machine.replacement = replacement;
        for nodes in [16.0, 1e9] {
            let prediction = predict_levels(&[level(nodes, 256.0, 0.0)], SMALL, &machine);
            assert!((prediction.ns - 5.0).abs() < 1e-9);
        }
    }
}

#[test]
fn levels_and_a_shape_predict_the_same_structure_alike() {
    // An implicit tree of one line a node, level by level: as levels, and as a shape of fanout 17.
    let fanout = 17u32;
    let counts = [1, fanout, fanout * fanout, fanout.pow(3)];
    let levels = counts.map(|nodes| level(f64::from(nodes), 64.0, 1.0));
    let total: u32 = counts.iter().sum();
    let parent = |v: u32| v.checked_sub(1).map_or(crate::NO_NODE, |v| v / fanout);
    let shape = Shape::from_generated((0..total).map(parent).collect());
    // Searches end at the leaves only.
    let leaves = total - fanout.pow(3);
    let weight = |v: u32| f64::from(u8::from(v >= leaves));
    let weights: Vec<f64> = (0..total).map(weight).collect();
    let line = NodeExtent::new(64, 64).unwrap();
    let placement = Layout::BreadthFirst.place(&shape, line);
    let machine = Machine::this();
    let walked = Predictor::weighted(&shape, &weights).predict(&placement, line, HUGE, machine);
    let described = predict_levels(&levels, HUGE, machine);
    for (a, b) in walked.levels.iter().zip(&described.levels) {
        let allowed = 1e-3 + 0.01 * b.misses;
        assert!((a.misses - b.misses).abs() < allowed, "{a:?} {b:?}");
    }
}

quickcheck! {
    fn a_larger_cache_never_costs_more(nodes: u16, small: u32, large: u32) -> bool {
        let ns = |capacity| {
            let machine = one_cache(f64::from(capacity) + 1.0, 10.0);
            predict(u32::from(nodes), Layout::VanEmdeBoas, &machine).ns
        };
        let (small, large) = (small % 2_000_000, large % 2_000_000);
        ns(small.max(large)) <= ns(small.min(large)) + 1e-6
    }
}
