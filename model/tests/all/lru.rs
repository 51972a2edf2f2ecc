//! The characteristic time against a cache that is simulated access by access.

use std::collections::{BTreeSet, HashMap};

use ccmodel::{
    BlockProbabilities, Footprint, Layout, Level, LevelKind, Machine, NO_NODE, NodeExtent,
    PageSize, Placement, Replacement, Shape, Visits, predict_tree,
};

/// A small generator; the tests need no quality, only the same numbers each time.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A fully associative LRU cache of blocks.
struct LruCache {
    capacity: usize,
    clock: u64,
    last_use: HashMap<u64, u64>,
    by_use: BTreeSet<(u64, u64)>,
}

impl LruCache {
    fn new(capacity: usize) -> LruCache {
        LruCache {
            capacity,
            clock: 0,
            last_use: HashMap::new(),
            by_use: BTreeSet::new(),
        }
    }

    /// Touches a block; whether it missed.
    fn misses(&mut self, block: u64) -> bool {
        self.clock += 1;
        let before = self.last_use.insert(block, self.clock);
        if let Some(used) = before {
            self.by_use.remove(&(used, block));
        }
        self.by_use.insert((self.clock, block));
        if self.by_use.len() > self.capacity {
            let (_, oldest) = self.by_use.pop_first().unwrap();
            self.last_use.remove(&oldest);
        }
        before.is_none()
    }
}

/// A cache that gives up any block.
struct RandomCache {
    capacity: usize,
    slot_of: HashMap<u64, usize>,
    blocks: Vec<u64>,
    random: Random,
}

impl RandomCache {
    fn misses(&mut self, block: u64) -> bool {
        if self.slot_of.contains_key(&block) {
            return false;
        }
        if self.blocks.len() < self.capacity {
            self.slot_of.insert(block, self.blocks.len());
            self.blocks.push(block);
        } else {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "below the length of a vector"
            )]
            let slot = self.random.below(self.blocks.len() as u64) as usize;
            self.slot_of.remove(&self.blocks[slot]);
            self.blocks[slot] = block;
            self.slot_of.insert(block, slot);
        }
        true
    }
}

const NODE_BYTES: u32 = 32;
const BLOCK_BYTES: u64 = 64;

/// Misses of a search, simulated: root to a uniformly random node, each line of each node once.
fn simulated(shape: &Shape, placement: &Placement, mut misses: impl FnMut(u64) -> bool) -> f64 {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let nodes = shape.len() as u64;
    let (warm_up, counted) = (20_000, 30_000);
    let mut total = 0u32;
    let mut path = Vec::new();
    for search in 0..warm_up + counted {
        path.clear();
        let mut v = u32::try_from(random.below(nodes)).unwrap();
        while v != NO_NODE {
            path.push(v);
            v = shape.parent(v);
        }
        for &v in path.iter().rev() {
            let first = placement.offset(v) / BLOCK_BYTES;
            let last = (placement.offset(v) + u64::from(NODE_BYTES) - 1) / BLOCK_BYTES;
            for block in first..=last {
                let missed = misses(block);
                total += u32::from(missed && search >= warm_up);
            }
        }
    }
    f64::from(total) / f64::from(counted)
}

fn footprint(shape: &Shape, placement: &Placement) -> Footprint {
    BlockProbabilities::new(&Visits::uniform(shape), placement, NODE_BYTES, BLOCK_BYTES).footprint()
}

/// Shapes and layouts with their placements.
fn cases() -> Vec<(Shape, Layout, Placement)> {
    let node = NodeExtent::new(NODE_BYTES, 8).unwrap();
    let mut cases = Vec::new();
    for shape in [
        Shape::random_binary(20_000, 5),
        Shape::complete_binary(16_383),
    ] {
        for layout in [
            Layout::Random { seed: 1 },
            Layout::BreadthFirst,
            Layout::DepthFirst,
            Layout::SubtreeCluster { block_bytes: 64 },
            Layout::VanEmdeBoas,
        ] {
            let placement = layout.place(&shape, node);
            cases.push((shape.clone(), layout, placement));
        }
    }
    cases
}

#[test]
fn characteristic_time_agrees_with_a_simulated_lru_cache() {
    for (shape, layout, placement) in cases() {
        let footprint = footprint(&shape, &placement);
        for capacity in [512, 3000] {
            let mut cache = LruCache::new(capacity);
            let simulated = simulated(&shape, &placement, |block| cache.misses(block));
            let predicted = footprint.misses(capacity as f64, Replacement::Lru);
            let error = predicted / simulated - 1.0;
            // Depth-first and exact layouts alike: a fully associative cache has no aliasing.
            assert!(
                error.abs() < 0.08,
                "{layout}, {capacity} blocks: {predicted} against {simulated}"
            );
        }
    }
}

#[test]
fn characteristic_time_agrees_with_a_simulated_random_cache() {
    for (shape, layout, placement) in cases() {
        let footprint = footprint(&shape, &placement);
        for capacity in [512, 3000] {
            let mut cache = RandomCache {
                capacity,
                slot_of: HashMap::new(),
                blocks: Vec::new(),
                random: Random(99),
            };
            let simulated = simulated(&shape, &placement, |block| cache.misses(block));
            let predicted = footprint.misses(capacity as f64, Replacement::Random);
            let error = predicted / simulated - 1.0;
            assert!(
                error.abs() < 0.08,
                "{layout}, {capacity} blocks: {predicted} against {simulated}"
            );
        }
    }
}

#[test]
fn operations_as_long_as_the_cache_miss_more_than_predicted() {
    // A known limit: walks along one list come in an order, which the independent reference model
    // does not know.
    let nodes = 2000;
    let parents: Vec<u32> = (0..nodes)
        .map(|v: u32| v.checked_sub(1).unwrap_or(NO_NODE))
        .collect();
    let list = Shape::from_parents(&parents).unwrap();
    let node = NodeExtent::new(NODE_BYTES, 64).unwrap();
    let placement = Layout::DepthFirst.place(&list, node);
    let footprint = footprint(&list, &placement);
    let mut random = Random(0x9876_5432_1234_5678);
    for capacity in [200, 1000] {
        let mut cache = LruCache::new(capacity);
        let (warm_up, counted) = (200, 600);
        let mut misses = 0;
        for walk in 0..warm_up + counted {
            let end = random.below(u64::from(nodes));
            for block in 0..=end {
                misses += u32::from(cache.misses(block) && walk >= warm_up);
            }
        }
        let simulated = f64::from(misses) / f64::from(counted);
        let predicted = footprint.misses(capacity as f64, Replacement::Lru);
        assert!(
            predicted < 0.95 * simulated,
            "{capacity} blocks: {predicted} against {simulated}"
        );
        // So the prediction says that it is not to be believed.
        let level = Level::new(
            "L1",
            LevelKind::Data,
            BLOCK_BYTES,
            (64 * capacity) as f64,
            1.0,
        );
        let machine = Machine::new("one cache", Machine::thesis().search, vec![level]).unwrap();
        let prediction = predict_tree(&list, &placement, node, PageSize::Huge2M, &machine);
        assert_eq!(prediction.crowded_levels().count(), 1);
    }
}

#[test]
fn cold_searches_miss_what_u_says() {
    // Misses of the first t searches from an empty, large cache are U(t).
    let (shape, _, placement) = cases().swap_remove(4);
    let footprint = footprint(&shape, &placement);
    let mut seen = BTreeSet::new();
    let mut random = Random(77);
    for search in 1..=4000u32 {
        let mut v = u32::try_from(random.below(shape.len() as u64)).unwrap();
        while v != NO_NODE {
            let offset = placement.offset(v);
            seen.extend(offset / BLOCK_BYTES..=(offset + u64::from(NODE_BYTES) - 1) / BLOCK_BYTES);
            v = shape.parent(v);
        }
        if search % 1000 == 0 {
            let error = footprint.distinct_blocks(f64::from(search)) / seen.len() as f64 - 1.0;
            assert!(error.abs() < 0.02, "{search} searches: {error}");
        }
    }
}
