//! Where operations are long compared with a cache: a replay of drawn operations.
//!
//! `sets` takes blocks as independent. That is near enough for a search in a tree of which a cache
//! holds hundreds of blocks, but not for a buffer of 64 pages, or for a set in which the tops of
//! all subtrees meet: the blocks of one path come and go together. For such a cache, some thousand
//! operations are drawn evenly, shuffled, and replayed through it. By class of blocks, the misses
//! of the replay over those of independent blocks correct the prediction for all blocks, so that
//! little depends on which operations were drawn.

use super::classes::{Block, Classes};
use super::workload::Workload;
use crate::shape::random::SplitMix64;

/// Reads of the replay: of a point on average, and in all at least and at most.
const READS_OF_POINT: f64 = 1000.0;
const READS_MIN: f64 = 4e5;
const READS_MAX: f64 = 2e6;
/// Drawn operations at least and at most.
const OPERATIONS_MIN: f64 = 40.0;
const OPERATIONS_MAX: f64 = 200_000.0;
/// Marks a way without a block.
const EMPTY: u32 = u32::MAX;

/// The sets of a cache, and the blocks that compete in them.
pub(crate) struct Sets<'a> {
    pub(crate) blocks: &'a [Block],
    pub(crate) classes: &'a Classes,
    pub(crate) block_bytes: u64,
    /// The number of sets, a power of two.
    pub(crate) groups: u64,
    pub(crate) ways: usize,
}

/// For each class, the misses of a replay over those that `estimate` predicts by block and request.
pub(crate) fn corrections(
    workload: &Workload<'_>,
    sets: &Sets<'_>,
    estimate: impl Fn(usize) -> f64,
    touches: f64,
) -> Vec<f64> {
    let classes = sets.classes.classes.len();
    let (mut found, mut expected) = (vec![0.0; classes], vec![0.0; classes]);
    let mut operations = drawn(workload, sets, touches);
    let mut cache = Cache::new(sets);
    let mut random = SplitMix64::new(1);
    // By block, the last operation that read it.
    let mut read_by = vec![0u32; sets.blocks.len()];
    let mut number = 0;
    for is_counted in [false, true] {
        shuffle(&mut operations, &mut random);
        for operation in &operations {
            number += 1;
            for &block in operation {
                let index = block as usize;
                let hit = cache.touch(block, &sets.blocks[index]);
                let is_first = std::mem::replace(&mut read_by[index], number) != number;
                if is_counted {
                    let class = sets.classes.of_block[index] as usize;
                    found[class] += f64::from(u8::from(!hit));
                    // The estimate is for all reads of one operation together.
                    expected[class] += if is_first { estimate(index) } else { 0.0 };
                }
            }
        }
    }
    let (all_found, all_expected): (f64, f64) = (found.iter().sum(), expected.iter().sum());
    let overall = if all_expected > 0.0 {
        all_found / all_expected
    } else {
        1.0
    };
    // A class with few misses takes the correction of all.
    let few = 1e-3 * all_expected;
    (found.iter().zip(&expected))
        .map(|(&found, &expected)| (found + few * overall) / (expected + few))
        .map(|ratio| if ratio.is_finite() { ratio } else { 1.0 })
        .collect()
}

/// The blocks of evenly drawn operations, in the order of the reads.
fn drawn(workload: &Workload<'_>, sets: &Sets<'_>, touches: f64) -> Vec<Vec<u32>> {
    let reads = (READS_OF_POINT * workload.points() as f64).clamp(READS_MIN, READS_MAX);
    let count = (reads / touches.max(1.0)).clamp(OPERATIONS_MIN, OPERATIONS_MAX);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most OPERATIONS_MAX"
    )]
    let count = count as u32;
    let mut operations = Vec::new();
    workload.for_each_sample(count, |reads| {
        let numbers = reads.iter().flat_map(|read| {
            read.first_byte / sets.block_bytes..=read.last_byte / sets.block_bytes
        });
        let mut blocks: Vec<u32> = Vec::with_capacity(reads.len());
        for number in numbers {
            let index = index_of(sets.blocks, number);
            blocks.extend(index.and_then(|index| u32::try_from(index).ok()));
        }
        blocks.dedup();
        operations.push(blocks);
    });
    operations
}

/// The index of a block; it is the distance from the first one where numbers have no gaps.
fn index_of(blocks: &[Block], number: u64) -> Option<usize> {
    let distance = number.checked_sub(blocks.first()?.number)?;
    match usize::try_from(distance) {
        Ok(index)
            if blocks
                .get(index)
                .is_some_and(|block| block.number == number) =>
        {
            Some(index)
        }
        _ => blocks
            .binary_search_by_key(&number, |block| block.number)
            .ok(),
    }
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for i in (1..items.len()).rev() {
        let j = usize::try_from(random.next_u64() % (i as u64 + 1)).unwrap_or(0);
        items.swap(i, j);
    }
}

/// A cache with least-recently-used replacement.
struct Cache {
    /// Ways of each set, the most recently used first.
    sets: Vec<u32>,
    ways: usize,
    groups: u64,
}

impl Cache {
    fn new(sets: &Sets<'_>) -> Cache {
        let count = usize::try_from(sets.groups).unwrap_or(1);
        Cache {
            sets: vec![EMPTY; count * sets.ways],
            ways: sets.ways,
            groups: sets.groups,
        }
    }

    /// Whether the block is a hit; makes it the most recently used one.
    fn touch(&mut self, index: u32, block: &Block) -> bool {
        let set = usize::try_from(block.number & (self.groups - 1)).unwrap_or(0);
        let ways = &mut self.sets[set * self.ways..][..self.ways];
        let place = ways.iter().position(|&other| other == index);
        ways[..=place.unwrap_or(self.ways - 1)].rotate_right(1);
        ways[0] = index;
        place.is_some()
    }
}
