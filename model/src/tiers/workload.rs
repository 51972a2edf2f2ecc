//! Operations as the tiers see them.

use crate::{Accesses, BlockProbabilities, Placement, Visits};

/// Operations of any kind, or searches in a tree of which no more is known than how often each node
/// is visited.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Workload<'a> {
    Accesses(&'a Accesses),
    Searches {
        visits: &'a Visits,
        placement: &'a Placement,
        touched_bytes: u32,
    },
}

impl Workload<'_> {
    /// Whether each point stands for itself alone.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Workload::Accesses(_) => true,
            Workload::Searches { visits, .. } => visits.counts.is_empty(),
        }
    }

    /// How many points there are.
    pub(crate) fn points(&self) -> usize {
        match self {
            Workload::Accesses(accesses) => accesses.len(),
            Workload::Searches { visits, .. } => visits.len(),
        }
    }

    /// Whether an operation reads the points from a root to where it ends, each once.
    pub(crate) fn is_paths(&self) -> bool {
        match self {
            Workload::Accesses(accesses) => accesses.is_paths(),
            Workload::Searches { visits, .. } => visits.counts.is_empty(),
        }
    }

    /// Block probabilities.
    pub(crate) fn probabilities(&self, block_bytes: u64) -> BlockProbabilities {
        match *self {
            Workload::Accesses(accesses) => accesses.block_probabilities(block_bytes),
            Workload::Searches {
                visits,
                placement,
                touched_bytes,
            } => BlockProbabilities::new(visits, placement, touched_bytes, block_bytes),
        }
    }

    /// All blocks that are ever touched, by ascending number, with their probabilities.
    pub(crate) fn blocks(&self, block_bytes: u64) -> Vec<(u64, f64)> {
        let mut blocks: Vec<(u64, f64)> = self
            .probabilities(block_bytes)
            .blocks()
            .filter(|&(_, probability)| probability > 0.0)
            .collect();
        // Blocks inside of nodes come behind the others.
        if !blocks.is_sorted_by_key(|&(number, _)| number) {
            blocks.sort_unstable_by_key(|&(number, _)| number);
        }
        blocks
    }

    /// Calls `read` with each point's depth, probability and read, in depth-first order. O(points).
    fn for_each_point(&self, mut read: impl FnMut(u32, f64, Read)) {
        let visits = match self {
            Workload::Accesses(accesses) => accesses.visits(),
            Workload::Searches { visits, .. } => visits,
        };
        let points = visits.order.iter().zip(&visits.depths);
        for ((&v, &depth), &probability) in points.zip(&visits.probabilities) {
            let (first_byte, bytes) = match self {
                Workload::Accesses(accesses) => {
                    let access = accesses.access(v);
                    (access.address, access.bytes)
                }
                Workload::Searches {
                    placement,
                    touched_bytes,
                    ..
                } => (placement.offset(v), *touched_bytes),
            };
            let last_byte = first_byte.saturating_add(u64::from(bytes.max(1)) - 1);
            let of_point = Read {
                first_byte,
                last_byte,
            };
            read(depth, probability, of_point);
        }
    }

    /// Calls `take` with the reads of about `samples` operations, drawn evenly: one from each of
    /// `samples` slices of equal probability, in depth-first order of where they end. O(points) and
    /// the length of what is taken.
    pub(crate) fn for_each_sample(&self, samples: u32, mut take: impl FnMut(&[Read])) {
        let mut path: Vec<Read> = Vec::new();
        let mut depths: Vec<u32> = Vec::new();
        // Probability that is left for operations that end at the point itself.
        let mut ends: Vec<f64> = Vec::new();
        let (mut passed, mut next) = (0.0, 0.5);
        let mut leave = |path: &mut Vec<Read>, ends: &mut Vec<f64>| {
            if let Some(end) = ends.pop() {
                passed += end.max(0.0) * f64::from(samples);
                while passed > next {
                    take(path);
                    next += 1.0;
                }
            }
            path.pop();
        };
        self.for_each_point(|depth, probability, read| {
            while let Some(&last) = depths.last()
                && last >= depth
            {
                leave(&mut path, &mut ends);
                depths.pop();
            }
            if let Some(above) = ends.last_mut() {
                *above -= probability;
            }
            path.push(read);
            depths.push(depth);
            ends.push(probability);
        });
        while !path.is_empty() {
            leave(&mut path, &mut ends);
        }
    }
}

/// The bytes of one read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) first_byte: u64,
    pub(crate) last_byte: u64,
}
