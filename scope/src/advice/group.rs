//! Objects of a site apart from all others, or next to what leads to them.

use std::collections::HashMap;

use super::dense::{APART, NEW_MEMORY, chunk, ranks};
use super::replay::Place;
use super::trace::{NONE, Step};
use super::{Candidate, Context, Kind, site_type};
use crate::analyses::structures::element_offset;
use crate::analyses::types::field_at;
use crate::analyses::units::{count, ratio};
use crate::profile::Site;

/// Larger objects have pages of their own.
const MAX_BYTES: u64 = 512;
/// Fewer objects fit the caches in any case.
const MIN_OBJECTS: u64 = 1000;
/// A site whose objects take more than this times their size lies among others.
const DILUTED: f64 = 1.5;
/// A pair of objects that is larger shares no block, and few pages more than before.
const MAX_PAIR: u64 = 256;
/// A field leads to the objects of a site if its loads do in this part.
const MOSTLY: f64 = 0.9;

/// A heap of their own for sites that lie among others, and hints for what one field leads to.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let waiting = context.waiting_sites();
    let apart = waiting.iter().filter_map(|&site| segregate(context, site));
    let pairs = waiting.iter().filter_map(|&site| pair(context, site));
    apart.chain(pairs).collect()
}

/// Sites of many small objects of one size.
fn small(context: &Context<'_>, site: u32) -> Option<Site> {
    let found = context.profile.sites.get(site as usize)?;
    let is_small = found.smallest == found.largest && (1..=MAX_BYTES).contains(&found.largest);
    (is_small && found.peak_chunks >= MIN_OBJECTS).then(|| found.clone())
}

fn name(context: &Context<'_>, site: u32) -> String {
    let name = site_type(context.profile, site).unwrap_or("bytes");
    let inner = name
        .strip_prefix("Box<")
        .and_then(|name| name.strip_suffix('>'));
    inner.unwrap_or(name).to_owned()
}

/// What `near` and `Heap` round sizes up to.
fn stride(bytes: u64) -> u64 {
    bytes.next_multiple_of(8)
}

fn segregate<'c>(context: &'c Context<'c>, site: u32) -> Option<Candidate<'c>> {
    let found = small(context, site)?;
    let ranks = ranks(context, &[site]);
    let highest = ranks.values().max()?;
    let objects = &context.trace.objects;
    let bases = || ranks.keys().map(|&object| objects[object as usize].base);
    let span = bases().max()? - bases().min()?;
    if (span as f64) < DILUTED * (highest * chunk(found.largest)) as f64 {
        return None;
    }
    let name = name(context, site);
    Some(Candidate {
        kind: Kind::Group,
        sites: vec![site],
        what: format!(
            "give {name} a heap of its own: its {} objects lie among others, which are used \
             elsewhere",
            count(found.peak_chunks)
        ),
        code: Some(format!(
            "let heap = ccmalloc::Heap::new().expect(\"memory\");\nBox::new_in({name} {{ .. }}, \
             &heap)"
        )),
        cost_ns: 0.0,
        break_even: None,
        wrong_if: "what lies between them today is used together with them".to_owned(),
        rewrite: Box::new(move |_: usize, step: &Step, into: &mut Vec<Place>| {
            let start = ranks
                .get(&step.object)
                .map(|rank| rank * stride(found.largest));
            into.push(start.map_or(Place::today(step), |start| {
                Place::at(NEW_MEMORY + APART + start + u64::from(step.offset), step)
            }));
        }),
    })
}

/// The site and the field of it that mostly leads to objects of `site`, and each object's own.
fn owners(context: &Context<'_>, site: u32) -> Option<(u32, u32, HashMap<u32, u32>)> {
    let trace = context.trace;
    let mut of_field: HashMap<(u32, u32), HashMap<u32, u32>> = HashMap::new();
    let (mut all, mut several) = (0, 0u64);
    for step in trace.steps.iter().filter(|step| step.target != NONE) {
        let target = trace.object(step.target)?;
        let owner = trace.site(step);
        if target.site != site || owner == NONE || owner == site {
            continue;
        }
        all += 1;
        let offset = element_offset(context.profile, owner, step.offset);
        let owners = of_field.entry((owner, offset)).or_default();
        let known = owners.entry(step.target).or_insert(step.object);
        several += u64::from(*known != step.object);
    }
    let ((owner, offset), owners) = of_field.into_iter().max_by_key(|(_, it)| it.len())?;
    let own = small(context, owner)?;
    let is_own = ratio(several, all) < 1.0 - MOSTLY && own.largest > u64::from(offset);
    is_own.then_some((owner, offset, owners))
}

/// Objects that one field of another small object leads to.
fn pair<'c>(context: &'c Context<'c>, site: u32) -> Option<Candidate<'c>> {
    let found = small(context, site)?;
    let (owner, offset, owner_of) = owners(context, site)?;
    let own = small(context, owner)?;
    let each = stride(own.largest) + stride(found.largest);
    if each > MAX_PAIR {
        return None;
    }
    let ranks = ranks(context, &[owner]);
    let starts: HashMap<u32, u64> = { owner_of.iter() }
        .filter_map(|(&object, owner)| {
            let start = ranks.get(owner)? * each + stride(own.largest);
            Some((object, start))
        })
        .chain(ranks.iter().map(|(&owner, rank)| (owner, rank * each)))
        .collect();
    let type_id = own
        .type_id
        .and_then(|id| context.profile.types.get(id as usize));
    let field = type_id.and_then(|it| field_at(it, u64::from(offset)));
    let field = field.map_or(format!("offset {offset}"), |it| format!("`{}`", it.name));
    let (what, whose) = (name(context, site), name(context, owner));
    Some(Candidate {
        kind: Kind::Hint,
        sites: vec![site, owner],
        what: format!("allocate each {what} near the {whose} whose {field} leads to it"),
        code: Some(format!(
            "#[global_allocator]\nstatic GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();\n\
             ccmalloc::near(&owner, || Box::new({what} {{ .. }})) // the {whose} near what leads \
             to it"
        )),
        cost_ns: 2.0 * super::places::HINT_NS * found.allocations as f64,
        break_even: None,
        wrong_if: format!("the {whose} is not allocated yet when the {what} is"),
        rewrite: Box::new(move |_: usize, step: &Step, into: &mut Vec<Place>| {
            let start = starts.get(&step.object);
            into.push(start.map_or(Place::today(step), |start| {
                Place::at(NEW_MEMORY + start + u64::from(step.offset), step)
            }));
        }),
    })
}
