//! What the figures are made with: the B-tree against a set, the simulated machine against counts
//! by hand, and rows for every point.
//!
//! Needs the rivals, so it is run by name: `cargo test -p measure --test figures`.

use std::collections::BTreeSet;
use std::iter::successors;

use ccmodel::{CacheGeometry, Colouring, Layout};
use ccmorph::Report;
use measure::figures::btree::{InCoreBTree, Word};
use measure::figures::searched::{Chain, Searched};
use measure::figures::thesis::ThesisMachine;
use measure::figures::{Effort, FIGURES, Kind, Row, b_tree, binary_tree, draw};
use measure::search_tree::{Node, Tree};
use measure::source::SwitchAllocator;
use quickcheck::quickcheck;

#[global_allocator]
static GLOBAL: SwitchAllocator = SwitchAllocator;

/// Builds a B-tree with and without colours, and checks both against a set.
fn is_a_set<W: Word>(keys: &[u16], others: &[u16], more_words: u8, share: u8) -> bool {
    let node_bytes =
        InCoreBTree::<W>::NODE_BYTES_MIN + usize::from(more_words % 40) * size_of::<W>();
    let set: BTreeSet<usize> = keys.iter().copied().map(usize::from).collect();
    // A cache with 64 KiB in a way, and a share that leaves both parts room.
    let geometry = CacheGeometry::new(1024, 64, 2).expect("it is one");
    let share = 0.1 + f64::from(share) / 320.0;
    let colouring = Colouring::new(geometry, share).expect("a share");
    [None, Some(colouring)].into_iter().all(|colouring| {
        let keys = keys.iter().copied().map(usize::from);
        let tree: InCoreBTree<W> =
            InCoreBTree::new(node_bytes, keys, colouring).expect("the nodes fit");
        let word = |key| W::try_from(key).expect("it is small");
        let others = others.iter().copied().map(usize::from);
        let answers = set.iter().copied().chain(others).all(|key| {
            let expected = set.contains(&key).then(|| word(key));
            tree.get(word(key)).copied() == expected
        });
        // All nodes but the root are half full.
        let nodes = size_of_val(tree.words()) / node_bytes;
        let is_filled = nodes <= 1 + set.len().saturating_sub(1) / (tree.node_keys_max() / 2);
        // With colours there are gaps between nodes, and the root is hot.
        let mut first_read = None;
        let _found = tree.get_watched(word(0), |offset| {
            first_read.get_or_insert(offset);
        });
        let is_hot = first_read.is_some_and(|offset| (offset as f64) < 65536.0 * share);
        answers && (is_filled || colouring.is_some()) && (is_hot || colouring.is_none())
    })
}

/// A tree of `keys`, morphed into clusters of a block, and with colours where asked to.
fn c_tree(keys: usize, coloured: bool) -> (Tree<u64>, Report) {
    let clusters = Layout::SubtreeCluster { block_bytes: 64 };
    binary_tree(keys, clusters.into(), coloured).expect("there is memory")
}

quickcheck! {
    fn b_trees_are_sets(keys: Vec<u16>, others: Vec<u16>, more_words: u8, share: u8) -> bool {
        is_a_set::<u32>(&keys, &others, more_words, share)
            && is_a_set::<u64>(&keys, &others, more_words, share)
    }

    fn all_structures_walk_through_the_same_searches(
        keys: u16,
        seed: u64,
        count: u8
    ) -> bool {
        let (keys, searches) = (1 + usize::from(keys), u64::from(count));
        let (tree, _report) = c_tree(keys, true);
        let b_tree: InCoreBTree<u64> = b_tree(96, keys, None).expect("it has no colours");
        let all = [Searched::binary("", tree), Searched::b_tree("", b_tree)];
        let begin = Chain::new(keys, seed);
        let known = || begin.known_keys().take(usize::from(count));
        let end = known().fold(begin, |chain, key| chain.after(key as u64));
        let in_range = known().all(|key| key < keys);
        let mut ends = all.iter().map(|searched| searched.follow(begin, searches));
        in_range && ends.all(|found| found == end)
    }
}

#[test]
fn larger_trees_have_all_keys_and_the_thesiss_nodes() {
    // In the thesis, nodes of 64 B have 3 to 6 keys, and of 96 B 5 to 10.
    for (node_bytes, keys_max) in [(32, 2), (64, 6), (96, 10), (1024, 126)] {
        let tree: InCoreBTree<u32> = b_tree(node_bytes, 5000, None).expect("no colours");
        assert_eq!(tree.node_keys_max(), keys_max);
        assert!((0..5000).all(|key| tree.get(key) == Some(&key)));
        assert_eq!([5000, u32::MAX].map(|key| tree.get(key)), [None, None]);
    }
}

fn levels(link: &Option<Box<Node<u64>>>) -> u32 {
    let below = |node: &Node<u64>| levels(&node.left).max(levels(&node.right));
    link.as_deref().map_or(0, |node| 1 + below(node))
}

#[test]
fn a_c_tree_keeps_its_keys_and_gets_its_layout() {
    for (keys, coloured) in [(1023, false), (1023, true), (0, true)] {
        let (tree, report) = c_tree(keys, coloured);
        assert_eq!((tree.nodes().count(), report.nodes), (keys, keys));
        assert!((0..keys as u64).all(|key| tree.get(key) == Some(&key)));
        let address = |node: &Node<u64>| std::ptr::from_ref(node).addr();
        let is_ours = |node| ccmalloc::contains(std::ptr::from_ref::<Node<u64>>(node).cast());
        assert!(tree.nodes().all(is_ours) && (report.placed || coloured));
        assert_eq!(levels(&tree.root), if keys == 0 { 0 } else { 10 });
        // Ten nodes lead to the least key. Two fit into a block, so half of the steps stay in one.
        let path = successors(tree.root.as_deref(), |node| node.left.as_deref());
        let mut blocks: Vec<usize> = path.map(|node| address(node) / 64).collect();
        assert_eq!(blocks.len(), if keys == 0 { 0 } else { 10 });
        blocks.dedup();
        assert!(coloured || blocks.len() <= 8, "{} blocks", blocks.len());
        assert_eq!(report.colour.is_some(), coloured && keys > 0);
        if let (Some(colour), Some(root)) = (report.colour, tree.nodes().next()) {
            assert!(colour.hot_nodes > 0);
            // The root lies in the part of a way that is reserved for the top of the tree.
            let in_way = address(root) as u64 % colour.colouring.geometry().way_bytes();
            assert!(in_way < colour.colouring.hot_way_bytes());
        }
    }
}

#[test]
fn a_search_reads_its_nodes_from_the_front() {
    // One node of four keys: a count, and keys and links up to where the search ends.
    let keys = [10, 20, 30, 40].into_iter();
    let tree: InCoreBTree<u32> = InCoreBTree::new(96, keys, None).expect("no colours");
    // 25: 30 is the first key that is larger, and the link before it is none.
    for (key, found, reads) in [
        (20, Some(&20), &[0, 12, 20][..]),
        (25, None, &[0, 12, 20, 28, 24]),
        (50, None, &[0, 12, 20, 28, 36, 40]),
    ] {
        let mut offsets = Vec::new();
        assert_eq!(tree.get_watched(key, |offset| offsets.push(offset)), found);
        assert_eq!(offsets, reads);
    }
}

#[test]
fn the_thesiss_machine_misses_what_it_should() {
    let cost = |addresses: &[u64]| {
        let mut machine = ThesisMachine::cold();
        addresses.iter().for_each(|&address| machine.read(address));
        let cost = machine.cost_of_each(1);
        let misses = (cost.l1_misses, cost.l2_misses, cost.tlb_misses);
        (cost.reads, misses, cost.cycles)
    };
    for (addresses, expected) in [
        // Cold: all miss. The same line of the first level again: a hit. Another one of the same
        // line of the second: a first-level miss.
        (&[0][..], (1.0, (1.0, 1.0, 1.0), 71.0)),
        (&[0, 12], (2.0, (1.0, 1.0, 1.0), 72.0)),
        (&[0, 16], (2.0, (2.0, 1.0, 1.0), 78.0)),
        // 16 KB apart evict each other from the first level, 1 MB apart from both.
        (&[0, 16 << 10, 0], (3.0, (3.0, 2.0, 2.0), 149.0)),
        (&[0, 1 << 20, 0], (3.0, (3.0, 3.0, 2.0), 213.0)),
    ] {
        assert_eq!(cost(addresses), expected, "{addresses:?}");
    }
    // 64 pages have a translation, of 65 in turns none.
    for (pages, misses) in [(64, 64.0), (65, 130.0)] {
        let addresses: Vec<u64> = (0..2 * pages).map(|i| i % pages * 8192).collect();
        assert_eq!(cost(&addresses).1.2.to_bits(), f64::to_bits(misses));
    }
}

#[test]
fn figures_have_all_their_points_in_each_form() {
    let tiny = Effort {
        searches_max: 100,
        long_runs: 1,
        short_runs: 1,
        node_size_keys: [255, 1023],
        search_keys: vec![1023],
    };
    for ((_, make), expected) in FIGURES.iter().zip([[30, 30], [14, 10]]) {
        let rows = make(&tiny).expect("there is memory");
        let of_kind = |kind| rows.iter().filter(|row: &&Row| row.kind == kind).count();
        let kinds = [Kind::Measured, Kind::Simulated];
        assert_eq!(kinds.map(of_kind), expected);
        let (lines, table) = (draw::json_lines(&rows), draw::table(&rows));
        assert_eq!(lines.lines().count(), rows.len());
        for (row, line) in rows.iter().zip(lines.lines()) {
            assert_eq!(row.ns.is_some(), row.kind == Kind::Measured, "{line}");
            let height = row.height();
            assert!(height > 0.0 && height.is_finite(), "{line}");
            let object: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
            assert!(object["keys"].is_u64() && object["kind"].is_string());
            assert!(object["ns"].is_f64() != object["cycles"].is_f64());
            assert!(table.contains(row.structure));
        }
        let svg = draw::svg(&rows).expect("there are rows");
        assert!(svg.starts_with("<svg") && svg.contains("SIMULATED"));
        assert_eq!(svg.matches("<circle").count(), rows.len());
    }
    assert!(draw::svg(&[]).is_err());
    let wrong = Effort {
        search_keys: vec![1000],
        ..tiny
    };
    assert!(FIGURES[1].1(&wrong).is_err());
}
