//! How far the model's choice of a layout is from the best one.
//!
//! A case is a structure, a size and a way of asking. For each case:
//!
//! ```text
//! 1. morph a copy by each layout, and ask the model which one it would choose
//! 2. time all copies in turns, a few rounds: the fastest of them are candidates
//! 3. time the candidates and the chosen one again, in turns, many rounds; the least time counts
//! 4. regret = the least of the candidates' times / the chosen one's time, or 1
//! ```
//!
//! The fastest of many was lucky, so its first time does not count. Disturbance makes a round
//! longer, never shorter, so with many rounds the shortest is undisturbed: ratios of a few
//! hundredths would drown in medians.
//!
//! Small structures lie in pages of 4 KiB, which conflict in a cache by chance: a copy of 1.5 MiB
//! can be a third slower than another one of the same layout. So small structures have several
//! copies in each layout, and their times are added up. Each pass over them is made twice and timed
//! once, because filling a cache takes as long as many lookups in it.

use std::time::Duration;

use crate::chain::QueryChain;
use crate::rng::Rng;
use crate::timing::{nanoseconds_each, timed};
use ccmodel::Layout;

use super::super::{SEED, random_keys};
use super::{FIXED, morph_in_place, morphed, slug};
use crate::programs::Scale;
use crate::queries::{Queries, Skew};
use crate::rounds::Rounds;
use crate::source::{Source, allocate_from};
use crate::structures::Structure;
use crate::structures::lists::{LINKS_EACH, Lists};
use crate::structures::octree::Octree;
use crate::structures::table::Table;
use crate::structures::tree::Plan;
use crate::workload::{Comparison, Effort, Failure, Workload, WrongAnswer, covers};

/// The best measured layout's time over that of the model's choice: the worst case, and each case
/// by itself.
///
/// A case's name tells the structure, the logarithm of its nodes' number (for an octree, of its
/// points'), and how queries are spread.
pub const AUTO_REGRET: Workload = Workload {
    suite: "ccmorph",
    name: "auto_regret",
    also: &[],
    run: auto_regret,
};

/// Structures, with how many lookups of another structure one operation is worth.
const STRUCTURES: [(&str, usize); 5] = [
    ("bst", 1),
    ("complete", 1),
    ("list", 8),
    ("hash", 1),
    ("octree", 16),
];

/// Logarithms of the sizes.
fn sizes_log2(scale: Scale) -> &'static [u32] {
    match scale {
        Scale::Quick => &[16],
        Scale::Full => &[16, 18, 20, 22],
    }
}

/// Structures with more nodes than this, by its logarithm, have huge pages.
const SMALL_LOG2_MAX: u32 = 18;

/// Copies of a structure in each layout.
fn copies(size_log2: u32, scale: Scale) -> usize {
    match scale {
        _ if size_log2 > SMALL_LOG2_MAX => 1,
        Scale::Quick => 2,
        Scale::Full => 4,
    }
}

/// How many others are held against the choice in the second measurement.
const CANDIDATES: usize = 3;

fn auto_regret(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let mut cases = Vec::new();
    for (structure, weight) in STRUCTURES {
        for &size_log2 in sizes_log2(effort.scale) {
            let lookups = effort.lookups / 8 / weight;
            let sweep = Sweep {
                effort,
                name: format!("{}_{structure}_2p{size_log2}", AUTO_REGRET.name),
                lookups,
                copies: copies(size_log2, effort.scale),
            };
            if sweep.is_asked_for() {
                cases.extend(sweep.run(structure, size_log2)?);
            }
        }
    }
    let worst = cases.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let worst = worst.map(|case| Comparison {
        name: AUTO_REGRET.name.to_owned(),
        rival: format!("{}: {}", case.name, case.rival),
        ..case.clone()
    });
    Ok(worst.into_iter().chain(cases).collect())
}

/// A choice is close to the best when the best takes no less than this share of its time. Then it
/// is measured twice and no more: the question is how far the others are.
const CLOSE: f64 = 0.97;
/// How many times the rounds of others are repeated at most. A disturbance goes away, a difference
/// stays.
const ROUNDS_MAX: usize = 8;

/// A structure of one size, to be asked in each way.
struct Sweep<'a> {
    effort: &'a Effort,
    name: String,
    lookups: usize,
    /// Of the structure, in each layout.
    copies: usize,
}

impl Sweep<'_> {
    /// Whether the user's choice of a name leaves a part of it.
    fn is_asked_for(&self) -> bool {
        self.effort
            .only
            .as_deref()
            .is_none_or(|only| covers(only, &self.name) || covers(&self.name, only))
    }

    fn run(&self, structure: &str, size_log2: u32) -> Result<Vec<Comparison>, Failure> {
        let nodes = 1_usize << size_log2;
        match structure {
            "bst" => {
                let plan = Plan::of_inserts(&random_keys(nodes));
                self.measure(|| plan.build(), |skew| self.chain(plan.keys(), skew))
            }
            "complete" => {
                let plan = Plan::complete(size_log2, SEED);
                self.measure(|| plan.build(), |skew| self.chain(plan.keys(), skew))
            }
            "list" => {
                // Twice over each link: random enough for layouts, of which none depends on where
                // the nodes were.
                let numbers: Vec<u64> = (0..(nodes / LINKS_EACH) as u64).collect();
                self.measure(
                    || Lists::churned(nodes, nodes / 4, SEED),
                    |skew| self.chain(&numbers, skew),
                )
            }
            "hash" => {
                let keys = random_keys(nodes);
                self.measure(|| Table::with_keys(&keys), |skew| self.chain(&keys, skew))
            }
            _ => {
                let mut rng = Rng::new(SEED);
                // Cubes around places of which some are hot.
                let places: Vec<u64> = (0..nodes).map(|_| rng.next_u64()).collect();
                self.measure(
                    || Octree::random(nodes, SEED),
                    |skew| self.chain(&places, skew),
                )
            }
        }
    }

    fn chain(&self, items: &[u64], skew: Skew) -> QueryChain {
        Queries::new(items, skew, SEED).chain(self.lookups)
    }

    /// Both ways of asking, of the same copies.
    fn measure<S: Structure>(
        &self,
        build: impl Fn() -> S,
        chain: impl Fn(Skew) -> QueryChain,
    ) -> Result<Vec<Comparison>, Failure> {
        let mut auto = allocate_from(Source::CcMalloc, build);
        let laid_out = |layout| Subject {
            layout,
            copies: (0..self.copies)
                .map(|_| morphed(&auto, Some(layout)))
                .collect(),
        };
        let mut subjects: Vec<Subject<S>> = FIXED.map(laid_out).into();
        let chosen = morph_in_place(&mut auto, None);
        // The choice may be a layout that is not in the list; then it is one more to measure.
        if !subjects.iter().any(|subject| subject.layout == chosen) {
            let copies = (0..self.copies).map(|_| morphed(&auto, Some(chosen)));
            subjects.push(Subject {
                layout: chosen,
                copies: copies.collect(),
            });
        }
        drop(auto);
        Skew::ALL
            .into_iter()
            .map(|skew| self.regret(&subjects, chosen, skew, &chain(skew)))
            .collect()
    }

    fn regret<S: Structure>(
        &self,
        subjects: &[Subject<S>],
        chosen: Layout,
        skew: Skew,
        chain: &QueryChain,
    ) -> Result<Comparison, Failure> {
        let expected = subjects[0].copies[0].follow(chain);
        let time = |subject: &Subject<S>, copy: usize| -> Result<Duration, Failure> {
            let copy = &subject.copies[copy];
            if self.copies > 1 {
                copy.follow(chain);
            }
            let (time, sum) = timed(|| copy.follow(chain));
            if expected == sum {
                return Ok(time);
            }
            Err(Failure::Answer(WrongAnswer {
                workload: AUTO_REGRET.name,
                who: slug(Some(subject.layout)),
            }))
        };

        let all: Vec<&Subject<S>> = subjects.iter().collect();
        let mut first = self.no_times(&all);
        self.shorten(&mut first, &all, 2, time)?;
        let mut screened: Vec<_> = all.iter().copied().zip(totals(&first)).collect();
        screened.sort_by_key(|&(_, time)| time);
        let (own, others): (Vec<_>, Vec<_>) = screened
            .into_iter()
            .map(|(subject, _)| subject)
            .partition(|subject| subject.layout == chosen);
        // The chosen one first, and then those that may be better.
        let candidates = others.into_iter().take(CANDIDATES);
        let contestants: Vec<&Subject<S>> = own.into_iter().chain(candidates).collect();
        let mut least = self.no_times(&contestants);
        let mut rounds = 0;
        let times = loop {
            self.shorten(&mut least, &contestants, self.effort.rounds, time)?;
            rounds += self.effort.rounds;
            let times = totals(&least);
            let best = times.iter().min().copied().unwrap_or_default();
            let is_close = best.as_secs_f64() >= CLOSE * times[0].as_secs_f64();
            if rounds >= ROUNDS_MAX * self.effort.rounds || is_close && rounds > self.effort.rounds
            {
                break times;
            }
        };
        let mut ranked: Vec<_> = contestants.iter().zip(&times).collect();
        ranked.sort_by_key(|&(_, time)| time);
        let (best, &best_time) = ranked[0];
        let each = |time| nanoseconds_each(time, chain.len() * self.copies);
        // The least of many times is one figure, without a spread.
        let [ours, theirs] = [times[0], best_time].map(|time| Rounds::once(each(time)));
        let name = format!("{}_{}", self.name, skew.name());
        let rival = format!("{} (chosen: {chosen})", best.layout);
        Ok(Comparison {
            runs: rounds,
            ..Comparison::new(AUTO_REGRET.suite, name, &rival, "ns", &ours, &theirs)
        })
    }

    /// No time yet, for each copy of each subject.
    fn no_times<S>(&self, subjects: &[&Subject<S>]) -> Vec<Vec<Duration>> {
        vec![vec![Duration::MAX; self.copies]; subjects.len()]
    }

    /// Times each copy of each subject, subjects in turns, so many rounds; in `least` remains the
    /// shortest.
    fn shorten<S>(
        &self,
        least: &mut [Vec<Duration>],
        subjects: &[&Subject<S>],
        rounds: usize,
        time: impl Fn(&Subject<S>, usize) -> Result<Duration, Failure>,
    ) -> Result<(), Failure> {
        let turns = subjects.len();
        for copy in 0..self.copies {
            for turn in 0..rounds * turns {
                // Each round begins with another one.
                let which = (turn / turns + turn) % turns;
                let least = &mut least[which][copy];
                *least = time(subjects[which], copy)?.min(*least);
            }
        }
        Ok(())
    }
}

/// Over the copies of each subject.
fn totals(least: &[Vec<Duration>]) -> Vec<Duration> {
    least.iter().map(|copies| copies.iter().sum()).collect()
}

/// A structure in one layout, once or several times.
struct Subject<S> {
    layout: Layout,
    copies: Vec<S>,
}
