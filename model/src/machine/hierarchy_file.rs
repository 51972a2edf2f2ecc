//! A [`Hierarchy`] in a machine file: every cache with sets, ways, block and size, which must
//! agree.
//!
//! ```text
//! "hierarchy": {
//!   "caches": [{"name": "L1", "bytes": 49152, "sets": 64, "ways": 12, "block_bytes": 64, "policy": "lru"}, ..],
//!   "inclusion": "non-inclusive" | "inclusive" | "victim-last",
//!   "tlbs":   [{"name": "dTLB", "bytes": 393216, "sets": 16, "ways": 6, "block_bytes": 4096, "policy": "lru"}, ..]
//! }
//! ```
//!
//! The size is redundant on purpose: files are written by hand too, and a size that is not the
//! product of the rest is the commonest mistake.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::geometry::CacheGeometry;
use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion, ReplacementPolicy};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HierarchyFile {
    caches: Vec<CacheFile>,
    #[serde(default)]
    inclusion: Inclusion,
    #[serde(default)]
    tlbs: Vec<CacheFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheFile {
    name: String,
    bytes: u64,
    sets: u64,
    ways: u64,
    block_bytes: u64,
    #[serde(default)]
    policy: ReplacementPolicy,
}

impl CacheFile {
    fn of(level: &CacheLevel) -> CacheFile {
        let geometry = level.geometry;
        CacheFile {
            name: level.name.clone(),
            bytes: level.bytes(),
            sets: geometry.sets(),
            ways: geometry.associativity(),
            block_bytes: geometry.block_bytes(),
            policy: level.policy,
        }
    }

    /// The level, or what is wrong with it.
    fn read(self) -> Result<CacheLevel, String> {
        let CacheFile {
            name,
            bytes,
            sets,
            ways,
            block_bytes,
            policy,
        } = self;
        // Names are checked with the whole hierarchy; until then they are shown escaped.
        let geometry = CacheGeometry::new(sets, block_bytes, ways)
            .map_err(|error| format!("{name:?}: {error}"))?;
        let level = CacheLevel {
            name,
            geometry,
            policy,
        };
        if level.bytes() != bytes {
            return Err(format!(
                "{:?}: {sets} sets of {ways} blocks of {block_bytes} bytes are {} bytes, not {bytes}",
                level.name,
                level.bytes()
            ));
        }
        Ok(level)
    }
}

pub(super) fn serialize<S: Serializer>(
    hierarchy: &Option<Hierarchy>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let file = hierarchy.as_ref().map(|hierarchy| HierarchyFile {
        caches: hierarchy.caches().iter().map(CacheFile::of).collect(),
        inclusion: hierarchy.inclusion(),
        tlbs: hierarchy.tlbs().iter().map(CacheFile::of).collect(),
    });
    file.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Hierarchy>, D::Error> {
    let Some(file) = Option::<HierarchyFile>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let levels = |files: Vec<CacheFile>| {
        let levels = files.into_iter().map(CacheFile::read);
        levels
            .collect::<Result<Vec<_>, _>>()
            .map_err(|message| D::Error::custom(format!("contradictory cache {message}")))
    };
    Hierarchy::new(levels(file.caches)?, file.inclusion, levels(file.tlbs)?)
        .map(Some)
        .map_err(D::Error::custom)
}
