//! Searches that visit one node on each level of a structure, in O(levels).

use super::Prediction;
use super::levels::sum_of_steps;
use crate::footprint::absent;
use crate::{Footprint, Machine, PageSize};

/// Unit of [`SearchLevel::lines_per_visit`].
const LINE_BYTES: f64 = 64.0;

/// One level of a structure whose search visits exactly one node on each level: a B-tree, an
/// implicit search tree, a directory over a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchLevel {
    /// Nodes on the level; a search visits each of them equally often.
    pub nodes: f64,
    /// Bytes from one node to the next.
    pub node_bytes: f64,
    /// 64-byte lines of the node that one visit reads, on average.
    pub lines_per_visit: f64,
    /// How many of these reads wait for each other: 1 when all lines are requested together,
    /// `lines_per_visit` when each address comes from the line before, 0 when the node was
    /// requested in time on the level above.
    pub rounds_per_visit: f64,
    /// Instructions of one visit whose data is in the first-level cache, in nanoseconds.
    pub cpu_ns_per_visit: f64,
}

impl SearchLevel {
    /// Blocks of `block_bytes` on the level, and how many of them one visit touches.
    fn blocks(&self, block_bytes: f64) -> (f64, f64) {
        let blocks = (self.nodes * self.node_bytes / block_bytes).max(1.0);
        let lines = self.lines_per_visit.max(0.0);
        let touched = if block_bytes <= LINE_BYTES {
            lines * LINE_BYTES / block_bytes
        } else {
            // All lines of one node lie in one larger block, unless the node spans several.
            lines.min((self.node_bytes / block_bytes).max(1.0))
        };
        (blocks, touched.min(blocks))
    }
}

/// Misses and nanoseconds of one search through `levels`, topmost first. O(levels), whatever the
/// number of nodes.
///
/// `operation_ns` of the machine is added once; `node_ns` and mispredictions are replaced by each
/// level's `cpu_ns_per_visit`. Misses count lines; the time counts rounds of them.
pub fn predict_levels(levels: &[SearchLevel], pages: PageSize, machine: &Machine) -> Prediction {
    let is_usable = |level: &SearchLevel| level.nodes > 0.0 && level.node_bytes > 0.0;
    let usable: Vec<SearchLevel> = levels.iter().copied().filter(is_usable).collect();
    let misses = machine
        .levels_for(pages)
        .map(|level| {
            let block = level.block_bytes as f64;
            let classes = usable.iter().map(|part| {
                let (blocks, touched) = part.blocks(block);
                (touched / blocks, touched / blocks, blocks)
            });
            let footprint = Footprint::of_classes(classes);
            // One round for the whole node when its lines are requested together.
            sum_of_steps(level, &footprint, |_, capacity| {
                let time = footprint.characteristic_time(capacity, machine.replacement);
                let (mut misses, mut waits) = (0.0, 0.0);
                for part in &usable {
                    let (blocks, touched) = part.blocks(block);
                    let missed = absent(touched / blocks, time, machine.replacement);
                    misses += touched * missed;
                    waits += part.rounds_per_visit.max(0.0).min(touched) * missed;
                }
                (misses, waits)
            })
        })
        .collect();
    let visits_ns: f64 = usable.iter().map(|level| level.cpu_ns_per_visit).sum();
    let cpu_ns = match usable.is_empty() {
        true => 0.0,
        false => machine.search.operation_ns + visits_ns,
    };
    Prediction::of(cpu_ns, usable.len() as f64, misses, machine.error_band())
}
