//! Misses level by level: each level gets the misses of the ones before it.

use std::collections::HashMap;

use super::classes::{Block, Class, Classes, Table, times};
use super::renewal::Stream;
use super::replay::{self, Sets};
use super::sets::{Member, Room, Solver, Tables};
use super::victim::Rooms;
use super::workload::Workload;
use super::{FrameMap, LevelPrediction, Tier};
use crate::CacheGeometry;
use crate::footprint::Replacement;
use crate::hierarchy::{CacheLevel, Inclusion, ReplacementPolicy};

/// Results that are kept for equal sets.
const KEPT_SETS: usize = 4096;
/// Operations that request a larger share of a set are replayed.
const CROWDED_SHARE: f64 = 0.004;
/// Passes that bring the content and the requests of an inclusive cache together.
const INCLUSIVE_PASSES: usize = 3;
/// Size of a frame.
pub(crate) const FRAME_BYTES: u64 = 4096;

/// Which blocks compete.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Grouping {
    /// Power of two: the block number's low bits are the group.
    groups: u64,
    /// P(two blocks of a group compete).
    share: f64,
}

/// Misses at each of `levels`.
pub(crate) fn predict(
    workload: &Workload<'_>,
    levels: &[CacheLevel],
    inclusion: Inclusion,
    frames: FrameMap,
    tier: Tier,
    first: Option<f64>,
) -> Vec<LevelPrediction> {
    let mut predictions: Vec<LevelPrediction> = Vec::new();
    let mut above: Option<Blocks> = None;
    for (i, level) in levels.iter().enumerate() {
        let victim = inclusion == Inclusion::VictimLast && i + 1 == levels.len();
        let mut blocks = match above.take() {
            Some(blocks) if blocks.block_bytes == level.geometry.block_bytes() => blocks,
            before => Blocks::of(workload, level.geometry.block_bytes(), before.as_ref()),
        };
        let (tier, reason, grouping) = choose(workload, level, frames, tier);
        let kind = LevelKind {
            above: i.checked_sub(1).and_then(|j| levels.get(j)),
            victim,
            inclusive: inclusion == Inclusion::Inclusive && i > 0,
            nested: grouping.share >= 1.0
                && i.checked_sub(1)
                    .is_some_and(|j| nested(&levels[j].geometry, &level.geometry)),
        };
        let outcome = if tier == Tier::Footprint {
            blocks.through_footprint(workload, level, &kind, first)
        } else {
            blocks.through_sets(workload, level, &kind, grouping, first)
        };
        for upper in &mut predictions {
            upper.misses += outcome.evicted_above * first.unwrap_or(1.0);
        }
        predictions.push(LevelPrediction {
            name: level.name.clone(),
            misses: if first.is_some() {
                outcome.of_first
            } else {
                outcome.misses
            },
            tier,
            reason,
        });
        above = Some(blocks);
    }
    predictions
}

/// Whether blocks that compete in a set of `lower` compete in a set of `upper` as well, for no more
/// ways.
fn nested(upper: &CacheGeometry, lower: &CacheGeometry) -> bool {
    upper.block_bytes() == lower.block_bytes()
        && upper.sets() <= lower.sets()
        && upper.associativity() <= lower.associativity()
}

/// The tier for a level, why, and which blocks compete.
fn choose(
    workload: &Workload<'_>,
    level: &CacheLevel,
    frames: FrameMap,
    tier: Tier,
) -> (Tier, String, Grouping) {
    let sets = level.geometry.sets();
    let in_a_page = (FRAME_BYTES / level.geometry.block_bytes()).max(1);
    let by_map = Grouping {
        groups: sets,
        share: 1.0,
    };
    // Bits of the address above the page choose a set at random; those below are what they are.
    let by_frames = Grouping {
        groups: sets.min(in_a_page),
        share: sets.min(in_a_page) as f64 / sets as f64,
    };
    let anywhere = Grouping {
        groups: 1,
        share: 1.0 / sets as f64,
    };
    let frames_decide = frames == FrameMap::Random && sets > in_a_page;
    let say = |text: &str| text.to_owned();
    if level.policy == ReplacementPolicy::Random {
        return (
            Tier::Footprint,
            say("of random replacement the capacity alone is known"),
            anywhere,
        );
    }
    if !workload.is_whole() {
        return (
            Tier::Footprint,
            say("the nodes are a sample, which fills no sets"),
            anywhere,
        );
    }
    match tier {
        Tier::Footprint => (tier, say("asked for"), anywhere),
        Tier::Closed => (
            Tier::Footprint,
            say("the closed form needs a layout, not addresses"),
            anywhere,
        ),
        Tier::Poisson => (tier, say("asked for"), anywhere),
        Tier::PerSet if frames_decide => (
            tier,
            say("asked for; frames are random, so that sets are known up to the place in the page"),
            by_frames,
        ),
        Tier::PerSet => (tier, say("asked for"), by_map),
        Tier::Auto | Tier::Sequence if frames_decide => (
            Tier::Poisson,
            say("sets are chosen by bits above the page, whose frames are random"),
            by_frames,
        ),
        Tier::Auto | Tier::Sequence if sets == 1 => {
            (Tier::PerSet, say("all blocks compete in one set"), by_map)
        }
        Tier::Auto if frames == FrameMap::Random => (
            Tier::PerSet,
            say("sets are chosen by bits within the page, which no frame changes"),
            by_map,
        ),
        Tier::Auto | Tier::Sequence => {
            (Tier::PerSet, say("sets follow from the addresses"), by_map)
        }
    }
}

/// The place of a level in its hierarchy.
struct LevelKind<'a> {
    above: Option<&'a CacheLevel>,
    victim: bool,
    inclusive: bool,
    /// Blocks that compete here compete above.
    nested: bool,
}

/// Misses of one level, and those that its evictions cause above.
#[derive(Clone, Copy, Debug, Default)]
struct Misses {
    misses: f64,
    of_first: f64,
    evicted_above: f64,
}

/// The blocks of one size, with the share of their touches that reaches the next level.
#[derive(Debug)]
struct Blocks {
    block_bytes: u64,
    blocks: Vec<Block>,
    /// Shares before the last level, for a victim cache after it.
    before_last: Vec<f32>,
}

impl Blocks {
    /// Blocks of `block_bytes`, which may differ from those of the level above.
    fn of(workload: &Workload<'_>, block_bytes: u64, above: Option<&Blocks>) -> Blocks {
        let mut rest: &[Block] = above.map_or(&[], |above| &above.blocks);
        let ratio = above.map_or(1, |above| (block_bytes / above.block_bytes).max(1));
        let blocks: Vec<Block> = workload
            .blocks(block_bytes)
            .into_iter()
            .map(|(number, probability)| {
                let (mut touches, mut requests) = (0.0, 0.0);
                while let Some((small, others)) = rest.split_first()
                    && small.number / ratio <= number
                {
                    if small.number / ratio == number {
                        touches += small.probability;
                        requests += small.probability * f64::from(small.reaching);
                    }
                    rest = others;
                }
                let reaching = if above.is_none() || touches <= 0.0 {
                    1.0
                } else {
                    // As in `neighbours`: a visit touches several small blocks, which miss
                    // independently.
                    let each = (requests / touches).min(1.0);
                    let touched = (touches / probability).max(1.0);
                    if each >= 1.0 || touched < 1.001 {
                        each
                    } else {
                        -(touched * (-each).ln_1p()).exp_m1()
                    }
                };
                Block {
                    number,
                    probability,
                    reaching: narrow(reaching),
                }
            })
            .collect();
        Blocks {
            block_bytes,
            blocks,
            before_last: Vec::new(),
        }
    }

    /// By the characteristic time of a fully associative cache.
    fn through_footprint(
        &mut self,
        workload: &Workload<'_>,
        level: &CacheLevel,
        kind: &LevelKind<'_>,
        first: Option<f64>,
    ) -> Misses {
        let footprint = workload.probabilities(self.block_bytes).footprint();
        let mut capacity = level.blocks() as f64;
        if let (true, Some(above)) = (kind.victim, kind.above) {
            capacity += above.blocks() as f64;
        }
        let replacement = match level.policy {
            ReplacementPolicy::Random => Replacement::Random,
            ReplacementPolicy::Lru | ReplacementPolicy::TreePlru => Replacement::Lru,
        };
        let time = footprint.characteristic_time(capacity, replacement);
        for block in &mut self.blocks {
            let missed = crate::footprint::absent(block.probability, time, replacement);
            block.reaching = block.reaching.min(narrow(missed));
        }
        let misses = footprint.misses(capacity, replacement);
        let cold = |operations| footprint.first_misses(capacity, replacement, operations);
        let of_first = first.map_or(0.0, cold);
        Misses {
            misses,
            of_first,
            evicted_above: 0.0,
        }
    }

    /// By what competes in each set.
    fn through_sets(
        &mut self,
        workload: &Workload<'_>,
        level: &CacheLevel,
        kind: &LevelKind<'_>,
        grouping: Grouping,
        first: Option<f64>,
    ) -> Misses {
        let ways = usize::try_from(level.geometry.associativity()).unwrap_or(usize::MAX);
        let members = Members::of(&self.blocks, grouping.groups);
        let victim_of = kind.above.filter(|_| kind.victim);
        let requests: Vec<f64> = self.requests().collect();
        let taken_in: Vec<f64> = members.sums(&requests).collect();
        let rooms = |missed: Option<&[f64]>| match victim_of {
            Some(above) => Rooms::behind(above, level, &taken_in, missed),
            None => Rooms::alike(Room::exactly(ways)),
        };
        if victim_of.is_some() && self.before_last.len() == self.blocks.len() {
            // Both together hold the last requests to the cache above.
            for (block, &before) in self.blocks.iter_mut().zip(&self.before_last) {
                block.reaching = before;
            }
        }
        self.before_last = self.blocks.iter().map(|block| block.reaching).collect();
        let classes = Classes::of(&self.blocks);
        let rates = classes.classes.iter().map(|class| class.stream.rate());
        let rarest = rates.filter(|&rate| rate > 0.0).fold(1.0, f64::min);
        let times = times(rarest.max(1e-16));
        let averaged = averaged_tables(&classes.classes, &times, kind, first);
        let width = averaged.len();
        let solve = |rooms: &Rooms, requested: &Table, results: &mut [f64]| {
            let tables = Tables {
                requested,
                averaged: &averaged,
                times: times.len(),
            };
            let mut solver = Solver::default();
            members.solve(&classes, width, rooms, results, |members, room, out| {
                solver.solve(members, grouping.share, room, &tables, out);
            });
        };
        let mut results = vec![0.0f64; width * self.blocks.len()];
        let requested = Table::new(&classes.classes, times.len(), |class, i| {
            class.stream.requested_within(times[i])
        });
        solve(&rooms(None), &requested, &mut results);
        if victim_of.is_some() {
            // The room that the cache above adds depends on the misses here.
            let shares = results.chunks_exact(width);
            let missed = self
                .requests()
                .zip(shares)
                .map(|(all, share)| all * share[0]);
            let missed: Vec<f64> = members.sums(&missed.collect::<Vec<f64>>()).collect();
            solve(&rooms(Some(&missed)), &requested, &mut results);
        } else if kind.inclusive {
            // What is evicted here is requested again.
            for _ in 1..INCLUSIVE_PASSES {
                let rates = class_rates(&classes, &results, width);
                let mut more = requested.clone();
                more.replace(|class, i, before| {
                    let waiting = classes.classes[class].stream.waiting(times[i]);
                    before.max((rates[class] * waiting).min(1.0))
                });
                solve(&rooms(None), &more, &mut results);
            }
        }
        if kind.above.is_none() && workload.is_paths() && grouping.share >= 1.0 {
            let sets = Sets {
                blocks: &self.blocks,
                classes: &classes,
                block_bytes: self.block_bytes,
                groups: grouping.groups,
                ways,
            };
            self.replay(workload, &sets, &members, &mut results, first.is_some());
        }
        self.finish(&classes, &results, width, kind.inclusive, first)
    }

    /// Corrects averages by a replay where operations are long compared with the cache.
    fn replay(
        &self,
        workload: &Workload<'_>,
        sets: &Sets<'_>,
        members: &Members,
        results: &mut [f64],
        from_cold: bool,
    ) {
        let requests: Vec<f64> = self.requests().collect();
        if members.crowd(&requests) <= CROWDED_SHARE * sets.ways as f64 {
            return;
        }
        let width = results.len() / self.blocks.len().max(1);
        let estimate = |block: usize| results[block * width];
        let factors = replay::corrections(workload, sets, estimate, requests.iter().sum());
        let of_blocks = results.chunks_exact_mut(width).zip(&sets.classes.of_block);
        for (averages, &class) in of_blocks {
            let factor = factors[class as usize];
            averages[0] *= factor;
            if from_cold {
                averages[width - 1] *= factor;
            }
        }
    }

    /// Requests of an operation, by block.
    fn requests(&self) -> impl Iterator<Item = f64> {
        self.blocks
            .iter()
            .map(|block| block.probability * f64::from(block.reaching))
    }

    /// From averages by block to misses; notes what reaches the next level.
    fn finish(
        &mut self,
        classes: &Classes,
        results: &[f64],
        width: usize,
        inclusive: bool,
        first: Option<f64>,
    ) -> Misses {
        let mut sums = Misses::default();
        let each = self.blocks.iter_mut().zip(&classes.of_block);
        for ((block, &class), averages) in each.zip(results.chunks_exact(width)) {
            let stream = classes.classes[class as usize].stream;
            let missed_share = averages[0].max(0.0);
            let mut requests = block.probability * f64::from(block.reaching);
            if inclusive {
                let known = &classes.classes[class as usize];
                let (more, hidden) = known.evicted(averages[1], averages[2]);
                sums.evicted_above += requests * more + hidden;
                requests += requests * more + hidden;
            }
            let mut misses = requests * missed_share;
            if inclusive {
                misses = misses.min(block.probability);
            }
            sums.misses += misses;
            if let (Some(operations), Some(&again)) = (first, averages.last()) {
                let touched = Stream::new(block.probability, 1.0).requested_within(operations);
                sums.of_first += touched + stream.rate() * again;
            }
            block.reaching = narrow((misses / block.probability).min(1.0));
        }
        sums
    }
}

/// Requests of an inclusive cache by class, from the mean cycles of its blocks.
fn class_rates(classes: &Classes, results: &[f64], width: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); classes.classes.len()];
    for (&class, averages) in classes.of_block.iter().zip(results.chunks_exact(width)) {
        let known = &classes.classes[class as usize];
        let (more, hidden) = known.evicted(averages[1], averages[2]);
        let sum = &mut sums[class as usize];
        sum.0 += known.stream.rate() * (1.0 + more) + hidden;
        sum.1 += 1.0;
    }
    sums.iter().map(|&(rate, blocks)| rate / blocks).collect()
}

impl Class {
    /// Requests that an inclusive cache gets because it has evicted a block above: as a share of
    /// the other requests, and as a rate for blocks without other requests.
    ///
    /// The time between two requests is `waiting` operations in which the block stays, and, if it
    /// is evicted (probability `missed`), those up to the next touch.
    fn evicted(&self, waiting: f64, missed: f64) -> (f64, f64) {
        let cycle = waiting + missed / self.probability;
        let rate = self.stream.rate();
        if rate * cycle > 1e-6 {
            let more = 1.0 / (rate * cycle) - 1.0;
            // Less is the error of the tables.
            (if more > 1e-3 { more } else { 0.0 }, 0.0)
        } else {
            (0.0, 1.0 / cycle)
        }
    }
}

/// Tables of what is averaged over the time after which a set forgets a block: the misses by
/// request; for an inclusive cache, the time that a block stays and the probability that it is
/// evicted; and for a start from cold, the repeated requests that miss.
///
/// **Nested sets.** When all blocks that compete in a set of this cache compete in one set of the
/// cache above, and there for no more ways, the set above forgets a block before this one does,
/// unless it was touched since. So a block that is touched again after `t` operations misses here
/// if this set forgets it by then: by request `(1 - p)^t` over the share that is requested.
fn averaged_tables(
    classes: &[Class],
    times: &[f64],
    kind: &LevelKind<'_>,
    first: Option<f64>,
) -> Vec<Table> {
    let from = |i: usize| if i == 0 { 0.0 } else { times[i - 1] };
    let never = times.len();
    let held = |class: &Class| {
        if kind.nested {
            class.stream.dead_time()
        } else {
            0.0
        }
    };
    let mut tables = vec![Table::new(classes, never + 1, |class, i| {
        if i == never {
            0.0
        } else if times[i] <= held(class) {
            let touches = Stream::new(class.probability, 1.0);
            touches.mean_none_within(from(i), times[i]) * class.probability / class.stream.rate()
        } else {
            class.stream.mean_none_within(from(i), times[i])
        }
    })];
    if kind.inclusive {
        tables.push(Table::new(classes, never + 1, |class, i| {
            if i == never {
                return class.stream.waiting(1e18);
            }
            let (a, b) = (from(i), times[i] - 1.0);
            let at = |t: f64| class.stream.waiting(t.max(held(class)));
            (at(a) + 4.0 * at(0.5 * (a + b)) + at(b)) / 6.0
        }));
        tables.push(Table::new(classes, never + 1, |class, i| {
            if i == never {
                0.0
            } else {
                class.stream.mean_none_within(from(i), times[i])
            }
        }));
    }
    if let Some(operations) = first {
        tables.push(Table::new(classes, never + 1, |class, i| {
            if i == never {
                return 0.0;
            }
            // Mean over the step's first, middle and last operation.
            let (a, b) = (from(i) + 1.0, times[i]);
            let at = |t: f64| repeats(&class.stream, t, operations);
            (at(a) + 4.0 * at(0.5 * (a + b)) + at(b)) / 6.0
        }));
    }
    tables
}

/// Sum over gaps `u >= t` of `(operations - u) P(gap = u)`: how often, by request an operation, the
/// first operations request a block again after `t` or more.
fn repeats(stream: &Stream, t: f64, operations: f64) -> f64 {
    if t >= operations {
        return 0.0;
    }
    let later = stream.waiting(operations) - stream.waiting(t);
    ((operations - t) * stream.none_within(t - 1.0) - later).max(0.0)
}

/// Blocks in the order of their groups.
struct Members {
    /// Indices of blocks, and where each group begins among them.
    blocks: Vec<u32>,
    starts: Vec<u32>,
}

impl Members {
    fn of(blocks: &[Block], groups: u64) -> Members {
        let group_of = |block: &Block| usize::try_from(block.number & (groups - 1)).unwrap_or(0);
        let mut starts = vec![0u32; usize::try_from(groups).unwrap_or(usize::MAX) + 1];
        for block in blocks {
            starts[group_of(block) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut order = vec![0u32; blocks.len()];
        for (index, block) in (0u32..).zip(blocks) {
            let place = &mut next[group_of(block)];
            order[*place as usize] = index;
            *place += 1;
        }
        Members {
            blocks: order,
            starts,
        }
    }

    /// Sums over the blocks of each group.
    fn sums(&self, of_blocks: &[f64]) -> impl Iterator<Item = f64> {
        self.starts.windows(2).map(|group| {
            let blocks = &self.blocks[group[0] as usize..group[1] as usize];
            blocks.iter().map(|&block| of_blocks[block as usize]).sum()
        })
    }

    /// Requests of an operation to the group of an average request.
    fn crowd(&self, requests: &[f64]) -> f64 {
        let (mut all, mut squares) = (0.0, 0.0);
        for sum in self.sums(requests) {
            all += sum;
            squares += sum * sum;
        }
        if all > 0.0 { squares / all } else { 0.0 }
    }

    /// Calls `solve` once for equal groups, and copies its result to the blocks of the group.
    fn solve(
        &self,
        classes: &Classes,
        width: usize,
        rooms: &Rooms,
        results: &mut [f64],
        mut solve: impl FnMut(&[Member], &Room, &mut Vec<f64>),
    ) {
        let mut counts = vec![0u32; classes.classes.len()];
        let mut places = vec![0u32; classes.classes.len()];
        let mut members: Vec<Member> = Vec::new();
        let mut found: Vec<f64> = Vec::new();
        let mut kept: Vec<HashMap<Vec<Member>, Vec<f64>>> = vec![HashMap::new(); rooms.len()];
        for (number, group) in self.starts.windows(2).enumerate() {
            let room = rooms.index(number);
            let kept = &mut kept[room];
            let blocks = &self.blocks[group[0] as usize..group[1] as usize];
            members.clear();
            for &block in blocks {
                let class = classes.of_block[block as usize];
                if counts[class as usize] == 0 {
                    members.push(Member { class, blocks: 0 });
                }
                counts[class as usize] += 1;
            }
            members.sort_unstable_by_key(|member| member.class);
            for (place, member) in (0u32..).zip(&mut members) {
                member.blocks = std::mem::take(&mut counts[member.class as usize]);
                places[member.class as usize] = place;
            }
            let averages: &[f64] = match kept.get(&members) {
                Some(known) => known,
                None => {
                    solve(&members, rooms.room(room), &mut found);
                    if kept.len() >= KEPT_SETS {
                        kept.clear();
                    }
                    kept.insert(members.clone(), found.clone());
                    &found
                }
            };
            for &block in blocks {
                let place = places[classes.of_block[block as usize] as usize] as usize;
                results[block as usize * width..][..width]
                    .copy_from_slice(&averages[place * width..][..width]);
            }
        }
    }
}

/// Millions of shares are kept in single precision.
#[expect(clippy::cast_possible_truncation, reason = "a share between 0 and 1")]
fn narrow(share: f64) -> f32 {
    share as f32
}
