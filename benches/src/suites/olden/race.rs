//! Contests: one program in one setting, all contestants in turns.

use crate::olden::Size;
use crate::olden::runner::{Finished, Mode, Program, Run, Setting, Stages, Variant};
use crate::programs::Scale;
use crate::rivals::{ALLOCATORS, ARENAS, ours};
use crate::rounds::Rounds;
use crate::sys::warm_memory;
use crate::timing::turns;
use crate::worker;
use crate::workload::Failure;

/// A contestant and its rounds.
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
    fn ours(variant: Variant) -> Entry {
        Entry {
            allocator: ours::METHODS.name,
            who: ours::NAME,
            variant,
            takes_back: true,
            rounds: Vec::new(),
        }
    }

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

/// The rivals, as allocated.
fn rivals() -> impl Iterator<Item = Entry> {
    let heaps = ALLOCATORS.iter().map(|rival| (rival, true));
    let arenas = ARENAS.iter().map(|rival| (rival, false));
    heaps.chain(arenas).map(|(rival, takes_back)| Entry {
        allocator: rival.methods.name,
        who: rival.name,
        variant: Variant::AsAllocated,
        takes_back,
        rounds: Vec::new(),
    })
}

/// Our variants in full runs.
pub(super) const OURS: [Variant; 7] = [
    Variant::AsAllocated,
    Variant::NullHints,
    Variant::Closest,
    Variant::FirstFit,
    Variant::NewBlock,
    Variant::Clustered,
    Variant::Coloured,
];

/// One program in one setting.
#[derive(Clone, Debug)]
pub(super) struct Contest {
    pub(super) program: &'static Program,
    pub(super) setting: Setting,
    pub(super) scale: Scale,
    /// The rivals as allocated, and then the variants of ours: those that the floors are about, and
    /// in full runs all.
    pub(super) entries: Vec<Entry>,
    /// In full runs the best rival, and itself with prefetches, in a race of their own.
    pub(super) prefetched: Option<[Entry; 2]>,
}

impl Contest {
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
            mode: Mode::Run,
        };
        let ours = match scale {
            Scale::Quick => &[program.hinted, Variant::Clustered][..],
            Scale::Full => &OURS,
        };
        let mut entries: Vec<Entry> = rivals().collect();
        entries.extend(ours.iter().map(|&variant| Entry::ours(variant)));
        race(run, &mut entries, rounds)?;
        let mut contest = Contest {
            program,
            setting,
            scale,
            entries,
            prefetched: None,
        };
        if scale == Scale::Full {
            let best = Entry {
                rounds: Vec::new(),
                ..contest.best().clone()
            };
            let with = Entry {
                variant: Variant::Prefetched,
                ..best.clone()
            };
            let mut pair = [best, with];
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
        let rivals = self.entries.iter().filter(|entry| entry.who != ours::NAME);
        rivals
            .filter(|entry| takes_part(entry))
            .min_by(|a, b| a.total_ms().median().total_cmp(&b.total_ms().median()))
            .expect("the system's malloc is a rival in every build")
    }

    /// The entry of our `variant`.
    pub(super) fn entry(&self, variant: Variant) -> &Entry {
        let mut ours = self.entries.iter().filter(|entry| entry.who == ours::NAME);
        ours.find(|entry| entry.variant == variant)
            .expect("hinted and morphed take part in every contest")
    }
}

/// Runs all contestants in turns. Each run checks its result.
fn race(run: Run, contestants: &mut [Entry], rounds: usize) -> Result<(), Failure> {
    for which in turns(rounds, contestants.len()) {
        let contestant = &mut contestants[which];
        let variant = contestant.variant;
        let stages = start(&Run { variant, ..run }, contestant.allocator)?;
        contestant.rounds.push(stages);
    }
    Ok(())
}

/// Memory that a run will find with the kernel already, rather than with the hypervisor: about
/// three times the most that a run of this size takes. With only as much as it takes, one build in
/// three of mst in an aged heap still waited for the hypervisor, and took 360 ms instead of 130.
fn warm_bytes(size: Size) -> usize {
    match size {
        Size::Tiny | Size::Thesis => 0,
        Size::Quick => 256 << 20,
        Size::Large => 2 << 30,
    }
}

/// One run in a process of its own.
fn start(run: &Run, allocator: &str) -> Result<Stages, Failure> {
    let failure = |what: String| format!("{run} under {allocator}: {what}");
    let name = run.to_string();
    warm_memory(warm_bytes(run.size));
    let output = worker::run(&["--worker", &name], allocator).map_err(failure)?;
    let finished: Finished =
        serde_json::from_str(&output).map_err(|error| failure(error.to_string()))?;
    if finished.run != name || finished.allocator != allocator {
        let (run, allocator) = (finished.run, finished.allocator);
        return Err(failure(format!("it ran {run} under {allocator}")).into());
    }
    Ok(finished.stages)
}
