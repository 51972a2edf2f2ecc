//! The results of all analyses as JSON, for other programs.
//!
//! `docs/inside/ccscope-format.md` has the keys of [`SCHEMA`]. Keys are added within a schema, and
//! never change or go. Strings are as in the profile: whoever prints them escapes them.

use serde::Serialize;
use serde_json::{Value, json};

use crate::analyses::curves::{gap_at_peak, phases};
use crate::analyses::findings::Finding;
use crate::analyses::leaks::{of_site, total};
use crate::analyses::pages::{MappingUse, by_mapping};
use crate::analyses::sampled::within;
use crate::analyses::scores::global;
use crate::analyses::types::{TypeSums, by_type, type_name};
use crate::analyses::waits::Waiting;
use crate::profile::{Frame, Point, Profile, Resident, Site, Thread};
use crate::symbols::library_frame;
use crate::views::{Options, Results, stack};

/// Changes when a key changes or goes.
pub const SCHEMA: &str = "ccscope-1";
/// Phases of the run.
const PHASES: u32 = 10;

/// The JSON, in one line: profiles have thousands of sites.
#[must_use]
pub fn to_json(profile: &Profile, options: &Options) -> String {
    let results = Results::new(profile, options);
    let types: Vec<TypeSums> = by_type(profile, &results.shown);
    let sites: Vec<Value> = results
        .shown
        .iter()
        .map(|&id| site(profile, &results, id))
        .collect();
    let seconds = |time: u64| profile.seconds(time.max(1));
    let thread = |thread: &Thread| {
        json!({
            "id": thread.id, "from": seconds(thread.started), "to": seconds(thread.ended),
            "allocations": thread.allocations, "peak": thread.peak, "end_live": thread.end_live,
            "events": thread.events, "curve": curve(&thread.curve),
        })
    };
    let resident =
        |sample: &Resident| json!({ "seconds": sample.ns as f64 / 1e9, "bytes": sample.bytes });
    let all = json!({
        "schema": SCHEMA,
        "run": value(&profile.run),
        "total": value(&profile.total),
        "scores": value(&global(&results.scores)),
        "findings": results.findings.iter().map(finding).collect::<Vec<Value>>(),
        "waits": waits(&results),
        "sites": sites,
        "types": value(&types),
        "threads": profile.threads.iter().map(thread).collect::<Vec<Value>>(),
        "edges": value(&profile.edges),
        "regions": value(&profile.regions),
        "exceeded": value(&profile.exceeded),
        "leaks": value(&total(profile)),
        "links": value(&profile.links),
        "mappings": by_mapping(profile).iter().map(mapping).collect::<Vec<Value>>(),
        "curve": curve(&profile.curve),
        "resident": profile.resident.iter().map(resident).collect::<Vec<Value>>(),
        "phases": value(&phases(profile, PHASES)),
        "gap": value(&gap_at_peak(profile)),
        "within": value(&within(profile, &profile.sites)),
        "misses": value(&results.misses),
    });
    format!("{all}\n")
}

/// Numbers and strings of a profile are always JSON; numbers that are none become `null`.
fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// A step for each point.
fn curve(points: &[Point]) -> Vec<Value> {
    let point = |point: &Point| {
        json!({
            "seconds": point.ns as f64 / 1e9, "allocated": point.usable,
            "requested": point.requested, "touched": point.touched,
        })
    };
    points.iter().map(point).collect()
}

/// With what the share is of.
fn finding(of: &Finding) -> Value {
    let mut object = value(of);
    object["part"] = json!(of.part());
    object
}

/// Sites of one structure together.
fn waits(results: &Results) -> Vec<Value> {
    let of = |it: &Waiting| json!({ "sites": it.sites, "type": it.name, "share": it.share });
    results.waits.structures.iter().map(of).collect()
}

fn mapping(of: &MappingUse<'_>) -> Value {
    let (it, counts) = (of.mapping, of.counts);
    json!({
        "start": it.start, "end": it.end, "name": it.name, "rights": it.rights,
        "is_traced": it.is_traced, "pages": of.pages(), "touched": of.touched,
        "loads": counts.loads, "stores": counts.stores, "blocks": counts.blocks,
    })
}

fn frame(frame: &Frame) -> Value {
    json!({ "function": frame.function, "file": frame.file, "line": frame.line })
}

fn site(profile: &Profile, results: &Results, id: usize) -> Value {
    let it = &profile.sites[id];
    let place = it
        .place
        .and_then(|place| profile.frames.get(usize::try_from(place).ok()?));
    let counts = value(&Site {
        stack: Vec::new(),
        groups: Vec::new(),
        curve: Vec::new(),
        ..it.clone()
    });
    let mut object = json!({
        "id": id,
        "function": place.map(|it| &it.function),
        "file": place.map(|it| &it.file),
        "line": place.map(|it| it.line),
        "library": library_frame(&it.stack, it.place, &profile.frames).map(frame),
        "type": type_name(profile, it.type_id),
        "stack": stack(profile, it).map(frame).collect::<Vec<Value>>(),
        "scores": value(&results.scores[id]),
        "severity": results.scores[id].severity(),
        "inferences": value(&results.inferences[id]),
        "curve": curve(&it.curve),
        "leaks": value(&of_site(profile, id)),
        "within": value(&within(profile, [it])),
        "retained": results.retained.as_ref().map(|all| all[id].bytes),
    });
    if let (Value::Object(object), Value::Object(counts)) = (&mut object, counts) {
        let left_out = ["stack", "place", "type_id", "groups", "curve"];
        object.extend(
            counts
                .into_iter()
                .filter(|(key, _)| !left_out.contains(&&**key)),
        );
    }
    object
}
