//! Structures of chunks that lead to each other, by boxes or by buffers, and their elements.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::Context;
use super::places::{WRITTEN, finished};
use crate::analyses::replay::trace::{NONE, Step, Trace};
use crate::analyses::structures::{collection, element_offset, groups};
use crate::analyses::types::type_name;
use crate::profile::{Site, Type};

/// Larger nodes have lines of their own in any order.
const MAX_NODE: u32 = 1024;
/// Fewer pointers between two sites make no structure.
const MIN_LOADS: u64 = 16;
/// A link, and a number in its place.
const LINK_BYTES: u32 = 8;
pub(super) const NUMBER_BYTES: u32 = 4;
/// Their nodes are not the program's to place.
const MAPS: [&str; 6] = [
    "BTreeMap",
    "BTreeSet",
    "HashMap",
    "HashSet",
    "HashTable",
    "VecDeque",
];

/// An element of a chunk: a node in a chunk of its own is its only one.
pub(super) type Node = (u32, u32);

/// What of the elements that a site allocates goes into the vector.
pub(super) struct Element {
    /// `None` where a chunk is one node, whatever its size, of which all bytes are kept.
    pub(super) bytes: Option<u32>,
    /// Whether a chunk has many.
    is_buffer: bool,
    /// By byte: whether a walk touches it.
    pub(super) touched: Vec<bool>,
    /// Offsets of links to nodes of the structure.
    links: BTreeSet<u32>,
}

impl Element {
    /// `None` for what has no place in the vector. `leading`: see [`leading`].
    fn new(context: &Context<'_>, leading: &HashSet<u32>, site: u32) -> Option<Element> {
        let found = context.profile.sites.get(site as usize)?;
        let of = type_of(context, found);
        let name = type_name(context.profile, found.type_id).unwrap_or_default();
        let is_buffer = name.starts_with("Vec<") || name.contains("<[");
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let size = of.and_then(|of| of.size).filter(|_| is_buffer).map(narrow);
        let has_parts = of.is_some_and(|of| !of.fields.is_empty()) || leading.contains(&site);
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

    pub(super) fn node(&self, step: &Step) -> (Node, u32) {
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

pub(super) fn type_of<'p>(context: &Context<'p>, site: &Site) -> Option<&'p Type> {
    context.profile.types.get(site.type_id? as usize)
}

/// Sites whose chunks lead on.
fn leading(context: &Context<'_>) -> HashSet<u32> {
    let edges = context.profile.edges.iter();
    let edges = edges.filter(|edge| edge.loads >= MIN_LOADS);
    edges.map(|edge| edge.from).collect()
}

/// Sites whose chunks lead to each other, and those of one type: the ones that the windows show.
pub(super) fn structures(context: &Context<'_>) -> Vec<Vec<u32>> {
    let profile = context.profile;
    let sites = 0..u32::try_from(profile.sites.len()).unwrap_or(NONE);
    let accessed: BTreeSet<u32> = { context.trace.objects.iter() }
        .filter(|object| object.accesses > 0)
        .map(|object| object.site)
        .collect();
    let leading = leading(context);
    let is_element = |&site: &u32| Element::new(context, &leading, site).is_some();
    let is_part = |site: &u32| accessed.contains(site) && is_element(site);
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

/// Chunks that lead to each other, once they are built.
pub(super) struct Structure {
    /// Those that the program waits for come first.
    pub(super) sites: Vec<u32>,
    pub(super) waited: usize,
    pub(super) elements: HashMap<u32, Element>,
    /// The first step from which on hardly any link is written.
    pub(super) from: usize,
}

impl Structure {
    pub(super) fn new(context: &Context<'_>, sites: Vec<u32>) -> Option<Structure> {
        let waiting = context.waiting_sites();
        let (waited, others): (Vec<u32>, Vec<u32>) =
            sites.iter().partition(|site| waiting.contains(site));
        let leading = leading(context);
        let mut elements: HashMap<u32, Element> = { sites.iter() }
            .filter_map(|&site| Some((site, Element::new(context, &leading, site)?)))
            .collect();
        let own: HashSet<u32> = sites.iter().copied().collect();
        for edge in { context.profile.edges.iter() }.filter(|it| own.contains(&it.to)) {
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
