//! Makes the thesis's figures 2-6 and 2-7 again: tables, SVG pictures and JSON lines.
//!
//! ```text
//! cargo run --release -p measure --bin figures -- [2-6] [2-7] [--quick] [--json] [--keys N]...
//!     [--out DIR]
//! ```

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use measure::figures::{Effort, Row, draw, node_size, searches};
use measure::source::SwitchAllocator;

/// Binary trees come from `CcMalloc`, all else from the system.
#[global_allocator]
static GLOBAL: SwitchAllocator = SwitchAllocator;

/// Makes the thesis's figures again: measured on this machine, and simulated for the thesis's
#[derive(Debug, Parser)]
#[command(name = "figures")]
struct Args {
    /// Which: 2-6 (a B-tree's node size) or 2-7 (trees from cold caches on); both when none is
    /// named
    #[arg(value_name = "FIGURE", value_parser = [node_size::FIGURE, searches::FIGURE])]
    figures: Vec<String>,

    /// Small trees and few searches: some seconds, and figures that mean little
    #[arg(long)]
    quick: bool,

    /// JSON lines instead of the tables
    #[arg(long)]
    json: bool,

    /// Number of keys in figure 2-7, one less than a power of two; may be given more than once. The
    /// thesis has 2097151
    #[arg(long, value_name = "N")]
    keys: Vec<usize>,

    /// The folder for figure-2-6.svg, figure-2-6.jsonl and so on
    #[arg(long, value_name = "DIR", default_value = "target/figures")]
    out: PathBuf,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("figures: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let mut effort = if args.quick {
        Effort::quick()
    } else {
        Effort::full()
    };
    if !args.keys.is_empty() {
        effort.search_keys.clone_from(&args.keys);
    }
    let wanted =
        |figure: &str| args.figures.is_empty() || args.figures.iter().any(|name| name == figure);
    if wanted(node_size::FIGURE) {
        finish(args, node_size::FIGURE, &node_size::rows(&effort)?)?;
    }
    if wanted(searches::FIGURE) {
        finish(args, searches::FIGURE, &searches::rows(&effort)?)?;
    }
    Ok(())
}

/// Prints the rows of a figure, and writes its files.
fn finish(args: &Args, figure: &str, rows: &[Row]) -> Result<(), Box<dyn std::error::Error>> {
    let lines = draw::json_lines(rows);
    let text = if args.json {
        lines.clone()
    } else {
        draw::table(rows)
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        // The reader went away, which is no reason to complain.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        other => other?,
    }
    let file = |extension| args.out.join(format!("figure-{figure}.{extension}"));
    let named = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    fs::create_dir_all(&args.out).map_err(|error| named(&args.out, &error))?;
    let (json, svg) = (file("jsonl"), file("svg"));
    fs::write(&json, lines).map_err(|error| named(&json, &error))?;
    draw::svg(&svg, rows).map_err(|error| named(&svg, &error))?;
    eprintln!("figures: wrote {} and {}", svg.display(), json.display());
    Ok(())
}
