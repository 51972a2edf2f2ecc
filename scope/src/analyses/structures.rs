//! Data structures, as the pointers between chunks show them.
//!
//! Chunks of one type whose fields lead to chunks of the same type are the nodes of a structure.
//! How many such fields there are, and whether one leads back where another came from, says which.
//! Where many slots of an array lead to nodes of lists, these are the chains of a hash table.
//! The collections of std and hashbrown are known by the names of their types.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::analyses::types::type_name;
use crate::analyses::units::{ratio, sum};
use crate::profile::{Access, NEAR, Profile, Site};

/// A field of fewer of the nodes' loads than this part leads there by accident.
const MIN_SHARE: f64 = 0.01;
/// Fewer loads show no structure.
const MIN_LOADS: u64 = 16;
/// A table of a hash map has more places than a node has fields.
const TABLE_PLACES: usize = 16;
/// A field leads back if at least this part of the pointers that could be checked does.
const BACK_PART: f64 = 0.8;
/// A node that is not further up than this from the one before it comes along with it.
const CLOSE_BYTES: u64 = 256;

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
    /// `BTreeMap` and `BTreeSet`.
    BTree,
    /// `HashMap`, `HashSet` and `HashTable`: one table without pointers.
    HashTable,
    /// `VecDeque`.
    Deque,
    /// `Vec<Box<T>>`: a table of pointers.
    Boxes,
    /// `Rc` and `Arc` that lead to others of their type.
    Shared,
}

/// Nodes that point to each other, or the table of a collection.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// Children of a node that has any.
    pub fan_out: f64,
    /// Chunks at the peaks of the sites.
    pub nodes: u64,
    /// Bytes of these chunks.
    pub bytes: u64,
    /// The part of the accesses that reads.
    pub read_share: f64,
    /// How the windows go through it.
    pub walk: Walk,
}

/// How the program goes from node to node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Walk {
    /// Pointers that were followed one after the other: the most.
    pub longest: u64,
    /// The same, on average.
    pub mean: f64,
    /// The part of the accesses that had to wait for a pointer from another node.
    pub waits: f64,
    /// The part of the followed pointers that lead to the next 256 bytes upwards.
    pub upwards: f64,
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
    let walks = walks(profile, &group_of);
    let mut found = Vec::new();
    for (&group, offsets) in &fields {
        let loads = sum(offsets.values().copied());
        let used: Vec<u32> = { offsets.iter() }
            .filter(|&(_, &of_field)| ratio(of_field, loads) >= MIN_SHARE)
            .map(|(&offset, _)| offset)
            .collect();
        if loads < MIN_LOADS || used.len() > TABLE_PLACES {
            continue;
        }
        let leads_back = |offset: &u32| inverse.get(&(group, *offset)).is_some_and(|&it| it);
        let back: Vec<u32> = used.iter().copied().filter(leads_back).collect();
        let table = places.get(&group).and_then(|tables| {
            let largest = tables.iter().max_by_key(|(_, places)| places.len())?;
            (largest.1.len() > TABLE_PLACES).then_some(*largest.0)
        });
        let shape = match (collection(profile, group), used.len(), back.len()) {
            ("BTreeMap" | "BTreeSet", ..) => Shape::BTree,
            ("LinkedList", ..) => Shape::DoublyLinkedList,
            ("Rc" | "Arc", ..) => Shape::Shared,
            (_, 0 | 1, _) if table.is_some() => Shape::HashChain,
            (_, 0 | 1, _) => Shape::List,
            (_, 2, 1..) => Shape::DoublyLinkedList,
            (_, _, 0) => Shape::Tree,
            _ => Shape::TreeWithParents,
        };
        let members: Vec<u32> = sites.remove(&group).into_iter().flatten().collect();
        let nodes = chunks(profile, &members);
        let leads_on = |&site: &u32| {
            let mut edges = profile.edges.iter().filter(|edge| edge.from == site);
            edges.any(|edge| group_of(edge.to) == group && !back.contains(&edge.offset))
        };
        let inner: Vec<u32> = members.iter().copied().filter(leads_on).collect();
        // Where the leaves have sites of their own, their number tells how full the others are.
        let fan_out = match chunks(profile, &inner) {
            inner if inner > 0 && inner < nodes => ratio(nodes - 1, inner),
            _ => (used.len() - back.len()) as f64,
        };
        found.push(Structure {
            table: table.filter(|_| shape == Shape::HashChain),
            offsets: used,
            back,
            loads,
            fan_out,
            ..Structure::new(profile, shape, members, walks.get(&group))
        });
    }
    found.extend(tables(profile, &group_of, &walks));
    found.sort_by(|a, b| b.loads.cmp(&a.loads).then(a.sites.cmp(&b.sites)));
    found
}

impl Structure {
    /// Without fields.
    fn new(profile: &Profile, shape: Shape, sites: Vec<u32>, walk: Option<&Walk>) -> Structure {
        let total = |count: fn(&Site) -> u64| sum(members(profile, &sites).map(count));
        let reads = total(|site| site.reads);
        Structure {
            shape,
            table: None,
            offsets: Vec::new(),
            back: Vec::new(),
            loads: 0,
            fan_out: 0.0,
            nodes: total(|site| site.peak_chunks),
            bytes: total(|site| site.peak_usable),
            read_share: ratio(reads, reads.saturating_add(total(|site| site.writes))),
            walk: walk.copied().unwrap_or_default(),
            sites,
        }
    }
}

fn members<'p>(profile: &'p Profile, sites: &[u32]) -> impl Iterator<Item = &'p Site> {
    sites
        .iter()
        .filter_map(|&site| profile.sites.get(site as usize))
}

fn chunks(profile: &Profile, sites: &[u32]) -> u64 {
    sum(members(profile, sites).map(|site| site.peak_chunks))
}

/// Collections that are known by name, although no pointer leads from one chunk to its like.
fn tables(
    profile: &Profile,
    group_of: &dyn Fn(u32) -> u32,
    walks: &HashMap<u32, Walk>,
) -> Vec<Structure> {
    let mut sites: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (id, site) in (0..).zip(&profile.sites) {
        if site.reads.saturating_add(site.writes) > 0 {
            sites.entry(group_of(id)).or_default().push(id);
        }
    }
    let of_group = |(group, sites): (u32, Vec<u32>)| {
        let shape = match collection(profile, group) {
            "HashMap" | "HashSet" | "HashTable" => Shape::HashTable,
            "VecDeque" => Shape::Deque,
            "Vec" if site_name(profile, group)?.starts_with("Vec<Box<") => Shape::Boxes,
            _ => return None,
        };
        let leads_on = profile
            .edges
            .iter()
            .filter(|edge| sites.contains(&edge.from));
        let loads = sum(leads_on.map(|edge| edge.loads));
        Some(Structure {
            loads,
            ..Structure::new(profile, shape, sites, walks.get(&group))
        })
    };
    sites.into_iter().filter_map(of_group).collect()
}

fn site_name(profile: &Profile, site: u32) -> Option<&str> {
    type_name(profile, profile.sites.get(site as usize)?.type_id)
}

/// `BTreeMap` of `alloc::collections::BTreeMap<u8, u8>`; empty if nothing is known.
pub(crate) fn collection(profile: &Profile, site: u32) -> &str {
    let name = site_name(profile, site).unwrap_or_default();
    let path = name.split('<').next().unwrap_or_default();
    path.rsplit("::").next().unwrap_or_default()
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

/// By site, the first site of the data structure that it belongs to; itself where it is alone.
///
/// One structure are nodes and tables of one type, whatever lines allocate them; the elements of a
/// `Vec<Box<T>>` and the vector; and chunks of no known type and one size that point to each other.
/// Vectors and strings of one type are many structures.
#[must_use]
pub fn together(profile: &Profile) -> Vec<usize> {
    let mut first: Vec<usize> = (0..profile.sites.len()).collect();
    let mut join = |a: usize, b: usize| {
        let root = |first: &[usize], mut it: usize| {
            while first[it] != it {
                it = first[it];
            }
            it
        };
        let [a, b] = [root(&first, a), root(&first, b)];
        first[a.max(b)] = a.min(b);
    };
    let name = |site: usize| {
        let name = type_name(profile, profile.sites[site].type_id);
        name.filter(|&name| name != "bytes")
    };
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for site in 0..profile.sites.len() {
        if let Some(name) = name(site).filter(|name| !is_buffer(name)) {
            join(*by_name.entry(name).or_insert(site), site);
        }
    }
    let known = |site: u32| {
        usize::try_from(site)
            .ok()
            .filter(|&it| it < profile.sites.len())
    };
    for edge in &profile.edges {
        let Some((from, to)) = known(edge.from).zip(known(edge.to)) else {
            continue;
        };
        let size = |site: usize| {
            let it = &profile.sites[site];
            (it.smallest == it.largest).then_some(it.largest)
        };
        let is_one = match (name(from), name(to)) {
            (Some(table), Some(element)) => {
                element.starts_with("Box<")
                    && table.strip_prefix("Vec<") == Some(&*format!("{element}>"))
            }
            (None, None) => size(from).is_some() && size(from) == size(to),
            _ => false,
        };
        if is_one {
            join(from, to);
        }
    }
    // A site's first one comes before it.
    for site in 0..first.len() {
        first[site] = first[first[site]];
    }
    first
}

/// Whether chunks of this type are as good as bytes: nothing but a name says that two are one.
fn is_buffer(name: &str) -> bool {
    let is_vector = name.starts_with("Vec<") && !name.starts_with("Vec<Box<");
    is_vector || name == "String" || name.starts_with("Box<[") || name == "Box<str>"
}

/// In a vector, that in the element.
pub(crate) fn element_offset(profile: &Profile, site: u32, offset: u32) -> u32 {
    // Inner nodes are leaves with more behind them, not two leaves.
    if collection(profile, site).starts_with("BTree") {
        return offset;
    }
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

/// How the windows go through each group.
fn walks(profile: &Profile, group_of: &dyn Fn(u32) -> u32) -> HashMap<u32, Walk> {
    #[derive(Default)]
    struct Counts {
        /// Where the walk is, whether a pointer led there, and how many did in a row.
        at: Option<(u64, bool, u64)>,
        accesses: u64,
        waiting: u64,
        followed: u64,
        upwards: u64,
        walks: u64,
        longest: u64,
    }
    let mut groups: HashMap<u32, Counts> = HashMap::new();
    for window in &profile.windows {
        groups.values_mut().for_each(|counts| counts.at = None);
        for (index, access) in window.accesses.iter().enumerate() {
            if access.site == u32::MAX {
                continue;
            }
            let group = group_of(access.site);
            let counts = groups.entry(group).or_default();
            counts.accesses += 1;
            let base = access.base();
            if counts.at.is_none_or(|(at, ..)| at != base) {
                let before = &window.accesses[index.saturating_sub(NEAR)..index];
                let is_link = |load: &&Access| {
                    load.target != u32::MAX && load.site != u32::MAX && load.leads_to(access)
                };
                let link = before.iter().rfind(is_link);
                let link = link.filter(|load| group_of(load.site) == group && load.base() != base);
                let length = match (link, counts.at) {
                    (Some(load), Some((at, _, length))) if load.base() == at => length + 1,
                    (Some(_), _) => 1,
                    (None, _) => 0,
                };
                if let Some(load) = link {
                    counts.followed += 1;
                    let up = base.wrapping_sub(load.base());
                    counts.upwards += u64::from(up <= CLOSE_BYTES);
                    counts.walks += u64::from(length == 1);
                    counts.longest = counts.longest.max(length);
                }
                counts.at = Some((base, link.is_some(), length));
            }
            counts.waiting += u64::from(counts.at.is_some_and(|(_, is_linked, _)| is_linked));
        }
    }
    let walk = |it: Counts| Walk {
        longest: it.longest,
        mean: ratio(it.followed, it.walks),
        waits: ratio(it.waiting, it.accesses),
        upwards: ratio(it.upwards, it.followed),
    };
    let groups = groups.into_iter();
    groups
        .map(|(group, counts)| (group, walk(counts)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::profile;
    use crate::profile::{Edge, Window};

    fn run(edges: &[(u32, u32, u32)], loads: &[(u64, u32, u64)]) -> Profile {
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
        run
    }

    fn shape(edges: &[(u32, u32, u32)], loads: &[(u64, u32, u64)]) -> Vec<Shape> {
        let found = structures(&run(edges, loads));
        found.iter().map(|it| it.shape).collect()
    }

    /// The structures if site 1 allocates a type of this name.
    fn named(name: &str, mut run: Profile) -> Vec<Structure> {
        run.types[0].name = name.to_owned();
        run.types[0].size = Some(192);
        run.sites[1].type_id = Some(0);
        structures(&run)
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

    #[test]
    fn collections_are_known_by_name() {
        let tree = [(1, 192, 1), (1, 200, 1), (1, 0, 1)];
        for (name, edges, shape) in [
            ("BTreeMap<u64, u64>", &tree[..], Shape::BTree),
            ("alloc::collections::BTreeSet<u8>", &tree, Shape::BTree),
            ("LinkedList<u8>", &tree, Shape::DoublyLinkedList),
            ("Rc<Node>", &tree, Shape::Shared),
            ("Arc<Node>", &tree, Shape::Shared),
            ("HashMap<u8, u8>", &[], Shape::HashTable),
            ("HashSet<u8>", &[], Shape::HashTable),
            ("VecDeque<u8>", &[], Shape::Deque),
            ("Vec<Box<Node>>", &[(1, 8, 0)], Shape::Boxes),
        ] {
            let found = named(name, run(edges, &[]));
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!((found[0].shape, &*found[0].sites), (shape, &[1][..]));
        }
        assert_eq!(named("Vec<u64>", run(&[], &[])), []);
        // An edge of an inner node is no field of a second leaf.
        let tree = &named("BTreeMap<u64, u64>", run(&tree, &[]))[0];
        assert_eq!(tree.offsets, [0, 192, 200]);
    }

    #[test]
    fn sites_of_one_structure_are_together() {
        let firsts = |names: [&str; 4], edges: &[(u32, u32, u32)]| {
            let mut run = run(edges, &[]);
            run.types = { names.iter() }
                .map(|name| crate::profile::Type {
                    name: (*name).to_owned(),
                    size: None,
                    fields: Vec::new(),
                })
                .collect();
            for (id, site) in (0..).zip(&mut run.sites) {
                site.type_id = Some(id);
                (site.smallest, site.largest) = (48, 48);
            }
            together(&run)
        };
        let map = ["bytes", "BTreeMap<u8, u8>", "Vec<u8>", "BTreeMap<u8, u8>"];
        assert_eq!(firsts(map, &[]), [0, 1, 2, 1]);
        assert_eq!(
            firsts(["String", "Vec<u8>", "String", "Vec<u8>"], &[]),
            [0, 1, 2, 3]
        );
        let boxes = ["Box<Node>", "Vec<Box<Node>>", "bytes", "Box<Other>"];
        assert_eq!(firsts(boxes, &[(1, 8, 0), (1, 8, 3)]), [0, 0, 2, 3]);
        // Nodes of C without a type: those that lead to each other.
        let untyped = ["bytes"; 4];
        assert_eq!(firsts(untyped, &[(3, 8, 1), (1, 0, 2)]), [0, 1, 1, 1]);
        assert_eq!(firsts(untyped, &[]), [0, 1, 2, 3]);
    }

    #[test]
    fn structures_say_how_large_they_are_and_how_they_are_walked() {
        // Three nodes down, the second just above the first, then from the first on again.
        let loads = [
            (0x1000, 8, 0x1100),
            (0x1100, 8, 0x9000),
            (0x9000, 0, 0),
            (0x1000, 16, 0x1100),
            (0x1100, 0, 0),
        ];
        let mut run = run(&[(1, 8, 1), (1, 16, 1)], &loads);
        (run.sites[1].reads, run.sites[1].writes) = (300, 100);
        (run.sites[1].peak_chunks, run.sites[1].peak_usable) = (7, 224);
        let found = &structures(&run)[0];
        assert_eq!((found.nodes, found.bytes), (7, 224));
        let parts = format!("{} {}", found.fan_out, found.read_share);
        assert_eq!(parts, "2 0.75");
        let walk = Walk {
            longest: 2,
            mean: 1.5,
            waits: 0.6,
            upwards: 2.0 / 3.0,
        };
        assert_eq!(found.walk, walk);
        assert!(found.back.is_empty());
    }
}
