//! Runs the list of workloads and reports ours against the rivals.
//!
//! ```text
//! cargo run --release -p benches --bin report -- [--quick] [--suite NAME] [--only NAME] [--json] [--out DIR]
//! ```

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use benches::dispatch::DispatchAllocator;
use benches::output::{json_line, table_header, table_line, write_files};
use benches::rivals::left_out;
use benches::worker::work;
use benches::workload::{Comparison, Effort, WORKLOADS, Workload, covers, select};
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

    /// Only this suite: ccmalloc, ccmorph, ctree, model or apps
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,

    /// Only this workload, this one comparison, or those whose names begin so
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// One JSON object a line instead of the table
    #[arg(long)]
    json: bool,

    /// Also write report.md, report.jsonl and SVG plots into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

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

fn run(args: &Args, workloads: &[&'static Workload]) -> Result<(), Box<dyn std::error::Error>> {
    let effort = effort(args);
    let notes: Vec<String> = left_out()
        .into_iter()
        .map(|rival| format!("left out: {rival} (build with --features {rival})"))
        .collect();
    for note in &notes {
        eprintln!("{note}");
    }
    if !args.json {
        say(&table_header())?;
    }
    let mut comparisons = Vec::new();
    for workload in workloads {
        for comparison in (workload.run)(&effort)?
            .into_iter()
            .filter(|comparison| is_wanted(args, workload, comparison))
        {
            say(&if args.json {
                json_line(&comparison)
            } else {
                table_line(&comparison)
            })?;
            comparisons.push(comparison);
        }
    }
    if let Some(out) = &args.out {
        write_files(out, &comparisons, &notes)
            .map_err(|error| format!("{}: {error}", out.display()))?;
    }
    if comparisons.is_empty() {
        let only = args.only.as_deref().unwrap_or_default();
        return Err(format!(
            "no comparison is called {only:?} in this build, or in a run of this kind"
        )
        .into());
    }
    Ok(())
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
