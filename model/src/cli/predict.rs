//! `model predict`.
//!
//! The JSON object:
//!
//! ```text
//! {
//!   "machine":   name of the processor or preset,
//!   "origin":    "defaults" | "preset" | {"calibrated": {"unix_seconds": .., "quick": ..}},
//!   "structure": {"kind": .., "shape": .., "nodes": .., "keys": .., "node_bytes": ..},
//!   "operation": .., "keys": .., "pages": "4k" | "2m", "frames": "random" | "identity",
//!   "state":     "steady" | {"first": N},
//!   "overlap":   "dependent" | "independent",
//!   "baseline":  the layout that speedups are relative to,
//!   "rows":      [{"layout": .., "ns": .., "ns_low": .., "ns_high": .., "cpu_ns": .., "nodes_visited": ..,
//!                  "misses": {"L1": .., ...},
//!                  "levels": [{"name": .., "misses": .., "ns": .., "tier": .., "reason": ..}, ...],
//!                  "span_bytes": .., "speedup": ..}, ...],
//!   "thesis":    absent, or what its formulas say,
//!   "sweep":     absent, or {"over": "nodes" | "colour_share", "rows": [{"at": .., "layout": .., "ns": .., "misses": {..}, "speedup": ..}, ...]},
//!   "notes":     [..]
//! }
//! ```

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::CliError;
use super::answer::{Answer, LevelAnswer, answer, answers, crowded_note, machine_notes};
use super::args::PredictArgs;
use super::arrangement::Arrangement;
use super::machine::machine;
use super::output::{
    NewFile, Table, human_bytes, human_count, human_number, write_csv, write_json,
};
use super::question::{Question, QuestionReport};
use super::sweep::{self, SweepReport};
use crate::{Layout, Structure, thesis};

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    question: QuestionReport,
    overlap: &'static str,
    baseline: String,
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thesis: Option<thesis::Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<SweepReport>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    layout: String,
    ns: f64,
    ns_low: f64,
    ns_high: f64,
    cpu_ns: f64,
    nodes_visited: f64,
    misses: BTreeMap<String, f64>,
    levels: Vec<LevelAnswer>,
    span_bytes: u64,
    speedup: f64,
}

impl Row {
    fn of(answer: Answer, baseline_ns: f64) -> Row {
        Row {
            speedup: speedup(baseline_ns, answer.prediction.ns),
            layout: answer.arrangement.to_string(),
            ns: answer.prediction.ns,
            ns_low: answer.prediction.ns_low,
            ns_high: answer.prediction.ns_high,
            cpu_ns: answer.prediction.cpu_ns,
            nodes_visited: answer.prediction.nodes_visited,
            misses: answer
                .levels
                .iter()
                .map(|level| (level.name.clone(), level.misses))
                .collect(),
            levels: answer.levels,
            span_bytes: answer.span_bytes,
        }
    }
}

pub(super) fn run(args: &PredictArgs, out: &mut dyn Write) -> Result<(), CliError> {
    // Asked first: an answer of seconds that cannot be drawn is a nuisance.
    let plot = args.plot.as_deref().map(NewFile::create).transpose()?;
    let machine = machine(&args.place.machine)?;
    let question = Question::new(&args.question, &args.place, &machine, args.cost.tier()?)?;
    let answers = answers(&question, &args.layout, &args.cost, args.layout.len())?;
    let known = answers
        .iter()
        .find(|answer| answer.arrangement == args.baseline);
    let baseline_ns = match known {
        Some(answer) => answer.prediction.ns,
        None => answer(&question, args.baseline, &args.cost)?.prediction.ns,
    };
    let mut notes = question.notes();
    notes.extend(machine_notes(&machine));
    notes.extend(crowded_note(&answers));
    notes.extend(answers.iter().filter_map(Answer::aliasing_note));
    let sweep = match plot {
        Some(file) => {
            let sweep = sweep::run(args, &question)?;
            file.write(&sweep.to_svg()?)?;
            Some(sweep)
        }
        None => None,
    };
    let report = Report {
        question: question.report(question.frames()),
        overlap: if args.cost.independent {
            "independent"
        } else {
            "dependent"
        },
        baseline: args.baseline.to_string(),
        rows: answers
            .into_iter()
            .map(|answer| Row::of(answer, baseline_ns))
            .collect(),
        thesis: args
            .thesis
            .then(|| thesis_report(args, &question))
            .transpose()?,
        sweep,
        notes,
    };
    if args.json {
        write_json(out, &report)
    } else if args.csv {
        csv(&report, out)
    } else {
        table(&report, &question, args, out)
    }
}

/// How many times faster than the baseline; 1 where a machine file makes everything free.
pub(super) fn speedup(baseline_ns: f64, ns: f64) -> f64 {
    if ns > 0.0 { baseline_ns / ns } else { 1.0 }
}

fn csv(report: &Report, out: &mut dyn Write) -> Result<(), CliError> {
    if let Some(sweep) = &report.sweep {
        return sweep.csv(out);
    }
    let levels = level_names(&report.rows);
    let titles = [
        "layout",
        "ns",
        "ns_low",
        "ns_high",
        "cpu_ns",
        "speedup",
        "span_bytes",
    ];
    let misses = levels.iter().map(|level| format!("misses_{level}"));
    write_csv(out, titles.into_iter().map(str::to_owned).chain(misses))?;
    for row in &report.rows {
        let numbers = [row.ns, row.ns_low, row.ns_high, row.cpu_ns, row.speedup];
        let misses = levels.iter().map(|level| {
            row.misses
                .get(*level)
                .map(f64::to_string)
                .unwrap_or_default()
        });
        write_csv(
            out,
            std::iter::once(row.layout.clone())
                .chain(numbers.map(|number| number.to_string()))
                .chain([row.span_bytes.to_string()])
                .chain(misses),
        )?;
    }
    Ok(())
}

/// Level names in the machine's order, not in the order of the alphabet.
fn level_names(rows: &[Row]) -> Vec<&str> {
    let levels = rows.first().map(|row| row.levels.as_slice());
    let levels = levels.unwrap_or_default();
    levels.iter().map(|level| level.name.as_str()).collect()
}

fn table(
    report: &Report,
    question: &Question<'_>,
    args: &PredictArgs,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let state = question.first_operations().map_or(String::new(), |first| {
        format!(
            ", mean of the first {} from cold caches",
            human_count(first as f64)
        )
    });
    let overlap = if args.cost.independent {
        ", operations independent"
    } else {
        ""
    };
    writeln!(
        out,
        "{} on {}; {}{state}{overlap}:",
        question.describe(),
        report.question.machine,
        question.describe_operation()
    )?;
    let levels = level_names(&report.rows);
    let titles = levels.iter().map(|level| format!("{level} miss"));
    let mut table = Table::new(
        ["layout", "ns", "from", "to", "speedup"]
            .into_iter()
            .map(str::to_owned)
            .chain(titles)
            .chain(["span".to_owned()]),
    );
    for row in &report.rows {
        let misses = levels
            .iter()
            .map(|level| human_number(row.misses.get(*level).copied().unwrap_or(0.0)));
        table.row(
            [
                row.layout.clone(),
                format!("{:.1}", row.ns),
                format!("{:.0}", row.ns_low),
                format!("{:.0}", row.ns_high),
                format!("{:.2}x", row.speedup),
            ]
            .into_iter()
            .chain(misses)
            .chain([human_bytes(row.span_bytes as f64)]),
        );
    }
    table.write(out)?;
    methods(report, out)?;
    if let Some(thesis) = &report.thesis {
        // Its lines end themselves.
        write!(out, "\n{thesis}")?;
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    if let Some(path) = &args.plot {
        writeln!(out, "drawn into {}", path.display())?;
    }
    Ok(())
}

/// How misses were found, once for all layouts that agree.
fn methods(report: &Report, out: &mut dyn Write) -> Result<(), CliError> {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for row in &report.rows {
        for level in &row.levels {
            let line = format!("{}: {}, {}", level.name, level.tier, level.reason);
            match said.iter_mut().find(|(other, _)| *other == line) {
                Some((_, layouts)) => layouts.push(&row.layout),
                None => said.push((line, vec![&row.layout])),
            }
        }
    }
    for (line, layouts) in said {
        if layouts.len() == report.rows.len() {
            writeln!(out, "{line}")?;
        } else {
            writeln!(out, "{line} ({})", layouts.join(", "))?;
        }
    }
    Ok(())
}

/// What the formulas of the thesis say of the layouts that they know.
fn thesis_report(args: &PredictArgs, question: &Question<'_>) -> Result<thesis::Report, CliError> {
    let arity = match question.structure() {
        Some(Structure::SearchTree { .. }) => 2,
        Some(Structure::Tree { arity, .. }) => arity,
        Some(Structure::PointTree { dimensions, .. }) => 1 << dimensions,
        Some(Structure::List { .. }) => 1,
        _ => {
            return Err(CliError::Request(format!(
                "--thesis: the thesis has formulas for trees and lists, not for {}",
                args.question.structure
            )));
        }
    };
    let mut layouts: Vec<Layout> = args
        .layout
        .iter()
        .filter_map(|arrangement| match arrangement {
            Arrangement::Plain(layout) => Some(*layout),
            _ => None,
        })
        .collect();
    layouts.dedup();
    let structure = thesis::CompleteTree {
        nodes: question.nodes(),
        node_bytes: u64::from(question.built().extent().bytes),
        arity,
    };
    Ok(thesis::report(
        structure,
        question.machine(),
        &layouts,
        args.question.searches,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speedups_are_numbers_even_where_time_is_free() {
        assert!((speedup(6.0, 3.0) - 2.0).abs() < 1e-12);
        assert!((speedup(0.0, 0.0) - 1.0).abs() < 1e-12);
        assert!((speedup(5.0, 0.0) - 1.0).abs() < 1e-12);
    }
}
