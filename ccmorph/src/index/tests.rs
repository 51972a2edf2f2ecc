//! The table in the docs of `plan`, counted again.

use super::plan::Slice;
use ccmodel::{BlockProbabilities, Layout, NodeExtent, Placement, Shape, Visits};

const PIECES: [u64; 3] = [64, 256, 4096];

/// Expected blocks of each size that a search touches.
fn blocks(shape: &Shape, addresses: Vec<u64>, node_bytes: u32) -> [f64; 3] {
    let (visits, placement) = (Visits::uniform(shape), Placement::from_offsets(addresses));
    PIECES.map(|bytes| {
        BlockProbabilities::new(&visits, &placement, node_bytes, bytes)
            .footprint()
            .touches()
    })
}

/// A line of the table: as boxes lie, with gaps closed by moving up, and as a morph of a slice has
/// it.
fn line(node_bytes: u32, layout: Layout, begin: u64) -> String {
    const BASE: u64 = 1 << 30;
    let shape = Shape::random_binary(1 << 15, 1);
    let node = NodeExtent::new(node_bytes, 8).unwrap();
    let placement = layout.place(&shape, node);
    let slice = Slice::at(BASE + begin, node_bytes as usize, 8).unwrap();

    let mut moved_up: Vec<u32> = (0..).take(shape.len()).collect();
    moved_up.sort_unstable_by_key(|&v| placement.offset(v));
    let taken = slice.order(layout, &placement, node, Vec::new());
    let cells = [
        placement.offsets().to_vec(),
        slice.addresses(&moved_up),
        slice.addresses(&taken),
    ]
    .map(|addresses| {
        let [lines, groups, pages] = blocks(&shape, addresses, node_bytes);
        format!("{lines:.2}, {groups:.2}, {pages:.2}")
    });
    format!(
        "| {node_bytes} B, `{layout}`, {begin} B behind a border | {} |",
        cells.join(" | ")
    )
}

#[test]
#[cfg_attr(miri, ignore = "counts for hours there, and has no unsafe code")]
fn the_table_holds() {
    let text = include_str!("plan.rs");
    let clusters = Layout::ClusterVanEmdeBoas { block_bytes: 64 };
    for (node_bytes, layout, begin) in [
        (8, clusters, 0),
        (16, clusters, 0),
        (16, clusters, 16),
        (32, Layout::Hierarchical, 32),
        (32, Layout::Hierarchical, 16),
        (24, Layout::Hierarchical, 0),
        (24, Layout::Hierarchical, 16),
        (24, clusters, 16),
        (24, Layout::VanEmdeBoas, 16),
    ] {
        let line = line(node_bytes, layout, begin);
        assert!(text.contains(&line), "{line}");
    }
}
