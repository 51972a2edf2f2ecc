//! Fields beside the pointer that leads to them: in the entry of a table, or the slot of a heap.
//!
//! Who only looks at a key then does not wait for the object. The owner's elements grow by the
//! fields that most visits through it read.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::code::{self, Language, Object};
use super::{Candidate, Context, Kind, site_type};
use crate::analyses::replay::PlacedAccess;
use crate::analyses::replay::trace::{NONE, Step};
use crate::analyses::structures::{collection, element_offset};
use crate::analyses::types::{field_at, type_name};
use crate::analyses::units::{bytes, percent, ratio, sum};
use crate::profile::{Field, Type};

/// Fewer visits show nothing.
const MIN_VISITS: u64 = 64;
/// A field of the owner leads to the objects if so many of the visits come through it.
const MOSTLY: f64 = 0.9;
/// A field is hot if so many visits read it, and a move pays off if so many read no other one.
const HOT: f64 = 0.5;
/// More does not fit beside a pointer.
const MAX_HOT: u64 = 32;
/// Larger elements of owners have lines of their own.
const MAX_ELEMENT: u64 = 256;
/// With a larger part of the object, all of it could be in its owner.
const MAX_PART: f64 = 0.75;
/// What is written by others has to be written twice.
const WRITTEN: f64 = 0.05;
/// Above all other new memory.
const GROWN_OWNERS: u64 = 1 << 62;
/// Owners whose elements can grow.
const OWNERS: [&str; 3] = ["Vec", "HashMap", "HashTable"];
const ALIGN: u64 = 8;

/// For objects that tables or vectors lead to.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let types = context.own_types().into_iter();
    types.filter_map(|sites| beside(context, &sites)).collect()
}

/// Accesses to an object that one load leads to.
struct Visit {
    /// Steps.
    at: Range<usize>,
    /// The step of the load.
    via: usize,
}

fn beside<'c>(context: &'c Context<'c>, sites: &[u32]) -> Option<Candidate<'c>> {
    let (profile, trace) = (context.profile, context.trace);
    let known = |site: u32| profile.sites.get(site as usize);
    let type_of = |site: u32| profile.types.get(known(site)?.type_id? as usize);
    let of: &Type = sites.iter().find_map(|&site| type_of(site))?;
    let name = site_type(profile, *sites.first()?)?;
    let is_it = |step: &Step| sites.contains(&trace.site(step));
    let visits = visits(context, sites);
    // By field of an owner, its visits.
    let mut of_owner: BTreeMap<(u32, u32), Vec<&Visit>> = BTreeMap::new();
    for visit in &visits {
        let load = &trace.steps[visit.via];
        let owner = trace.site(load);
        let offset = element_offset(profile, owner, load.offset);
        of_owner.entry((owner, offset)).or_default().push(visit);
    }
    let all = visits.len() as u64;
    let ((owner, _), visits) = of_owner.into_iter().max_by_key(|(_, it)| it.len())?;
    let is_most = ratio(visits.len() as u64, all) >= MOSTLY && all >= MIN_VISITS;
    let is_owner = OWNERS.contains(&collection(profile, owner)) && !sites.contains(&owner);
    let each = type_of(owner)?
        .size
        .filter(|each| (1..=MAX_ELEMENT).contains(each))?;
    if !is_most || !is_owner {
        return None;
    }
    let hot = hot(context, of, &visits);
    let grown = sum(hot.iter().map(|field| field.size));
    let largest = sites
        .iter()
        .filter_map(|&it| Some(known(it)?.largest))
        .max()?;
    if !(1..=MAX_HOT).contains(&grown) || grown as f64 > MAX_PART * largest as f64 {
        return None;
    }
    let place = |step: &Step| {
        let field = field_at(of, u64::from(step.offset))?;
        let at = hot.iter().position(|hot| std::ptr::eq(*hot, field))?;
        let before = sum(hot[..at].iter().map(|field| field.size));
        Some(before + u64::from(step.offset) - field.offset)
    };
    let is_pure = |visit: &&&Visit| {
        trace.steps[visit.at.clone()]
            .iter()
            .all(|it| place(it).is_some())
    };
    let pure = visits.iter().filter(is_pure).count() as u64;
    let uses = || { trace.steps.iter() }.filter(|it| is_it(it) && it.via != NONE);
    let written = uses().filter(|it| it.write && place(it).is_some()).count() as u64;
    let read = uses().filter(|it| place(it).is_some()).count() as u64;
    if ratio(pure, visits.len() as u64) < HOT || ratio(written, read) > WRITTEN {
        return None;
    }
    let each_grown = (each + grown).next_multiple_of(ALIGN);
    let times = each_grown.div_ceil(each);
    let slot = move |load: &Step, inner: u64| {
        let start = load.address.wrapping_sub(u64::from(load.offset));
        let element = u64::from(load.offset) / each * each_grown;
        GROWN_OWNERS
            .wrapping_add(start.wrapping_mul(times))
            .wrapping_add(element + inner)
    };
    // By step, its new place.
    let mut to: HashMap<usize, u64> = HashMap::new();
    for visit in &visits {
        for at in visit.at.clone() {
            if let Some(inner) = place(&trace.steps[at]) {
                to.insert(at, slot(&trace.steps[visit.via], each + inner));
            }
        }
    }
    let names: Vec<&str> = hot.iter().map(|field| &*field.name).collect();
    let owner_name = type_name(profile, known(owner)?.type_id).unwrap_or("its owner");
    let object = Object::new(context, sites);
    let is_rust = object.language == Language::Rust;
    Some(Candidate {
        kind: Kind::Idea,
        sites: sites.iter().copied().chain([owner]).collect(),
        what: format!(
            "{} of the visits from {owner_name} to {} read {} alone: keep a copy, {}, beside the \
             pointer",
            percent(ratio(pure, visits.len() as u64)),
            object.name(),
            format_args!("`{}`", names.join("`, `")),
            bytes(grown),
        ),
        code: is_rust.then(|| code::beside(name, &hot)),
        cost_ns: 0.0,
        break_even: None,
        wrong_if: "the fields change while the owner holds the pointer".to_owned(),
        rewrite: Box::new(
            move |index: usize, step: &Step, into: &mut Vec<PlacedAccess>| {
                let new = match to.get(&index) {
                    Some(&address) => Some(address),
                    None if trace.site(step) == owner => {
                        Some(slot(step, u64::from(step.offset) % each))
                    }
                    None => None,
                };
                into.push(new.map_or(PlacedAccess::unchanged(step), |it| {
                    PlacedAccess::at(it, step)
                }));
            },
        ),
    })
}

/// Accesses to objects of these sites through one load each.
fn visits(context: &Context<'_>, sites: &[u32]) -> Vec<Visit> {
    let trace = context.trace;
    let mut visits: Vec<Visit> = Vec::new();
    for (at, step) in trace.steps.iter().enumerate() {
        if step.via == NONE || !sites.contains(&trace.site(step)) {
            continue;
        }
        let via = step.via as usize;
        match visits
            .last_mut()
            .filter(|it| it.via == via && it.at.end == at)
        {
            Some(visit) => visit.at.end += 1,
            None => visits.push(Visit {
                at: at..at + 1,
                via,
            }),
        }
    }
    visits
}

/// The fields that at least [`HOT`] of the visits read.
fn hot<'p>(context: &Context<'_>, of: &'p Type, visits: &[&Visit]) -> Vec<&'p Field> {
    let mut read = vec![0u64; of.fields.len()];
    for visit in visits {
        let mut seen = vec![false; of.fields.len()];
        for step in &context.trace.steps[visit.at.clone()] {
            let field = field_at(of, u64::from(step.offset));
            let is_it = |other: &Field| field.is_some_and(|field| std::ptr::eq(field, other));
            if let Some(at) = of.fields.iter().position(is_it) {
                seen[at] = true;
            }
        }
        read.iter_mut()
            .zip(seen)
            .for_each(|(read, seen)| *read += u64::from(seen));
    }
    let is_hot = |&(_, &read): &(&Field, &u64)| ratio(read, visits.len() as u64) >= HOT;
    let fields = of.fields.iter().zip(&read).filter(is_hot);
    fields.map(|(field, _)| field).collect()
}
