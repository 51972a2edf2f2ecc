//! Misses that a tier found, by the levels of a machine.

use crate::geometry::PageSize;
use crate::machine::{Level, LevelKind, Machine, Origin};
use crate::{Hierarchy, LevelPrediction, Tier};

/// Misses of a hierarchy's caches, and of its translation buffers for one page size.
#[derive(Debug, Default)]
pub(crate) struct TierMisses {
    caches: Vec<LevelPrediction>,
    tlbs: Vec<LevelPrediction>,
}

impl TierMisses {
    /// Sorts the predictions for a hierarchy.
    pub(crate) fn new(
        found: Vec<LevelPrediction>,
        hierarchy: &Hierarchy,
        pages: PageSize,
    ) -> TierMisses {
        let is_cache = |level: &LevelPrediction| {
            hierarchy
                .caches()
                .iter()
                .any(|cache| cache.name == level.name)
        };
        let is_tlb = |level: &LevelPrediction| {
            let mut tlbs = hierarchy.tlbs().iter();
            tlbs.any(|tlb| tlb.name == level.name && tlb.geometry.block_bytes() == pages.bytes())
        };
        let (caches, mut tlbs): (Vec<_>, Vec<_>) = found.into_iter().partition(is_cache);
        tlbs.retain(is_tlb);
        TierMisses { caches, tlbs }
    }

    /// The prediction for one step of a level: a cache has the level's name, and the steps of
    /// translations are the buffers in order.
    pub(crate) fn level(&self, level: &Level, step: usize) -> Option<&LevelPrediction> {
        match level.kind {
            LevelKind::Data => self.caches.iter().find(|found| found.name == level.name),
            LevelKind::Pages(_) => self.tlbs.get(step),
        }
    }
}

/// The caches that `tier` predicts from, or `None` to predict from the capacities of levels.
///
/// Measured capacities say what a program gets of caches that it shares, and come first where no
/// tier needs sets. The caches of a preset are known as they are built.
pub(crate) fn geometry_for(machine: &Machine, tier: Tier) -> Option<&Hierarchy> {
    let needs_no_sets = matches!(tier, Tier::Auto | Tier::Footprint);
    machine
        .hierarchy
        .as_ref()
        .filter(|_| machine.origin == Origin::Preset || !needs_no_sets)
}
