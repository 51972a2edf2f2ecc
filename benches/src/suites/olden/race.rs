//! Contests: one program in one setting, all allocators and variants in turns.

use super::variants;
use crate::olden::Size;
use crate::olden::runner::{Mode, Program, Run, Setting, Variant};
use crate::programs::Scale;
use crate::rivals::{ALLOCATORS, ARENAS, Allocator, OURS};
use crate::worker::{Taken, measure};
use crate::workload::Failure;

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) allocator: &'static Allocator,
    pub(super) variant: Variant,
    pub(super) taken: Taken,
}

#[derive(Clone, Debug)]
pub(super) struct Contest {
    pub(super) program: &'static Program,
    pub(super) setting: Setting,
    /// As allocated: those that take memory back, and then the arenas.
    pub(super) rivals: Vec<Entry>,
    pub(super) ours: Vec<Entry>,
    /// In full runs the best rival without and with prefetches.
    pub(super) prefetched: Vec<Entry>,
}

impl Contest {
    pub(super) fn hold(
        program: &'static Program,
        setting: Setting,
        scale: Scale,
        rounds: usize,
    ) -> Result<Contest, Failure> {
        let size = scale.pick(Size::Quick, Size::Large);
        let race = |all: &[(&'static Allocator, Variant)]| {
            let (mode, names) = (Mode::Run, all.iter());
            let names = names.map(|&(_, variant)| {
                let run = Run {
                    program,
                    setting,
                    variant,
                    size,
                    mode,
                };
                run.to_string()
            });
            let names: Vec<String> = names.collect();
            let pairs = names.iter().zip(all);
            let pairs = pairs.map(|(name, (allocator, _))| (name.as_str(), allocator.process));
            let taken = measure(&pairs.collect::<Vec<_>>(), scale, rounds)?;
            let entry = |(&(allocator, variant), taken)| Entry {
                allocator,
                variant,
                taken,
            };
            Ok::<Vec<Entry>, Failure>(all.iter().zip(taken).map(entry).collect())
        };
        let rivals = ALLOCATORS.iter().chain(ARENAS);
        let mut all: Vec<_> = rivals.map(|rival| (rival, Variant::AsAllocated)).collect();
        let count = all.len();
        let ours = variants(program, scale);
        all.extend(ours.into_iter().map(|variant| (&OURS, variant)));
        let mut rivals = race(&all)?;
        let ours = rivals.split_off(count);
        let prefetched = match scale {
            Scale::Quick => Vec::new(),
            Scale::Full => {
                let best = best_of(&rivals).allocator;
                race(&[(best, Variant::AsAllocated), (best, Variant::Prefetched)])?
            }
        };
        Ok(Contest {
            program,
            setting,
            rivals,
            ours,
            prefetched,
        })
    }

    pub(super) fn best(&self) -> &Entry {
        best_of(&self.rivals)
    }

    /// The best of those that take memory back.
    pub(super) fn best_heap(&self) -> &Entry {
        best_of(&self.rivals[..ALLOCATORS.len()])
    }

    pub(super) fn entry(&self, variant: Variant) -> &Entry {
        let found = self.ours.iter().find(|entry| entry.variant == variant);
        found.expect("hinted and morphed take part in every contest")
    }
}

fn best_of(rivals: &[Entry]) -> &Entry {
    let median = |entry: &&Entry| entry.taken.ms().median();
    let best = rivals.iter().min_by(|a, b| median(a).total_cmp(&median(b)));
    best.expect("the system's malloc is a rival in every build")
}
