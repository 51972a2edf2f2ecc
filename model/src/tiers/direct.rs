//! Direct-mapped caches, exactly.
//!
//! A set of one block holds what was read last of all that falls into it. Operations are
//! independent of each other and alike, so the steady state of a set is known without solving
//! anything: let
//!
//! ```text
//! F_b = P(an operation reads the set, and block b first)
//! L_b = P(an operation reads the set, and block b last)          G = sum of F_b = sum of L_b
//! ```
//!
//! Whichever operation read the set last left `b` there with probability `L_b / G`. So the first
//! read of `b` misses with `1 - L_b / G`; later reads of the same operation find what the operation
//! itself has left there, and miss exactly when it was another block:
//!
//! ```text
//! misses = sum over sets of [ sum over b of F_b (1 - L_b / G)  +  sum of P(visit v) over reads v whose set was last read in another block ]
//! ```
//!
//! Both come out of one depth-first pass over the points: what the path has read last of a set is
//! the newest of the path's reads there. With one block read by an operation, this is the formula
//! for direct-mapped caches under independent references, `p (1 - p / sum of p)`.

use super::workload::Workload;

/// The reads of the current path, each with what was the newest in its set before.
struct Read {
    depth: u32,
    set: u32,
    block: u64,
    /// Index of the path's read that was the newest in this set before.
    before: u32,
    /// Index of the block in the sums.
    index: u32,
}

const NONE: u32 = u32::MAX;

/// Misses of one operation in a direct-mapped cache, by block: numbers ascending, with the
/// probability that an operation touches the block and the expected misses.
pub(crate) fn misses(workload: &Workload<'_>, block_bytes: u64, sets: u64) -> Vec<(u64, f64, f64)> {
    #[derive(Clone, Default)]
    struct Sums {
        first: f64,
        last: f64,
        within: f64,
    }
    let probabilities = workload.blocks(block_bytes);
    let ranks = Ranks::of(&probabilities);
    let mut sums = vec![Sums::default(); probabilities.len()];
    let mut newest = vec![NONE; usize::try_from(sets).unwrap_or(usize::MAX)];
    let mut path: Vec<Read> = Vec::new();
    workload.for_each_point(|depth, point| {
        let probability = point.probability;
        while let Some(read) = path.last()
            && read.depth >= depth
        {
            newest[read.set as usize] = read.before;
            path.pop();
        }
        for block in point.first_byte / block_bytes..=point.last_byte / block_bytes {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "below the number of sets, which indexes an array"
            )]
            let set = (block & (sets - 1)) as u32;
            let Some(rank) = ranks.of_block(block) else {
                // Never touched: no operation goes there.
                continue;
            };
            let here = &mut sums[rank];
            match path.get(newest[set as usize] as usize) {
                None => {
                    here.first += probability;
                }
                Some(before) => {
                    if before.block != block {
                        here.within += probability;
                    }
                    let before = before.index as usize;
                    sums[before].last -= probability;
                }
            }
            sums[rank].last += probability;
            path.push(Read {
                depth,
                set,
                block,
                before: newest[set as usize],
                index: u32::try_from(rank).unwrap_or(NONE),
            });
            newest[set as usize] = u32::try_from(path.len() - 1).unwrap_or(NONE);
        }
    });
    let mut visited = vec![0.0; newest.len()];
    let set_of = |number: u64| usize::try_from(number & (sets - 1)).unwrap_or(0);
    for (&(number, _), sums) in probabilities.iter().zip(&sums) {
        visited[set_of(number)] += sums.first;
    }
    probabilities
        .iter()
        .zip(&sums)
        .map(|(&(number, probability), sums)| {
            let all = visited[set_of(number)];
            let left = if all > 0.0 {
                (sums.last / all).clamp(0.0, 1.0)
            } else {
                1.0
            };
            (number, probability, sums.first * (1.0 - left) + sums.within)
        })
        .collect()
}

/// Block numbers that occur, from number to rank.
enum Ranks<'a> {
    /// By number less the first one.
    Dense {
        first: u64,
        ranks: Vec<u32>,
    },
    Sparse(&'a [(u64, f64)]),
}

impl Ranks<'_> {
    fn of(blocks: &[(u64, f64)]) -> Ranks<'_> {
        let (Some(&(first, _)), Some(&(last, _))) = (blocks.first(), blocks.last()) else {
            return Ranks::Sparse(blocks);
        };
        match usize::try_from(last - first) {
            Ok(distance) if distance / 16 < blocks.len() => {
                let mut ranks = vec![NONE; distance + 1];
                for (rank, &(number, _)) in (0u32..).zip(blocks) {
                    // At most `distance`.
                    if let Ok(place) = usize::try_from(number - first) {
                        ranks[place] = rank;
                    }
                }
                Ranks::Dense { first, ranks }
            }
            _ => Ranks::Sparse(blocks),
        }
    }

    fn of_block(&self, block: u64) -> Option<usize> {
        match self {
            Ranks::Dense { first, ranks } => {
                let place = usize::try_from(block.checked_sub(*first)?).ok()?;
                ranks
                    .get(place)
                    .filter(|&&rank| rank != NONE)
                    .map(|&rank| rank as usize)
            }
            Ranks::Sparse(blocks) => blocks
                .binary_search_by_key(&block, |&(number, _)| number)
                .ok(),
        }
    }
}
