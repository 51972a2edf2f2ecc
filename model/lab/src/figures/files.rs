//! `thesis`: writes each figure as `fig-3-4.svg` and `fig-3-4.json` and so on into a folder, and
//! prints their tables in Markdown.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::show::start_up_markdown;
use super::start::start_up;
use super::{Figure, FigureOptions, figures};
use crate::progress;

/// Levels of the tree of section 3.3.1: the thesis's has one more, but the section needs an even
/// number.
const START_LEVELS: u32 = 20;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ccmodel-lab thesis --out target/figures")]
pub(crate) struct Args {
    /// Folder for fig-3-4.svg, fig-3-4.json and so on
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Simulate a tenth of the thesis's million searches
    #[arg(long)]
    quick: bool,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // Before the work of a minute, not after it.
    fs::create_dir_all(&args.out).map_err(|error| cannot_write(&args.out, &error))?;
    let options = if args.quick {
        FigureOptions::QUICK
    } else {
        FigureOptions::FULL
    };
    let figures = figures(options);
    progress("");
    let written = write_files(&args.out, &figures)?;
    for figure in &figures {
        writeln!(out, "{}", figure.to_markdown())?;
    }
    writeln!(out, "{}", start_up_markdown(&start_up(START_LEVELS)))?;
    for path in written {
        writeln!(out, "written to {}", path.display())?;
    }
    Ok(())
}

/// Writes pictures and points; their paths.
fn write_files(folder: &Path, figures: &[Figure]) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut written = Vec::new();
    for figure in figures {
        let json = serde_json::to_string_pretty(figure)? + "\n";
        for (kind, text) in [("svg", figure.to_svg()?), ("json", json)] {
            let path = folder.join(format!("fig-{}.{kind}", figure.number));
            fs::write(&path, text).map_err(|error| cannot_write(&path, &error))?;
            written.push(path);
        }
    }
    Ok(written)
}

fn cannot_write(path: &Path, error: &dyn fmt::Display) -> String {
    format!("cannot write {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_becomes_two_files() {
        let folder = std::env::temp_dir().join(format!("ccmodel-figures-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let options = FigureOptions {
            searches: 100,
            levels: 8,
            swept_levels: (8, 8),
        };
        let figures = figures(options);
        let written = write_files(&folder, &figures).unwrap();
        assert_eq!(written.len(), 6);
        for path in written {
            assert!(fs::metadata(path).unwrap().len() > 100);
        }
        fs::remove_dir_all(&folder).unwrap();
        assert!(write_files(&folder.join("nowhere"), &figures).is_err());
    }
}
