//! Walks through the entries of a `BTreeMap`, in the order of keys: from leaf to leaf.
//!
//! A walk goes on from the lookup before it. Of one that a window begins within, nothing says where
//! in the order of keys it is: it is taken to be anywhere.

use std::ops::Range;

use super::descents::{CAPACITY, Descents, Layout, Part};
use crate::analyses::replay::trace::{NONE, Step, Trace};

/// Leaves in the order of keys are a row in memory if so many of the next ones are just above.
const IN_ROW: f64 = 0.5;
/// What may lie between two of a row.
const NEXT: u64 = 1024;

/// The entries that walks read, numbered in the order of time.
#[derive(Debug, Default)]
pub(super) struct Walks {
    starts: Vec<Start>,
    pub(super) entries: u32,
    leaves: u32,
    in_row: u32,
}

#[derive(Clone, Copy, Debug)]
struct Start {
    /// Its first entry.
    first: u32,
    rank: f64,
    root: u32,
}

/// The node and the slot that a walk is at.
type Place = (u32, u32);

impl Walks {
    /// Finds the walks among what is no lookup, and says so in `parts`. O(steps).
    pub(super) fn find(
        trace: &Trace,
        layout: &Layout,
        sites: &[u32],
        descents: &mut Descents,
    ) -> Walks {
        let mut found = Walks::default();
        for window in trace.windows() {
            // Where the last lookup ended, and where the walk is.
            let (mut from, mut at) = (None, None::<Place>);
            for index in window {
                let step = &trace.steps[index];
                match descents.parts[index] {
                    Part::Arrival(lookup) | Part::End(lookup) => {
                        let it = &descents.list[lookup as usize];
                        (from, at) = (Some((it.rank, it.root)), None);
                    }
                    Part::Other if sites.contains(&trace.site(step)) && !step.write => {
                        if let Some(slot) = slot(step, layout) {
                            found.go_on(trace, &mut at, (step.object, slot), &mut from);
                        }
                        if at.is_some() {
                            descents.parts[index] = Part::Walk(found.entries - 1);
                        }
                    }
                    _ => {}
                }
            }
        }
        found
    }

    fn go_on(
        &mut self,
        trace: &Trace,
        at: &mut Option<Place>,
        next: Place,
        from: &mut Option<(f64, u32)>,
    ) {
        let last = at.replace(next);
        if last == Some(next) {
            return;
        }
        let base = |object: u32| trace.object(object).map_or(0, |it| it.base);
        match last {
            Some((node, _)) if node != next.0 => {
                let up = base(next.0).wrapping_sub(base(node));
                self.leaves += 1;
                self.in_row += u32::from(up <= NEXT);
            }
            Some(_) => {}
            None => {
                let (rank, root) = from.take().unwrap_or((anywhere(next.0, 0), NONE));
                let first = self.entries;
                self.starts.push(Start { first, rank, root });
            }
        }
        self.entries += 1;
    }

    /// Whether leaves that follow each other lie in a row today.
    pub(super) fn are_in_row(&self) -> bool {
        f64::from(self.in_row) >= IN_ROW * f64::from(self.leaves.max(1))
    }

    /// Where an entry is in the order of keys, in a map of so many, and the map's root.
    pub(super) fn rank(&self, entry: u32, count: f64) -> (f64, u32) {
        let at = self.starts.partition_point(|it| it.first <= entry);
        let Some(start) = at.checked_sub(1).map(|at| self.starts[at]) else {
            return (0.0, NONE);
        };
        let rank = start.rank + f64::from(entry - start.first) / count.max(1.0);
        (rank.fract(), start.root)
    }
}

/// The entry of a node that a step reads.
fn slot(step: &Step, layout: &Layout) -> Option<u32> {
    let of = |bytes: &Range<u32>| {
        let each = (bytes.end - bytes.start) / CAPACITY;
        let is_in = bytes.contains(&step.offset);
        is_in.then(|| (step.offset - bytes.start) / each.max(1))
    };
    of(&layout.keys).or_else(|| of(&layout.values))
}

/// From 0 to 1, the same for an element each time.
pub(super) fn anywhere(object: u32, element: u32) -> f64 {
    let mixed = u64::from(object) << 32 | u64::from(element);
    let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}
