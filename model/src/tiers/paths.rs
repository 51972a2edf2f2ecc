//! Where operations are long against a cache: what stands on one path comes and goes together.
//!
//! `sets` takes blocks as independent. For a search in a tree, of which a cache holds hundreds of
//! blocks, that is near enough; for a buffer of 64 pages, or a set in which the tops of all
//! subtrees meet, it is not. Let an operation `o` read block `b`, and let `b` be read again a while
//! later. In between
//!
//! ```text
//! o:                     .. ancestors of b, b, | the rest of o: n_a blocks after b
//! operations between:    none of them reads b, so none reads what can be reached only through b
//! the next one with b:   the ancestors of b, again, n_b blocks |, b
//! ```
//!
//! All blocks of `o` itself are among those, each once: the rest of `o` comes after `b`, and the
//! ancestors are read before `b` is again. So what has come in between is *all of `o` but `b`*,
//! plus what the operations in between read elsewhere:
//!
//! ```text
//! N = (blocks of o in b's set) - 1 + (others in b's set, read by operations that do not read b)
//! ```
//!
//! Time is counted in operations, of which those in between do not read `b`:
//!
//! ```text
//! P(b not read within t) = (1 - p_b)^t        P(c is read in between) = 1 - (1 - (p_c - p_bc))^((t - 1) / (1 - p_b))
//! ```
//!
//! where `p_bc` is the probability of an operation that reads both. (Tried and dropped: operations
//! at random times, with the variance of what they read together added. It was as good where that
//! is little, and worse by several percent in sets of few ways in which subtrees meet.) When no
//! operation reads two blocks of one set, operations at random times make all blocks of a set
//! independent, and `sets` is exact: see [`exclusive`].
//!
//! **Which blocks are read with `b`** and how often is known for those of `o`: both are unions of
//! intervals of operations. Others are like them: where `o` goes on to one of several brothers,
//! each with probability `p_bc / p_b`, there are `p_b / p_bc - 1` others.
//!
//! Some thousand operations, drawn evenly, are gone through like this. What comes out is held
//! against what independent blocks give for the same reads, and the ratio, class by class, corrects
//! all blocks: so little depends on which operations were drawn.

use std::collections::HashMap;
use std::ops::{ControlFlow, RangeInclusive};

use super::classes::{Block, Class, Classes, Table, times};
use super::sets::{binomial_tail, normal_tail};
use super::workload::{Read, Workload};

/// Operations that are gone through.
const SAMPLES: u32 = 4000;
/// Steps that may be taken in all; long operations are drawn more seldom, down to `SAMPLES_MIN`.
const STEPS: f64 = 4e7;
const SAMPLES_MIN: u32 = 60;
/// Reads of one operation for which misses are asked; of longer ones, evenly chosen ones.
const ASKED: usize = 96;
/// Up to so many reads in all it is looked up which operations touch which of their blocks; else
/// that follows from single points.
const KNOWN_READS: f64 = 1e6;
/// Chances nearer to 0 and 1 than this are settled.
const SURE: f64 = 1e-6;

/// What is known of the blocks of one set at each time: the first three cumulants of the number
/// that was requested.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cumulants {
    mean: f64,
    variance: f64,
    third: f64,
}

impl Cumulants {
    fn add(&mut self, chance: f64, times: f64) {
        let spread = times * chance * (1.0 - chance);
        self.mean += times * chance;
        self.variance += spread;
        self.third += spread * (1.0 - 2.0 * chance);
    }

    fn towards(self, other: Cumulants, share: f64) -> Cumulants {
        let mix = |a: f64, b: f64| a + share * (b - a);
        Cumulants {
            mean: mix(self.mean, other.mean),
            variance: mix(self.variance, other.variance),
            third: mix(self.third, other.third),
        }
    }

    /// P(the number is at least `least`).
    fn at_least(self, least: f64) -> f64 {
        if least <= 0.0 {
            return 1.0;
        }
        if self.variance < 1e-9 {
            return f64::from(u8::from(self.mean + 0.5 >= least));
        }
        if least > 200.0 {
            return normal_tail((least - 0.5 - self.mean) / self.variance.sqrt());
        }
        // So many are certain, the others n* tosses with chance q*.
        let chance = (0.5 * (1.0 - self.third / self.variance)).clamp(0.0, 0.95);
        let tossed = self.variance / (1.0 - chance);
        let certain = self.mean - tossed;
        let least = least - certain;
        // Between two whole numbers, in proportion.
        let (below, share) = (least.floor(), least - least.floor());
        let at = |least: f64| binomial_tail(tossed, chance, least);
        at(below) * (1.0 - share) + at(below + 1.0) * share
    }
}

/// What competes in a cache.
pub(crate) struct Sets<'a> {
    pub(crate) blocks: &'a [Block],
    pub(crate) classes: &'a Classes,
    pub(crate) block_bytes: u64,
    /// Power of two.
    pub(crate) groups: u64,
    pub(crate) share: f64,
    pub(crate) ways: f64,
}

impl Sets<'_> {
    /// The blocks that a read touches.
    fn numbers(&self, read: &Read) -> RangeInclusive<u64> {
        read.first_byte / self.block_bytes..=read.last_byte / self.block_bytes
    }

    /// The index of a block, where it is known; `hint` is where the last one was.
    fn index(&self, number: u64, hint: &mut usize) -> Option<usize> {
        let here = self.blocks.get(*hint).map(|block| block.number);
        if here != Some(number) {
            // Where numbers have no gaps, the place is known.
            let guess = self
                .blocks
                .first()
                .and_then(|first| usize::try_from(number.checked_sub(first.number)?).ok())?;
            *hint = match self.blocks.get(guess) {
                Some(block) if block.number == number => guess,
                _ => self
                    .blocks
                    .binary_search_by_key(&number, |block| block.number)
                    .ok()?,
            };
        }
        Some(*hint)
    }
}

/// A block of the operation that is gone through.
#[derive(Clone, Copy)]
struct Passed {
    group: u32,
    /// Place of its first and of its last read in the operation.
    first: u32,
    last: u32,
    class: u32,
    index: u32,
    /// P(block), P(the read that first touched it).
    probability: f64,
    point: f64,
}

/// For each class, by how much independence errs: misses by request over what `estimates` say,
/// which are one for each block.
pub(crate) fn corrections(
    workload: &Workload<'_>,
    sets: &Sets<'_>,
    estimates: impl Fn(usize) -> f64,
    touches: f64,
) -> Vec<f64> {
    let classes = sets.classes.classes.len();
    let (mut found, mut expected) = (vec![0.0; classes], vec![0.0; classes]);
    // Each read that is asked for looks at those of its set, at some twenty times.
    let beside = (touches * sets.share / sets.groups as f64).max(1.0);
    let steps = touches.min(ASKED as f64) * beside * 20.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most SAMPLES"
    )]
    let samples = (STEPS / steps)
        .min(f64::from(SAMPLES))
        .min(4.0 * sets.blocks.len() as f64) as u32;
    let samples = samples.max(SAMPLES_MIN);
    let mut passed: Vec<Passed> = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    let tables = SetTables::of(sets);
    let mut go_through = |together: &Together, reads: &[Read]| {
        passes(sets, reads, &mut passed);
        let stride = passed.len().div_ceil(ASKED).max(1);
        for at in (stride / 2..passed.len()).step_by(stride) {
            let block = passed[at];
            let requests = stride as f64;
            let missed = tables.missed(sets, together, &passed, &mut kinds, at);
            found[block.class as usize] += requests * missed;
            expected[block.class as usize] += requests * estimates(block.index as usize);
        }
    };
    if touches * f64::from(samples) < KNOWN_READS {
        let mut taken: Vec<Vec<Read>> = Vec::new();
        workload.for_each_sample(samples, |reads| {
            taken.push(reads.to_vec());
        });
        let together = Together::of(workload, sets, &taken);
        for reads in &taken {
            go_through(&together, reads);
        }
    } else {
        let unknown = Together::default();
        workload.for_each_sample(samples, |reads| {
            go_through(&unknown, reads);
        });
    }
    let (all_found, all_expected): (f64, f64) = (found.iter().sum(), expected.iter().sum());
    let overall = if all_expected > 0.0 {
        all_found / all_expected
    } else {
        1.0
    };
    // A class of which little was seen goes with all.
    let little = 1e-3 * all_expected;
    (found.iter().zip(&expected))
        .map(|(&found, &expected)| (found + little * overall) / (expected + little))
        .map(|ratio| if ratio.is_finite() { ratio } else { 1.0 })
        .collect()
}

/// Which operations touch each of some blocks.
#[derive(Default)]
struct Together {
    /// Ascending intervals of operations that do not meet, by block; none where that is not known.
    intervals: HashMap<u32, Vec<(f64, f64)>>,
}

impl Together {
    /// For all blocks of these operations. O(points).
    fn of(workload: &Workload<'_>, sets: &Sets<'_>, taken: &[Vec<Read>]) -> Together {
        let mut wanted = vec![false; sets.blocks.len()];
        let mut intervals: HashMap<u32, Vec<(f64, f64)>> = HashMap::new();
        let mut hint = 0;
        for reads in taken {
            for read in reads {
                for number in sets.numbers(read) {
                    if let Some(index) = sets.index(number, &mut hint) {
                        wanted[index] = true;
                    }
                }
            }
        }
        workload.for_each_point(|_, read| {
            let end = read.start + read.probability;
            for number in sets.numbers(&read) {
                let Some(index) = sets.index(number, &mut hint) else {
                    continue;
                };
                if !wanted[index] {
                    continue;
                }
                let key = u32::try_from(index).unwrap_or(u32::MAX);
                let known = intervals.entry(key).or_default();
                // Starts ascend; what lies within another one adds nothing.
                match known.last_mut() {
                    Some(last) if read.start <= last.1 + 1e-12 => last.1 = last.1.max(end),
                    _ => known.push((read.start, end)),
                }
            }
        });
        Together { intervals }
    }

    /// P(an operation touches both); by their points alone where operations are not known.
    fn both(&self, one: &Passed, other: &Passed) -> f64 {
        let (Some(a), Some(b)) = (
            self.intervals.get(&one.index),
            self.intervals.get(&other.index),
        ) else {
            return one.point.min(other.point);
        };
        let (mut i, mut j, mut sum) = (0, 0, 0.0);
        while let (Some(a), Some(b)) = (a.get(i), b.get(j)) {
            sum += (a.1.min(b.1) - a.0.max(b.0)).max(0.0);
            if a.1 < b.1 {
                i += 1;
            } else {
                j += 1;
            }
        }
        sum.max(one.point.min(other.point))
    }
}

/// Whether no operation reads two blocks of one group: as far as [`SAMPLES`] operations show.
/// O(points), and far less where the answer is no.
pub(crate) fn exclusive(workload: &Workload<'_>, block_bytes: u64, groups: u64) -> bool {
    let mut seen: Vec<(u64, u64)> = Vec::new();
    let found = workload.try_for_each_sample(SAMPLES, |reads| {
        seen.clear();
        for read in reads {
            let numbers = read.first_byte / block_bytes..=read.last_byte / block_bytes;
            seen.extend(numbers.map(|number| (number & (groups - 1), number)));
        }
        seen.sort_unstable();
        seen.dedup();
        if seen.windows(2).all(|pair| pair[0].0 != pair[1].0) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    found.is_continue()
}

/// The blocks of an operation, by group.
fn passes(sets: &Sets<'_>, reads: &[Read], passed: &mut Vec<Passed>) {
    passed.clear();
    let (mut place, mut hint) = (0u32, 0);
    for read in reads {
        for number in sets.numbers(read) {
            let Some(index) = sets.index(number, &mut hint) else {
                continue;
            };
            let block = &sets.blocks[index];
            place += 1;
            passed.push(Passed {
                group: u32::try_from(number & (sets.groups - 1)).unwrap_or(0),
                first: place,
                last: place,
                class: sets.classes.of_block[index],
                index: u32::try_from(index).unwrap_or(u32::MAX),
                probability: block.probability,
                point: read.probability,
            });
        }
    }
    passed.sort_unstable_by_key(|block| (block.group, block.index, block.first));
    passed.dedup_by(|again, first| {
        let same = again.index == first.index;
        if same {
            first.last = again.last;
        }
        same
    });
}

/// What is left of the reads of a block of the operation itself, and of its brothers, by the
/// operations in between.
#[derive(Clone, Copy)]
struct Kind {
    class: u32,
    /// Whether it is counted already, as one that the operation brings.
    is_own: bool,
    /// How many blocks of its kind can be reached through the block in question.
    brothers: f64,
    /// Which share of its touches comes with the block in question.
    together: f64,
}

impl Kind {
    /// Of the chance that such a block is read, what is left without those operations that read the
    /// block in question too: P(c, not b).
    fn without(&self, chance: f64) -> f64 {
        if self.together > 0.999 {
            0.0
        } else {
            1.0 - (1.0 - chance).powf(1.0 - self.together)
        }
    }
}

/// What a set does for certain; cumulants do not know that it has no more blocks.
enum Known {
    /// It has a way for each of its blocks, and forgets none.
    Fits,
    /// It has one block more than ways, and forgets one when all others were read; its classes, and
    /// how many blocks each has.
    OneTooMany(Vec<(u32, f64)>),
    /// It has more.
    Nothing,
}

/// What happens in time, by class and by set.
struct SetTables {
    times: Vec<f64>,
    /// P(read within the time).
    read: Table,
    /// P(not read again), mean over the steps between times, and 0 for never.
    unread: Table,
    /// By set and time, the number of blocks that are read.
    cells: Vec<Cumulants>,
    /// By set, where sets are known, what is certain about it.
    known: Vec<Known>,
}

impl SetTables {
    fn of(sets: &Sets<'_>) -> SetTables {
        let rarest = sets.blocks.iter().map(|block| block.probability);
        let rarest = rarest.fold(1.0, f64::min);
        let times = times(rarest, false);
        let columns = times.len();
        let classes = &sets.classes.classes;
        let decay = |class: &Class| -(-class.probability.min(1.0 - 1e-12)).ln_1p();
        let read = Table::new(classes, columns, |class, i| {
            -(-decay(class) * times[i]).exp_m1()
        });
        let unread = Table::new(classes, columns + 1, |class, i| {
            if i == columns {
                return 0.0;
            }
            let (from, to) = (if i == 0 { 0.0 } else { times[i - 1] }, times[i]);
            let lost = (-decay(class) * from).exp() * -(-decay(class) * (to - from)).exp_m1();
            // Sum of (1 - p)^u over u = from, .., to - 1.
            lost / (class.probability * (to - from))
        });
        let groups = usize::try_from(sets.groups).unwrap_or(1);
        let mut counts = vec![0u32; groups * classes.len()];
        for (block, &class) in sets.blocks.iter().zip(&sets.classes.of_block) {
            let group = usize::try_from(block.number & (sets.groups - 1)).unwrap_or(0);
            counts[group * classes.len() + class as usize] += 1;
        }
        let known = counts.chunks_exact(classes.len().max(1)).map(|counts| {
            let beyond = f64::from(counts.iter().sum::<u32>()) - sets.ways;
            if sets.share < 1.0 || beyond > 1.5 {
                Known::Nothing
            } else if beyond > 0.5 {
                let members = (0u32..).zip(counts).filter(|&(_, &count)| count > 0);
                let blocks = |(class, &count)| (class, f64::from(count));
                Known::OneTooMany(members.map(blocks).collect())
            } else {
                Known::Fits
            }
        });
        let known = known.collect();
        let mut cells = vec![Cumulants::default(); groups * columns];
        let of_sets = counts.chunks_exact(classes.len().max(1));
        for (counts, cells) in of_sets.zip(cells.chunks_exact_mut(columns)) {
            for (class, &count) in (0u32..).zip(counts) {
                if count > 0 {
                    for (cell, &chance) in cells.iter_mut().zip(read.row(class)) {
                        cell.add(sets.share * chance, f64::from(count));
                    }
                }
            }
        }
        SetTables {
            times,
            read,
            unread,
            cells,
            known,
        }
    }

    /// Between which times a time lies: the upper one's column, and how far from the lower one.
    fn column_of(&self, time: f64) -> (usize, f64) {
        let above = self.times.partition_point(|&other| other < time);
        let column = above.min(self.times.len() - 1);
        let below = column
            .checked_sub(1)
            .map_or(0.0, |before| self.times[before]);
        let share = (time - below) / (self.times[column] - below);
        (column, share.clamp(0.0, 1.0))
    }

    /// P(a block of the class is read within a time), which lies between two columns.
    fn chance(&self, class: u32, (column, share): (usize, f64)) -> f64 {
        let row = self.read.row(class);
        let before = column.checked_sub(1).map_or(0.0, |before| row[before]);
        before + share * (row[column] - before)
    }

    /// P(every other block of the set is read), of which the rarest decides.
    fn all_read(&self, members: &[(u32, f64)], kinds: &[Kind], at: (usize, f64)) -> f64 {
        let mut all = 1.0;
        for &(class, blocks) in members {
            let chance = self.chance(class, at);
            let of_class = || kinds.iter().filter(|kind| kind.class == class);
            let known = of_class().count() as f64;
            let brothers: f64 = of_class().map(|kind| kind.brothers).sum();
            // They are estimated, and may be more than the set has blocks.
            let here = brothers.min(blocks - known).max(0.0);
            for kind in of_class() {
                let share = if brothers > 0.0 { here / brothers } else { 0.0 };
                let left = kind.brothers * share + if kind.is_own { 0.0 } else { 1.0 };
                if left > 0.0 {
                    all *= kind.without(chance).powf(left);
                }
            }
            all *= chance.powf((blocks - known - here).max(0.0));
        }
        all
    }

    /// Misses by request of the `at`-th block of an operation.
    fn missed(
        &self,
        sets: &Sets<'_>,
        together: &Together,
        passed: &[Passed],
        kinds: &mut Vec<Kind>,
        at: usize,
    ) -> f64 {
        let block = passed[at];
        // Those of its set stand around it.
        let is_other = |p: &Passed| p.group != block.group;
        let from = passed[..at].iter().rposition(is_other).map_or(0, |i| i + 1);
        let to = passed[at..].iter().position(is_other);
        let set = &passed[from..to.map_or(passed.len(), |i| at + i)];
        // Blocks that the operation itself brings between two reads of this one.
        let mut own = Cumulants::default();
        kinds.clear();
        for other in set {
            if other.index == block.index {
                kinds.push(Kind {
                    class: other.class,
                    is_own: true,
                    brothers: 0.0,
                    together: 1.0,
                });
                continue;
            }
            let is_own = other.first < block.first || other.last > block.last;
            if is_own {
                own.add(sets.share, 1.0);
            }
            let both = together.both(&block, other);
            kinds.push(Kind {
                class: other.class,
                is_own,
                brothers: (block.probability / both - 1.0).max(0.0),
                together: (both / other.probability).min(1.0),
            });
        }
        let columns = self.times.len();
        let cells = &self.cells[block.group as usize * columns..][..columns];
        let weights = self.unread.row(block.class);
        let last = columns - 1;
        let one_too_many = match self.known.get(block.group as usize) {
            Some(Known::Fits) => return 0.0,
            Some(Known::OneTooMany(members)) => Some(members),
            Some(Known::Nothing) | None => None,
        };
        let forgotten = |i: usize| {
            let time = (self.times[i] - 1.0) / (1.0 - block.probability).max(1e-9);
            let (column, share) = self.column_of(time);
            if let Some(members) = one_too_many {
                return self.all_read(members, kinds, (column, share));
            }
            let mut between = match column.checked_sub(1) {
                Some(before) => cells[before].towards(cells[column], share),
                None => Cumulants::default().towards(cells[0], share),
            };
            for kind in kinds.iter() {
                let chance = self.chance(kind.class, (column, share));
                between.add(sets.share * chance, -1.0 - kind.brothers);
                let left = kind.brothers + if kind.is_own { 0.0 } else { 1.0 };
                between.add(sets.share * kind.without(chance), left);
            }
            Cumulants {
                mean: own.mean + between.mean.max(0.0),
                variance: own.variance + between.variance.max(0.0),
                third: own.third + between.third.max(0.0),
            }
            .at_least(sets.ways)
        };
        // From where the set is about full, upwards and downwards.
        let start = cells
            .partition_point(|cell| cell.mean + own.mean < sets.ways)
            .min(last);
        let mut sum = 0.0;
        let mut end = start;
        loop {
            let forgotten = forgotten(end);
            sum += forgotten * (weights[end] - weights[end + 1]);
            if forgotten > 1.0 - SURE || weights[end + 1] < SURE || end == last {
                break;
            }
            end += 1;
        }
        for i in (0..start).rev() {
            let forgotten = forgotten(i);
            sum += forgotten * (weights[i] - weights[i + 1]);
            if forgotten < SURE {
                break;
            }
        }
        (sum + weights[end + 1]).clamp(0.0, 1.0)
    }
}
