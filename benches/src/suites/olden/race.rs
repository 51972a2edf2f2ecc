//! Contests: one program in one setting, all allocators and variants in turns.

use super::variants;
use crate::olden::Size;
use crate::olden::runner::{Mode, Program, Run, Setting, Variant};
use crate::programs::Scale;
use crate::rivals::{ALLOCATORS, ARENAS, Allocator, OURS};
use crate::worker::{Taken, measure};
use crate::workload::Failure;

/// An allocator with a placement of nodes, and what the program took.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) allocator: &'static Allocator,
    /// Where the nodes go.
    pub(super) variant: Variant,
    pub(super) taken: Taken,
}

impl Entry {
    fn is_ours(&self) -> bool {
        self.allocator.process == OURS.process
    }

    /// Whether the allocator takes memory back.
    fn is_heap(&self) -> bool {
        let is_it = |arena: &Allocator| arena.process == self.allocator.process;
        !ARENAS.iter().any(is_it)
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
    pub(super) prefetched: Vec<Entry>,
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
        let rivals = ALLOCATORS.iter().chain(ARENAS);
        let rivals = rivals.map(|rival| (rival, Variant::AsAllocated));
        let ours = variants(program, scale).into_iter();
        let all: Vec<_> = rivals.chain(ours.map(|variant| (&OURS, variant))).collect();
        let mut contest = Contest {
            program,
            setting,
            entries: race(run, &all, scale, rounds)?,
            prefetched: Vec::new(),
        };
        if scale == Scale::Full {
            let best = contest.best().allocator;
            let pair = [Variant::AsAllocated, Variant::Prefetched].map(|variant| (best, variant));
            contest.prefetched = race(run, &pair, scale, rounds)?;
        }
        Ok(contest)
    }

    /// The rival that took the least time, as allocated.
    pub(super) fn best(&self) -> &Entry {
        self.best_where(|_| true)
    }

    /// The best of those that take memory back.
    pub(super) fn best_heap(&self) -> &Entry {
        self.best_where(Entry::is_heap)
    }

    fn best_where(&self, takes_part: impl Fn(&Entry) -> bool) -> &Entry {
        let median = |entry: &&Entry| entry.taken.ms.median();
        let rivals = self.entries.iter().filter(|entry| !entry.is_ours());
        rivals
            .filter(|entry| takes_part(entry))
            .min_by(|a, b| median(a).total_cmp(&median(b)))
            .expect("the system's malloc is a rival in every build")
    }

    /// The entry of our `variant`.
    pub(super) fn entry(&self, variant: Variant) -> &Entry {
        let mut ours = self.entries.iter().filter(|entry| entry.is_ours());
        ours.find(|entry| entry.variant == variant)
            .expect("hinted and morphed take part in every contest")
    }
}

/// Runs all in turns.
fn race(
    run: Run,
    all: &[(&'static Allocator, Variant)],
    scale: Scale,
    rounds: usize,
) -> Result<Vec<Entry>, Failure> {
    let names = all
        .iter()
        .map(|&(_, variant)| Run { variant, ..run }.to_string());
    let names: Vec<String> = names.collect();
    let variants = names.iter().zip(all);
    let variants = variants.map(|(name, (allocator, _))| (name.as_str(), allocator.process));
    let taken = measure(&variants.collect::<Vec<_>>(), scale, rounds)?;
    let entries = all
        .iter()
        .zip(taken)
        .map(|(&(allocator, variant), taken)| Entry {
            allocator,
            variant,
            taken,
        });
    Ok(entries.collect())
}
