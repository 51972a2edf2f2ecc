//! `model advise`: which layout, what for, and whether to bother.
//!
//! A new layout is worth it when an operation gets faster by more than predictions of two layouts
//! err against each other ([`WORTHWHILE_SPEEDUP`]), and enough operations follow to win back what
//! the morph costs. Everything else is a reason against it, and said in words.
//!
//! The JSON object:
//!
//! ```text
//! {
//!   "machine": .., "origin": .., "structure": {..}, "operation": .., "keys": .., "pages": .., "frames": ..,
//!   "state": "steady" | {"first": N},
//!   "worth_it": true | false | null, where the model cannot say,
//!   "verdict": "..", "reasons": ["..", ...],
//!   "now":  {"layout": .., "ns": .., "ns_low": .., "ns_high": .., "misses": {..}, "span_bytes": ..},
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
use crate::{
    HintPolicy, Layout, LevelKind, LevelMisses, Machine, Operation, WORTHWHILE_SPEEDUP, morph_cost,
};

/// Of operations in trees that touch less of a level than this, predictions are a few percent too
/// low at most; of those in chains, less than [`LevelMisses::CROWDED_SHARE`].
const TREE_CROWDED_SHARE: f64 = 0.2;
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
            ns: answer.ns,
            ns_low: answer.ns_low,
            ns_high: answer.ns_high,
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

/// The best of the layouts that a morph can make, and what it changes.
struct Gain<'a> {
    best: &'a Answer,
    saved_ns: f64,
    morph_ns: f64,
    /// Infinite where it never pays.
    break_even_operations: f64,
}

pub(super) fn run(args: &AdviseArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let machine = machine(&args.place.machine)?;
    let question = Question::new(&args.question, &args.place, &machine, args.cost.tier()?)?;
    let built = question.built();
    let candidates = candidates(&question);
    let candidates = candidates.into_iter().map(Arrangement::Plain);
    let mut arrangements = vec![args.now];
    arrangements.extend(candidates.filter(|&candidate| candidate != args.now));
    let others_start = arrangements.len();
    arrangements.extend(others(&question, args.now));
    let mut answers = answers(&question, &arrangements, &args.cost, 1)?;
    let other_answers = answers.split_off(others_start);
    let now = answers.remove(0);
    answers.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    let morph_ns = morph_cost(
        built.shape().len(),
        built.extent(),
        args.place.pages.size(),
        &machine,
    );
    let gain = answers.first().map(|best| {
        let saved_ns = now.ns - best.ns;
        Gain {
            best,
            saved_ns,
            morph_ns,
            break_even_operations: if saved_ns > 0.0 {
                morph_ns / saved_ns
            } else {
                f64::INFINITY
            },
        }
    });
    let is_chains = built.shape().is_chains();
    let unknown = gain
        .as_ref()
        .and_then(|gain| cannot_say(is_chains, [&now, gain.best]));
    let (worth_it, verdict) = match unknown {
        Some(why) => (None, why),
        None => {
            let (worth_it, verdict) = verdict(&now, gain.as_ref(), args.operations);
            (Some(worth_it), verdict)
        }
    };
    let is_worth_it = worth_it == Some(true);
    let reasons = reasons(&question, &machine, &now, gain.as_ref(), is_worth_it);
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
        best: gain.as_ref().map(|gain| Row::of(gain.best)),
        saved_ns: gain.as_ref().map_or(0.0, |gain| gain.saved_ns),
        speedup: gain
            .as_ref()
            .map_or(1.0, |gain| speedup(now.ns, gain.best.ns)),
        morph_ns,
        morph_bytes: gain.as_ref().map_or(0, |gain| gain.best.span_bytes),
        break_even_operations: gain
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
    let lines = question.machine().levels.iter();
    let line = lines
        .filter(|level| level.kind == LevelKind::Data)
        .map(|level| level.block_bytes)
        .max();
    let block_bytes = line.and_then(|line| u32::try_from(line).ok()).unwrap_or(64);
    let mut layouts = vec![
        Layout::Hierarchical,
        Layout::VanEmdeBoas,
        Layout::ClusterVanEmdeBoas { block_bytes },
        Layout::ClusterVanEmdeBoas { block_bytes: 256 },
        Layout::ClusterVanEmdeBoas { block_bytes: 4096 },
        Layout::SubtreeCluster { block_bytes },
        Layout::DepthFirst,
        Layout::BreadthFirst,
    ];
    layouts.dedup();
    if let Operation::Walk { .. } = question.operation() {
        layouts.push(Layout::Preorder);
    }
    if question.has_favourites() {
        layouts.push(Layout::Weighted);
    }
    layouts
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

/// Why no verdict is given: operations are long against a cache, and the model does not know in
/// which order they read.
fn cannot_say(is_chains: bool, answers: [&Answer; 2]) -> Option<String> {
    let share_max = if is_chains {
        LevelMisses::CROWDED_SHARE
    } else {
        TREE_CROWDED_SHARE
    };
    let crowded = answers.into_iter().flat_map(|answer| &answer.crowded);
    let mut unsure: Vec<&str> = (crowded.filter(|(_, share)| *share > share_max))
        .map(|(name, _)| name.as_str())
        .collect();
    unsure.sort_unstable();
    unsure.dedup();
    (!unsure.is_empty()).then(|| {
        format!(
            "cannot say: an operation touches more than {:.0} % of {}, and the order of its reads \
             is not known to the model; ask `model simulate`",
            100.0 * share_max,
            unsure.join(", ")
        )
    })
}

/// Whether it is worth it, and the answer in a line.
fn verdict(now: &Answer, gain: Option<&Gain<'_>>, operations: Option<u64>) -> (bool, String) {
    let Some(gain) = gain else {
        return (
            false,
            "not worth it: there are no nodes that could be laid out otherwise".to_owned(),
        );
    };
    let (best, times) = (&gain.best.arrangement, speedup(now.ns, gain.best.ns));
    if gain.saved_ns <= 0.0 {
        return (
            false,
            format!(
                "not worth it: no layout is predicted to be faster than {}",
                now.arrangement
            ),
        );
    }
    if times < WORTHWHILE_SPEEDUP {
        return (
            false,
            format!(
                "not worth it: {best} is predicted to be {:.1} % faster, and predictions err by {:.0} % against each other",
                100.0 * (times - 1.0),
                100.0 * (WORTHWHILE_SPEEDUP - 1.0)
            ),
        );
    }
    let pays = human_count(gain.break_even_operations.ceil());
    match operations {
        Some(operations) if operations as f64 <= gain.break_even_operations => (
            false,
            format!(
                "not worth it: {best} is {times:.2} times as fast, but pays only after {pays} operations, and {} are to come",
                human_count(operations as f64)
            ),
        ),
        Some(operations) => {
            let saved_ns = gain.saved_ns * operations as f64 - gain.morph_ns;
            (
                true,
                format!(
                    "worth it: {best} is {times:.2} times as fast, and saves {} of {} in all",
                    human_ns(saved_ns),
                    human_ns(now.ns * operations as f64)
                ),
            )
        }
        None => (
            true,
            format!(
                "worth it if more than {pays} operations are to come before the structure changes: {best} is {times:.2} times as fast"
            ),
        ),
    }
}

/// Why, as far as the figures say it.
fn reasons(
    question: &Question<'_>,
    machine: &Machine,
    now: &Answer,
    gain: Option<&Gain<'_>>,
    worth_it: bool,
) -> Vec<String> {
    let mut reasons = Vec::new();
    let waiting = if now.ns > 0.0 {
        1.0 - now.cpu_ns / now.ns
    } else {
        0.0
    };
    let is_data = |name: &str| {
        let level = machine.levels.iter().find(|level| level.name == name);
        level.is_some_and(|level| level.kind == LevelKind::Data)
    };
    let holder =
        (now.levels.iter()).find(|level| is_data(&level.name) && level.misses < HELD_MISSES);
    if let Some(level) = holder {
        reasons.push(format!(
            "{} holds all of it that operations meet: farther levels are hardly missed, whatever the layout",
            level.name
        ));
    }
    reasons.push(format!(
        "{:.0} % of {} are spent waiting for memory{}",
        100.0 * waiting,
        human_ns(now.ns),
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
            "nodes of {} fill lines of {line_bytes} B of their own: layouts differ only in the pages that an operation meets",
            human_bytes(f64::from(extent.bytes))
        ));
    }
    if let Some(gain) = gain.filter(|gain| gain.saved_ns > 0.0) {
        let saved = now.levels.iter().zip(&gain.best.levels);
        let (name, ns) = saved
            .map(|(now, best)| (now.name.as_str(), now.ns - best.ns))
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap_or_default();
        if ns > 0.0 {
            reasons.push(format!(
                "most is saved at {name}: {} of {}",
                human_ns(ns),
                human_ns(gain.saved_ns)
            ));
        }
        if worth_it {
            reasons.push(format!(
                "a morph takes about {}, and {} of memory beside what is there until it is done",
                human_ns(gain.morph_ns),
                human_bytes(gain.best.span_bytes as f64)
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
            let saved_ns = 400.0 - best_ns;
            let gain = Gain {
                best: &best,
                saved_ns,
                morph_ns: 1e6,
                break_even_operations: if saved_ns > 0.0 {
                    1e6 / saved_ns
                } else {
                    f64::INFINITY
                },
            };
            verdict(&now, Some(&gain), operations)
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
