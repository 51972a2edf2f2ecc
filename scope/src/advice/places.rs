//! Where the nodes of a structure would lie: hints when they are allocated, or one morph.
//!
//! The pointers in the windows give the nodes that were used and who led to whom. The nodes that
//! no window shows are made up, as subtrees of equal size at the links that no window followed:
//! without them, those that were used would have the caches for themselves. Then a [`Layout`] of
//! the model places all of them.

use std::collections::HashMap;

use ccmodel::{HintPolicy, Layout, NO_NODE, NodeExtent, PageSize, Shape, morph_cost};

use super::code::{Language, Link, Object, is_raw};
use super::dense::NEW_MEMORY;
use super::{Candidate, Context, Kind};
use crate::analyses::linked::{Linked, linked};
use crate::analyses::replay::trace::{NONE, Step, index_32};
use crate::analyses::replay::{PROBABLE, PlacedAccess, Rewrite};
use crate::analyses::structures::structures;
use crate::analyses::types::field_at;
use crate::analyses::units::{count, ratio, sum};
use crate::profile::{Field, Site};

/// More nodes than this are taken for as many: the caches are too small for either.
const MAX_NODES: u64 = 1 << 21;
/// Larger nodes have lines of their own in any case.
const MAX_NODE_BYTES: u64 = 1024;
/// Structures that are larger lie in huge pages, if they are morphed. That makes the morph cheaper;
/// for the accesses it is not counted on: below a hypervisor, huge pages often save nothing.
const HUGE_BYTES: u64 = 8 << 20;
/// What a hinted allocation takes longer in the caches (docs/inside/benchmarks.md), and the part of
/// an access to memory that it waits for: the page of the hint is anywhere.
const HINT_NS: f64 = 7.0;
const HINT_WAITS: f64 = 0.8;
/// Another policy or layout than the usual one must leave less than this part of its time.
const CLEARLY: f64 = 0.9;
/// Links are settled while no larger part of their accesses writes them.
pub(super) const WRITTEN: f64 = 0.05;
/// Nanoseconds for a byte of new memory from the system (a virtual EPYC, 23 November 2026).
pub(super) const FRESH_NS: f64 = 0.6;
/// A structure is finished when this part of its nodes is allocated.
const FINISHED: f64 = 0.95;
/// No hint where a larger part of the nodes is allocated before those that lead to them: nothing is
/// known then that they could lie near.
const LATE: f64 = 0.25;
/// Nanoseconds to allocate a node anew, and to free the old one.
const REBUILT_NS: f64 = 40.0;
/// Children of a node with one link after another: a list.
const MAX_CHILDREN: usize = 16;

/// A pointer.
const LINK_BYTES: u64 = 8;

const MORPHS: [Layout; 4] = [
    Layout::Hierarchical,
    Layout::Preorder,
    Layout::DepthFirst,
    Layout::ClusterVanEmdeBoas { block_bytes: 64 },
];
const POLICIES: [HintPolicy; 3] = [
    HintPolicy::NewBlock,
    HintPolicy::Closest,
    HintPolicy::FirstFit,
];

/// Hints and morphs for the structures that the program waits for.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let profile = context.profile;
    let mut own: Vec<u32> = context.own_types().into_iter().flatten().collect();
    // Containers of C++ take an allocator, which may hint.
    let is_cxx = |site: &u32| Language::of(profile, &[*site]) == Language::Cxx;
    own.extend(context.waiting_sites().into_iter().filter(is_cxx));
    let waiting = context.waiting_sites();
    let waits = |all: &[u32], sites: &[u32]| sites.iter().any(|site| all.contains(site));
    // Structures of several types, and then those that are no part of them.
    let mut all = linked(profile);
    all.retain(|of| waits(&waiting, &of.sites));
    for structure in structures(profile) {
        let is_part = |of: &Linked| structure.sites.iter().all(|site| of.sites.contains(site));
        if waits(&own, &structure.sites) && !all.iter().any(is_part) {
            all.push(Linked::from(&structure));
        }
    }
    let mut found = Vec::new();
    for structure in &all {
        let Some(forest) = Forest::new(context, structure) else {
            continue;
        };
        found.extend(hint(context, structure, &forest));
        found.extend(morph(context, structure, &forest));
    }
    found
}

/// Nodes of a structure, those that were seen and those that were not.
struct Forest {
    shape: Shape,
    /// By object.
    nodes: HashMap<u32, u32>,
    /// The largest; of chunks of several types, a mean one.
    node: NodeExtent,
    /// By node, of chunks of several types; else empty.
    bytes: Vec<u32>,
    /// Nodes that are buffers.
    buffers: Vec<u32>,
    /// Alive at the peak.
    count: u64,
    /// The part of the nodes whose owner was allocated later, as far as that is known.
    late_owners: f64,
}

/// Places of nodes, from a layout.
#[derive(Default)]
struct Placed {
    by_object: HashMap<u32, u64>,
    /// Steps before this one stay as they are.
    from: usize,
}

impl Rewrite for Placed {
    fn places(&mut self, index: usize, step: &Step, into: &mut Vec<PlacedAccess>) {
        let new = self
            .by_object
            .get(&step.object)
            .filter(|_| index >= self.from);
        into.push(match new {
            Some(start) => PlacedAccess::at(NEW_MEMORY + start + u64::from(step.offset), step),
            None => PlacedAccess::unchanged(step),
        });
    }
}

impl Forest {
    fn new(context: &Context<'_>, structure: &Linked) -> Option<Forest> {
        let sites = || {
            let sites = structure.sites.iter();
            sites.filter_map(|&site| context.profile.sites.get(site as usize))
        };
        let is_mixed = !structure.element_bytes.is_empty();
        let total = |of: fn(&Site) -> u64| sum(sites().map(of));
        let largest = sites().map(|site| site.largest).max()?;
        let bytes = match is_mixed {
            true => total(Site::chunk_bytes).div_ceil(total(|site| site.allocations).max(1)),
            false => largest,
        };
        if bytes == 0 || bytes > MAX_NODE_BYTES {
            return None;
        }
        let node = NodeExtent::new(u32::try_from(bytes).ok()?, 8).ok()?;
        let count = total(|site| site.peak_chunks);
        let links = Links::new(context, structure);
        let (shape, nodes) = links.complete(count.min(MAX_NODES))?;
        let is_buffer = |object: u32| {
            let found = context.trace.object(object);
            found.is_some_and(|object| structure.is_buffer(object.site))
        };
        let mut sizes = Vec::new();
        if is_mixed {
            sizes = vec![node.bytes; shape.len()];
            for (&object, &at) in &nodes {
                sizes[at as usize] = context.chunks.bytes(object);
            }
        }
        let buffers = nodes.iter().filter(|&(&object, _)| is_buffer(object));
        Some(Forest {
            buffers: buffers.map(|(_, &node)| node).collect(),
            late_owners: links.late_owners(context, is_buffer),
            shape,
            nodes,
            node,
            bytes: sizes,
            count,
        })
    }

    fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.node.stride_bytes())
    }

    fn place(&self, layout: Layout, from: usize) -> Placed {
        let starts = self.starts(layout, &self.bytes);
        let of_node = |(&object, &node): (&u32, &u32)| (object, starts[node as usize]);
        Placed {
            by_object: self.nodes.iter().map(of_node).collect(),
            from,
        }
    }

    /// As hints would; they leave buffers where they are.
    fn hinted(&self, policy: HintPolicy) -> Placed {
        let mut bytes = self.bytes.clone();
        self.buffers.iter().for_each(|&at| bytes[at as usize] = 0);
        let starts = self.starts(Layout::Hinted { policy }, &bytes);
        let of_node = |(&object, &node): (&u32, &u32)| {
            let is_placed = bytes.is_empty() || bytes[node as usize] > 0;
            is_placed.then(|| (object, starts[node as usize]))
        };
        Placed {
            by_object: self.nodes.iter().filter_map(of_node).collect(),
            from: 0,
        }
    }

    /// By node. Those of different sizes lie one behind the other, in the order of the layout.
    fn starts(&self, layout: Layout, bytes: &[u32]) -> Vec<u64> {
        let mut starts = layout.place(&self.shape, self.node).into_offsets();
        if !bytes.is_empty() {
            let mut order: Vec<u32> = (0..index_32(starts.len())).collect();
            order.sort_unstable_by_key(|&node| starts[node as usize]);
            let mut end = 0;
            for node in order {
                starts[node as usize] = end;
                end += u64::from(bytes[node as usize]).next_multiple_of(LINK_BYTES);
            }
        }
        starts
    }
}

/// Pointers between nodes, as the windows show them.
struct Links {
    /// Objects, and by place in the node those that it leads to; `None` where a place was seen to
    /// lead nowhere. By ascending place.
    children: HashMap<u32, Vec<(usize, Option<u32>)>>,
    parent_of: HashMap<u32, u32>,
    /// Objects, parents before children.
    roots: Vec<u32>,
    /// By site: places in a node.
    places: HashMap<u32, usize>,
    /// By object.
    site_of: HashMap<u32, u32>,
    fan_out: usize,
}

impl Links {
    fn new(context: &Context<'_>, structure: &Linked) -> Links {
        let trace = context.trace;
        let places: HashMap<u32, usize> = { structure.offsets.iter() }
            .filter(|&(&site, _)| !structure.is_buffer(site))
            .map(|(&site, offsets)| (site, offsets.len().min(MAX_CHILDREN)))
            .collect();
        let site = |object: u32| {
            let found = trace.object(object).map(|object| object.site);
            found.filter(|site| structure.sites.contains(site))
        };
        let is_mixed = !structure.element_bytes.is_empty();
        let mut links = Links {
            children: HashMap::new(),
            parent_of: HashMap::new(),
            roots: Vec::new(),
            fan_out: match is_mixed {
                // How vectors and nodes that were not seen follow each other is not known.
                true => 2,
                false => places.values().copied().max().unwrap_or(1).max(1),
            },
            places,
            site_of: HashMap::new(),
        };
        for step in &trace.steps {
            let Some(site_of_step) = site(step.object) else {
                continue;
            };
            links.see(step.object, site_of_step);
            let place = structure.place(context.profile, site_of_step, step.offset);
            let Some(place) = place.filter(|_| step.size == 8) else {
                continue;
            };
            if links
                .places
                .get(&site_of_step)
                .is_some_and(|&all| place >= all)
            {
                continue;
            }
            match site(step.target) {
                None if step.write => {}
                None => links.link(step.object, place, None),
                Some(of_target) => {
                    if !links.parent_of.contains_key(&step.target)
                        && !leads_to(&links.parent_of, step.object, step.target)
                        && links.is_free(step.object, place)
                    {
                        links.link(step.object, place, Some(step.target));
                        links.parent_of.insert(step.target, step.object);
                        links.see(step.target, of_target);
                    }
                }
            }
        }
        let is_root = |object: &u32| !links.parent_of.contains_key(object);
        links.roots = links.roots.iter().copied().filter(is_root).collect();
        links
    }

    fn see(&mut self, object: u32, site: u32) {
        self.site_of.entry(object).or_insert_with(|| {
            self.roots.push(object);
            self.children.insert(object, Vec::new());
            site
        });
    }

    fn is_free(&self, object: u32, place: usize) -> bool {
        let children = self.children.get(&object).map_or(&[][..], Vec::as_slice);
        let at = children.binary_search_by_key(&place, |it| it.0);
        at.map_or(true, |at| children[at].1.is_none())
    }

    fn link(&mut self, object: u32, place: usize, child: Option<u32>) {
        let children = self.children.entry(object).or_default();
        match children.binary_search_by_key(&place, |it| it.0) {
            Ok(at) => children[at].1 = children[at].1.or(child),
            Err(at) => children.insert(at, (place, child)),
        }
    }

    /// Places of a node of which nothing is known. Of a buffer, all were seen.
    fn open(&self, object: u32) -> usize {
        let site = self.site_of.get(&object);
        let places = site.and_then(|site| self.places.get(site)).copied();
        let known = self.children.get(&object).map_or(0, Vec::len);
        places.unwrap_or(0).saturating_sub(known)
    }

    /// See [`Forest::late_owners`].
    fn late_owners(&self, context: &Context<'_>, is_buffer: impl Fn(u32) -> bool) -> f64 {
        let (mut late, mut known) = (0, 0);
        for (&child, &parent) in &self.parent_of {
            let owner = match is_buffer(parent) {
                true => self.parent_of.get(&parent).copied(),
                false => Some(parent),
            };
            let is_early = owner.filter(|_| !is_buffer(child));
            if let Some(is_early) = is_early.and_then(|it| context.chunks.is_older(it, child)) {
                known += 1;
                late += u64::from(!is_early);
            }
        }
        ratio(late, known)
    }

    /// The forest of `count` nodes, and the node of each object.
    fn complete(&self, count: u64) -> Option<(Shape, HashMap<u32, u32>)> {
        let seen = self.children.len() as u64;
        if seen == 0 {
            return None;
        }
        let open = self.children.keys().map(|&object| self.open(object) as u64);
        let missing = count.saturating_sub(seen);
        let mut parents: Vec<u32> = Vec::new();
        let mut nodes = HashMap::new();
        let mut subtrees = Subtrees::new(missing, sum(open), self.fan_out);
        // Objects and subtrees that are still to be numbered, below their parents.
        let mut todo: Vec<(Hanging, u32)> = Vec::new();
        todo.extend(
            self.roots
                .iter()
                .rev()
                .map(|&root| (Hanging::Object(root), NO_NODE)),
        );
        while let Some((hanging, parent)) = todo.pop() {
            let node = index_32(parents.len());
            match hanging {
                Hanging::Object(object) => {
                    parents.push(parent);
                    nodes.insert(object, node);
                    let children = self.children.get(&object)?;
                    let first = todo.len();
                    let mut known = children.iter().peekable();
                    let mut open = self.open(object);
                    let mut place = 0;
                    while known.peek().is_some() || open > 0 {
                        match known.next_if(|it| it.0 == place || open == 0) {
                            Some(&(_, Some(child))) => todo.push((Hanging::Object(child), node)),
                            Some(_) => {}
                            None => {
                                open -= 1;
                                todo.push((Hanging::Unseen(subtrees.next()), node));
                            }
                        }
                        place += 1;
                    }
                    todo[first..].reverse();
                }
                Hanging::Unseen(0) => {}
                Hanging::Unseen(size) => {
                    parents.push(parent);
                    subtrees.split(size - 1, |part| todo.push((Hanging::Unseen(part), node)));
                }
            }
        }
        // What hangs nowhere: structures of the size of those that were seen.
        let mean = (seen / self.roots.len().max(1) as u64).max(1);
        let rest = subtrees.rest();
        let whole = std::iter::repeat_n(mean, usize::try_from(rest / mean).unwrap_or(0));
        let mut rest: Vec<(u64, u32)> = { whole.chain([rest % mean]) }
            .map(|size| (size, NO_NODE))
            .collect();
        while let Some((size, parent)) = rest.pop() {
            if size > 0 {
                let node = index_32(parents.len());
                parents.push(parent);
                subtrees.split(size - 1, |part| rest.push((part, node)));
            }
        }
        Some((Shape::from_parent_vec(parents).ok()?, nodes))
    }
}

enum Hanging {
    Object(u32),
    /// A subtree of so many nodes that no window has accessed.
    Unseen(u64),
}

/// Whether `from` hangs below `to`. Chains that are longer than this are no circles.
fn leads_to(parent_of: &HashMap<u32, u32>, from: u32, to: u32) -> bool {
    let mut at = Some(from);
    for _ in 0..64 {
        match at {
            Some(object) if object == to => return true,
            Some(object) => at = parent_of.get(&object).copied(),
            None => return false,
        }
    }
    false
}

/// Sizes of the subtrees that were not seen.
struct Subtrees {
    left: u64,
    open: u64,
    fan_out: usize,
    random: u64,
}

impl Subtrees {
    fn new(left: u64, open: u64, fan_out: usize) -> Subtrees {
        Subtrees {
            left,
            open,
            fan_out,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// The size of the next open place's subtree: equal parts of what is left.
    fn next(&mut self) -> u64 {
        let size = self.left.div_ceil(self.open.max(1)).min(self.left);
        self.open = self.open.saturating_sub(1);
        self.left -= size;
        size
    }

    fn rest(&mut self) -> u64 {
        std::mem::take(&mut self.left)
    }

    /// A random one of two subtrees is smaller; more of them are alike.
    fn split(&mut self, size: u64, mut see: impl FnMut(u64)) {
        match self.fan_out {
            1 => see(size),
            2 => {
                self.random ^= self.random << 13;
                self.random ^= self.random >> 7;
                self.random ^= self.random << 17;
                let first = self.random % (size + 1);
                see(first);
                see(size - first);
            }
            more => {
                let more = more as u64;
                (0..more).for_each(|part| see((size + part) / more));
            }
        }
    }
}

/// The sites of a structure that do not allocate buffers.
fn nodes(structure: &Linked) -> Vec<u32> {
    let is_node = |site: &u32| !structure.is_buffer(*site);
    structure.sites.iter().copied().filter(is_node).collect()
}

/// Those that the code of a morph names: of values in vectors, the vectors.
fn nodes_or_buffers(structure: &Linked) -> Vec<u32> {
    Some(nodes(structure))
        .filter(|nodes| !nodes.is_empty())
        .unwrap_or(structure.sites.clone())
}

/// The fields that lead from node to node, and whether nodes own buffers of others.
fn links<'c>(context: &'c Context<'_>, structure: &Linked) -> (Vec<Link<'c>>, bool) {
    let has_buffers = !structure.element_bytes.is_empty();
    let of_site = |site: u32| {
        let type_id = context.profile.sites.get(site as usize)?.type_id?;
        Some((site, context.profile.types.get(type_id as usize)?))
    };
    let Some((site, of)) = nodes(structure).into_iter().find_map(of_site) else {
        return (Vec::new(), has_buffers);
    };
    let link = |&offset: &u32| {
        let field = field_at(of, u64::from(offset))?;
        let index = (u64::from(offset) - field.offset) / LINK_BYTES;
        let name = match field.type_name.starts_with('[') {
            true => format!("{}[{index}]", field.name),
            false => field.name.clone(),
        };
        let type_name = &*field.type_name;
        Some(Link { name, type_name })
    };
    let is_vector = |field: &Field| field.type_name.contains("Vec<");
    let has_buffers = has_buffers || of.fields.iter().any(is_vector);
    let down = structure.offsets.get(&site).into_iter().flatten();
    (down.filter_map(link).collect(), has_buffers)
}

/// What nodes in these places leave of the time that the program takes with `CcMalloc`.
fn left(context: &Context<'_>, placed: &mut Placed) -> f64 {
    context.beside_allocator(placed).1.left[PROBABLE]
}

fn hint<'c>(
    context: &'c Context<'c>,
    structure: &Linked,
    forest: &Forest,
) -> Option<Candidate<'c>> {
    let sites = nodes(structure);
    if forest.late_owners > LATE || sites.is_empty() {
        return None;
    }
    let mut judged = POLICIES.map(|policy| {
        let mut placed = forest.hinted(policy);
        (left(context, &mut placed), policy, placed)
    });
    let [(near, ..), (closest, ..), (first, ..)] = judged;
    let others = [(closest, "Closest"), (first, "FirstFit")];
    // Another policy is one of a heap: it must be better by more than a replay can tell.
    let better = others
        .into_iter()
        .find(|&(left, _)| left < near * CLEARLY && left <= closest);
    let placed = std::mem::take(&mut judged[0].2);
    let object = Object::new(context, &sites);
    let (name, links) = (object.name(), links(context, structure).0);
    let allocations = sum({ sites.iter() }
        .filter_map(|&site| context.profile.sites.get(site as usize))
        .map(|site| site.allocations));
    let each = hint_ns(context, forest.bytes());
    let mut fields: Vec<&str> = { links.iter() }
        .map(|link| link.name.split('[').next().unwrap_or_default())
        .collect();
    fields.dedup();
    let through = match fields.is_empty() {
        true => String::new(),
        false => format!(" through `{}`", fields.join(", ")),
    };
    let policy = better.map(|(left, policy)| {
        format!(
            "; with the policy `{policy}` (`Heap::with_policy`) the replay takes {:.0} % of the \
             time of that",
            left / near * 100.0
        )
    });
    Some(Candidate {
        kind: Kind::Hint,
        sites,
        what: format!(
            "allocate each {name} near the one that leads to it{through}{}",
            policy.unwrap_or_default()
        ),
        code: Some(object.preamble() + &object.near("node", Some("parent"), is_raw(&links))),
        cost_ns: each * allocations as f64,
        break_even: None,
        wrong_if: "nodes are allocated before it is known who leads to them, or often change \
                   places"
            .to_owned(),
        rewrite: Box::new(placed),
    })
}

/// What a hinted allocation takes longer than another, in a structure of so many bytes.
pub(super) fn hint_ns(context: &Context<'_>, bytes: u64) -> f64 {
    let latency = context.replay.latency_ns(bytes) * context.models[0].of_misses;
    HINT_NS + HINT_WAITS * latency
}

/// The first step after the structure of these sites is finished, if the windows show any.
pub(super) fn finished(context: &Context<'_>, sites: &[u32]) -> Option<usize> {
    let mut groups: Vec<(u64, u64)> = Vec::new();
    for &site in sites {
        let site = context.profile.sites.get(site as usize)?;
        match site.groups.is_empty() {
            true => groups.push((site.last_time, site.allocations)),
            false => groups.extend(site.groups.iter().map(|it| (it.last_allocated, it.chunks))),
        }
    }
    groups.sort_unstable();
    let all = sum(groups.iter().map(|group| group.1));
    let mut built = 0u64;
    let time = groups.iter().find(|group| {
        built = built.saturating_add(group.1);
        built as f64 >= FINISHED * all as f64
    });
    context.trace.first_after(time?.0)
}

/// The first step of the windows from which on links hardly change: those that change all the time
/// lead out of any layout.
fn settled(context: &Context<'_>, structure: &Linked) -> Option<usize> {
    let is_link = |step: &&Step| {
        let site = context.trace.site(step);
        let place = structure.place(context.profile, site, step.offset);
        step.object != NONE && place.is_some()
    };
    let is_settled = |window: &std::ops::Range<usize>| {
        let links = || context.trace.steps[window.clone()].iter().filter(is_link);
        let writes = links().filter(|step| step.write).count();
        writes as f64 <= WRITTEN * links().count() as f64
    };
    let windows: Vec<_> = context.trace.windows().collect();
    let last = windows.into_iter().rev().take_while(is_settled).last();
    last.map(|window| window.start)
}

fn morph<'c>(
    context: &'c Context<'c>,
    structure: &Linked,
    forest: &Forest,
) -> Option<Candidate<'c>> {
    let from = finished(context, &structure.sites)?.max(settled(context, structure)?);
    let object = Object::new(context, &nodes_or_buffers(structure));
    let is_rebuilt = !forest.bytes.is_empty() && object.language != Language::Rust
        || structure
            .sites
            .iter()
            .any(|&site| Object::new(context, &[site]).is_shared());
    let layouts = match object.language {
        // New nodes lie in the order of their births.
        _ if is_rebuilt => &MORPHS[1..2],
        Language::Rust => &MORPHS[..],
        // C's function has the layout for searches alone.
        _ => &MORPHS[..1],
    };
    let judged: Vec<_> = { layouts.iter() }
        .map(|&layout| {
            let mut placed = forest.place(layout, from);
            (left(context, &mut placed), layout, placed)
        })
        .collect();
    let usual = judged[0].0;
    // The first is the usual one.
    let best = judged
        .into_iter()
        .reduce(|best, next| match next.0 < best.0.min(usual * CLEARLY) {
            true => next,
            false => best,
        });
    let (_, layout, placed) = best?;
    let (links, owns_buffers) = links(context, structure);
    let code = match is_rebuilt {
        true => None,
        false => Some(object.morph(layout, &links, owns_buffers)?),
    };
    let (name, chunks) = (object.name(), count(forest.count));
    let nodes = usize::try_from(forest.count).unwrap_or(usize::MAX);
    let pages = match forest.bytes() >= HUGE_BYTES {
        true => PageSize::Huge2M,
        false => PageSize::Small4K,
    };
    let buffers = match forest.buffers.is_empty() {
        true => "",
        false => " and buffers",
    };
    let cost_ns =
        morph_cost(nodes, forest.node, pages, context.machine) + FRESH_NS * forest.bytes() as f64;
    Some(Candidate {
        kind: Kind::Morph,
        sites: structure.sites.clone(),
        what: match is_rebuilt {
            true => format!(
                "rebuild the {chunks} nodes{buffers} of {name} once they are built: a copy of the \
                 whole, each node allocated when a walk comes to it, lies in the order of use"
            ),
            false => format!("lay out the {chunks} nodes{buffers} of {name} once they are built"),
        },
        code,
        cost_ns: match is_rebuilt {
            true => cost_ns + REBUILT_NS * forest.count as f64,
            false => cost_ns,
        },
        break_even: Some("again when half as many nodes are new".to_owned()),
        wrong_if: match is_rebuilt {
            true => "others hold pointers to the nodes, which a copy would have to replace",
            false => "others hold addresses of the nodes",
        }
        .to_owned(),
        rewrite: Box::new(placed),
    })
}
