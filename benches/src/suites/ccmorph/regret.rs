//! How far the model's choice of a layout is from the best one, for each structure, size and skew
//! of queries:
//!
//! ```text
//! 1. morph a copy by each layout, and ask the model which one it would choose
//! 2. time all copies in turns, a few rounds: the fastest of them are candidates
//! 3. time the candidates and the chosen one again, in turns, many rounds; the least time counts
//! 4. regret = the least of the candidates' times / the chosen one's time, or 1
//! ```
//!
//! Noise makes a round longer, never shorter, so the shortest of many has none; medians would hide
//! ratios of a few hundredths. The first times do not count, because the fastest of many was lucky.
//!
//! Small structures lie in pages of 4 KiB, which conflict in a cache by chance: a copy of 1.5 MiB
//! can be a third slower than another one of the same layout. So the times of several copies are
//! added up. Each pass over a copy runs twice, and the second is timed, with a full cache.

use std::time::Duration;

use ccmodel::Layout;

use super::{FIXED, morph_in_place, morphed, slug};
use crate::keys;
use crate::queries::{Chain, Zipf};
use crate::rivals::OURS;
use crate::rounds::Rounds;
use crate::source::allocate_from;
use crate::structures::Structure;
use crate::structures::lists::{LINKS_EACH, Lists};
use crate::structures::octree::Octree;
use crate::structures::table::Table;
use crate::structures::tree::Plan;
use crate::timing::{nanoseconds_each, timed, turns};
use crate::workload::{Comparison, Effort, Failure, Rows, SEED, Workload, agree, covers};

/// Structures with more nodes than this, by its logarithm, have huge pages.
const SMALL_LOG2_MAX: u32 = 18;
/// Layouts that are timed against the choice in the second measurement.
const CANDIDATES: usize = 3;
/// A choice is close to the best when the best takes no less than this share of its time. Then it
/// is measured twice and no more.
const CLOSE: f64 = 0.97;
/// How often the rounds of others are repeated at most: disturbances go away, differences stay.
const ROUNDS_MAX: usize = 8;

/// Structures, with how many lookups of another one an operation is worth.
const STRUCTURES: [(&str, usize); 5] = [
    ("bst", 1),
    ("complete", 1),
    ("list", 8),
    ("hash", 1),
    ("octree", 16),
];

/// Each case, and the worst first. A case's name tells the structure, the logarithm of its nodes'
/// number (for an octree, of its points'), and how queries are spread.
pub(in crate::suites) fn auto_regret(workload: &Workload, effort: &Effort) -> Rows {
    let sizes_log2: &[u32] = effort.scale.pick(&[16], &[16, 18, 20, 22]);
    let small_copies = effort.scale.pick(2, 4);
    let only = effort.only.as_deref();
    let mut cases = Vec::new();
    for (structure, weight) in STRUCTURES {
        for &size_log2 in sizes_log2 {
            let name = format!("{}_{structure}_2p{size_log2}", workload.name);
            if only.is_none_or(|only| covers(only, &name) || covers(&name, only)) {
                let is_small = size_log2 <= SMALL_LOG2_MAX;
                let sweep = Sweep {
                    rounds: effort.rounds,
                    name,
                    lookups: effort.lookups / 8 / weight,
                    copies: if is_small { small_copies } else { 1 },
                };
                cases.extend(sweep.run(structure, size_log2)?);
            }
        }
    }
    let worst = cases.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let worst = worst.map(|case| Comparison {
        rival: format!("{}: {}", case.name, case.rival),
        ..case.called(workload.name)
    });
    Ok(worst.into_iter().chain(cases).collect())
}

struct Sweep {
    rounds: usize,
    name: String,
    lookups: usize,
    copies: usize,
}

struct Subject<S> {
    layout: Layout,
    copies: Vec<S>,
}

impl Sweep {
    fn run(&self, structure: &str, size_log2: u32) -> Rows {
        let nodes = 1_usize << size_log2;
        let keys = keys::random(nodes, SEED);
        match structure {
            "bst" => {
                let plan = Plan::of_inserts(&keys);
                self.measure(|| plan.build(), plan.keys())
            }
            "complete" => {
                let plan = Plan::complete(size_log2, SEED);
                self.measure(|| plan.build(), plan.keys())
            }
            "list" => {
                // Churned enough for layouts, none of which depends on where the nodes were.
                let numbers: Vec<u64> = (0..(nodes / LINKS_EACH) as u64).collect();
                self.measure(|| Lists::churned(nodes, nodes / 4, SEED), &numbers)
            }
            "hash" => self.measure(|| Table::with_keys(&keys), &keys),
            // Cubes around random places, some of them hot.
            _ => self.measure(|| Octree::random(nodes, SEED), &keys),
        }
    }

    /// Queries for `items` with each skew, of the same copies.
    fn measure<S: Structure>(&self, build: impl Fn() -> S, items: &[u64]) -> Rows {
        let mut auto = allocate_from(&OURS, build);
        let laid_out = |auto: &S, layout| Subject {
            layout,
            copies: (0..self.copies)
                .map(|_| morphed(auto, Some(layout)))
                .collect(),
        };
        let mut subjects: Vec<Subject<S>> = FIXED.map(|layout| laid_out(&auto, layout)).into();
        let chosen = morph_in_place(&mut auto, None);
        // The choice may be a layout that is not in the list.
        if !subjects.iter().any(|subject| subject.layout == chosen) {
            subjects.push(laid_out(&auto, chosen));
        }
        drop(auto);
        let uniform = Chain::sample(items, self.lookups, SEED);
        let mut zipf = Zipf::new(items, SEED);
        let zipf = Chain::draw(self.lookups, || zipf.draw());
        let skews = [("uniform", uniform), ("zipf", zipf)];
        let skews = skews.iter();
        let rows = skews.map(|(skew, chain)| self.regret(&subjects, chosen, skew, chain));
        rows.collect()
    }

    fn regret<S: Structure>(
        &self,
        subjects: &[Subject<S>],
        chosen: Layout,
        skew: &str,
        chain: &Chain,
    ) -> Result<Comparison, Failure> {
        let expected = subjects[0].copies[0].follow(chain);
        let time = |layout, copy: &S| {
            if self.copies > 1 {
                copy.follow(chain);
            }
            let (time, sum) = timed(|| copy.follow(chain));
            agree(&mut Some(expected), sum, &self.name, &slug(Some(layout))).map(|()| time)
        };
        // Times each copy of each subject, in turns; `least` keeps the shortest.
        let shorten = |least: &mut Vec<Vec<Duration>>, subjects: &[&Subject<S>], rounds| {
            least.resize(subjects.len(), vec![Duration::MAX; self.copies]);
            for copy in 0..self.copies {
                for which in turns(rounds, subjects.len()) {
                    let (least, subject) = (&mut least[which][copy], subjects[which]);
                    *least = time(subject.layout, &subject.copies[copy])?.min(*least);
                }
            }
            let totals = least.iter().map(|copies| copies.iter().sum());
            Ok::<Vec<Duration>, Failure>(totals.collect())
        };

        let all: Vec<&Subject<S>> = subjects.iter().collect();
        let first = shorten(&mut Vec::new(), &all, 2)?;
        let mut screened: Vec<_> = all.into_iter().zip(first).collect();
        screened.sort_by_key(|(subject, time)| (subject.layout != chosen, *time));
        screened.truncate(1 + CANDIDATES);
        let contestants: Vec<_> = screened.into_iter().map(|(subject, _)| subject).collect();
        let (mut least, mut runs) = (Vec::new(), 0);
        let (best, best_time, chosen_time) = loop {
            let times = shorten(&mut least, &contestants, self.rounds)?;
            runs += self.rounds;
            let ranked = contestants.iter().zip(&times);
            let (best, &time) = ranked
                .min_by_key(|(_, time)| **time)
                .expect("one was chosen");
            let is_close = time.as_secs_f64() >= CLOSE * times[0].as_secs_f64();
            if runs >= ROUNDS_MAX * self.rounds || is_close && runs > self.rounds {
                break (best, time, times[0]);
            }
        };
        // The least of many times is one figure, without a spread.
        let [ours, theirs] = [chosen_time, best_time]
            .map(|time| Rounds::once(nanoseconds_each(time, chain.len() * self.copies)));
        let name = format!("{}_{skew}", self.name);
        let rival = format!("{} (chosen: {chosen})", best.layout);
        let row = Comparison::new(name, &rival, "ns", &ours, &theirs);
        Ok(Comparison { runs, ..row })
    }
}
