use super::*;
use crate::{Accesses, CacheLevel, Frames, Hierarchy, Inclusion, Tier, predict_misses};
use quickcheck::quickcheck;

const VEB: Layout = Layout::VanEmdeBoas;

fn geometry(sets: u64, block_bytes: u64, ways: u64) -> CacheGeometry {
    CacheGeometry::new(sets, block_bytes, ways).unwrap()
}

fn extent(bytes: u32, align: u32) -> NodeExtent {
    NodeExtent::new(bytes, align).unwrap()
}

/// Simulated and predicted misses, without and with colours.
fn compared(
    shape: &Shape,
    node: NodeExtent,
    cache: CacheGeometry,
    share: f64,
    layout: Layout,
) -> [(f64, f64); 2] {
    let colouring = Colouring::new(cache, share).unwrap();
    let coloured = colouring.place(shape, node, layout, None).unwrap();
    let plain = layout.place(shape, node);
    let bytes = (cache.blocks() * cache.block_bytes()) as f64;
    let level = Level::new("L1", LevelKind::Data, cache.block_bytes(), bytes, 10.0);
    let machine = Machine::new("one cache", Machine::thesis().search, vec![level]).unwrap();
    let (predictor, pages) = (Predictor::new(shape), PageSize::Small4K);
    let gain = coloured
        .gain(&plain, &predictor, node, pages, &machine, "L1")
        .unwrap();
    let caches = vec![CacheLevel::lru("L1", cache)];
    let hierarchy = Hierarchy::new(caches, Inclusion::NonInclusive, Vec::new()).unwrap();
    let both = [(&plain, &gain.plain), (&coloured.placement, &gain.coloured)];
    both.map(|(placement, predicted)| {
        let accesses = Accesses::searches(shape, placement, node.bytes, None);
        let tier = Tier::PerSet;
        let simulated = predict_misses(&accesses, &hierarchy, Frames::Identity, tier, None);
        (simulated[0].misses, predicted.levels[0].misses)
    })
}

#[test]
fn predictions_agree_with_a_simulated_first_level_cache() {
    // 48 KiB of 12 ways. Measured: wrong by 1 % at most, with colours and without.
    let l1 = geometry(64, 64, 12);
    for (shape, bytes) in [
        (Shape::random_binary(60_000, 3), 32),
        (Shape::complete_binary(65_535), 32),
        (Shape::random_binary(60_000, 4), 64),
    ] {
        for share in [0.25, 0.5, 0.75] {
            let both = compared(&shape, extent(bytes, 8), l1, share, VEB);
            for (simulated, predicted) in both {
                let error = predicted / simulated - 1.0;
                assert!(error.abs() < 0.03, "{bytes} B, {share}: {error}");
            }
        }
    }
}

#[test]
fn predictions_agree_with_the_simulated_thesis_machine() {
    // A direct-mapped cache, a sixteenth of the thesis's, and a tree a sixteenth of its size.
    let l2 = geometry(1024, 64, 1);
    let shape = Shape::complete_binary((1 << 17) - 1);
    let node = extent(20, 4);
    let layout = Layout::SubtreeCluster { block_bytes: 64 };
    let [plain, coloured] = compared(&shape, node, l2, 0.5, layout);
    assert!((coloured.1 / coloured.0 - 1.0).abs() < 0.03);
    // The thesis's formula, (D - R) / K, is the worst case for what is not coloured, of which the
    // cache holds some: half of the cache holds 512 x 3 nodes, and a block holds two levels.
    let formula = (17.0 - 1537f64.log2()) / 2.0;
    let share = coloured.0 / formula;
    assert!((0.8..1.0).contains(&share), "{share}");
    // Without colours, conflicts in a direct-mapped cache cost more than the footprint knows.
    assert!(plain.0 > 1.5 * coloured.0 && plain.1 < plain.0);
}

#[test]
fn parameters_are_those_of_the_thesis() {
    // 64 pages of 384 nodes (section 3.4): half of 16384 sets, three nodes to a block.
    let l2 = Colouring::new(geometry(16_384, 64, 1), 0.5).unwrap();
    let node = extent(20, 4);
    assert_eq!(l2.hot_nodes_max(node), 64 * 384);
    assert_eq!(l2.hot_way_bytes(), 512 << 10);
    // Larger than a block: by bytes, none across the end of a way's hot part.
    assert_eq!(l2.hot_nodes_max(extent(100, 4)), (512 << 10) / 100);
    // Whole pages where a way is larger than one, whole blocks where it is not.
    for (sets, share, hot_way_bytes) in [
        (256, 0.3, 4096),
        (256, 0.2, 0),
        (64, 0.3, 19 * 64),
        (1, 0.99, 0),
        (1, 1.0, 64),
    ] {
        let colouring = Colouring::new(geometry(sets, 64, 2), share).unwrap();
        assert_eq!(colouring.hot_way_bytes(), hot_way_bytes);
    }
}

#[test]
fn all_or_nothing() {
    for share in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let refused = Colouring::new(geometry(64, 64, 1), share);
        assert_eq!(refused, Err(ColourError::Share));
    }
    let (shape, node) = (Shape::random_binary(500, 1), extent(32, 8));
    let place = |share, nodes: &Shape, node| {
        let colouring = Colouring::new(geometry(64, 64, 2), share).unwrap();
        colouring.place(nodes, node, VEB, None)
    };
    let nothing = place(0.0, &shape, node).unwrap();
    assert_eq!((nothing.hot_nodes, nothing.gap_bytes), (0, 0));
    assert_eq!(nothing.placement, VEB.place(&shape, node));
    // Fewer nodes than could be hot.
    let few = Shape::random_binary(40, 1);
    assert_eq!(place(1.0, &few, node).unwrap().hot_nodes, 40);
    assert_eq!(place(0.5, &few, node).unwrap().hot_nodes, 40);
    let none = place(0.5, &Shape::complete_binary(0), node).unwrap();
    assert!(none.placement.is_empty() && none.gap_bytes == 0);
    // All sets are hot but not all nodes, and sizes and alignments that no colour has.
    for (share, node) in [
        (1.0, node),
        (0.5, extent(8, 4096)),
        (0.5, extent(3000, 8)),
        (0.5, extent(8, 8192)),
    ] {
        let placed = place(share, &shape, node);
        assert!(matches!(placed, Err(ColourError::NodeTooLarge { .. })));
    }
}

#[test]
fn gaps_of_large_ways_cost_no_memory_and_hot_nodes_stay_in_their_ways() {
    let shape = Shape::complete_binary(100_000);
    for (sets, lost) in [(1024, false), (64, true)] {
        let cache = geometry(sets, 64, 4);
        let colouring = Colouring::new(cache, 0.5).unwrap();
        let placed = colouring.place(&shape, extent(32, 8), VEB, None);
        let coloured = placed.unwrap();
        assert!(coloured.gap_bytes > 0);
        assert_eq!(coloured.lost_bytes > 0, lost);
        let mut nodes = coloured.hot.iter().zip(coloured.placement.offsets());
        assert!(nodes.all(|(&hot, &offset)| !hot || offset < 4 * cache.way_bytes()));
    }
}

#[test]
fn the_gain_is_told_per_level() {
    let shape = Shape::complete_binary(60_000);
    let node = extent(32, 8);
    let colouring = Colouring::new(geometry(64, 64, 12), 0.5).unwrap();
    let coloured = colouring.place(&shape, node, VEB, None).unwrap();
    let predictor = Predictor::new(&shape);
    let plain = VEB.place(&shape, node);
    let (pages, machine) = (PageSize::Small4K, Machine::this());
    let gain = |level: &str| coloured.gain(&plain, &predictor, node, pages, machine, level);
    let l1 = gain("L1").unwrap();
    assert_eq!(l1.levels().count(), l1.plain.levels.len());
    let saved: f64 = l1.levels().map(|(_, _, ns)| ns).sum();
    assert!((saved - l1.ns()).abs() < 1e-9);
    // Half of each cold page is a gap, so that more pages are touched.
    let pages = l1.levels().find(|(name, ..)| *name == "TLB-4k").unwrap();
    assert!(pages.1 < 0.0 && pages.2 < 0.0);
    for wrong in ["TLB-4k", "L9", ""] {
        assert!(matches!(gain(wrong), Err(ColourError::NoLevel { .. })));
    }
}

quickcheck! {
    fn colours_keep_apart(
        parents: Vec<u16>, kind: u8, share: u8, bytes: u8, weighted: bool
    ) -> bool {
        let shape = crate::shape::tests::forest(&parents);
        let caches = [geometry(16, 64, 2), geometry(128, 64, 1), geometry(4, 256, 3)];
        let cache = caches[usize::from(kind % 3)];
        let layout = [
            VEB,
            Layout::DepthFirst,
            Layout::SubtreeCluster { block_bytes: 64 },
            Layout::ClusterVanEmdeBoas { block_bytes: 4096 },
        ][usize::from(kind / 3 % 4)];
        let node = extent(u32::from(bytes) + 1, 1 << (bytes % 5));
        let colouring = Colouring::new(cache, f64::from(share) / 255.0).unwrap();
        let weights: Vec<f64> = parents.iter().map(|&p| f64::from(p % 100)).collect();
        let weights = weighted.then_some(weights.as_slice());
        let hot = colouring.hot(&shape, node, weights);
        let closed = (0..shape.nodes())
            .filter(|&v| hot[v as usize] && shape.parent(v) != NO_NODE)
            .all(|v| hot[shape.parent(v) as usize]);
        let few = hot.iter().filter(|&&hot| hot).count() as u64 <= colouring.hot_nodes_max(node);
        let Ok(coloured) = colouring.place(&shape, node, layout, weights) else {
            return closed && few;
        };
        let (way, hot_way) = (cache.way_bytes(), colouring.hot_way_bytes());
        let size = u64::from(node.bytes);
        let inside = coloured.placement.offsets().iter().zip(&hot).all(|(&offset, &hot)| {
            let (start, end) = (offset % way, offset % way + size);
            offset % u64::from(node.align) == 0
                && if hot { end <= hot_way } else { hot_way <= start && end <= way }
        });
        let mut sorted = coloured.placement.offsets().to_vec();
        sorted.sort_unstable();
        let apart = sorted.windows(2).all(|pair| pair[1] - pair[0] >= size);
        closed && few && inside && apart && coloured.hot == hot
    }
}
