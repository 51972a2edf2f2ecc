//! `validate`: rows that compare the model with the simulator, cachegrind, the clock and the
//! thesis.

mod cachegrind;
mod clock;
mod compare;
mod speed;
mod steady;
mod structures;
mod thesis;

use std::error::Error;
use std::io::Write;

use clap::builder::PossibleValuesParser;
use serde_json::json;

use crate::progress;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ccmodel-lab validate --quick
  ccmodel-lab validate --json
  ccmodel-lab validate --only steady_error_max

The exit code is 0 when every row is as allowed, and 1 when one is not. A check that cannot run
here (without valgrind, say) counts as allowed; its note says why.")]
pub(crate) struct Args {
    /// A few sizes and machines of each kind: minutes instead of half an hour
    #[arg(long)]
    quick: bool,
    /// Only the check of this row; may be given several times
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(names()))]
    only: Vec<String>,
    /// Print one JSON object a line, as soon as it is known
    #[arg(long)]
    json: bool,
}

/// One checked claim.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    name: &'static str,
    /// What was found; errors are relative, 0.02 is 2 %. `None` when the check could not run here.
    value: Option<f64>,
    allowed: f64,
    /// Whether `allowed` is the least allowed value, not the largest.
    is_floor: bool,
    /// The worst case, what was left out, why a check could not run.
    note: String,
}

impl Row {
    fn at_most(name: &'static str, allowed: f64, value: Option<f64>, note: String) -> Row {
        Row {
            name,
            value,
            allowed,
            is_floor: false,
            note,
        }
    }

    fn at_least(name: &'static str, allowed: f64, value: Option<f64>, note: String) -> Row {
        Row {
            is_floor: true,
            ..Row::at_most(name, allowed, value, note)
        }
    }

    /// Whether the value is as allowed, or there is none.
    fn ok(&self) -> bool {
        match self.value {
            None => true,
            Some(value) if self.is_floor => value >= self.allowed,
            Some(value) => value <= self.allowed,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// A few sizes and machines of each kind.
    Quick,
    Full,
}

/// The names of some rows, and what computes them.
type Check = (&'static [&'static str], fn(Effort) -> Vec<Row>);

/// All checks, the fastest first.
const CHECKS: &[Check] = &[
    (&["simulator_speed"], |_| vec![speed::simulator_row()]),
    (&["sim_vs_cachegrind"], cachegrind::rows),
    (&["thesis_pins"], |_| vec![thesis::formula_row()]),
    (&thesis::FIGURE_ROWS, thesis::figure_rows),
    (&steady::ROWS, steady::rows),
    (&["transient_error_max"], steady::transient_rows),
    (&["predict_speed"], |_| vec![speed::predictor_row()]),
    (&["zipf_error_max"], |effort| {
        structures::rows("zipf_error_max", structures::zipf, effort)
    }),
    (&["random_shape_error_max"], |effort| {
        structures::rows("random_shape_error_max", structures::random_shapes, effort)
    }),
    (&["btree_error_max"], |effort| {
        structures::rows("btree_error_max", structures::b_trees, effort)
    }),
    (&["list_error_max"], |effort| {
        structures::rows("list_error_max", structures::lists, effort)
    }),
    (&["hash_error_max"], |effort| {
        structures::rows("hash_error_max", structures::hash_tables, effort)
    }),
    (&["octree_error_max"], |effort| {
        structures::rows("octree_error_max", structures::octrees, effort)
    }),
    (&clock::ROWS, clock::rows),
];

fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().flat_map(|(rows, _)| *rows).copied()
}

/// Runs the checks that are asked for; whether every row is as allowed.
///
/// With `--json`, each row is an object on a line:
///
/// ```text
/// {"name": .., "value": .. | null, "allowed": .., "ok": .., "note": ".."}
/// ```
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<bool, Box<dyn Error>> {
    let asked = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let effort = match args.quick {
        true => Effort::Quick,
        false => Effort::Full,
    };
    if !args.json {
        writeln!(out, "{:<34} {:>10} {:>12}  ok", "row", "value", "allowed")?;
    }
    let mut all_ok = true;
    for (names, check) in CHECKS {
        if !names.iter().any(|name| asked(name)) {
            continue;
        }
        let rows = check(effort);
        progress("");
        for row in rows.iter().filter(|row| asked(row.name)) {
            all_ok &= row.ok();
            write_row(row, args.json, out)?;
        }
        out.flush()?;
    }
    Ok(all_ok)
}

fn write_row(row: &Row, json: bool, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    if json {
        let object = json!({
            "name": row.name,
            "value": row.value.filter(|value| value.is_finite()),
            "allowed": row.allowed,
            "ok": row.ok(),
            "note": row.note,
        });
        return Ok(writeln!(out, "{object}")?);
    }
    let value = row
        .value
        .map_or("not run".to_owned(), |v| format!("{v:.4}"));
    let sign = if row.is_floor { ">=" } else { "<=" };
    writeln!(
        out,
        "{:<34} {value:>10} {:>12}  {}",
        row.name,
        format!("{sign} {}", row.allowed),
        if row.ok() { "yes" } else { "NO" }
    )?;
    for sentence in row.note.split_inclusive(". ") {
        writeln!(out, "    {}", sentence.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_with_the_bound() {
        for (value, at_most, at_least) in [
            (Some(0.5), true, true),
            (Some(0.6), false, true),
            (Some(0.4), true, false),
            (Some(f64::NAN), false, false),
            (None, true, true),
        ] {
            let ok = |row: fn(_, _, _, _) -> Row| row("x", 0.5, value, String::new()).ok();
            assert_eq!((ok(Row::at_most), ok(Row::at_least)), (at_most, at_least));
        }
    }

    #[test]
    fn a_row_is_a_line_or_an_object() {
        let written = |json| {
            let mut out = Vec::new();
            let row = Row::at_most("x", 0.5, Some(0.6), "One. Two.".to_owned());
            write_row(&row, json, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let lines: Vec<String> = written(false).lines().map(str::to_owned).collect();
        assert!(lines[0].ends_with("NO") && lines[1..] == ["    One.", "    Two."]);
        let object: serde_json::Value = serde_json::from_str(&written(true)).unwrap();
        assert_eq!(
            (&object["value"], &object["ok"]),
            (&0.6.into(), &false.into())
        );
    }
}
