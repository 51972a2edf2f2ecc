//! Search trees of the program's own: nodes with a key and two links, in which the program only
//! looks up and inserts.
//!
//! What reads other fields on the way, such as the sizes of subtrees, or goes through all nodes,
//! is no search: such a tree is not proposed to be a map.

use std::collections::HashMap;
use std::ops::Range;

use super::descents::{Descents, Layout, Links, Part};
use super::nodes::Entries;
use super::walks::Walks;
use super::{MAX_BYTES, MIN_LOOKUPS, MIN_PART, Used, keys_of};
use crate::advice::code::Language;
use crate::advice::{Context, site_type};
use crate::analyses::structures::{Shape, Structure, structures};
use crate::analyses::types::field_at;
use crate::analyses::units::{count, sum};
use crate::profile::{Field, Type};

/// So much of what the program does with the nodes has to be searches.
const MOSTLY: f64 = 0.9;
/// Two children.
const FAN_OUT: f64 = 2.0;

/// The trees in whose place a map could be.
pub(super) fn trees(context: &Context<'_>) -> Vec<Used> {
    let least = MIN_PART * context.trace.steps.len() as f64;
    let structures = structures(context.profile).into_iter();
    let trees = structures.filter(|it| matches!(it.shape, Shape::Tree | Shape::TreeWithParents));
    let used = trees.filter_map(|it| tree(context, &it));
    used.filter(|used| {
        let steps = used
            .descents
            .parts
            .iter()
            .filter(|&&part| part != Part::Other);
        steps.count() as f64 >= least
    })
    .collect()
}

fn tree(context: &Context<'_>, structure: &Structure) -> Option<Used> {
    let (profile, sites) = (context.profile, &structure.sites);
    let name = site_type(profile, *sites.first()?)?;
    let name = { name.strip_prefix("Box<") }
        .and_then(|it| it.strip_suffix('>'))
        .unwrap_or(name);
    let known = |&site: &u32| profile.sites.get(site as usize);
    let of = sites
        .iter()
        .filter_map(known)
        .find_map(|site| site.type_id)?;
    let of = profile.types.get(of as usize)?;
    let is_node = |site: &u32| known(site).is_some_and(|it| Some(it.largest) == of.size);
    let links: Vec<u32> = { structure.offsets.iter().copied() }
        .filter(|offset| !structure.back.contains(offset))
        .collect();
    let links: [u32; 2] = links.try_into().ok()?;
    if Language::of(profile, sites) != Language::Rust || !sites.iter().all(is_node) {
        return None;
    }
    let key = key(context, structure, of)?;
    let keys = range(key)?;
    let rest = of.fields.iter().filter(|field| {
        let leads_on = structure
            .offsets
            .iter()
            .any(|&link| u64::from(link) == field.offset);
        field.offset != key.offset && !leads_on
    });
    let entries = Entries {
        keys: keys_of(&key.type_name),
        key: key.size,
        value: sum(rest.map(|field| field.size)),
    };
    let layout = Layout {
        key: keys.end - keys.start,
        keys,
        values: 0..0,
        links: Links::At(links),
    };
    if entries.key.max(entries.value) > MAX_BYTES {
        return None;
    }
    let mut descents = Descents::find(context.trace, &layout, [sites, sites], FAN_OUT);
    let nodes = structure.nodes as f64 / maps(&descents);
    let whole = format!("tree of {} `{name}`s", count(structure.nodes));
    if !is_searched(context, structure, &descents) {
        return None;
    }
    for (part, step) in descents.parts.iter_mut().zip(&context.trace.steps) {
        if *part == Part::Other && sites.contains(&context.trace.site(step)) {
            *part = Part::Search;
        }
    }
    Some(Used {
        is_set: entries.value == 0,
        whole,
        instead_of: format!("the tree of `{name}`, by `{}`", key.name),
        sites: sites.clone(),
        entries,
        layout,
        count: nodes.max(1.0),
        is_exact: true,
        walks: Walks::default(),
        descents,
    })
}

/// The field that is read most, links left out.
fn key<'p>(context: &Context<'_>, structure: &Structure, of: &'p Type) -> Option<&'p Field> {
    let mut reads: HashMap<u64, u64> = HashMap::new();
    for step in context.trace.steps.iter().filter(|step| !step.write) {
        let is_node = structure.sites.contains(&context.trace.site(step));
        if is_node && !structure.offsets.contains(&step.offset) {
            let field = field_at(of, u64::from(step.offset))?;
            *reads.entry(field.offset).or_default() += 1;
        }
    }
    let most = reads
        .into_iter()
        .max_by_key(|&(offset, reads)| (reads, offset))?;
    field_at(of, most.0)
}

fn range(field: &Field) -> Option<Range<u32>> {
    let start = u32::try_from(field.offset).ok()?;
    Some(start..start.checked_add(u32::try_from(field.size).ok()?)?)
}

/// Whether the program searches: it reads keys and links on the way down, and hardly anything of a
/// node otherwise. Windows that write links are not asked: what an insertion does besides, the map
/// does itself.
fn is_searched(context: &Context<'_>, structure: &Structure, descents: &Descents) -> bool {
    let trace = context.trace;
    let [mut searched, mut all] = [0usize; 2];
    for window in trace.windows() {
        let is_node = |&at: &usize| structure.sites.contains(&trace.site(&trace.steps[at]));
        let own = || window.clone().filter(is_node);
        let is_link = |at: usize| {
            let step = &trace.steps[at];
            step.write && structure.offsets.contains(&step.offset)
        };
        if !own().any(is_link) {
            all += own().count();
            searched += own()
                .filter(|&at| descents.parts[at] != Part::Other)
                .count();
        }
    }
    let lookups = descents.reading().count();
    let pure = descents.reading().filter(|it| it.is_search).count();
    lookups >= MIN_LOOKUPS
        && searched as f64 >= MOSTLY * all.max(1) as f64
        && pure as f64 >= MOSTLY * lookups as f64
}

/// How many trees are searched: as many as would share the lookups equally.
fn maps(descents: &Descents) -> f64 {
    let mut lookups: HashMap<u32, f64> = HashMap::new();
    for descent in descents.reading() {
        *lookups.entry(descent.root).or_default() += 1.0;
    }
    let all: f64 = lookups.values().sum();
    let squares: f64 = lookups.values().map(|it| it * it).sum();
    (all * all / squares.max(1.0)).max(1.0)
}
