//! The program as it would run with `CcMalloc` alone: what hints and morphs are judged against.
//!
//! Small objects lie in size classes, without headers between them, in the order of their births:
//! in a heap that has just begun, that of their addresses.

use std::collections::{BTreeMap, HashMap};

use super::Context;
use super::chunks::Chunks;
use super::dense::{APART, NEW_MEMORY, spread};
use crate::analyses::replay::processor::{Comparison, compare};
use crate::analyses::replay::trace::{NONE, Step, Trace};
use crate::analyses::replay::{PROBABLE, PlacedAccess, Replayed, Rewrite};
use crate::analyses::units::ratio;
use crate::profile::Profile;

/// Larger objects have cache lines of their own under any allocator.
const MAX_BYTES: u64 = 1024;
/// What is kept free below the classes for what a change places.
const FIRST: u64 = 4;

/// The program with `CcMalloc` in the place of its own allocator.
pub(crate) struct WithAllocator {
    /// By object, where it would begin.
    starts: HashMap<u32, u64>,
    pub(crate) replayed: Replayed,
    /// The part of the program's time that it leaves.
    pub(crate) left: f64,
}

/// A change, and whatever it leaves where it is in size classes.
struct Beside<'a> {
    starts: &'a HashMap<u32, u64>,
    change: &'a mut dyn Rewrite,
}

impl Rewrite for Beside<'_> {
    fn places(&mut self, index: usize, step: &Step, into: &mut Vec<PlacedAccess>) {
        let first = into.len();
        self.change.places(index, step, into);
        if let Some(start) = self.starts.get(&step.object) {
            let base = step.address.wrapping_sub(u64::from(step.offset));
            for place in &mut into[first..] {
                // Another order of fields leaves the object where it is.
                let offset = place.address.wrapping_sub(base);
                if offset < MAX_BYTES {
                    place.address = start + offset;
                }
            }
        }
    }
}

/// Whether a profile shows that its program has `CcMalloc` already.
pub(super) fn has_it(profile: &Profile) -> bool {
    let is_its = |text: &str| text.contains("ccmalloc");
    let mut frames = profile.frames.iter();
    frames.any(|it| is_its(&it.function) || is_its(&it.module))
}

/// What `CcMalloc` rounds a size up to: granules of 8 bytes, then four classes to each doubling.
pub(super) fn class(bytes: u64) -> u64 {
    match bytes {
        0..=64 => bytes.max(1).next_multiple_of(8),
        _ => bytes.next_multiple_of((1 << (bytes - 1).ilog2()) / 4),
    }
}

/// O(n log n) in the objects.
pub(super) fn starts(profile: &Profile, trace: &Trace, chunks: &Chunks) -> HashMap<u32, u64> {
    // By class, what was seen; and by site, how much of that is of which class.
    let mut seen: BTreeMap<u64, Vec<(u64, u32)>> = BTreeMap::new();
    let mut of_site: HashMap<u32, (u64, BTreeMap<u64, u64>)> = HashMap::new();
    for (index, object) in (0..NONE).zip(&trace.objects) {
        let bytes = u64::from(chunks.bytes(index));
        if object.accesses > 0 && (1..=MAX_BYTES).contains(&bytes) {
            let class = class(bytes);
            seen.entry(class).or_default().push((object.base, index));
            let (all, classes) = of_site.entry(object.site).or_default();
            *all += 1;
            *classes.entry(class).or_default() += 1;
        }
    }
    let alive = |class: u64| {
        let of_class = of_site.iter().filter_map(|(&site, (all, classes))| {
            let alive = profile.sites.get(site as usize)?.peak_chunks;
            Some(ratio(*classes.get(&class)?, *all) * alive as f64)
        });
        of_class.sum::<f64>()
    };
    let mut starts = HashMap::new();
    for (place, (bytes, objects)) in (FIRST..).zip(seen) {
        let least = objects.iter().map(|&(_, index)| chunks.bytes(index)).min();
        let ranks = spread(objects, alive(bytes), u64::from(least.unwrap_or(0)));
        let start = |rank: u64| NEW_MEMORY + place * APART + rank * bytes;
        starts.extend(ranks.into_iter().map(|(index, rank)| (index, start(rank))));
    }
    starts
}

impl Context<'_> {
    /// A change beside `CcMalloc`, compared with `CcMalloc` alone; beside the program's own
    /// allocator if that is it.
    pub(super) fn beside_allocator(&self, change: &mut dyn Rewrite) -> (Replayed, Comparison) {
        let Some(with) = &self.with_allocator else {
            let after = self.replay.run(self.trace, change);
            let found = compare(self.trace, self.before, &after, self.models);
            return (after, found);
        };
        let starts = &with.starts;
        let after = self.replay.run(self.trace, &mut Beside { starts, change });
        let found = compare(self.trace, &with.replayed, &after, self.models);
        (after, found)
    }

    /// Replays `CcMalloc` alone.
    pub(super) fn replay_allocator(&mut self) {
        if has_it(self.profile) {
            return;
        }
        let starts = starts(self.profile, self.trace, &self.chunks);
        let mut unchanged = crate::analyses::replay::unchanged;
        let mut alone = Beside {
            starts: &starts,
            change: &mut unchanged,
        };
        let replayed = self.replay.run(self.trace, &mut alone);
        let found = compare(self.trace, self.before, &replayed, self.models);
        self.with_allocator = Some(WithAllocator {
            starts,
            replayed,
            left: found.left[PROBABLE],
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_as_by_ccmalloc() {
        let classes = [
            (1, 8),
            (40, 40),
            (64, 64),
            (65, 80),
            (80, 80),
            (129, 160),
            (1000, 1024),
        ];
        for (bytes, rounded) in classes {
            assert_eq!(class(bytes), rounded, "{bytes}");
        }
    }
}
