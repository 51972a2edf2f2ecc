//! What operations touch: points of memory, and which of them one operation reads, in which order.
//!
//! Every structure comes down to the same two things. A *point* is a piece of memory that is read at once: a node of a tree,
//! one key of a B-tree's node, a bucket of a hash table, an element of an array. An *operation* reads points one after
//! another. For searches the points form a forest, and an operation reads the way from a root to where it ends; so block
//! probabilities are exact for all of them by the same pass (`probability`), and the simulator draws random operations from the
//! same description that the tiers predict from.

use crate::probability::BlockProbabilities;
use crate::tiers::Source;
use crate::{Placement, Shape, Visits};

/// One read of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Where it begins.
    pub address: u64,
    /// How many bytes it reads; at least 1.
    pub bytes: u32,
}

/// Points of memory, and how often operations touch them.
#[derive(Clone, Debug)]
pub struct Accesses {
    shape: Shape,
    placement: Placement,
    visits: Visits,
    touched_bytes: u32,
    /// P(an operation ends here) by point, added up: `cumulative[v]` = that of all points up to `v`. Empty when uniform.
    cumulative: Vec<f64>,
}

impl Accesses {
    /// Searches in a forest of nodes, each of which ends at a node with a frequency in proportion to its weight, or at each
    /// equally often where there are no weights. A visit reads the first `touched_bytes` bytes of a node. O(n).
    ///
    /// # Panics
    /// When placement or weights are not one for each node.
    pub fn searches(
        shape: &Shape,
        placement: &Placement,
        touched_bytes: u32,
        weights: Option<&[f64]>,
    ) -> Accesses {
        assert_eq!(
            placement.len(),
            shape.len(),
            "placement and shape differ in the number of nodes"
        );
        let visits = match weights {
            Some(weights) => Visits::weighted(shape, weights),
            None => Visits::uniform(shape),
        };
        let mut sum = 0.0;
        let cumulative = weights
            .unwrap_or_default()
            .iter()
            .map(|&weight| {
                sum += if weight.is_finite() {
                    weight.max(0.0)
                } else {
                    0.0
                };
                sum
            })
            .collect();
        Accesses {
            shape: shape.clone(),
            placement: placement.clone(),
            visits,
            touched_bytes: touched_bytes.max(1),
            cumulative,
        }
    }

    /// How often points are visited.
    pub fn visits(&self) -> &Visits {
        &self.visits
    }

    /// Exact probability that an operation touches each block of `block_bytes` bytes. O(n), for sparse addresses
    /// O(n log n).
    ///
    /// # Panics
    /// When `block_bytes` is not a power of two.
    pub fn block_probabilities(&self, block_bytes: u64) -> BlockProbabilities {
        BlockProbabilities::new(
            &self.visits,
            &self.placement,
            self.touched_bytes,
            block_bytes,
        )
    }

    /// What the tiers predict from.
    pub(crate) fn source(&self) -> Source<'_> {
        Source {
            visits: &self.visits,
            placement: &self.placement,
            touched_bytes: self.touched_bytes,
        }
    }

    /// Random operations, the same for equal seeds.
    pub fn operations(&self, seed: u64) -> Operations<'_> {
        Operations {
            accesses: self,
            // Any odd constant keeps the generator from its fixed point 0.
            state: seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }
}

/// A stream of random operations.
#[derive(Clone, Debug)]
pub struct Operations<'a> {
    accesses: &'a Accesses,
    state: u64,
}

impl Operations<'_> {
    /// Replaces what is in `reads` by the reads of one operation, in their order. O(reads), and O(log n) where ends are weighted.
    pub fn next_into(&mut self, reads: &mut Vec<Access>) {
        reads.clear();
        let nodes = self.accesses.shape.len();
        if nodes == 0 {
            return;
        }
        let mut point = self.end(nodes);
        while let Some(&start) = self.accesses.placement.offsets().get(point as usize) {
            reads.push(Access {
                address: start,
                bytes: self.accesses.touched_bytes,
            });
            // A root's parent is no index.
            point = self.accesses.shape.parent(point);
        }
        reads.reverse();
    }

    /// Where the next operation ends.
    fn end(&mut self, nodes: usize) -> u32 {
        let random = self.next_random();
        // `as` rounds towards 0 and never leaves the range: shapes have fewer than 2^32 nodes.
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the high half of a product of 64 and 32 bits is below the latter"
        )]
        let uniform = ((u128::from(random) * nodes as u128) >> 64) as u32;
        match self.accesses.cumulative.last() {
            Some(&total) if total > 0.0 => {
                let drawn = random as f64 / 2f64.powi(64) * total;
                let end = self
                    .accesses
                    .cumulative
                    .partition_point(|&sum| sum <= drawn);
                u32::try_from(end.min(nodes - 1)).unwrap_or(uniform)
            }
            _ => uniform,
        }
    }

    /// xorshift64* (S. Vigna, *An experimental exploration of Marsaglia's xorshift generators*, 2016).
    fn next_random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}
