//! What the figures are made with: the B-tree against a set, the simulated machine against what can
//! be counted by hand, and rows for every point.
//!
//! `cargo test --workspace` leaves it out, because it needs the rivals:
//! `cargo test -p measure --test figures`.

use std::collections::BTreeSet;

use ccmodel::{CacheGeometry, Colouring, Layout};
use measure::figures::btree::{InCoreBTree, Word};
use measure::figures::chain::{Chain, Searched as _, path};
use measure::figures::searches::binary_tree;
use measure::figures::thesis::ThesisMachine;
use measure::figures::{Effort, Kind, Row, draw, node_size, searches};
use measure::search_tree::Node;
use measure::source::SwitchAllocator;
use quickcheck::{TestResult, quickcheck};

#[global_allocator]
static GLOBAL: SwitchAllocator = SwitchAllocator;

/// Whether the tree is a B-tree of the set's keys, and answers as it does.
fn is_the_set<W: Word>(tree: &InCoreBTree<W>, model: &BTreeSet<usize>, others: &[u16]) -> bool {
    let nodes = tree.outline();
    let (most, deepest) = (tree.node_keys_max(), nodes.iter().map(|node| node.1).max());
    let keys: usize = nodes.iter().map(|node| node.0).sum();
    let is_filled = |(index, &(count, _)): (usize, &(usize, usize))| {
        count <= most && (index == 0 || count >= most / 2)
    };
    // Leaves are those of the greatest depth: as many as the inner nodes' keys ask for.
    let inner = nodes.iter().filter(|node| Some(node.1) < deepest);
    let inner_links: usize = inner.map(|node| node.0 + 1).sum();
    keys == model.len()
        && nodes.iter().enumerate().all(is_filled)
        && inner_links + 1 == nodes.len()
        && (model.iter().copied())
            .chain(others.iter().map(|&key| usize::from(key)))
            .all(|key| tree.get(W::new(key)).map(|key| key.value()) == model.get(&key).copied())
}

fn any_b_tree<W: Word>(keys: &[u16], others: &[u16], more_words: u8, share: u8) -> bool {
    let node_bytes =
        InCoreBTree::<W>::NODE_BYTES_MIN + usize::from(more_words % 40) * size_of::<W>();
    let model: BTreeSet<usize> = keys.iter().map(|&key| usize::from(key)).collect();
    let mut tree: InCoreBTree<W> =
        InCoreBTree::new(node_bytes, keys.iter().map(|&key| usize::from(key)));
    let before = tree.outline();
    // A cache of 64 KiB ways, and a share that leaves both parts room.
    let geometry = CacheGeometry::new(1024, 64, 2).expect("it is one");
    let share = 0.1 + f64::from(share) / 320.0;
    let is_right = is_the_set(&tree, &model, others);
    tree.colour(Colouring::new(geometry, share).expect("a share"))
        .expect("the nodes fit");
    // The root is hot.
    let mut first_read = None;
    let _found = tree.get_watched(W::new(0), |offset| first_read = first_read.or(Some(offset)));
    let is_hot = first_read.is_some_and(|offset| (offset as f64) < 65536.0 * share);
    is_right && is_hot && tree.outline() == before && is_the_set(&tree, &model, others)
}

quickcheck! {
    fn b_trees_are_sets(keys: Vec<u16>, others: Vec<u16>, more_words: u8, share: u8) -> bool {
        any_b_tree::<u32>(&keys, &others, more_words, share)
            && any_b_tree::<u64>(&keys, &others, more_words, share)
    }

    fn all_structures_walk_through_the_same_searches(
        keys: u16,
        seed: u64,
        count: u8
    ) -> TestResult {
        let (keys, count) = (usize::from(keys), u64::from(count));
        if keys == 0 {
            return TestResult::discard();
        }
        let layout = Layout::SubtreeCluster { block_bytes: 64 };
        let (binary, _) = binary_tree(keys, layout.into(), true).expect("there is memory");
        let begin = Chain::new(keys, seed);
        let end = binary.follow(begin, count);
        let tree: InCoreBTree<u64> = node_size::b_tree(96, keys);
        let after = |chain: Chain, key| chain.after(key as u64);
        let known = begin.known_keys(count).fold(begin, after);
        let in_range = begin.known_keys(count).all(|key| key < keys);
        TestResult::from_bool(in_range && tree.follow(begin, count) == end && known == end)
    }
}

#[test]
fn larger_trees_have_the_nodes_that_they_should() {
    for node_bytes in [32, 96, 1024] {
        let tree: InCoreBTree<u32> = node_size::b_tree(node_bytes, 5000);
        assert!(is_the_set(&tree, &(0..5000).collect(), &[5000, u16::MAX]));
    }
    // As the thesis has it: nodes of 64 B have 3 to 6 keys, and of 96 B 5 to 10.
    assert_eq!(node_size::b_tree::<u32>(64, 100).node_keys_max(), 6);
    assert_eq!(node_size::b_tree::<u32>(96, 100).node_keys_max(), 10);
}

#[test]
fn a_c_tree_keeps_its_keys_and_gets_its_layout() {
    const KEYS: usize = 1023;
    let block = |node: &Node<u64>| std::ptr::from_ref(node).addr() / 64;
    let c_tree = |keys, coloured| {
        let clusters = Layout::SubtreeCluster { block_bytes: 64 };
        let (tree, report) = binary_tree(keys, clusters.into(), coloured).expect("memory");
        let deepest = (0..KEYS as u64).map(|key| path(&tree, key).count()).max();
        assert_eq!((tree.nodes().count(), report.nodes), (keys, keys));
        assert!((0..keys as u64).all(|key| tree.get(key) == Some(&key)));
        assert!(deepest == Some(10) || keys == 0);
        let is_ours = |node| ccmalloc::contains(std::ptr::from_ref::<Node<u64>>(node).cast());
        assert!(tree.nodes().all(is_ours));
        (tree, report)
    };
    let (tree, report) = c_tree(KEYS, false);
    assert!(report.placed && report.colour.is_none());
    // Two nodes fit into a block, so that about half of the steps stay in one.
    let mut blocks: Vec<usize> = path(&tree, 0).map(block).collect();
    blocks.dedup();
    assert!(blocks.len() <= 8, "{} blocks of 10 nodes", blocks.len());

    let (tree, report) = c_tree(KEYS, true);
    let colour = report.colour.expect("it was asked for");
    assert!(colour.hot_nodes > 0);
    // The root lies in the part of a way that is reserved for the top of the tree.
    let geometry = colour.colouring.geometry();
    let root = tree.nodes().next().expect("it has keys");
    let in_way = std::ptr::from_ref(root).addr() as u64 % geometry.way_bytes();
    assert!(in_way < colour.colouring.hot_way_bytes());
    c_tree(0, true);
}

#[test]
fn a_search_reads_its_nodes_from_the_front() {
    // One node of four keys: a count, and keys and links up to where the search ends.
    let tree: InCoreBTree<u32> = InCoreBTree::new(96, [10, 20, 30, 40].into_iter());
    let read = |key: u32| {
        let mut offsets = Vec::new();
        let found = tree
            .get_watched(key, |offset| offsets.push(offset))
            .copied();
        (found, offsets)
    };
    assert_eq!(read(20), (Some(20), vec![0, 12, 20]));
    // Not there: 30 is the first key that is larger, and the link before it is none.
    assert_eq!(read(25), (None, vec![0, 12, 20, 28, 24]));
    assert_eq!(read(50), (None, vec![0, 12, 20, 28, 36, 40]));
}

#[test]
fn the_thesiss_machine_misses_what_it_should() {
    let cost = |addresses: &[u64]| {
        let mut machine = ThesisMachine::cold();
        addresses.iter().for_each(|&address| machine.read(address));
        let cost = machine.cost_of_each(1);
        (
            cost.reads,
            cost.l1_misses,
            cost.l2_misses,
            cost.tlb_misses,
            cost.cycles,
        )
    };
    // Cold: all miss. The same line of the first level again: a hit. Another one of the same line
    // of the second: a first-level miss.
    assert_eq!(cost(&[0]), (1.0, 1.0, 1.0, Some(1.0), 71.0));
    assert_eq!(cost(&[0, 12]), (2.0, 1.0, 1.0, Some(1.0), 72.0));
    assert_eq!(cost(&[0, 16]), (2.0, 2.0, 1.0, Some(1.0), 78.0));
    // 16 KB apart evict each other from the first level, 1 MB apart from both.
    assert_eq!(
        cost(&[0, 16 << 10, 0]),
        (3.0, 3.0, 2.0, Some(2.0), 3.0 + 18.0 + 128.0)
    );
    assert_eq!(cost(&[0, 1 << 20, 0]), (3.0, 3.0, 3.0, Some(2.0), 213.0));
    // 64 pages have a translation, of 65 in turns none.
    let pages = |count: u64| -> Vec<u64> { (0..2 * count).map(|i| i % count * 8192).collect() };
    assert_eq!(cost(&pages(64)).3, Some(64.0));
    assert_eq!(cost(&pages(65)).3, Some(130.0));
}

/// As little as there can be.
fn tiny() -> Effort {
    Effort {
        searches_max: 100,
        long_runs: 1,
        short_runs: 1,
        node_size_keys: [255, 1023],
        search_keys: vec![1023],
    }
}

/// How many rows are of this kind, all of which must make sense.
fn count(rows: &[Row], kind: Kind) -> usize {
    let of_kind = rows.iter().filter(|row| row.kind == kind);
    of_kind
        .inspect(|row| {
            assert_eq!(row.ns.is_some(), kind == Kind::Measured, "{row:?}");
            assert_eq!(row.cost.is_some(), kind != Kind::Measured, "{row:?}");
            assert!(
                row.height()
                    .is_some_and(|height| height > 0.0 && height.is_finite()),
                "{row:?}"
            );
        })
        .count()
}

#[test]
fn figures_have_all_their_points_in_each_form() {
    let node_size = node_size::rows(&tiny()).expect("there is memory");
    assert_eq!(
        [Kind::Measured, Kind::Simulated, Kind::Model].map(|kind| count(&node_size, kind)),
        [30, 30, 0]
    );
    let searches = searches::rows(&tiny()).expect("there is memory");
    assert_eq!(
        [Kind::Measured, Kind::Simulated, Kind::Model].map(|kind| count(&searches, kind)),
        [14, 10, 4]
    );

    for rows in [node_size, searches] {
        let lines = draw::json_lines(&rows);
        assert_eq!(lines.lines().count(), rows.len());
        for line in lines.lines() {
            let object: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
            assert!(
                object["keys"].is_u64() && object["kind"].is_string(),
                "{line}"
            );
            assert!(object["ns"].is_f64() != object["cycles"].is_f64(), "{line}");
        }
        let table = draw::table(&rows);
        assert!(rows.iter().all(|row| table.contains(row.structure)));
        let folder = std::env::temp_dir().join(format!("figures-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("figure.svg");
        draw::svg(&path, &rows).expect("it is drawn");
        let svg = std::fs::read_to_string(&path).expect("it is there");
        std::fs::remove_dir_all(&folder).expect("it goes");
        assert!(svg.starts_with("<svg") && svg.contains("SIMULATED"));
        assert!(
            rows.iter().filter(|row| row.kind != Kind::Model).count()
                <= svg.matches("<circle").count()
        );
    }
    let wrong = Effort {
        search_keys: vec![1000],
        ..tiny()
    };
    assert!(searches::rows(&wrong).is_err());
}
