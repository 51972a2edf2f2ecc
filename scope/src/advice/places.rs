//! Where the nodes of a structure would lie: hints when they are allocated, or one morph.
//!
//! The pointers in the windows give the nodes that were used and who led to whom. The nodes that
//! no window shows are made up, as subtrees of equal size at the links that no window followed:
//! without them, those that were used would have the caches for themselves. Then a [`Layout`] of
//! the model places all of them.

use std::collections::{HashMap, HashSet};

use ccmodel::{HintPolicy, Layout, NO_NODE, NodeExtent, PageSize, Shape, morph_cost};

use super::code::{Language, Link, Object, is_raw};
use super::dense::NEW_MEMORY;
use super::{Candidate, Context, Kind};
use crate::analyses::replay::processor::compare;
use crate::analyses::replay::trace::{NONE, Step, index_32};
use crate::analyses::replay::{PROBABLE, PlacedAccess, Rewrite};
use crate::analyses::structures::{Structure, element_offset, structures};
use crate::analyses::types::field_at;
use crate::analyses::units::count;

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
const WRITTEN: f64 = 0.05;
/// Nanoseconds for a byte of new memory from the system (a virtual EPYC, 23 November 2026).
const FRESH_NS: f64 = 0.6;
/// A structure is finished when this part of its nodes is allocated.
const FINISHED: f64 = 0.95;
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
    let mut own: Vec<u32> = context.own_types().into_iter().flatten().collect();
    // Containers of C++ take an allocator, which may hint.
    let is_cxx = |site: &u32| Language::of(context.profile, &[*site]) == Language::Cxx;
    own.extend(context.waiting_sites().into_iter().filter(is_cxx));
    let mut found = Vec::new();
    for structure in structures(context.profile) {
        if !structure.sites.iter().any(|site| own.contains(site)) {
            continue;
        }
        let Some(forest) = Forest::new(context, &structure) else {
            continue;
        };
        found.extend(hint(context, &structure, &forest));
        found.extend(morph(context, &structure, &forest));
    }
    found
}

/// Nodes of a structure, those that were seen and those that were not.
struct Forest {
    shape: Shape,
    /// By object.
    nodes: HashMap<u32, u32>,
    node: NodeExtent,
    /// Alive at the peak.
    count: u64,
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
    fn new(context: &Context<'_>, structure: &Structure) -> Option<Forest> {
        let sites = || {
            let sites = structure.sites.iter();
            sites.filter_map(|&site| context.profile.sites.get(site as usize))
        };
        let bytes = sites().map(|site| site.largest).max()?;
        if bytes == 0 || bytes > MAX_NODE_BYTES {
            return None;
        }
        let node = NodeExtent::new(u32::try_from(bytes).ok()?, 8).ok()?;
        let count = sites().fold(0, |sum: u64, site| sum.saturating_add(site.peak_chunks));
        let links = Links::new(context, structure);
        let (shape, nodes) = links.complete(count.min(MAX_NODES))?;
        Some(Forest {
            shape,
            nodes,
            node,
            count,
        })
    }

    fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.node.stride_bytes())
    }

    fn place(&self, layout: Layout, from: usize) -> Placed {
        let placement = layout.place(&self.shape, self.node);
        let of_node = |(&object, &node): (&u32, &u32)| (object, placement.offset(node));
        Placed {
            by_object: self.nodes.iter().map(of_node).collect(),
            from,
        }
    }
}

/// Pointers between nodes, as the windows show them.
struct Links {
    /// Objects, and by place in the node those that it leads to.
    children: HashMap<u32, Vec<Option<u32>>>,
    /// Places that were seen to lead nowhere.
    ends: HashSet<(u32, usize)>,
    /// Objects, parents before children.
    roots: Vec<u32>,
    fan_out: usize,
}

impl Links {
    fn new(context: &Context<'_>, structure: &Structure) -> Links {
        let trace = context.trace;
        let place_of: HashMap<u32, usize> = { structure.offsets.iter() }
            .filter(|offset| !structure.back.contains(offset))
            .enumerate()
            .map(|(place, &offset)| (offset, place))
            .collect();
        let fan_out = place_of.len().clamp(1, MAX_CHILDREN);
        let is_node = |object: u32| {
            let found = trace.object(object);
            found.is_some_and(|object| structure.sites.contains(&object.site))
        };
        let mut parent_of: HashMap<u32, u32> = HashMap::new();
        let mut children: HashMap<u32, Vec<Option<u32>>> = HashMap::new();
        let (mut order, mut ends) = (Vec::new(), HashSet::new());
        for step in trace.steps.iter().filter(|step| is_node(step.object)) {
            let entry = children.entry(step.object).or_insert_with(|| {
                order.push(step.object);
                vec![None; fan_out]
            });
            let offset = element_offset(context.profile, trace.site(step), step.offset);
            let Some(&place) = place_of.get(&offset).filter(|_| step.size == 8) else {
                continue;
            };
            if !is_node(step.target) {
                if !step.write {
                    ends.insert((step.object, place));
                }
                continue;
            }
            if parent_of.contains_key(&step.target)
                || leads_to(&parent_of, step.object, step.target)
            {
                continue;
            }
            if let Some(child @ None) = entry.get_mut(place) {
                *child = Some(step.target);
                parent_of.insert(step.target, step.object);
                children.entry(step.target).or_insert_with(|| {
                    order.push(step.target);
                    vec![None; fan_out]
                });
            }
        }
        order.retain(|object| !parent_of.contains_key(object));
        Links {
            children,
            ends,
            roots: order,
            fan_out,
        }
    }

    /// The forest of `count` nodes, and the node of each object.
    fn complete(&self, count: u64) -> Option<(Shape, HashMap<u32, u32>)> {
        let seen = self.children.len() as u64;
        if seen == 0 {
            return None;
        }
        let is_open = |object: u32, place: usize| {
            let children = self.children.get(&object);
            children.is_some_and(|children| children.get(place).is_some_and(Option::is_none))
                && !self.ends.contains(&(object, place))
        };
        let objects = self.children.keys();
        let open: u64 = objects
            .map(|&object| {
                (0..self.fan_out)
                    .filter(|&place| is_open(object, place))
                    .count() as u64
            })
            .sum();
        let missing = count.saturating_sub(seen);
        let mut parents: Vec<u32> = Vec::new();
        let mut nodes = HashMap::new();
        let mut subtrees = Subtrees::new(missing, open, self.fan_out);
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
                    for (place, child) in children.iter().enumerate().rev() {
                        match child {
                            Some(child) => todo.push((Hanging::Object(*child), node)),
                            None if is_open(object, place) => {
                                todo.push((Hanging::Unseen(subtrees.next()), node));
                            }
                            None => {}
                        }
                    }
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

/// The fields that lead from node to node, and whether nodes own buffers of others.
fn links<'c>(context: &'c Context<'_>, structure: &Structure) -> (Vec<Link<'c>>, bool) {
    let site = { structure.sites.first() }.and_then(|&it| context.profile.sites.get(it as usize));
    let type_id = site.and_then(|site| site.type_id);
    let Some(of) = type_id.and_then(|id| context.profile.types.get(id as usize)) else {
        return (Vec::new(), false);
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
    let down = { structure.offsets.iter() }.filter(|offset| !structure.back.contains(offset));
    let owns_buffers = of
        .fields
        .iter()
        .any(|field| field.type_name.contains("Vec<"));
    (down.filter_map(link).collect(), owns_buffers)
}

/// What nodes in these places leave of the run's time.
fn left(context: &Context<'_>, placed: &mut Placed) -> f64 {
    let after = context.replay.run(context.trace, placed);
    compare(context.trace, context.before, &after, context.models).left[PROBABLE]
}

fn hint<'c>(
    context: &'c Context<'c>,
    structure: &Structure,
    forest: &Forest,
) -> Option<Candidate<'c>> {
    let mut judged = POLICIES.map(|policy| {
        let mut placed = forest.place(Layout::Hinted { policy }, 0);
        (left(context, &mut placed), policy, placed)
    });
    let [(near, ..), (closest, ..), (first, ..)] = judged;
    let others = [(closest, "Closest"), (first, "FirstFit")];
    // Another policy is one of a heap: it must be better by more than a replay can tell.
    let better = others
        .into_iter()
        .find(|&(left, _)| left < near * CLEARLY && left <= closest);
    let placed = std::mem::take(&mut judged[0].2);
    let object = Object::new(context, &structure.sites);
    let (name, links) = (object.name(), links(context, structure).0);
    let allocations: u64 = { structure.sites.iter() }
        .filter_map(|&site| context.profile.sites.get(site as usize))
        .fold(0, |sum, site| sum.saturating_add(site.allocations));
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
        sites: structure.sites.clone(),
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

/// The first step after the structure is finished, if the windows show any.
fn finished(context: &Context<'_>, structure: &Structure) -> Option<usize> {
    let mut groups: Vec<(u64, u64)> = Vec::new();
    for &site in &structure.sites {
        let site = context.profile.sites.get(site as usize)?;
        match site.groups.is_empty() {
            true => groups.push((site.last_time, site.allocations)),
            false => groups.extend(site.groups.iter().map(|it| (it.last_allocated, it.chunks))),
        }
    }
    groups.sort_unstable();
    let all: u64 = groups
        .iter()
        .fold(0, |sum, group| sum.saturating_add(group.1));
    let mut sum = 0u64;
    let time = groups.iter().find(|group| {
        sum = sum.saturating_add(group.1);
        sum as f64 >= FINISHED * all as f64
    });
    context.trace.first_after(time?.0)
}

/// The first step of the windows from which on links hardly change: those that change all the time
/// lead out of any layout.
fn settled(context: &Context<'_>, structure: &Structure) -> Option<usize> {
    let is_link = |step: &&Step| {
        step.object != NONE
            && structure.sites.contains(&context.trace.site(step))
            && structure.offsets.contains(&step.offset)
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
    structure: &Structure,
    forest: &Forest,
) -> Option<Candidate<'c>> {
    let from = finished(context, structure)?.max(settled(context, structure)?);
    let object = Object::new(context, &structure.sites);
    // C's function has the layout for searches alone.
    let layouts = match object.language {
        Language::Rust => &MORPHS[..],
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
    let code = object.morph(layout, &links, owns_buffers)?;
    let name = object.name();
    let nodes = usize::try_from(forest.count).unwrap_or(usize::MAX);
    let pages = match forest.bytes() >= HUGE_BYTES {
        true => PageSize::Huge2M,
        false => PageSize::Small4K,
    };
    Some(Candidate {
        kind: Kind::Morph,
        sites: structure.sites.clone(),
        what: format!(
            "lay out the {} nodes of {name} once they are built",
            count(forest.count)
        ),
        code: Some(code),
        cost_ns: morph_cost(nodes, forest.node, pages, context.machine)
            + FRESH_NS * forest.bytes() as f64,
        break_even: Some("again when half as many nodes are new".to_owned()),
        wrong_if: "others hold addresses of the nodes".to_owned(),
        rewrite: Box::new(placed),
    })
}
