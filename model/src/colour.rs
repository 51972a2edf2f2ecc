//! Colouring: the most visited nodes get a part of a cache for themselves.
//!
//! T. Chilimbi, *Cache-Conscious Data Structures* (1999), sections 2.2.2 and 3.2: an address
//! decides which set of a cache its block falls into. If the top of a tree lies only in some of the
//! sets, and everything else in the others, rarely used nodes cannot evict the top.
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
//!   address space without memory. In a first-level cache the gaps are inside of pages.
//! - **Limits.** Address bits within a page always choose sets. Higher ones do so only in huge
//!   pages or where a probe showed it. A tree may even lose: the cold nodes have less room than
//!   before. [`Coloured::gain`] says what each level gains and loses.

use std::fmt;

use crate::predict::ColouredLevel;
use crate::visits::subtree_probabilities;
use crate::{
    CacheGeometry, Layout, Machine, NO_NODE, NodeExtent, PageSize, Placement, Prediction,
    Predictor, Shape,
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
/// assert!(coloured.placement().offset(0) % 4096 < 2048);
/// assert!(coloured.placement().offset(9999) % 4096 >= 2048);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Colouring {
    geometry: CacheGeometry,
    hot_share: f64,
}

impl Colouring {
    /// A colouring that keeps `hot_share` (the colour constant) of the sets for hot nodes, rounded
    /// down to whole blocks, or to whole pages where a way is larger than one.
    ///
    /// # Errors
    ///
    /// [`ColourError::Share`] unless the share is between 0 and 1.
    pub fn new(geometry: CacheGeometry, hot_share: f64) -> Result<Colouring, ColourError> {
        if (0.0..=1.0).contains(&hot_share) {
            Ok(Colouring {
                geometry,
                hot_share,
            })
        } else {
            Err(ColourError::Share)
        }
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
        let unit = if way > PAGE_BYTES {
            PAGE_BYTES.max(block)
        } else {
            block
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
    /// probable ones when `weights` say how often operations end at each node, as in
    /// [`Visits::weighted`](crate::Visits::weighted). With each hot node, its parent is hot.
    ///
    /// O(n), O(n log n) with weights.
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
                // Stable: of equals the smaller number first, so that a parent is never behind its
                // child.
                order.sort_by(|&a, &b| visits[b as usize].total_cmp(&visits[a as usize]));
                for &v in &order[..hot_nodes] {
                    hot[v as usize] = true;
                }
                close_under_parents(shape, &mut hot);
            }
        }
        hot
    }

    /// Places the hot nodes in the hot part of the sets and the others in the rest, each in the
    /// order that `layout` gives their part of the forest.
    ///
    /// Offsets are for memory that begins at a multiple of the way's size; nodes keep to segments
    /// as those of [`Layout::place`] do. O(n log n).
    ///
    /// # Errors
    ///
    /// [`ColourError::NodeTooLarge`] when the nodes of a colour do not fit into what it has of a
    /// way: with a share of 1, all that are not hot.
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
        let hot_nodes = hot.iter().filter(|&&hot| hot).count();
        let way_bytes = self.geometry.way_bytes();
        let hot_way_bytes = self.hot_way_bytes();
        let ranges = [(0, hot_way_bytes), (hot_way_bytes, way_bytes)];
        let ranges = ranges.map(|(start, end)| Ranges {
            way_bytes,
            start,
            end,
        });
        let mut offsets = vec![0u64; shape.len()];
        let mut used_bytes = 0;
        for (is_hot, ranges) in [true, false].into_iter().zip(ranges) {
            let part = Part::of(shape, &hot, is_hot, weights);
            if part.nodes.is_empty() {
                continue;
            }
            if !ranges.fits(node) {
                return Err(ColourError::NodeTooLarge {
                    node_bytes: node.bytes,
                    room_bytes: ranges.end - ranges.start,
                });
            }
            let dense = match weights {
                Some(_) => layout.place_weighted(&part.shape, node, &part.weights),
                None => layout.place(&part.shape, node),
            };
            used_bytes += dense.span_bytes(node);
            ranges.spread(&dense, node, |index, offset| {
                offsets[part.nodes[index] as usize] = offset;
            });
        }
        let placement = Placement::from_offsets(offsets);
        // From the start of the first way: offset 0 is a hot node's, or left free for one.
        let last = placement.offsets().iter().max();
        let gap_bytes = last.map_or(0, |&last| {
            (last + u64::from(node.bytes)).saturating_sub(used_bytes)
        });
        Ok(Coloured {
            colouring: self,
            placement,
            hot,
            hot_nodes,
            gap_bytes,
        })
    }
}

/// Takes from `hot` what has a parent outside: nothing, unless probabilities were rounded.
fn close_under_parents(shape: &Shape, hot: &mut [bool]) {
    for v in 0..shape.nodes() {
        let parent = shape.parent(v);
        if parent != NO_NODE && !hot[parent as usize] {
            hot[v as usize] = false;
        }
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
                let kept: f64 = (kept.filter(|&child| hot[child] == is_hot))
                    .map(|child| sums[child])
                    .sum();
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
struct Ranges {
    way_bytes: u64,
    start: u64,
    end: u64,
}

impl Ranges {
    /// Where the byte at `dense` of memory without gaps lies.
    fn offset(&self, dense: u64) -> u64 {
        let room = self.end - self.start;
        dense / room * self.way_bytes + self.start + dense % room
    }

    /// Whether a node fits, between the ends of a range and at its alignment.
    fn fits(&self, node: NodeExtent) -> bool {
        let align = u64::from(node.align);
        align <= self.way_bytes
            && self.start.next_multiple_of(align) + u64::from(node.bytes) <= self.end
    }

    /// Maps a placement without gaps into the ranges, none of whose ends a node crosses, nor a
    /// [segment's](Layout::SEGMENT_BYTES) if it is small; `put` takes index and offset. The node
    /// fits.
    ///
    /// What would cross an end begins in the next range or segment, and what follows moves along.
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
            put(index, self.offset(at));
        }
    }
}

/// A coloured placement.
#[derive(Clone, Debug)]
pub struct Coloured {
    colouring: Colouring,
    placement: Placement,
    hot: Vec<bool>,
    hot_nodes: usize,
    gap_bytes: u64,
}

impl Coloured {
    /// Where each node lies, in memory that begins at a multiple of the way's size.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Which nodes are hot, by number.
    pub fn hot(&self) -> &[bool] {
        &self.hot
    }

    /// How many nodes are hot.
    pub fn hot_nodes(&self) -> usize {
        self.hot_nodes
    }

    /// The colouring that it follows.
    pub fn colouring(&self) -> Colouring {
        self.colouring
    }

    /// Bytes of address space that no node lies in for the colours' sake.
    pub fn gap_bytes(&self) -> u64 {
        self.gap_bytes
    }

    /// Bytes of memory that are lost to gaps: all of them where a way is no larger than a page,
    /// none where gaps are whole pages.
    pub fn lost_bytes(&self) -> u64 {
        match self.colouring.geometry.way_bytes() > PAGE_BYTES {
            true => 0,
            false => self.gap_bytes,
        }
    }

    /// What colouring gains and loses at each level of `machine`, when `level` is the level of the
    /// coloured cache, against `plain`, such as the same layout without colours.
    ///
    /// At `level`, hot blocks have the hot share of the capacity and the others the rest; other
    /// levels see a placement with gaps. `node` is what was placed, the predictor of the same
    /// shape. O(n) for each block size of the machine.
    ///
    /// # Errors
    ///
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
        Ok(ColourGain {
            coloured: self.predict(predictor, node, pages, machine, level)?,
            plain: predictor.predict(plain, node, pages, machine),
            gap_bytes: self.gap_bytes,
            lost_bytes: self.lost_bytes(),
        })
    }

    /// Misses and nanoseconds of an operation in the coloured placement; as
    /// [`gain`](Coloured::gain).
    ///
    /// # Errors
    ///
    /// [`ColourError::NoLevel`] when the machine has no level of this name that holds data.
    ///
    /// # Panics
    /// As [`Predictor::predict`].
    pub fn predict(
        &self,
        predictor: &Predictor,
        node: NodeExtent,
        pages: PageSize,
        machine: &Machine,
        level: &str,
    ) -> Result<Prediction, ColourError> {
        let known = machine
            .levels
            .iter()
            .any(|other| other.name == level && other.kind == crate::LevelKind::Data);
        if !known {
            return Err(ColourError::NoLevel {
                name: level.to_owned(),
            });
        }
        let geometry = self.colouring.geometry;
        let share = self.colouring.hot_way_bytes() as f64 / geometry.way_bytes() as f64;
        let parts = ColouredLevel {
            name: level,
            hot: &self.hot,
            hot_share: share,
        };
        Ok(predictor.predict_divided(&self.placement, node, pages, machine, parts))
    }
}

/// What colouring changes, per level.
#[derive(Clone, Debug, PartialEq)]
pub struct ColourGain {
    /// Without colours.
    pub plain: Prediction,
    /// With them.
    pub coloured: Prediction,
    /// Bytes of address space in gaps.
    pub gap_bytes: u64,
    /// Bytes of memory in gaps.
    pub lost_bytes: u64,
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

impl fmt::Display for ColourGain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, misses, ns) in self.levels() {
            writeln!(
                f,
                "{name}: {misses:+.3} misses, {ns:+.2} ns saved an operation"
            )?;
        }
        write!(
            f,
            "{:+.2} ns saved in all; {} bytes of memory lost, {} of addresses",
            self.ns(),
            self.lost_bytes,
            self.gap_bytes
        )
    }
}

/// Why there is no such colouring.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColourError {
    /// The share is not between 0 and 1.
    Share,
    /// A node does not fit into what its colour has of a way, or not at its alignment.
    NodeTooLarge {
        /// Its size.
        node_bytes: u32,
        /// The room.
        room_bytes: u64,
    },
    /// The machine has no such level for data.
    NoLevel {
        /// What it was called.
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
            ColourError::NoLevel { name } => {
                write!(f, "the machine has no cache called {name:?}")
            }
        }
    }
}

impl core::error::Error for ColourError {}

#[cfg(test)]
mod tests;
