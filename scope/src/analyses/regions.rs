//! Regions as a tree, and which caches their footprints fit.

use std::cmp::Reverse;

use ccmodel::Machine;
use serde::Serialize;

use crate::analyses::units::ratio;
use crate::profile::{Frame, Profile, Region, RegionKind};
use crate::symbols::is_library;

/// A part of a footprint that is nearly all of it.
const NEARLY_ALL: f64 = 0.9;
/// A region is worth blocking if its parts find so much of what they touch touched before, if
/// they come to each byte again so often, and if there are so many.
const REUSED: f64 = 0.5;
const AGAIN: f64 = 2.0;
const PARTS: u64 = 4;
/// Without parts, if it accesses each [word](Region::word) so often by itself.
const TIMES: f64 = 8.0;

/// Lists of regions below each other.
#[derive(Clone, Debug)]
pub struct Tree {
    /// Those without a caller.
    pub roots: Vec<usize>,
    /// For each region those that it calls, the largest mean footprint first.
    pub children: Vec<Vec<usize>>,
}

impl Tree {
    /// The tree of a profile's regions.
    #[must_use]
    pub fn new(profile: &Profile) -> Tree {
        let regions = &profile.regions;
        let (mut roots, mut children) = (Vec::new(), vec![Vec::new(); regions.len()]);
        for (index, region) in regions.iter().enumerate() {
            match region.parent {
                Some(parent) => children[parent as usize].push(index),
                None => roots.push(index),
            }
        }
        for list in children.iter_mut().chain([&mut roots]) {
            list.sort_by(|&a, &b| {
                let [a, b] = [a, b].map(|it| regions[it].mean_bytes());
                b.total_cmp(&a)
            });
        }
        Tree { roots, children }
    }

    /// The region that stands for `index` where callers that add nothing are left out: the first on
    /// the way down that is called otherwise than its caller, or touches less.
    #[must_use]
    pub fn without_wrappers(&self, profile: &Profile, mut index: usize) -> usize {
        loop {
            let [only] = self.children[index][..] else {
                return index;
            };
            let [own, its] = [index, only].map(|it| &profile.regions[it]);
            let adds = own.kind == RegionKind::Span
                || own.invocations != its.invocations
                || ratio(its.bytes.total, own.bytes.total) < NEARLY_ALL;
            if adds {
                return index;
            }
            index = only;
        }
    }
}

impl Region {
    /// Bytes that an invocation touches.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        ratio(self.bytes.total, self.invocations)
    }

    /// Bytes that are likely to be accessed at once: those that it touches of a line, at most 8.
    #[must_use]
    pub fn word(&self) -> f64 {
        ratio(self.bytes.total, self.blocks.total).min(8.0)
    }

    /// How often each word of it is accessed.
    fn times(&self, accesses: u64) -> f64 {
        self.word() * ratio(accesses, self.bytes.total)
    }

    fn accesses(&self) -> u64 {
        self.reads.saturating_add(self.writes)
    }

    /// Whether it is of the program, not a thread or of a standard library.
    fn is_own(&self) -> bool {
        let frame = || Frame {
            function: self.name.clone(),
            file: self.file.clone(),
            ..Frame::default()
        };
        match self.kind {
            RegionKind::Thread => false,
            RegionKind::Function => !is_library(&frame()),
            RegionKind::Span => true,
        }
    }

    /// What that takes in a cache: whole lines, in bytes.
    #[must_use]
    pub fn mean_in_lines(&self) -> f64 {
        ratio(self.blocks.total, self.invocations) * crate::capture_format::BLOCK as f64
    }
}

/// A cache and its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// `L1`, `L2`, `L3`.
    pub name: String,
    /// What it holds.
    pub bytes: u64,
}

/// The caches of a machine, the smallest first; none if they are not known.
#[must_use]
pub fn caches(machine: &Machine) -> Vec<Cache> {
    let hierarchy = machine.hierarchy.as_ref();
    let caches = hierarchy.map_or(&[][..], |hierarchy| hierarchy.caches());
    let cache = |level: &ccmodel::CacheLevel| Cache {
        name: level.name.clone(),
        bytes: level.blocks() * level.geometry.block_bytes(),
    };
    caches.iter().map(cache).collect()
}

/// The smallest cache that holds so many bytes.
#[must_use]
pub fn fits(caches: &[Cache], bytes: f64) -> Option<&Cache> {
    caches.iter().find(|cache| bytes <= cache.bytes as f64)
}

/// What regions tell, in words that a view may print.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// Nearly all of the program's footprint is that of one region, and of no part of it.
    WorkingSet {
        /// Index of the region.
        region: usize,
    },
    /// A region overflows a cache, and its parts do not; they come back to the same bytes.
    Block {
        /// Index of the region.
        region: usize,
        /// Index of what it calls.
        part: usize,
        /// The largest cache that it overflows.
        cache: Cache,
        /// Share of the bytes that this part touches which the region had touched before.
        reused: f64,
    },
    /// A region overflows a cache, and accesses the same bytes again and again by itself.
    Again {
        /// Index of the region.
        region: usize,
        /// The largest cache that it overflows.
        cache: Cache,
        /// Accesses of each [word](Region::word) that it touches.
        times: f64,
    },
}

/// Findings, those of the largest footprints first.
#[must_use]
pub fn findings(profile: &Profile, tree: &Tree, caches: &[Cache]) -> Vec<Finding> {
    let regions = &profile.regions;
    let mut found = Vec::new();
    if let Some(&root) = tree.roots.first() {
        let all = regions[root].bytes.max as f64;
        let mut at = root;
        while let Some(&next) = tree.children[at].first() {
            if regions[next].mean_bytes() < NEARLY_ALL * all {
                break;
            }
            at = next;
        }
        if at != root && all > 0.0 {
            found.push(Finding::WorkingSet { region: at });
        }
    }
    // What is called of the standard library counts as its caller's own.
    let own: Vec<bool> = regions.iter().map(Region::is_own).collect();
    let mut called = vec![0_u64; regions.len()];
    for (index, region) in regions.iter().enumerate().rev() {
        let accesses = match own[index] {
            true => region.accesses(),
            false => called[index],
        };
        if let Some(parent) = region.parent {
            let sum = &mut called[parent as usize];
            *sum = sum.saturating_add(accesses);
        }
    }
    let mut blocks: Vec<(f64, Finding)> = Vec::new();
    for (index, region) in regions.iter().enumerate().filter(|&(index, _)| own[index]) {
        let whole = region.mean_in_lines();
        let Some(cache) = caches.iter().rfind(|cache| whole > cache.bytes as f64) else {
            continue;
        };
        let part = { tree.children[index].iter() }
            .copied()
            .filter(|&part| {
                let part = &regions[part];
                let calls = region.invocations.saturating_mul(PARTS);
                part.invocations >= calls && part.mean_in_lines() <= cache.bytes as f64
            })
            .max_by_key(|&part| (regions[part].bytes.total, Reverse(part)));
        let times = region.times(region.accesses().saturating_sub(called[index]));
        if times >= TIMES {
            let cache = cache.clone();
            let finding = Finding::Again {
                region: index,
                cache,
                times,
            };
            blocks.push((times * region.bytes.total as f64, finding));
            continue;
        }
        let reused = |part: usize| ratio(regions[part].reused, regions[part].bytes.total);
        let Some(part) = part.filter(|&part| reused(part) >= REUSED) else {
            continue;
        };
        // A part that accesses each word that often is a block already.
        if regions[part].times(regions[part].accesses()) >= TIMES {
            continue;
        }
        // What it brings into the cache more than once.
        let again = reused(part) * regions[part].bytes.total as f64;
        if again >= AGAIN * region.bytes.total as f64 {
            let (cache, reused) = (cache.clone(), reused(part));
            let finding = Finding::Block {
                region: index,
                part,
                cache,
                reused,
            };
            blocks.push((again, finding));
        }
    }
    blocks.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.extend(blocks.into_iter().map(|(_, finding)| finding));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::{profile, regions};

    fn matrices() -> Profile {
        Profile {
            regions: regions(),
            ..profile()
        }
    }

    #[test]
    fn a_region_whose_parts_come_back_is_to_be_blocked() {
        let profile = matrices();
        let tree = Tree::new(&profile);
        assert_eq!(
            tree.children,
            [vec![1], vec![2, 4], vec![3], vec![], vec![5], vec![]]
        );
        assert_eq!(tree.without_wrappers(&profile, 0), 1);
        let cache = |name: &str, bytes| Cache {
            name: name.to_owned(),
            bytes,
        };
        let caches = [
            cache("L1", 48 << 10),
            cache("L2", 1 << 20),
            cache("L3", 32 << 20),
        ];
        let found = findings(&profile, &tree, &caches);
        let expected = Finding::Block {
            region: 2,
            part: 3,
            cache: caches[1].clone(),
            reused: 0.98,
        };
        assert_eq!(found, [Finding::WorkingSet { region: 2 }, expected]);
        assert_eq!(fits(&caches, 100_000.0).unwrap().name, "L2");
        assert_eq!(fits(&caches, 1e9), None);
        let mut alone = matrices();
        alone.regions[2].reads = 100_000_000;
        alone.regions[3].reads = 0;
        let found = findings(&alone, &Tree::new(&alone), &caches);
        assert!(
            matches!(found[1], Finding::Again { region: 2, times, .. } if times > 266.0),
            "{found:?}"
        );
        // A byte of each line: the same accesses, by bytes.
        let mut bytes = alone.clone();
        bytes.regions[2].bytes.total = bytes.regions[2].blocks.total;
        let found = findings(&bytes, &Tree::new(&bytes), &caches);
        assert!(
            matches!(found[1], Finding::Again { region: 2, times, .. } if times > 2133.0),
            "{found:?}"
        );
        // What `core` does for a region counts as the region's own.
        let mut library = matrices();
        library.regions[3].name = "<core::ops::Range<u32> as Iterator>::fold::<u32>".to_owned();
        for region in &mut library.regions[1..=3] {
            region.reads = 100_000_000;
        }
        let found = findings(&library, &Tree::new(&library), &caches);
        assert!(
            matches!(found[1], Finding::Again { region: 2, times, .. } if times > 266.0),
            "{found:?}"
        );
        library.regions[2].name = "core::ops::function::FnOnce::call_once".to_owned();
        let found = findings(&library, &Tree::new(&library), &caches);
        assert!(
            matches!(found[1], Finding::Again { region: 1, .. }),
            "{found:?}"
        );
        let mut blocked = matrices();
        blocked.regions[3].reads = 1000 * 100_000;
        let found = findings(&blocked, &Tree::new(&blocked), &caches);
        assert!(
            !{ found.iter() }.any(|it| matches!(it, Finding::Block { .. })),
            "{found:?}"
        );
        // Parts that come to new bytes gain nothing.
        let mut streaming = profile;
        streaming.regions[3].reused = 0;
        let found = findings(&streaming, &Tree::new(&streaming), &caches);
        assert_eq!(found, [Finding::WorkingSet { region: 2 }]);
    }

    #[test]
    fn a_profile_without_regions_has_no_findings() {
        let profile = profile();
        let tree = Tree::new(&profile);
        assert!(tree.roots.is_empty() && findings(&profile, &tree, &[]).is_empty());
    }
}
