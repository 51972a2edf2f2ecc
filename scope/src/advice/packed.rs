//! Nodes that own vectors of links, in one vector, and all links in a second one.
//!
//! For graphs, which searches go through in no order that repeats. Nodes stay in the order of their
//! addresses, and the links of each follow those of the one before.

use std::collections::{BTreeSet, HashMap};

use super::code::{self, Language, Object};
use super::dense::{APART, NEW_MEMORY, moved, spread};
use super::elements::{Element, Structure};
use super::places::FRESH_NS;

use super::{Candidate, Context, Kind};
use crate::analyses::replay::trace::NONE;
use crate::analyses::units::{count, ratio, sum};

/// Fewer nodes fit the caches in any case.
const MIN_NODES: usize = 1000;

/// `structure` is one that no walk goes through again and again.
pub(super) fn candidate<'c>(
    context: &'c Context<'c>,
    mut structure: Structure,
) -> Option<Candidate<'c>> {
    let (profile, trace) = (context.profile, context.trace);
    let windows = { trace.windows() }.filter(|window| window.start >= structure.from);
    let windows: Vec<_> = windows.collect();
    structure.touch(trace, &windows);
    let elements = &structure.elements;
    let is_node = |site: u32| elements.get(&site).is_some_and(Element::is_node);
    // By buffer of links, its node.
    let mut owner_of: HashMap<u32, u32> = HashMap::new();
    for step in trace.steps.iter().filter(|step| step.target != NONE) {
        let to = trace.object(step.target)?.site;
        if is_node(trace.site(step)) && elements.get(&to).is_some_and(Element::is_links) {
            owner_of.insert(step.target, step.object);
        }
    }
    let sites: Vec<u32> = { structure.sites.iter().copied() }
        .filter(|&site| is_node(site))
        .collect();
    let alive = sum({ sites.iter() }
        .filter_map(|&site| profile.sites.get(site as usize))
        .map(|site| site.peak_chunks));
    let seen: Vec<(u64, u32)> = { (0..NONE).zip(&trace.objects) }
        .filter(|(_, object)| object.accesses > 0 && is_node(object.site))
        .map(|(index, object)| (object.base, index))
        .collect();
    if seen.len() < MIN_NODES || owner_of.len() < MIN_NODES {
        return None;
    }
    let nodes = seen.len() as u64;
    let least = { sites.iter() }
        .filter_map(|&site| profile.sites.get(site as usize))
        .map(|site| site.smallest)
        .min();
    let ranks = spread(seen, alive as f64, least.unwrap_or(0));
    let each = { sites.iter() }.map(|site| elements[site].size()).max()?;
    // Links of a node, in the mean.
    let bytes = owner_of
        .keys()
        .map(|&buffer| u64::from(context.chunks.bytes(buffer)) / 2);
    let links = sum(bytes).div_ceil(nodes);
    let mut to = vec![0; trace.steps.len()];
    for at in windows.into_iter().flatten() {
        let step = &trace.steps[at];
        let Some(element) = elements.get(&trace.site(step)) else {
            continue;
        };
        let start = match owner_of.get(&step.object) {
            Some(owner) => ranks
                .get(owner)
                .map(|rank| APART + rank.wrapping_mul(links) % APART + u64::from(step.offset) / 2),
            None if element.is_node() => { ranks.get(&step.object) }
                .map(|rank| rank * u64::from(each) + u64::from(element.packed(step.offset))),
            None => None,
        };
        if let Some(start) = start {
            to[at] = NEW_MEMORY + APART + start;
        }
    }
    let object = Object::new(context, &sites);
    let name = object.name();
    let all: BTreeSet<u32> = sites.iter().chain(&structure.sites).copied().collect();
    let bytes = (u64::from(each) + links) as f64 * alive as f64;
    let latency = context
        .replay
        .latency_ns(crate::analyses::units::rounded(bytes));
    Some(Candidate {
        kind: Kind::Idea,
        sites: all.into_iter().collect(),
        what: format!(
            "once they are built, put what is used of the {} {name} into one vector, {each} bytes \
             each, and the links of all into a second one, as numbers of 4 bytes: {:.1} for each \
             {name} in the mean",
            count(alive),
            ratio(links, 4),
        ),
        code: (object.language == Language::Rust).then(|| code::text("links in one vector", &[])),
        cost_ns: (latency * context.models[0].of_misses) * alive as f64 + FRESH_NS * bytes,
        break_even: Some("again when nodes come, go or are linked anew".to_owned()),
        wrong_if: "nodes are linked anew all the time".to_owned(),
        rewrite: moved(to),
    })
}
