//! Colouring: the most visited nodes get a part of a cache for themselves (T. Chilimbi,
//! *Cache-Conscious Data Structures*, 1999, sections 2.2.2 and 3.2).
//!
//! An address decides which set of a cache its block falls into. If the top of a tree lies only in
//! some of the sets, and everything else in the others, rarely used nodes cannot evict the top.
//!
//! ```text
//! a way of the cache:    |<-- hot, share x W -->|<-- cold, the rest of W -->|     W = sets x block
//! memory, way 0          | h0 h1 h2 ...         | c0 c1 c2 ...              |
//!         way 1          | h9 ...               | c9 ...                    |
//!         ...              as many hot pieces as the cache has ways, then gaps
//! ```
//!
//! - **Hot** are the first `p = hot sets x floor(block / node) x ways` nodes by number, or, given
//!   weights, the `p` most probable. Both are closed under parents.
//! - **Gaps.** Where a way is larger than a page, hot and cold ranges are whole pages, and a gap is
//!   address space without memory.
//! - **Limits.** Address bits above a page choose sets only in huge pages or where a probe showed
//!   it. A tree may even lose, since the cold nodes have less room: [`Coloured::gain`] says what
//!   each level gains and loses.

use std::fmt;

use crate::predict::ColouredLevel;
use crate::visits::subtree_probabilities;
use crate::{
    CacheGeometry, Layout, Level, LevelKind, Machine, NO_NODE, NodeExtent, PageSize, Placement,
    Prediction, Predictor, Shape,
};

const PAGE_BYTES: u64 = 4096;

/// A cache and the part of it that is for hot nodes.
///
/// # Examples
/// ```
/// use ccmodel::{CacheGeometry, Colouring, Layout, NodeExtent, Shape};
///
/// // A first-level cache of 48 KiB; half of it for the top of the tree.
/// let colouring = Colouring::new(CacheGeometry::new(64, 64, 12)?, 0.5)?;
/// let (shape, node) = (Shape::complete_binary(10_000), NodeExtent::new(32, 8)?);
/// assert_eq!(colouring.hot_nodes_max(node), 32 * 2 * 12);
///
/// let coloured = colouring.place(&shape, node, Layout::VanEmdeBoas, None)?;
/// assert!(coloured.placement.offset(0) % 4096 < 2048);
/// assert!(coloured.placement.offset(9999) % 4096 >= 2048);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colouring {
    geometry: CacheGeometry,
    hot_share: f64,
}

impl Colouring {
    /// A colouring that keeps `hot_share` of the sets for hot nodes, rounded down to whole blocks,
    /// or to whole pages where a way is larger than one.
    ///
    /// # Errors
    /// [`ColourError::Share`] unless the share is between 0 and 1.
    pub fn new(geometry: CacheGeometry, hot_share: f64) -> Result<Colouring, ColourError> {
        let colouring = Colouring {
            geometry,
            hot_share,
        };
        let is_share = (0.0..=1.0).contains(&hot_share);
        is_share.then_some(colouring).ok_or(ColourError::Share)
    }

    /// The cache.
    pub fn geometry(self) -> CacheGeometry {
        self.geometry
    }

    /// The share of the sets that was asked for.
    pub fn hot_share(self) -> f64 {
        self.hot_share
    }

    /// Bytes at the start of each way that are for hot nodes; the rest is for the others.
    pub fn hot_way_bytes(self) -> u64 {
        let way = self.geometry.way_bytes();
        let block = self.geometry.block_bytes();
        let unit = match way > PAGE_BYTES {
            true => PAGE_BYTES.max(block),
            false => block,
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share between 0 and 1 of at most 2^40"
        )]
        let wanted = (self.hot_share * way as f64) as u64;
        wanted.min(way) / unit * unit
    }

    /// How many nodes can be hot: p. 0 where none fits into the hot part of a way.
    pub fn hot_nodes_max(self, node: NodeExtent) -> u64 {
        let (block, stride) = (self.geometry.block_bytes(), node.stride_bytes());
        let hot = self.hot_way_bytes();
        // floor(b / e) nodes to a block; of those larger than one, what fits a way without leaving
        // the hot part.
        let to_a_way = match block / stride {
            0 => hot / stride,
            to_a_block => hot / block * to_a_block,
        };
        to_a_way * self.geometry.associativity()
    }

    /// Which nodes are hot: the first [`p`](Colouring::hot_nodes_max) by number, or the most
    /// probable ones when `weights` say how often operations end at each node. With each hot node,
    /// its parent is hot. O(n), O(n log n) with weights.
    ///
    /// # Panics
    /// When there are weights, but not one for each node.
    pub fn hot(self, shape: &Shape, node: NodeExtent, weights: Option<&[f64]>) -> Vec<bool> {
        let hot_nodes = usize::try_from(self.hot_nodes_max(node))
            .unwrap_or(usize::MAX)
            .min(shape.len());
        let mut hot = vec![false; shape.len()];
        match weights {
            None => hot[..hot_nodes].fill(true),
            Some(weights) => {
                let visits = subtree_probabilities(shape, weights);
                let mut order: Vec<u32> = (0..shape.nodes()).collect();
                // A parent's sum is no less than a child's. Stable: of equals the smaller number
                // first, so that a parent is never behind its child.
                order.sort_by(|&a, &b| visits[b as usize].total_cmp(&visits[a as usize]));
                for &v in &order[..hot_nodes] {
                    hot[v as usize] = true;
                }
            }
        }
        hot
    }

    /// Places the hot nodes in the hot part of the sets and the others in the rest, each in the
    /// order that `layout` gives their part of the forest. O(n log n).
    ///
    /// Offsets are for memory that begins at a multiple of the way's size; nodes keep to segments
    /// as those of [`Layout::place`] do.
    ///
    /// # Errors
    /// [`ColourError::NodeTooLarge`] when the nodes of a colour do not fit into what it has of a
    /// way.
    ///
    /// # Panics
    /// As [`hot`](Colouring::hot) and [`Layout::place`].
    pub fn place(
        self,
        shape: &Shape,
        node: NodeExtent,
        layout: Layout,
        weights: Option<&[f64]>,
    ) -> Result<Coloured, ColourError> {
        let hot = self.hot(shape, node, weights);
        let (way_bytes, hot_way_bytes) = (self.geometry.way_bytes(), self.hot_way_bytes());
        let mut offsets = vec![0u64; shape.len()];
        let mut used_bytes = 0;
        for (is_hot, start, end) in [(true, 0, hot_way_bytes), (false, hot_way_bytes, way_bytes)] {
            let part = Part::of(shape, &hot, is_hot, weights);
            if part.nodes.is_empty() {
                continue;
            }
            let range = Range {
                way_bytes,
                start,
                end,
            };
            if !range.fits(node) {
                return Err(ColourError::NodeTooLarge {
                    node_bytes: node.bytes,
                    room_bytes: end - start,
                });
            }
            let dense = match weights {
                Some(_) => layout.place_weighted(&part.shape, node, &part.weights),
                None => layout.place(&part.shape, node),
            };
            used_bytes += dense.span_bytes(node);
            range.spread(&dense, node, |index, offset| {
                offsets[part.nodes[index] as usize] = offset;
            });
        }
        // From the start of the first way: offset 0 is a hot node's, or left free for one.
        let last = offsets.iter().max();
        let gap_bytes = last.map_or(0, |&last| {
            (last + u64::from(node.bytes)).saturating_sub(used_bytes)
        });
        Ok(Coloured {
            colouring: self,
            placement: Placement::from_offsets(offsets),
            hot_nodes: hot.iter().filter(|&&hot| hot).count(),
            hot,
            gap_bytes,
            lost_bytes: if way_bytes > PAGE_BYTES { 0 } else { gap_bytes },
        })
    }
}

/// The forest of all hot or of all other nodes.
struct Part {
    shape: Shape,
    /// Their numbers in the whole forest.
    nodes: Vec<u32>,
    /// How often operations end at each or in what is cut off below it; empty when not given.
    weights: Vec<f64>,
}

impl Part {
    fn of(shape: &Shape, hot: &[bool], is_hot: bool, weights: Option<&[f64]>) -> Part {
        let mut number = vec![NO_NODE; shape.len()];
        let (mut nodes, mut parents) = (Vec::new(), Vec::new());
        let sums = weights.map(|weights| subtree_probabilities(shape, weights));
        let mut ends = Vec::new();
        for v in 0..shape.nodes() {
            if hot[v as usize] != is_hot {
                continue;
            }
            number[v as usize] = u32::try_from(nodes.len()).unwrap_or(NO_NODE);
            let parent = shape.parent(v);
            // A parent of the other part has no number here.
            parents.push(number.get(parent as usize).copied().unwrap_or(NO_NODE));
            nodes.push(v);
            if let Some(sums) = &sums {
                let kept = shape.children(v).iter().map(|&child| child as usize);
                let kept = kept.filter(|&child| hot[child] == is_hot);
                let kept: f64 = kept.map(|child| sums[child]).sum();
                ends.push((sums[v as usize] - kept).max(0.0));
            }
        }
        Part {
            // Parents stay before their children.
            shape: Shape::from_generated(parents),
            nodes,
            weights: ends,
        }
    }
}

/// The bytes from `start` to `end` of each way.
struct Range {
    way_bytes: u64,
    start: u64,
    end: u64,
}

impl Range {
    /// Whether a node fits, between the ends of a range and at its alignment.
    fn fits(&self, node: NodeExtent) -> bool {
        let align = u64::from(node.align);
        align <= self.way_bytes
            && self.start.next_multiple_of(align) + u64::from(node.bytes) <= self.end
    }

    /// Maps a placement without gaps into the ranges; `put` takes index and offset. The node fits.
    ///
    /// What would cross the end of a range, or for small nodes of a
    /// [segment](Layout::SEGMENT_BYTES), begins in the next one, and what follows moves along.
    fn spread(&self, dense: &Placement, node: NodeExtent, mut put: impl FnMut(usize, u64)) {
        let room = self.end - self.start;
        let (bytes, align) = (u64::from(node.bytes), u64::from(node.align));
        let mut order: Vec<usize> = (0..dense.len()).collect();
        order.sort_unstable_by_key(|&index| dense.offsets()[index]);
        let mut moved = 0;
        for index in order {
            let mut at = dense.offsets()[index] + moved;
            loop {
                // Ways are multiples of the alignment.
                let in_way = self.start + at % room;
                let mut aligned = in_way.next_multiple_of(align);
                // Ways are multiples or divisors of segments.
                let in_segment = aligned % Layout::SEGMENT_BYTES;
                if node.bytes <= Layout::SEGMENT_NODE_BYTES_MAX
                    && in_segment + bytes > Layout::SEGMENT_BYTES
                {
                    aligned += Layout::SEGMENT_BYTES - in_segment;
                }
                if aligned + bytes <= self.end {
                    at += aligned - in_way;
                    break;
                }
                at = (at / room + 1) * room;
            }
            moved = at - dense.offsets()[index];
            put(index, at / room * self.way_bytes + self.start + at % room);
        }
    }
}

/// A coloured placement.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Coloured {
    /// The colouring that it follows.
    pub colouring: Colouring,
    /// Where each node lies, in memory that begins at a multiple of the way's size.
    pub placement: Placement,
    /// Which nodes are hot, by number.
    pub hot: Vec<bool>,
    /// How many nodes are hot.
    pub hot_nodes: usize,
    /// Bytes of address space in gaps between colours.
    pub gap_bytes: u64,
    /// Bytes of memory in gaps: all of them where a way is no larger than a page, none where gaps
    /// are whole pages.
    pub lost_bytes: u64,
}

impl Coloured {
    /// What colouring gains and loses at each level of `machine`, compared with `plain`, such as
    /// the same layout without colours.
    ///
    /// At `level`, that of the coloured cache, hot blocks have the hot share of the capacity and
    /// the others the rest; other levels see a placement with gaps. `node` is what was placed, the
    /// predictor of the same shape.
    ///
    /// # Errors
    /// [`ColourError::NoLevel`] when the machine has no level of this name that holds data.
    ///
    /// # Panics
    /// As [`Predictor::predict`].
    pub fn gain(
        &self,
        plain: &Placement,
        predictor: &Predictor,
        node: NodeExtent,
        pages: PageSize,
        machine: &Machine,
        level: &str,
    ) -> Result<ColourGain, ColourError> {
        let is_coloured = |other: &Level| other.name == level && other.kind == LevelKind::Data;
        if !machine.levels.iter().any(is_coloured) {
            let name = level.to_owned();
            return Err(ColourError::NoLevel { name });
        }
        let way_bytes = self.colouring.geometry.way_bytes();
        let divided = Some(ColouredLevel {
            name: level,
            hot: &self.hot,
            hot_share: self.colouring.hot_way_bytes() as f64 / way_bytes as f64,
        });
        let placement = &self.placement;
        Ok(ColourGain {
            coloured: predictor.predict_divided(placement, node, pages, machine, divided),
            plain: predictor.predict(plain, node, pages, machine),
        })
    }
}

/// What colouring changes, per level.
#[derive(Clone, Debug, PartialEq)]
pub struct ColourGain {
    /// Without colours.
    pub plain: Prediction,
    /// With them.
    pub coloured: Prediction,
}

impl ColourGain {
    /// For each level: its name, and the misses and the nanoseconds of an operation that colouring
    /// saves there; negative where it adds some.
    pub fn levels(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        let both = self.plain.levels.iter().zip(&self.coloured.levels);
        both.map(|(plain, coloured)| {
            let (misses, ns) = (plain.misses - coloured.misses, plain.ns - coloured.ns);
            (plain.name.as_str(), misses, ns)
        })
    }

    /// Nanoseconds of an operation that colouring saves in all.
    pub fn ns(&self) -> f64 {
        self.plain.ns - self.coloured.ns
    }
}

/// Why a colouring is impossible.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColourError {
    /// The share is not between 0 and 1.
    Share,
    /// A node does not fit into what its colour has of a way, or not at its alignment.
    NodeTooLarge {
        /// Size of the node.
        node_bytes: u32,
        /// Bytes of a way that its colour has.
        room_bytes: u64,
    },
    /// The machine has no level of this name that holds data.
    NoLevel {
        /// The name that was asked for.
        name: String,
    },
}

impl fmt::Display for ColourError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColourError::Share => f.write_str("a share of the sets is between 0 and 1"),
            ColourError::NodeTooLarge {
                node_bytes,
                room_bytes,
            } => write!(
                f,
                "a node of {node_bytes} bytes does not fit into the {room_bytes} bytes that its \
                 colour has of a way"
            ),
            ColourError::NoLevel { name } => write!(f, "the machine has no cache called {name:?}"),
        }
    }
}

impl std::error::Error for ColourError {}

#[cfg(test)]
mod tests;
