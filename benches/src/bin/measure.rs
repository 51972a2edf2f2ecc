//! Runs the workloads that the command line of `report` names.
//!
//! Rows are printed as each workload ends, and with `--out` all files are written again then, so an
//! interrupted run leaves what it had measured. When a workload fails, the others still run, and
//! the exit code is 1 at the end.

use std::error::Error;
use std::fmt::Display;
use std::fs::read_to_string;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use benches::{Args, FEATURES, WORKLOADS};
use ccmodel::counters::Counters;
use clap::Parser;
use measure::dispatch::DispatchAllocator;
use measure::output::fill::fill;
use measure::output::{
    Record, Watch, json_line, table_header, table_line, write_files, write_whole,
};
use measure::suites::{measure, olden, select};
use measure::worker::work;
use measure::workload::{Effort, Workload, covers};

/// In a worker, one allocator serves everything.
#[global_allocator]
static GLOBAL: DispatchAllocator = DispatchAllocator;

/// As `clap` exits for names that do not exist.
const EXIT_BAD_INPUT: u8 = 2;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    let args = Args::parse();
    let effort = Effort {
        only: args.only.clone(),
        ..if args.quick {
            Effort::QUICK
        } else {
            Effort::FULL
        }
    };
    let outcome = if let Some(program) = &args.worker {
        work(program, effort.scale).and_then(|line| say(&line))
    } else if let Some(name) = &args.alone {
        run_alone(name, &effort)
    } else if !args.tables.is_empty() {
        let mut files = args.tables.iter();
        files.try_for_each(|file| fill_tables(file, args.check))
    } else if let (Some(out), false) = (&args.out, args.render.is_empty()) {
        render(&args.render, out)
    } else {
        match select(args.suite.as_deref(), args.only.as_deref()) {
            Ok(workloads) => run(&args, &effort, &workloads),
            Err(unknown) => {
                eprintln!("report: {unknown}");
                return ExitCode::from(EXIT_BAD_INPUT);
            }
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_alone(name: &str, effort: &Effort) -> Outcome {
    let workload = WORKLOADS.iter().find(|workload| workload.name == name);
    let workload = workload.ok_or_else(|| format!("there is no workload {name:?}"))?;
    let rows = measure(workload, effort)?;
    rows.iter().try_for_each(|row| say(&json_line(row)))
}

/// Writes into the folder `out` what a run with these rows would have written.
fn render(files: &[PathBuf], out: &Path) -> Outcome {
    let texts = files.iter().map(|file| read(file));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    write(out, &Record::read(&texts.join("\n"))?)
}

fn write(out: &Path, record: &Record) -> Outcome {
    write_files(out, record).map_err(|error| format!("{}: {error}", out.display()).into())
}

/// Fills the tables of `file`. With `check`, leaves it as it is and fails when one would change.
fn fill_tables(file: &Path, check: bool) -> Outcome {
    let failure = |error: &dyn Display| format!("{}: {error}", file.display());
    let text = read(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let read = |path: &str| read_to_string(folder.join(path)).map_err(|error| error.to_string());
    let filled = fill(&text, read).map_err(|error| failure(&error))?;
    if filled != text && check {
        let what = "its tables are not what the records say; report --tables renews them";
        return Err(failure(&what).into());
    }
    if filled != text {
        write_whole(file, &filled).map_err(|error| failure(&error))?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, String> {
    read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn run(args: &Args, effort: &Effort, workloads: &[&Workload]) -> Outcome {
    let mut watch = Watch::start(std::env::args(), workloads.len());
    let off = FEATURES.iter().filter(|(_, is_on)| !is_on);
    let off = off.map(|(name, _)| format!("left out: {name} (build with --features {name})"));
    let counters = Counters::new().err();
    let counters = counters.map(|error| format!("{error}: times come without misses"));
    watch.run.notes = off.chain(counters).collect();
    watch.run.notes.iter().for_each(|note| eprintln!("{note}"));
    let mut record = Record::default();
    let save = |watch: &Watch, record: &mut Record| match &args.out {
        Some(out) => {
            record.runs = vec![watch.now()];
            write(out, record)
        }
        None => Ok(()),
    };
    // Fails now if the folder cannot be written to, and not after half an hour.
    save(&watch, &mut record)?;
    if !args.json {
        say(&table_header())?;
    }
    let only = args.only.as_deref();
    for workload in workloads {
        let mut rows = measure(workload, effort).unwrap_or_else(|failure| {
            let failure = format!("{}: {failure}", workload.name);
            eprintln!("report: {failure}");
            watch.run.failures.push(failure);
            Vec::new()
        });
        watch.run.finished += 1;
        // Some workloads measure more than was asked for.
        rows.retain(|row| only.is_none_or(|only| only == workload.name || covers(only, &row.name)));
        rows.iter().for_each(|row| record.add(row.clone()));
        record.tables = olden::table().into_iter().collect();
        // Files first: the reader of the lines may go away with the first of them.
        save(&watch, &mut record)?;
        let line: fn(&_) -> String = if args.json { json_line } else { table_line };
        rows.iter().try_for_each(|row| say(&line(row)))?;
    }
    let failed = watch.run.failures.len();
    if failed > 0 {
        return Err(format!("{failed} of {} workloads failed", workloads.len()).into());
    }
    if record.rows.is_empty() {
        let only = only.unwrap_or_default();
        let what = "in this build, or in a run of this kind";
        return Err(format!("no comparison is called {only:?} {what}").into());
    }
    Ok(())
}

/// Prints a line at once. When the reader has gone away, the program ends without a complaint.
fn say(line: &str) -> Outcome {
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}
