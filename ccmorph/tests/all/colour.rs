//! Colours: the first nodes have a part of a cache's sets for themselves, by their addresses.

use crate::traversals::assert_same;
use crate::tree::{Link, Node, Picture, alive, build, keys_up_to};
use ccmodel::evidence::ColourProbe;
use ccmodel::{Level, LevelKind};
use ccmorph::{CacheGeometry, Layout, Machine, Morph, MorphError, TreeNode};
use std::rc::Rc;

/// Morphs with half of the sets for the first nodes, and checks where all of them lie; returns how
/// many are hot.
fn check<P: Clone + PartialEq + std::fmt::Debug + Unpin>(
    root: &mut Link<P>,
    geometry: CacheGeometry,
    layout: Layout,
) -> usize {
    let before = Picture::of(root);
    let morph = Morph::new().layout(layout).colour_for(geometry, 0.5);
    let report = morph.run(root, Node::children).unwrap();
    let after = Picture::of(root);
    assert_eq!(before.nodes, after.nodes);
    let colour = report.colour.unwrap();
    let way_bytes = usize::try_from(geometry.way_bytes()).unwrap();
    // The picture is in breadth-first order, which is that of the traversal.
    for (v, &address) in after.addresses.iter().enumerate() {
        let is_hot = v < colour.hot_nodes;
        for byte in [address, address + size_of::<Node<P>>() - 1] {
            let in_hot_part = byte % way_bytes < way_bytes / 2;
            assert_eq!(in_hot_part, is_hot, "node {v} at {address:#x}");
        }
    }
    if way_bytes <= 4096 {
        assert!(colour.gain.is_some() && colour.lost_bytes == colour.gap_bytes);
    } else {
        assert!(colour.gain.is_none() && colour.lost_bytes == 0);
    }
    colour.hot_nodes
}

#[test]
fn hot_nodes_lie_in_their_part_of_each_way() {
    let token = Rc::new(());
    let mut root = build(&keys_up_to(60_000), &token, |key| key);
    assert_eq!(size_of::<Node<u32>>(), 32);
    for (sets, block, ways) in [
        (64, 64, 12),
        (64, 64, 8),
        (32, 32, 1),
        (2048, 64, 16),
        (16384, 64, 1),
    ] {
        let geometry = CacheGeometry::new(sets, block, ways).unwrap();
        for layout in [
            Layout::VanEmdeBoas,
            Layout::SubtreeCluster { block_bytes: 64 },
        ] {
            // p = hot sets x nodes in a block x ways: thesis, section 3.2.
            let expected = (sets / 2 * (block / 32) * ways).min(60_000);
            let hot = check(&mut root, geometry, layout);
            assert_eq!(hot as u64, expected, "{sets} sets of {ways} blocks");
        }
    }
    let mut odd = build(&keys_up_to(5_000), &token, |key| [key; 9]);
    let geometry = CacheGeometry::new(128, 64, 4).unwrap();
    assert!(check(&mut odd, geometry, Layout::DepthFirst) > 0);
    drop((root, odd));
    assert_eq!(alive(&token), 0);
}

#[test]
fn the_first_level_of_this_machine_is_coloured_and_reported() {
    let token = Rc::new(());
    let mut root = build(&keys_up_to(200_000), &token, |key| key);
    let plain = Morph::new().run(&mut root, Node::children).unwrap();
    assert!(plain.colour.is_none());
    let report = Morph::new()
        .colour(0.5)
        .run(&mut root, Node::children)
        .unwrap();
    assert!(report.span_bytes > plain.span_bytes);
    let colour = report.colour.clone().unwrap();
    let gain = colour.gain.unwrap();
    assert!(gain.levels().count() >= 2);
    for (name, misses, ns) in gain.levels() {
        assert!(!name.is_empty() && misses.is_finite() && ns.is_finite());
    }
    let text = report.to_string();
    assert!(text.contains("hot nodes by colour"), "{text}");
    // Half of each page of the rest.
    let (bytes, lost) = (report.bytes(), colour.lost_bytes);
    assert!((bytes / 2..=bytes * 2).contains(&lost), "{lost}");
    drop(root);
    assert_eq!(alive(&token), 0);
}

#[test]
fn the_heaviest_nodes_are_hot() {
    let token = Rc::new(());
    let mut root = build(&keys_up_to(20_000), &token, |key| key);
    let favourite = keys_up_to(20_000)[19_999];
    let geometry = CacheGeometry::new(64, 64, 1).unwrap();
    let weigh = |node: &Node<u32>| f64::from(u8::from(node.key == favourite));
    let morph = Morph::new()
        .layout(Layout::DepthFirst)
        .colour_for(geometry, 0.5);
    morph
        .run_weighted(&mut root, Node::children, weigh)
        .unwrap();
    let mut at = root.as_deref().unwrap();
    loop {
        let offset = std::ptr::from_ref(at).addr() % 4096;
        assert!(offset < 2048, "on the path to the favourite");
        if at.key == favourite {
            break;
        }
        let child = if favourite < at.key {
            &at.left
        } else {
            &at.right
        };
        at = child.as_deref().unwrap();
    }
    drop(root);
    assert_eq!(alive(&token), 0);
}

#[test]
fn invalid_shares_and_caches_are_errors() {
    let token = Rc::new(());
    let mut root = build(&keys_up_to(1000), &token, |key| [key; 30]);
    let before = Picture::of(&root);
    for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let result = Morph::new().colour(share).run(&mut root, Node::children);
        assert_eq!(result.unwrap_err(), MorphError::ColourShare);
    }
    // No room is left for the other nodes.
    let result = Morph::new().colour(1.0).run(&mut root, Node::children);
    assert!(matches!(
        result,
        Err(MorphError::ColourRoom { room_bytes: 0, .. })
    ));
    let large = CacheGeometry::new(1 << 16, 64, 2).unwrap();
    let result = Morph::new()
        .colour_for(large, 0.5)
        .run(&mut root, Node::children);
    assert!(matches!(result, Err(MorphError::ColourWay { way_bytes, .. }) if way_bytes == 4 << 20));
    assert_same(&before, &Picture::of(&root));
    let none = Morph::new()
        .colour(0.0)
        .run(&mut root, Node::children)
        .unwrap();
    assert_eq!(none.colour.map(|colour| colour.hot_nodes), Some(0));
    drop(root);
    assert_eq!(alive(&token), 0);
}

#[test]
fn larger_caches_are_predicted_where_a_probe_has_shown_that_colours_reach_them() {
    let token = Rc::new(());
    let mut root = build(&keys_up_to(100_000), &token, |key| key);
    let geometry = CacheGeometry::new(2048, 64, 16).unwrap();
    let mut machine = Machine::this().clone();
    for (other_ns, known) in [(19.0, false), (12.0, true)] {
        machine.evidence.colours = vec![ColourProbe {
            way_bytes: geometry.way_bytes(),
            other_ns,
            same_ns: 20.0,
            miss_ns: 16.0,
        }];
        let morph = Morph::new().machine(&machine).colour_for(geometry, 0.5);
        let report = morph.run(&mut root, Node::children).unwrap();
        let is_cache = |level: &&Level| level.kind == LevelKind::Data;
        let caches = machine.levels.iter().filter(is_cache).count();
        let colour = report.colour.unwrap();
        assert_eq!(colour.gain.is_some(), known && caches > 1, "{other_ns} ns");
    }
    drop(root);
    assert_eq!(alive(&token), 0);
}
