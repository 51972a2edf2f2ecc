//! Rows: what was found, what is allowed, and a note on how it was found.

mod cachegrind;
mod clock;
mod speed;
mod steady;
mod structures;
mod thesis;

use std::error::Error;
use std::io::Write;

use clap::builder::PossibleValuesParser;
use serde::Serialize;

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

/// Which side of the allowed value is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// Errors, seconds.
    AtMost,
    /// Rates, shares.
    AtLeast,
}

/// One checked claim.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    /// Stable name, as `steady_error_max`.
    name: &'static str,
    /// What was found; errors are relative, 0.02 is 2 %. `None` when the check could not run here.
    value: Option<f64>,
    allowed: f64,
    bound: Bound,
    /// The worst case, what was left out, why a check could not run.
    note: String,
}

impl Row {
    /// Whether the value is as allowed, or there is none.
    fn ok(&self) -> bool {
        match (self.value, self.bound) {
            (None, _) => true,
            (Some(value), Bound::AtMost) => value <= self.allowed,
            (Some(value), Bound::AtLeast) => value >= self.allowed,
        }
    }
}

/// How much is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effort {
    /// A few sizes and geometries of each kind.
    Quick,
    /// Everything that a row's name promises.
    Full,
}

/// What yields rows.
struct Check {
    rows: &'static [&'static str],
    run: fn(Effort) -> Vec<Row>,
}

/// All checks, the fastest first.
const CHECKS: &[Check] = &[
    Check {
        rows: &["simulator_speed"],
        run: |_| vec![speed::simulator_speed_row()],
    },
    Check {
        rows: &["sim_vs_cachegrind"],
        run: |effort| vec![cachegrind::row(effort)],
    },
    Check {
        rows: &["thesis_pins"],
        run: |_| vec![thesis::formula_row()],
    },
    Check {
        rows: &[
            "thesis_figure_3_4",
            "thesis_figure_3_5",
            "thesis_figure_3_6",
        ],
        run: thesis::figure_rows,
    },
    Check {
        rows: &[
            "steady_error_max",
            "steady_error_mean",
            "steady_error_direct_mapped_max",
            "closed_form_error_max",
        ],
        run: steady::steady_rows,
    },
    Check {
        rows: &["transient_error_max"],
        run: |effort| vec![steady::transient_row(effort)],
    },
    Check {
        rows: &["predict_speed"],
        run: |_| vec![steady::predict_speed_row()],
    },
    Check {
        rows: &["zipf_error_max"],
        run: |effort| structures::rows("zipf_error_max", structures::zipf(effort), effort),
    },
    Check {
        rows: &["random_shape_error_max"],
        run: |effort| {
            let cases = structures::random_shapes(effort);
            structures::rows("random_shape_error_max", cases, effort)
        },
    },
    Check {
        rows: &["btree_error_max"],
        run: |effort| structures::rows("btree_error_max", structures::b_trees(effort), effort),
    },
    Check {
        rows: &["list_error_max"],
        run: |effort| structures::rows("list_error_max", structures::lists(effort), effort),
    },
    Check {
        rows: &["hash_error_max"],
        run: |effort| structures::rows("hash_error_max", structures::hash_tables(effort), effort),
    },
    Check {
        rows: &["octree_error_max"],
        run: |effort| structures::rows("octree_error_max", structures::octrees(effort), effort),
    },
    Check {
        rows: &["wall_clock_error_mean", "layout_order_agreement"],
        run: clock::rows,
    },
];

/// Names of all rows.
fn names() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().flat_map(|check| check.rows).copied()
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
    let effort = if args.quick {
        Effort::Quick
    } else {
        Effort::Full
    };
    if !args.json {
        writeln!(out, "{:<34} {:>10} {:>12}  ok", "row", "value", "allowed")?;
    }
    let mut all_ok = true;
    for check in CHECKS {
        if !check.rows.iter().any(|name| asked(name)) {
            continue;
        }
        let rows = (check.run)(effort);
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
    #[derive(Serialize)]
    struct Object<'a> {
        name: &'a str,
        value: Option<f64>,
        allowed: f64,
        ok: bool,
        note: &'a str,
    }
    if json {
        let object = Object {
            name: row.name,
            value: row.value.filter(|value| value.is_finite()),
            allowed: row.allowed,
            ok: row.ok(),
            note: &row.note,
        };
        writeln!(out, "{}", serde_json::to_string(&object)?)?;
        return Ok(());
    }
    let value = row
        .value
        .map_or("not run".to_owned(), |v| format!("{v:.4}"));
    let sign = match row.bound {
        Bound::AtMost => "<=",
        Bound::AtLeast => ">=",
    };
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

    fn row(value: Option<f64>, bound: Bound) -> Row {
        Row {
            name: "x",
            value,
            allowed: 0.5,
            bound,
            note: "One. Two.".to_owned(),
        }
    }

    #[test]
    fn values_are_compared_with_the_bound() {
        assert!(row(Some(0.5), Bound::AtMost).ok());
        assert!(!row(Some(0.6), Bound::AtMost).ok());
        assert!(row(Some(0.6), Bound::AtLeast).ok());
        assert!(!row(Some(f64::NAN), Bound::AtLeast).ok());
        assert!(row(None, Bound::AtMost).ok());
    }

    #[test]
    fn a_row_is_a_line_or_an_object() {
        let written = |json| {
            let mut out = Vec::new();
            write_row(&row(Some(0.6), Bound::AtMost), json, &mut out).unwrap();
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
