//! Runs the list of workloads and reports ours against the rivals.
//!
//! ```text
//! cargo run --release -p benches --bin report -- [--quick] [--suite NAME] [--only NAME] [--json] [--out DIR]
//! report --render FILE.. --out DIR        files and pictures of earlier runs, without measuring
//! report --tables FILE.. [--check]        the tables of Markdown files, from the records that they name
//! ```
//!
//! Rows are printed as each workload ends, and with `--out` all files are written anew then, each of them at once. So an interrupted run leaves what it had measured by then and needs no handler of signals: the
//! signal ends it and its workers, and the exit code is the signal's. A workload that fails is reported and the others are run; the exit code is then 1, at the end.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use benches::dispatch::DispatchAllocator;
use benches::olden::table::OldenTable;
use benches::output::fill::fill;
use benches::output::{
    Record, Row, Table, Watch, json_line, table_header, table_line, write_files, write_whole,
};
use benches::rivals::left_out;
use benches::suites::olden;
use benches::worker::work;
use benches::workload::{Comparison, Effort, WORKLOADS, Workload, covers, select};
use ccmodel::counters::Counters;
use clap::Parser;

/// Here, trees of `Box`es must be able to stand in the system's malloc and in `CcMalloc` side by side; in a worker, one allocator serves everything.
#[global_allocator]
static GLOBAL: DispatchAllocator = DispatchAllocator;

/// Exit code for names and options that do not exist, as of `clap`.
const EXIT_BAD_INPUT: u8 = 2;

/// Measures ours against the rivals; ratios above 1 mean that ours is better
#[derive(Debug, Parser)]
#[command(name = "report")]
struct Args {
    /// Fewer rounds, and the main figures only: each suite ends within a minute
    #[arg(long)]
    quick: bool,

    /// Only this suite; a wrong name gives the list
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,

    /// Only this workload, this one comparison, or those whose names begin so
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// One JSON object a line instead of the table
    #[arg(long)]
    json: bool,

    /// Also write report.jsonl, report.md, report.html and SVG pictures into this folder, after each workload
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Measure nothing: write the files of --out from these report.jsonl
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "out", conflicts_with_all = ["quick", "suite", "only", "json"])]
    render: Vec<PathBuf>,

    /// Measure nothing: make the tables between the marks of these Markdown files anew
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with_all = ["quick", "suite", "only", "json", "out", "render"])]
    tables: Vec<PathBuf>,

    /// With --tables: change no file, and fail when one would change
    #[arg(long, requires = "tables")]
    check: bool,

    /// Run this program once under the allocator that the environment names, and print one JSON object
    #[arg(long, value_name = "PROGRAM", hide = true)]
    worker: Option<String>,

    /// Run this one workload in place, and print one JSON object for each of its comparisons
    #[arg(long, value_name = "NAME", hide = true)]
    alone: Option<String>,
}

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
        say(&json_line(&comparison))?;
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
    let without = left_out()
        .into_iter()
        .map(|rival| format!("left out: {rival} (build with --features {rival})"));
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
                        json_line(comparison)
                    } else {
                        table_line(comparison)
                    });
                    record.add(Row::from(comparison));
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
    let olden = olden::table().map(|table| {
        let title = "The Olden programs";
        Table::new(
            olden::SUITE,
            title,
            OldenTable::EXPLANATION,
            OldenTable::header(),
            table.rows(),
        )
    });
    olden.into_iter().collect()
}

/// Whether `--only` asks for all of the workload or for this comparison of it.
fn is_wanted(args: &Args, workload: &Workload, comparison: &Comparison) -> bool {
    args.only
        .as_deref()
        .is_none_or(|only| only == workload.name || covers(only, &comparison.name))
}

/// Prints a line at once; that the reader went away is an error like others, but needs no complaint.
fn say(line: &str) -> Result<(), Box<dyn std::error::Error>> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}
