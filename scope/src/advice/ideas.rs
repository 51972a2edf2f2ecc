//! What no replay has tried: another allocator, and the order within large chunks.

use ccmodel::Layout;

use super::beside;
use super::code::{self, Language, Object};
use super::dense::{NEW_MEMORY, moving};
use super::{Confidence, Context, Item, Kind, MIN_SPEEDUP, site_type};
use crate::analyses::findings::CALL_EVENTS;
use crate::analyses::misses::Interval;
use crate::analyses::replay::PROBABLE;
use crate::analyses::replay::processor::compare;
use crate::analyses::replay::trace::{NONE, Step};
use crate::analyses::units::{bytes, count, percent, ratio, sum};

/// Sites without advice that are spoken of.
const MAX_REASONS: usize = 3;
/// With less of its accesses through pointers, a site waits for none.
const DEPENDENT: f64 = 0.2;
/// Within a chunk of a page or more, another order may miss less wherever the chunk is.
const LARGE: u64 = 4096;
/// Larger objects have cache lines of their own under any allocator.
const SMALL: u64 = 512;
/// Fewer allocations fit the caches under any allocator.
const MIN_ALLOCATIONS: u64 = 10_000;
/// Less waiting for small objects, and less time in the allocator, is not worth the try.
const MIN_PART: f64 = 0.05;
const LINE: u64 = 64;
/// An access pattern is that of a site if so many of its accesses have it.
const MOST: f64 = 0.5;

/// What is said without a replay. Its gain is not known.
pub(super) fn idea(context: &Context<'_>, kind: Kind, sites: Vec<u32>, what: String) -> Item {
    let gain = if kind == Kind::None { 1.0 } else { f64::NAN };
    let range = |it: f64| Interval {
        low: it,
        estimate: it,
        high: it,
    };
    Item {
        kind,
        share: context.share(&sites),
        sites,
        what,
        code: None,
        worth_it: false,
        speedup: range(gain),
        saved_ns: range(gain - 1.0),
        misses: Vec::new(),
        cost_ns: 0.0,
        break_even: None,
        confidence: Confidence::Low,
        wrong_if: "another run uses it in another way".to_owned(),
        beyond_allocator: false,
    }
}

/// `CcMalloc`, where the program allocates many small objects elsewhere and waits for them, or for
/// the allocator.
pub(super) fn allocator(context: &Context<'_>) -> Option<Item> {
    let profile = context.profile;
    if beside::has_it(profile) {
        return None;
    }
    let mut sites: Vec<u32> = context.waiting_sites();
    let of_site = { (0..).zip(&profile.sites) }.filter(|(_, site)| site.largest <= SMALL);
    let small: Vec<(u32, u64)> = of_site.map(|(id, site)| (id, site.allocations)).collect();
    sites.retain(|site| small.iter().any(|(id, _)| id == site));
    let allocations = sum(small.iter().map(|&(_, allocations)| allocations));
    let calls = allocations as f64 * CALL_EVENTS;
    let of_calls = calls / (profile.run.end as f64 + calls);
    let share = context.share(&sites);
    let why = match share >= MIN_PART {
        true => format!("for which the program waits {} of its time", percent(share)),
        false => format!("which may take {} of its time", percent(of_calls)),
    };
    let what = format!(
        "try `CcMalloc` first, which needs one line: {} allocations of up to {SMALL} bytes, {why}. \
         `ccscope improve` measures it; hints and morphs gain what is said below beyond it",
        count(allocations)
    );
    let is_much = allocations >= MIN_ALLOCATIONS && share.max(of_calls) >= MIN_PART;
    is_much.then(|| Item {
        code: Some(code::allocator(Language::of(profile, &sites))),
        wrong_if: "the program has pools of its own".to_owned(),
        ..idea(context, Kind::Allocator, sites, what)
    })
}

/// What is known of the sites that the program waits for longest, where nothing is advised.
pub(super) fn reasons(context: &Context<'_>, items: &[Item]) -> Vec<Item> {
    let is_left = |site: &u32| !items.iter().any(|item| item.sites.contains(site));
    let sites = context.waiting_sites().into_iter().filter(is_left);
    let of_sites = sites.take(MAX_REASONS).map(|site| reason(context, site));
    let mut reasons: Vec<Item> = of_sites.collect();
    // Sites of one type in two places.
    reasons.dedup_by(|next, first| {
        let is_same = next.what == first.what && next.code == first.code;
        if is_same {
            first.sites.append(&mut next.sites);
            first.share += next.share;
        }
        is_same
    });
    reasons
}

fn reason(context: &Context<'_>, site: u32) -> Item {
    let (profile, trace) = (context.profile, context.trace);
    let own = || { trace.steps.iter() }.filter(|step| trace.site(step) == site);
    let led = own().filter(|step| step.via != NONE).count();
    let largest = { profile.sites.get(site as usize) }.map_or(0, |it| it.largest);
    let name = site_type(profile, site).unwrap_or_default();
    let is_rust = Language::of(profile, &[site]) == Language::Rust;
    let of_type = { profile.sites.get(site as usize) }.and_then(|it| it.type_id);
    let of_type = of_type.and_then(|id| profile.types.get(id as usize));
    let has_fields = of_type.is_some_and(|of| !of.fields.is_empty());
    let boxed = { name.strip_prefix("Vec<") }.filter(|it| is_rust && it.starts_with("Box<"));
    let (mut kind, mut code) = (Kind::Idea, None);
    let what = match largest {
        LARGE.. => {
            let near = near(context, site);
            let mut next = String::new();
            if is_rust && has_fields && name.starts_with("Vec<") && near < MOST {
                code = Some(code::text("ccmorph", &[]) + &code::text("morph of a slice", &[]));
                next += "; if elements hold numbers of others, number them in the order of use";
            }
            format!(
                "chunks of up to {}, {} of whose accesses stay within {LINE} bytes of the one \
                 before: no other order in them was tried{next}",
                bytes(largest),
                percent(near)
            )
        }
        _ if ratio(led as u64, own().count() as u64) < DEPENDENT => match best(context, site) {
            gain if gain < MIN_SPEEDUP => {
                kind = Kind::None;
                format!(
                    "even if all its accesses hit the first cache, the program would be {gain:.2} \
                     times as fast: the processor overlaps them"
                )
            }
            gain => format!(
                "other places of its objects were not tried; in the first cache, they would let \
                 the program be {gain:.1} times as fast"
            ),
        },
        _ => {
            let object = boxed
                .and_then(|it| it.strip_suffix('>'))
                .map(Object::in_rust);
            code = object.and_then(|it| it.morph(Layout::Preorder, &[], true));
            let next = match code {
                Some(_) => "; if one root owns them, lay all out in the order of walks",
                None => "",
            };
            format!("other places of its objects were not tried{next}")
        }
    };
    let of_site = idea(context, kind, vec![site], what);
    Item { code, ..of_site }
}

/// What the program would gain if all accesses to a site hit the first cache.
fn best(context: &Context<'_>, site: u32) -> f64 {
    let trace = context.trace;
    let at = |step: &Step| (trace.site(step) == site).then_some(NEW_MEMORY);
    let after = context.replay.run(trace, &mut *moving(at));
    let left = compare(trace, context.before, &after, context.models).left[PROBABLE];
    1.0 / left.max(f64::MIN_POSITIVE)
}

/// The part of a site's accesses that goes to the line of the one before, or to one beside it;
/// those to one address left out.
fn near(context: &Context<'_>, site: u32) -> f64 {
    let (trace, mut all, mut near) = (context.trace, 0, 0);
    for window in trace.windows() {
        let own = trace.steps[window].iter();
        let own = own.filter(|step| trace.site(step) == site);
        let addresses: Vec<u64> = own.map(|step| step.address).collect();
        for pair in addresses.windows(2).filter(|pair| pair[0] != pair[1]) {
            all += 1;
            near += u64::from(pair[1].abs_diff(pair[0]) <= LINE);
        }
    }
    ratio(near, all)
}
