//! Structures of several types: nodes that own vectors of others, values in the buffers of vectors,
//! statements and expressions, nodes that share each other.
//!
//! Types are one structure where pointers lead from each to all others: a circle of types. So a
//! link from a node to the buffer of its vector and one from there to an element make the element a
//! child of the node. Vectors that nothing leads to, such as those on the stack, are left out, as
//! are tables of maps, whose pointers do not lead to where they begin.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::analyses::structures::{Structure, collection, element_offset, groups};
use crate::analyses::types::type_name;
use crate::analyses::units::ratio;
use crate::profile::Profile;

/// Fewer loads show no link between types.
const MIN_LOADS: u64 = 16;
/// A field leads back if at least this part of the pointers that could be checked does.
const BACK_PART: f64 = 0.8;
/// Their nodes are not the program's to place.
const MAPS: [&str; 8] = [
    "BTreeMap",
    "BTreeSet",
    "HashMap",
    "HashSet",
    "HashTable",
    "LinkedList",
    "String",
    "VecDeque",
];

/// Chunks that lead to each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Linked {
    /// Sites that allocate them.
    pub(crate) sites: Vec<u32>,
    /// By site: the offsets in an element that lead on, and not back.
    pub(crate) offsets: BTreeMap<u32, Vec<u32>>,
    /// By site: the size of an element, of those that allocate buffers of many.
    pub(crate) element_bytes: BTreeMap<u32, u32>,
    /// Pointers that were loaded.
    loads: u64,
}

impl Linked {
    /// Which of the links of its chunk a word is, if it is one. In a buffer, those of the elements
    /// follow each other.
    pub(crate) fn place(&self, profile: &Profile, site: u32, offset: u32) -> Option<usize> {
        let offsets = self.offsets.get(&site)?;
        let inner = element_offset(profile, site, offset);
        let place = offsets.iter().position(|&it| it == inner)?;
        let element = { self.element_bytes.get(&site) }.map_or(0, |bytes| offset / bytes);
        Some(element as usize * offsets.len() + place)
    }

    /// Whether its chunks are buffers of elements.
    pub(crate) fn is_buffer(&self, site: u32) -> bool {
        self.element_bytes.contains_key(&site)
    }
}

impl From<&Structure> for Linked {
    fn from(of: &Structure) -> Linked {
        let is_down = |offset: &u32| !of.back.contains(offset);
        let offsets: Vec<u32> = of.offsets.iter().copied().filter(is_down).collect();
        Linked {
            sites: of.sites.clone(),
            offsets: { of.sites.iter() }
                .map(|&site| (site, offsets.clone()))
                .collect(),
            element_bytes: BTreeMap::new(),
            loads: of.loads,
        }
    }
}

/// Structures of more than one type, or of vectors that own vectors of their own type, the most
/// loaded first. O(edges) for each type that is part of one.
pub(crate) fn linked(profile: &Profile) -> Vec<Linked> {
    let groups = groups(profile);
    let group_of = |site: u32| groups.get(&site).copied().unwrap_or(site);
    let is_node = |site: u32| {
        let is_map = MAPS.contains(&collection(profile, site));
        (site as usize) < profile.sites.len() && !is_map
    };
    let edges = || {
        let inside = profile.edges.iter();
        inside.filter(|edge| is_node(edge.from) && is_node(edge.to))
    };
    let mut loads: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for edge in edges() {
        let of_pair = loads.entry((group_of(edge.from), group_of(edge.to)));
        let of_pair = of_pair.or_default();
        *of_pair = of_pair.saturating_add(edge.loads);
    }
    loads.retain(|_, of_pair| *of_pair >= MIN_LOADS);
    let mut links: Links = [BTreeMap::new(), BTreeMap::new()];
    for &(from, to) in loads.keys() {
        links[0].entry(from).or_default().push(to);
        links[1].entry(to).or_default().push(from);
    }
    let back = back(profile, &group_of);
    let mut done: BTreeSet<u32> = BTreeSet::new();
    let mut found = Vec::new();
    for &group in links[0].keys() {
        if done.contains(&group) {
            continue;
        }
        let [ahead, behind] = links.each_ref().map(|links| reached(links, group));
        let circle: BTreeSet<u32> = ahead.intersection(&behind).copied().collect();
        done.extend(&circle);
        let leads_on = links[0].get(&group).is_some_and(|to| to.contains(&group));
        if circle.len() > 1 || leads_on && element_bytes(profile, group).is_some() {
            let is_inside = |site: u32| circle.contains(&group_of(site));
            let mut structure = Linked::default();
            let (mut sites, mut of_field) = (BTreeSet::new(), BTreeMap::new());
            for edge in edges().filter(|edge| is_inside(edge.from) && is_inside(edge.to)) {
                sites.insert(edge.to);
                let offset = element_offset(profile, edge.from, edge.offset);
                if !back.contains(&(group_of(edge.from), offset)) {
                    let offsets: &mut BTreeSet<u32> = of_field.entry(edge.from).or_default();
                    offsets.insert(offset);
                    structure.loads = structure.loads.saturating_add(edge.loads);
                }
            }
            of_field.retain(|site, _| sites.contains(site));
            let of_type = |site: &u32| {
                let alike = of_field.iter();
                let alike = alike.filter(|(other, _)| group_of(**other) == group_of(*site));
                let all: BTreeSet<u32> = alike.flat_map(|(_, offsets)| offsets).copied().collect();
                (*site, all.into_iter().collect())
            };
            structure.offsets = sites.iter().map(of_type).collect();
            let bytes = |&site: &u32| Some((site, element_bytes(profile, site)?));
            structure.element_bytes = sites.iter().filter_map(bytes).collect();
            structure.sites = sites.into_iter().collect();
            found.push(structure);
        }
    }
    found.sort_by(|a, b| b.loads.cmp(&a.loads).then(a.sites.cmp(&b.sites)));
    found
}

/// By group, where its pointers lead to; and by group, where pointers to it come from.
type Links = [BTreeMap<u32, Vec<u32>>; 2];

/// All that can be reached from `start`, and `start`.
fn reached(links: &BTreeMap<u32, Vec<u32>>, start: u32) -> BTreeSet<u32> {
    let (mut found, mut todo) = (BTreeSet::from([start]), vec![start]);
    while let Some(at) = todo.pop() {
        let next = links.get(&at).into_iter().flatten();
        todo.extend(next.filter(|&&to| found.insert(to)));
    }
    found
}

/// The size of an element of a buffer; `None` for what is one node.
fn element_bytes(profile: &Profile, site: u32) -> Option<u32> {
    let type_id = profile.sites.get(site as usize)?.type_id?;
    let of = profile.types.get(type_id as usize)?;
    let name = type_name(profile, Some(type_id))?;
    let is_buffer = name.starts_with("Vec<") || name.contains("<[");
    let bytes = u32::try_from(of.size?).ok()?;
    (is_buffer && bytes > 0).then_some(bytes)
}

/// Fields of groups that lead back to the node that led to theirs, be it through a buffer.
fn back(profile: &Profile, group_of: &dyn Fn(u32) -> u32) -> BTreeSet<(u32, u32)> {
    let mut counts: BTreeMap<(u32, u32), [u64; 2]> = BTreeMap::new();
    for window in &profile.windows {
        // By chunk, the node that led to it; for the elements of a buffer, its owner.
        let mut owner: HashMap<u64, u64> = HashMap::new();
        let loads = window.accesses.iter();
        for load in loads.filter(|it| it.site != u32::MAX && it.target != u32::MAX) {
            let (base, from) = (load.base(), owner.get(&load.base()).copied());
            let is_buffer = element_bytes(profile, load.site).is_some();
            let offset = element_offset(profile, load.site, load.offset);
            if let Some(from) = from.filter(|_| !is_buffer) {
                let counts = counts.entry((group_of(load.site), offset)).or_default();
                counts[0] += 1;
                counts[1] += u64::from(load.pointer == from);
            }
            let by = from.filter(|_| is_buffer).unwrap_or(base);
            match element_bytes(profile, load.target) {
                // A walk comes to it anew.
                Some(_) => drop(owner.insert(load.pointer, by)),
                None => drop(owner.entry(load.pointer).or_insert(by)),
            }
        }
    }
    let leads_back = |&(_, [checked, back]): &(_, [u64; 2])| ratio(back, checked) >= BACK_PART;
    let found = counts.into_iter().filter(leads_back);
    found.map(|(field, _)| field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::{access, profile, window};
    use crate::profile::{Access, Edge, Type};

    /// Sites of these types, and pointers from site to site at offsets.
    fn run(types: &[(&str, u64)], edges: &[(u32, u32, u32)]) -> Profile {
        let mut run = profile();
        let of = |&(name, size): &(&str, u64)| Type {
            name: name.to_owned(),
            size: Some(size),
            fields: Vec::new(),
        };
        run.types = types.iter().map(of).collect();
        let site = run.sites[0].clone();
        run.sites = (0..)
            .zip(types)
            .map(|(id, _)| crate::profile::Site {
                type_id: Some(id),
                ..site.clone()
            })
            .collect();
        let edge = |&(from, offset, to): &(u32, u32, u32)| Edge {
            from,
            offset,
            to,
            loads: 100,
            followed: 100,
        };
        run.edges = edges.iter().map(edge).collect();
        run.windows = Vec::new();
        run
    }

    #[test]
    fn buffers_of_vectors_are_part_of_the_nodes_that_own_them() {
        let types = [
            ("Box<Node>", 40),
            ("Vec<Box<Node>>", 8),
            ("Vec<Box<Node>>", 8),
            ("HashMap<u32, Box<Node>>", 16),
        ];
        // The second vector is on the stack; a map is no node.
        let edges = [(0, 16, 1), (1, 24, 0), (2, 8, 0), (3, 8, 0), (0, 0, 3)];
        let found = linked(&run(&types, &edges));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].sites, [0, 1]);
        assert_eq!(
            found[0].offsets,
            BTreeMap::from([(0, vec![16]), (1, vec![0])])
        );
        assert_eq!(found[0].element_bytes, BTreeMap::from([(1, 8)]));
    }

    #[test]
    fn only_circles_of_types_are_structures() {
        let types = [("Box<Node>", 16), ("Box<Value>", 16), ("Vec<Item>", 40)];
        assert_eq!(linked(&run(&types, &[(0, 8, 1), (0, 0, 0)])), []);
        let values = linked(&run(&types, &[(2, 56, 2)]));
        assert_eq!(values[0].offsets, BTreeMap::from([(2, vec![16])]));
    }

    #[test]
    fn pointers_to_owners_lead_back() {
        let types = [("Rc<Node>", 40), ("Vec<Rc<Node>>", 8)];
        let mut run = run(&types, &[(0, 16, 1), (1, 0, 0), (0, 32, 0)]);
        let load = |base: u64, site: u32, offset: u32, target: u32, pointer: u64| Access {
            target,
            pointer,
            ..access(base + u64::from(offset), site, offset)
        };
        run.windows = vec![window(
            1,
            0,
            vec![
                load(0x1000, 0, 16, 1, 0x2000),
                load(0x2000, 1, 0, 0, 0x3000),
                load(0x3000, 0, 32, 0, 0x1000),
            ],
        )];
        assert_eq!(
            linked(&run)[0].offsets,
            BTreeMap::from([(0, vec![16]), (1, vec![0])])
        );
    }
}
