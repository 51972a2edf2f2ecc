//! Misses from a layout's name and the number of nodes: O(log n), no array of any kind.
//!
//! A search in a complete tree of `n` nodes visits each of the `k^d` nodes at depth `d` with the same probability, `p_d` = the
//! share of the nodes at depth `d` and below, divided by their number. Layouts put these nodes into blocks so regularly that
//! there are only O(log n) different blocks:
//!
//! - **random**: a block holds `m` nodes that have nothing to do with each other, so it stays untouched for `t` searches with
//!   probability `g(t)^m`, where `g(t) = sum over d of (k^d / n) (1 - p_d)^t`.
//! - **breadth-first**: a level's blocks hold `m` brothers and cousins, of which a search visits one at most: `m p_d`.
//! - **clusters** of one block, in van Emde Boas order: a cluster is touched when its root is. From a root on, whole levels are taken as long as they fit, and what is left
//!   below are roots again, so the number of roots of each height follows from the one above. Fragments share blocks.
//!
//! The number of distinct blocks in `t` searches, `U(t)`, gives the misses of a cache of `C` blocks as in the
//! [footprint tier](crate::Footprint): `U(t_C + 1) - U(t_C)` where `U(t_C) = C`.
//!
//! **Where it does not apply.** Depth-first order of a complete tree, of nodes or of clusters, meets few of a cache's sets, which no
//! count of blocks knows. In van Emde Boas order of nodes, and in pages that hold many clusters, which nodes share a block depends on
//! where each subtree begins within it. Those are for the other tiers.

use std::fmt;

use super::{LevelPrediction, Tier};
use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion};
use crate::{Layout, NodeExtent};

/// Bisection steps for `U(t) = C`; the bracket shrinks to one part in 2^60.
const BISECTIONS: u32 = 120;
/// Of smaller levels a search touches too much for its blocks to count as independent: 6 % off at 17 %.
const CROWDED_SHARE: f64 = 0.1;
/// The longest characteristic time that is looked for, in operations.
const TIME_MAX: f64 = 1e15;

/// No formula is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoClosedForm {
    why: String,
}

impl fmt::Display for NoClosedForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no closed form: {}", self.why)
    }
}

impl std::error::Error for NoClosedForm {}

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
    /// Nodes at each depth; all but the last are powers of the arity.
    at_depth: Vec<f64>,
}

/// The blocks of one size.
enum Blocks {
    /// Probability and number of each class.
    Classes(Vec<(f64, f64)>),
    /// So many blocks with so many strangers in each.
    Strangers { blocks: f64, nodes_each: f64 },
}

impl ClosedForm {
    /// A complete tree of `nodes` nodes with `arity` children each, the last level filled from the left, in this layout;
    /// searches end at each node equally often and read whole nodes. O(log n).
    ///
    /// # Errors
    /// [`NoClosedForm`] for layouts without one, an arity below 2, and trees without nodes.
    pub fn new(
        layout: Layout,
        nodes: u64,
        arity: u32,
        node: NodeExtent,
    ) -> Result<ClosedForm, NoClosedForm> {
        let refuse = |why: String| Err(NoClosedForm { why });
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
        let mut at_depth = Vec::new();
        let (mut left, mut level) = (nodes, 1.0f64);
        while left > 0.0 {
            at_depth.push(level.min(left));
            left -= level;
            level *= arity;
        }
        Ok(ClosedForm {
            layout,
            nodes,
            arity,
            node,
            at_depth,
        })
    }

    /// P(a search visits a node at this depth).
    fn probability(&self, depth: usize) -> f64 {
        let below: f64 = self.at_depth[depth..].iter().sum();
        below / self.nodes / self.at_depth[depth]
    }

    fn blocks(&self, block_bytes: u64) -> Result<Blocks, NoClosedForm> {
        let (block, stride) = (block_bytes as f64, self.node.stride_bytes() as f64);
        // A block that begins anywhere meets the ends of two nodes.
        let granule = gcd(block_bytes, self.node.stride_bytes()) as f64;
        let met = (block + stride - granule) / stride;
        match self.layout {
            Layout::Random { .. } => Ok(Blocks::Strangers {
                blocks: (self.nodes * stride / block).max(1.0),
                nodes_each: met.min(self.nodes),
            }),
            Layout::BreadthFirst => {
                // The first levels fill a block together.
                let mut classes = vec![(1.0, 1.0)];
                let mut in_first = block;
                for (depth, &nodes) in self.at_depth.iter().enumerate() {
                    let bytes = nodes * stride;
                    let blocks = (bytes - in_first).max(0.0) / block;
                    in_first = (in_first - bytes).max(0.0);
                    classes.push(((self.probability(depth) * met).min(1.0), blocks));
                }
                Ok(Blocks::Classes(classes))
            }
            Layout::ClusterVanEmdeBoas { block_bytes: b }
                if u64::from(b) == block_bytes && self.node.stride_bytes() <= block_bytes =>
            {
                Ok(Blocks::Classes(self.clusters((block / stride).floor())))
            }
            _ => Err(NoClosedForm {
                why: format!(
                    "blocks of {block_bytes} bytes are not the clusters of the layout {}",
                    self.layout
                ),
            }),
        }
    }

    /// Probability and number of blocks by the depth of what they begin with.
    fn clusters(&self, capacity: f64) -> Vec<(f64, f64)> {
        let depths = self.at_depth.len();
        let mut roots = vec![0.0; depths + 1];
        roots[0] = 1.0;
        let mut classes = Vec::new();
        let mut first = self.first_cluster(capacity);
        for depth in 0..depths {
            let clusters = roots[depth];
            if clusters <= 0.0 {
                continue;
            }
            let capacity = first.take().unwrap_or(capacity);
            let mut room = capacity;
            // Nodes of the cluster's subtree, level by level.
            let mut here = depth;
            let mut width = 1.0;
            loop {
                let Some(&all) = self.at_depth.get(here) else {
                    // The subtree ends here: fragments share a block.
                    let nodes = capacity - room;
                    let together = (capacity / nodes.max(1.0)).floor().max(1.0);
                    let probability = (self.probability(depth) * together).min(1.0);
                    classes.push((probability, clusters / together));
                    break;
                };
                let full = self.arity.powf(here as f64);
                let present = width * (all / full).min(1.0);
                if present <= room {
                    room -= present;
                    here += 1;
                    width *= self.arity;
                    continue;
                }
                roots[here] += clusters * (present - room);
                if here + 1 < depths {
                    roots[here + 1] += clusters
                        * room
                        * self.arity
                        * (self.at_depth[here + 1] / (full * self.arity)).min(1.0);
                }
                classes.push((self.probability(depth), clusters));
                break;
            }
        }
        classes
    }

    /// What the topmost cluster holds where the others are aligned from the bottom.
    fn first_cluster(&self, capacity: f64) -> Option<f64> {
        let levels = (capacity + 1.0).log2();
        if self.arity > 2.5 || levels < 2.0 || levels.fract() > 0.0 {
            return None;
        }
        let rest = self.at_depth.len() as f64 % levels;
        (rest > 0.5).then(|| f64::exp2(rest) - 1.0)
    }

    /// Expected number of distinct blocks of `block_bytes` bytes that `operations` searches touch, `U(t)`; `None` where no
    /// formula is known. O(log n).
    pub fn distinct_blocks(&self, block_bytes: u64, operations: f64) -> Option<f64> {
        let blocks = self.blocks(block_bytes).ok()?;
        Some(self.distinct(&blocks, operations))
    }

    fn distinct(&self, blocks: &Blocks, operations: f64) -> f64 {
        let within = |probability: f64| {
            if probability >= 1.0 {
                f64::from(u8::from(operations > 0.0))
            } else {
                -((-probability).ln_1p() * operations).exp_m1()
            }
        };
        match blocks {
            Blocks::Classes(classes) => classes.iter().map(|&(p, n)| n * within(p)).sum(),
            Blocks::Strangers { blocks, nodes_each } => {
                let touched: f64 = (0..self.at_depth.len())
                    .map(|depth| {
                        self.at_depth[depth] / self.nodes * within(self.probability(depth))
                    })
                    .sum();
                blocks * -(nodes_each * (-touched.min(1.0)).ln_1p()).exp_m1()
            }
        }
    }

    /// Misses of a search in a fully associative cache of `capacity_blocks` blocks with LRU replacement; `None` where no formula is
    /// known. O(log n).
    pub fn misses(&self, block_bytes: u64, capacity_blocks: f64) -> Option<f64> {
        let blocks = self.blocks(block_bytes).ok()?;
        let at = |t: f64| self.distinct(&blocks, t);
        if at(TIME_MAX) <= capacity_blocks {
            return Some(0.0);
        }
        let (mut low, mut high) = (0.0f64, TIME_MAX);
        for _ in 0..BISECTIONS {
            // Halves the ratio where times are long, the difference where they are short.
            let middle = (0.5 * (low.ln_1p() + high.ln_1p())).exp_m1();
            if at(middle) < capacity_blocks {
                low = middle;
            } else {
                high = middle;
            }
        }
        // New blocks of the next operation, over a stretch that is long enough for the difference to keep its digits.
        let next = 0.5 * (low + high) + 0.5;
        let half = (next * 1e-3).max(0.5);
        Some((at(next + half) - at(next - half)) / (2.0 * half))
    }

    /// Misses of one search at those levels of a machine for which a formula is known and of which a search touches no more than a tenth, as if
    /// each were fully associative; a victim cache together with the cache above it. O(log n) a level.
    pub fn predict(&self, hierarchy: &Hierarchy) -> Vec<LevelPrediction> {
        let caches = hierarchy.caches();
        let victim = |i: usize| {
            hierarchy.inclusion() == Inclusion::VictimLast && i > 0 && i + 1 == caches.len()
        };
        let caches = caches.iter().enumerate().map(|(i, level)| {
            let more = if victim(i) { caches[i - 1].blocks() } else { 0 };
            (level, level.blocks() + more)
        });
        let tlbs = hierarchy.tlbs().iter().map(|level| (level, level.blocks()));
        let predict = |(level, blocks): (&CacheLevel, u64)| {
            let block_bytes = level.geometry.block_bytes();
            let touches = self.distinct_blocks(block_bytes, 1.0)?;
            if touches > CROWDED_SHARE * blocks as f64 {
                return None;
            }
            let misses = self.misses(block_bytes, blocks as f64)?;
            Some(LevelPrediction {
                name: level.name.clone(),
                misses,
                tier: Tier::Closed,
                reason: format!("a complete tree in the layout {}", self.layout),
            })
        };
        caches.chain(tlbs).filter_map(predict).collect()
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
