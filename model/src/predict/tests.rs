use quickcheck::quickcheck;

use super::*;
use crate::{Layout, NeighbourShare, Replacement};

fn node() -> NodeExtent {
    NodeExtent::new(24, 8).unwrap()
}

fn predict(nodes: u32, layout: Layout, machine: &Machine) -> Prediction {
    let shape = Shape::random_binary(nodes, 9);
    predict_tree(
        &shape,
        &layout.place(&shape, node()),
        node(),
        PageSize::Small4K,
        machine,
    )
}

#[test]
fn the_parts_add_up() {
    let prediction = predict(50_000, Layout::DepthFirst, Machine::this());
    let parts: f64 = prediction.levels.iter().map(|level| level.ns).sum();
    assert!((prediction.cpu_ns + parts - prediction.ns).abs() < 1e-9);
    assert_eq!(prediction.misses("L1"), Some(prediction.levels[0].misses));
    assert_eq!(prediction.misses("L9"), None);
}

#[test]
fn an_empty_tree_costs_nothing_and_a_small_one_never_misses() {
    let empty = predict(0, Layout::DepthFirst, Machine::this());
    assert!(empty.ns.abs() < 1e-12);
    let small = predict(100, Layout::Random { seed: 1 }, Machine::this());
    assert!(small.levels.iter().all(|level| level.misses < 1e-9));
    assert!(small.cpu_ns > 0.0);
}

/// A machine of one level.
fn one_cache(capacity_bytes: f64, step_ns: f64) -> Machine {
    let level = Level::new("L1", LevelKind::Data, 64, capacity_bytes, step_ns);
    Machine::new("one cache", Machine::thesis().search, vec![level]).unwrap()
}

#[test]
fn large_nodes_of_which_little_is_read() {
    let shape = Shape::complete_binary(10_000);
    let large = NodeExtent::new(1024, 64).unwrap();
    let placement = Layout::DepthFirst.place(&shape, large);
    let whole = Predictor::new(&shape);
    let head = whole.clone().touched_bytes(24);
    let misses = |predictor: &Predictor| {
        let machine = Machine::this();
        predictor
            .predict(&placement, large, PageSize::Huge2M, machine)
            .misses("L1")
            .unwrap()
    };
    assert!(misses(&whole) > 8.0 * misses(&head));
}

/// Two data levels and pages, with neighbours as calibration finds them.
fn neighbourly() -> Machine {
    let mut machine = Machine::new(
        "neighbourly",
        Machine::thesis().search,
        vec![
            Level::new("L1", LevelKind::Data, 64, 48e3, 4.0),
            Level::new("L2", LevelKind::Data, 64, 1e6, 100.0),
        ],
    )
    .unwrap();
    machine.neighbours = [(128, 0.2), (256, 0.3), (4096, 0.3)]
        .map(|(block_bytes, share)| NeighbourShare { block_bytes, share })
        .to_vec();
    assert_eq!(machine.check(), Ok(()));
    machine
}

#[test]
fn larger_nodes_never_become_cheaper() {
    // Scattered nodes have no neighbours but themselves, and their lines are waited for once.
    for machine in [&neighbourly(), Machine::this()] {
        let shape = Shape::random_binary(60_000, 3);
        let predictor = Predictor::new(&shape);
        let mut before = 0.0;
        for bytes in [64, 128, 192, 256, 320, 512, 1024] {
            let node = NodeExtent::new(bytes, 64).unwrap();
            let placement = Layout::Random { seed: 5 }.place(&shape, node);
            let ns = predictor
                .predict(&placement, node, PageSize::Huge2M, machine)
                .ns;
            assert!(ns >= 0.999 * before, "{bytes} bytes: {ns} after {before}");
            before = ns;
        }
    }
}

#[test]
fn far_misses_near_each_other_are_cheaper() {
    let mut alone = neighbourly();
    alone.neighbours.clear();
    let ns = |layout, machine: &Machine| predict(200_000, layout, machine).ns;
    let (veb, random) = (Layout::VanEmdeBoas, Layout::Random { seed: 5 });
    assert!(ns(veb, &neighbourly()) < 0.9 * ns(veb, &alone));
    assert!(ns(random, &neighbourly()) > 0.97 * ns(random, &alone));
}

#[test]
fn a_node_larger_than_the_cache_misses_all_its_lines() {
    let shape = Shape::complete_binary(1);
    let node = NodeExtent::new(1_000_000, 8).unwrap();
    let placement = Layout::DepthFirst.place(&shape, node);
    // Known by its capacities.
    let mut machine = Machine::thesis();
    machine.hierarchy = None;
    let prediction = predict_tree(&shape, &placement, node, PageSize::Small4K, &machine);
    assert!((prediction.misses("L1").unwrap() - 62_500.0).abs() < 1.0);
    assert!(prediction.misses("L2").unwrap().abs() < 1e-9);
    let crowded = prediction.crowded_levels().map(|level| level.name.as_str());
    assert!(crowded.eq(["L1"]), "what fits is not crowded");
    let usual = predict(100_000, Layout::VanEmdeBoas, &neighbourly());
    assert_eq!(usual.crowded_levels().count(), 0);
}

#[test]
fn page_levels_count_only_for_their_pages() {
    let machine = Machine::this();
    let levels = |pages| {
        let shape = Shape::complete_binary(3);
        let placement = Layout::DepthFirst.place(&shape, node());
        let prediction = predict_tree(&shape, &placement, node(), pages, machine);
        prediction.levels.len()
    };
    let translations = machine
        .levels
        .iter()
        .filter(|level| level.kind != LevelKind::Data);
    let in_huge_pages = levels(PageSize::Huge2M);
    assert_eq!(
        levels(PageSize::Small4K),
        in_huge_pages + translations.count()
    );
}

#[test]
fn independent_operations_overlap_as_the_machine_does() {
    let mut machine = neighbourly();
    machine.overlap = LookAhead {
        misses: 3.0,
        nodes_ahead: 100.0,
        branches: 2.0,
    };
    let shape = Shape::random_binary(100_000, 1);
    let placement = Layout::Random { seed: 1 }.place(&shape, node());
    let predict = |style, overlap, machine: &Machine| {
        let predictor = Predictor::new(&shape).style(style).overlap(overlap);
        predictor.predict(&placement, node(), PageSize::Huge2M, machine)
    };
    for style in [SearchStyle::Branches, SearchStyle::BranchFree] {
        let (one, many) = (
            predict(style, Overlap::Dependent, &machine),
            predict(style, Overlap::Independent, &machine),
        );
        let waits = |prediction: &Prediction| prediction.ns - prediction.cpu_ns;
        let (operations, misses) = match style {
            SearchStyle::Branches => (1.0, 2.0),
            SearchStyle::BranchFree => (1.0 + 100.0 / one.nodes_visited, 3.0),
        };
        assert!((many.cpu_ns * operations - one.cpu_ns).abs() < 1e-9 * one.cpu_ns);
        assert!((waits(&many) * misses - waits(&one)).abs() < 1e-9 * one.ns);
        assert_eq!(many.misses("L2"), one.misses("L2"), "what is missed stays");
        assert!(many.ns_low < many.ns && many.ns < many.ns_high);
        let alone = Machine {
            overlap: LookAhead::NONE,
            ..machine.clone()
        };
        let alone = |overlap| predict(style, overlap, &alone);
        assert_eq!(alone(Overlap::Independent), alone(Overlap::Dependent));
    }
}

fn b_tree(nodes: f64) -> Vec<SearchLevel> {
    [1.0, nodes / 256.0, nodes / 16.0, nodes]
        .into_iter()
        .map(|nodes| SearchLevel {
            nodes: nodes.max(1.0),
            node_bytes: 256.0,
            lines_per_visit: 2.0,
            rounds_per_visit: 1.0,
            cpu_ns_per_visit: 5.0,
        })
        .collect()
}

#[test]
fn levels_of_one_huge_array_agree_with_the_uniform_formula() {
    // One level of a million lines: hit ratio C / W.
    let array = SearchLevel {
        nodes: 1e6,
        node_bytes: 64.0,
        lines_per_visit: 1.0,
        rounds_per_visit: 1.0,
        cpu_ns_per_visit: 0.0,
    };
    let prediction = predict_levels(&[array], PageSize::Huge2M, &one_cache(16e6, 100.0));
    assert!((prediction.levels[0].misses - 0.75).abs() < 1e-4);
    assert!((prediction.ns - 75.0).abs() < 0.1);
}

#[test]
fn lines_requested_together_cost_one_latency() {
    let together = predict_levels(&b_tree(1e6), PageSize::Small4K, Machine::this());
    let mut levels = b_tree(1e6);
    for level in &mut levels {
        level.rounds_per_visit = 2.0;
    }
    let in_turn = predict_levels(&levels, PageSize::Small4K, Machine::this());
    let misses = |prediction: &Prediction| prediction.misses("L2").unwrap();
    assert!((misses(&together) - misses(&in_turn)).abs() < 1e-9);
    assert!(in_turn.ns > 1.3 * together.ns);
}

#[test]
fn levels_that_read_nothing_or_make_no_sense() {
    let base = b_tree(16.0)[3];
    let level = SearchLevel {
        lines_per_visit: 0.0,
        ..base
    };
    let machine = Machine::this();
    for replacement in [Replacement::Lru, Replacement::Random] {
        let mut machine = neighbourly();
        machine.replacement = replacement;
        for nodes in [16.0, 1e9] {
            let levels = [SearchLevel { nodes, ..level }];
            let prediction = predict_levels(&levels, PageSize::Small4K, &machine);
            assert!((prediction.ns - level.cpu_ns_per_visit).abs() < 1e-9);
        }
    }
    let predict = |levels: &[SearchLevel]| predict_levels(levels, PageSize::Small4K, machine);
    let mut levels = b_tree(1e6);
    let sane = predict(&levels);
    levels.extend([f64::NAN, 0.0].map(|nodes| SearchLevel { nodes, ..base }));
    assert_eq!(predict(&levels), sane);
    assert!(predict(&[]).ns.abs() < 1e-12);
}

#[test]
fn levels_and_a_shape_predict_the_same_structure_alike() {
    // An implicit tree of one line a node, level by level: as levels, and as a shape of fanout 17.
    let fanout = 17u32;
    let counts = [1, fanout, fanout * fanout, fanout.pow(3)];
    let levels = counts.map(|nodes| SearchLevel {
        nodes: f64::from(nodes),
        node_bytes: 64.0,
        lines_per_visit: 1.0,
        rounds_per_visit: 1.0,
        cpu_ns_per_visit: 1.0,
    });
    let total: u32 = counts.iter().sum();
    let parent = |v: u32| {
        v.checked_sub(1)
            .map_or(crate::NO_NODE, |before| before / fanout)
    };
    let shape = Shape::from_generated((0..total).map(parent).collect());
    // Searches end at the leaves only.
    let leaves = total - fanout.pow(3);
    let weights: Vec<f64> = (0..total)
        .map(|v| f64::from(u8::from(v >= leaves)))
        .collect();
    let line = NodeExtent::new(64, 64).unwrap();
    let placement = Layout::BreadthFirst.place(&shape, line);
    let (pages, machine) = (PageSize::Huge2M, Machine::this());
    let walked = Predictor::weighted(&shape, &weights).predict(&placement, line, pages, machine);
    let described = predict_levels(&levels, pages, machine);
    for (a, b) in walked.levels.iter().zip(&described.levels) {
        let allowed = 1e-3 + 0.01 * b.misses;
        assert!((a.misses - b.misses).abs() < allowed, "{a:?} {b:?}");
    }
}

quickcheck! {
    fn a_larger_cache_never_costs_more(nodes: u16, small: u32, large: u32) -> bool {
        let shape = Shape::random_binary(u32::from(nodes), 2);
        let placement = Layout::VanEmdeBoas.place(&shape, node());
        let ns = |capacity| {
            let machine = one_cache(f64::from(capacity) + 1.0, 10.0);
            predict_tree(&shape, &placement, node(), PageSize::Small4K, &machine).ns
        };
        let (small, large) = (small % 2_000_000, large % 2_000_000);
        ns(small.max(large)) <= ns(small.min(large)) + 1e-6
    }
}
