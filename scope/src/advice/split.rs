//! Hot and cold parts of a struct.
//!
//! The cold parts lie in a table. With a box for each, an ordinary allocator puts it behind its hot
//! part, and the hot parts stay as far apart as they were.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::beside::class;
use super::code::{self, Language};
use super::dense::{APART, NEW_MEMORY, ranks};
use super::typed::{Typed, structs};
use super::{Candidate, Context, Kind};
use crate::analyses::fields::{Extent, Layout};
use crate::analyses::replay::PlacedAccess;
use crate::analyses::replay::trace::Step;
use crate::analyses::splitting::{FieldUse, Split, splits};
use crate::analyses::units::{count, sum};

/// The link to the cold part: a `ccmorph::ColdIndex`.
const LINK: Extent = Extent { size: 4, align: 4 };
/// What a `ccmorph::ColdTable` keeps beside a cold part.
const TAG: Extent = Extent { size: 8, align: 8 };
/// Nanoseconds to put a cold part into the table: 14 for one of 128 bytes (a virtual Zen 5, 23
/// November 2026).
const COLD_NS: f64 = 14.0;

/// For each struct with cold fields, where it may be cut.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let structs = structs(context);
    let all: u64 = structs
        .iter()
        .map(|typed| typed.accesses.len() as u64)
        .sum();
    let types = structs.len();
    structs
        .into_iter()
        .flat_map(|typed| {
            let typed = Rc::new(typed);
            let uses = uses(context, &typed);
            let cuts = splits(&uses, all, types).unwrap_or_default();
            let halves = cuts
                .into_iter()
                .map(|cut| halves(context, &typed, &uses, cut));
            halves.flatten().collect::<Vec<_>>()
        })
        .collect()
}

/// How often fields are used. What is written before the first read of an object only fills it.
fn uses(context: &Context<'_>, typed: &Typed<'_>) -> Vec<FieldUse> {
    let unused = |field: &Extent| FieldUse {
        size: field.size,
        accesses: 0,
    };
    let mut uses: Vec<FieldUse> = typed.fields.iter().map(unused).collect();
    let mut read: HashSet<u64> = HashSet::new();
    for access in &typed.accesses {
        let steps = &context.trace.steps;
        let step = usize::try_from(access.time)
            .ok()
            .and_then(|at| steps.get(at));
        if step.is_some_and(|step| !step.write) {
            read.insert(access.object);
        }
        if read.contains(&access.object) {
            uses[access.field].accesses += 1;
        }
    }
    uses
}

fn halves<'c>(
    context: &'c Context<'c>,
    typed: &Rc<Typed<'c>>,
    uses: &[FieldUse],
    split: Split,
) -> Option<Candidate<'c>> {
    let typed = Rc::clone(typed);
    let part = |wanted: bool, beside: Extent| {
        let none = Extent { size: 0, align: 1 };
        let is_own = |at: usize| split.cold.contains(&at) == wanted;
        let own = { (0..).zip(&typed.fields) }.map(|(at, &it)| if is_own(at) { it } else { none });
        let fields: Vec<Extent> = own.chain([beside]).collect();
        // As the compiler orders them.
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_key(|&at| Reverse(fields[at].align));
        Layout::new(&fields, order)
    };
    let (hot, cold) = (part(false, LINK), part(true, TAG));
    if hot.size >= typed.size {
        return None;
    }
    let names: Vec<&str> = { split.cold.iter() }
        .map(|&at| &*typed.of.fields[at].name)
        .collect();
    let names = names.join(", ");
    let sites = || { typed.sites.iter() }.filter_map(|&id| context.profile.sites.get(id as usize));
    let elements = sum(sites().map(|site| site.requested / typed.size));
    let is_single = sites().all(|site| site.largest == typed.size);
    let ranks = is_single.then(|| ranks(context, &typed.sites));
    let what = format!(
        "keep the cold fields of {} apart ({names}), in a table: {} bytes instead of {}, {} of {} \
         accesses go through the link; temperature differential {:.2}",
        typed.name,
        hot.size,
        typed.size,
        count(split.cold.iter().map(|&at| uses[at].accesses).sum()),
        count(uses.iter().map(|field| field.accesses).sum()),
        split.differential,
    );
    let language = Language::of(context.profile, &typed.sites);
    let code = code::split(language, &typed.name, &typed.of.fields, &split.cold);
    Some(Candidate {
        kind: Kind::Split,
        sites: typed.sites.clone(),
        what,
        code: Some(code),
        cost_ns: COLD_NS * elements as f64,
        break_even: None,
        wrong_if: "another run uses the cold fields, or code that does cannot be given the table"
            .to_owned(),
        rewrite: Box::new(move |_: usize, step: &Step, into: &mut Vec<PlacedAccess>| {
            let is_own = typed.sites.contains(&context.trace.site(step));
            let found = is_own.then(|| element(&typed, ranks.as_ref(), hot.size, step));
            let Some((start, number, field)) = found.flatten() else {
                into.push(PlacedAccess::unchanged(step));
                return;
            };
            let within = u64::from(step.offset) % typed.size - typed.of.fields[field].offset;
            if !split.cold.contains(&field) {
                into.push(PlacedAccess::at(
                    start.wrapping_add(hot.offsets[field] + within),
                    step,
                ));
                return;
            }
            let link = start.wrapping_add(hot.offsets[typed.fields.len()]);
            let entry = (NEW_MEMORY + APART).wrapping_add(number.wrapping_mul(cold.size));
            into.push(PlacedAccess {
                size: 4,
                ..PlacedAccess::at(link, step)
            });
            into.push(PlacedAccess {
                after: true,
                ..PlacedAccess::at(entry.wrapping_add(cold.offsets[field] + within), step)
            });
        }),
    })
}

/// Where the hot part of an element begins, the number of its cold part, and the field that is
/// accessed. Boxes are packed; elements of a vector stay behind each other.
fn element(
    typed: &Typed<'_>,
    ranks: Option<&HashMap<u32, u64>>,
    hot_bytes: u64,
    step: &Step,
) -> Option<(u64, u64, usize)> {
    let (element, offset) = typed.element(step.offset);
    let (start, number) = match ranks {
        Some(ranks) => {
            let rank = *ranks.get(&step.object)?;
            (NEW_MEMORY + rank * class(hot_bytes), rank)
        }
        None => {
            let chunk_start = typed.chunk_start(step);
            let start = chunk_start.wrapping_add(element * hot_bytes);
            (start, chunk_start / typed.size + element)
        }
    };
    Some((start, number, typed.field(offset)?))
}
