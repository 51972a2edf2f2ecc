//! `model simulate`: the question of `predict`, answered access by access, and traces.
//!
//! The JSON object begins as that of `predict`, up to its `state`; that of a trace is a whole:
//!
//! ```text
//! {..,
//!  "rows":   [{"layout": .., "operations": .., "accesses": .., "misses": {"L1": .., ...},
//!              "errors": {"L1": .., ...}}, ...],
//!  "notes":  [..]}
//! {"machine": .., "frames": .., "trace": {..counts of its records..},
//!  "levels": [{"name": .., "accesses": .., "misses": ..}, ...]}
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::args::SimulateArgs;
use super::machine::{cannot_read, machine, read};
use super::output::{Table, human_count, human_number, progress, write_json, write_notes};
use super::question::{Question, frame_name, frames};
use super::{CliError, refuse};
#[cfg(feature = "parquet")]
use crate::simulator::simulate_table;
use crate::simulator::{TraceCounts, simulate_trace};
use crate::tiers::{Counted, Replay};
use crate::{Hierarchy, Machine, Simulator, Tier};

/// Accesses that one layout is simulated for at most: some five seconds.
const ACCESSES_MAX: u64 = 100_000_000;
/// Standard error of a mean, relative to it, that is good enough.
const ERROR_MAX: f64 = 0.005;
/// Levels that miss less often than this in an operation need not be known as well.
const RARE: f64 = 0.01;

pub(super) fn run(args: &SimulateArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let machine = machine(&args.question.machine)?;
    let Some(hierarchy) = &machine.hierarchy else {
        return refuse(format!(
            "machine {} says nothing of sets and ways: a simulation needs a `hierarchy` (presets \
             have one)",
            args.question.machine.display()
        ));
    };
    match &args.trace {
        Some(path) => trace(args, path, &machine, hierarchy, out),
        None => question(args, &machine, hierarchy, out),
    }
}

fn question(
    args: &SimulateArgs,
    machine: &Machine,
    hierarchy: &Hierarchy,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let question = Question::new(&args.question, machine, Tier::Auto)?;
    let frames = question.frames(args.seed);
    let (mut rows, mut notes) = (Vec::new(), machine.notes.clone());
    let layouts = &args.layouts.layout;
    let bar = progress(ACCESSES_MAX * layouts.len() as u64);
    for (i, arrangement) in (0..).zip(layouts) {
        bar.set_message(arrangement.to_string());
        let accesses = question.arrange(*arrangement)?.0;
        let replay = Replay {
            accesses: &accesses,
            hierarchy,
            frames,
            seed: args.seed,
            accesses_max: ACCESSES_MAX,
            error_max: ERROR_MAX,
            rare: RARE,
        };
        let mut told = |done| bar.set_position(i * ACCESSES_MAX + ACCESSES_MAX.min(done));
        let counted = match args.question.searches {
            Some(first) => replay.first(first, &mut told),
            None => replay.steady(args.operations, &mut told),
        };
        if args.operations.is_none() && !counted.is_exact {
            notes.push(format!(
                "{arrangement}: a sample of {} operations; no more than {} million accesses are \
                 simulated for a layout unless --operations says how many",
                human_count(counted.operations),
                ACCESSES_MAX / 1_000_000
            ));
        }
        rows.push((arrangement.to_string(), counted));
    }
    drop(bar);
    let levels = hierarchy.caches().iter().chain(hierarchy.tlbs());
    let names: Vec<&str> = levels.map(|level| level.name.as_str()).collect();
    if args.layouts.json {
        let by_name = |levels: &[(f64, f64)], number: fn(&(f64, f64)) -> f64| {
            let numbers = names.iter().copied().zip(levels.iter().map(number));
            numbers.collect::<BTreeMap<&str, f64>>()
        };
        let row = |(layout, counted): &(String, Counted)| {
            json!({
                "layout": layout,
                "operations": counted.operations,
                "accesses": counted.accesses,
                "misses": by_name(&counted.levels, |level| level.0),
                "errors": by_name(&counted.levels, |level| level.1),
            })
        };
        let mut report = question.report();
        report["rows"] = rows.iter().map(row).collect::<Vec<Value>>().into();
        report["notes"] = notes.into();
        return write_json(out, &report);
    }
    let mut table = Table::default();
    if args.layouts.csv {
        table.row("layout level misses error operations accesses".split(' '));
        for (layout, counted) in &rows {
            let (operations, accesses) = (counted.operations, counted.accesses);
            for (name, (misses, error)) in names.iter().zip(&counted.levels) {
                let first = [layout.clone(), (*name).to_owned(), misses.to_string()];
                let last = [
                    error.to_string(),
                    operations.to_string(),
                    accesses.to_string(),
                ];
                table.row(first.into_iter().chain(last));
            }
        }
        return Ok(table.write_csv(out)?);
    }
    let state = match args.question.searches {
        Some(first) => format!("of the first {} from cold", human_count(first)),
        None => "in the steady state".to_owned(),
    };
    let (what, operation) = (question.describe(), question.describe_operation());
    let frames = frame_name(frames);
    writeln!(
        out,
        "{what}, {frames} frames; misses of {operation} {state}, simulated:"
    )?;
    let mut titles = vec!["layout".to_owned()];
    titles.extend(names.iter().map(|name| format!("{name} miss")));
    titles.extend(["+-", "operations"].map(str::to_owned));
    table.row(titles);
    for (layout, counted) in rows {
        let known = counted.levels.iter().filter(|level| level.0 >= RARE);
        let shares = known.map(|(misses, error)| error / misses);
        let worst = shares.fold(0.0, f64::max);
        let mut cells = vec![layout];
        cells.extend(counted.levels.iter().map(|level| human_number(level.0)));
        cells.push(format!("{:.1} %", 100.0 * worst));
        cells.push(human_count(counted.operations));
        table.row(cells);
    }
    table.write(out)?;
    write_notes(out, &notes)
}

/// Whether it begins as Parquet files do.
fn begins_as_table(reader: &mut impl BufRead) -> bool {
    let begin = reader.fill_buf();
    begin.is_ok_and(|begin| begin.starts_with(b"PAR1"))
}

#[cfg(feature = "parquet")]
fn table(file: File, simulator: &mut Simulator) -> Result<TraceCounts, CliError> {
    Ok(simulate_table(file, simulator)?)
}

#[cfg(not(feature = "parquet"))]
fn table(_: File, _: &mut Simulator) -> Result<TraceCounts, CliError> {
    refuse(
        "it is a table, and this `model` cannot read those: build it with \
         `cargo install --path model --features parquet`",
    )
}

fn trace(
    args: &SimulateArgs,
    path: &Path,
    machine: &Machine,
    hierarchy: &Hierarchy,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let frames = frames(&args.question, machine, args.seed);
    let mut simulator = Simulator::new(hierarchy, frames);
    let frames = frame_name(frames);
    let counts = if path == Path::new("-") {
        let mut text = io::stdin().lock();
        if begins_as_table(&mut text) {
            let why = "a table is read from its end: write it to a file, and name that";
            return Err(cannot_read("trace", path, why));
        }
        let counts = simulate_trace(text, &mut simulator);
        counts.map_err(|error| cannot_read("trace", path, error))?
    } else {
        let is_called_table = path.extension().is_some_and(|ending| ending == "parquet");
        read("trace", path, |mut file| {
            if is_called_table || begins_as_table(&mut file) {
                return table(file.into_inner(), &mut simulator);
            }
            Ok(simulate_trace(file, &mut simulator)?)
        })?
    };
    if counts.data() == 0 {
        return Err(cannot_read(
            "trace",
            path,
            "there is no access to data in it",
        ));
    }
    let simulated = simulator.counts();
    let levels = [simulated.caches, simulated.tlbs].concat();
    if args.layouts.json {
        let report = json!({
            "machine": machine.name,
            "frames": frames,
            "trace": counts,
            "levels": levels,
        });
        return write_json(out, &report);
    }
    let mut table = Table::default();
    if args.layouts.csv {
        table.row(["level", "accesses", "misses"]);
        for level in levels {
            let (accesses, misses) = (level.accesses.to_string(), level.misses.to_string());
            table.row([level.name, accesses, misses]);
        }
        return Ok(table.write_csv(out)?);
    }
    let (instructions, data) = (human_count(counts.instructions), human_count(counts.data()));
    let name = &machine.name;
    writeln!(
        out,
        "{instructions} instructions, {data} accesses to data on {name}, {frames} frames; data \
         only:"
    )?;
    table.row(["level", "accesses", "misses", "of accesses"]);
    for level in levels {
        let ratio = format!("{:.3} %", 100.0 * level.miss_ratio());
        let (accesses, misses) = (human_count(level.accesses), human_count(level.misses));
        table.row([level.name, accesses, misses, ratio]);
    }
    Ok(table.write(out)?)
}
