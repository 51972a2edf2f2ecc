//! Contests: one program in one setting, all contestants in turns.

use super::SUITE;
use crate::olden::Size;
use crate::olden::runner::{Extent, Finished, Program, Run, Setting, Stages, Target, Variant};
use crate::programs::Scale;
use crate::rivals::{ALLOCATORS, ARENAS, AllocatorRival, ours};
use crate::rounds::Rounds;
use crate::sys::warm_memory;
use crate::worker;
use crate::workload::{Failure, WrongAnswer};

/// Medians over the rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct MedianStages {
    pub(super) build_ns: f64,
    pub(super) morph_ns: f64,
    pub(super) work_ns: f64,
    /// Of the sums of a round, which need not be the sum of the medians.
    total_ns: f64,
    pub(super) peak_bytes: f64,
}

/// One who takes part, and what it took.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The allocator, in words.
    pub(super) who: String,
    /// Where the nodes went.
    pub(super) variant: Variant,
    /// Whether the allocator takes memory back.
    takes_back: bool,
    /// Times and memory.
    pub(super) stages: MedianStages,
    /// The whole of each round, in milliseconds.
    pub(super) total_ms: Rounds,
    /// The most memory of each round, in MiB.
    pub(super) peak_mib: Rounds,
}

impl Entry {
    pub(super) fn total_ns(&self) -> f64 {
        self.stages.total_ns
    }
}

/// One program in one setting.
#[derive(Clone, Debug)]
pub(super) struct Contest {
    pub(super) program: &'static Program,
    pub(super) setting: Setting,
    pub(super) size: Size,
    pub(super) scale: Scale,
    pub(super) rounds: usize,
    /// The rivals as allocated, and then the variants of ours.
    pub(super) entries: Vec<Entry>,
    /// The best rival in the rounds in which it ran against itself with prefetches.
    pub(super) unprefetched: Option<Entry>,
}

/// Who is to run.
#[derive(Clone, Copy)]
struct Contestant {
    allocator: &'static str,
    who: &'static str,
    variant: Variant,
    takes_back: bool,
}

impl Contestant {
    fn rival(rival: &AllocatorRival, variant: Variant, takes_back: bool) -> Contestant {
        Contestant {
            allocator: rival.methods.name,
            who: rival.name,
            variant,
            takes_back,
        }
    }

    fn ours(variant: Variant) -> Contestant {
        Contestant {
            allocator: ours::METHODS.name,
            who: ours::NAME,
            variant,
            takes_back: true,
        }
    }
}

/// The rivals, as allocated.
fn rivals() -> impl Iterator<Item = Contestant> {
    let heaps = ALLOCATORS.iter().map(|rival| (rival, true));
    let arenas = ARENAS.iter().map(|rival| (rival, false));
    heaps
        .chain(arenas)
        .map(|(rival, takes_back)| Contestant::rival(rival, Variant::AsAllocated, takes_back))
}

/// Our variants: those that the floors are about, and in full runs all others.
fn our_variants(program: &Program, scale: Scale) -> Vec<Variant> {
    match scale {
        Scale::Quick => vec![program.hinted(), Variant::Clustered],
        Scale::Full => vec![
            Variant::AsAllocated,
            Variant::NullHints,
            Variant::Closest,
            Variant::FirstFit,
            Variant::NewBlock,
            Variant::Clustered,
            Variant::Coloured,
        ],
    }
}

impl Contest {
    /// Holds it.
    pub(super) fn hold(
        program: &'static Program,
        setting: Setting,
        size: Size,
        scale: Scale,
        rounds: usize,
    ) -> Result<Contest, Failure> {
        let run = Run {
            program,
            setting,
            variant: Variant::AsAllocated,
            size,
            extent: Extent::Run,
            target: Target::This,
        };
        let ours = our_variants(program, scale);
        let ours = ours.into_iter().map(Contestant::ours);
        let contestants: Vec<Contestant> = rivals().chain(ours).collect();
        let mut contest = Contest {
            program,
            setting,
            size,
            scale,
            rounds,
            entries: race(run, &contestants, rounds)?,
            unprefetched: None,
        };
        if scale == Scale::Full {
            let best = contest.best().who.clone();
            let without = rivals().find(|rival| rival.who == best);
            let pair = without.map(|without| {
                let with = Contestant {
                    variant: Variant::Prefetched,
                    ..without
                };
                [without, with]
            });
            if let Some(pair) = pair {
                let mut entries = race(run, &pair, rounds)?.into_iter();
                contest.unprefetched = entries.next();
                contest.entries.extend(entries);
            }
        }
        Ok(contest)
    }

    /// The rival that took the least time, as allocated.
    pub(super) fn best(&self) -> &Entry {
        self.best_where(|_| true)
    }

    /// The best of those that take memory back.
    pub(super) fn best_heap(&self) -> &Entry {
        self.best_where(|entry| entry.takes_back)
    }

    fn best_where(&self, takes_part: impl Fn(&Entry) -> bool) -> &Entry {
        let rivals = self.entries.iter().filter(|entry| {
            entry.variant == Variant::AsAllocated && entry.who != ours::NAME && takes_part(entry)
        });
        rivals
            .min_by(|a, b| a.total_ns().total_cmp(&b.total_ns()))
            .expect("the system's malloc is a rival in every build")
    }

    /// The entry of our `variant`.
    pub(super) fn entry(&self, variant: Variant) -> &Entry {
        let mut ours = self.entries.iter().filter(|entry| entry.who == ours::NAME);
        ours.find(|entry| entry.variant == variant)
            .expect("hinted and morphed take part in every contest")
    }
}

/// Runs all contestants in turns; all must compute the same, and the first to run checks its
/// result.
fn race(run: Run, contestants: &[Contestant], rounds: usize) -> Result<Vec<Entry>, Failure> {
    let mut all: Vec<Vec<Stages>> = contestants.iter().map(|_| Vec::new()).collect();
    let mut expected = None;
    for round in 0..rounds {
        for turn in 0..contestants.len() {
            // Each round begins with another one, so that none always runs after the same
            // neighbour.
            let which = (round + turn) % contestants.len();
            let contestant = contestants[which];
            let run = Run {
                variant: contestant.variant,
                extent: if expected.is_none() {
                    Extent::Checked
                } else {
                    Extent::Run
                },
                ..run
            };
            let stages = start(&run, contestant.allocator)?;
            if *expected.get_or_insert(stages.checksum) != stages.checksum {
                return Err(Failure::Answer(WrongAnswer {
                    workload: SUITE,
                    who: format!("{run} under {}", contestant.allocator),
                }));
            }
            all[which].push(stages);
        }
    }
    let entries = contestants
        .iter()
        .zip(&all)
        .map(|(contestant, stages)| Entry {
            who: contestant.who.to_owned(),
            variant: contestant.variant,
            takes_back: contestant.takes_back,
            stages: medians(stages),
            total_ms: figures(stages, |round| round.total_ns() as f64 / 1e6),
            peak_mib: figures(stages, |round| round.peak_bytes as f64 / f64::from(1 << 20)),
        });
    Ok(entries.collect())
}

/// A figure of each of at least one round.
fn figures(rounds: &[Stages], figure: impl Fn(&Stages) -> f64) -> Rounds {
    Rounds::new(rounds.iter().map(figure).collect())
}

fn medians(rounds: &[Stages]) -> MedianStages {
    let median =
        |figure: fn(&Stages) -> u64| figures(rounds, |stages| figure(stages) as f64).median();
    MedianStages {
        build_ns: median(|stages| stages.build_ns),
        morph_ns: median(|stages| stages.morph_ns),
        work_ns: median(|stages| stages.work_ns),
        total_ns: median(Stages::total_ns),
        peak_bytes: median(|stages| stages.peak_bytes),
    }
}

/// Memory that a run will find with the kernel already, rather than with the hypervisor: three
/// times the most that any run of this size takes, about. With as much as it takes and no more, one
/// build in three of mst in an aged heap waited for the hypervisor all the same, and took 360 ms
/// instead of 130.
fn warm_bytes(size: Size) -> usize {
    match size {
        Size::Tiny | Size::Thesis => 0,
        Size::Quick => 256 << 20,
        Size::Large => 2 << 30,
    }
}

/// One run in a process of its own.
fn start(run: &Run, allocator: &str) -> Result<Stages, Failure> {
    let failure = |what: String| Failure::Worker {
        program: format!("{run} under {allocator}"),
        what,
    };
    let name = run.to_string();
    warm_memory(warm_bytes(run.size));
    let output = worker::run(&["--worker", &name], allocator).map_err(failure)?;
    let finished: Finished =
        serde_json::from_str(&output).map_err(|error| failure(error.to_string()))?;
    if finished.run != name || finished.allocator != allocator {
        return Err(failure(format!(
            "it ran {} under {}",
            finished.run, finished.allocator
        )));
    }
    Ok(finished.stages)
}
