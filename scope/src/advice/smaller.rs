//! Smaller objects: without the bytes that nobody touches, or with numbers for links.

use super::beside::class;
use super::dense::{APART, NEW_MEMORY, moving, ranks};
use super::{Candidate, Context, Kind, site_type};
use crate::analyses::structures::structures;
use crate::analyses::types::field_at;
use crate::analyses::units::plural;
use crate::profile::{Histogram, Type};

/// Less is not worth a change of the type.
const MIN_SAVED: u64 = 8;
/// A link, and a number in its place.
const LINK_BYTES: u64 = 8;
const NUMBER_BYTES: u64 = 4;

/// For sites of one size that the program waits for.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let own: Vec<u32> = context.own_types().into_iter().flatten().collect();
    let touched = own.iter().filter_map(|&site| untouched(context, site));
    let structures = structures(context.profile).into_iter();
    let links = structures.filter(|it| it.sites.iter().any(|site| own.contains(site)));
    let links = links.filter(|it| !it.offsets.is_empty());
    let links = links.filter_map(|it| numbers(context, &it.sites, &it.offsets));
    touched.chain(links).collect()
}

/// Runs of bytes that nobody has touched, as offsets.
fn unused(histogram: &Histogram) -> Vec<std::ops::Range<u64>> {
    let mut runs: Vec<std::ops::Range<u64>> = Vec::new();
    let touched = histogram.reads.iter().zip(&histogram.writes);
    for (offset, _) in (0u64..)
        .zip(touched)
        .filter(|(_, (reads, writes))| **reads + **writes == 0)
    {
        match runs.last_mut().filter(|run| run.end == offset) {
            Some(run) => run.end += 1,
            None => runs.push(offset..offset + 1),
        }
    }
    runs
}

fn untouched<'c>(context: &'c Context<'c>, site: u32) -> Option<Candidate<'c>> {
    let found = context
        .profile
        .sites
        .get(site as usize)
        .filter(|it| !it.unseen)?;
    let runs = unused(found.histogram.as_ref()?);
    let saved: u64 = runs.iter().map(|run| run.end - run.start).sum();
    let size = found.largest;
    if saved < MIN_SAVED || class(size - saved) == class(size) {
        return None;
    }
    let of: Option<&Type> = found
        .type_id
        .and_then(|id| context.profile.types.get(id as usize));
    let named: Vec<String> = { runs.iter() }
        .map(|run| match of.and_then(|of| field_at(of, run.start)) {
            Some(field) => format!("`{}`", field.name),
            None => format!("bytes {} to {}", run.start, run.end),
        })
        .collect();
    let name = site_type(context.profile, site).unwrap_or("these chunks");
    let each = class(size - saved);
    let ranks = ranks(context, &[site]);
    let what = format!(
        "{saved} of {size} bytes of {name} are never touched ({}): leave them out, or keep them \
         elsewhere",
        named.join(", ")
    );
    Some(Candidate {
        kind: Kind::Smaller,
        sites: vec![site],
        what,
        code: None,
        cost_ns: 0.0,
        break_even: None,
        wrong_if: "other runs of the program use these bytes".to_owned(),
        rewrite: moving(move |step| {
            let offset = u64::from(step.offset);
            let gone = runs
                .iter()
                .map(|run| run.end.min(offset) - run.start.min(offset));
            let offset = offset - gone.sum::<u64>();
            Some(NEW_MEMORY + APART + ranks.get(&step.object)? * each + offset)
        }),
    })
}

/// Nodes in a vector, with numbers of 4 bytes for links.
fn numbers<'c>(context: &'c Context<'c>, sites: &[u32], links: &[u32]) -> Option<Candidate<'c>> {
    let profile = context.profile;
    let found = || {
        sites
            .iter()
            .filter_map(|&site| profile.sites.get(site as usize))
    };
    let size = found().map(|site| site.largest).max()?;
    let is_one_size = found().all(|site| (site.smallest, site.largest) == (size, size));
    let saved = links.len() as u64 * (LINK_BYTES - NUMBER_BYTES);
    if !is_one_size || size < links.len() as u64 * LINK_BYTES {
        return None;
    }
    let each = (size - saved).next_multiple_of(NUMBER_BYTES);
    let ranks = ranks(context, sites);
    let links = links.to_vec();
    let name = site_type(profile, *sites.first()?).unwrap_or("these nodes");
    Some(Candidate {
        kind: Kind::Smaller,
        sites: sites.to_vec(),
        what: format!(
            "keep {name} in a vector, with numbers of 4 bytes for its {}: {each} bytes \
             instead of {size} and what the allocator adds",
            plural(links.len() as u64, "link")
        ),
        code: None,
        cost_ns: 0.0,
        break_even: None,
        wrong_if: "nodes come and go, so that places in the vector have to be reused".to_owned(),
        rewrite: moving(move |step| {
            let before = links.iter().filter(|&&link| link < step.offset).count() as u64;
            let gone = before * (LINK_BYTES - NUMBER_BYTES);
            let offset = u64::from(step.offset).saturating_sub(gone);
            Some(NEW_MEMORY + 2 * APART + ranks.get(&step.object)? * each + offset)
        }),
    })
}
