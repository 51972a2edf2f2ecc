//! Makes the thesis's figures 2-6 and 2-7: tables, SVG pictures and JSON lines.
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
use measure::figures::{Effort, FIGURES, draw};
use measure::source::SwitchAllocator;

/// Binary trees come from `CcMalloc`, all else from the system.
#[global_allocator]
static GLOBAL: SwitchAllocator = SwitchAllocator;

/// Makes the thesis's figures: measured on this machine, and simulated for the thesis's
#[derive(Debug, Parser)]
#[command(name = "figures")]
struct Args {
    /// 2-6 (a B-tree's node size) or 2-7 (trees from cold caches on); both when none is named
    #[arg(value_name = "FIGURE", value_parser = FIGURES.map(|(name, _)| name))]
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
    let named = |path: &Path, error| format!("{}: {error}", path.display());
    for (name, make) in FIGURES {
        if !args.figures.is_empty() && !args.figures.iter().any(|wanted| wanted == name) {
            continue;
        }
        let rows = make(&effort)?;
        let (lines, table) = (draw::json_lines(&rows), draw::table(&rows));
        let text = if args.json { &lines } else { &table };
        match std::io::stdout().write_all(text.as_bytes()) {
            // The reader went away, which is no reason to complain.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            other => other?,
        }
        fs::create_dir_all(&args.out).map_err(|error| named(&args.out, error))?;
        for (extension, text) in [("jsonl", &lines), ("svg", &draw::svg(&rows)?)] {
            let path = args.out.join(format!("figure-{name}.{extension}"));
            fs::write(&path, text).map_err(|error| named(&path, error))?;
            eprintln!("figures: wrote {}", path.display());
        }
    }
    Ok(())
}
