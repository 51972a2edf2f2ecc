//! Finds which pointers of a structure are followed: a loaded word that is the address of a chunk
//! is a pointer from the chunk that holds it to that one.

use std::collections::HashMap;

use crate::profile::{Access, Edge, Window};

/// A pointer counts as followed if its chunk is one of so many accesses that come next.
const NEAR: usize = 16;

/// Edges between sites, most used first.
pub(super) fn find(windows: &[Window]) -> Vec<Edge> {
    let mut edges: HashMap<(u32, u32, u32), (u64, u64)> = HashMap::new();
    for window in windows {
        let accesses = &window.accesses;
        for (at, access) in accesses.iter().enumerate() {
            if access.site == u32::MAX || access.target == u32::MAX {
                continue;
            }
            let next = &accesses[at + 1..accesses.len().min(at + 1 + NEAR)];
            let followed = next.iter().any(|next| leads_to(access, next));
            let key = (access.site, access.offset, access.target);
            let (loads, follows) = edges.entry(key).or_default();
            *loads += 1;
            *follows += u64::from(followed);
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
        let Edge {
            from,
            offset,
            to,
            loads,
            followed,
        } = *edge;
        (u64::MAX - loads, u64::MAX - followed, from, offset, to)
    });
    edges
}

/// Whether `next` accesses what the pointer that `load` has loaded points to, or the chunk that
/// begins there.
fn leads_to(load: &Access, next: &Access) -> bool {
    let start = next.address.wrapping_sub(u64::from(next.offset));
    next.site == load.target && [start, next.address].contains(&load.pointer)
}
