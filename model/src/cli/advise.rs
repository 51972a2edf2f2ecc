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

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::CliError;
use super::answer::{Answer, answers, crowded_note, machine_notes};
use super::args::AdviseArgs;
use super::arrangement::Arrangement;
use super::machine::machine;
use super::output::{Table, human_bytes, human_count, human_ns, write_json};
use super::predict::speedup;
use super::question::{Question, QuestionReport};
use crate::choose::morph_layouts;
use crate::{
    Gain, HintPolicy, Layout, LevelKind, LevelMisses, Machine, Operation, WORTHWHILE_SPEEDUP,
    morph_cost,
};

/// Below this share of waiting, memory is not what an operation takes time for.
const WAITING_MIN: f64 = 0.15;
/// A cache that misses less often in an operation holds the structure.
const HELD_MISSES: f64 = 0.01;

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    question: QuestionReport,
    worth_it: Option<bool>,
    verdict: String,
    reasons: Vec<String>,
    now: Row,
    best: Option<Row>,
    saved_ns: f64,
    speedup: f64,
    morph_ns: f64,
    morph_bytes: u64,
    break_even_operations: Option<f64>,
    operations: Option<u64>,
    others: Vec<Row>,
    notes: Vec<String>,
}

#[derive(Clone, Serialize)]
struct Row {
    layout: String,
    ns: f64,
    ns_low: f64,
    ns_high: f64,
    misses: BTreeMap<String, f64>,
    span_bytes: u64,
    /// How one gets there, where it is no morph.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
}

impl Row {
    fn of(answer: &Answer) -> Row {
        Row {
            layout: answer.arrangement.to_string(),
            ns: answer.prediction.ns,
            ns_low: answer.prediction.ns_low,
            ns_high: answer.prediction.ns_high,
            misses: answer
                .levels
                .iter()
                .map(|level| (level.name.clone(), level.misses))
                .collect(),
            span_bytes: answer.span_bytes,
            by: other_means(answer.arrangement),
        }
    }
}

/// What it takes that is no call of `ccmorph`.
fn other_means(arrangement: Arrangement) -> Option<&'static str> {
    match arrangement {
        Arrangement::Plain(Layout::Hinted { .. }) => Some("allocating near the parent"),
        Arrangement::Eliminated => Some("a structure that is built once"),
        _ => None,
    }
}

pub(super) fn run(args: &AdviseArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let machine = machine(&args.place.machine)?;
    let question = Question::new(&args.question, &args.place, &machine, args.cost.tier()?)?;
    let built = question.built();
    let candidates = candidates(&question).into_iter().map(Arrangement::Plain);
    let mut arrangements = vec![args.now];
    arrangements.extend(candidates.filter(|&candidate| candidate != args.now));
    let others_start = arrangements.len();
    arrangements.extend(others(&question, args.now));
    let mut answers = answers(&question, &arrangements, &args.cost, 1)?;
    let other_answers = answers.split_off(others_start);
    let now = answers.remove(0);
    answers.sort_by(|a, b| a.prediction.ns.total_cmp(&b.prediction.ns));
    let best = answers.first();
    let (nodes, pages) = (built.shape().len(), args.place.pages.size());
    let morph_ns = morph_cost(nodes, built.extent(), pages, &machine);
    let gain =
        best.map(|best| Gain::new(now.prediction.clone(), best.prediction.clone(), morph_ns));
    let best = best.zip(gain.as_ref());
    let (worth_it, verdict) = match best.and_then(|(best, _)| cannot_say([&now, best])) {
        Some(why) => (None, why),
        None => {
            let (worth_it, verdict) = verdict(&now, best, args.operations);
            (Some(worth_it), verdict)
        }
    };
    let reasons = reasons(&question, &machine, &now, best, worth_it == Some(true));
    let others = answers.iter().skip(1).chain(&other_answers);
    let mut notes = question.notes();
    notes.extend(machine_notes(&machine));
    notes.extend(crowded_note(std::slice::from_ref(&now)));
    notes.extend(now.aliasing_note());
    let report = Report {
        question: question.report(question.frames()),
        worth_it,
        verdict,
        reasons,
        now: Row::of(&now),
        best: best.map(|(best, _)| Row::of(best)),
        saved_ns: gain.as_ref().map_or(0.0, Gain::saved_ns),
        speedup: gain.as_ref().map_or(1.0, Gain::speedup),
        morph_ns,
        morph_bytes: best.map_or(0, |(best, _)| best.span_bytes),
        break_even_operations: gain
            .as_ref()
            .map(|gain| gain.break_even_operations)
            .filter(|operations| operations.is_finite()),
        operations: args.operations,
        others: others.map(Row::of).collect(),
        notes,
    };
    if args.json {
        write_json(out, &report)
    } else {
        table(&report, &question, out)
    }
}

/// Layouts that a morph can make.
fn candidates(question: &Question<'_>) -> Vec<Layout> {
    let shape = question.built().shape();
    if shape.is_empty() {
        return Vec::new();
    }
    // The order of the links is the only good one, and the one that `ccmorph` takes.
    if shape.is_chains() {
        return vec![Layout::DepthFirst];
    }
    let extent = question.built().extent();
    let (pages, machine) = (question.pages(), question.machine());
    morph_layouts(extent, question.has_favourites(), pages, machine)
}

/// What could be done instead of a morph.
fn others(question: &Question<'_>, now: Arrangement) -> Vec<Arrangement> {
    let hinted = Arrangement::Plain(Layout::Hinted {
        policy: HintPolicy::default(),
    });
    let mut others = Vec::new();
    others.extend((!question.built().shape().is_empty()).then_some(hinted));
    others.extend(question.can_eliminate().then_some(Arrangement::Eliminated));
    others.retain(|&other| other != now);
    others
}

/// Why no verdict is given: operations are long compared with a cache, and the model does not know
/// in which order they read.
fn cannot_say(answers: [&Answer; 2]) -> Option<String> {
    let crowded = answers.map(|answer| answer.prediction.crowded_levels());
    let mut unsure: Vec<&str> = (crowded.into_iter().flatten())
        .map(|level| level.name.as_str())
        .collect();
    unsure.sort_unstable();
    unsure.dedup();
    (!unsure.is_empty()).then(|| {
        format!(
            "cannot say: an operation touches more than {:.0} % of {}, and the order of its reads \
             is not known to the model; ask `model simulate`",
            100.0 * LevelMisses::CROWDED_SHARE,
            unsure.join(", ")
        )
    })
}

/// Whether it is worth it, and the answer in a line.
fn verdict(
    now: &Answer,
    best: Option<(&Answer, &Gain)>,
    operations: Option<u64>,
) -> (bool, String) {
    let no = |why: String| (false, format!("not worth it: {why}"));
    let Some((best, gain)) = best else {
        return no("there are no nodes that could be laid out otherwise".to_owned());
    };
    let (best, times) = (&best.arrangement, gain.speedup());
    if gain.saved_ns() <= 0.0 {
        let now = now.arrangement;
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
    machine: &Machine,
    now: &Answer,
    best: Option<(&Answer, &Gain)>,
    worth_it: bool,
) -> Vec<String> {
    let mut reasons = Vec::new();
    let (ns, cpu_ns) = (now.prediction.ns, now.prediction.cpu_ns);
    let waiting = if ns > 0.0 { 1.0 - cpu_ns / ns } else { 0.0 };
    let is_data = |name: &str| {
        let level = machine.levels.iter().find(|level| level.name == name);
        level.is_some_and(|level| level.kind == LevelKind::Data)
    };
    let holder =
        (now.levels.iter()).find(|level| is_data(&level.name) && level.misses < HELD_MISSES);
    if let Some(level) = holder {
        reasons.push(format!(
            "{} holds all of it that operations meet: farther levels are hardly missed, whatever \
             the layout",
            level.name
        ));
    }
    reasons.push(format!(
        "{:.0} % of {} are spent waiting for memory{}",
        100.0 * waiting,
        human_ns(ns),
        if waiting < WAITING_MIN {
            ", too little for a layout to matter"
        } else {
            ""
        }
    ));
    let line_bytes = (machine.levels.iter())
        .filter(|level| level.kind == LevelKind::Data)
        .map(|level| level.block_bytes)
        .max()
        .unwrap_or(64);
    let extent = question.built().extent();
    if question.built().shape().is_chains() && !question.built().shape().is_empty() {
        reasons.push(
            "each node leads to one other, so that the only good order is that of the links"
                .to_owned(),
        );
        reasons.extend(
            matches!(question.operation(), Operation::Walk { .. }).then(|| {
                "prefetchers, which are not modelled, make reads in ascending order faster \
             still"
                    .to_owned()
            }),
        );
    } else if extent.stride_bytes() > line_bytes && !question.built().shape().is_empty() {
        reasons.push(format!(
            "nodes of {} fill lines of {line_bytes} B of their own: layouts differ only in the \
             pages that an operation meets",
            human_bytes(f64::from(extent.bytes))
        ));
    }
    if let Some((best, gain)) = best.filter(|(_, gain)| gain.saved_ns() > 0.0) {
        let saved = now.levels.iter().zip(&best.levels);
        let (name, ns) = saved
            .map(|(now, best)| (now.name.as_str(), now.ns - best.ns))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or_default();
        if ns > 0.0 {
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

fn table(report: &Report, question: &Question<'_>, out: &mut dyn Write) -> Result<(), CliError> {
    writeln!(
        out,
        "{} on {}; {}",
        question.describe(),
        report.question.machine,
        question.describe_operation()
    )?;
    writeln!(out, "{}", report.verdict)?;
    for reason in &report.reasons {
        writeln!(out, "- {reason}")?;
    }
    writeln!(out)?;
    let mut table = Table::new(["layout", "ns", "from", "to", "speedup", "span", ""]);
    let best = if report.saved_ns > 0.0 { "best" } else { "" };
    let rows = std::iter::once((&report.now, "now"))
        .chain(report.best.iter().map(|row| (row, best)))
        .chain(
            report
                .others
                .iter()
                .map(|row| (row, row.by.unwrap_or_default())),
        );
    for (row, remark) in rows {
        table.row([
            row.layout.clone(),
            format!("{:.1}", row.ns),
            format!("{:.0}", row.ns_low),
            format!("{:.0}", row.ns_high),
            format!("{:.2}x", speedup(report.now.ns, row.ns)),
            human_bytes(row.span_bytes as f64),
            remark.to_owned(),
        ]);
    }
    table.write(out)?;
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(layout: Layout, ns: f64) -> Answer {
        Answer::of_time(Arrangement::Plain(layout), ns)
    }

    #[test]
    fn verdicts_weigh_the_gain_the_error_and_the_number_of_operations() {
        let now = answer(Layout::Random { seed: 0 }, 400.0);
        let says = |best_ns: f64, operations| {
            let best = answer(Layout::VanEmdeBoas, best_ns);
            let gain = Gain::new(now.prediction.clone(), best.prediction.clone(), 1e6);
            verdict(&now, Some((&best, &gain)), operations)
        };
        let (worth_it, text) = says(200.0, None);
        assert!(
            worth_it && text.contains("more than 5000 operations"),
            "{text}"
        );
        let (worth_it, text) = says(200.0, Some(5000));
        assert!(!worth_it && text.contains("5000 are to come"), "{text}");
        let (worth_it, text) = says(200.0, Some(1_000_000));
        assert!(
            worth_it && text.contains("saves 199 ms of 400 ms"),
            "{text}"
        );
        let (worth_it, text) = says(390.0, Some(u64::MAX));
        assert!(!worth_it && text.contains("2.6 % faster"), "{text}");
        let (worth_it, text) = says(400.0, None);
        assert!(!worth_it && text.contains("faster than random"), "{text}");
        let (worth_it, text) = verdict(&now, None, None);
        assert!(!worth_it && text.contains("no nodes"), "{text}");
    }
}
