//! The caches of a machine as they are built: sets, ways, replacement, and who holds what of whom.
//!
//! A [`Machine`](crate::Machine) predicts nanoseconds from what was measured, capacities and steps
//! of latency. A [`Hierarchy`] is the other half of the truth, the geometry: which addresses
//! compete for a place. The [simulator](crate::Simulator) runs on it access by access, and the
//! tiers that know sets predict the same misses from probabilities.
//!
//! ```text
//! caches   L1 -> L2 -> L3 -> memory        an access asks each in turn until one has the block
//! tlbs     dTLB -> STLB -> page walk       the same, with pages for blocks
//! ```
//!
//! As JSON, with the feature `json` (what has no default must be there, what is unknown is
//! refused):
//!
//! ```json
//! {
//!   "caches": [
//!     { "name": "L1", "sets": 64, "block_bytes": 64, "ways": 12, "policy": "tree-plru" },
//!     { "name": "L2", "sets": 2048, "block_bytes": 64, "ways": 16 }
//!   ],
//!   "inclusion": "non-inclusive",
//!   "tlbs": [{ "name": "dTLB", "sets": 16, "block_bytes": 4096, "ways": 6 }]
//! }
//! ```
//!
//! By default replacement is `lru`, inclusion `non-inclusive`, and there are no TLBs.

use std::fmt;

use crate::geometry::CacheGeometry;

/// A real machine has no more levels of either kind.
pub const MAX_CACHES: usize = 8;
/// The smallest page: what the bits of an address above it are is up to the system, so that no
/// block may be larger.
const MAX_BLOCK_BYTES: u64 = 4096;
/// Of all levels of either kind together; 8 GiB of lines of 64 bytes. The simulator needs 8 bytes
/// for each.
const MAX_BLOCKS: u64 = 1 << 27;
/// Names stand at the heads of columns.
const MAX_NAME_CHARS: usize = 32;

/// Which block of a full set gives way. A place that is free is always taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "kebab-case"))]
pub enum ReplacementPolicy {
    /// The one that was not used for longest.
    #[default]
    Lru,
    /// The one that a binary tree of one bit for each pair of halves points to: a hardware form of
    /// LRU that forgets most.
    ///
    /// Of a number of ways that is no power of two, the tree is that of the next one, and never
    /// points to where there are no ways: a set of 12 is a half of 8 and a half of 4.
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
    /// The last cache holds only what the one above it has evicted, and gives it up when it is
    /// asked for again; those above are non-inclusive.
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
/// Invariants, which [`new`](Hierarchy::new) checks:
///
/// - One to [`MAX_CACHES`] caches and at most as many translation buffers, which together hold at
///   most 2^27 blocks.
/// - Names are short, printable and unique within each kind.
/// - Blocks of caches have at most 4096 bytes and do not shrink from level to level.
/// - Pages of translation buffers have at least 4096 bytes and one size.
/// - An inclusive cache is at least as large as each above it.
/// - A victim cache has a cache above it with blocks of the same size.
///
/// # Examples
/// ```
/// use ccmodel::{CacheGeometry, CacheLevel, Hierarchy, Inclusion};
///
/// let l1 = CacheLevel::lru("L1", CacheGeometry::new(64, 64, 12)?);
/// let l2 = CacheLevel::lru("L2", CacheGeometry::new(1024, 64, 16)?);
/// let hierarchy = Hierarchy::new(vec![l1.clone(), l2], Inclusion::Inclusive, Vec::new())?;
/// assert_eq!(hierarchy.caches()[1].bytes(), 1 << 20);
///
/// let twice = Hierarchy::new(vec![l1.clone(), l1], Inclusion::Inclusive, Vec::new());
/// assert!(twice.is_err_and(|error| error.to_string().contains("used twice")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "json",
    serde(try_from = "json::HierarchyFile", into = "json::HierarchyFile")
)]
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
        if caches.is_empty() || caches.len() > MAX_CACHES || tlbs.len() > MAX_CACHES {
            return refuse(format!(
                "{} caches and {} TLBs, not 1 to {MAX_CACHES} and at most {MAX_CACHES}",
                caches.len(),
                tlbs.len()
            ));
        }
        check_names(&caches)?;
        check_names(&tlbs)?;
        check_sizes(&caches, &tlbs)?;
        match inclusion {
            Inclusion::NonInclusive => {}
            Inclusion::Inclusive => check_inclusive(&caches)?,
            Inclusion::VictimLast => check_victim(&caches)?,
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

fn refuse<T>(what: String) -> Result<T, HierarchyError> {
    Err(HierarchyError { what })
}

fn check_names(levels: &[CacheLevel]) -> Result<(), HierarchyError> {
    for (i, level) in levels.iter().enumerate() {
        let name = &level.name;
        if name.is_empty()
            || name.chars().count() > MAX_NAME_CHARS
            || name.contains(char::is_control)
        {
            let start: String = name.chars().take(MAX_NAME_CHARS).collect();
            return refuse(format!(
                "a level's name {start:?} is empty, unprintable or longer than {MAX_NAME_CHARS} characters"
            ));
        }
        if levels[..i].iter().any(|other| other.name == *name) {
            return refuse(format!("the name {name:?} is used twice"));
        }
    }
    Ok(())
}

fn check_sizes(caches: &[CacheLevel], tlbs: &[CacheLevel]) -> Result<(), HierarchyError> {
    for level in caches {
        let block_bytes = level.geometry.block_bytes();
        if block_bytes > MAX_BLOCK_BYTES {
            return refuse(format!(
                "blocks of {block_bytes} bytes in {}, more than a page of {MAX_BLOCK_BYTES}",
                level.name
            ));
        }
    }
    for pair in caches.windows(2) {
        let [above, below] = [&pair[0], &pair[1]];
        if above.geometry.block_bytes() > below.geometry.block_bytes() {
            return refuse(format!(
                "blocks of {} bytes in {} below larger ones in {}",
                below.geometry.block_bytes(),
                below.name,
                above.name
            ));
        }
    }
    for level in tlbs {
        let page_bytes = level.geometry.block_bytes();
        if page_bytes < MAX_BLOCK_BYTES {
            return refuse(format!(
                "pages of {page_bytes} bytes in {}, fewer than {MAX_BLOCK_BYTES}",
                level.name
            ));
        }
        if page_bytes != tlbs[0].geometry.block_bytes() {
            return refuse("TLBs for pages of different sizes".to_owned());
        }
    }
    let blocks = caches.iter().chain(tlbs).map(CacheLevel::blocks);
    // No overflow: a geometry has fewer than 2^54 blocks.
    let blocks: u64 = blocks.sum();
    if blocks > MAX_BLOCKS {
        return refuse(format!(
            "room for {blocks} blocks, more than {MAX_BLOCKS} in all"
        ));
    }
    Ok(())
}

fn check_inclusive(caches: &[CacheLevel]) -> Result<(), HierarchyError> {
    for pair in caches.windows(2) {
        let [above, below] = [&pair[0], &pair[1]];
        if below.bytes() < above.bytes() {
            return refuse(format!(
                "{} is inclusive but smaller than {} above it",
                below.name, above.name
            ));
        }
    }
    Ok(())
}

fn check_victim(caches: &[CacheLevel]) -> Result<(), HierarchyError> {
    match caches {
        [.., above, last] if above.geometry.block_bytes() == last.geometry.block_bytes() => Ok(()),
        _ => refuse("a victim cache needs one above it with blocks of the same size".to_owned()),
    }
}

/// Why caches make no [`Hierarchy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HierarchyError {
    what: String,
}

impl fmt::Display for HierarchyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no machine has such caches: {}", self.what)
    }
}

impl std::error::Error for HierarchyError {}

#[cfg(feature = "json")]
mod json {
    //! How a hierarchy is written: flat levels, so that no file needs to know how types are nested
    //! here.

    use serde::{Deserialize, Serialize};

    use super::{CacheLevel, Hierarchy, HierarchyError, Inclusion, ReplacementPolicy};
    use crate::geometry::CacheGeometry;

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct HierarchyFile {
        caches: Vec<LevelFile>,
        #[serde(default)]
        inclusion: Inclusion,
        #[serde(default)]
        tlbs: Vec<LevelFile>,
    }

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct LevelFile {
        name: String,
        sets: u64,
        block_bytes: u64,
        ways: u64,
        #[serde(default)]
        policy: ReplacementPolicy,
    }

    impl TryFrom<LevelFile> for CacheLevel {
        type Error = HierarchyError;

        fn try_from(file: LevelFile) -> Result<CacheLevel, HierarchyError> {
            match CacheGeometry::new(file.sets, file.block_bytes, file.ways) {
                Ok(geometry) => Ok(CacheLevel {
                    name: file.name,
                    geometry,
                    policy: file.policy,
                }),
                Err(_) => Err(HierarchyError {
                    what: format!(
                        "{} sets of {} blocks of {} bytes",
                        file.sets, file.ways, file.block_bytes
                    ),
                }),
            }
        }
    }

    impl From<CacheLevel> for LevelFile {
        fn from(level: CacheLevel) -> LevelFile {
            LevelFile {
                sets: level.geometry.sets(),
                block_bytes: level.geometry.block_bytes(),
                ways: level.geometry.associativity(),
                name: level.name,
                policy: level.policy,
            }
        }
    }

    impl TryFrom<HierarchyFile> for Hierarchy {
        type Error = HierarchyError;

        fn try_from(file: HierarchyFile) -> Result<Hierarchy, HierarchyError> {
            let levels = |files: Vec<LevelFile>| -> Result<Vec<CacheLevel>, HierarchyError> {
                files.into_iter().map(CacheLevel::try_from).collect()
            };
            Hierarchy::new(levels(file.caches)?, file.inclusion, levels(file.tlbs)?)
        }
    }

    impl From<Hierarchy> for HierarchyFile {
        fn from(hierarchy: Hierarchy) -> HierarchyFile {
            let files = |levels: Vec<CacheLevel>| levels.into_iter().map(LevelFile::from).collect();
            HierarchyFile {
                caches: files(hierarchy.caches),
                inclusion: hierarchy.inclusion,
                tlbs: files(hierarchy.tlbs),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(name: &str, sets: u64, block_bytes: u64, ways: u64) -> CacheLevel {
        CacheLevel::lru(name, CacheGeometry::new(sets, block_bytes, ways).unwrap())
    }

    /// The reason why such caches are refused; empty when they are not.
    fn refusal(caches: &[CacheLevel], inclusion: Inclusion, tlbs: &[CacheLevel]) -> String {
        match Hierarchy::new(caches.to_vec(), inclusion, tlbs.to_vec()) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn sizes_are_products() {
        let l1 = level("L1", 64, 64, 12);
        assert_eq!((l1.blocks(), l1.bytes()), (768, 48 << 10));
        let hierarchy = Hierarchy::new(
            vec![l1.clone()],
            Inclusion::Inclusive,
            vec![level("dTLB", 16, 4096, 6)],
        )
        .unwrap();
        assert_eq!(hierarchy.caches(), [l1]);
        assert_eq!(hierarchy.tlbs()[0].bytes(), 96 * 4096);
        assert_eq!(hierarchy.inclusion(), Inclusion::Inclusive);
    }

    #[test]
    fn what_no_machine_has_is_refused_with_its_reason() {
        use Inclusion::{Inclusive, NonInclusive, VictimLast};
        let (l1, l2) = (level("L1", 64, 64, 12), level("L2", 1024, 64, 16));
        let wide = level("L2", 1024, 128, 16);
        let page = |name, bytes| level(name, 16, bytes, 4);
        let many: Vec<CacheLevel> = (0..9).map(|i| level(&format!("L{i}"), 1, 64, 1)).collect();
        let none: [CacheLevel; 0] = [];
        let cases: [(&[CacheLevel], Inclusion, &[CacheLevel], &str); 18] = [
            (&[l1.clone(), l2.clone()], NonInclusive, &none, ""),
            (&[l1.clone(), l2.clone()], Inclusive, &none, ""),
            (&[l1.clone(), l2.clone()], VictimLast, &none, ""),
            (&[l1.clone(), wide.clone()], Inclusive, &none, ""),
            (&many[1..], NonInclusive, &none, ""),
            (&none, NonInclusive, &none, "0 caches"),
            (&many, NonInclusive, &none, "9 caches"),
            (&many[1..], NonInclusive, &many, "9 TLBs"),
            (&[l1.clone(), l1.clone()], NonInclusive, &none, "used twice"),
            (&[level("", 1, 64, 1)], NonInclusive, &none, "is empty"),
            (
                &[level("L\u{1b}[2J", 1, 64, 1)],
                NonInclusive,
                &none,
                "unprintable",
            ),
            (
                &[level("L1", 1, 8192, 1)],
                NonInclusive,
                &none,
                "blocks of 8192 bytes in L1",
            ),
            (
                &[wide.clone(), l1.clone()],
                NonInclusive,
                &none,
                "blocks of 64 bytes in L1 below",
            ),
            (
                std::slice::from_ref(&l1),
                NonInclusive,
                &[page("dTLB", 2048)],
                "pages of 2048 bytes",
            ),
            (
                std::slice::from_ref(&l1),
                NonInclusive,
                &[page("dTLB", 4096), page("STLB", 8192)],
                "different sizes",
            ),
            (
                &[l1.clone(), level("L2", 1 << 24, 64, 9)],
                NonInclusive,
                &none,
                "150995712 blocks",
            ),
            (
                &[level("L1", 1024, 64, 16), level("L2", 64, 64, 12)],
                Inclusive,
                &none,
                "L2 is inclusive but smaller than L1",
            ),
            (&[l1.clone(), wide], VictimLast, &none, "victim"),
        ];
        for (caches, inclusion, tlbs, reason) in cases {
            let found = refusal(caches, inclusion, tlbs);
            assert!(found.contains(reason), "{found:?} for {reason:?}");
            assert_eq!(found.is_empty(), reason.is_empty(), "{found}");
            assert_eq!(found.lines().count(), usize::from(!reason.is_empty()));
        }
        assert!(refusal(&[l1], VictimLast, &none).contains("victim"));
    }

    #[cfg(feature = "json")]
    #[test]
    fn a_hierarchy_is_read_back_as_it_was_written() {
        let mut l1 = level("L1", 64, 64, 12);
        l1.policy = ReplacementPolicy::TreePlru;
        for inclusion in [
            Inclusion::NonInclusive,
            Inclusion::Inclusive,
            Inclusion::VictimLast,
        ] {
            let hierarchy = Hierarchy::new(
                vec![l1.clone(), level("L2", 1024, 64, 16)],
                inclusion,
                vec![level("dTLB", 16, 4096, 6)],
            )
            .unwrap();
            let text = serde_json::to_string(&hierarchy).unwrap();
            assert_eq!(
                serde_json::from_str::<Hierarchy>(&text).unwrap(),
                hierarchy,
                "{text}"
            );
        }
    }

    #[cfg(feature = "json")]
    #[test]
    fn files_have_defaults_and_their_faults_are_named() {
        let l1 = r#"{"name":"L1","sets":64,"block_bytes":64,"ways":12}"#;
        let hierarchy: Hierarchy =
            serde_json::from_str(&format!(r#"{{"caches":[{l1}]}}"#)).unwrap();
        assert_eq!(hierarchy.inclusion(), Inclusion::NonInclusive);
        assert_eq!(hierarchy.caches()[0], level("L1", 64, 64, 12));
        assert!(hierarchy.tlbs().is_empty());
        for (text, reason) in [
            (format!(r#"{{"caches":[{l1}],"colour":1}}"#), "colour"),
            (format!(r#"{{"caches":[{l1},{l1}]}}"#), "used twice"),
            (r#"{"caches":[]}"#.to_owned(), "0 caches"),
            (r#"{"tlbs":[]}"#.to_owned(), "missing field `caches`"),
            (
                format!(r#"{{"caches":[{}]}}"#, l1.replace("12", "0")),
                "64 sets of 0 blocks",
            ),
            (
                format!(r#"{{"caches":[{}]}}"#, l1.replace("64", "60")),
                "60",
            ),
            (
                format!(
                    r#"{{"caches":[{}]}}"#,
                    l1.replace("12", r#"12,"policy":"fifo""#)
                ),
                "fifo",
            ),
            (
                format!(
                    r#"{{"caches":[{}]}}"#,
                    l1.replace("12", r#"12,"latency":4"#)
                ),
                "latency",
            ),
        ] {
            let error = serde_json::from_str::<Hierarchy>(&text).unwrap_err();
            assert!(error.to_string().contains(reason), "{error} for {text}");
        }
    }
}
