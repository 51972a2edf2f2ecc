use super::{Layout, NodeExtent, Placement};
use crate::shape::random::SplitMix64;
use crate::{BlockProbabilities, NO_NODE, Shape, Visits};
use quickcheck::quickcheck;

fn layouts() -> impl Iterator<Item = Layout> {
    let names = "random:3 allocated hinted:closest hinted:first-fit hinted dfs preorder bfs veb \
                 cluster cluster:256 cluster:4096 cluster-veb cluster-veb:4096 cluster-veb:65536 \
                 hierarchical weighted";
    names.split_whitespace().map(|name| name.parse().unwrap())
}

fn extent(bytes: u32, align: u32) -> NodeExtent {
    NodeExtent::new(bytes, align).unwrap()
}

fn complete(levels: u32) -> Shape {
    Shape::complete_binary((1 << levels) - 1)
}

/// Expected number of different blocks that an operation touches.
fn touched(visits: &Visits, placement: &Placement, node: NodeExtent, block_bytes: u64) -> f64 {
    let blocks = BlockProbabilities::new(visits, placement, node.bytes, block_bytes);
    blocks.footprint().touches()
}

fn forest(seeds: &[u32]) -> Shape {
    let parent = |(v, &seed): (u32, &u32)| match v {
        0 => NO_NODE,
        _ if seed % 16 == 0 => NO_NODE,
        _ => (seed / 16) % v,
    };
    let parents: Vec<u32> = (0..).zip(seeds).map(parent).collect();
    Shape::from_parents(&parents).unwrap()
}

fn check(layout: Layout, shape: &Shape, node: NodeExtent) {
    let placement = layout.place(shape, node);
    check_placement(layout, &placement, shape, node);
    let again = layout.place(shape, node);
    assert_eq!(placement, again, "{layout} is reproducible");
    let equal = layout.place_weighted(shape, node, &vec![2.5; shape.len()]);
    assert_eq!(placement, equal, "{layout}: equal weights are none");
}

fn check_placement(layout: Layout, placement: &Placement, shape: &Shape, node: NodeExtent) {
    assert_eq!(placement.len(), shape.len());
    let mut offsets = placement.offsets().to_vec();
    offsets.sort_unstable();
    let bytes = u64::from(node.bytes);
    let apart = offsets.windows(2).all(|pair| pair[0] + bytes <= pair[1]);
    assert!(apart, "{layout}: nodes overlap");
    assert_eq!(offsets.first().copied().unwrap_or(0), 0);
    assert_eq!(placement.is_empty(), placement.span_bytes(node) == 0);
    // Blocks that no node lies across the end of.
    let mut blocks = vec![];
    if node.bytes <= Layout::SEGMENT_NODE_BYTES_MAX {
        blocks.push(Layout::SEGMENT_BYTES);
    }
    if let Layout::SubtreeCluster { block_bytes } | Layout::ClusterVanEmdeBoas { block_bytes } =
        layout
    {
        let block = u64::from(block_bytes);
        blocks.extend((node.stride_bytes() <= block).then_some(block));
    }
    for &offset in &offsets {
        assert_eq!(offset % u64::from(node.align), 0);
        let is_within = |block| offset / block == (offset + bytes - 1) / block;
        assert!(blocks.iter().all(is_within), "{layout}: {offset}");
    }
}

quickcheck! {
    fn weights_of_any_kind_place_every_node(
        seeds: Vec<u32>, weights: Vec<f64>, bytes: u16
    ) -> bool {
        let shape = forest(&seeds);
        let odd = [f64::NAN, f64::INFINITY, -1.0, f64::MAX, f64::MIN_POSITIVE, 0.0, -0.0];
        let weights: Vec<f64> = (0..shape.len())
            .map(|v| weights.get(v).copied().unwrap_or(odd[v % odd.len()]))
            .collect();
        for bytes in [u32::from(bytes).max(1), u32::from(bytes) % 100 + 1] {
            for layout in layouts() {
                let placement = layout.place_weighted(&shape, extent(bytes, 4), &weights);
                check_placement(layout, &placement, &shape, extent(bytes, 4));
            }
        }
        true
    }

    fn every_node_is_placed_once(seeds: Vec<u32>, bytes: u16, align_log: u8) -> bool {
        let tree = Shape::random_binary(u32::from(bytes) % 4096, 3);
        for layout in layouts() {
            check(layout, &tree, extent(24, 8));
            for bytes in [u32::from(bytes).max(1), u32::from(bytes) % 100 + 1] {
                check(layout, &forest(&seeds), extent(bytes, 1 << (align_log % 13)));
            }
        }
        true
    }

    fn names_read_back(seed: u64, block_log: u8) -> bool {
        let block_bytes = 8 << (block_log % 14);
        let random = Layout::Random { seed };
        let of_blocks =
            [Layout::SubtreeCluster { block_bytes }, Layout::ClusterVanEmdeBoas { block_bytes }];
        let mut all = layouts().chain([random]).chain(of_blocks);
        all.all(|layout| layout.to_string().parse() == Ok(layout))
    }

    fn any_text_reads_or_explains(text: String) -> bool {
        text.parse::<Layout>().map_or_else(|error| error.to_string().contains("layout"), |_| true)
    }
}

#[test]
fn wrong_names_get_advice() {
    for (text, advice) in [
        ("vEb", "did you mean `veb`?"),
        ("van-emde-baos", "did you mean `veb`?"),
        ("clusters", "did you mean `cluster`?"),
        ("depth-first", "did you mean `dfs`?"),
        ("cluster:63", "power of two from 8 to 65536"),
        ("cluster-veb:", "power of two"),
        ("random:x", "whole number"),
        ("dfs:64", "takes nothing after the name"),
        ("allocated:1", "takes nothing after the name"),
        ("as allocated", "did you mean `allocated`?"),
        ("hintd", "did you mean `hinted`?"),
        ("hinted:best", "closest, first-fit or new-block"),
        ("", "unknown layout `` (known: random"),
    ] {
        let error = text.parse::<Layout>().unwrap_err().to_string();
        assert!(error.contains(advice), "{text}: {error}");
        assert!(!error.contains('\n'));
    }
    let cluster = Layout::SubtreeCluster { block_bytes: 64 };
    assert_eq!("cluster".parse(), Ok(cluster));
    assert_eq!(format!("{:>8}|", Layout::VanEmdeBoas), "     veb|");
}

#[test]
fn extents_are_checked_and_blocks_rounded() {
    for (bytes, align) in [(0, 8), (8, 12), (8, 0)] {
        assert!(NodeExtent::new(bytes, align).is_err());
    }
    assert_eq!(extent(20, 8).stride_bytes(), 24);
    let place = |block_bytes| {
        let layout = Layout::ClusterVanEmdeBoas { block_bytes };
        layout.place(&Shape::random_binary(5000, 1), extent(20, 4))
    };
    assert_eq!(place(u32::MAX), place(65536));
    assert_eq!(place(127), place(64));
}

#[test]
fn small_trees_come_in_the_known_orders() {
    // 0 with children 1 and 2; 3..=6 below; the heap of seven nodes.
    let shape = Shape::complete_binary(7);
    let node = NodeExtent { bytes: 8, align: 8 };
    let order = |shape: &Shape, layout: Layout| {
        let placement = layout.place(shape, node);
        let mut order: Vec<u32> = (0..shape.nodes()).collect();
        order.sort_by_key(|&v| placement.offset(v));
        order
    };
    assert_eq!(order(&shape, Layout::BreadthFirst), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(order(&shape, Layout::DepthFirst), [0, 1, 3, 4, 2, 5, 6]);
    let by_weight = order(&Shape::complete_binary(15), Layout::VanEmdeBoas);
    let expected = [0, 1, 2, 3, 7, 8, 4, 9, 10, 5, 11, 12, 6, 13, 14];
    assert_eq!(by_weight, expected);
    // The heavier child comes first.
    let uneven = Shape::from_parents(&[NO_NODE, 0, 0, 2]).unwrap();
    assert_eq!(order(&uneven, Layout::DepthFirst), [0, 2, 3, 1]);
}

#[test]
fn complete_trees_are_aligned_from_the_bottom() {
    // Three nodes a line and an odd number of levels: the root is alone, every other line is full.
    let node = extent(20, 4);
    for shape in [5, 6, 11, 12].map(complete) {
        for layout in [
            Layout::SubtreeCluster { block_bytes: 64 },
            Layout::ClusterVanEmdeBoas { block_bytes: 64 },
            Layout::Hierarchical,
        ] {
            let placement = layout.place(&shape, node);
            assert!(placement.span_bytes(node) <= u64::from(shape.nodes().div_ceil(3)) * 64);
            let line = |v| placement.offset(v) / 64;
            let leaves = shape.nodes() / 2..shape.nodes();
            let mut joined = leaves.map(|leaf| line(leaf) == line(shape.parent(leaf)));
            assert!(joined.all(|joined| joined), "{layout}");
        }
    }
}

#[test]
fn memory_is_hardly_wasted() {
    let shape = Shape::random_binary(1 << 14, 5);
    for (bytes, block_bytes) in [(16, 64), (24, 256), (24, 4096), (64, 4096)] {
        // Fragments share blocks.
        let blocks = shape.nodes().div_ceil(block_bytes / bytes);
        for layout in [
            Layout::SubtreeCluster { block_bytes },
            Layout::ClusterVanEmdeBoas { block_bytes },
        ] {
            let node = extent(bytes, 8);
            let span_bytes = layout.place(&shape, node).span_bytes(node);
            let used = span_bytes.div_ceil(u64::from(block_bytes));
            assert!(used * 10 <= u64::from(blocks) * 13, "{layout}: {used}");
        }
    }
    for bytes in [1, 8, 12, 16, 20, 24, 28, 32, 40, 56, 64, 96, 1024, 5000] {
        let node = extent(bytes, 4);
        let stride = node.stride_bytes();
        let packed_bytes = u64::from(shape.nodes()) * stride;
        // What lines of whole nodes leave unused.
        let lost_in_64 = match 64 % stride {
            lost @ 1..=8 if stride <= 32 => lost,
            _ => 0,
        };
        // What the borders of segments cost, which all layouts keep to.
        let segments = packed_bytes / Layout::SEGMENT_BYTES + 1;
        let at_borders = match bytes <= Layout::SEGMENT_NODE_BYTES_MAX {
            true => segments * (Layout::SEGMENT_BYTES % stride),
            false => 0,
        };
        for layout in [Layout::Hierarchical, Layout::Weighted] {
            let span = layout.place(&shape, node).span_bytes(node);
            let most = packed_bytes * 64 / (64 - lost_in_64) + at_borders + 64;
            assert!(span <= most, "{layout} of {bytes} B: {span}");
            assert!(64 % stride != 0 || span <= packed_bytes);
        }
    }
}

#[test]
fn the_table_holds() {
    let shape = Shape::random_binary(1 << 18, 1);
    let visits = Visits::uniform(&shape);
    for (name, bytes, expected) in [
        ("bfs", 24, [28.73, 22.40, 17.38]),
        ("dfs", 24, [14.25, 7.52, 5.08]),
        ("veb", 24, [15.68, 8.33, 3.76]),
        ("cluster", 24, [13.86, 7.53, 5.10]),
        ("cluster-veb", 24, [13.86, 8.34, 3.96]),
        ("cluster-veb:256", 24, [13.69, 5.68, 3.65]),
        ("cluster-veb:4096", 24, [15.05, 7.63, 2.89]),
        ("hierarchical", 24, [12.47, 6.44, 3.21]),
        ("bfs", 32, [23.27, 21.91, 17.95]),
        ("dfs", 32, [15.03, 7.87, 5.19]),
        ("veb", 32, [16.28, 8.72, 3.90]),
        ("cluster", 32, [13.86, 7.53, 5.10]),
        ("cluster-veb", 32, [13.86, 8.34, 3.96]),
        ("cluster-veb:256", 32, [14.80, 6.18, 3.75]),
        ("cluster-veb:4096", 32, [15.71, 8.33, 2.94]),
        ("hierarchical", 32, [13.86, 6.75, 3.10]),
    ] {
        let node = NodeExtent { bytes, align: 8 };
        let placement = name.parse::<Layout>().unwrap().place(&shape, node);
        for (block_bytes, blocks) in [64, 256, 4096].into_iter().zip(expected) {
            let counted = touched(&visits, &placement, node, block_bytes);
            let what = format!("{name} {bytes} B in {block_bytes} B: {counted}");
            assert!((counted - blocks).abs() < 0.006, "{what}");
        }
    }
}

#[test]
fn extreme_shapes_need_no_stack_and_no_quadratic_time() {
    let nodes = 500_000u32;
    let chain: Vec<u32> = (0..nodes).map(|v| v.wrapping_sub(1)).collect();
    let below = |parent: fn(u32) -> u32| -> Vec<u32> {
        let parent = |v: u32| v.checked_sub(1).map_or(NO_NODE, parent);
        (0..nodes).map(parent).collect()
    };
    // And a spine with a leaf at each node.
    let (star, comb) = (below(|_| 0), below(|before| before / 2 * 2));
    let roots = vec![NO_NODE; nodes as usize];
    for parents in [chain, star, comb, roots] {
        let shape = Shape::from_parents(&parents).unwrap();
        for layout in layouts() {
            let node = extent(32, 8);
            let span = layout.place(&shape, node).span_bytes(node);
            // A hinted node may have its block for itself.
            let is_hinted = matches!(layout, Layout::Hinted { .. });
            let most = 48 + 16 * u64::from(is_hinted);
            let bounds = u64::from(nodes) * 32..=u64::from(nodes) * most;
            assert!(bounds.contains(&span), "{layout}: {span}");
        }
    }
}

#[test]
fn spans_of_real_addresses_are_measured_from_the_lowest() {
    let placement = Placement::from_offsets(vec![u64::MAX - 7, 0x7fff_0000, u64::MAX - 71]);
    let span = placement.span_bytes(NodeExtent { bytes: 8, align: 8 });
    assert_eq!(span, u64::MAX - 7 - 0x7fff_0000 + 8);
}

#[test]
#[should_panic(expected = "at least one byte")]
fn an_unchecked_extent_is_refused() {
    let extent = NodeExtent { bytes: 0, align: 8 };
    drop(Layout::DepthFirst.place(&Shape::complete_binary(3), extent));
}

/// Edges whose nodes begin in the same block.
fn edges_within(shape: &Shape, placement: &Placement, block_bytes: u64) -> u32 {
    let block = |v: u32| placement.offset(v) / block_bytes;
    let is_within = |v| shape.parent(v) != NO_NODE && block(v) == block(shape.parent(v));
    (0..shape.nodes()).map(|v| u32::from(is_within(v))).sum()
}

#[test]
fn lines_of_two_pair_a_third_of_a_complete_tree() {
    // A node that its parent does not take takes one of its two children: taken(d + 1) = 2^d -
    // taken(d). No matching of the tree has more pairs.
    let node = extent(32, 8);
    for levels in [1u32, 2, 3, 8, 13, 14] {
        let shape = complete(levels);
        let (mut taken, mut pairs) = (0, 0);
        for depth in 1..levels {
            taken = (1u32 << (depth - 1)) - taken;
            pairs += taken;
        }
        for layout in [
            Layout::SubtreeCluster { block_bytes: 64 },
            Layout::ClusterVanEmdeBoas { block_bytes: 64 },
            Layout::Hierarchical,
        ] {
            let within = edges_within(&shape, &layout.place(&shape, node), 64);
            assert_eq!(within, pairs, "{layout}, {levels} levels");
        }
    }
}

#[test]
fn lines_of_four_hold_a_greedy_share_of_a_complete_tree() {
    // A line takes a root, its children and one grandchild; below hang three trees two levels lower
    // and two that are three levels lower. The share of edges inside comes to 0.56, between that of
    // pairs and the 2/3 of triangles.
    let node = extent(16, 8);
    let mut inside = vec![0, 0, 2];
    for levels in 3..=15 {
        inside.push(3 + 3 * inside[levels - 2] + 2 * inside[levels - 3]);
    }
    for levels in [3, 10, 13, 14, 15] {
        let shape = Shape::complete_binary((1 << levels) - 1);
        let within = |layout: Layout| edges_within(&shape, &layout.place(&shape, node), 64);
        let cluster = within(Layout::SubtreeCluster { block_bytes: 64 });
        assert_eq!(cluster, inside[levels], "{levels} levels");
        // Where fragments fill a line, one or two of the edges of what comes next may be cut.
        let hierarchical = within(Layout::Hierarchical);
        let range = inside[levels] * 93 / 100..=inside[levels] * 101 / 100;
        assert!(range.contains(&hierarchical), "{levels}: {hierarchical}");
    }
}

#[test]
fn pages_of_complete_trees_hold_most_of_the_edges() {
    // One connected piece a page would leave one edge a page outside, but pieces are cut where a
    // page ends.
    for (bytes, levels) in [(16, 13), (16, 14), (32, 13), (32, 15), (64, 12)] {
        let shape = complete(levels);
        let placement = Layout::Hierarchical.place(&shape, extent(bytes, 8));
        let outside = shape.nodes() - 1 - edges_within(&shape, &placement, 4096);
        let what = format!("{bytes} B, {levels} levels: {outside} edges leave their page");
        assert!(outside * 100 < shape.nodes() * 21, "{what}");
        // A search crosses a page border for each log2(nodes in a page) levels, and one more for
        // the pieces that are cut.
        let pages = touched(&Visits::uniform(&shape), &placement, extent(bytes, 8), 4096);
        let most = f64::from(levels) / f64::from((4096 / bytes).ilog2()) + 1.0;
        assert!(pages < most, "{bytes} B, {levels} levels: {pages} pages");
    }
}

/// Weights of Zipf's law with exponent 0.99, in a random order.
fn zipf(nodes: u32, seed: u64) -> Vec<f64> {
    let mut ranks: Vec<u32> = (1..=nodes).collect();
    SplitMix64::new(seed).shuffle(&mut ranks);
    let weight = |rank| f64::from(rank).powf(-0.99);
    ranks.into_iter().map(weight).collect()
}

#[test]
fn weights_beat_every_layout_without_them() {
    for (nodes, bytes, seed) in [(1u32 << 14, 32, 1), (1 << 16, 32, 2), (1 << 14, 24, 3)] {
        let shape = Shape::random_binary(nodes, seed);
        let weights = zipf(nodes, seed + 10);
        let visits = Visits::weighted(&shape, &weights);
        let node = extent(bytes, 8);
        let lines = |placement: &Placement| touched(&visits, placement, node, 64);
        let by_weight = lines(&Layout::Weighted.place_weighted(&shape, node, &weights));
        for layout in layouts() {
            let plain = layout.place(&shape, node);
            assert!(by_weight < lines(&plain), "{layout}, {bytes} B");
            let weighted = layout.place_weighted(&shape, node, &weights);
            match layout {
                Layout::Random { .. } | Layout::BreadthFirst => assert_eq!(weighted, plain),
                Layout::DepthFirst
                | Layout::SubtreeCluster { block_bytes: 64 }
                | Layout::ClusterVanEmdeBoas { block_bytes: 64 }
                | Layout::Hierarchical => assert!(lines(&weighted) < lines(&plain), "{layout}"),
                _ => {}
            }
        }
    }
}

#[test]
fn the_hottest_lines_hold_hot_nodes_only() {
    let nodes = 1 << 16;
    let shape = Shape::random_binary(nodes, 5);
    let weights = zipf(nodes, 6);
    let placement = Layout::Weighted.place_weighted(&shape, extent(32, 8), &weights);
    let sums = shape.subtree_sums(weights);
    let mut by_heat: Vec<u32> = (0..nodes).collect();
    by_heat.sort_by(|&a, &b| sums[b as usize].total_cmp(&sums[a as usize]));
    // 24 KiB of 32 B; a few of equal weight to seven digits may differ.
    let hot = 768;
    let is_among_first = |&&v: &&u32| placement.offset(v) < hot as u64 * 32;
    let among_first = by_heat[..hot].iter().filter(is_among_first).count();
    assert!(among_first + 4 >= hot, "{among_first} of {hot}");
}
