//! Misses of operations that read one sequence of points from its beginning: lists that are searched, and walks. Exact.
//!
//! Other tiers take the blocks of an operation to be touched independently of the operation before. Where operations touch a
//! good part of a cache that fails, and for one sequence it need not be assumed. Let an operation read the steps `0..=e`, where
//! the end `e` is random and independent from operation to operation; `reach_i = P(e >= i)` is the probability that step `i`
//! is read. A cache with `W` ways and least-recently-used replacement misses a block exactly when `W` other blocks of its set
//! were touched since its last touch, and for each step these are known:
//!
//! ```text
//! step i reads a block that the same operation has read before, at step h:
//!     the blocks between are those of the steps h+1 .. i-1, whatever the end                        hit or miss for certain
//! step i reads block x for the first time; k blocks of its set come before:
//!     k >= W                                                                                         miss for certain
//!     else: the last operation that reached i ended at some e >= i, and touched x last at step o, i <= o <= e;
//!           those after it did not come as far as i, and touched only blocks that come before x;
//!           so the blocks between are those k and the ones of the steps o+1 .. e:                    miss with P(enough ends)
//! ```
//!
//! For a list of `n` blocks searched to any of its places, in a fully associative cache of `C < n`, this is `C (n - C) / n` misses for
//! the first `C` blocks and `(n - C)^2 / 2n` for the rest. With one end for all operations it is the cyclic walk, in which a set with
//! more blocks than ways misses all of them.
//!
//! What it costs: O(W) for each step, and for each step that reads one of the first `W` blocks of its set as many as it takes to
//! meet `W` others.

use std::collections::HashMap;

use crate::{Accesses, CacheGeometry};

impl Accesses {
    /// Misses of one operation in a cache with least-recently-used replacement, exactly, when all operations read one sequence
    /// from its beginning: searches and ranges in one list, walks of any structure; `None` for others.
    ///
    /// `set_block` gives, for the number of a block (address over block size), the number that chooses its set: the same number
    /// where caches see the addresses of the program, else that of the frame.
    ///
    /// # Examples
    /// ```
    /// use ccmodel::{CacheGeometry, KeyDistribution, Layout, Links, NodeExtent, Operation, Sizes, Structure};
    ///
    /// // A list of 1000 blocks in a fully associative cache of 600.
    /// let list = Structure::List { links: Links::Single };
    /// let built = list.build(1000, &Sizes::of(NodeExtent::new(64, 64)?))?;
    /// let placement = built.place(Layout::DepthFirst);
    /// let accesses = built.accesses(&placement, Operation::Search, &KeyDistribution::Uniform)?;
    /// let misses = accesses.sequence_misses(CacheGeometry::new(1, 64, 600)?, |block| block);
    /// let (n, c) = (1000.0, 600.0);
    /// let expected = c * (n - c) / n + (n - c) * (n - c + 1.0) / (2.0 * n);
    /// assert!((misses.unwrap() - expected).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sequence_misses(
        &self,
        cache: CacheGeometry,
        set_block: impl Fn(u64) -> u64,
    ) -> Option<f64> {
        let steps = self.sequence_steps()?;
        let shift = cache.block_bytes().trailing_zeros();
        let mut sets: HashMap<u64, Vec<Step>> = HashMap::new();
        for (point, reach) in steps {
            let access = self.access(point);
            let last_byte = access.address.saturating_add(u64::from(access.bytes) - 1);
            for block in access.address >> shift..=last_byte >> shift {
                let set = set_block(block) & (cache.sets() - 1);
                let steps = sets.entry(set).or_default();
                // A block that is read again at once is there.
                if steps.last().is_none_or(|step| step.block != block) {
                    steps.push(Step { block, reach });
                }
            }
        }
        let ways = usize::try_from(cache.associativity()).unwrap_or(usize::MAX);
        // In the order of sets, so that sums round alike each time.
        let mut sets: Vec<(u64, Vec<Step>)> = sets.into_iter().collect();
        sets.sort_unstable_by_key(|&(set, _)| set);
        Some(sets.iter().map(|(_, steps)| set_misses(steps, ways)).sum())
    }

    /// The points of the sequence with the probability that an operation reads them.
    fn sequence_steps(&self) -> Option<Vec<(u32, f64)>> {
        if let Some(points) = self.fixed_sequence() {
            return Some(points.iter().map(|&point| (point, 1.0)).collect());
        }
        // In a chain, spans begin later and later or end at the last ticket: either way, whoever reads a point has read those
        // before.
        let shape = self.shape();
        if !self.reads_paths_on() || !shape.is_chains() || shape.roots().count() > 1 {
            return None;
        }
        Some(
            (0..shape.nodes())
                .map(|point| (point, self.reach(point)))
                .collect(),
        )
    }
}

/// One block that is read.
#[derive(Clone, Copy)]
struct Step {
    block: u64,
    /// P(an operation reads it).
    reach: f64,
}

/// Misses of one operation in one set, whose blocks are read in this order.
fn set_misses(steps: &[Step], ways: usize) -> f64 {
    let order = Order::of(steps);
    if order.blocks <= ways {
        return 0.0;
    }
    let mut misses = 0.0;
    let mut stack = Stack::new(ways);
    let mut others = Others::new(order.blocks);
    let mut seen = 0;
    for (i, (&rank, step)) in order.ranks.iter().zip(steps).enumerate() {
        let is_first = rank == seen;
        let is_present = stack.touch(rank);
        if is_first {
            seen += 1;
            misses += if rank >= ways {
                step.reach
            } else {
                order.first_misses(steps, i, ways, &mut others)
            };
        } else if !is_present {
            misses += step.reach;
        }
    }
    misses
}

/// The blocks of a set, numbered as they are first read.
struct Order {
    /// By step.
    ranks: Vec<usize>,
    /// By step, the next one that reads the same block, or the number of steps.
    next_same: Vec<usize>,
    /// How many different blocks there are.
    blocks: usize,
}

impl Order {
    fn of(steps: &[Step]) -> Order {
        let mut numbers: HashMap<u64, usize> = HashMap::new();
        let mut last: Vec<usize> = Vec::new();
        let mut ranks = Vec::with_capacity(steps.len());
        let mut next_same = vec![steps.len(); steps.len()];
        for (i, step) in steps.iter().enumerate() {
            let fresh = numbers.len();
            let rank = *numbers.entry(step.block).or_insert(fresh);
            match last.get_mut(rank) {
                Some(before) => {
                    next_same[*before] = i;
                    *before = i;
                }
                None => last.push(i),
            }
            ranks.push(rank);
        }
        Order {
            ranks,
            next_same,
            blocks: numbers.len(),
        }
    }

    /// P(an operation reads the block that is first read at step `first`, and misses it there).
    fn first_misses(&self, steps: &[Step], first: usize, ways: usize, others: &mut Others) -> f64 {
        let rank = self.ranks[first];
        let reach = |i: usize| steps.get(i).map_or(0.0, |step| step.reach);
        let mut misses = 0.0;
        let mut touched = first;
        while touched < steps.len() {
            // The last operation may have ended before the block's next step.
            let next = self.next_same[touched];
            others.clear();
            let mut needed = ways - rank;
            for i in touched + 1..next {
                if self.ranks[i] > rank && others.insert(self.ranks[i]) {
                    needed -= 1;
                    if needed == 0 {
                        misses += reach(i) - reach(next);
                        break;
                    }
                }
            }
            touched = next;
        }
        misses
    }
}

/// A set of blocks that is emptied at once.
struct Others {
    /// By rank, when it was inserted.
    times: Vec<u64>,
    now: u64,
}

impl Others {
    fn new(blocks: usize) -> Others {
        Others {
            times: vec![0; blocks],
            now: 0,
        }
    }

    fn clear(&mut self) {
        self.now += 1;
    }

    /// Whether it was not in there.
    fn insert(&mut self, rank: usize) -> bool {
        std::mem::replace(&mut self.times[rank], self.now) != self.now
    }
}

/// The last blocks that were touched, the latest first.
struct Stack {
    ranks: Vec<usize>,
    ways: usize,
}

impl Stack {
    fn new(ways: usize) -> Stack {
        Stack {
            ranks: Vec::new(),
            ways,
        }
    }

    /// Whether the block was among them.
    fn touch(&mut self, rank: usize) -> bool {
        match self.ranks.iter().position(|&other| other == rank) {
            Some(place) => {
                self.ranks[..=place].rotate_right(1);
                true
            }
            None => {
                self.ranks.truncate(self.ways - 1);
                self.ranks.insert(0, rank);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
