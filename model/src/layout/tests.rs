use super::{ExtentError, HintPolicy, Layout, NodeExtent, Placement};
use crate::{NO_NODE, Shape};

use quickcheck::quickcheck;

mod theory;

const LAYOUTS: [Layout; 16] = [
    Layout::Random { seed: 3 },
    Layout::Allocated,
    Layout::Hinted {
        policy: HintPolicy::Closest,
    },
    Layout::Hinted {
        policy: HintPolicy::FirstFit,
    },
    Layout::Hinted {
        policy: HintPolicy::NewBlock,
    },
    Layout::DepthFirst,
    Layout::BreadthFirst,
    Layout::VanEmdeBoas,
    Layout::SubtreeCluster { block_bytes: 64 },
    Layout::SubtreeCluster { block_bytes: 256 },
    Layout::SubtreeCluster { block_bytes: 4096 },
    Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    Layout::ClusterVanEmdeBoas { block_bytes: 4096 },
    Layout::ClusterVanEmdeBoas {
        block_bytes: u32::MAX,
    },
    Layout::Hierarchical,
    Layout::Weighted,
];

/// Expected number of different blocks that an even search touches, every byte of each visited node
/// counted.
fn blocks_per_search(
    shape: &Shape,
    placement: &Placement,
    node: NodeExtent,
    block_bytes: u64,
) -> f64 {
    let weight = shape.subtree_nodes();
    let blocks = |v: u32| {
        let at = placement.offset(v);
        [
            at / block_bytes,
            (at + u64::from(node.bytes) - 1) / block_bytes,
        ]
    };
    let mut visits = 0u64;
    for v in 0..shape.nodes() {
        let [first, last] = blocks(v);
        let (mut first_is_new, mut last_is_new) = (true, last != first);
        let mut above = shape.parent(v);
        while above != NO_NODE && (first_is_new || last_is_new) {
            let seen = blocks(above);
            first_is_new &= !seen.contains(&first);
            last_is_new &= !seen.contains(&last);
            above = shape.parent(above);
        }
        visits +=
            u64::from(weight[v as usize]) * (u64::from(first_is_new) + u64::from(last_is_new));
    }
    visits as f64 / shape.len() as f64
}

fn forest(seeds: &[u32]) -> Shape {
    let parents: Vec<u32> = (0..)
        .zip(seeds)
        .map(|(v, &s): (u32, _)| {
            if v == 0 || s % 16 == 0 {
                NO_NODE
            } else {
                (s / 16) % v
            }
        })
        .collect();
    Shape::from_parents(&parents).unwrap()
}

/// What every placement promises.
fn check(layout: Layout, shape: &Shape, node: NodeExtent) {
    let placement = layout.place(shape, node);
    check_placement(layout, &placement, shape, node);
    assert_eq!(
        placement,
        layout.place(shape, node),
        "{layout} is reproducible"
    );
    assert_eq!(
        placement,
        layout.place_weighted(shape, node, &vec![2.5; shape.len()]),
        "{layout}: equal weights are none"
    );
}

/// What a placement by any weights promises too.
fn check_placement(layout: Layout, placement: &Placement, shape: &Shape, node: NodeExtent) {
    assert_eq!(placement.len(), shape.len());
    let mut offsets = placement.offsets().to_vec();
    offsets.sort_unstable();
    let bytes = u64::from(node.bytes);
    for pair in offsets.windows(2) {
        assert!(
            pair[0] + bytes <= pair[1],
            "{layout}: {} and {} overlap",
            pair[0],
            pair[1]
        );
    }
    assert_eq!(offsets.first().copied().unwrap_or(0), 0);
    for &offset in &offsets {
        assert_eq!(offset % u64::from(node.align), 0);
        if node.bytes <= Layout::SEGMENT_NODE_BYTES_MAX {
            assert_eq!(
                offset / Layout::SEGMENT_BYTES,
                (offset + bytes - 1) / Layout::SEGMENT_BYTES,
                "{layout}"
            );
        }
        if let Layout::SubtreeCluster { block_bytes } | Layout::ClusterVanEmdeBoas { block_bytes } =
            layout
        {
            let block = u64::from(super::block_size(block_bytes));
            assert!(
                node.stride_bytes() > block || offset / block == (offset + bytes - 1) / block,
                "{layout}"
            );
        }
    }
}

quickcheck! {
    fn weights_of_any_kind_place_every_node(seeds: Vec<u32>, weights: Vec<f64>, bytes: u16) -> bool {
        let shape = forest(&seeds);
        let odd = [f64::NAN, f64::INFINITY, -1.0, f64::MAX, f64::MIN_POSITIVE, 0.0, -0.0];
        let weights: Vec<f64> = (0..shape.len())
            .map(|v| weights.get(v).copied().unwrap_or(odd[v % odd.len()]))
            .collect();
        for bytes in [u32::from(bytes).max(1), u32::from(bytes) % 100 + 1] {
            let node = NodeExtent::new(bytes, 4).unwrap();
            for layout in LAYOUTS {
                check_placement(layout, &layout.place_weighted(&shape, node, &weights), &shape, node);
            }
        }
        true
    }

    fn every_node_is_placed_once(seeds: Vec<u32>, bytes: u16, align_log: u8) -> bool {
        let shape = forest(&seeds);
        let align = 1 << (align_log % 13);
        for bytes in [u32::from(bytes).max(1), u32::from(bytes) % 100 + 1] {
            for layout in LAYOUTS {
                check(layout, &shape, NodeExtent::new(bytes, align).unwrap());
            }
        }
        true
    }

    fn search_trees_are_placed_too(nodes: u16, seed: u64) -> bool {
        let shape = Shape::random_binary(u32::from(nodes % 4096), seed);
        for layout in LAYOUTS {
            check(layout, &shape, NodeExtent { bytes: 24, align: 8 });
        }
        true
    }

    fn names_read_back(seed: u64, block_log: u8) -> bool {
        let block_bytes = 8 << (block_log % 14);
        let layouts = [
            Layout::Random { seed }, Layout::DepthFirst, Layout::BreadthFirst, Layout::VanEmdeBoas,
            Layout::SubtreeCluster { block_bytes }, Layout::ClusterVanEmdeBoas { block_bytes },
            Layout::Hierarchical, Layout::Weighted, Layout::Allocated,
            Layout::Hinted { policy: HintPolicy::Closest }, Layout::Hinted { policy: HintPolicy::FirstFit },
            Layout::Hinted { policy: HintPolicy::NewBlock },
        ];
        layouts.iter().all(|layout| layout.to_string().parse() == Ok(*layout))
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
    assert_eq!(
        "cluster".parse(),
        Ok(Layout::SubtreeCluster { block_bytes: 64 })
    );
    assert_eq!(format!("{:>8}|", Layout::VanEmdeBoas), "     veb|");
}

#[test]
fn extents_are_checked() {
    assert_eq!(NodeExtent::new(0, 8), Err(ExtentError::NoBytes));
    assert_eq!(
        NodeExtent::new(8, 12),
        Err(ExtentError::Align { align: 12 })
    );
    assert_eq!(NodeExtent::new(20, 8).unwrap().stride_bytes(), 24);
}

#[test]
fn small_trees_come_in_the_known_orders() {
    // 0 with children 1 and 2; 3..=6 below; the heap of seven nodes.
    let shape = Shape::complete_binary(7);
    let node = NodeExtent { bytes: 8, align: 8 };
    let slots = |layout: Layout| -> Vec<u64> {
        let mut order: Vec<(u64, u64)> = layout
            .place(&shape, node)
            .offsets()
            .iter()
            .copied()
            .zip(0..)
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, v)| v).collect()
    };
    assert_eq!(slots(Layout::BreadthFirst), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(slots(Layout::DepthFirst), [0, 1, 3, 4, 2, 5, 6]);
    let shape = Shape::complete_binary(15);
    let placement = Layout::VanEmdeBoas.place(&shape, node);
    let mut order: Vec<u32> = (0..15).collect();
    order.sort_by_key(|&v| placement.offset(v));
    assert_eq!(order, [0, 1, 2, 3, 7, 8, 4, 9, 10, 5, 11, 12, 6, 13, 14]);
}

#[test]
fn the_heavier_child_comes_first() {
    let shape = Shape::from_parents(&[NO_NODE, 0, 0, 2]).unwrap();
    let placement = Layout::DepthFirst.place(
        &shape,
        NodeExtent {
            bytes: 16,
            align: 8,
        },
    );
    assert_eq!(placement.offsets(), [0, 48, 16, 32]);
}

#[test]
fn complete_trees_are_aligned_from_the_bottom() {
    // Three nodes a block and an odd number of levels: the root is alone, every other block is
    // full.
    let node = NodeExtent {
        bytes: 20,
        align: 4,
    };
    for levels in [5, 6, 11, 12] {
        let nodes = (1u32 << levels) - 1;
        let shape = Shape::complete_binary(nodes);
        for layout in [
            Layout::SubtreeCluster { block_bytes: 64 },
            Layout::ClusterVanEmdeBoas { block_bytes: 64 },
        ] {
            let placement = layout.place(&shape, node);
            assert_eq!(
                placement.span_bytes(node),
                u64::from(nodes.div_ceil(3)) * 64 - 4
            );
            for leaf in nodes / 2..nodes {
                assert_eq!(
                    placement.offset(leaf) / 64,
                    placement.offset(shape.parent(leaf)) / 64
                );
            }
        }
    }
}

#[test]
fn fragments_share_blocks() {
    let shape = Shape::random_binary(1 << 14, 5);
    for (bytes, block_bytes) in [(16, 64), (24, 256), (24, 4096), (64, 4096)] {
        let node = NodeExtent { bytes, align: 8 };
        let full = u64::from(block_bytes / bytes);
        let blocks = (shape.len() as u64).div_ceil(full);
        for layout in [
            Layout::SubtreeCluster { block_bytes },
            Layout::ClusterVanEmdeBoas { block_bytes },
        ] {
            let used = layout
                .place(&shape, node)
                .span_bytes(node)
                .div_ceil(u64::from(block_bytes));
            assert!(
                used * 10 <= blocks * 13,
                "{layout} of {bytes} B: {used} blocks, {blocks} would do"
            );
        }
    }
}

#[test]
fn the_table_holds() {
    let shape = Shape::random_binary(1 << 18, 1);
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
            let counted = blocks_per_search(&shape, &placement, node, block_bytes);
            assert!(
                (counted - blocks).abs() < 0.006,
                "{name} {bytes} B in {block_bytes} B: {counted}"
            );
        }
    }
}

#[test]
fn extreme_shapes_need_no_stack_and_no_quadratic_time() {
    let nodes = 500_000u32;
    let chain: Vec<u32> = (0..nodes).map(|v| v.wrapping_sub(1)).collect();
    let star: Vec<u32> = (0..nodes)
        .map(|v| if v == 0 { NO_NODE } else { 0 })
        .collect();
    // A spine with a leaf at each node.
    let comb: Vec<u32> = (0..nodes)
        .map(|v| if v == 0 { NO_NODE } else { (v - 1) / 2 * 2 })
        .collect();
    let roots = vec![NO_NODE; nodes as usize];
    let node = NodeExtent {
        bytes: 32,
        align: 8,
    };
    for parents in [chain, star, comb, roots] {
        let shape = Shape::from_parents(&parents).unwrap();
        for layout in LAYOUTS {
            let span = layout.place(&shape, node).span_bytes(node);
            // A hinted node may have its block for itself.
            let halves = match layout {
                Layout::Hinted { .. } => 4,
                _ => 3,
            };
            assert!(
                span >= u64::from(nodes) * 32 && span <= u64::from(nodes) * 16 * halves,
                "{layout}: {span}"
            );
        }
    }
}

#[test]
fn nothing_takes_no_room() {
    for layout in LAYOUTS {
        let placement = layout.place(
            &Shape::complete_binary(0),
            NodeExtent { bytes: 8, align: 8 },
        );
        assert!(placement.is_empty());
        assert_eq!(placement.span_bytes(NodeExtent { bytes: 8, align: 8 }), 0);
    }
}

#[test]
fn spans_of_real_addresses_are_measured_from_the_lowest() {
    let placement = Placement::from_offsets(vec![u64::MAX - 7, 0x7fff_0000, u64::MAX - 71]);
    assert_eq!(
        placement.span_bytes(NodeExtent { bytes: 8, align: 8 }),
        u64::MAX - 7 - 0x7fff_0000 + 8
    );
}

#[test]
#[should_panic(expected = "at least one byte")]
fn an_unchecked_extent_is_refused() {
    let extent = NodeExtent { bytes: 0, align: 8 };
    drop(Layout::DepthFirst.place(&Shape::complete_binary(3), extent));
}
