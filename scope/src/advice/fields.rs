//! The order of a struct's fields, from which of them are used together.

use super::code::{Language, field_order};
use super::dense::moving;
use super::typed::{Typed, structs};
use super::{Candidate, Context, Kind};
use crate::analyses::fields::{Affinities, BLOCK, Layout};
use crate::analyses::replay::trace::Step;

/// Accesses of the program within which fields of an object are used together.
const INTERVAL: u64 = 256;

/// A new order for each struct that is larger than a block or may lie across two.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    structs(context)
        .into_iter()
        .filter_map(|typed| order(context, typed))
        .collect()
}

fn order<'c>(context: &'c Context<'c>, typed: Typed<'c>) -> Option<Candidate<'c>> {
    // What shares blocks with others has no order of blocks.
    if typed.size <= BLOCK / 2 {
        return None;
    }
    let affinities = Affinities::new(typed.fields.len(), &typed.accesses, INTERVAL);
    let mut baseline: Vec<usize> = (0..typed.fields.len()).collect();
    baseline.sort_by_key(|&field| typed.of.fields[field].offset);
    let baseline = Layout {
        order: baseline,
        offsets: typed.of.fields.iter().map(|field| field.offset).collect(),
        size: typed.size,
    };
    let better = Layout::greedy(&typed.fields, &affinities);
    if better.locality(&affinities) <= baseline.locality(&affinities) {
        return None;
    }
    let [before, after] =
        [&baseline, &better].map(|it| it.metrics(&typed.fields, &typed.accesses, INTERVAL));
    if after.pressure > before.pressure {
        return None;
    }
    let padding = |layout: &Layout| {
        let used: u64 = typed.fields.iter().map(|field| field.size).sum();
        layout.size - used.min(layout.size)
    };
    let what = format!(
        "order the fields of {} by use: {} bytes with {} of padding, today {} with {}; a use \
         touches {:.2} blocks of 64 bytes, today {:.2}, and {:.0} % of their bytes, today {:.0} %",
        typed.name,
        better.size,
        padding(&better),
        baseline.size,
        padding(&baseline),
        after.pressure,
        before.pressure,
        after.utilisation * 100.0,
        before.utilisation * 100.0,
    );
    let fields = { better.order.iter() }.map(|&at| (&typed.of.fields[at], better.offsets[at]));
    let fields: Vec<_> = fields.collect();
    let language = Language::of(context.profile, &typed.sites);
    let declared = typed.declared();
    let code = field_order(language, [&typed.name, &declared], better.size, &fields);
    Some(Candidate {
        kind: Kind::FieldOrder,
        sites: typed.sites.clone(),
        what,
        code: Some(code),
        cost_ns: 0.0,
        break_even: None,
        wrong_if: "the order is that of a file or an interface, or others use other fields"
            .to_owned(),
        rewrite: moving(move |step| {
            let is_own = typed.sites.contains(&context.trace.site(step));
            is_own.then(|| moved(&typed, &better, step)).flatten()
        }),
    })
}

/// Where an access goes with the fields in another order, in the same chunk.
fn moved(typed: &Typed<'_>, layout: &Layout, step: &Step) -> Option<u64> {
    let (element, offset) = typed.element(step.offset);
    let field = typed.field(offset)?;
    let within = offset - typed.of.fields[field].offset;
    let new = element * layout.size + layout.offsets[field] + within;
    Some(typed.chunk_start(step).wrapping_add(new))
}
