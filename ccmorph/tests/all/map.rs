//! Maps: their counts against counting by hand, and their pictures against the rules of XML.

use crate::tree::{Link, Node, build, keys_up_to};
use ccmodel::NO_NODE;
use ccmorph::{Layout, Map, MapStyle, Morph, TreeNode, map};
use quickcheck::quickcheck;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A forest at any addresses: each node hangs below an earlier one, or is a root.
fn forest(seeds: &[(u16, u32)]) -> (Vec<u32>, Vec<u64>) {
    let parent = |(v, &(seed, _)): (u32, &(u16, u32))| match u32::from(seed).checked_rem(v + 1) {
        Some(up) if up < v => up,
        _ => NO_NODE,
    };
    let addresses = seeds
        .iter()
        .map(|&(_, address)| u64::from(address) % 40_000 * 8);
    ((0..).zip(seeds).map(parent).collect(), addresses.collect())
}

quickcheck! {
    fn counts_are_those_by_hand(seeds: Vec<(u16, u32)>, shift: u8) -> bool {
        let (parents, addresses) = forest(&seeds);
        let bytes = 1_u64 << (shift % 15);
        let map = Map::new(&parents, addresses.clone(), 24).unwrap();
        let up = |v: usize| Some(parents[v] as usize).filter(|&up| up < parents.len());
        let piece = |v: usize| addresses[v] / bytes;
        let within = |v: usize| up(v).is_some_and(|up| piece(up) == piece(v));

        assert_eq!((map.len(), map.is_empty()), (parents.len(), parents.is_empty()));
        assert_eq!(map.edges(), (0..parents.len()).filter(|&v| up(v).is_some()).count());
        assert_eq!(map.edges_within(bytes), (0..parents.len()).filter(|&v| within(v)).count());
        let mut by_piece: BTreeMap<u64, BTreeSet<(u64, u32)>> = BTreeMap::new();
        for (v, &address) in (0..).zip(&addresses) {
            by_piece.entry(address / bytes).or_default().insert((address, v));
        }
        assert_eq!(map.pieces(bytes).count(), by_piece.len());
        for (found, (&number, nodes)) in map.pieces(bytes).zip(&by_piece) {
            assert_eq!(found.address(), number * bytes);
            let found_nodes = found.nodes().map(|node| (node.address, node.number));
            assert!(found_nodes.eq(nodes.iter().copied()));
            let leaving = (0..parents.len())
                .filter_map(|v| up(v).map(|up| (piece(up), piece(v))))
                .filter(|ends| (ends.0 == number) != (ends.1 == number))
                .count();
            assert_eq!(found.edges_leaving(), leaving);
        }
        let all_within: usize = map.pieces(bytes).map(|piece| piece.edges_within()).sum();
        assert_eq!(all_within, map.edges_within(bytes));

        // The mean over the ways to all nodes is what a search touches.
        let mut touched = 0;
        for node in map.nodes() {
            let path = map.path_to(node.number);
            assert_eq!((path.len(), path[0].parent), (node.depth as usize + 1, None));
            assert!(path.windows(2).all(|pair| pair[1].parent == Some(pair[0].number)));
            assert_eq!(path.last(), Some(&node));
            touched += map.touched_on_path(node.number, bytes);
        }
        let levels = map.nodes().map(|node| node.depth + 1).max().unwrap_or(0);
        assert_eq!(map.levels(), levels);
        let mean = touched as f64 / map.len().max(1) as f64;
        // Nodes at random addresses may overlap, which the model's sums do not know of when blocks
        // are smaller than they.
        bytes < 32 || (map.touched_by_search(bytes) - mean).abs() < 1e-6 * mean.max(1.0)
    }

    fn pictures_are_well_formed(
        seeds: Vec<(u16, u32)>,
        node_bytes: u8,
        pages: u8,
        title: String
    ) -> bool {
        let (parents, addresses) = forest(&seeds);
        let map = Map::new(&parents, addresses, usize::from(node_bytes) * 8).unwrap();
        let style = MapStyle {
            title,
            pages_max: usize::from(pages % 8),
            block_bytes: u64::from(pages) * 8,
            edges_max: seeds.len() / 2,
            path_to: map.nodes().last().map(|node| node.number),
        };
        let svg = map.to_svg(&style);
        check_xml(&svg);
        let shown = svg.matches("<use href=\"#page\"").count();
        shown == usize::from(pages % 8).min(map.pieces(4096).count())
    }
}

/// Panics unless the text is an XML document whose numbers are numbers.
fn check_xml(text: &str) {
    let document = roxmltree::Document::parse(text).unwrap();
    let mut attributes = document.descendants().flat_map(|node| node.attributes());
    assert!(attributes.all(|attribute| !attribute.value().contains("NaN")));
}

#[test]
fn a_title_may_hold_anything() {
    let map = Map::new(&[NO_NODE], vec![64], 8).unwrap();
    let title = "a < b & \u{0}\u{ffff} \"c\" > ]]>".to_owned();
    let svg = map.to_svg(&MapStyle {
        title,
        ..MapStyle::default()
    });
    check_xml(&svg);
    assert!(svg.contains("<title>a &lt; b &amp; \u{fffd}\u{fffd} \"c\" &gt; ]]&gt;</title>"));
}

#[test]
fn every_node_is_a_bar_and_every_leaving_edge_a_line() {
    // Two blocks and two pages: the root with a child beside it, one in the next block, one in the
    // next page.
    let addresses = vec![0x10000, 0x10018, 0x10040, 0x11ff8];
    let map = Map::new(&[NO_NODE, 0, 0, 2], addresses, 24).unwrap();
    let svg = map.to_svg(&MapStyle::default());
    let lines = |mark: &str| {
        svg.lines()
            .filter(|line| line.contains(mark))
            .collect::<Vec<_>>()
    };
    // Three depths; the node at the page's end reaches into a page that is not shown. The first
    // path of each colour is in the legend.
    let bars = ["#440154", "#21918c", "#fde725"].map(|colour| {
        let paths = lines(&format!("<path fill=\"{colour}\""));
        paths[1].matches('M').count()
    });
    let bars: usize = bars.iter().sum();
    assert_eq!(bars, 4);
    // Again, one of each is in the legend.
    assert_eq!(lines("stroke=\"#333\"").len(), 2);
    assert_eq!(lines("stroke=\"#d1495b\"").len(), 2);
    for text in [
        "page 0 · 3 nodes · 1 edge out",
        "page 1 · 1 node · 1 edge out",
        "edges that stay in a block 33.3%, in 256 B 66.7%, in a page 66.7%; 2 leave their block",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    let (edges_max, pages_max) = (0, 1);
    let without = map.to_svg(&MapStyle {
        edges_max,
        pages_max,
        ..MapStyle::default()
    });
    assert!(without.contains("Not shown: 1 page that"));
    assert_eq!(without.matches("stroke=\"#333\"").count(), 1);
}

#[test]
fn of_a_tree_before_and_after() {
    let token = Rc::new(());
    let mut root: Link<[u8; 0]> = build(&keys_up_to(5000), &token, |_| []);
    let before = map(&mut root, Node::children).unwrap();
    let morph = Morph::new().layout(Layout::VanEmdeBoas);
    let report = morph.run(&mut root, Node::children).unwrap();
    let after = map(&mut root, Node::children).unwrap();
    for (map, near) in [(&before, report.near_before), (&after, report.near_after)] {
        assert_eq!((map.len(), map.edges(), map.node_bytes()), (5000, 4999, 32));
        assert_eq!(map.edges_within(64), near.same_64);
        assert_eq!(map.edges_within(256), near.same_256);
        assert_eq!(map.edges_within(4096), near.same_page);
    }
    let mut pairs = before.nodes().zip(after.nodes());
    assert!(pairs.all(|(a, b)| (a.depth, a.parent) == (b.depth, b.parent)));
    // Pieces as large as a node count the nodes on the way, wherever those were before.
    assert!(after.touched_by_search(64) < 0.8 * after.touched_by_search(32));
    assert!(after.touched_by_search(64) < 0.9 * before.touched_by_search(64));
    let text = after.to_string();
    assert!(text.starts_with("5000 nodes of 32 B on "), "{text}");
    assert_eq!(text.lines().count(), 3);
    let root = std::ptr::from_ref(&**root.as_ref().unwrap());
    assert_eq!(after.node(0).address, root.addr() as u64);
}

#[test]
fn of_a_slice() {
    let mut nodes = [[9_u8, 9, 9, 9], [0, 3, 9, 9], [9, 9, 9, 9], [2, 9, 9, 9]];
    let map = Morph::new()
        .map_slice(&mut nodes, &mut 1_u8, |node, visit| visit.child(node))
        .unwrap();
    let begin = nodes.as_ptr().addr() as u64;
    let found: Vec<_> = map
        .nodes()
        .map(|node| (node.address - begin, node.depth))
        .collect();
    assert_eq!(found, [(4, 0), (0, 1), (12, 1), (8, 2)]);
}

#[test]
fn of_nothing_and_of_nodes_without_bytes() {
    let empty = map(&mut None::<Box<Node<()>>>, Node::children).unwrap();
    let counts = |map: &Map| (map.len(), map.levels(), map.edges(), map.pieces(64).count());
    assert_eq!(counts(&empty), (0, 0, 0, 0));
    assert!(empty.to_string().starts_with("0 nodes"));
    check_xml(&empty.to_svg(&MapStyle::default()));
    let mut units = vec![Box::new(()); 3];
    let units = map(units.as_mut_slice(), |(), _visit| {}).unwrap();
    assert_eq!(counts(&units), (3, 1, 0, 1));
    let path_to = |number| MapStyle {
        path_to: Some(number),
        ..MapStyle::default()
    };
    check_xml(&units.to_svg(&path_to(2)));
    // At the end of all addresses, and larger than the picture.
    let far = Map::new(&[NO_NODE, 0], vec![u64::MAX - 7, 0], 1 << 40).unwrap();
    check_xml(&far.to_svg(&path_to(1)));
}

#[test]
fn wrong_parents_are_refused() {
    assert!(Map::new(&[0], vec![0], 8).is_err());
    assert!(Map::new(&[1, NO_NODE], vec![0, 8], 8).is_err());
}

#[test]
#[should_panic(expected = "the size of a piece must be a power of two, not 48")]
fn pieces_are_powers_of_two() {
    let map = Map::new(&[NO_NODE], vec![0], 8).unwrap();
    assert_eq!(map.pieces(48).count(), 1);
}
