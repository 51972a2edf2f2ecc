//! The number of larger blocks in which the missed lines of an operation lie.
//!
//! A far miss is cheaper when another line of the same 128 bytes, kilobyte or page was missed just
//! before. So a part of a miss's latency is paid once for each such *block* `B` in which the
//! operation misses any line. With the probabilities `p_b` of the lines of `B`, `P` of `B` itself,
//! and the misses `m_b` of the lines, a visit to `B` touches `N = sum of p_b / P` lines, each of
//! which misses with probability `q = sum of m_b / sum of p_b`. Taken as independent,
//!
//! ```text
//! P(operation misses a line in B) = P (1 - (1 - q)^N)
//! ```
//!
//! It is exact where visits touch one line and where all lines of a block are as cold.

use crate::footprint::{Replacement, absent};
use crate::probability::BlockProbabilities;

/// Expected number of blocks in which an operation misses at least one line, in a cache of this
/// characteristic time for lines.
///
/// `blocks` must be of the same visits and placement as `lines`, with a block size that is no
/// smaller. O(lines).
pub(crate) fn missed_blocks(
    lines: &BlockProbabilities,
    blocks: &BlockProbabilities,
    time: f64,
    replacement: Replacement,
) -> f64 {
    let lines_per_block = (blocks.block_bytes() / lines.block_bytes()).max(1);
    let mut rest = lines.end_blocks();
    let mut missed = 0.0;
    for (index, &(block, probability)) in blocks.end_blocks().iter().enumerate() {
        let (mut touches, mut misses) = (0.0, 0.0);
        while let Some((&(line, p), others)) = rest.split_first()
            && line / lines_per_block == block
        {
            touches += p;
            misses += p * absent(p, time, replacement);
            rest = others;
        }
        if touches <= 0.0 || probability <= 0.0 {
            continue;
        }
        let each = (misses / touches).min(1.0);
        let lines_touched = (touches / probability).max(1.0);
        let any = if lines_touched < 1.001 || each > 0.999 {
            each
        } else {
            1.0 - (1.0 - each).powf(lines_touched)
        };
        missed += blocks.count(index) * probability * any;
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, NodeExtent, Shape, Visits};
    use quickcheck::quickcheck;

    fn at(shape: &Shape, layout: Layout, block_bytes: u64) -> BlockProbabilities {
        let placement = layout.place(shape, NodeExtent::new(32, 8).unwrap());
        BlockProbabilities::new(&Visits::uniform(shape), &placement, 32, block_bytes)
    }

    quickcheck! {
        fn no_more_blocks_than_lines_and_all_in_a_cold_cache(
            nodes: u16, choice: bool, time: u16
        ) -> bool {
            let shape = Shape::random_binary(u32::from(nodes) + 1, 3);
            let layout = if choice { Layout::DepthFirst } else { Layout::Random { seed: 1 } };
            let lines = at(&shape, layout, 64);
            let missed = |bytes: u64, time| {
                missed_blocks(&lines, &at(&shape, layout, bytes), time, Replacement::Random)
            };
            let [own, pair, page] = [64, 128, 4096].map(|bytes| missed(bytes, f64::from(time)));
            let cold = at(&shape, layout, 4096).footprint().touches();
            own <= lines.footprint().touches() + 1e-9
                && pair <= own + 1e-9
                && page <= own + 1e-9
                && (missed(4096, 0.0) - cold).abs() < 1e-6
                && missed(4096, f64::INFINITY) < 1e-9
        }
    }
}
