//! The caches of a machine as they are built: sets, ways, replacement, and which cache holds what.
//!
//! A [`Hierarchy`] says which addresses compete for a place: the [simulator](crate::Simulator) runs
//! on it access by access, and the tiers that know sets predict the same misses from probabilities.
//!
//! ```text
//! caches   L1 -> L2 -> L3 -> memory        an access asks each in turn until one has the block
//! tlbs     dTLB -> STLB -> page walk       the same, with pages for blocks
//! ```
//!
//! As JSON, with the feature `json`:
//!
//! ```json
//! {
//!   "caches": [
//!     { "name": "L1", "sets": 64, "block_bytes": 64, "ways": 12, "policy": "tree-plru" },
//!     { "name": "L2", "sets": 2048, "block_bytes": 64, "ways": 16, "bytes": 2097152 }
//!   ],
//!   "inclusion": "non-inclusive",
//!   "tlbs": [{ "name": "dTLB", "sets": 16, "block_bytes": 4096, "ways": 6 }]
//! }
//! ```
//!
//! By default replacement is `lru`, inclusion `non-inclusive`, and there are no TLBs. A size in
//! `bytes` must be the product of the rest.

use crate::Error;
use crate::geometry::CacheGeometry;

/// The most caches, and the most translation buffers, that a hierarchy may have.
pub const MAX_CACHES: usize = 8;
/// The smallest page. The system chooses the address bits above it, so no block may be larger.
const MAX_BLOCK_BYTES: u64 = 4096;
/// In all levels together; 8 GiB of lines of 64 bytes.
const MAX_BLOCKS: u64 = 1 << 27;
/// Names are heads of columns.
const MAX_NAME_CHARS: usize = 32;

/// Which block of a full set gives way. Free ways are always taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "kebab-case"))]
pub enum ReplacementPolicy {
    /// The block that was used longest ago.
    #[default]
    Lru,
    /// The block that a binary tree of one bit for each pair of halves points to: a hardware form
    /// of LRU. A number of ways that is no power of two has the tree of the next one, which never
    /// points to ways that do not exist.
    TreePlru,
    /// Any block, each with the same probability.
    Random,
}

/// How the contents of caches depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "kebab-case"))]
pub enum Inclusion {
    /// A miss fills every cache that missed; caches evict without asking each other.
    #[default]
    NonInclusive,
    /// As non-inclusive, and what a cache evicts also leaves the caches above it.
    Inclusive,
    /// The last cache holds only what the one above it has evicted, and gives it up when it is
    /// asked for again; those above are non-inclusive.
    VictimLast,
}

/// One cache of a [`Hierarchy`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "json",
    serde(try_from = "json::Level", into = "json::Level")
)]
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
        self.geometry.blocks()
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
#[cfg_attr(feature = "json", serde(try_from = "json::Hierarchy"))]
pub struct Hierarchy {
    caches: Vec<CacheLevel>,
    inclusion: Inclusion,
    tlbs: Vec<CacheLevel>,
}

impl Hierarchy {
    /// Checks the invariants, and makes a hierarchy.
    ///
    /// # Errors
    /// An [`Error`] names the first invariant that is broken.
    pub fn new(
        caches: Vec<CacheLevel>,
        inclusion: Inclusion,
        tlbs: Vec<CacheLevel>,
    ) -> Result<Hierarchy, Error> {
        if let Some(what) = fault(&caches, inclusion, &tlbs) {
            return Err(refused(&what));
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

    /// How the contents of the caches depend on each other.
    pub fn inclusion(&self) -> Inclusion {
        self.inclusion
    }

    /// The translation buffers, the one next to the processor first; may be none.
    pub fn tlbs(&self) -> &[CacheLevel] {
        &self.tlbs
    }

    /// The cache above that of index `cache`, if the latter is a victim cache: the two hold
    /// different blocks.
    pub(crate) fn above_victim(&self, cache: usize) -> Option<&CacheLevel> {
        let is_victim = self.inclusion == Inclusion::VictimLast && cache + 1 == self.caches.len();
        self.caches.get(cache.checked_sub(1)?).filter(|_| is_victim)
    }
}

/// The first thing about these caches that no machine has.
fn fault(caches: &[CacheLevel], inclusion: Inclusion, tlbs: &[CacheLevel]) -> Option<String> {
    if caches.is_empty() || caches.len() > MAX_CACHES || tlbs.len() > MAX_CACHES {
        let (caches, tlbs) = (caches.len(), tlbs.len());
        return Some(format!(
            "{caches} caches and {tlbs} TLBs, not 1 to {MAX_CACHES} and at most {MAX_CACHES}"
        ));
    }
    let block_bytes = |level: &CacheLevel| level.geometry.block_bytes();
    for level in caches {
        let (name, bytes) = (&level.name, block_bytes(level));
        if bytes > MAX_BLOCK_BYTES {
            return Some(format!(
                "blocks of {bytes} bytes in {name:?}, more than a page of {MAX_BLOCK_BYTES}"
            ));
        }
    }
    for pair in caches.windows(2) {
        let [above, below] = [&pair[0], &pair[1]];
        let names = format!("{:?} is below {:?}", below.name, above.name);
        if block_bytes(above) > block_bytes(below) {
            return Some(format!("{names}, which has larger blocks"));
        }
        if inclusion == Inclusion::Inclusive && below.bytes() < above.bytes() {
            return Some(format!("{names} and inclusive, but smaller"));
        }
    }
    let has_victim = match caches {
        [.., above, last] => block_bytes(above) == block_bytes(last),
        _ => false,
    };
    if inclusion == Inclusion::VictimLast && !has_victim {
        return Some("a victim cache needs one above it with blocks of the same size".to_owned());
    }
    for level in tlbs {
        let bytes = block_bytes(level);
        if bytes < MAX_BLOCK_BYTES || bytes != block_bytes(&tlbs[0]) {
            return Some(format!(
                "pages of {bytes} bytes in {:?}, fewer than {MAX_BLOCK_BYTES} or not those of {:?}",
                level.name, tlbs[0].name
            ));
        }
    }
    // No overflow: a geometry has fewer than 2^54 blocks.
    let blocks: u64 = caches.iter().chain(tlbs).map(CacheLevel::blocks).sum();
    if blocks > MAX_BLOCKS {
        return Some(format!(
            "room for {blocks} blocks, more than {MAX_BLOCKS} in all"
        ));
    }
    name_fault(caches).or_else(|| name_fault(tlbs))
}

fn name_fault(levels: &[CacheLevel]) -> Option<String> {
    levels.iter().enumerate().find_map(|(i, CacheLevel { name, .. })| {
        let chars = name.chars().count();
        if chars == 0 || chars > MAX_NAME_CHARS || name.contains(char::is_control) {
            let start: String = name.chars().take(MAX_NAME_CHARS).collect();
            return Some(format!(
                "a level's name {start:?} is empty, unprintable or longer than {MAX_NAME_CHARS} \
                 characters"
            ));
        }
        let is_used = levels[..i].iter().any(|other| other.name == *name);
        is_used.then(|| format!("the name {name:?} is used twice"))
    })
}

fn refused(what: &str) -> Error {
    Error::new(format!("no machine has such caches: {what}"))
}

#[cfg(feature = "json")]
mod json {
    //! Caches as files name them.

    use serde::{Deserialize, Serialize};

    use super::{CacheLevel, Inclusion, ReplacementPolicy, refused};
    use crate::Error;
    use crate::geometry::CacheGeometry;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Hierarchy {
        caches: Vec<CacheLevel>,
        #[serde(default)]
        inclusion: Inclusion,
        #[serde(default)]
        tlbs: Vec<CacheLevel>,
    }

    impl TryFrom<Hierarchy> for super::Hierarchy {
        type Error = Error;

        fn try_from(file: Hierarchy) -> Result<super::Hierarchy, Error> {
            super::Hierarchy::new(file.caches, file.inclusion, file.tlbs)
        }
    }

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub(super) struct Level {
        name: String,
        /// Redundant: a check of files that are written by hand.
        bytes: Option<u64>,
        sets: u64,
        ways: u64,
        block_bytes: u64,
        #[serde(default)]
        policy: ReplacementPolicy,
    }

    impl TryFrom<Level> for CacheLevel {
        type Error = Error;

        fn try_from(file: Level) -> Result<CacheLevel, Error> {
            // Names are checked with the whole hierarchy; until then they are shown escaped.
            let fault = |what: String| refused(&format!("{:?}: {what}", file.name));
            let geometry = CacheGeometry::new(file.sets, file.block_bytes, file.ways)
                .map_err(|error| fault(error.to_string()))?;
            let product = geometry.blocks() * geometry.block_bytes();
            if let Some(bytes) = file.bytes.filter(|&bytes| bytes != product) {
                return Err(fault(format!(
                    "{} sets of {} blocks of {} bytes are {product} bytes, not {bytes}",
                    file.sets, file.ways, file.block_bytes
                )));
            }
            Ok(CacheLevel {
                name: file.name,
                geometry,
                policy: file.policy,
            })
        }
    }

    impl From<CacheLevel> for Level {
        fn from(level: CacheLevel) -> Level {
            Level {
                bytes: Some(level.bytes()),
                sets: level.geometry.sets(),
                ways: level.geometry.associativity(),
                block_bytes: level.geometry.block_bytes(),
                name: level.name,
                policy: level.policy,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Inclusion::{Inclusive, NonInclusive, VictimLast};
    use super::*;

    fn level(name: &str, sets: u64, block_bytes: u64, ways: u64) -> CacheLevel {
        CacheLevel::lru(name, CacheGeometry::new(sets, block_bytes, ways).unwrap())
    }

    #[test]
    fn what_no_machine_has_is_refused_with_its_reason() {
        let check = |caches: &[&CacheLevel], inclusion, tlbs: &[&CacheLevel], reason: &str| {
            let owned = |levels: &[&CacheLevel]| levels.iter().copied().cloned().collect();
            let found = Hierarchy::new(owned(caches), inclusion, owned(tlbs)).err();
            let found = found.map_or_else(String::new, |error| error.to_string());
            assert!(found.contains(reason), "{found:?} for {reason:?}");
            let lines = usize::from(!reason.is_empty());
            assert_eq!(found.lines().count(), lines, "{found}");
        };
        let (l1, l2) = (level("L1", 64, 64, 12), level("L2", 1024, 64, 16));
        let (wide, large) = (level("L2", 1024, 128, 16), level("L2", 1 << 24, 64, 9));
        let (small, pages) = (level("L3", 64, 64, 12), level("dTLB", 16, 4096, 4));
        let many: Vec<CacheLevel> = (0..9).map(|i| level(&format!("L{i}"), 1, 64, 1)).collect();
        let many: Vec<&CacheLevel> = many.iter().collect();
        let [half, larger] = [2048, 8192].map(|bytes| level("STLB", 16, bytes, 4));
        let [empty, odd] = ["", "\u{1b}[2J"].map(|name| level(name, 1, 64, 1));
        check(&[&l1, &l2], NonInclusive, &[], "");
        check(&[&l1, &l2], Inclusive, &[&pages], "");
        check(&[&l1, &l2], VictimLast, &[], "");
        check(&[&l1, &wide], Inclusive, &[], "");
        check(&many[..8], NonInclusive, &[], "");
        check(&[], NonInclusive, &[], "0 caches");
        check(&many, NonInclusive, &[], "9 caches");
        check(&many[..8], NonInclusive, &many, "9 TLBs");
        check(&[&l1, &l1], NonInclusive, &[], "used twice");
        check(&[&empty], NonInclusive, &[], "is empty");
        check(&[&odd], NonInclusive, &[], "unprintable");
        check(&[&larger], NonInclusive, &[], "blocks of 8192 bytes");
        check(&[&wide, &l1], NonInclusive, &[], "larger blocks");
        check(&[&l1], NonInclusive, &[&half], "pages of 2048 bytes");
        check(
            &[&l1],
            NonInclusive,
            &[&pages, &larger],
            "not those of \"dTLB\"",
        );
        check(&[&l1, &large], NonInclusive, &[], "150995712 blocks");
        check(&[&l2, &small], Inclusive, &[], "inclusive, but smaller");
        check(&[&l1, &wide], VictimLast, &[], "victim");
        check(&[&l1], VictimLast, &[], "victim");
        assert_eq!((l1.blocks(), l1.bytes()), (768, 48 << 10));
        for (sets, block_bytes, ways) in [
            (0, 64, 1),
            (3, 64, 1),
            (64, 48, 1),
            (64, 4, 1),
            (64, 64, 0),
            (64, 64, 1 << 17),
            (1 << 63, 64, 1),
            (1 << 40, 64, 1),
        ] {
            assert!(CacheGeometry::new(sets, block_bytes, ways).is_err());
        }
    }

    #[cfg(feature = "json")]
    #[test]
    fn files_are_read_back_have_defaults_and_their_faults_are_named() {
        let mut plru = level("L1", 64, 64, 12);
        plru.policy = ReplacementPolicy::TreePlru;
        for inclusion in [NonInclusive, Inclusive, VictimLast] {
            let caches = vec![plru.clone(), level("L2", 1024, 64, 16)];
            let tlbs = vec![level("dTLB", 16, 4096, 6)];
            let hierarchy = Hierarchy::new(caches, inclusion, tlbs).unwrap();
            let text = serde_json::to_string(&hierarchy).unwrap();
            assert_eq!(serde_json::from_str::<Hierarchy>(&text).unwrap(), hierarchy);
        }
        let l1 = r#"{"name":"L1","sets":64,"block_bytes":64,"ways":12}"#;
        let read = |text: &str| serde_json::from_str::<Hierarchy>(text);
        let expected = Hierarchy::new(vec![level("L1", 64, 64, 12)], NonInclusive, vec![]);
        let plain = read(&format!(r#"{{"caches":[{l1}]}}"#));
        assert_eq!(plain.unwrap(), expected.unwrap());
        let with = |from: &str, to: &str| format!(r#"{{"caches":[{}]}}"#, l1.replace(from, to));
        for (text, reason) in [
            (format!(r#"{{"caches":[{l1}],"colour":1}}"#), "colour"),
            (format!(r#"{{"caches":[{l1},{l1}]}}"#), "used twice"),
            (r#"{"caches":[]}"#.to_owned(), "0 caches"),
            (r#"{"tlbs":[]}"#.to_owned(), "missing field `caches`"),
            (with("12", "0"), "64 sets of 0 blocks"),
            (with("64", "60"), "60"),
            (with("12", r#"12,"policy":"fifo""#), "fifo"),
            (with("12", r#"12,"latency":4"#), "latency"),
            (with("12", r#"12,"bytes":4"#), "are 49152 bytes, not 4"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error} for {text}");
        }
    }
}
