//! `model figures`.
//!
//! Writes each figure as `fig-3-4.svg` and `fig-3-4.csv` and so on into a folder, and prints their
//! tables in Markdown, or with `--json` one array of all points.

use std::fs;
use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};

use super::args::FiguresArgs;
use super::{CliError, write_json};
use crate::thesis::figures::{Figure, FigureOptions, figures, start_up, start_up_markdown};

/// Of the tree of section 3.3.1: the largest below the thesis's whose levels are a multiple of two.
const START_LEVELS: u32 = 20;

pub(super) fn run(
    args: &FiguresArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), CliError> {
    // Asked first: a minute's work that cannot be stored is a nuisance.
    fs::create_dir_all(&args.out).map_err(|error| cannot_write(&args.out, &error))?;
    let options = if args.quick {
        FigureOptions::quick()
    } else {
        FigureOptions::full()
    };
    let show = stderr().is_terminal();
    let figures = figures(options, &mut |line| {
        if show {
            eprint!("\r{line}");
        }
    });
    if show {
        writeln!(err)?;
    }
    let written = write_files(&args.out, &figures)?;
    if args.json {
        return write_json(out, &figures);
    }
    for figure in &figures {
        writeln!(out, "{}", figure.to_markdown())?;
    }
    writeln!(out, "{}", start_up_markdown(&start_up(START_LEVELS)))?;
    for path in written {
        writeln!(out, "written to {}", path.display())?;
    }
    Ok(())
}

/// Writes pictures and tables; their paths.
fn write_files(folder: &Path, figures: &[Figure]) -> Result<Vec<PathBuf>, CliError> {
    let mut written = Vec::new();
    for figure in figures {
        for (kind, text) in [("svg", figure.to_svg()), ("csv", figure.to_csv())] {
            let path = folder.join(format!("{}.{kind}", figure.stem()));
            fs::write(&path, text).map_err(|error| cannot_write(&path, &error))?;
            written.push(path);
        }
    }
    Ok(written)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> CliError {
    CliError::Request(format!("cannot write {}: {error}", path.display()))
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
        let figures = figures(options, &mut |_| ());
        let written = write_files(&folder, &figures);
        let names: Vec<String> = written
            .unwrap()
            .iter()
            .map(|path| {
                assert!(fs::metadata(path).unwrap().len() > 100);
                path.file_name().unwrap().to_string_lossy().into_owned()
            })
            .collect();
        fs::remove_dir_all(&folder).unwrap();
        let expected = ["3-4", "3-5", "3-6"]
            .map(|number| ["svg", "csv"].map(|kind| format!("fig-{number}.{kind}")));
        assert_eq!(names, expected.concat());
        assert!(matches!(
            write_files(&folder.join("nowhere"), &figures),
            Err(CliError::Request(_))
        ));
    }
}
