//! One vector in the order of use, for nodes that walks go through again and again.
//!
//! The windows are a sample: what follows what in one of them is the order of a walk if another one
//! shows the same. So searches are told from walks, whatever links the nodes: pointers, buffers of
//! pointers, numbers. The replay puts what such windows touch of a node into one piece, pieces one
//! behind the other, with four bytes for a link. All other windows use the nodes as they are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use super::code::{self, Language, Object};
use super::dense::{APART, NEW_MEMORY, moved};
use super::places::{FRESH_NS, WRITTEN, finished};
use super::{Candidate, Context, Kind, packed};
use crate::analyses::replay::PROBABLE;
use crate::analyses::replay::trace::{NONE, Step, Trace};
use crate::analyses::structures::{collection, element_offset, groups};
use crate::analyses::types::{field_at, type_name};
use crate::analyses::units::{count, ratio, sum};
use crate::profile::{Site, Type};

/// Larger nodes have lines of their own in any order.
const MAX_NODE: u32 = 1024;
/// Fewer pointers between two sites make no structure.
const MIN_LOADS: u64 = 16;
/// Two windows that have fewer nodes in common say nothing of each other.
const MIN_COMMON: u32 = 16;
/// They show one walk if so many of these are followed by the same one.
const SAME: f64 = 0.75;
/// Windows of which this is known are compared with so many others at each node.
const MAX_COMPARED: usize = 16;
/// No order is missing where so many of the nodes lie just behind the one before.
const IN_ORDER: f64 = 0.7;
const CLOSE_BYTES: u64 = 256;
/// A link, and a number in its place.
const LINK_BYTES: u32 = 8;
const NUMBER_BYTES: u32 = 4;
/// Their nodes are not the program's to place.
const MAPS: [&str; 6] = [
    "BTreeMap",
    "BTreeSet",
    "HashMap",
    "HashSet",
    "HashTable",
    "VecDeque",
];

/// For each structure that the program waits for.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let found = structures(context).into_iter();
    found
        .filter_map(|sites| candidate(context, sites))
        .collect()
}

/// An element of a chunk: a node in a chunk of its own is its only one.
type Node = (u32, u32);

/// What of the elements that a site allocates goes into the vector.
pub(super) struct Element {
    /// `None` where a chunk is one node, whatever its size, of which all bytes are kept.
    bytes: Option<u32>,
    /// Whether a chunk has many.
    is_buffer: bool,
    /// By byte: whether a walk touches it.
    touched: Vec<bool>,
    /// Offsets of links to nodes of the structure.
    links: BTreeSet<u32>,
}

impl Element {
    /// `None` for what has no place in the vector.
    fn new(context: &Context<'_>, site: u32) -> Option<Element> {
        let found = context.profile.sites.get(site as usize)?;
        let of = type_of(context, found);
        let name = type_name(context.profile, found.type_id).unwrap_or_default();
        let is_buffer = name.starts_with("Vec<") || name.contains("<[");
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let size = of.and_then(|of| of.size).filter(|_| is_buffer).map(narrow);
        let has_parts = of.is_some_and(|of| !of.fields.is_empty()) || leads_on(context, site);
        let bytes = match size {
            Some(size) if has_parts && size <= MAX_NODE => Some(size),
            None if has_parts && found.smallest == found.largest => Some(narrow(found.largest)),
            // Texts and numbers.
            _ => None,
        };
        if bytes.unwrap_or(narrow(found.largest)) > MAX_NODE {
            return None;
        }
        let is_map = MAPS.contains(&collection(context.profile, site));
        (!is_map && bytes != Some(0)).then(|| Element {
            bytes,
            is_buffer,
            touched: Vec::new(),
            links: BTreeSet::new(),
        })
    }

    /// Whether it is a node in a chunk of its own that leads on.
    pub(super) fn is_node(&self) -> bool {
        !self.is_buffer && self.bytes.is_some() && !self.links.is_empty()
    }

    /// Whether it is a link in a buffer of links.
    pub(super) fn is_links(&self) -> bool {
        self.is_buffer && self.bytes == Some(LINK_BYTES)
    }

    fn node(&self, step: &Step) -> (Node, u32) {
        let bytes = self.bytes.unwrap_or(u32::MAX);
        ((step.object, step.offset / bytes), step.offset % bytes)
    }

    fn touch(&mut self, offset: u32, size: u8) {
        let end = offset as usize + usize::from(size);
        let longest = self.bytes.unwrap_or(MAX_NODE) as usize;
        self.touched
            .resize(self.touched.len().max(end.min(longest)), false);
        let touched = self.touched.iter_mut().take(end);
        touched.skip(offset as usize).for_each(|it| *it = true);
    }

    /// Where a byte of it is in the vector.
    pub(super) fn packed(&self, offset: u32) -> u32 {
        let touched = self.touched.iter().take(offset as usize);
        let touched = touched.filter(|&&it| it).count();
        let links = self.links.range(..offset).count();
        let saved = links * (LINK_BYTES - NUMBER_BYTES) as usize;
        u32::try_from(touched.saturating_sub(saved)).unwrap_or(u32::MAX)
    }

    /// Bytes in the vector.
    pub(super) fn size(&self) -> u32 {
        self.packed(u32::MAX).next_multiple_of(NUMBER_BYTES)
    }
}

fn type_of<'p>(context: &Context<'p>, site: &Site) -> Option<&'p Type> {
    context.profile.types.get(site.type_id? as usize)
}

fn leads_on(context: &Context<'_>, site: u32) -> bool {
    let mut edges = context.profile.edges.iter();
    edges.any(|edge| edge.from == site && edge.loads >= MIN_LOADS)
}

/// Sites whose chunks lead to each other, and those of one type: the ones that the windows show.
fn structures(context: &Context<'_>) -> Vec<Vec<u32>> {
    let profile = context.profile;
    let sites = 0..u32::try_from(profile.sites.len()).unwrap_or(NONE);
    let accessed: BTreeSet<u32> = { context.trace.objects.iter() }
        .filter(|object| object.accesses > 0)
        .map(|object| object.site)
        .collect();
    let is_part = |site: &u32| accessed.contains(site) && Element::new(context, *site).is_some();
    let parts: BTreeSet<u32> = sites.filter(is_part).collect();
    let mut joined: BTreeMap<u32, Vec<u32>> = parts.iter().map(|&site| (site, vec![])).collect();
    let mut join = |a: u32, b: u32| {
        for (from, to) in [(a, b), (b, a)] {
            joined.entry(from).or_default().push(to);
        }
    };
    let of_type = groups(profile);
    for &site in &parts {
        let first = of_type.get(&site).filter(|first| parts.contains(first));
        first.iter().for_each(|&&first| join(first, site));
    }
    for edge in { profile.edges.iter() }.filter(|edge| edge.loads >= MIN_LOADS) {
        if parts.contains(&edge.from) && parts.contains(&edge.to) {
            join(edge.from, edge.to);
        }
    }
    let (mut done, mut found) = (BTreeSet::new(), Vec::new());
    for site in context.waiting_sites() {
        if parts.contains(&site) && done.insert(site) {
            let (mut sites, mut at) = (vec![site], 0);
            while let Some(site) = sites.get(at) {
                at += 1;
                let next = joined.get(site).into_iter().flatten();
                let next: Vec<u32> = next.copied().filter(|&it| done.insert(it)).collect();
                sites.extend(next);
            }
            found.push(sites);
        }
    }
    found
}

/// The windows of walks, and the nodes in their order.
struct Walk {
    windows: Vec<Range<usize>>,
    order: Vec<Node>,
    /// How often the windows come to a node.
    visits: u64,
}

/// Chunks that lead to each other, once they are built.
pub(super) struct Structure {
    /// Those that the program waits for come first.
    pub(super) sites: Vec<u32>,
    waited: usize,
    pub(super) elements: HashMap<u32, Element>,
    /// The first step from which on hardly any link is written.
    pub(super) from: usize,
}

impl Structure {
    fn new(context: &Context<'_>, sites: Vec<u32>) -> Option<Structure> {
        let waiting = context.waiting_sites();
        let (waited, others): (Vec<u32>, Vec<u32>) =
            sites.iter().partition(|site| waiting.contains(site));
        let mut elements: HashMap<u32, Element> = { sites.iter() }
            .filter_map(|&site| Some((site, Element::new(context, site)?)))
            .collect();
        for edge in { context.profile.edges.iter() }.filter(|it| sites.contains(&it.to)) {
            let offset = element_offset(context.profile, edge.from, edge.offset);
            if let Some(element) = elements.get_mut(&edge.from) {
                element.links.insert(offset);
            }
        }
        Some(Structure {
            from: finished(context, &waited)?.max(settled(context, &elements)?),
            waited: waited.len(),
            sites: waited.into_iter().chain(others).collect(),
            elements,
        })
    }

    /// Takes in what these windows touch of the elements.
    pub(super) fn touch(&mut self, trace: &Trace, windows: &[Range<usize>]) {
        for step in windows.iter().flat_map(|it| &trace.steps[it.clone()]) {
            if let Some(element) = self.elements.get_mut(&trace.site(step)) {
                let offset = element.node(step).1;
                element.touch(offset, step.size);
            }
        }
        for element in self.elements.values_mut() {
            let touched = &element.touched;
            let is_touched = |at: &u32| touched.get(*at as usize).is_some_and(|&it| it);
            element.links = element.links.iter().copied().filter(is_touched).collect();
        }
    }
}

fn candidate<'c>(context: &'c Context<'c>, sites: Vec<u32>) -> Option<Candidate<'c>> {
    let structure = Structure::new(context, sites)?;
    match Walk::find(context, &structure.elements, structure.from) {
        Some(walk) => walked(context, structure, walk),
        None => packed::candidate(context, structure),
    }
}

fn walked<'c>(
    context: &'c Context<'c>,
    mut structure: Structure,
    walk: Walk,
) -> Option<Candidate<'c>> {
    let (profile, trace) = (context.profile, context.trace);
    structure.touch(trace, &walk.windows);
    let (elements, mut sites) = (&structure.elements, structure.sites);
    let waited = &mut sites[..structure.waited];
    if walk.changes_elsewhere(context, elements, structure.from) {
        return None;
    }
    let (mut starts, mut end) = (HashMap::new(), 0u64);
    for &(object, at) in &walk.order {
        let site = trace.object(object)?.site;
        starts.insert((object, at), end);
        end += match elements.get(&site)? {
            Element { bytes: None, .. } => u64::from(context.chunks.bytes(object)),
            element => u64::from(element.size()),
        }
        .next_multiple_of(NUMBER_BYTES.into());
    }
    let mut to = vec![0; trace.steps.len()];
    for at in walk.windows.iter().cloned().flatten() {
        let step = &trace.steps[at];
        let Some(element) = elements.get(&trace.site(step)) else {
            continue;
        };
        let (node, offset) = element.node(step);
        if let Some(start) = starts.get(&node) {
            let inner = match element.bytes {
                Some(_) => element.packed(offset),
                None => offset,
            };
            to[at] = NEW_MEMORY + 3 * APART + start + u64::from(inner);
        }
    }
    // The kind of node that the vector has most of names it.
    waited.sort_by_key(|&site| u32::from(!has_fields(context, site)));
    let object = Object::new(context, waited);
    let name = object.name();
    let are_fields = has_fields(context, *waited.first()?);
    let is_named = |&&site: &&u32| {
        let is_alike = has_fields(context, site) == are_fields;
        is_alike && Object::new(context, &[site]).name() == name
    };
    let number = |&site: &u32| nodes(profile.sites.get(site as usize), &elements[&site]);
    let all = sum(waited.iter().filter(is_named).map(number));
    let element = &elements[waited.first()?];
    let fields = fields(context, *waited.first()?, element);
    let listed = match fields.is_empty() {
        true => String::new(),
        false => format!(" (`{}`)", fields.join("`, `")),
    };
    let bytes = ratio(end, walk.order.len() as u64) * all as f64;
    let all_nodes = sum(sites.iter().map(number));
    Some(Candidate {
        kind: Kind::Idea,
        sites,
        what: format!(
            "once they are built, walks go through {} {} and what hangs on them in one order, \
             which is not that of their addresses: put what they read{listed} into one vector in \
             the order of use, with numbers of 4 bytes for links",
            count(all),
            name,
        ),
        code: (object.language == Language::Rust).then(|| {
            let name = name.split('<').next().unwrap_or_default();
            code::text("vector of a walk", &[("NODE", name)])
        }),
        cost_ns: walk.ns(context, all_nodes) + FRESH_NS * bytes,
        break_even: Some("again when nodes come, go or are linked anew".to_owned()),
        wrong_if: "the nodes change between the walks".to_owned(),
        rewrite: moved(to),
    })
}

fn has_fields(context: &Context<'_>, site: u32) -> bool {
    let found = context.profile.sites.get(site as usize);
    let of = found.and_then(|site| type_of(context, site));
    of.is_some_and(|of| !of.fields.is_empty())
}

/// How many elements a site has at its peak.
fn nodes(site: Option<&Site>, element: &Element) -> u64 {
    site.map_or(0, |site| match element.bytes {
        Some(bytes) if site.largest > bytes.into() => site.peak_usable / u64::from(bytes),
        _ => site.peak_chunks,
    })
}

/// The fields that walks touch.
fn fields<'c>(context: &Context<'c>, site: u32, element: &Element) -> Vec<&'c str> {
    let found = context.profile.sites.get(site as usize);
    let Some(of) = found.and_then(|site| type_of(context, site)) else {
        return Vec::new();
    };
    let touched = (0u64..).zip(&element.touched).filter(|(_, it)| **it);
    let mut names: Vec<&str> = touched
        .filter_map(|(offset, _)| Some(&*field_at(of, offset)?.name))
        .collect();
    names.dedup();
    // Those of variants have dots.
    names.retain(|name| !name.contains('.'));
    names
}

/// The first step of the windows from which on hardly any link is written.
fn settled(context: &Context<'_>, elements: &HashMap<u32, Element>) -> Option<usize> {
    let trace = context.trace;
    let is_link = |step: &&Step| {
        let element = elements.get(&trace.site(step));
        element.is_some_and(|it| it.links.contains(&it.node(step).1))
    };
    let is_settled = |window: &Range<usize>| {
        let links = || trace.steps[window.clone()].iter().filter(is_link);
        let writes = links().filter(|step| step.write).count();
        writes as f64 <= WRITTEN * links().count() as f64
    };
    let windows: Vec<_> = trace.windows().collect();
    let last = windows.into_iter().rev().take_while(is_settled).last();
    last.map(|window| window.start)
}

impl Walk {
    /// The walks from a step on; `None` if there are none, or if nodes lie in their order already.
    fn find(context: &Context<'_>, elements: &HashMap<u32, Element>, from: usize) -> Option<Walk> {
        let trace = context.trace;
        let windows: Vec<Range<usize>> =
            { trace.windows() }.filter(|it| it.start >= from).collect();
        // The nodes of each window, in the order in which it comes to them.
        let of_window = |window: &Range<usize>| {
            let (mut known, mut order) = (BTreeSet::new(), Vec::new());
            for step in &trace.steps[window.clone()] {
                if let Some(element) = elements.get(&trace.site(step)) {
                    let node = element.node(step).0;
                    if known.insert(node) {
                        order.push((node, step.address));
                    }
                }
            }
            order
        };
        let orders: Vec<Vec<(Node, u64)>> = windows.iter().map(of_window).collect();
        let repeated = repeated(&orders);
        let is_known = |it: &&Option<bool>| it.is_some();
        let known = repeated.iter().filter(is_known).count() as u64;
        let yes = repeated.iter().filter(|it| **it == Some(true)).count() as u64;
        // Windows that have nothing in common with others are like most.
        let are_most = ratio(yes, known) >= SAME;
        let is_walk = |at: usize| repeated[at].unwrap_or(are_most);
        let (mut order, mut seen) = (Vec::new(), BTreeSet::new());
        let [mut near, mut all] = [0, 0];
        for at in (0..windows.len()).filter(|&at| is_walk(at)) {
            for pair in orders[at].windows(2) {
                all += 1;
                near += u64::from(pair[1].1.wrapping_sub(pair[0].1) <= CLOSE_BYTES);
            }
            let new = orders[at].iter().filter(|(node, _)| seen.insert(*node));
            order.extend(new.map(|&(node, _)| node));
        }
        let windows = (0..).zip(windows).filter(|(at, _)| is_walk(*at));
        (all > 0 && ratio(near, all) < IN_ORDER).then(|| Walk {
            windows: windows.map(|(_, window)| window).collect(),
            order,
            visits: all,
        })
    }

    /// What one walk through so many nodes takes, as they are.
    fn ns(&self, context: &Context<'_>, nodes: u64) -> f64 {
        let trace = context.trace;
        let all = { context.before }.window_ns(trace, context.models[0], PROBABLE);
        let starts: BTreeSet<usize> = self.windows.iter().map(|it| it.start).collect();
        let own = { trace.windows().zip(all) }.filter(|(it, _)| starts.contains(&it.start));
        own.map(|(_, ns)| ns).sum::<f64>() * ratio(nodes, self.visits)
    }

    /// Whether windows of something else write what walks read: the vector would be out of date.
    fn changes_elsewhere(
        &self,
        context: &Context<'_>,
        elements: &HashMap<u32, Element>,
        from: usize,
    ) -> bool {
        let trace = context.trace;
        let starts: BTreeSet<usize> = self.windows.iter().map(|it| it.start).collect();
        let is_other = |it: &Range<usize>| it.start >= from && !starts.contains(&it.start);
        let is_read = |step: &&Step| {
            let element = elements.get(&trace.site(step));
            element.is_some_and(|it| {
                let offset = it.node(step).1;
                it.touched
                    .get(offset as usize)
                    .is_some_and(|&touched| touched)
            })
        };
        let (mut writes, mut all) = (0, 0);
        for window in trace.windows().filter(is_other) {
            let used = trace.steps[window].iter().filter(is_read);
            for step in used {
                all += 1;
                writes += u64::from(step.write);
            }
        }
        ratio(writes, all) > WRITTEN
    }
}

/// By window: whether another one goes through the same nodes in the same order. `None` for those
/// that have too few nodes in common with any.
fn repeated(orders: &[Vec<(Node, u64)>]) -> Vec<Option<bool>> {
    // By node, windows and what follows it there.
    let mut after: HashMap<Node, Vec<(usize, Node)>> = HashMap::new();
    for (window, order) in orders.iter().enumerate() {
        for pair in order.windows(2) {
            let known = after.entry(pair[0].0).or_default();
            if known.len() < MAX_COMPARED {
                known.push((window, pair[1].0));
            }
        }
    }
    let of_window = |(window, order): (usize, &Vec<(Node, u64)>)| {
        // By other window: nodes in common, and those that are followed by the same one.
        let mut others: BTreeMap<usize, [u32; 2]> = BTreeMap::new();
        for pair in order.windows(2) {
            let known = after.get(&pair[0].0).into_iter().flatten();
            for &(other, next) in known.filter(|&&(other, _)| other != window) {
                let [common, same] = others.entry(other).or_default();
                *common += 1;
                *same += u32::from(next == pair[1].0);
            }
        }
        let known = others.values().filter(|[common, _]| *common >= MIN_COMMON);
        let best = known.map(|&[common, same]| f64::from(same) / f64::from(common));
        best.max_by(f64::total_cmp).map(|best| best >= SAME)
    };
    orders.iter().enumerate().map(of_window).collect()
}
