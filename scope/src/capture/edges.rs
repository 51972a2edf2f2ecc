//! Finds which pointers of a structure are followed: a loaded word that is the address of a chunk
//! is a pointer from the chunk that holds it to that one.
//!
//! The capture names the address that was loaded and not the chunk there, which may be another
//! one later. What tells it is, in this order: the next access to that chunk in the same window,
//! the chunk that is alive there at the end, the last access before.

use std::collections::HashMap;

use crate::profile::{Chunk, Edge, Window};

/// A pointer counts as followed if its chunk is one of so many accesses that come next.
const NEAR: usize = 16;

/// Where a pointer leads.
#[derive(Clone, Copy)]
struct Target {
    site: u32,
    followed: bool,
}

/// Edges between sites, most used first.
pub(super) fn find(windows: &[Window], chunks: &[Chunk]) -> Vec<Edge> {
    let mut alive: Vec<&Chunk> = chunks.iter().collect();
    alive.sort_unstable_by_key(|chunk| chunk.address);
    let mut edges: HashMap<(u32, u32, u32), (u64, u64)> = HashMap::new();
    for window in windows {
        for (access, target) in window.accesses.iter().zip(targets(window, &alive)) {
            let Some(target) = target.filter(|_| access.site != u32::MAX) else {
                continue;
            };
            let key = (access.site, access.offset, target.site);
            let (loads, followed) = edges.entry(key).or_default();
            *loads += 1;
            *followed += u64::from(target.followed);
        }
    }
    let edge = |((from, offset, to), (loads, followed))| Edge {
        from,
        offset,
        to,
        loads,
        followed,
    };
    let mut edges: Vec<Edge> = edges.into_iter().map(edge).collect();
    edges.sort_unstable_by_key(|edge| {
        (
            u64::MAX - edge.loads,
            u64::MAX - edge.followed,
            edge.from,
            edge.offset,
            edge.to,
        )
    });
    edges
}

/// The target of each access's pointer, where there is one and its site can be known.
fn targets(window: &Window, alive: &[&Chunk]) -> Vec<Option<Target>> {
    let accesses = &window.accesses;
    let mut targets = vec![None; accesses.len()];
    // By address, of chunks and within them: the access that comes next.
    let mut next: HashMap<u64, (usize, u32)> = HashMap::new();
    for (at, access) in accesses.iter().enumerate().rev() {
        if access.pointer != 0 {
            let living = living(access.pointer, alive);
            let start = living.map_or(access.pointer, |chunk| chunk.address);
            let seen = next.get(&access.pointer).or_else(|| next.get(&start));
            targets[at] = match seen {
                Some(&(when, site)) => Some(Target {
                    site,
                    followed: when - at <= NEAR,
                }),
                None => living.map(|chunk| Target {
                    site: chunk.site,
                    followed: false,
                }),
            };
        }
        if access.site != u32::MAX {
            next.insert(access.address, (at, access.site));
            next.insert(
                access.address.wrapping_sub(u64::from(access.offset)),
                (at, access.site),
            );
        }
    }
    let mut before: HashMap<u64, u32> = HashMap::new();
    for (access, target) in accesses.iter().zip(&mut targets) {
        if access.site != u32::MAX {
            before.insert(access.address, access.site);
            before.insert(
                access.address.wrapping_sub(u64::from(access.offset)),
                access.site,
            );
        }
        if access.pointer != 0 && target.is_none() {
            let site = before.get(&access.pointer);
            *target = site.map(|&site| Target {
                site,
                followed: false,
            });
        }
    }
    targets
}

/// The chunk that holds `address` at the end; `alive` is in order of address.
fn living<'c>(address: u64, alive: &[&'c Chunk]) -> Option<&'c Chunk> {
    let after = alive.partition_point(|chunk| chunk.address <= address);
    let chunk = alive[after.checked_sub(1)?];
    (address - chunk.address < chunk.size.max(1)).then_some(chunk)
}
