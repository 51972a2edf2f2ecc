//! Runs the list of workloads and reports ours against the rivals.
//!
//! ```text
//! cargo run --release -p benches --bin report -- [--quick] [--suite NAME] [--only NAME] [--json] [--out DIR]
//! ```

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use benches::output::{json_line, table_header, table_line, write_files};
use benches::rivals::left_out;
use benches::workload::{Comparison, Effort, Workload, select};
use clap::Parser;
use examples::switch::SwitchAllocator;

/// Trees of `Box`es must be able to stand in the system's malloc and in `CcMalloc` side by side.
#[global_allocator]
static GLOBAL: SwitchAllocator = SwitchAllocator;

/// Exit code for names and options that do not exist, as of `clap`.
const EXIT_BAD_INPUT: u8 = 2;

/// Measures ours against the rivals; ratios above 1 mean that ours is better
#[derive(Debug, Parser)]
#[command(name = "report")]
struct Args {
    /// Fewer rounds: each suite ends within a minute
    #[arg(long)]
    quick: bool,

    /// Only this suite: ccmalloc, ccmorph, ctree or model
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,

    /// Only this workload, or this one comparison
    #[arg(long, value_name = "NAME")]
    only: Option<String>,

    /// One JSON object a line instead of the table
    #[arg(long)]
    json: bool,

    /// Also write report.md, report.jsonl and SVG plots into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let workloads = match select(args.suite.as_deref(), args.only.as_deref()) {
        Ok(workloads) => workloads,
        Err(unknown) => {
            eprintln!("report: {unknown}");
            return ExitCode::from(EXIT_BAD_INPUT);
        }
    };
    match run(&args, &workloads) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, workloads: &[&'static Workload]) -> Result<(), Box<dyn std::error::Error>> {
    let effort = if args.quick {
        Effort::QUICK
    } else {
        Effort::FULL
    };
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
        return Err(format!("no comparison is called {only:?} in this build").into());
    }
    Ok(())
}

/// Whether `--only` asks for all of the workload or for this comparison of it.
fn is_wanted(args: &Args, workload: &Workload, comparison: &Comparison) -> bool {
    args.only
        .as_deref()
        .is_none_or(|only| only == workload.name || only == comparison.name)
}

/// Prints a line at once; that the reader went away is an error like others, but needs no complaint.
fn say(line: &str) -> Result<(), Box<dyn std::error::Error>> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        other => Ok(other?),
    }
}
