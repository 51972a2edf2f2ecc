//! Caches as sets and ways, from sizes that systems report.
//!
//! Last-level caches are made of slices, and an unpublished hash of the address chooses the slice.
//! Their number of sets is no power of two, so they become caches of the same size whose sets are a
//! power of two, with at least as many ways.

use super::{CacheFacts, Source, data_caches};
use crate::geometry::CacheGeometry;
use crate::hierarchy::{CacheLevel, Hierarchy, Inclusion};

/// Ways of a cache that does not say.
const WAYS_UNKNOWN: u64 = 8;

/// A cache of exactly `blocks` blocks whose sets are a power of two: the most sets that leave at
/// least `ways` ways. `None` when there is none.
pub(crate) fn fold(blocks: u64, block_bytes: u64, ways: u64) -> Option<CacheGeometry> {
    let ways = ways.max(1).min(blocks);
    // The largest power of two that divides all blocks.
    let mut sets = blocks & blocks.wrapping_neg();
    while sets > 1 && blocks / sets < ways {
        sets /= 2;
    }
    CacheGeometry::new(sets, block_bytes, blocks.checked_div(sets)?).ok()
}

/// The geometry of a cache, and whether it is as the system reports it.
fn geometry(cache: &CacheFacts) -> Option<(CacheGeometry, bool)> {
    let ways = u64::from(cache.ways);
    let blocks = cache.size_bytes / cache.line_bytes;
    let wanted = if ways == 0 { WAYS_UNKNOWN } else { ways };
    let folded = fold(blocks, cache.line_bytes, wanted)?;
    Some((folded, folded.associativity() == ways))
}

/// What the geometry of these caches leaves open, a line each.
pub(super) fn doubts(caches: &[CacheFacts], inclusion: Source) -> Vec<String> {
    let mut doubts = Vec::new();
    for cache in data_caches(caches) {
        let name = format!("L{}", cache.level);
        let Some((folded, is_reported)) = geometry(cache) else {
            doubts.push(format!("{name} has a size that no sets and ways make up"));
            continue;
        };
        let what = match (cache.sets, cache.ways) {
            (_, 0) => "does not say how many ways it has".to_owned(),
            (0, ways) => format!("has {ways} ways in sets that are no power of two"),
            (sets, ways) => format!("has {sets} sets of {ways} ways, chosen by a hash"),
        };
        let (sets, ways) = (folded.sets(), folded.associativity());
        if !is_reported {
            doubts.push(format!(
                "{name} {what}: where sets matter, it counts as {sets} sets of {ways} ways"
            ));
        }
    }
    if inclusion == Source::Default && data_caches(caches).count() > 1 {
        let what = "it is not known whether the last-level cache is inclusive: taken as not";
        doubts.push(what.to_owned());
    }
    doubts
}

/// The data caches as a hierarchy.
pub(super) fn hierarchy(caches: &[CacheFacts], inclusion: Inclusion) -> Option<Hierarchy> {
    let levels = data_caches(caches)
        .map(|cache| {
            let (geometry, _) = geometry(cache)?;
            Some(CacheLevel::lru(&format!("L{}", cache.level), geometry))
        })
        .collect::<Option<Vec<_>>>()?;
    Hierarchy::new(levels, inclusion, Vec::new()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    #[test]
    fn known_caches_keep_their_geometry() {
        for (blocks, ways, expected) in [
            (768, 12, Some((64, 12))),
            (32_768, 16, Some((2048, 16))),
            // 260 MB in 13 times 2^14 sets of 20 ways.
            (212_992 * 20, 20, Some((1 << 16, 65))),
            // 30 MB in 10 slices of 4096 sets of 12 ways.
            (40_960 * 12, 12, Some((1 << 15, 15))),
            (7, 8, Some((1, 7))),
            (0, 8, None),
            // Too many ways.
            ((1 << 20) + 1, 8, None),
        ] {
            let folded = fold(blocks, 64, ways);
            let found = folded.map(|geometry| (geometry.sets(), geometry.associativity()));
            assert_eq!(found, expected);
        }
    }

    quickcheck! {
        fn folding_keeps_the_size(blocks: u32, ways: u8) -> bool {
            let blocks = u64::from(blocks);
            fold(blocks, 64, u64::from(ways)).is_none_or(|geometry| {
                geometry.sets() * geometry.associativity() == blocks
                    && geometry.associativity() >= u64::from(ways).min(blocks)
            })
        }
    }
}
