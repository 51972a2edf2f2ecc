//! `model advise`: which layout, and whether it is worth a morph.
//!
//! A new layout is worth it when an operation gets faster by more than predictions of two layouts
//! err against each other ([`WORTHWHILE_SPEEDUP`]), and enough operations follow to pay for the
//! morph.
//!
//! The JSON object begins as that of `predict`, up to its `state`:
//!
//! ```text
//! {
//!   ..,
//!   "worth_it": true | false | null, where the model cannot say,
//!   "verdict": "..", "reasons": ["..", ...],
//!   "now": as a row of `predict`,
//!   "best": the same, null where there is nothing to lay out,
//!   "saved_ns": .., "speedup": .., "morph_ns": .., "morph_bytes": ..,
//!   "break_even_operations": .. | null, where it never pays,
//!   "operations": .. | null, as asked,
//!   "others": [the same as now, ...],
//!   "notes": [..]
//! }
//! ```

use std::io::Write;

use serde_json::{Value, json};

use super::CliError;
use super::answer::{Answer, answers, crowded_levels, notes};
use super::args::AdviseArgs;
use super::arrangement::Arrangement;
use super::machine::machine;
use super::output::{Table, human_bytes, human_count, human_ns, write_json, write_notes};
use super::question::Question;
use crate::choose::morph_layouts;
use crate::{
    Gain, HintPolicy, Layout, LevelKind, LevelMisses, Operation, WORTHWHILE_SPEEDUP, morph_cost,
};

/// Below this share of waiting, memory is not what an operation takes time for.
const WAITING_MIN: f64 = 0.15;
/// A cache that misses less often in an operation holds the structure.
const HELD_MISSES: f64 = 0.01;

/// The means other than a call of `ccmorph` that a layout needs.
fn other_means(arrangement: Arrangement) -> Option<&'static str> {
    match arrangement {
        Arrangement::Plain(Layout::Hinted { .. }) => Some("allocating near the parent"),
        Arrangement::Eliminated => Some("a structure that is built once"),
        _ => None,
    }
}

pub(super) fn run(args: &AdviseArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let machine = machine(&args.question.machine)?;
    let question = Question::new(&args.question, &machine, args.cost.tier)?;
    let candidates = candidates(&question).into_iter().map(Arrangement::Plain);
    let mut arrangements = vec![args.now];
    arrangements.extend(candidates.filter(|&candidate| candidate != args.now));
    let others_start = arrangements.len();
    arrangements.extend(others(&question, args.now));
    let mut answers = answers(&question, &arrangements, &args.cost)?;
    // Now, the best layout, the others by time, other means.
    answers[1..others_start].sort_by(|a, b| a.prediction.ns.total_cmp(&b.prediction.ns));
    let now = &answers[0];
    let (nodes, extent) = (question.built.shape().len(), question.built.extent());
    let morph_ns = morph_cost(nodes, extent, question.args.pages, &machine);
    let best = answers[..others_start].get(1).map(|best| {
        let gain = Gain::new(now.prediction.clone(), best.prediction.clone(), morph_ns);
        (best, gain)
    });
    let (worth_it, verdict) = verdict(now, best.as_ref(), args.operations);
    let reasons = reasons(&question, now, best.as_ref(), worth_it == Some(true));
    let notes = notes(&machine, &answers[..1]);
    let now_ns = now.prediction.ns;
    if args.json {
        let row = |answer: &Answer| {
            let mut row = answer.report(now_ns);
            if let Some(by) = other_means(answer.arrangement) {
                row["by"] = by.into();
            }
            row
        };
        let others = answers.iter().skip(1 + usize::from(best.is_some()));
        let gain = best.as_ref().map(|(_, gain)| gain);
        let break_even = gain.map(|gain| gain.break_even_operations);
        let mut report = question.report();
        report["worth_it"] = json!(worth_it);
        report["verdict"] = verdict.into();
        report["reasons"] = reasons.into();
        report["now"] = row(now);
        report["best"] = json!(best.as_ref().map(|(best, _)| row(best)));
        report["saved_ns"] = gain.map_or(0.0, Gain::saved_ns).into();
        report["speedup"] = gain.map_or(1.0, Gain::speedup).into();
        report["morph_ns"] = morph_ns.into();
        report["morph_bytes"] = best.as_ref().map_or(0, |(best, _)| best.span_bytes).into();
        report["break_even_operations"] = json!(break_even.filter(|number| number.is_finite()));
        report["operations"] = json!(args.operations);
        report["others"] = others.map(row).collect::<Vec<Value>>().into();
        report["notes"] = notes.into();
        return write_json(out, &report);
    }
    let (what, operation) = (question.describe(), question.describe_operation());
    writeln!(out, "{what}; {operation}\n{verdict}")?;
    for reason in &reasons {
        writeln!(out, "- {reason}")?;
    }
    writeln!(out)?;
    let is_better = best.as_ref().is_some_and(|(_, gain)| gain.saved_ns() > 0.0);
    let mut table = Table::default();
    table.row(["layout", "ns", "from", "to", "speedup", "span", ""]);
    for (i, answer) in answers.iter().enumerate() {
        let last = match i {
            0 => "now",
            1 if is_better => "best",
            _ => other_means(answer.arrangement).unwrap_or_default(),
        };
        let mut cells = answer.cells(now_ns);
        cells.extend([human_bytes(answer.span_bytes as f64), last.to_owned()]);
        table.row(cells);
    }
    table.write(out)?;
    write_notes(out, &notes)
}

/// Layouts that a morph can make.
fn candidates(question: &Question<'_>) -> Vec<Layout> {
    let shape = question.built.shape();
    if shape.is_empty() {
        return Vec::new();
    }
    // The order of the links is the only good one, and the one that `ccmorph` takes.
    if shape.is_chains() {
        return vec![Layout::DepthFirst];
    }
    let (extent, pages) = (question.built.extent(), question.args.pages);
    morph_layouts(extent, !question.is_uniform(), pages, question.machine)
}

/// What could be done instead of a morph.
fn others(question: &Question<'_>, now: Arrangement) -> Vec<Arrangement> {
    let policy = HintPolicy::default();
    let hinted = Arrangement::Plain(Layout::Hinted { policy });
    let mut others = Vec::new();
    others.extend((!question.built.shape().is_empty()).then_some(hinted));
    others.extend((question.without_links().is_ok()).then_some(Arrangement::Eliminated));
    others.retain(|&other| other != now);
    others
}

/// Whether it is worth it, if the model can say, and the answer in a line.
fn verdict(
    now: &Answer,
    best: Option<&(&Answer, Gain)>,
    operations: Option<u64>,
) -> (Option<bool>, String) {
    let no = |why: String| (Some(false), format!("not worth it: {why}"));
    let Some((best, gain)) = best else {
        return no("there are no nodes that could be laid out otherwise".to_owned());
    };
    let crowded = crowded_levels([now, *best]).join(", ");
    if !crowded.is_empty() {
        let text = format!(
            "cannot say: an operation touches more than {:.0} % of {crowded}, and the order of \
             its reads is not known to the model; ask `model simulate`",
            100.0 * LevelMisses::CROWDED_SHARE
        );
        return (None, text);
    }
    let (now_ns, now) = (now.prediction.ns, now.arrangement);
    let (best, times) = (best.arrangement, gain.speedup());
    if gain.saved_ns() <= 0.0 {
        return no(format!("no layout is predicted to be faster than {now}"));
    }
    if times < WORTHWHILE_SPEEDUP {
        return no(format!(
            "{best} is predicted to be {:.1} % faster, and predictions err by {:.0} % against \
             each other",
            100.0 * (times - 1.0),
            100.0 * (WORTHWHILE_SPEEDUP - 1.0)
        ));
    }
    let pays = human_count(gain.break_even_operations.ceil());
    let faster = format!("{times:.2}x faster with `{best}`");
    let Some(operations) = operations.map(|operations| operations as f64) else {
        let text = format!(
            "{faster}; pays off after {pays} operations, if the structure does not change before"
        );
        return (Some(true), text);
    };
    if !gain.pays_within(operations) {
        let operations = human_count(operations);
        let but =
            format!("but pays off only after {pays} operations, and {operations} are to come");
        return no(format!("{faster}, {but}"));
    }
    let saved = human_ns(gain.saved_ns() * operations - gain.cost_ns);
    let all = human_ns(now_ns * operations);
    let text = format!("{faster}; saves {saved} of {all} in all");
    (Some(true), text)
}

/// Why, as far as the figures say it.
fn reasons(
    question: &Question<'_>,
    now: &Answer,
    best: Option<&(&Answer, Gain)>,
    worth_it: bool,
) -> Vec<String> {
    let mut reasons = Vec::new();
    let (ns, cpu_ns) = (now.prediction.ns, now.prediction.cpu_ns);
    let levels = question.machine.levels.iter();
    let data = levels.filter(|level| level.kind == LevelKind::Data);
    let is_held = |level: &&LevelMisses| {
        level.misses < HELD_MISSES && data.clone().any(|other| other.name == level.name)
    };
    if let Some(level) = now.prediction.levels.iter().find(is_held) {
        reasons.push(format!(
            "{} holds all of it that operations meet: farther levels are hardly missed, whatever \
             the layout",
            level.name
        ));
    }
    let waiting = if ns > 0.0 { 1.0 - cpu_ns / ns } else { 0.0 };
    let little = match waiting < WAITING_MIN {
        true => ", too little for a layout to matter",
        false => "",
    };
    let (percent, time) = (100.0 * waiting, human_ns(ns));
    reasons.push(format!(
        "{percent:.0} % of {time} are spent waiting for memory{little}"
    ));
    let lines = data.map(|level| level.block_bytes);
    let line_bytes = lines.max().unwrap_or(64);
    let (shape, extent) = (question.built.shape(), question.built.extent());
    if shape.is_chains() && !shape.is_empty() {
        let order =
            "each node leads to one other, so that the only good order is that of the links";
        reasons.push(order.to_owned());
        if let Operation::Walk { .. } = question.args.operation {
            let more =
                "prefetchers, which are not modelled, make reads in ascending order faster still";
            reasons.push(more.to_owned());
        }
    } else if extent.stride_bytes() > line_bytes && !shape.is_empty() {
        reasons.push(format!(
            "nodes of {} fill lines of {line_bytes} B of their own: layouts differ only in the \
             pages that an operation meets",
            human_bytes(f64::from(extent.bytes))
        ));
    }
    let Some((best, gain)) = best.filter(|(_, gain)| gain.saved_ns() > 0.0) else {
        return reasons;
    };
    let levels = now.prediction.levels.iter().zip(&best.prediction.levels);
    let saved = levels.map(|(now, best)| (&now.name, now.ns - best.ns));
    let most = saved.max_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((name, ns)) = most.filter(|&(_, ns)| ns > 0.0) {
        let (ns, all) = (human_ns(ns), human_ns(gain.saved_ns()));
        reasons.push(format!("most is saved at {name}: {ns} of {all}"));
    }
    if worth_it {
        reasons.push(format!(
            "a morph takes about {}, and {} of memory beside what is there until it is done",
            human_ns(gain.cost_ns),
            human_bytes(best.span_bytes as f64)
        ));
    }
    reasons
}
