//! `model advise`: which layout, and whether it is worth a morph.
//!
//! A new layout is worth it when an operation gets faster by more than predictions of two layouts
//! err against each other ([`WORTHWHILE_SPEEDUP`]), and enough operations follow to pay for the
//! morph.
//!
//! The JSON object:
//!
//! ```text
//! {
//!   "machine": .., "origin": .., "structure": {..}, "operation": .., "keys": ..,
//!   "pages": .., "frames": ..,
//!   "state": "steady" | {"first": N},
//!   "worth_it": true | false | null, where the model cannot say,
//!   "verdict": "..", "reasons": ["..", ...],
//!   "now":  {"layout": .., "ns": .., "ns_low": .., "ns_high": .., "misses": {..},
//!            "span_bytes": ..},
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

/// What it takes that is no call of `ccmorph`.
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
    let unsure = best
        .as_ref()
        .map_or(Vec::new(), |_| crowded_levels(&answers[..2]));
    let (worth_it, verdict) = if unsure.is_empty() {
        let (worth_it, verdict) = verdict(now, best.as_ref(), args.operations);
        (Some(worth_it), verdict)
    } else {
        // Operations are long compared with a cache, and the order of their reads is not known.
        let verdict = format!(
            "cannot say: an operation touches more than {:.0} % of {}, and the order of its reads \
             is not known to the model; ask `model simulate`",
            100.0 * LevelMisses::CROWDED_SHARE,
            unsure.join(", ")
        );
        (None, verdict)
    };
    let reasons = reasons(&question, now, best.as_ref(), worth_it == Some(true));
    let notes = notes(&machine, &answers[..1]);
    let now_ns = now.prediction.ns;
    let others = &answers[answers.len().min(if best.is_some() { 2 } else { 1 })..];
    let best_saves = best.as_ref().is_some_and(|(_, gain)| gain.saved_ns() > 0.0);
    if args.json {
        let row = |answer: &Answer| {
            let mut row = answer.report(now_ns);
            if let Some(by) = other_means(answer.arrangement) {
                row["by"] = by.into();
            }
            row
        };
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
        report["others"] = others.iter().map(row).collect::<Vec<Value>>().into();
        report["notes"] = notes.into();
        return write_json(out, &report);
    }
    writeln!(
        out,
        "{}; {}",
        question.describe(),
        question.describe_operation()
    )?;
    writeln!(out, "{verdict}")?;
    for reason in &reasons {
        writeln!(out, "- {reason}")?;
    }
    writeln!(out)?;
    let mut table = Table::default();
    table.row(["layout", "ns", "from", "to", "speedup", "span", ""]);
    let place = |i: usize, answer: &Answer| match i {
        0 => "now",
        1 if best_saves => "best",
        _ => other_means(answer.arrangement).unwrap_or_default(),
    };
    for (i, answer) in answers.iter().enumerate() {
        let span = human_bytes(answer.span_bytes as f64);
        let last = [span, place(i, answer).to_owned()];
        table.row(answer.cells(now_ns).into_iter().chain(last));
    }
    table.write(out)?;
    Ok(write_notes(out, &notes)?)
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
    let hinted = Arrangement::Plain(Layout::Hinted {
        policy: HintPolicy::default(),
    });
    let mut others = Vec::new();
    others.extend((!question.built.shape().is_empty()).then_some(hinted));
    others.extend((question.without_links().is_ok()).then_some(Arrangement::Eliminated));
    others.retain(|&other| other != now);
    others
}

/// Whether it is worth it, and the answer in a line.
fn verdict(
    now: &Answer,
    best: Option<&(&Answer, Gain)>,
    operations: Option<u64>,
) -> (bool, String) {
    let no = |why: String| (false, format!("not worth it: {why}"));
    let Some((best, gain)) = best else {
        return no("there are no nodes that could be laid out otherwise".to_owned());
    };
    let (best, times) = (best.arrangement, gain.speedup());
    if gain.saved_ns() <= 0.0 {
        return no(format!(
            "no layout is predicted to be faster than {}",
            now.arrangement
        ));
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
    let Some(operations) = operations.map(|operations| operations as f64) else {
        let text = format!(
            "worth it if more than {pays} operations are to come before the structure changes: \
             {best} is {times:.2} times as fast"
        );
        return (true, text);
    };
    if !gain.pays_within(operations) {
        return no(format!(
            "{best} is {times:.2} times as fast, but pays only after {pays} operations, and {} \
             are to come",
            human_count(operations)
        ));
    }
    let text = format!(
        "worth it: {best} is {times:.2} times as fast, and saves {} of {} in all",
        human_ns(gain.saved_ns() * operations - gain.cost_ns),
        human_ns(now.prediction.ns * operations)
    );
    (true, text)
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
    let waiting = if ns > 0.0 { 1.0 - cpu_ns / ns } else { 0.0 };
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
    let little = if waiting < WAITING_MIN {
        ", too little for a layout to matter"
    } else {
        ""
    };
    reasons.push(format!(
        "{:.0} % of {} are spent waiting for memory{little}",
        100.0 * waiting,
        human_ns(ns)
    ));
    let line_bytes = data
        .clone()
        .map(|level| level.block_bytes)
        .max()
        .unwrap_or(64);
    let (shape, extent) = (question.built.shape(), question.built.extent());
    if shape.is_chains() && !shape.is_empty() {
        reasons.push(
            "each node leads to one other, so that the only good order is that of the links"
                .to_owned(),
        );
        if let Operation::Walk { .. } = question.args.operation {
            reasons.push(
                "prefetchers, which are not modelled, make reads in ascending order faster still"
                    .to_owned(),
            );
        }
    } else if extent.stride_bytes() > line_bytes && !shape.is_empty() {
        reasons.push(format!(
            "nodes of {} fill lines of {line_bytes} B of their own: layouts differ only in the \
             pages that an operation meets",
            human_bytes(f64::from(extent.bytes))
        ));
    }
    if let Some((best, gain)) = best.filter(|(_, gain)| gain.saved_ns() > 0.0) {
        let levels = now.prediction.levels.iter().zip(&best.prediction.levels);
        let most = levels
            .map(|(now, best)| (&now.name, now.ns - best.ns))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((name, ns)) = most.filter(|&(_, ns)| ns > 0.0) {
            reasons.push(format!(
                "most is saved at {name}: {} of {}",
                human_ns(ns),
                human_ns(gain.saved_ns())
            ));
        }
        if worth_it {
            reasons.push(format!(
                "a morph takes about {}, and {} of memory beside what is there until it is done",
                human_ns(gain.cost_ns),
                human_bytes(best.span_bytes as f64)
            ));
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_weigh_the_gain_the_error_and_the_number_of_operations() {
        let answer = |layout, ns| Answer::of_time(Arrangement::Plain(layout), ns);
        let now = answer(Layout::Random { seed: 0 }, 400.0);
        for (best_ns, operations, expected, part) in [
            (200.0, None, true, "more than 5000 operations"),
            (200.0, Some(5000), false, "5000 are to come"),
            (200.0, Some(1_000_000), true, "saves 199 ms of 400 ms"),
            (390.0, Some(u64::MAX), false, "2.6 % faster"),
            (400.0, None, false, "faster than random"),
        ] {
            let best = answer(Layout::VanEmdeBoas, best_ns);
            let gain = Gain::new(now.prediction.clone(), best.prediction.clone(), 1e6);
            let (worth_it, text) = verdict(&now, Some(&(&best, gain)), operations);
            assert!(worth_it == expected && text.contains(part), "{text}");
        }
        let (worth_it, text) = verdict(&now, None, None);
        assert!(!worth_it && text.contains("no nodes"), "{text}");
    }
}
