//! How far the model's choice of a layout is from the best one.
//!
//! A case is a structure, a size and a way of asking. For each case:
//!
//! ```text
//! 1. morph a copy by each layout, and ask the model which one it would choose
//! 2. time all copies in turns, a few rounds: the fastest of them are candidates
//! 3. time the candidates against the chosen one, round by round, many rounds
//! 4. regret = the least, over the candidates, of the median of (candidate's time / chosen one's time) in a round, or 1
//! ```
//!
//! The minimum of many noisy times is too low, and the more layouts there are the lower it is; the second measurement is there so that noise does not decide. Ratios are formed within
//! a round, whose two times are neighbours. The chosen layout is one of those measured, so nothing exceeds 1, and where it is the best, there is nothing to measure twice.

use std::time::Duration;

use ccmodel::Layout;
use examples::chain::QueryChain;
use examples::rng::Rng;
use examples::timing::timed;

use super::super::{SEED, random_keys};
use super::{FIXED, morph_in_place, morphed, slug};
use crate::births::{Birthplace, born};
use crate::programs::Scale;
use crate::queries::{Queries, Skew};
use crate::structures::Structure;
use crate::structures::lists::{LINKS_EACH, Lists};
use crate::structures::octree::Octree;
use crate::structures::table::Table;
use crate::structures::tree::Plan;
use crate::workload::{Comparison, Effort, Failure, Workload, WrongAnswer, covers};

/// The best measured layout's time over that of the model's choice: the worst case, and each case by itself.
///
/// A case's name tells the structure, the logarithm of its nodes' number (for an octree, of its points'), and how queries are spread.
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

/// How many others are held against the choice in the second measurement.
const CANDIDATES: usize = 3;

fn auto_regret(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let mut cases = Vec::new();
    for (structure, weight) in STRUCTURES {
        for &size_log2 in sizes_log2(effort.scale) {
            let lookups = effort.lookups / 4 / weight;
            let sweep = Sweep {
                effort,
                name: format!("{}_{structure}_2p{size_log2}", AUTO_REGRET.name),
                lookups,
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

/// A structure of one size, to be asked in each way.
struct Sweep<'a> {
    effort: &'a Effort,
    name: String,
    lookups: usize,
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
                // Twice over each link: random enough for layouts, of which none depends on where the nodes were.
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
        let mut auto = born(Birthplace::CcMalloc, build);
        let copies: Vec<(Layout, S)> = FIXED
            .map(|layout| (layout, morphed(&auto, Some(layout))))
            .into();
        let chosen = morph_in_place(&mut auto, None);
        let mut copies = copies;
        // The choice may be a layout that is not in the list; then it is one more to measure.
        if !copies.iter().any(|&(layout, _)| layout == chosen) {
            copies.push((chosen, auto));
        }
        Skew::ALL
            .into_iter()
            .map(|skew| self.regret(&copies, chosen, skew, &chain(skew)))
            .collect()
    }

    fn regret<S: Structure>(
        &self,
        copies: &[(Layout, S)],
        chosen: Layout,
        skew: Skew,
        chain: &QueryChain,
    ) -> Result<Comparison, Failure> {
        let expected = copies.first().map(|(_, copy)| copy.follow(chain));
        let time = |(layout, copy): &(Layout, S)| -> Result<Duration, Failure> {
            let (time, sum) = timed(|| copy.follow(chain));
            if expected == Some(sum) {
                return Ok(time);
            }
            Err(Failure::Answer(WrongAnswer {
                workload: AUTO_REGRET.name,
                who: slug(Some(*layout)),
            }))
        };

        let mut screened = Vec::new();
        for copy in copies {
            let (first, second) = (time(copy)?, time(copy)?);
            screened.push((first.min(second), copy));
        }
        screened.sort_by_key(|&(time, _)| time);
        let others = screened.iter().map(|&(_, copy)| copy);
        let candidates: Vec<_> = others
            .filter(|&&(layout, _)| layout != chosen)
            .take(CANDIDATES)
            .collect();
        let auto = copies.iter().find(|&&(layout, _)| layout == chosen);
        let auto = auto.unwrap_or(&copies[0]);

        let mut rounds: Vec<Vec<Duration>> = vec![Vec::new(); candidates.len() + 1];
        for round in 0..self.effort.rounds {
            let turns = candidates.len() + 1;
            for turn in 0..turns {
                let which = (round + turn) % turns;
                let copy = candidates.get(which).copied().unwrap_or(auto);
                rounds[which].push(time(copy)?);
            }
        }
        let (autos, others) = (&rounds[candidates.len()], &rounds[..candidates.len()]);
        let auto_ns = median(autos.iter().map(Duration::as_secs_f64)) * 1e9 / chain.len() as f64;
        let ratios = others.iter().zip(&candidates).map(|(times, (layout, _))| {
            let pairs = times.iter().zip(autos);
            let ratio =
                median(pairs.map(|(theirs, ours)| theirs.as_secs_f64() / ours.as_secs_f64()));
            (ratio, *layout)
        });
        let own = std::iter::once((1.0, chosen));
        let (ratio, best) =
            own.chain(ratios).fold(
                (1.0, chosen),
                |least, next| {
                    if next.0 < least.0 { next } else { least }
                },
            );
        Ok(Comparison {
            suite: AUTO_REGRET.suite,
            name: format!("{}_{}", self.name, skew.name()),
            ours: auto_ns,
            theirs: auto_ns * ratio,
            ratio,
            unit: "ns",
            rival: format!("{best} (chosen: {chosen})"),
            runs: self.effort.rounds,
        })
    }
}

/// The middle one.
fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
