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
use super::elements::{Element, NUMBER_BYTES, Node, Structure, structures, type_of};
use super::places::{FRESH_NS, WRITTEN};
use super::{Candidate, Context, Kind, packed};
use crate::analyses::replay::PROBABLE;
use crate::analyses::replay::trace::Step;
use crate::analyses::types::field_at;
use crate::analyses::units::{count, ratio, rounded, sum};
use crate::profile::Site;

/// Two windows that have fewer nodes in common say nothing of each other.
const MIN_COMMON: u32 = 16;
/// They show one walk if so many of these are followed by the same one.
const SAME: f64 = 0.75;
/// Windows of which this is known are compared with so many others at each node.
const MAX_COMPARED: usize = 16;
/// No order is missing where so many of the nodes lie just behind the one before.
const IN_ORDER: f64 = 0.7;
const CLOSE_BYTES: u64 = 256;

/// For each structure that the program waits for.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let found = structures(context).into_iter();
    found
        .filter_map(|sites| candidate(context, sites))
        .collect()
}

/// The windows of walks, and the nodes in their order.
struct Walk {
    windows: Vec<Range<usize>>,
    order: Vec<Node>,
    /// How often the windows come to a node.
    visits: u64,
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
    let is_walked = |site: &&u32| elements[site].touched.contains(&true);
    let all_nodes = sum(sites.iter().filter(is_walked).map(number));
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
        // Vectors have room that nobody has touched.
        Some(bytes) if site.largest > bytes.into() => {
            let used = ratio(site.touched_bytes, site.requested).min(1.0);
            rounded(site.peak_usable as f64 * used) / u64::from(bytes)
        }
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
