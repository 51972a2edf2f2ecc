//! From block probabilities to misses, by models of different exactness.
//!
//! All start from the probability `p_b` that an operation touches block `b`, and predict the misses
//! of a cache of given [geometry](crate::CacheLevel). They differ in what they know of the blocks
//! that compete:
//!
//! | tier | knows | cost |
//! |---|---|---|
//! | [`Closed`](Tier::Closed) | the layout's name and the number of nodes ([`ClosedForm`]) | O(log n) |
//! | [`Footprint`](Tier::Footprint) | all `p_b`; the cache is one set | O(n) |
//! | [`Poisson`](Tier::Poisson) | all `p_b`; each block falls into a set at random | O(n) |
//! | [`PerSet`](Tier::PerSet) | which set each block falls into | O(n), and O(ways^2) for each set |
//! | [`Sequence`](Tier::Sequence) | the order of all reads, where it is one for all operations | O(n ways) |
//!
//! **Levels in a row.** A cache behind another one sees only the misses of that one. How rare and
//! how far apart these requests are follows from the first cache's miss ratio of each block
//! (`renewal`). An inclusive cache evicts a block that the caches above always have, because no
//! request for it arrives; a victim cache together with the cache above holds what both have room
//! for. Translation buffers are caches of pages.
//!
//! **Assumptions.** Operations are drawn independently of each other, from a distribution that does
//! not change. Blocks of one set are independent of each other within an operation too, except at
//! the first level: where an operation is long compared with the cache, drawn operations are
//! replayed through it (`replay`). The levels behind see the misses as independent streams.
//!
//! `ccmodel-lab validate` measures the error for LRU replacement. Tree-PLRU counts as LRU. Random
//! replacement is predicted from the capacity alone.

use std::fmt;
use std::str::FromStr;

mod cascade;
mod classes;
mod closed;
mod renewal;
mod replay;
mod sequence;
mod sets;
#[cfg(test)]
mod tests;
mod victim;
mod workload;

pub use closed::{ClosedForm, NoClosedForm};
pub(crate) use sequence::Sequence;
pub(crate) use workload::Workload;

use crate::Accesses;
use crate::hierarchy::{Hierarchy, Inclusion};

/// A model that predicts misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[cfg_attr(feature = "json", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Tier {
    /// For each level the most exact one that knows enough; the prediction says which and why.
    #[default]
    Auto,
    /// From the layout and the number of nodes alone.
    Closed,
    /// Characteristic time of a fully associative cache.
    Footprint,
    /// Blocks fall into sets at random.
    Poisson,
    /// Blocks fall into sets as their addresses say.
    PerSet,
    /// All operations read one sequence: searches in one list, walks.
    Sequence,
}

impl Tier {
    /// All of them.
    pub const ALL: [Tier; 6] = [
        Tier::Auto,
        Tier::Closed,
        Tier::Footprint,
        Tier::Poisson,
        Tier::PerSet,
        Tier::Sequence,
    ];

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Auto => "auto",
            Tier::Closed => "closed",
            Tier::Footprint => "footprint",
            Tier::Poisson => "poisson",
            Tier::PerSet => "per-set",
            Tier::Sequence => "sequence",
        }
    }

    /// Whether misses count with the order in which one operation touches its blocks.
    pub(crate) fn knows_order(self) -> bool {
        !matches!(self, Tier::Footprint | Tier::Closed)
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No tier has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseTierError {
    name: String,
}

impl fmt::Display for ParseTierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Tier::ALL.map(Tier::name).join(", ");
        write!(f, "unknown tier {:?}; known are {known}", self.name)
    }
}

impl std::error::Error for ParseTierError {}

impl FromStr for Tier {
    type Err = ParseTierError;

    fn from_str(name: &str) -> Result<Tier, ParseTierError> {
        (Tier::ALL.into_iter().find(|tier| tier.name() == name)).ok_or_else(|| ParseTierError {
            name: name.to_owned(),
        })
    }
}

/// Which physical addresses caches see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum FrameMap {
    /// The program's own: in huge pages, in simulators, in first-level caches.
    #[default]
    Identity,
    /// Those of frames of 4 KiB that the operating system took as they came.
    Random,
}

/// Misses of one level.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct LevelPrediction {
    /// Name of the [`CacheLevel`](crate::CacheLevel).
    pub name: String,
    /// Requests that the level does not serve: of one operation in the steady state, or of all that
    /// were asked for.
    pub misses: f64,
    /// How it was predicted; never [`Tier::Auto`].
    pub tier: Tier,
    /// Why so.
    pub reason: String,
}

/// Misses of one operation at each level, in the steady state: first the caches, then the
/// translation buffers.
///
/// Caches see `frames` in place of the program's addresses; translation buffers see the program's
/// pages. O(n) for each block size, and for [`Tier::PerSet`] some microseconds for each set that is
/// unlike the others.
///
/// # Examples
/// ```
/// use ccmodel::{
///     Accesses, CacheGeometry, CacheLevel, FrameMap, Hierarchy, Inclusion, Layout, NodeExtent,
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
/// let misses = |tier| predict_misses(&accesses, &hierarchy, FrameMap::Identity, tier)[0].misses;
/// // Depth-first order of a complete tree uses few of the sets.
/// assert!(misses(Tier::PerSet) > 1.1 * misses(Tier::Footprint));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn predict_misses(
    accesses: &Accesses,
    hierarchy: &Hierarchy,
    frames: FrameMap,
    tier: Tier,
) -> Vec<LevelPrediction> {
    predict(&Workload::Accesses(accesses), hierarchy, frames, tier, None)
}

/// Misses of the first `operations` operations together, when all caches are empty before: as
/// [`predict_misses`], which is the rate that they come to.
///
/// The first touch of a block misses everywhere. A later one misses where it would in the steady
/// state, since what came since the last touch is the same: so no further assumption is made.
pub fn predict_transient(
    accesses: &Accesses,
    hierarchy: &Hierarchy,
    frames: FrameMap,
    tier: Tier,
    operations: u64,
) -> Vec<LevelPrediction> {
    let (workload, first) = (Workload::Accesses(accesses), Some(operations as f64));
    predict(&workload, hierarchy, frames, tier, first)
}

/// From this many points on, which take a tenth of a second, caches and translation buffers have a
/// thread each.
const PARALLEL_POINTS: usize = 1 << 18;

/// Misses of one operation in the steady state, or of the `first` operations together from empty
/// caches: first the caches, then the translation buffers.
pub(crate) fn predict(
    workload: &Workload<'_>,
    hierarchy: &Hierarchy,
    frames: FrameMap,
    tier: Tier,
    first: Option<f64>,
) -> Vec<LevelPrediction> {
    if let (Tier::Auto | Tier::Sequence, Workload::Accesses(accesses)) = (tier, workload)
        && let Some(exact) = sequence::predict(accesses, hierarchy, frames, first)
    {
        return exact;
    }
    let caches = || {
        let inclusion = hierarchy.inclusion();
        cascade::predict(workload, hierarchy.caches(), inclusion, frames, tier, first)
    };
    let tlbs = || {
        let (inclusion, frames) = (Inclusion::NonInclusive, FrameMap::Identity);
        cascade::predict(workload, hierarchy.tlbs(), inclusion, frames, tier, first)
    };
    if workload.points() < PARALLEL_POINTS || hierarchy.tlbs().is_empty() {
        return [caches(), tlbs()].concat();
    }
    std::thread::scope(|scope| {
        let tlbs = scope.spawn(tlbs);
        let caches = caches();
        match tlbs.join() {
            Ok(tlbs) => [caches, tlbs].concat(),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
