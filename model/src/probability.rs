//! Exact probability that one operation touches a memory block, for any block size.
//!
//! Let `p_v` be the probability that an operation visits node `v` ([`Visits`]). Nodes on one path are visited together,
//! so a block that holds several nodes is *not* touched with the sum of their probabilities: what counts is the first
//! node of the path that lies in the block. With paths that lead from a root downwards,
//!
//! ```text
//! p_b = sum of p_v over the nodes v that cover b and have no proper ancestor that covers b
//! ```
//!
//! because two such nodes are never on one path, and every path that touches `b` visits exactly one of them.
//!
//! The pass is iterative and O(n): nodes come in depth-first order, each block remembers the depth of the path's node
//! that claimed it, and claims are taken back when the path leaves that node.
//!
//! ```text
//! for v in depth-first order:
//!     drop the claims of nodes on the path at v's depth or below
//!     for each block b that v covers:
//!         if b is unclaimed:  p_b += p_v;  claim b for v
//! ```
//!
//! **What a visit touches.** By default the whole extent of a node: the key, a payload and the links, wherever they lie
//! in it. A node that straddles a block boundary then counts both blocks. Structures that read only the first bytes of
//! large nodes say so ([`Predictor::touched_bytes`](crate::Predictor::touched_bytes)). Blocks in the middle of a node
//! belong to that node alone and are counted without being walked, so a node of gigabytes costs no more than one of 64
//! bytes. All blocks of a node are requested as soon as its address is known, so that an operation waits for one latency,
//! not for two, when both ends of a straddling node miss: the probability of being *waited for* is kept beside `p_b`.
//!
//! **Addresses.** Placements may come from a live heap: block numbers are then huge and sparse. A dense placement indexes
//! its blocks by number less the first; a sparse one sorts the block numbers that occur and indexes by rank.

use crate::footprint::{Footprint, FootprintBuilder};
use crate::{Placement, Visits};

/// A placement counts as dense while it spans at most this many blocks for each node that it places.
const DENSE_BLOCKS_PER_NODE: u64 = 16;

/// Probabilities of all blocks that hold the start or the end of a node, and of those in between.
#[derive(Clone, Debug)]
pub struct BlockProbabilities {
    block_bytes: u64,
    /// Ascending block numbers (address divided by `block_bytes`) with their probabilities.
    ends: Vec<(u64, f64)>,
    /// Probability that the operation waits for the block, for each of `ends`.
    exposed: Vec<f64>,
    /// How many blocks each of `ends` stands for; empty where each is itself.
    counts: Vec<f64>,
    /// Probability and number of the blocks strictly inside of one node; these are never waited for alone.
    interiors: Vec<(f64, u64)>,
    /// As `counts`, for `interiors`.
    interior_counts: Vec<f64>,
}

impl BlockProbabilities {
    /// Computes the probabilities for blocks of `block_bytes` bytes, when a visit touches the first `touched_bytes` bytes
    /// of a node. Nodes are taken not to overlap.
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
        BlockProbabilities::of_part(visits, placement, touched_bytes, block_bytes, |_| true)
    }

    /// As [`new`](BlockProbabilities::new), of those nodes alone for which `is_part` holds.
    pub(crate) fn of_part(
        visits: &Visits,
        placement: &Placement,
        touched_bytes: u32,
        block_bytes: u64,
        is_part: impl Fn(u32) -> bool,
    ) -> BlockProbabilities {
        assert!(
            block_bytes.is_power_of_two(),
            "block size {block_bytes} is not a power of two"
        );
        assert_eq!(
            placement.len(),
            visits.len(),
            "placement and shape differ in the number of nodes"
        );
        let shift = block_bytes.trailing_zeros();
        let last_byte = u64::from(touched_bytes.max(1)) - 1;
        let covered: Vec<(u64, u64)> = visits
            .order
            .iter()
            .map(|&v| {
                let start = placement.offset(v);
                (start >> shift, start.saturating_add(last_byte) >> shift)
            })
            .collect();
        let numbering = Numbering::of(&covered);
        let mut pass = Pass::new(numbering.len());
        // Of a block that the top of a sample shares with what stands for more, there is one.
        let mut counts = vec![
            f64::INFINITY;
            if visits.counts.is_empty() {
                0
            } else {
                numbering.len()
            }
        ];
        let (mut interiors, mut interior_counts) = (Vec::new(), Vec::new());
        for (i, &(first, last)) in covered.iter().enumerate() {
            let (depth, probability) = (visits.depths[i], visits.probabilities[i]);
            pass.leave(depth);
            if !is_part(visits.order[i]) {
                continue;
            }
            let stands_for = visits.counts.get(i).copied();
            if let Some(count) = stands_for {
                for block in [first, last] {
                    let least = &mut counts[numbering.index(block)];
                    *least = least.min(count);
                }
            }
            if first == last {
                pass.touch(numbering.index(first), depth, probability, 1.0);
                continue;
            }
            // Both ends are requested as soon as the node's address is known: one latency, shared by the ends that
            // the path has not touched before.
            let (first_index, last_index) = (numbering.index(first), numbering.index(last));
            let both = pass.is_new(first_index) && pass.is_new(last_index);
            let share = if both { 0.5 } else { 1.0 };
            pass.touch(first_index, depth, probability, share);
            pass.touch(last_index, depth, probability, share);
            if last - first > 1 {
                interiors.push((probability, last - first - 1));
                interior_counts.extend(stands_for);
            }
        }
        let (ends, exposed) = pass
            .cells
            .into_iter()
            .enumerate()
            .filter(|(_, cell)| cell.covered)
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
            interior_counts,
        }
    }

    /// Size of a block in bytes.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes
    }

    /// Blocks that hold the first or the last touched byte of a node, by ascending number (address divided by the block
    /// size), with the probability that one operation touches them.
    pub fn end_blocks(&self) -> &[(u64, f64)] {
        &self.ends
    }

    /// How many blocks the `index`-th of [`end_blocks`](BlockProbabilities::end_blocks) stands for: 1 unless the nodes
    /// are a sample.
    pub(crate) fn count(&self, index: usize) -> f64 {
        self.counts.get(index).copied().unwrap_or(1.0)
    }

    /// Blocks strictly inside of one node: probability of the node, number of such blocks.
    pub fn interior_blocks(&self) -> &[(f64, u64)] {
        &self.interiors
    }

    /// The histogram of all these blocks. O(blocks).
    pub fn footprint(&self) -> Footprint {
        let mut builder = FootprintBuilder::new();
        for (index, (&(_, probability), &exposed)) in
            self.ends.iter().zip(&self.exposed).enumerate()
        {
            builder.add_exposed(probability, exposed, self.count(index));
        }
        for (index, &(probability, blocks)) in self.interiors.iter().enumerate() {
            let count = self.interior_counts.get(index).copied().unwrap_or(1.0);
            builder.add_exposed(probability, 0.0, blocks as f64 * count);
        }
        builder.finish()
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
    fn of(covered: &[(u64, u64)]) -> Numbering {
        let first = covered.iter().map(|&(first, _)| first).min().unwrap_or(0);
        let last = covered.iter().map(|&(_, last)| last).max().unwrap_or(0);
        let allowed = DENSE_BLOCKS_PER_NODE * covered.len() as u64;
        match usize::try_from(last - first) {
            Ok(distance) if last - first < allowed => Numbering::Dense {
                first,
                blocks: distance + 1,
            },
            _ => {
                let mut sorted: Vec<u64> = covered
                    .iter()
                    .flat_map(|&(first, last)| [first, last])
                    .collect();
                sorted.sort_unstable();
                sorted.dedup();
                Numbering::Sparse { sorted }
            }
        }
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
            // At most `blocks`, a `usize`, by the construction of `first`.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the distance was checked to fit a usize"
            )]
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

/// What is known of one block during the pass.
#[derive(Clone, Copy, Default)]
struct Cell {
    probability: f64,
    /// The part of `probability` whose latency hides behind that of another block of the same node.
    hidden: f64,
    /// Depth + 1 of the node on the current path that claimed the block first, 0 when none did.
    claim: u32,
    /// Whether any node covers the block.
    covered: bool,
}

// One cache miss for each visit, two for the odd cell that straddles.
const _: () = assert!(size_of::<Cell>() <= 24);

/// The current path and the blocks that it claims.
struct Pass {
    cells: Vec<Cell>,
    /// Depth of the claiming node and index of the claimed block, in the order of claims.
    claims: Vec<(u32, usize)>,
}

impl Pass {
    fn new(blocks: usize) -> Pass {
        Pass {
            cells: vec![Cell::default(); blocks],
            claims: Vec::new(),
        }
    }

    /// Takes back the claims of path nodes at `depth` or deeper: the path has left them.
    fn leave(&mut self, depth: u32) {
        while let Some(&(claim_depth, index)) = self.claims.last()
            && claim_depth >= depth
        {
            self.cells[index].claim = 0;
            self.claims.pop();
        }
    }

    /// Whether no node on the path covers block `index`.
    fn is_new(&self, index: usize) -> bool {
        self.cells[index].claim == 0
    }

    /// Counts a node at `depth` that covers block `index`; `share` of the touch is waited for.
    fn touch(&mut self, index: usize, depth: u32, probability: f64, share: f64) {
        let cell = &mut self.cells[index];
        cell.covered = true;
        if cell.claim == 0 {
            cell.claim = depth + 1;
            cell.probability += probability;
            cell.hidden += probability * (1.0 - share);
            self.claims.push((depth, index));
        }
    }
}

#[cfg(test)]
mod tests;
