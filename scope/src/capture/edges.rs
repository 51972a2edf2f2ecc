//! Finds which pointers of a structure are followed: a loaded word that is the address of a chunk
//! is a pointer from the chunk that holds it to that one.

use std::collections::HashMap;

use crate::profile::{Edge, NEAR, Window};

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
            let followed = next.iter().any(|next| access.leads_to(next));
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
