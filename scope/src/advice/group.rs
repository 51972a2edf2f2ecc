//! Objects of a site apart from all others, or next to what leads to them.

use std::collections::{HashMap, HashSet};

use super::code::Object;
use super::dense::{APART, NEW_MEMORY, chunk, moving, ranks};
use super::places::hint_ns;
use super::{Candidate, Context, Kind};
use crate::analyses::affinity::ObjectAffinity;
use crate::analyses::replay::trace::NONE;
use crate::analyses::structures::element_offset;
use crate::analyses::types::field_at;
use crate::analyses::units::{count, ratio, sum};

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

/// A heap of their own for sites that lie among others, and places beside what leads to objects or
/// is used together with them.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let types = context.own_types();
    let apart: Vec<_> = types
        .iter()
        .filter_map(|sites| segregate(context, sites))
        .collect();
    let pairs = types.iter().filter_map(|sites| pair(context, sites));
    apart.into_iter().chain(pairs).collect()
}

/// What sites of many small objects of one size have in common: the size, and objects at the peak.
fn small(context: &Context<'_>, sites: &[u32]) -> Option<(u64, u64)> {
    let found = || { sites.iter() }.filter_map(|&site| context.profile.sites.get(site as usize));
    let size = found().next()?.largest;
    let is_one_size = found().all(|site| (site.smallest, site.largest) == (size, size));
    let objects = sum(found().map(|site| site.peak_chunks));
    let is_small = is_one_size && (1..=MAX_BYTES).contains(&size) && objects >= MIN_OBJECTS;
    is_small.then_some((size, objects))
}

/// What `near` and `Heap` round sizes up to.
fn stride(bytes: u64) -> u64 {
    bytes.next_multiple_of(8)
}

fn segregate<'c>(context: &'c Context<'c>, sites: &[u32]) -> Option<Candidate<'c>> {
    let (size, objects) = small(context, sites)?;
    let ranks = ranks(context, sites);
    let highest = ranks.values().max()?;
    let bases = || {
        ranks
            .keys()
            .map(|&it| context.trace.objects[it as usize].base)
    };
    let span = bases().max()? - bases().min()?;
    if (span as f64) < DILUTED * (highest * chunk(size)) as f64 {
        return None;
    }
    let object = Object::new(context, sites);
    let code = object.heap();
    let place = if code.is_some() {
        "a heap"
    } else {
        "a pool or an array"
    };
    let name = object.name();
    Some(Candidate {
        kind: Kind::Group,
        sites: sites.to_vec(),
        what: format!(
            "give {name} {place} of its own: its {} objects lie among others, which are used \
             elsewhere",
            count(objects)
        ),
        code,
        cost_ns: 0.0,
        break_even: None,
        wrong_if: "what lies between them today is used together with them".to_owned(),
        rewrite: moving(move |step| {
            let start = ranks.get(&step.object)? * stride(size);
            Some(NEW_MEMORY + APART + start + u64::from(step.offset))
        }),
    })
}

/// The site and the field of it that mostly leads to objects of `sites`, and each object's own.
fn owners(context: &Context<'_>, sites: &[u32]) -> Option<(u32, u32, HashMap<u32, u32>)> {
    let trace = context.trace;
    let mut of_field: HashMap<(u32, u32), HashMap<u32, u32>> = HashMap::new();
    let (mut all, mut several) = (0, 0u64);
    for step in trace.steps.iter().filter(|step| step.target != NONE) {
        let target = trace.object(step.target)?;
        let owner = trace.site(step);
        if !sites.contains(&target.site) || owner == NONE || sites.contains(&owner) {
            continue;
        }
        all += 1;
        let offset = element_offset(context.profile, owner, step.offset);
        let owners = of_field.entry((owner, offset)).or_default();
        let known = owners.entry(step.target).or_insert(step.object);
        several += u64::from(*known != step.object);
    }
    let ((owner, offset), owners) = of_field.into_iter().max_by_key(|(_, it)| it.len())?;
    let is_own = ratio(several, all) < 1.0 - MOSTLY;
    is_own.then_some((owner, offset, owners))
}

/// The site whose objects are most often used together with those of `sites`, and for each of these
/// the one of it. Of two sites it is the first.
fn partners(context: &Context<'_>, sites: &[u32]) -> Option<(u32, HashMap<u32, u32>)> {
    let trace = context.trace;
    let mut affinity = ObjectAffinity::default();
    for window in trace.windows() {
        let steps = trace.steps[window]
            .iter()
            .filter(|step| step.object != NONE);
        steps.for_each(|step| affinity.access(step.object));
        affinity.pause();
    }
    let site = |object: u32| trace.object(object).map_or(NONE, |object| object.site);
    let mut heaviest: HashMap<u32, HashMap<u32, (u64, u32)>> = HashMap::new();
    for ((a, b), weight) in affinity.edges() {
        for (object, other) in [(a, b), (b, a)] {
            if sites.contains(&site(object)) && !sites.contains(&site(other)) {
                let of_site = heaviest.entry(site(other)).or_default();
                let best = of_site.entry(object).or_default();
                *best = (*best).max((weight, other));
            }
        }
    }
    let is_small = |other: &u32| sites.iter().all(|site| other < site);
    let found = heaviest.into_iter().filter(|(other, _)| is_small(other));
    let found = found.filter(|&(other, _)| small(context, &[other]).is_some());
    let (other, of_object) = found.max_by_key(|(other, of)| (of.len(), *other))?;
    let seen = { trace.objects.iter() }.filter(|it| it.accesses > 0 && sites.contains(&it.site));
    // Each object has one of its own.
    let own: HashSet<u32> = of_object.values().map(|&(_, own)| own).collect();
    let is_pair = own.len() as f64 >= MOSTLY * seen.count() as f64;
    let of_object = of_object
        .into_iter()
        .map(|(object, (_, own))| (object, own));
    is_pair.then(|| (other, of_object.collect()))
}

/// Whether most owners are younger than what they lead to.
fn are_late(context: &Context<'_>, owner_of: &HashMap<u32, u32>) -> bool {
    let is_older = |(&object, &owner): (&u32, &u32)| context.chunks.is_older(owner, object);
    let known: Vec<bool> = owner_of.iter().filter_map(is_older).collect();
    known.iter().filter(|&&is_older| !is_older).count() * 2 > known.len()
}

/// Objects that one field of another small object leads to, or that are used together with it.
fn pair<'c>(context: &'c Context<'c>, sites: &[u32]) -> Option<Candidate<'c>> {
    let profile = context.profile;
    let (size, _) = small(context, sites)?;
    let is_in = |owner: u32, offset: u32| {
        small(context, &[owner]).is_some_and(|(own, _)| u64::from(offset) < own)
    };
    let led = owners(context, sites).filter(|&(owner, offset, _)| is_in(owner, offset));
    let (owner, offset, owner_of) = match led {
        Some((owner, offset, owner_of)) => (owner, Some(offset), owner_of),
        None => {
            let (other, partner_of) = partners(context, sites)?;
            (other, None, partner_of)
        }
    };
    let (own, _) = small(context, &[owner])?;
    let each = stride(own) + stride(size);
    // What leads to several has room for one beside it.
    let distinct: HashSet<u32> = owner_of.values().copied().collect();
    if each > MAX_PAIR || (distinct.len() as f64) < MOSTLY * owner_of.len() as f64 {
        return None;
    }
    let ranks = ranks(context, &[owner]);
    let of_object = |(&object, owner): (&u32, &u32)| {
        let start = ranks.get(owner)? * each + stride(own);
        Some((object, start))
    };
    let starts: HashMap<u32, u64> = { owner_of.iter().filter_map(of_object) }
        .chain(ranks.iter().map(|(&owner, rank)| (owner, rank * each)))
        .collect();
    let type_id = profile.sites.get(owner as usize)?.type_id;
    let of = type_id.and_then(|id| profile.types.get(id as usize));
    let field = |offset: u32| match of.and_then(|of| field_at(of, u64::from(offset))) {
        Some(field) => format!("whose `{}` leads to it", field.name),
        None => format!("whose offset {offset} leads to it"),
    };
    let field = offset.map_or("that is used together with it".to_owned(), field);
    let [value, holder] = [sites, &[owner]].map(|sites| Object::new(context, sites));
    let (what, whose) = (value.name(), holder.name());
    let is_late = are_late(context, &owner_of);
    let allocations = { sites.iter() }.filter_map(|&site| profile.sites.get(site as usize));
    let allocations = sum(allocations.map(|site| site.allocations));
    let (first, second) = match is_late {
        true => ((value, "value"), (holder, "owner")),
        false => ((holder, "owner"), (value, "value")),
    };
    Some(Candidate {
        kind: Kind::Hint,
        sites: sites.iter().copied().chain([owner]).collect(),
        what: match (is_late, offset) {
            (false, _) => format!("allocate each {what} near the {whose} {field}"),
            (true, Some(_)) => format!("allocate each {whose}, {field}, near its {what}"),
            (true, None) => format!("allocate each {whose} near the {what} {field}"),
        },
        code: Some(format!(
            "{}{} // leaves room beside it\n{}",
            value.preamble(),
            first.0.near(first.1, None, false),
            second.0.near(second.1, Some(first.1), false)
        )),
        cost_ns: 2.0 * hint_ns(context, starts.len() as u64 * each) * allocations as f64,
        break_even: None,
        wrong_if: match is_late {
            true => format!("it is not known which {what} that is when the {whose} is allocated"),
            false => format!("the {whose} is not allocated yet when the {what} is"),
        },
        rewrite: moving(move |step| {
            Some(NEW_MEMORY + starts.get(&step.object)? + u64::from(step.offset))
        }),
    })
}
