//! `model validate`.
//!
//! With `--json` one object a line, as soon as it is known:
//!
//! ```text
//! {"name": .., "value": .. | null, "allowed": .., "ok": .., "note": ".."}
//! ```
//!
//! `value` is null where a check could not run here, which `note` explains and which counts as ok.

use std::io::{IsTerminal, Write, stderr};

use serde::Serialize;

use super::CliError;
use super::args::ValidateArgs;
use super::output::{human_number, write_json_line};
use crate::simulator_speed;
use crate::validate::{Bound, Effort, Row, clock, sim_vs_cachegrind, steady, structures, thesis};

/// Told what is being done, a line at a time.
type Progress<'a> = &'a mut dyn FnMut(&str);

/// What yields rows.
struct Check {
    /// Their names.
    rows: &'static [&'static str],
    run: fn(Effort, Progress<'_>) -> Vec<Row>,
}

/// All of them, those that answer soon first.
const CHECKS: &[Check] = &[
    Check {
        rows: &["simulator_speed"],
        run: |_, _| vec![speed_row()],
    },
    Check {
        rows: &["sim_vs_cachegrind"],
        run: |effort, progress| {
            progress("cachegrind and lackey");
            vec![cachegrind_row(effort)]
        },
    },
    Check {
        rows: &[
            "thesis_pins",
            "thesis_figure_3_4",
            "thesis_figure_3_5",
            "thesis_figure_3_6",
        ],
        run: |effort, progress| thesis::thesis_rows(effort, progress),
    },
    Check {
        rows: &[
            "steady_error_max",
            "steady_error_mean",
            "steady_error_direct_mapped_max",
            "closed_form_error_max",
        ],
        run: |effort, progress| steady::steady_rows(effort, progress),
    },
    Check {
        rows: &["transient_error_max"],
        run: |effort, progress| vec![steady::transient_row(effort, progress)],
    },
    Check {
        rows: &["predict_speed"],
        run: |_, progress| vec![steady::predict_speed_row(progress)],
    },
    Check {
        rows: &["zipf_error_max"],
        run: |effort, progress| {
            structures::structure_rows(effort, |row| row == "zipf_error_max", progress)
        },
    },
    Check {
        rows: &["random_shape_error_max"],
        run: |effort, progress| {
            structures::structure_rows(effort, |row| row == "random_shape_error_max", progress)
        },
    },
    Check {
        rows: &["btree_error_max"],
        run: |effort, progress| {
            structures::structure_rows(effort, |row| row == "btree_error_max", progress)
        },
    },
    Check {
        rows: &["list_error_max"],
        run: |effort, progress| {
            structures::structure_rows(effort, |row| row == "list_error_max", progress)
        },
    },
    Check {
        rows: &["hash_error_max"],
        run: |effort, progress| {
            structures::structure_rows(effort, |row| row == "hash_error_max", progress)
        },
    },
    Check {
        rows: &["octree_error_max"],
        run: |effort, progress| {
            structures::structure_rows(effort, |row| row == "octree_error_max", progress)
        },
    },
    Check {
        rows: &["wall_clock_error_mean", "layout_order_agreement"],
        run: |effort, progress| {
            progress("calibrating, then the clock");
            clock::rows(effort, None)
        },
    },
];

fn speed_row() -> Row {
    Row {
        name: "simulator_speed",
        value: Some(simulator_speed()),
        allowed: 50.0,
        bound: Bound::AtLeast,
        note: "Millions of simulated accesses a second. Each reads one line that a cache holds."
            .to_owned(),
    }
}

/// Needs this program a second time, under valgrind.
fn cachegrind_row(effort: Effort) -> Row {
    match std::env::current_exe() {
        Ok(program) => sim_vs_cachegrind(&program, effort),
        Err(error) => Row {
            name: "sim_vs_cachegrind",
            value: None,
            allowed: 0.001,
            bound: Bound::AtMost,
            note: format!("Not run: the path of this program is not known: {error}."),
        },
    }
}

#[derive(Serialize)]
struct RowReport<'a> {
    name: &'a str,
    value: Option<f64>,
    allowed: f64,
    ok: bool,
    note: &'a str,
}

/// Whether every row is as allowed.
pub(super) fn run(args: &ValidateArgs, out: &mut dyn Write) -> Result<bool, CliError> {
    check_names(&args.only)?;
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
    // Lines that replace each other are for terminals only.
    let show = stderr().is_terminal();
    for check in CHECKS {
        if !check.rows.iter().any(|name| asked(name)) {
            continue;
        }
        let mut progress = |what: &str| {
            if show {
                eprint!("\r\x1b[K{what}");
            }
        };
        let rows = (check.run)(effort, &mut progress);
        if show {
            eprint!("\r\x1b[K");
        }
        for row in rows.iter().filter(|row| asked(row.name)) {
            all_ok &= row.ok();
            write_row(row, args.json, out)?;
        }
        out.flush()?;
    }
    Ok(all_ok)
}

/// Refuses names of rows that no check yields.
fn check_names(names: &[String]) -> Result<(), CliError> {
    let known = || CHECKS.iter().flat_map(|check| check.rows.iter().copied());
    for name in names {
        if !known().any(|row| row == name) {
            let names: Vec<&str> = known().collect();
            return Err(CliError::Request(format!(
                "no row is called `{name}`{} (known: {})",
                crate::layout::did_you_mean(name, known()),
                names.join(", ")
            )));
        }
    }
    Ok(())
}

fn write_row(row: &Row, json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let ok = row.ok();
    if json {
        return write_json_line(
            out,
            &RowReport {
                name: row.name,
                value: row.value.filter(|value| value.is_finite()),
                allowed: row.allowed,
                ok,
                note: &row.note,
            },
        );
    }
    let value = row.value.map_or_else(|| "not run".to_owned(), human_number);
    let sign = match row.bound {
        Bound::AtMost => "<=",
        Bound::AtLeast => ">=",
    };
    writeln!(
        out,
        "{:<34} {value:>10} {:>12}  {}",
        row.name,
        format!("{sign} {}", human_number(row.allowed)),
        if ok { "yes" } else { "NO" }
    )?;
    for sentence in row.note.split_inclusive(". ").flat_map(str::lines) {
        writeln!(out, "    {}", sentence.trim_end())?;
    }
    Ok(())
}
