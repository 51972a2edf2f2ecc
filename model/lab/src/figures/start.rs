//! Section 3.3.1 compared with random searches: misses from cold in a cache that never evicts.
//!
//! The thesis bounds what any sequence of searches can miss. Random searches share more blocks than
//! the worst do. What they miss is the number of different blocks that they have touched, U(i),
//! expected exactly and counted.

use std::collections::HashSet;

use crate::thesis::{L2, transient_misses};
use ccmodel::{Accesses, Shape};

use super::cost::TOUCHED_BYTES;
use super::nodes_of;
use super::tree::{Arrangement, BLOCK_NODES};

const SEED: u64 = 331;

/// Misses of one of the first searches from cold, on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StartRow {
    /// The number of searches, i.
    pub(super) searches: u64,
    /// The thesis's bound, log_(k+1)(n + 1) - log_(k+1)(i) + (i - 1) / (i k).
    pub(super) worst_case: f64,
    /// Expected of random searches, U(i) / i, and counted of one sequence of them.
    pub(super) expected: f64,
    pub(super) counted: f64,
}

/// The start in a tree of `levels` levels in subtree clusters, three nodes to a block, for powers
/// of four up to the last that the bound covers, (n + 1) / (k + 1). The section needs an even
/// number of levels.
pub(super) fn start_up(levels: u32) -> Vec<StartRow> {
    let nodes = nodes_of(levels);
    let shape = Shape::complete_binary(u32::try_from(nodes).unwrap_or(u32::MAX));
    let clusters = Arrangement::Clusters { coloured_nodes: 0 };
    let placement = clusters.place(levels, &shape);
    let accesses = Accesses::searches(&shape, &placement, TOUCHED_BYTES, None);
    let block_bytes = L2.block_bytes();
    let footprint = accesses.block_probabilities(block_bytes).footprint();
    let mut operations = accesses.operations(SEED);
    let (mut reads, mut seen) = (Vec::new(), HashSet::new());
    let (mut rows, mut done) = (Vec::new(), 0);
    let powers = (0..).map_while(|power| (BLOCK_NODES + 1).checked_pow(power));
    for searches in powers.take_while(|searches| searches * (BLOCK_NODES + 1) <= nodes + 1) {
        while done < searches {
            operations.next_into(&mut reads);
            seen.extend(reads.iter().map(|read| read.address / block_bytes));
            done += 1;
        }
        let each = 1.0 / searches as f64;
        rows.push(StartRow {
            searches,
            worst_case: transient_misses(nodes, BLOCK_NODES, searches),
            expected: footprint.distinct_blocks(searches as f64) * each,
            counted: seen.len() as f64 * each,
        });
    }
    rows
}
