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
//!   "rows":      [{"layout": .., "ns": .., "ns_low": .., "ns_high": .., "cpu_ns": ..,
//!                  "nodes_visited": .., "misses": {"L1": .., ...},
//!                  "levels": [{"name": .., "misses": .., "ns": .., "tier": .., "reason": ..}],
//!                  "span_bytes": .., "speedup": ..}, ...],
//!   "sweep":     absent, or {"over": "nodes" | "colour_share",
//!                 "rows": [{"at": .., "layout": .., "ns": .., "misses": {..}, "speedup": ..}, ]},
//!   "notes":     [..]
//! }
//! ```

use std::io::Write;

use serde_json::{Value, json};

use super::answer::{answer, answers, csv_table, methods, notes, table};
use super::args::PredictArgs;
use super::machine::machine;
use super::output::{NewFile, human_count, write_json, write_notes};
use super::question::Question;
use super::{CliError, sweep};

pub(super) fn run(args: &PredictArgs, out: &mut dyn Write) -> Result<(), CliError> {
    // Asked first: an answer of seconds that cannot be drawn is a nuisance.
    let plot = args.plot.as_deref().map(NewFile::create).transpose()?;
    let machine = machine(&args.question.machine)?;
    let question = Question::new(&args.question, &machine, args.cost.tier)?;
    let answers = answers(&question, &args.layouts.layout, &args.cost)?;
    let mut known = answers.iter();
    let known = known.find(|known| known.arrangement == args.baseline);
    let baseline_ns = match known {
        Some(answer) => answer.prediction.ns,
        None => answer(&question, args.baseline, &args.cost)?.prediction.ns,
    };
    let notes = notes(&machine, &answers);
    let sweep = match plot {
        Some(file) => {
            let sweep = sweep::run(args, &question)?;
            file.write(&sweep.to_svg()?)?;
            Some(sweep)
        }
        None => None,
    };
    let (overlap, overlap_note) = match args.cost.independent {
        true => ("independent", ", operations independent"),
        false => ("dependent", ""),
    };
    if args.layouts.json {
        let mut report = question.report();
        let rows = answers.iter().map(|answer| answer.report(baseline_ns));
        report["overlap"] = overlap.into();
        report["baseline"] = args.baseline.to_string().into();
        report["rows"] = rows.collect::<Vec<Value>>().into();
        report["notes"] = notes.into();
        if let Some(sweep) = sweep {
            report["sweep"] = json!(sweep);
        }
        return write_json(out, &report);
    }
    if args.layouts.csv {
        let table = match sweep {
            Some(sweep) => sweep.to_table(),
            None => csv_table(&answers, baseline_ns),
        };
        return Ok(table.write_csv(out)?);
    }
    let state = args.question.searches.map_or(String::new(), |first| {
        format!(
            ", mean of the first {} from cold caches",
            human_count(first)
        )
    });
    let (what, operation) = (question.describe(), question.describe_operation());
    writeln!(out, "{what}; {operation}{state}{overlap_note}:")?;
    table(&answers, baseline_ns).write(out)?;
    for line in methods(&answers) {
        writeln!(out, "{line}")?;
    }
    write_notes(out, &notes)?;
    if let Some(path) = &args.plot {
        writeln!(out, "drawn into {}", path.display())?;
    }
    Ok(())
}
