//! The misses of one set of a cache.
//!
//! A block `b` that is requested again after `t` operations is still there if fewer *other* blocks
//! of its set than the set has ways were requested in between. Each other block `c` was, with
//! probability `Q_c(t)`, and taken as independent their number `N` is a sum of unlike coin tosses,
//! a Poisson-binomial variable. So with `R_b(t) = P(N >= ways)`,
//!
//! ```text
//! misses of b, by request = sum over t of P(requested again after t) R_b(t)
//!                         = sum over t of (R_b(t) - R_b(t - 1)) P(not requested again before t)
//! ```
//!
//! The second form is an average over the time after which the set has forgotten `b`; any other
//! quantity of that time is averaged with the same weights. `R` is linear between the times of the
//! tables.
//!
//! The distribution of `N`:
//!
//! - **Hot** blocks, those most requested, twice as many as there are ways: one convolution each.
//! - **Cold** blocks, all others: a binomial distribution, with a real number of trials, of the
//!   same mean and variance.
//! - **Without itself.** `N` counts the others. The block's own trial is divided out: forwards
//!   where its probability is below one half, else backwards from the full convolution of the hot
//!   blocks; both are stable.
//! - **Sets chosen at random** (page frames decide): a block competes with each other one with
//!   probability `share`, which scales each `Q_c`. All sets are then one group.

use super::classes::Table;

/// With more ways than this, the number of blocks is taken as normally distributed.
pub(super) const EXACT_WAYS: usize = 128;
/// A probability this close to 0 or 1 counts as certain.
const SURE: f64 = 1e-8;
/// Blocks whose number of requests is as good as certain.
const CERTAIN: f64 = 1.0 - 1e-12;

/// How many blocks a set has room for: `ways`, and a random number in addition.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    ways: usize,
    /// `stays[j]`: P(a block stays when `j` others came), 1 for j below `ways`; empty where there
    /// are many ways.
    stays: Vec<f64>,
}

impl Room {
    /// Exactly `ways` blocks.
    pub(crate) fn exactly(ways: usize) -> Room {
        Room {
            ways,
            stays: vec![1.0; if ways <= EXACT_WAYS { ways } else { 0 }],
        }
    }

    /// `ways` blocks, and on average `more`.
    pub(crate) fn with_more(ways: usize, more: f64) -> Room {
        let more = more.clamp(0.0, EXACT_WAYS as f64);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and a small number"
        )]
        let whole = more as usize;
        let mut room = Room::exactly(ways + whole);
        if !room.stays.is_empty() {
            room.stays.push(more - whole as f64);
        }
        room
    }
}

/// What is known of a level's classes at each time.
pub(crate) struct Tables<'a> {
    /// P(a block of the class is requested within the time): `Q`.
    pub(crate) requested: &'a Table,
    /// What is averaged over the time of forgetting: one value for each step between two times (the
    /// mean), from 0 on, and one more for never.
    pub(crate) averaged: &'a [Table],
    /// How many times there are.
    pub(crate) times: usize,
}

/// Blocks of one class in a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Member {
    pub(crate) class: u32,
    pub(crate) blocks: u32,
}

/// Computes sets one after another; keeps its buffers.
#[derive(Debug, Default)]
pub(crate) struct Solver {
    /// `Q` of each member at the time in question, times the share.
    chances: Vec<f64>,
    /// Distribution of the number of cold blocks, of hot ones (in full), of both.
    cold: Vec<f64>,
    hot: Vec<f64>,
    all: Vec<f64>,
    without: Vec<f64>,
    /// P(stays | j hot ones came).
    hot_stays: Vec<f64>,
    /// `R` of each member at the time in question.
    forgotten: Vec<f64>,
}

impl Solver {
    /// Averages each of `tables.averaged` over the time after which the set has forgotten a block,
    /// for each of its members.
    ///
    /// `members` come in the order of their classes; `share` is the probability that two of them
    /// compete. Writes `averaged.len()` numbers for each member to `out`.
    pub(crate) fn solve(
        &mut self,
        members: &[Member],
        share: f64,
        room: &Room,
        tables: &Tables<'_>,
        out: &mut Vec<f64>,
    ) {
        let width = tables.averaged.len();
        let last = tables.times - 1;
        out.clear();
        let never = |out: &mut Vec<f64>| {
            for member in members {
                out.extend(
                    tables
                        .averaged
                        .iter()
                        .map(|table| table.row(member.class)[last + 1]),
                );
            }
        };
        let competing: f64 = members.iter().map(|m| f64::from(m.blocks)).sum::<f64>() * share;
        if room.ways == 0 {
            // Forgotten at once.
            for member in members {
                out.extend(tables.averaged.iter().map(|t| t.row(member.class)[0]));
            }
            return;
        }
        if share >= 1.0 && competing <= room.ways as f64 {
            never(out);
            return;
        }
        let start = self.start(members, share, room.ways, tables);
        // Upwards to where all is forgotten, then downwards to where nothing is.
        let mut sums = vec![0.0; members.len() * width];
        let mut add = |solver: &mut Solver, i: usize| {
            solver.column(i, members, share, room, tables);
            for (m, (member, &forgotten)) in members.iter().zip(&solver.forgotten).enumerate() {
                for (k, table) in tables.averaged.iter().enumerate() {
                    let row = table.row(member.class);
                    sums[m * width + k] += forgotten * (row[i] - row[i + 1]);
                }
            }
        };
        let mut end = start;
        loop {
            add(self, end);
            let all_forgotten = self.forgotten.iter().all(|&r| r > 1.0 - SURE);
            if all_forgotten || end == last {
                break;
            }
            end += 1;
        }
        for i in (0..start).rev() {
            add(self, i);
            if self.forgotten.iter().all(|&r| r < SURE) {
                break;
            }
        }
        out.extend(sums);
        for (m, member) in members.iter().enumerate() {
            for (k, table) in tables.averaged.iter().enumerate() {
                out[m * width + k] += table.row(member.class)[end + 1];
            }
        }
    }

    /// The first time at which as many blocks are expected as there is room for.
    fn start(&mut self, members: &[Member], share: f64, ways: usize, tables: &Tables<'_>) -> usize {
        let (mut low, mut high) = (0, tables.times - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            let expected: f64 = members
                .iter()
                .map(|m| f64::from(m.blocks) * tables.requested.row(m.class)[middle])
                .sum();
            if expected * share < ways as f64 {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// `R` of each member at the `i`-th time.
    fn column(
        &mut self,
        i: usize,
        members: &[Member],
        share: f64,
        room: &Room,
        tables: &Tables<'_>,
    ) {
        self.chances.clear();
        self.chances.extend(
            members
                .iter()
                .map(|m| share * tables.requested.row(m.class)[i]),
        );
        self.forgotten.clear();
        if room.ways > EXACT_WAYS {
            self.normal_column(members, room.ways);
        } else if room.stays.len() == 1 {
            self.direct_column(members);
        } else {
            self.exact_column(members, share, room);
        }
    }

    /// One way: any other block evicts.
    fn direct_column(&mut self, members: &[Member]) {
        let mut log_none = 0.0;
        let mut certain = 0u32;
        for (member, &chance) in members.iter().zip(&self.chances) {
            if chance > CERTAIN {
                certain += member.blocks;
            } else {
                log_none += f64::from(member.blocks) * (-chance).ln_1p();
            }
        }
        self.forgotten.extend(self.chances.iter().map(|&chance| {
            let own = if chance > CERTAIN {
                0.0
            } else {
                (-chance).ln_1p()
            };
            if certain > u32::from(chance > CERTAIN) {
                1.0
            } else {
                -(log_none - own).exp_m1()
            }
        }));
    }

    /// Many ways: their number is normally distributed.
    fn normal_column(&mut self, members: &[Member], ways: usize) {
        let (mut mean, mut variance) = (0.0, 0.0);
        for (member, &chance) in members.iter().zip(&self.chances) {
            mean += f64::from(member.blocks) * chance;
            variance += f64::from(member.blocks) * chance * (1.0 - chance);
        }
        self.forgotten.extend(self.chances.iter().map(|&own| {
            let deviation = (variance - own * (1.0 - own)).max(1e-9).sqrt();
            // At least `ways` others, half a block for the step.
            normal_tail((ways as f64 - 0.5 - (mean - own)) / deviation)
        }));
    }

    fn exact_column(&mut self, members: &[Member], share: f64, room: &Room) {
        let stays = &room.stays;
        let hot_blocks = if share >= 1.0 { 2 * stays.len() + 4 } else { 0 };
        // Certain ones come first; each takes a way for good.
        let (mut certain, mut hot_members, mut hot_used) = (0usize, 0, 0);
        self.hot.clear();
        self.hot.push(1.0);
        let (mut mean, mut squares) = (0.0, 0.0);
        for (m, (member, &chance)) in members.iter().zip(&self.chances).enumerate() {
            if share >= 1.0 && chance > CERTAIN {
                certain += member.blocks as usize;
                hot_members = m + 1;
                continue;
            }
            let exact = (member.blocks as usize).min(hot_blocks - hot_used);
            hot_used += exact;
            for _ in 0..exact {
                convolve(&mut self.hot, chance);
            }
            if exact == member.blocks as usize {
                hot_members = m + 1;
            }
            let rest = (member.blocks as usize - exact) as f64;
            mean += rest * chance;
            squares += rest * chance * chance;
        }
        if certain > stays.len() {
            self.forgotten.extend(members.iter().map(|_| 1.0));
            return;
        }
        let stays_after = |j: usize| stays.get(j).copied().unwrap_or(0.0);
        binomial(mean, squares, stays.len(), &mut self.cold);
        self.all.clear();
        for j in 0..stays.len() {
            let from = (j + 1).saturating_sub(self.cold.len());
            let to = j.min(self.hot.len() - 1);
            let sum = (from..=to).map(|h| self.hot[h] * self.cold[j - h]).sum();
            self.all.push(sum);
        }
        let stay = |already: usize, all: &[f64]| -> f64 {
            all.iter()
                .enumerate()
                .map(|(j, &chance)| chance * stays_after(j + already))
                .sum()
        };
        let all_stay = stay(certain, &self.all);
        let mut hot_stays_known = false;
        for (m, &chance) in self.chances.iter().enumerate() {
            let stay = if share >= 1.0 && chance > CERTAIN {
                stay(certain - 1, &self.all)
            } else if chance < 0.5 {
                // all = (1 - q) without + q (without, one more)
                let mut before = 0.0;
                let mut sum = 0.0;
                for (j, &both) in self.all.iter().enumerate() {
                    before = ((both - chance * before) / (1.0 - chance)).max(0.0);
                    sum += before * stays_after(j + certain);
                }
                sum
            } else if m < hot_members {
                if !hot_stays_known {
                    hot_stays_known = true;
                    self.hot_stays.clear();
                    self.hot_stays.extend((0..self.hot.len()).map(|h| {
                        self.cold
                            .iter()
                            .enumerate()
                            .map(|(j, &c)| c * stays_after(j + h + certain))
                            .sum::<f64>()
                    }));
                }
                // From the top: hot[h] = (1 - q) without[h] + q without[h - 1], and without[top] =
                // 0.
                self.without.clear();
                self.without.resize(self.hot.len(), 0.0);
                for h in (1..self.hot.len()).rev() {
                    self.without[h - 1] =
                        ((self.hot[h] - (1.0 - chance) * self.without[h]) / chance).max(0.0);
                }
                self.without
                    .iter()
                    .zip(&self.hot_stays)
                    .map(|(&chance, &stay)| chance * stay)
                    .sum()
            } else {
                all_stay
            };
            self.forgotten.push((1.0 - stay).clamp(0.0, 1.0));
        }
    }
}

/// Adds a trial that succeeds with probability `chance`.
fn convolve(distribution: &mut Vec<f64>, chance: f64) {
    let mut before = 0.0;
    for cell in distribution.iter_mut() {
        let here = *cell;
        *cell = here * (1.0 - chance) + before * chance;
        before = here;
    }
    distribution.push(before * chance);
}

/// The first `len` probabilities of a number of successes, given the sum of the probabilities and
/// of their squares.
fn binomial(mean: f64, squares: f64, len: usize, distribution: &mut Vec<f64>) {
    distribution.clear();
    if mean <= 0.0 {
        distribution.push(1.0);
        return;
    }
    let chance = (squares / mean).clamp(0.0, 1.0 - 1e-12);
    let tosses = mean / chance;
    // Without any spread of its own, the limit is Poisson's.
    let (first, odds) = if chance < 1e-9 {
        ((-mean).exp(), 0.0)
    } else {
        ((tosses * (-chance).ln_1p()).exp(), chance / (1.0 - chance))
    };
    let mut term = first;
    for j in 0..len {
        distribution.push(term);
        let j = j as f64;
        term *= if odds > 0.0 {
            (tosses - j).max(0.0) / (j + 1.0) * odds
        } else {
            mean / (j + 1.0)
        };
    }
}

/// P(at least `least` successes of trials with probability `chance`, of which `mean` are expected).
/// The number of trials may be any real one.
pub(crate) fn binomial_tail(mean: f64, chance: f64, least: f64) -> f64 {
    if least <= 0.0 {
        return 1.0;
    }
    let (first, odds) = if chance < 1e-9 {
        ((-mean).exp(), 0.0)
    } else {
        (
            (mean / chance * (-chance).ln_1p()).exp(),
            chance / (1.0 - chance),
        )
    };
    let (mut term, mut below, mut j) = (first, 0.0, 0.0);
    while j < least {
        below += term;
        term *= if odds > 0.0 {
            (mean / chance - j).max(0.0) / (j + 1.0) * odds
        } else {
            mean / (j + 1.0)
        };
        j += 1.0;
    }
    (1.0 - below).clamp(0.0, 1.0)
}

/// P(a standard normal variable is at least `x`); absolute error below 1.5e-7 (Abramowitz and
/// Stegun, *Handbook of Mathematical Functions*, 7.1.26).
pub(crate) fn normal_tail(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let polynomial = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let half = 0.5 * polynomial * (-z * z).exp();
    if x >= 0.0 { half } else { 1.0 - half }
}
