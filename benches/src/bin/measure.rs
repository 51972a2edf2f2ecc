//! Runs the workloads that the command line of `report` names.
//!
//! Rows are printed as each workload ends, and with `--out` all files are written again then. So an
//! interrupted run leaves what it had measured, and needs no handler of signals. A workload that
//! fails is reported, and the others run; the exit code is then 1, at the end.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use benches::Args;
use ccmodel::counters::Counters;
use clap::Parser;
use measure::dispatch::DispatchAllocator;
use measure::output::fill::fill;
use measure::output::{Record, Table, Watch, table_header, table_line, write_files, write_whole};
use measure::rivals::left_out;
use measure::suites::{WORKLOADS, olden, select};
use measure::worker::work;
use measure::workload::{Comparison, Effort, Workload, covers};

/// Here, trees of `Box`es must be able to stand in the system's malloc and in `CcMalloc` side by
/// side; in a worker, one allocator serves everything.
#[global_allocator]
static GLOBAL: DispatchAllocator = DispatchAllocator;

/// Exit code for names that do not exist, as of `clap`.
const EXIT_BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(program) = &args.worker {
        return finish(run_worker(&args, program));
    }
    if let Some(workload) = &args.alone {
        return finish(run_alone(&args, workload));
    }
    if !args.tables.is_empty() {
        return finish(fill_tables(&args.tables, args.check));
    }
    if let (Some(out), false) = (&args.out, args.render.is_empty()) {
        return finish(render(&args.render, out));
    }
    let workloads = match select(args.suite.as_deref(), args.only.as_deref()) {
        Ok(workloads) => workloads,
        Err(unknown) => {
            eprintln!("report: {unknown}");
            return ExitCode::from(EXIT_BAD_INPUT);
        }
    };
    finish(run(&args, &workloads))
}

/// The exit code, after a complaint when there is something to complain about.
fn finish(result: Result<(), Box<dyn std::error::Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the command line asks for.
fn effort(args: &Args) -> Effort {
    let effort = if args.quick {
        Effort::QUICK
    } else {
        Effort::FULL
    };
    Effort {
        only: args.only.clone(),
        ..effort
    }
}

fn run_worker(args: &Args, program: &str) -> Result<(), Box<dyn std::error::Error>> {
    say(&work(program, effort(args).scale)?)
}

fn run_alone(args: &Args, name: &str) -> Result<(), Box<dyn std::error::Error>> {
    let workload = WORKLOADS
        .iter()
        .find(|workload| workload.name == name)
        .ok_or_else(|| format!("no workload is called {name:?}"))?;
    for comparison in (workload.run)(&effort(args))? {
        say(&comparison.json_line())?;
    }
    Ok(())
}

/// Writes into the folder `out` what a run with these rows would have written.
fn render(files: &[PathBuf], out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut all = String::new();
    for file in files {
        all.push_str(&read(file)?);
        all.push('\n');
    }
    let record = Record::read(&all)?;
    write_files(out, &record).map_err(|error| format!("{}: {error}", out.display()).into())
}

/// Fills the tables of `files`; with `check`, fails when one of them is not what its record says.
fn fill_tables(files: &[PathBuf], check: bool) -> Result<(), Box<dyn std::error::Error>> {
    for file in files {
        let text = read(file)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        let filled = fill(&text, |path| {
            std::fs::read_to_string(folder.join(path)).map_err(|error| error.to_string())
        });
        let filled = filled.map_err(|error| format!("{}: {error}", file.display()))?;
        if filled == text {
            continue;
        }
        if check {
            return Err(format!(
                "{}: its tables are not what the records say; report --tables makes them anew",
                file.display()
            )
            .into());
        }
        write_whole(file, &filled).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn run(args: &Args, workloads: &[&'static Workload]) -> Result<(), Box<dyn std::error::Error>> {
    let effort = effort(args);
    let mut watch = Watch::start(std::env::args(), workloads.len());
    let without =
        left_out().map(|rival| format!("left out: {rival} (build with --features {rival})"));
    let counters = Counters::new()
        .err()
        .map(|error| format!("{error}: times come without misses"));
    for note in without.chain(counters) {
        eprintln!("{note}");
        watch.note(note);
    }
    let mut record = Record::default();
    let save = |watch: &Watch, record: &mut Record| match &args.out {
        Some(out) => {
            record.runs = vec![watch.run()];
            write_files(out, record).map_err(|error| format!("{}: {error}", out.display()))
        }
        None => Ok(()),
    };
    // A folder that cannot be written to is noticed now, and not after half an hour.
    save(&watch, &mut record)?;
    if !args.json {
        say(&table_header())?;
    }
    for workload in workloads {
        let mut lines = Vec::new();
        match (workload.run)(&effort) {
            Ok(comparisons) => {
                for comparison in comparisons
                    .iter()
                    .filter(|comparison| is_wanted(args, workload, comparison))
                {
                    lines.push(if args.json {
                        comparison.json_line()
                    } else {
                        table_line(comparison)
                    });
                    record.add(comparison.clone());
                }
                watch.finish_workload();
            }
            Err(failure) => {
                let failure = format!("{}: {failure}", workload.name);
                eprintln!("report: {failure}");
                watch.fail_workload(failure);
            }
        }
        record.tables = tables();
        // Files first: whoever reads the lines may go away with the first of them.
        save(&watch, &mut record)?;
        for line in lines {
            say(&line)?;
        }
    }
    match watch.failures() {
        [] if record.rows.is_empty() => {
            let only = args.only.as_deref().unwrap_or_default();
            Err(
                format!("no comparison is called {only:?} in this build, or in a run of this kind")
                    .into(),
            )
        }
        [] => Ok(()),
        failures => {
            Err(format!("{} of {} workloads failed", failures.len(), workloads.len()).into())
        }
    }
}

/// The tables of what has been measured so far.
fn tables() -> Vec<Table> {
    olden::table().into_iter().collect()
}

/// Whether `--only` asks for all of the workload or for this comparison of it.
fn is_wanted(args: &Args, workload: &Workload, comparison: &Comparison) -> bool {
    args.only
        .as_deref()
        .is_none_or(|only| only == workload.name || covers(only, &comparison.name))
}

/// Prints a line at once; that the reader went away is an error like others, but needs no
/// complaint.
fn say(line: &str) -> Result<(), Box<dyn std::error::Error>> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}
