//! What the tiers need to know of operations, whoever describes them.

use crate::{Accesses, BlockProbabilities, Placement, Visits};

/// Points in depth-first order, where they lie, how often they are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) visits: &'a Visits,
    pub(crate) placement: &'a Placement,
    pub(crate) touched_bytes: u32,
}

impl<'a> Source<'a> {
    /// Whether each point stands for itself alone.
    pub(crate) fn is_whole(&self) -> bool {
        self.visits.counts.is_empty()
    }

    /// Block probabilities.
    pub(crate) fn probabilities(&self, block_bytes: u64) -> BlockProbabilities {
        BlockProbabilities::new(self.visits, self.placement, self.touched_bytes, block_bytes)
    }

    /// All blocks that are ever touched, by ascending number, with their probabilities.
    pub(crate) fn blocks(&self, block_bytes: u64) -> Vec<(u64, f64)> {
        let probabilities = self.probabilities(block_bytes);
        let mut blocks: Vec<(u64, f64)> = probabilities
            .end_blocks()
            .iter()
            .copied()
            .filter(|&(_, probability)| probability > 0.0)
            .collect();
        for _ in probabilities.interior_blocks() {}
        blocks.shrink_to_fit();
        blocks
    }

    /// Calls `read` with depth, probability, first and last touched byte of each point, in depth-first order.
    pub(crate) fn for_each_point(&self, mut read: impl FnMut(u32, f64, u64, u64)) {
        let last = u64::from(self.touched_bytes.max(1)) - 1;
        let points = self.visits.order.iter().zip(&self.visits.depths);
        for ((&v, &depth), &probability) in points.zip(&self.visits.probabilities) {
            let first = self.placement.offset(v);
            read(depth, probability, first, first.saturating_add(last));
        }
    }
}
