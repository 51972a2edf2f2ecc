//! The caches of a machine as they are built: sets, ways, replacement, and who holds what of whom.
//!
//! A [`Machine`](crate::Machine) predicts nanoseconds from what was measured, capacities and steps of latency. A
//! [`Hierarchy`] is the other half of the truth, the geometry: which addresses compete for a place. The
//! simulator runs on it access by access, and the tiers that know sets predict the same misses from
//! probabilities.
//!
//! ```text
//! caches   L1 -> L2 -> L3 -> memory        an access asks each in turn until one has the block
//! tlbs     dTLB -> STLB -> page walk       the same, with pages for blocks
//! ```

use std::fmt;

use crate::colour::CacheGeometry;

/// A real machine has no more levels of either kind.
pub const MAX_CACHES: usize = 8;

/// Which block of a full set gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "kebab-case"))]
pub enum ReplacementPolicy {
    /// The one that was not used for longest.
    #[default]
    Lru,
    /// The one that a binary tree of one bit for each pair of halves points to: a hardware form of LRU that forgets most.
    TreePlru,
    /// Any, each as often.
    Random,
}

/// Who holds what of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "kebab-case"))]
pub enum Inclusion {
    /// A miss fills every cache that missed; caches evict without asking each other.
    #[default]
    NonInclusive,
    /// As non-inclusive, and what a cache evicts leaves those above it too.
    Inclusive,
    /// The last cache holds only what the one above it has evicted, and gives it up when it is asked for again.
    VictimLast,
}

/// One cache of a [`Hierarchy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheLevel {
    /// `L1`, `L2`, `L3`, or for translations `dTLB`, `STLB`; unique within its kind.
    pub name: String,
    /// Sets, block bytes and ways; for translations a block is a page.
    pub geometry: CacheGeometry,
    /// Which block gives way.
    pub policy: ReplacementPolicy,
}

impl CacheLevel {
    /// A cache with LRU replacement.
    pub fn lru(name: &str, geometry: CacheGeometry) -> CacheLevel {
        CacheLevel {
            name: name.to_owned(),
            geometry,
            policy: ReplacementPolicy::Lru,
        }
    }

    /// Blocks that it holds.
    pub fn blocks(&self) -> u64 {
        self.geometry.sets() * self.geometry.associativity()
    }

    /// Bytes that it holds; for translations, that it reaches.
    pub fn bytes(&self) -> u64 {
        self.blocks() * self.geometry.block_bytes()
    }
}

/// Caches and translation buffers, those next to the processor first.
///
/// Invariants, which [`new`](Hierarchy::new) checks: one to [`MAX_CACHES`] caches, names printable and unique within each
/// kind, block sizes that do not shrink from level to level, equal page sizes of the translation buffers; a victim cache has
/// a cache above it with blocks of the same size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    caches: Vec<CacheLevel>,
    inclusion: Inclusion,
    tlbs: Vec<CacheLevel>,
}

impl Hierarchy {
    /// A hierarchy, checked.
    ///
    /// # Errors
    /// [`HierarchyError`] names the first thing that no machine has.
    pub fn new(
        caches: Vec<CacheLevel>,
        inclusion: Inclusion,
        tlbs: Vec<CacheLevel>,
    ) -> Result<Hierarchy, HierarchyError> {
        let refuse = |what: String| Err(HierarchyError { what });
        if caches.is_empty() || caches.len() > MAX_CACHES || tlbs.len() > MAX_CACHES {
            return refuse(format!(
                "it has {} caches and {} TLBs, not 1 to {MAX_CACHES} and at most {MAX_CACHES}",
                caches.len(),
                tlbs.len()
            ));
        }
        for levels in [&caches, &tlbs] {
            for (i, level) in levels.iter().enumerate() {
                let name = &level.name;
                let printable = !name.is_empty() && !name.contains(char::is_control);
                if !printable || levels[..i].iter().any(|other| other.name == *name) {
                    return refuse(format!(
                        "level name {name:?} is empty, unprintable or used twice"
                    ));
                }
            }
            let block = |level: &CacheLevel| level.geometry.block_bytes();
            if !levels.is_sorted_by(|above, below| block(above) <= block(below)) {
                return refuse("block sizes shrink from one level to the next".to_owned());
            }
        }
        if let (Some(first), Some(last)) = (tlbs.first(), tlbs.last())
            && first.geometry.block_bytes() != last.geometry.block_bytes()
        {
            return refuse("its TLBs translate pages of different sizes".to_owned());
        }
        if inclusion == Inclusion::VictimLast {
            let sizes: Vec<u64> = caches
                .iter()
                .rev()
                .take(2)
                .map(|c| c.geometry.block_bytes())
                .collect();
            if sizes.len() < 2 || sizes[0] != sizes[1] {
                return refuse(
                    "a victim cache needs one above it with blocks of the same size".to_owned(),
                );
            }
        }
        Ok(Hierarchy {
            caches,
            inclusion,
            tlbs,
        })
    }

    /// The caches, the one next to the processor first.
    pub fn caches(&self) -> &[CacheLevel] {
        &self.caches
    }

    /// Who holds what of whom.
    pub fn inclusion(&self) -> Inclusion {
        self.inclusion
    }

    /// The translation buffers, the one next to the processor first; may be none.
    pub fn tlbs(&self) -> &[CacheLevel] {
        &self.tlbs
    }
}

/// Why caches make no [`Hierarchy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HierarchyError {
    what: String,
}

impl fmt::Display for HierarchyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no such caches: {}", self.what)
    }
}

impl std::error::Error for HierarchyError {}
