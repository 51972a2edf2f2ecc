//! Hot and cold parts of a struct.

use std::collections::HashMap;

use super::dense::{APART, NEW_MEMORY, chunk, ranks};
use super::replay::Place;
use super::trace::Step;
use super::typed::{Typed, structs};
use super::{Candidate, Context, Kind};
use crate::analyses::splitting::{FieldUse, split};
use crate::analyses::units::{count, sum};

/// The link to the cold part.
const LINK_BYTES: u64 = 8;
/// Nanoseconds to allocate and free a cold part.
const COLD_NS: f64 = 20.0;

/// For each struct with cold fields.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let structs = structs(context);
    let all: u64 = structs
        .iter()
        .map(|typed| typed.accesses.len() as u64)
        .sum();
    let types = structs.len();
    structs
        .into_iter()
        .filter_map(|typed| halves(context, typed, all, types))
        .collect()
}

fn halves<'c>(
    context: &'c Context<'c>,
    typed: Typed<'c>,
    all: u64,
    types: usize,
) -> Option<Candidate<'c>> {
    let counts = typed.counts();
    let uses: Vec<FieldUse> = { typed.fields.iter().zip(&counts) }
        .map(|(field, &accesses)| FieldUse {
            size: field.size,
            accesses,
        })
        .collect();
    let split = split(&uses, all, types).ok()?;
    let hot: u64 = typed.fields.iter().map(|field| field.size).sum::<u64>() - split.cold_bytes;
    let hot = (hot + LINK_BYTES).next_multiple_of(LINK_BYTES);
    if hot >= typed.size {
        return None;
    }
    // Offsets in the part that a field goes to; the link is behind the hot fields.
    let mut ends = [0u64; 2];
    let mut offsets = vec![(false, 0u64); typed.fields.len()];
    for (at, field) in typed.fields.iter().enumerate() {
        let is_cold = split.cold.contains(&at);
        let end = &mut ends[usize::from(is_cold)];
        offsets[at] = (is_cold, *end);
        *end += field.size;
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
        "keep the cold fields of {} apart ({names}): {hot} bytes instead of {}, {} of {} accesses \
         go through the link; temperature differential {:.2}",
        typed.name,
        typed.size,
        count(split.cold.iter().map(|&at| counts[at]).sum()),
        count(counts.iter().sum()),
        split.differential,
    );
    Some(Candidate {
        kind: Kind::Split,
        sites: typed.sites.clone(),
        what,
        code: Some(format!(
            "#[ccmorph::split(cold({names}))]\nstruct {} {{ .. }}",
            typed.declared()
        )),
        cost_ns: COLD_NS * elements as f64,
        break_even: None,
        wrong_if: "another run uses the cold fields".to_owned(),
        rewrite: Box::new(move |_: usize, step: &Step, into: &mut Vec<Place>| {
            let is_own = typed.sites.contains(&context.trace.site(step));
            let found = is_own.then(|| parts(&typed, ranks.as_ref(), hot, step));
            let Some((start, cold, field)) = found.flatten() else {
                into.push(Place::today(step));
                return;
            };
            let (is_cold, offset) = offsets[field];
            let within = u64::from(step.offset) % typed.size - typed.of.fields[field].offset;
            if is_cold {
                into.push(Place {
                    size: 8,
                    ..Place::at(start + hot - LINK_BYTES, step)
                });
                into.push(Place {
                    after: true,
                    ..Place::at(cold + offset + within, step)
                });
            } else {
                into.push(Place::at(start + offset + within, step));
            }
        }),
    })
}

/// Where the hot part and the cold part of an element begin, and the field that is accessed. Boxes
/// are packed; elements of a vector stay behind each other.
fn parts(
    typed: &Typed<'_>,
    ranks: Option<&HashMap<u32, u64>>,
    hot: u64,
    step: &Step,
) -> Option<(u64, u64, usize)> {
    let (element, offset) = typed.element(step.offset);
    let cold = typed.size - hot + LINK_BYTES;
    let (start, cold) = match ranks {
        Some(ranks) => {
            let rank = ranks.get(&step.object)?;
            (NEW_MEMORY + rank * chunk(hot), rank * chunk(cold))
        }
        None => {
            let chunk_start = typed.chunk_start(step);
            let first = chunk_start / typed.size;
            let cold = (first + element).wrapping_mul(chunk(cold));
            (chunk_start.wrapping_add(element * hot), cold)
        }
    };
    let cold = cold.wrapping_add(NEW_MEMORY + APART);
    Some((start, cold, typed.field(offset)?))
}
