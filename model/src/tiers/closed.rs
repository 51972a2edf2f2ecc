//! Misses from a layout's name and the number of nodes, in O(log n).
//!
//! A search in a complete tree of `n` nodes visits each of the `k^d` nodes at depth `d` with the
//! same probability `p_d`. Layouts put these nodes into only O(log n) kinds of blocks:
//!
//! - **random**: a block holds `m` unrelated nodes, so it stays untouched for `t` searches with
//!   probability `g(t)^m`, where `g(t) = sum over d of (k^d / n) (1 - p_d)^t`.
//! - **breadth-first**: a block holds `m` nodes of one level, and a search visits at most one.
//! - **clusters** of one block, in van Emde Boas order: a cluster is touched when its root is. From
//!   a root on, whole levels are taken as long as they fit, and what is left below are roots again.
//!
//! No formula is known for other layouts: depth-first orders use few of a cache's sets.
//!
//! Each set has the same share of each kind of block, and the number of those that were touched in
//! `t` searches is taken as binomial. Misses are the new blocks of an operation, averaged over the
//! time after which a set has forgotten a block.
//!
//! A **victim cache** holds what the cache above evicts. Let that cache have room for `k` blocks
//! for each set of the victim, and let a share `h` of the requests be for new blocks. A block is
//! forgotten once `ways` others came and none of them was requested again for the time that the
//! cache above holds a block, which takes `(e^x - 1) / x` such times with `x = k (1 - h)`. So in
//! place of `ways` there is room for `ways + k (1 - exp(-h (e^x - 1) / x))`.

use super::{LevelPrediction, Tier};
use crate::hierarchy::{CacheLevel, Hierarchy};
use crate::{Error, Layout, NodeExtent};

/// A search touches too much of smaller levels for its blocks to count as independent.
const CROWDED_SHARE: f64 = 0.1;
/// Passes that find how much room the cache above adds to a victim cache, and the share of new
/// blocks before the first.
const VICTIM_PASSES: usize = 3;
const VICTIM_NEW: f64 = 0.5;
/// Above it, the exponential makes no difference.
const VICTIM_EXPONENT_MAX: f64 = 30.0;
/// Larger sets are divided into sets of this many ways, which hold what one set would.
const WAYS_MAX: f64 = 128.0;
/// Times in operations at which a set is looked at: each of the first ones, then growing by a
/// factor, up to a multiple of the mean distance of the rarest block's touches.
const FIRST_TIMES: f64 = 16.0;
const TIME_GROWTH: f64 = 1.15;
const LAST_TIME: f64 = 64.0;
/// The longest time, in operations.
const TIME_MAX: f64 = 1e15;

/// A complete tree in a layout that is regular enough.
///
/// # Examples
/// ```
/// use ccmodel::{ClosedForm, Layout, NodeExtent};
///
/// let tree = ClosedForm::new(Layout::BreadthFirst, (1 << 22) - 1, 2, NodeExtent::new(32, 8)?)?;
/// // The misses of 32768 lines of 64 bytes: a 2 MiB cache.
/// let misses = tree.misses(64, 32768.0).unwrap();
/// assert!((6.0..8.0).contains(&misses), "{misses}");
/// assert!(ClosedForm::new(Layout::DepthFirst, 1023, 2, NodeExtent::new(32, 8)?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedForm {
    layout: Layout,
    nodes: f64,
    arity: f64,
    node: NodeExtent,
    depths: Vec<Depth>,
}

/// The nodes at one depth.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Depth {
    /// A power of the arity, except at the last depth.
    nodes: f64,
    /// P(a search visits one of them).
    probability: f64,
}

/// Blocks that are alike.
struct Kind {
    blocks: f64,
    /// Unrelated nodes in each.
    nodes_each: f64,
    /// What each of these nodes may be: how probable that is, and P(a search visits it).
    node: Vec<(f64, f64)>,
}

impl Kind {
    /// Blocks that are touched with this probability.
    fn of(probability: f64, blocks: f64) -> Kind {
        Kind {
            blocks,
            nodes_each: 1.0,
            node: vec![(1.0, probability.min(1.0))],
        }
    }

    /// P(one of the blocks is touched within `operations`).
    fn touched(&self, operations: f64) -> f64 {
        let visited = |&(share, probability): &(f64, f64)| match probability {
            1.0.. => share * f64::from(u8::from(operations > 0.0)),
            _ => share * -((-probability).ln_1p() * operations).exp_m1(),
        };
        let visited: f64 = self.node.iter().map(visited).sum();
        -(self.nodes_each * (-visited.min(1.0)).ln_1p()).exp_m1()
    }
}

impl ClosedForm {
    /// A complete tree of `nodes` nodes with `arity` children each, the last level filled from the
    /// left, in this layout. Searches end at each node equally often and read whole nodes.
    ///
    /// # Errors
    /// For layouts without one, an arity below 2, and trees without nodes.
    pub fn new(
        layout: Layout,
        nodes: u64,
        arity: u32,
        node: NodeExtent,
    ) -> Result<ClosedForm, Error> {
        let refuse = |why: String| Err(Error::new(format!("no closed form: {why}")));
        if nodes == 0 || arity < 2 {
            return refuse(format!(
                "{nodes} nodes with {arity} children each are no tree"
            ));
        }
        match layout {
            Layout::Random { .. } | Layout::BreadthFirst | Layout::ClusterVanEmdeBoas { .. } => {}
            Layout::DepthFirst | Layout::SubtreeCluster { .. } => {
                return refuse(format!(
                    "complete trees in the layout {layout} meet few of a cache's sets"
                ));
            }
            _ => return refuse(format!("none is known for the layout {layout}")),
        }
        let (arity, nodes) = (f64::from(arity), nodes as f64);
        let mut depths = Vec::new();
        let (mut below, mut level) = (nodes, 1.0f64);
        while below > 0.0 {
            let here = level.min(below);
            depths.push(Depth {
                nodes: here,
                probability: below / nodes / here,
            });
            below -= level;
            level *= arity;
        }
        Ok(ClosedForm {
            layout,
            nodes,
            arity,
            node,
            depths,
        })
    }

    /// The kinds of blocks of this size; `None` where no formula is known.
    fn kinds(&self, block_bytes: u64) -> Option<Vec<Kind>> {
        let (block, stride) = (block_bytes as f64, self.node.stride_bytes() as f64);
        // A block that begins anywhere holds parts of two more nodes.
        let granule = gcd(block_bytes, self.node.stride_bytes()) as f64;
        let met = (block + stride - granule) / stride;
        match self.layout {
            Layout::Random { .. } => {
                let of_depth = |depth: &Depth| (depth.nodes / self.nodes, depth.probability);
                Some(vec![Kind {
                    blocks: (self.nodes * stride / block).max(1.0),
                    nodes_each: met.min(self.nodes),
                    node: self.depths.iter().map(of_depth).collect(),
                }])
            }
            Layout::BreadthFirst => {
                // The first levels fill a block together.
                let mut kinds = vec![Kind::of(1.0, 1.0)];
                let mut in_first = block;
                for depth in &self.depths {
                    let bytes = depth.nodes * stride;
                    let blocks = (bytes - in_first).max(0.0) / block;
                    in_first = (in_first - bytes).max(0.0);
                    kinds.push(Kind::of(depth.probability * met, blocks));
                }
                Some(kinds)
            }
            Layout::ClusterVanEmdeBoas { block_bytes: b }
                if u64::from(b) == block_bytes && 2 * self.node.stride_bytes() <= block_bytes =>
            {
                Some(self.clusters((block / stride).floor()))
            }
            _ => None,
        }
    }

    /// Blocks by the depth of what they begin with.
    fn clusters(&self, capacity: f64) -> Vec<Kind> {
        let depths = self.depths.len();
        let mut roots = vec![0.0; depths + 1];
        roots[0] = 1.0;
        let mut kinds = Vec::new();
        let mut first = self.first_cluster(capacity);
        for depth in 0..depths {
            let (clusters, probability) = (roots[depth], self.depths[depth].probability);
            if clusters <= 0.0 {
                continue;
            }
            let capacity = first.take().unwrap_or(capacity);
            // Nodes of the cluster's subtree, level by level.
            let (mut room, mut here, mut width) = (capacity, depth, 1.0);
            let share = |at: usize| self.depths[at].nodes / self.arity.powf(at as f64);
            let present = |here, width: f64| width * share(here).min(1.0);
            while here < depths && present(here, width) <= room {
                room -= present(here, width);
                here += 1;
                width *= self.arity;
            }
            if here == depths {
                // The subtree ends here: fragments share a block.
                let together = (capacity / (capacity - room).max(1.0)).floor().max(1.0);
                kinds.push(Kind::of(probability * together, clusters / together));
                continue;
            }
            roots[here] += clusters * (present(here, width) - room);
            if here + 1 < depths {
                roots[here + 1] += clusters * present(here + 1, room * self.arity);
            }
            kinds.push(Kind::of(probability, clusters));
        }
        kinds
    }

    /// What the topmost cluster holds where the others are aligned from the bottom.
    fn first_cluster(&self, capacity: f64) -> Option<f64> {
        let levels = (capacity + 1.0).log2();
        if self.arity > 2.5 || levels < 2.0 || levels.fract() > 0.0 {
            return None;
        }
        let rest = self.depths.len() as f64 % levels;
        (rest > 0.5).then(|| f64::exp2(rest) - 1.0)
    }

    /// Expected number of distinct blocks of `block_bytes` bytes that `operations` searches touch,
    /// `U(t)`; `None` where no formula is known. O(log n).
    pub fn distinct_blocks(&self, block_bytes: u64, operations: f64) -> Option<f64> {
        Some(distinct(&self.kinds(block_bytes)?, operations))
    }

    /// Misses of a search in a fully associative cache of `capacity_blocks` blocks with LRU
    /// replacement; `None` where no formula is known. O(log n).
    pub fn misses(&self, block_bytes: u64, capacity_blocks: f64) -> Option<f64> {
        self.misses_in_sets(block_bytes, 1.0, capacity_blocks)
    }

    /// Misses of a search in a cache of `sets` sets of `ways` blocks with LRU replacement, over
    /// which blocks spread evenly; parts of ways count in proportion.
    fn misses_in_sets(&self, block_bytes: u64, sets: f64, ways: f64) -> Option<f64> {
        let capacity = sets * ways;
        let ways = ways.min(WAYS_MAX);
        let sets = capacity / ways.max(f64::MIN_POSITIVE);
        let kinds = self.kinds(block_bytes)?;
        if distinct(&kinds, TIME_MAX) <= capacity {
            return Some(0.0);
        }
        let touched_in = |time: f64| kinds.iter().map(|kind| kind.touched(time)).collect();
        let rarest = self.depths.last()?.probability;
        let end = (LAST_TIME / rarest.max(f64::MIN_POSITIVE)).min(TIME_MAX);
        let (mut misses, mut before) = (0.0, 0.0);
        let mut touched_before: Vec<f64> = touched_in(before);
        let mut forgotten = vec![0.0; kinds.len()];
        while before < end {
            let time = match before < FIRST_TIMES {
                true => before + 1.0,
                false => before * TIME_GROWTH,
            };
            let touched: Vec<f64> = touched_in(time);
            let in_set = kinds.iter().zip(&touched);
            let in_set = in_set.map(|(kind, touched)| kind.blocks / sets * touched);
            let mean: f64 = in_set.clone().sum();
            let squares: f64 = in_set.zip(&touched).map(|(n, touched)| n * touched).sum();
            for (i, kind) in kinds.iter().enumerate() {
                // The others; there may be less than one of a kind in a set.
                let others = (mean - touched[i]).max(0.0);
                let spread = (squares - touched[i] * touched[i]).max(0.0);
                let now = match others > 0.0 {
                    true => at_least(ways, others, (spread / others).min(0.999_999)),
                    false => 0.0,
                };
                let rate = (touched[i] - touched_before[i]) / (time - before);
                misses += kind.blocks * (now - forgotten[i]) * rate;
                forgotten[i] = now;
            }
            (before, touched_before) = (time, touched);
        }
        Some(misses)
    }

    /// Blocks that are requested together where a node is read.
    #[cfg(feature = "cli")]
    pub(crate) fn blocks_per_node(&self, block_bytes: u64) -> f64 {
        let stride = self.node.stride_bytes();
        match self.layout {
            // No node of a cluster lies in two.
            Layout::ClusterVanEmdeBoas { .. } => 1.0,
            _ => 1.0 + (stride - gcd(block_bytes, stride)) as f64 / block_bytes as f64,
        }
    }

    /// What a search visits.
    #[cfg(feature = "cli")]
    pub(crate) fn visits(&self) -> crate::Visits {
        let mut visits = crate::Visits::default();
        for &Depth { nodes, probability } in &self.depths {
            let below = (probability - 1.0 / self.nodes).max(0.0);
            let likeliest = below / self.arity;
            let guesses = crate::visits::wrong_guesses(probability, below, likeliest, 2, true);
            visits.nodes_per_operation += nodes * probability;
            visits.mispredictions_per_operation += nodes * guesses;
        }
        visits
    }

    /// Bytes from the first node to the last.
    #[cfg(feature = "cli")]
    pub(crate) fn span_bytes(&self) -> f64 {
        self.nodes * self.node.stride_bytes() as f64
    }

    /// Misses of a search at a level, which is a victim cache if one above is given. `None` where
    /// no formula is known.
    fn misses_at(&self, level: &CacheLevel, above: Option<&CacheLevel>) -> Option<f64> {
        let (cache, sets) = (level.geometry, level.geometry.sets() as f64);
        let ways = cache.associativity() as f64;
        let of_ways = |ways| self.misses_in_sets(cache.block_bytes(), sets, ways);
        let Some(above) = above else {
            return of_ways(ways);
        };
        let taken_in = self.misses_at(above, None)?;
        let (mut new, mut misses) = (VICTIM_NEW, 0.0);
        for _ in 0..VICTIM_PASSES {
            misses = of_ways(ways + victim_room(above.blocks() as f64 / sets, new))?;
            new = (misses / taken_in.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        }
        Some(misses)
    }

    /// Misses of one search at those levels of a machine for which a formula is known and of which
    /// a search touches no more than a tenth, as if blocks spread evenly over their sets. O(log n)
    /// a level.
    pub fn predict(&self, hierarchy: &Hierarchy) -> Vec<LevelPrediction> {
        self.predict_up_to(hierarchy, CROWDED_SHARE)
    }

    /// As [`predict`](Self::predict), also for levels of which a search touches up to `share`.
    pub(crate) fn predict_up_to(&self, hierarchy: &Hierarchy, share: f64) -> Vec<LevelPrediction> {
        let levels = hierarchy.caches().iter().chain(hierarchy.tlbs());
        let predict = |(i, level): (usize, &CacheLevel)| {
            let touches = self.distinct_blocks(level.geometry.block_bytes(), 1.0)?;
            if touches > share * level.blocks() as f64 {
                return None;
            }
            Some(LevelPrediction {
                name: level.name.clone(),
                misses: self.misses_at(level, hierarchy.above_victim(i))?,
                tier: Tier::Closed,
                reason: format!("a complete tree in the layout {}", self.layout),
            })
        };
        levels.enumerate().filter_map(predict).collect()
    }
}

/// Ways that `there` blocks in the cache above add, when the share `new` of requests is for new
/// blocks.
fn victim_room(there: f64, new: f64) -> f64 {
    let again = (there * (1.0 - new)).min(VICTIM_EXPONENT_MAX);
    let wait = match again > 1e-6 {
        true => again.exp_m1() / again,
        false => 1.0,
    };
    there * -(-new * wait).exp_m1()
}

/// Distinct blocks that are touched in `operations`.
fn distinct(kinds: &[Kind], operations: f64) -> f64 {
    let touched = |kind: &Kind| kind.blocks * kind.touched(operations);
    kinds.iter().map(touched).sum()
}

/// P(at least `least` successes of trials with probability `chance`, of which `mean` are expected);
/// linear between whole numbers. The number of trials may be any real one.
fn at_least(least: f64, mean: f64, chance: f64) -> f64 {
    // Smaller chances make no difference.
    let chance = chance.max(1e-9);
    let (trials, odds) = (mean / chance, chance / (1.0 - chance));
    let mut term = (trials * (-chance).ln_1p()).exp();
    let (mut below, mut j) = (0.0, 0.0);
    while j < least {
        below += term * (least - j).min(1.0);
        term *= (trials - j).max(0.0) / (j + 1.0) * odds;
        j += 1.0;
    }
    (1.0 - below).clamp(0.0, 1.0)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Accesses, CacheGeometry, Frames, Inclusion, Shape, predict_misses};

    const NODES: u32 = (1 << 13) - 1;

    fn form(layout: Layout, bytes: u32) -> ClosedForm {
        let node = NodeExtent::new(bytes, 8).unwrap();
        ClosedForm::new(layout, NODES.into(), 2, node).unwrap()
    }

    #[test]
    fn formulas_agree_with_a_replay() {
        let cache =
            |name, sets, ways| CacheLevel::lru(name, CacheGeometry::new(sets, 64, ways).unwrap());
        let (random, clusters) = (
            Layout::Random { seed: 1 },
            Layout::ClusterVanEmdeBoas { block_bytes: 64 },
        );
        let shape = Shape::complete_binary(NODES);
        let alone = || (Inclusion::NonInclusive, vec![cache("L2", 256, 8)]);
        let large_sets = (Inclusion::NonInclusive, vec![cache("L2", 2, 1024)]);
        // The first of two caches has a quarter, a half or all of the blocks of the second.
        let victim = |sets, last_sets| {
            let caches = vec![cache("L2", sets, 8), cache("L3", last_sets, 16)];
            (Inclusion::VictimLast, caches)
        };
        for (layout, (inclusion, caches)) in [
            (random, victim(64, 128)),
            (random, victim(64, 64)),
            (random, victim(128, 64)),
            (random, alone()),
            (random, large_sets),
            (Layout::BreadthFirst, alone()),
            (clusters, alone()),
        ] {
            let hierarchy = Hierarchy::new(caches, inclusion, Vec::new()).unwrap();
            let placement = layout.place(&shape, NodeExtent::new(32, 8).unwrap());
            let accesses = Accesses::searches(&shape, &placement, 32, None);
            let replayed =
                predict_misses(&accesses, &hierarchy, Frames::Identity, Tier::PerSet, None);
            let known = form(layout, 32).predict(&hierarchy);
            assert_eq!(known.len(), hierarchy.caches().len());
            for (known, replayed) in known.iter().zip(replayed) {
                let error = known.misses / replayed.misses - 1.0;
                assert!(error.abs() < 0.06, "{layout}, {}: {error}", known.name);
            }
        }
        // All fits.
        let large = Hierarchy::new(
            vec![cache("L2", 1 << 12, 8)],
            Inclusion::NonInclusive,
            vec![],
        );
        let levels = form(Layout::BreadthFirst, 32).predict(large.as_ref().unwrap());
        assert!(levels.len() == 1 && levels[0].misses.abs() < 1e-12);
        // Clusters of one node are not known.
        let one = form(clusters, 56);
        assert!(one.predict(&large.unwrap()).is_empty() && one.misses(64, 1e3).is_none());
    }
}
