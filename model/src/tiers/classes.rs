//! Blocks by class, and what each class does in time, in tables.
//!
//! Millions of blocks have a few hundred different probabilities; what a set of a cache does to its
//! blocks is a sum over their classes at a few dozen times. Both the classes and the times are the
//! same for all sets, so each `1 - (1 - p)^t` is computed once for a level, not once for each block
//! of each set.

use std::collections::HashMap;

use super::renewal::Stream;

/// Bits of a probability's mantissa that tell classes apart: 16 classes to the octave.
const CLASS_SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - 4;
/// Shares that reach a cache, classes to the octave: what passes is known less well than what is
/// touched.
const REACHING_CLASSES: f64 = 4.0;
/// Octaves of such shares; rarer requests are as good as none.
const REACHING_OCTAVES: f64 = 30.0;
/// Times in operations: each of the first ones, then so many to the octave.
const SINGLE_TIMES: u32 = 16;
const TIMES_PER_OCTAVE: f64 = 5.0;
/// The last time is so many times the mean distance of the rarest block's touches.
const LAST_TIME: f64 = 64.0;
/// Longer than any program runs.
const TIME_MAX: f64 = 1e18;

/// One block as a cache sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Block {
    /// Address over block size.
    pub(crate) number: u64,
    /// P(an operation touches it).
    pub(crate) probability: f64,
    /// Share of its touches that the caches before this one do not serve.
    pub(crate) reaching: f32,
}

/// Mean probability and stream of the blocks of one class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class {
    /// P(an operation touches a block of the class), the mean.
    pub(crate) probability: f64,
    /// The requests that reach this cache.
    pub(crate) stream: Stream,
}

/// The classes of a level's blocks.
#[derive(Debug)]
pub(crate) struct Classes {
    /// The most requested first.
    pub(crate) classes: Vec<Class>,
    /// The class of each block.
    pub(crate) of_block: Vec<u32>,
}

impl Classes {
    /// Puts blocks into classes. O(blocks).
    pub(crate) fn of(blocks: &[Block]) -> Classes {
        #[derive(Default)]
        struct Sums {
            probability: f64,
            requests: f64,
            blocks: f64,
        }
        let mut known: HashMap<(u64, u32), u32> = HashMap::new();
        let mut sums: Vec<Sums> = Vec::new();
        let mut of_block = Vec::with_capacity(blocks.len());
        // Neighbours are often alike.
        let mut last: Option<((u64, u32), u32)> = None;
        for block in blocks {
            let key = (
                block.probability.to_bits() >> CLASS_SHIFT,
                reaching_class(block.reaching),
            );
            let index = match last {
                Some((same, index)) if same == key => index,
                _ => *known.entry(key).or_insert_with(|| {
                    sums.push(Sums::default());
                    u32::try_from(sums.len() - 1).unwrap_or(u32::MAX)
                }),
            };
            last = Some((key, index));
            let sums = &mut sums[index as usize];
            sums.probability += block.probability;
            sums.requests += block.probability * f64::from(block.reaching);
            sums.blocks += 1.0;
            of_block.push(index);
        }
        let means: Vec<Class> = sums
            .iter()
            .map(|sums| Class {
                probability: (sums.probability / sums.blocks).min(1.0),
                stream: Stream::new(
                    sums.probability / sums.blocks,
                    sums.requests / sums.probability,
                ),
            })
            .collect();
        let mut order: Vec<u32> = (0u32..).take(means.len()).collect();
        let rate = |&index: &u32| means[index as usize].stream.rate();
        order.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        let mut rank = vec![0u32; order.len()];
        for (place, &index) in (0u32..).zip(&order) {
            rank[index as usize] = place;
        }
        for class in &mut of_block {
            *class = rank[*class as usize];
        }
        Classes {
            classes: order.iter().map(|&i| means[i as usize]).collect(),
            of_block,
        }
    }
}

/// Which shares count as alike.
fn reaching_class(reaching: f32) -> u32 {
    let octaves = -f64::from(reaching).log2();
    if octaves < REACHING_OCTAVES {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 30 octaves"
        )]
        let class = (octaves.max(0.0) * REACHING_CLASSES) as u32;
        class
    } else {
        u32::MAX
    }
}

/// The times at which tables are kept, ascending, in operations.
pub(crate) fn times(rarest: f64) -> Vec<f64> {
    let end = (LAST_TIME / rarest.max(f64::MIN_POSITIVE)).min(TIME_MAX);
    let mut times: Vec<f64> = (1..=SINGLE_TIMES).map(f64::from).collect();
    let mut octaves = 1.0 / TIMES_PER_OCTAVE;
    while times.last().is_some_and(|&last| last < end) {
        times.push((f64::from(SINGLE_TIMES) * f64::exp2(octaves)).round());
        octaves += 1.0 / TIMES_PER_OCTAVE;
    }
    times
}

/// One number for each class and time.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: usize,
    cells: Vec<f64>,
}

impl Table {
    /// Tabulates `cell(class, i)`, where `i` runs over `columns` places.
    pub(crate) fn new(
        classes: &[Class],
        columns: usize,
        cell: impl Fn(&Class, usize) -> f64,
    ) -> Table {
        let mut cells = Vec::with_capacity(classes.len() * columns);
        for class in classes {
            cells.extend((0..columns).map(|i| cell(class, i)));
        }
        Table { columns, cells }
    }

    /// Replaces each cell by `cell(class, i, before)`.
    pub(crate) fn replace(&mut self, cell: impl Fn(usize, usize, f64) -> f64) {
        for (class, row) in self.cells.chunks_exact_mut(self.columns).enumerate() {
            for (i, value) in row.iter_mut().enumerate() {
                *value = cell(class, i, *value);
            }
        }
    }

    /// All times of one class.
    pub(crate) fn row(&self, class: u32) -> &[f64] {
        &self.cells[class as usize * self.columns..][..self.columns]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    #[test]
    fn times_ascend_to_where_all_was_touched() {
        let times = times(1e-6);
        assert!(times.is_sorted_by(|a, b| a < b));
        assert!(times[0] < 1.5 && times.last().is_some_and(|&last| last >= 64e6));
        assert_eq!(super::times(0.0).len(), super::times(1e-300).len());
    }

    quickcheck! {
        fn classes_keep_the_sum_and_come_in_order(seeds: Vec<(u16, u8)>) -> bool {
            let blocks: Vec<Block> = seeds.iter().zip(0u64..).map(|(&(p, m), number)| Block {
                number,
                probability: 0.5f64.powf(f64::from(p) / 2000.0),
                reaching: f32::from(m) / 255.0,
            }).collect();
            let classes = Classes::of(&blocks);
            let sum: f64 = blocks.iter().map(|block| block.probability).sum();
            let by_class: f64 = classes.of_block.iter().map(|&class| classes.classes[class as usize].probability).sum();
            let near = classes.of_block.iter().zip(&blocks).all(|(&class, block)| {
                (classes.classes[class as usize].probability / block.probability - 1.0).abs() < 0.07
            });
            (sum - by_class).abs() < 1e-9 * (1.0 + sum)
                && near
                && classes.classes.is_sorted_by(|a, b| a.stream.rate() >= b.stream.rate())
        }
    }
}
