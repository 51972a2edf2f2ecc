//! Exact probability that one operation touches a memory block, for any block size.
//!
//! Nodes on one path are visited together, so a block that holds several nodes is *not* touched
//! with the sum of their probabilities. Each operation begins with one random choice, the key. Put
//! the choices side by side in the unit interval, each as long as it is probable, in key or
//! depth-first order. Then
//!
//! ```text
//! node v is visited  <=>  the choice falls into an interval I_v of length P(visit v)
//! p_b = length of the union of I_v over the nodes v that cover block b
//! ```
//!
//! For the paths of a forest the intervals are nested or disjoint; for operations that go on from
//! key to key they overlap. One pass serves both, in O(n): it takes the nodes by the start of their
//! intervals and keeps for each block how far it is covered.
//!
//! All blocks of a node are requested as soon as its address is known, so an operation waits once
//! when both ends of a straddling node miss: the probability of being *waited for* is kept beside
//! `p_b`. Placements may come from a live heap, whose block numbers are huge and sparse.

use crate::footprint::Footprint;
use crate::{Placement, Visits};

/// One read of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where it begins.
    pub address: u64,
    /// How many bytes it reads; at least 1.
    pub bytes: u32,
}

/// How many bytes of each node or point are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// The same number of bytes of each.
    Uniform(u32),
    /// A number of bytes for each node or point, in the order of their numbers.
    Each(Vec<u32>),
}

impl Lengths {
    /// Bytes that are read of number `v`: at least 1.
    ///
    /// # Panics
    /// When there is no such number.
    pub fn get(&self, v: u32) -> u32 {
        match self {
            Lengths::Uniform(bytes) => *bytes,
            Lengths::Each(bytes) => bytes[v as usize],
        }
        .max(1)
    }
}

/// What operations read: which nodes, where they lie, and how much of each is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reads<'a> {
    pub(crate) visits: &'a Visits,
    /// By node.
    pub(crate) addresses: &'a [u64],
    pub(crate) lengths: &'a Lengths,
}

impl<'a> Reads<'a> {
    /// Visits that read `lengths` of nodes which lie as in `placement`.
    ///
    /// # Panics
    /// When `placement` has not as many nodes as `visits`.
    pub(crate) fn new(
        visits: &'a Visits,
        placement: &'a Placement,
        lengths: &'a Lengths,
    ) -> Reads<'a> {
        assert_eq!(
            placement.len(),
            visits.len(),
            "placement and shape differ in the number of nodes"
        );
        let addresses = placement.offsets();
        Reads {
            visits,
            addresses,
            lengths,
        }
    }
}

/// A placement counts as dense while it spans at most this many blocks for each node that it
/// places.
const DENSE_BLOCKS_PER_NODE: u64 = 16;

/// The probability that one operation touches each block.
#[derive(Clone, Debug)]
pub struct BlockProbabilities {
    block_bytes: u64,
    /// Ascending block numbers (address divided by `block_bytes`) with their probabilities.
    ends: Vec<(u64, f64)>,
    /// Probability that the operation waits for the block, for each of `ends`.
    exposed: Vec<f64>,
    /// For a sample: how many blocks each of `ends` stands for. Else empty.
    counts: Vec<f64>,
    interiors: Vec<Interior>,
}

/// The blocks strictly inside one node, which are never waited for alone.
#[derive(Clone, Debug)]
struct Interior {
    first: u64,
    blocks: u64,
    probability: f64,
    /// How many nodes the node stands for.
    count: f64,
}

impl BlockProbabilities {
    /// Computes the probabilities for blocks of `block_bytes` bytes, when a visit touches the first
    /// `touched_bytes` bytes of a node. Nodes are taken not to overlap.
    ///
    /// O(n) for a dense placement, O(n log n) for a sparse one.
    ///
    /// # Panics
    /// When `block_bytes` is not a power of two, or `placement` has not as many nodes as `visits`.
    pub fn new(
        visits: &Visits,
        placement: &Placement,
        touched_bytes: u32,
        block_bytes: u64,
    ) -> BlockProbabilities {
        let lengths = Lengths::Uniform(touched_bytes);
        let reads = Reads::new(visits, placement, &lengths);
        BlockProbabilities::of_reads(reads, block_bytes, |_| true)
    }

    /// The probabilities of those nodes for which `is_part` holds.
    ///
    /// # Panics
    /// When `block_bytes` is not a power of two.
    pub(crate) fn of_reads(
        reads: Reads<'_>,
        block_bytes: u64,
        is_part: impl Fn(u32) -> bool,
    ) -> BlockProbabilities {
        assert!(
            block_bytes.is_power_of_two(),
            "block size {block_bytes} is not a power of two"
        );
        let (visits, is_part) = (reads.visits, &is_part);
        let nodes = visits.order.iter().zip(&visits.intervals);
        let nodes = nodes.filter(|&(&v, _)| is_part(v));
        let shift = block_bytes.trailing_zeros();
        let blocks_of = |v: u32| {
            let address = reads.addresses[v as usize];
            let last = address.saturating_add(u64::from(reads.lengths.get(v)) - 1);
            (address >> shift, last >> shift)
        };
        let numbering = Numbering::of(nodes.clone().map(|(&v, _)| blocks_of(v)));
        let untouched = Cell {
            probability: 0.0,
            hidden: 0.0,
            until: -1.0,
        };
        let mut cells = vec![untouched; numbering.len()];
        // There is one of each block that the top of a sample shares.
        let sampled = if visits.counts.is_empty() {
            0
        } else {
            numbering.len()
        };
        let mut counts = vec![f64::INFINITY; sampled];
        let mut interiors = Vec::new();
        for (&v, &(start, end)) in nodes {
            let (first, last) = blocks_of(v);
            let first_index = numbering.index(first);
            let last_index = match first == last {
                true => first_index,
                false => numbering.index(last),
            };
            let count = visits.counts.get(v as usize).copied();
            if let Some(count) = count {
                for index in [first_index, last_index] {
                    counts[index] = count.min(counts[index]);
                }
            }
            if first == last {
                cells[first_index].cover(start, end, f64::INFINITY);
                continue;
            }
            // Both ends are requested at once: new ones share one latency.
            let both_new = cells[first_index].until.max(cells[last_index].until);
            for index in [first_index, last_index] {
                cells[index].cover(start, end, both_new);
            }
            if last - first > 1 {
                interiors.push(Interior {
                    first: first + 1,
                    blocks: last - first - 1,
                    probability: end - start,
                    count: count.unwrap_or(1.0),
                });
            }
        }
        let (ends, exposed) = cells
            .into_iter()
            .enumerate()
            .filter(|(_, cell)| cell.until >= 0.0)
            .map(|(index, cell)| {
                let exposed = cell.probability - cell.hidden;
                ((numbering.block(index), cell.probability), exposed)
            })
            .unzip();
        counts.retain(|count| count.is_finite());
        BlockProbabilities {
            block_bytes,
            ends,
            exposed,
            counts,
            interiors,
        }
    }

    /// Size of a block in bytes.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Blocks that hold the first or the last touched byte of a node, by ascending number (address
    /// divided by the block size), with the probability that one operation touches them.
    pub fn end_blocks(&self) -> &[(u64, f64)] {
        &self.ends
    }

    /// How many blocks the `index`-th of [`end_blocks`](BlockProbabilities::end_blocks) stands for:
    /// 1 unless the nodes are a sample.
    pub(crate) fn count(&self, index: usize) -> f64 {
        self.counts.get(index).copied().unwrap_or(1.0)
    }

    /// All blocks by number (address divided by the block size) with their probabilities: first the
    /// end blocks by ascending number, then those inside of single nodes, node by node.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, f64)> {
        let inside = self.interiors.iter().flat_map(|inside| {
            let numbers = inside.first..inside.first + inside.blocks;
            numbers.map(move |number| (number, inside.probability))
        });
        self.ends.iter().copied().chain(inside)
    }

    /// The histogram of all these blocks. O(blocks).
    pub fn footprint(&self) -> Footprint {
        let ends = self.ends.iter().zip(&self.exposed).enumerate();
        let ends =
            ends.map(|(index, (&(_, touched), &exposed))| (touched, exposed, self.count(index)));
        let interiors = self
            .interiors
            .iter()
            .map(|inside| (inside.probability, 0.0, inside.blocks as f64 * inside.count));
        Footprint::of_classes(ends.chain(interiors))
    }
}

/// Maps block numbers to indices of an array and back.
enum Numbering {
    /// Index = block number less `first`.
    Dense { first: u64, blocks: usize },
    /// Index = rank among the block numbers that occur.
    Sparse { sorted: Vec<u64> },
}

impl Numbering {
    /// For these first and last blocks of nodes.
    fn of(covered: impl Iterator<Item = (u64, u64)> + Clone) -> Numbering {
        let (mut first, mut last, mut nodes) = (u64::MAX, 0, 0u64);
        for (node_first, node_last) in covered.clone() {
            first = first.min(node_first);
            last = last.max(node_last);
            nodes += 1;
        }
        let distance = last.checked_sub(first);
        if let Some(distance) = distance.filter(|&blocks| blocks < DENSE_BLOCKS_PER_NODE * nodes)
            && let Ok(distance) = usize::try_from(distance)
        {
            let blocks = distance + 1;
            return Numbering::Dense { first, blocks };
        }
        let mut sorted: Vec<u64> = covered.flat_map(|(first, last)| [first, last]).collect();
        sorted.sort_unstable();
        sorted.dedup();
        Numbering::Sparse { sorted }
    }

    fn len(&self) -> usize {
        match self {
            Numbering::Dense { blocks, .. } => *blocks,
            Numbering::Sparse { sorted } => sorted.len(),
        }
    }

    /// Index of a block number that occurs.
    fn index(&self, block: u64) -> usize {
        match self {
            #[expect(clippy::cast_possible_truncation, reason = "less than `blocks`")]
            Numbering::Dense { first, .. } => (block - first) as usize,
            Numbering::Sparse { sorted } => sorted.partition_point(|&other| other < block),
        }
    }

    fn block(&self, index: usize) -> u64 {
        match self {
            Numbering::Dense { first, .. } => first + index as u64,
            Numbering::Sparse { sorted } => sorted[index],
        }
    }
}

/// The state of one block during the pass.
#[derive(Clone, Copy)]
struct Cell {
    probability: f64,
    /// The part of `probability` whose latency hides behind that of another block of the same node.
    hidden: f64,
    /// The end of what covers the block so far; below 0 while nothing does.
    until: f64,
}

// At most one cache miss for most visits.
const _: () = assert!(size_of::<Cell>() <= 24);

impl Cell {
    /// Adds the choices from `start` to `end`; half of a touch from `shared` on is not waited for.
    fn cover(&mut self, start: f64, end: f64, shared: f64) {
        self.probability += (end - start.max(self.until)).max(0.0);
        self.hidden += 0.5 * (end - start.max(shared)).max(0.0);
        self.until = self.until.max(end);
    }
}

#[cfg(test)]
pub(crate) mod tests;
