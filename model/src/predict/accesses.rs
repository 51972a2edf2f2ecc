//! Predictions of whatever reads memory, not of searches among nodes alone.
//!
//! [`Accesses`] have their own block probabilities, so that all of `predict` but the first step
//! holds for them. Misses may also be found elsewhere, by a [tier](crate::Tier) that knows of sets
//! or of a cold start. Then
//!
//! ```text
//! waits = misses x (waits / misses as the footprint says)
//! ```
//!
//! since which lines are requested together is a matter of the structure, not of how its misses
//! were counted.

use super::{ByGeometry, Prediction, Predictor, Read, SeenBlocks, sum_of_steps};
use crate::footprint::Replacement;
use crate::tiers::Source;
use crate::{Accesses, Footprint, Level, LevelKind, Machine, PageSize};

impl Predictor {
    /// Operations that read `accesses`.
    pub fn of(accesses: &Accesses) -> Predictor {
        Predictor::with_visits(accesses.visits().clone())
    }

    /// Misses and nanoseconds of one operation that reads `accesses`: from the effective
    /// capacities of the machine's levels, or, of a [preset](Machine::presets), from the sets of
    /// its caches. O(points) for each block size of the machine; of walks and of searches in a
    /// list, for each capacity.
    ///
    /// # Panics
    /// When the machine was changed into one whose block sizes are no powers of two, which
    /// [`Machine::check`] tells.
    ///
    /// # Examples
    /// ```
    /// use ccmodel::{
    ///     Growth, KeyDistribution, Layout, Machine, NodeExtent, Operation, PageSize, Predictor, Sizes, Structure,
    /// };
    ///
    /// let sizes = Sizes::of(NodeExtent::new(40, 8)?);
    /// let growth = Growth::RandomInsert { seed: 1 };
    /// let quadtree = Structure::PointTree { dimensions: 2, growth }.build(50_000, &sizes)?;
    /// let ns = |layout: Layout| -> Result<f64, Box<dyn std::error::Error>> {
    ///     let accesses = quadtree.accesses(&quadtree.place(layout), Operation::Search, &KeyDistribution::Uniform)?;
    ///     let predictor = Predictor::of(&accesses);
    ///     Ok(predictor.predict_accesses(&accesses, PageSize::Small4K, &Machine::preset("zen4-desktop")?).ns)
    /// };
    /// assert!(ns(Layout::Hierarchical)? < ns(Layout::Allocated)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn predict_accesses(
        &self,
        accesses: &Accesses,
        pages: PageSize,
        machine: &Machine,
    ) -> Prediction {
        let geometry = ByGeometry::of(&Source::Operations(accesses), pages, machine);
        self.predict_found(accesses, pages, machine, |level, step| {
            let known = geometry.as_ref()?.of_level(level)?;
            known.get(step).copied()
        })
    }

    /// As [`predict_accesses`](Predictor::predict_accesses), where `found` may know the misses of
    /// an operation at a level and one of its steps, by index.
    pub fn predict_found(
        &self,
        accesses: &Accesses,
        pages: PageSize,
        machine: &Machine,
        mut found: impl FnMut(&Level, usize) -> Option<f64>,
    ) -> Prediction {
        let mut seen = SeenBlocks::new(Read::Accesses(accesses), machine.replacement);
        let mut levels = Vec::new();
        for (i, level) in machine.levels_for(pages).enumerate() {
            let index = seen.index(level.block_bytes);
            let (footprint, sequence) = (&seen.sizes[index].1, &mut seen.sequence);
            let mut misses = sum_of_steps(level, footprint, |step, capacity_blocks| {
                let (misses, waits) =
                    footprint.misses_and_waits(capacity_blocks, machine.replacement);
                let in_order = || {
                    let sequence = sequence.as_mut()?;
                    Some(sequence.misses(level.block_bytes, capacity_blocks))
                };
                match found(level, step).or_else(in_order) {
                    Some(other) => (other, other * exposure(footprint, misses, waits)),
                    None => (misses, waits),
                }
            });
            misses.order_known = seen.sequence.is_some();
            if i > 0 && level.kind == LevelKind::Data {
                misses.ns *= seen.neighbour_factor(level, &machine.neighbours);
            }
            levels.push(misses);
        }
        self.with_instructions(levels, machine)
    }
}

/// The part of the misses that is waited for.
pub(super) fn exposure(footprint: &Footprint, misses: f64, waits: f64) -> f64 {
    if misses > 0.0 {
        return waits / misses;
    }
    // Where all fits: that of a cache that holds nothing.
    let (touches, waits) = footprint.misses_and_waits(0.0, Replacement::Lru);
    if touches > 0.0 { waits / touches } else { 1.0 }
}
