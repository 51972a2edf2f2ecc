//! Data structures, as the pointers between chunks show them.
//!
//! Chunks of one type whose fields lead to chunks of the same type are the nodes of a structure.
//! How many such fields there are, and whether one leads back where another came from, says which.
//! A table from many of whose places pointers lead to the nodes of a list makes them a hash chain.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::analyses::types::type_name;
use crate::analyses::units::{ratio, sum};
use crate::profile::{Access, Profile};

/// A field of fewer of the nodes' loads than this part leads there by accident.
const MIN_SHARE: f64 = 0.01;
/// Fewer loads show no structure.
const MIN_LOADS: u64 = 16;
/// A table of a hash map has more places than a node has fields.
const TABLE_PLACES: usize = 16;
/// A field leads back if at least this part of the pointers that could be checked does.
const BACK_PART: f64 = 0.8;

/// What kind of structure nodes form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// One field leads on.
    List,
    /// Two fields lead on, each back where the other came from.
    DoublyLinkedList,
    /// Several fields lead on.
    Tree,
    /// Several fields lead on, and one leads back.
    TreeWithParents,
    /// Lists, to which the places of a table lead.
    HashChain,
}

/// Nodes that point to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Structure {
    /// What they form.
    pub shape: Shape,
    /// Sites that allocate the nodes.
    pub sites: Vec<u32>,
    /// The site of the table of a hash chain.
    pub table: Option<u32>,
    /// Offsets of the fields that lead from node to node.
    pub offsets: Vec<u32>,
    /// Those of them that lead back to where another came from.
    pub back: Vec<u32>,
    /// Loads of these fields in the windows.
    pub loads: u64,
}

/// The structures, the most loaded first.
#[must_use]
pub fn structures(profile: &Profile) -> Vec<Structure> {
    let groups = groups(profile);
    let group_of = |site: u32| groups.get(&site).copied().unwrap_or(site);
    let mut fields: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
    let mut sites: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    // Places of other chunks that lead to nodes, by node and by the site of those chunks.
    let mut places: BTreeMap<u32, BTreeMap<u32, BTreeSet<u32>>> = BTreeMap::new();
    for edge in &profile.edges {
        let [from, to] = [edge.from, edge.to].map(group_of);
        if from == to {
            let offset = element_offset(profile, edge.from, edge.offset);
            let loads = fields.entry(from).or_default().entry(offset).or_default();
            *loads = loads.saturating_add(edge.loads);
            sites.entry(from).or_default().extend([edge.from, edge.to]);
        } else {
            let of_site = places.entry(to).or_default().entry(edge.from).or_default();
            of_site.insert(edge.offset);
        }
    }
    let inverse = inverse(profile, &group_of);
    let mut found = Vec::new();
    for (group, offsets) in fields {
        let loads = sum(offsets.values().copied());
        let mut used: Vec<u32> = { offsets.iter() }
            .filter(|&(_, &of_field)| ratio(of_field, loads) >= MIN_SHARE)
            .map(|(&offset, _)| offset)
            .collect();
        used.sort_unstable();
        if loads < MIN_LOADS || used.len() > TABLE_PLACES {
            continue;
        }
        let leads_back = |&offset: &u32| inverse.get(&(group, offset)).is_some_and(|&it| it);
        let back: Vec<u32> = used.iter().copied().filter(leads_back).collect();
        let table = places.get(&group).and_then(|tables| {
            let largest = tables.iter().max_by_key(|(_, places)| places.len())?;
            (largest.1.len() > TABLE_PLACES).then_some(*largest.0)
        });
        let shape = match (used.len(), back.len()) {
            (0 | 1, _) if table.is_some() => Shape::HashChain,
            (0 | 1, _) => Shape::List,
            (2, 1..) => Shape::DoublyLinkedList,
            (_, 0) => Shape::Tree,
            _ => Shape::TreeWithParents,
        };
        found.push(Structure {
            shape,
            sites: sites.remove(&group).into_iter().flatten().collect(),
            table: table.filter(|_| shape == Shape::HashChain),
            offsets: used,
            back,
            loads,
        });
    }
    found.sort_by(|a, b| b.loads.cmp(&a.loads).then(a.sites.cmp(&b.sites)));
    found
}

/// Sites that allocate the same type, by the first of them.
fn groups(profile: &Profile) -> HashMap<u32, u32> {
    let mut first: HashMap<&str, u32> = HashMap::new();
    let named = (0..).zip(&profile.sites).filter_map(|(id, site)| {
        let name = type_name(profile, site.type_id)?;
        // Nothing is known of bytes.
        (name != "bytes").then_some((id, name))
    });
    named
        .map(|(id, name): (u32, &str)| (id, *first.entry(name).or_insert(id)))
        .collect()
}

/// In a vector, that in the element.
pub(crate) fn element_offset(profile: &Profile, site: u32, offset: u32) -> u32 {
    let size = usize::try_from(site)
        .ok()
        .and_then(|site| profile.sites.get(site)?.type_id)
        .and_then(|id| profile.types.get(usize::try_from(id).ok()?)?.size)
        .and_then(|size| u32::try_from(size).ok());
    match size {
        Some(size) if size > 0 => offset % size,
        _ => offset,
    }
}

/// Whether a field of a group leads back: its pointers lead to the chunk that the pointer of
/// another field led from.
fn inverse(profile: &Profile, group_of: &dyn Fn(u32) -> u32) -> HashMap<(u32, u32), bool> {
    let mut counts: HashMap<(u32, u32), [u64; 2]> = HashMap::new();
    for window in &profile.windows {
        // Where each chunk was reached from, and by which field.
        let mut reached: HashMap<u64, (u64, u32)> = HashMap::new();
        let is_inside = |it: &&Access| {
            it.site != u32::MAX && it.target != u32::MAX && group_of(it.site) == group_of(it.target)
        };
        for load in window.accesses.iter().filter(is_inside) {
            let offset = element_offset(profile, load.site, load.offset);
            if let Some(&(from, by)) = reached.get(&load.base())
                && by != offset
            {
                let [checked, back] = counts.entry((group_of(load.site), offset)).or_default();
                *checked += 1;
                *back += u64::from(load.pointer == from);
            }
            if load.pointer != 0 {
                reached.entry(load.pointer).or_insert((load.base(), offset));
            }
        }
    }
    let is_back = |[checked, back]: [u64; 2]| ratio(back, checked) >= BACK_PART;
    counts
        .into_iter()
        .map(|(key, counts)| (key, is_back(counts)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::profile;
    use crate::profile::{Edge, Window};

    fn shape(edges: &[(u32, u32, u32)], loads: &[(u64, u32, u64)]) -> Vec<Shape> {
        let mut run = profile();
        run.sites.iter_mut().for_each(|site| site.type_id = None);
        let edge = |&(from, offset, to): &(u32, u32, u32)| Edge {
            from,
            offset,
            to,
            loads: 100,
            followed: 90,
        };
        run.edges = edges.iter().map(edge).collect();
        let access = |&(base, offset, pointer): &(u64, u32, u64)| Access {
            address: base + u64::from(offset),
            size: 8,
            write: false,
            site: 1,
            offset,
            pointer,
            target: 1,
        };
        run.windows = vec![Window {
            time: 1,
            from_start: false,
            thread: 0,
            accesses: loads.iter().map(access).collect(),
        }];
        structures(&run).iter().map(|it| it.shape).collect()
    }

    #[test]
    fn shapes_follow_from_fields() {
        assert_eq!(shape(&[(1, 8, 1)], &[]), [Shape::List]);
        assert_eq!(shape(&[(1, 8, 1), (1, 16, 1)], &[]), [Shape::Tree]);
        let linked = [
            (0x100, 8, 0x200),
            (0x200, 16, 0x100),
            (0x200, 8, 0x300),
            (0x300, 16, 0x200),
        ];
        let both = [(1, 8, 1), (1, 16, 1)];
        assert_eq!(shape(&both, &linked), [Shape::DoublyLinkedList]);
        let three = [(1, 8, 1), (1, 16, 1), (1, 24, 1)];
        assert_eq!(shape(&three, &linked), [Shape::TreeWithParents]);
        assert_eq!(shape(&[(0, 8, 1)], &[]), []);
    }

    #[test]
    fn lists_below_a_table_are_hash_chains() {
        let mut edges: Vec<(u32, u32, u32)> = (0..40).map(|place| (3, place * 8, 1)).collect();
        edges.push((1, 0, 1));
        assert_eq!(shape(&edges, &[]), [Shape::HashChain]);
    }
}
