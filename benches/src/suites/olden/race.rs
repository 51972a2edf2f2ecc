//! Contests: one program in one setting, all allocators and variants in turns.

use super::variants;
use crate::olden::Size;
use crate::olden::runner::{Finished, Mode, Program, Run, Setting, Stages, Variant};
use crate::programs::Scale;
use crate::rivals::{ALLOCATORS, ARENAS, OURS};
use crate::rounds::Rounds;
use crate::sys::warm_memory;
use crate::timing::turns;
use crate::worker;
use crate::workload::Failure;

/// An allocator with a placement of nodes, and its rounds.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The name of the allocator's process.
    allocator: &'static str,
    /// The allocator, in words.
    pub(super) who: &'static str,
    /// Where the nodes go.
    pub(super) variant: Variant,
    /// Whether the allocator takes memory back.
    takes_back: bool,
    rounds: Vec<Stages>,
}

impl Entry {
    pub(super) fn figures(&self, figure: impl Fn(&Stages) -> u64, unit: f64) -> Rounds {
        let rounds = self.rounds.iter();
        Rounds::new(rounds.map(|round| figure(round) as f64 / unit).collect())
    }

    pub(super) fn total_ms(&self) -> Rounds {
        self.figures(Stages::total_ns, 1e6)
    }

    pub(super) fn peak_mib(&self) -> Rounds {
        self.figures(|stages| stages.peak_bytes, f64::from(1 << 20))
    }
}

/// One program in one setting.
#[derive(Clone, Debug)]
pub(super) struct Contest {
    pub(super) program: &'static Program,
    pub(super) setting: Setting,
    /// The rivals as allocated, and then the variants of ours.
    pub(super) entries: Vec<Entry>,
    /// In full runs the best rival without and with prefetches, in a race of their own.
    pub(super) prefetched: Option<[Entry; 2]>,
}

impl Contest {
    pub(super) fn hold(
        program: &'static Program,
        setting: Setting,
        scale: Scale,
        rounds: usize,
    ) -> Result<Contest, Failure> {
        let run = Run {
            program,
            setting,
            variant: Variant::AsAllocated,
            size: match scale {
                Scale::Quick => Size::Quick,
                Scale::Full => Size::Large,
            },
            mode: Mode::Run,
        };
        let heaps = ALLOCATORS.iter().map(|rival| (rival, true));
        let rivals = heaps.chain(ARENAS.iter().map(|rival| (rival, false)));
        let rivals = rivals.map(|(rival, takes_back)| Entry {
            allocator: rival.process,
            who: rival.name,
            variant: Variant::AsAllocated,
            takes_back,
            rounds: Vec::new(),
        });
        let ours = variants(program, scale).into_iter().map(|variant| Entry {
            allocator: OURS.process,
            who: OURS.name,
            variant,
            takes_back: true,
            rounds: Vec::new(),
        });
        let mut entries: Vec<Entry> = rivals.chain(ours).collect();
        race(run, &mut entries, rounds)?;
        let mut contest = Contest {
            program,
            setting,
            entries,
            prefetched: None,
        };
        if scale == Scale::Full {
            let mut pair = [Variant::AsAllocated, Variant::Prefetched].map(|variant| Entry {
                variant,
                rounds: Vec::new(),
                ..contest.best().clone()
            });
            race(run, &mut pair, rounds)?;
            contest.prefetched = Some(pair);
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
        let rivals = self.entries.iter().filter(|entry| entry.who != OURS.name);
        rivals
            .filter(|entry| takes_part(entry))
            .min_by(|a, b| a.total_ms().median().total_cmp(&b.total_ms().median()))
            .expect("the system's malloc is a rival in every build")
    }

    /// The entry of our `variant`.
    pub(super) fn entry(&self, variant: Variant) -> &Entry {
        let mut ours = self.entries.iter().filter(|entry| entry.who == OURS.name);
        ours.find(|entry| entry.variant == variant)
            .expect("hinted and morphed take part in every contest")
    }
}

/// Runs all entries in turns. Each run checks its result.
fn race(run: Run, entries: &mut [Entry], rounds: usize) -> Result<(), Failure> {
    for which in turns(rounds, entries.len()) {
        let entry = &mut entries[which];
        let variant = entry.variant;
        let stages = start(&Run { variant, ..run }, entry.allocator)?;
        entry.rounds.push(stages);
    }
    Ok(())
}

/// Memory to take from the hypervisor before a run: about three times the most that a run of this
/// size takes. With only as much as it takes, one build in three of mst in an aged heap still
/// waited for the hypervisor, and took 360 ms instead of 130.
fn warm_bytes(size: Size) -> usize {
    match size {
        Size::Tiny | Size::Thesis => 0,
        Size::Quick => 256 << 20,
        Size::Large => 2 << 30,
    }
}

/// One run in a process of its own.
fn start(run: &Run, allocator: &str) -> Result<Stages, Failure> {
    let name = run.to_string();
    warm_memory(warm_bytes(run.size));
    let finished: Finished = worker::read_line(&["--worker", &name], allocator)?;
    if finished.run != name || finished.allocator != allocator {
        let (ran, served) = (finished.run, finished.allocator);
        return Err(format!("{ran} ran under {served}, not {name} under {allocator}").into());
    }
    Ok(finished.stages)
}
