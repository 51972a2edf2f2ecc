//! Misses of a hierarchy of caches, by models of different exactness.
//!
//! | tier | knows | cost |
//! |---|---|---|
//! | [`Closed`](Tier::Closed) | the layout's name and the number of nodes | O(log n) |
//! | [`Footprint`](Tier::Footprint) | the probability of each block; the cache is one set | O(n) |
//! | [`PerSet`](Tier::PerSet) | addresses and sets: operations are replayed | O(n) and the replay |
//! | [`Sequence`](Tier::Sequence) | the one order of all reads | O(n ways) |
//!
//! A replay's sampling error is below half a percent for most levels. Equal questions get equal
//! answers.

use std::fmt;

mod closed;
mod replay;
mod sequence;
#[cfg(test)]
mod tests;

pub use closed::ClosedForm;
#[cfg(feature = "cli")]
pub(crate) use replay::Counted;
pub(crate) use replay::Replay;
pub(crate) use sequence::Sequence;

use crate::Accesses;
use crate::footprint::Replacement;
use crate::hierarchy::{CacheLevel, Hierarchy, ReplacementPolicy};
use crate::simulator::Frames;

/// Accesses of a replay at most.
const REPLAY_ACCESSES_MAX: u64 = 12_000_000;
/// Standard error that ends a replay.
const REPLAY_ERROR_MAX: f64 = 0.005;
/// Levels that miss less often in an operation are known less well.
const REPLAY_RARE: f64 = 0.05;
/// Chooses the operations of a replay.
const REPLAY_SEED: u64 = 1;

/// A model that predicts misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[cfg_attr(feature = "json", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Tier {
    /// The most exact one that knows enough; the prediction says which.
    #[default]
    Auto,
    /// From the layout and the number of nodes alone.
    Closed,
    /// Characteristic time of a fully associative cache.
    Footprint,
    /// Drawn operations, replayed through the sets that addresses choose.
    PerSet,
    /// All operations read one sequence: searches in one list, walks.
    Sequence,
}

impl Tier {
    /// All tiers.
    pub const ALL: [Tier; 5] = [
        Tier::Auto,
        Tier::Closed,
        Tier::Footprint,
        Tier::PerSet,
        Tier::Sequence,
    ];

    /// The name, as the command line takes it.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Auto => "auto",
            Tier::Closed => "closed",
            Tier::Footprint => "footprint",
            Tier::PerSet => "per-set",
            Tier::Sequence => "sequence",
        }
    }

    /// Whether misses count with the order in which one operation touches its blocks.
    pub(crate) fn knows_order(self) -> bool {
        matches!(self, Tier::PerSet | Tier::Sequence)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Misses of one level.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct LevelPrediction {
    /// Name of the [`CacheLevel`](crate::CacheLevel).
    pub name: String,
    /// Requests that the level does not serve: of one operation in the steady state, or of all
    /// operations that were asked for.
    pub misses: f64,
    /// How it was predicted; never [`Tier::Auto`].
    pub tier: Tier,
    /// Why this tier was taken.
    pub reason: String,
}

/// Misses of one operation in the steady state, or, given `first`, of that many operations together
/// from empty caches. First the caches, which see the addresses that `frames` gives, then the
/// translation buffers.
///
/// # Examples
/// ```
/// use ccmodel::{
///     Accesses, CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, Layout, NodeExtent,
///     Shape, Tier, predict_misses,
/// };
///
/// let shape = Shape::complete_binary((1 << 12) - 1);
/// let node = NodeExtent::new(32, 8)?;
/// let placement = Layout::DepthFirst.place(&shape, node);
/// let accesses = Accesses::searches(&shape, &placement, node.bytes, None);
/// let l1 = CacheLevel::lru("L1", CacheGeometry::new(64, 64, 12)?);
/// let hierarchy = Hierarchy::new(vec![l1], Inclusion::NonInclusive, Vec::new())?;
///
/// let misses =
///     |tier| predict_misses(&accesses, &hierarchy, Frames::Identity, tier, None)[0].misses;
/// // Depth-first order of a complete tree uses few of the sets.
/// assert!(misses(Tier::PerSet) > 1.1 * misses(Tier::Footprint));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn predict_misses(
    accesses: &Accesses,
    hierarchy: &Hierarchy,
    frames: Frames,
    tier: Tier,
    first: Option<u64>,
) -> Vec<LevelPrediction> {
    let sequence = Sequence::of(accesses)
        .filter(|_| first.is_none() && matches!(tier, Tier::Auto | Tier::Sequence))
        .and_then(|sequence| sequence.predict(hierarchy, frames));
    let (tier, reason, misses) = match (sequence, tier) {
        (Some(misses), _) => (
            Tier::Sequence,
            "all operations read one sequence: what comes between two touches is known",
            misses,
        ),
        (None, Tier::Footprint | Tier::Closed) => (
            Tier::Footprint,
            match tier {
                Tier::Footprint => "asked for",
                _ => "the closed form needs a layout, not addresses",
            },
            by_footprint(accesses, hierarchy, first),
        ),
        (None, Tier::Auto | Tier::PerSet | Tier::Sequence) => (
            Tier::PerSet,
            match frames {
                Frames::Identity => "drawn operations, replayed through its sets",
                Frames::Random { .. } => "drawn operations, replayed in random frames",
            },
            by_replay(accesses, hierarchy, frames, first),
        ),
    };
    let levels = hierarchy.caches().iter().chain(hierarchy.tlbs());
    let level = |(level, misses): (&CacheLevel, f64)| LevelPrediction {
        name: level.name.clone(),
        misses,
        tier,
        reason: reason.to_owned(),
    };
    levels.zip(misses).map(level).collect()
}

fn by_replay(
    accesses: &Accesses,
    hierarchy: &Hierarchy,
    frames: Frames,
    first: Option<u64>,
) -> Vec<f64> {
    let replay = Replay {
        accesses,
        hierarchy,
        frames,
        seed: REPLAY_SEED,
        accesses_max: REPLAY_ACCESSES_MAX,
        error_max: REPLAY_ERROR_MAX,
        rare: REPLAY_RARE,
    };
    let (counted, operations) = match first {
        Some(first) => (replay.first(first, &mut |_| ()), first as f64),
        None => (replay.steady(None, &mut |_| ()), 1.0),
    };
    let misses = counted.levels.iter().map(|&(mean, _)| mean * operations);
    misses.collect()
}

/// Each level as a fully associative cache that sees all reads.
fn by_footprint(accesses: &Accesses, hierarchy: &Hierarchy, first: Option<u64>) -> Vec<f64> {
    let levels = hierarchy
        .caches()
        .iter()
        .chain(hierarchy.tlbs())
        .enumerate();
    let misses = levels.map(|(i, level)| {
        let blocks = accesses.block_probabilities(level.geometry.block_bytes());
        let footprint = blocks.footprint();
        let above = hierarchy.above_victim(i).map_or(0, CacheLevel::blocks);
        let capacity = (level.blocks() + above) as f64;
        let replacement = match level.policy {
            ReplacementPolicy::Random => Replacement::Random,
            ReplacementPolicy::Lru | ReplacementPolicy::TreePlru => Replacement::Lru,
        };
        let steady = footprint.misses(capacity, replacement);
        first.map_or(steady, |first| {
            footprint.first_misses(capacity, steady, first as f64)
        })
    });
    misses.collect()
}
