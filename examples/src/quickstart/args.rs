//! The command line.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ccmodel::Machine;
use clap::Parser;
use clap::error::ErrorKind;

use super::EXIT_BAD_INPUT;
use super::error::UserError;

/// Where should the nodes of a search tree over real text lie, and what does it gain?
///
/// Builds one search tree node for each sampled position of a text and looks phrases up in the tree
/// as malloc left it, built with hints, re-laid by ccmorph, and as a ctree; prints what each costs,
/// measured and predicted.
#[derive(Clone, Debug, Parser)]
#[command(name = "quickstart", version)]
pub(crate) struct Args {
    /// A UTF-8 text; without it, the names of all assigned Unicode characters
    pub(crate) file: Option<PathBuf>,

    /// Nodes of the tree, sampled from the positions of the text [default: 2097152, or all
    /// positions of a shorter text]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) nodes: Option<u64>,

    /// Lookups in each of the rounds whose median is shown
    #[arg(long, value_name = "N", default_value = "200000", value_parser = lookups)]
    pub(crate) lookups: usize,

    /// Which positions are sampled, the order of insertion, and the phrases
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,

    /// A machine description written by `model calibrate -o FILE`; without it this machine is
    /// measured, which takes a second or two
    #[arg(long, value_name = "FILE")]
    pub(crate) machine: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,

    /// Print the table as Markdown, with machine and command
    #[arg(long)]
    pub(crate) markdown: bool,

    /// No progress bar
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// What goes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Table,
    Json,
    Markdown,
}

impl Args {
    /// Reads the program's arguments. `Err` is how to exit: help and version are shown, faults are
    /// told in one line.
    pub(crate) fn from_command_line() -> Result<Self, ExitCode> {
        Self::parse_checked(std::env::args_os()).map_err(|error| {
            if matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) {
                return super::print(&error.render().to_string());
            }
            eprintln!("quickstart: {} (see --help)", first_line(&error));
            ExitCode::from(EXIT_BAD_INPUT)
        })
    }

    fn parse_checked(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(arguments)
    }

    pub(crate) fn output(&self) -> Output {
        match (self.json, self.markdown) {
            (true, _) => Output::Json,
            (false, true) => Output::Markdown,
            (false, false) => Output::Table,
        }
    }

    /// A bar is for a person who watches, and for nothing else.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.quiet && self.output() == Output::Table && std::io::stderr().is_terminal()
    }
}

/// The first line of what clap has to say, without its prefix; the rest are usage and tips.
fn first_line(error: &clap::Error) -> String {
    let message = error.render().to_string();
    let line = message
        .lines()
        .next()
        .unwrap_or("the arguments cannot be used");
    UserError::new(line.trim_start_matches("error: ")).to_string()
}

/// The list of queries is kept in memory, 16 B each, hence the upper bound.
fn lookups(argument: &str) -> Result<usize, String> {
    const LOOKUPS_MAX: usize = 10_000_000;
    match argument.parse() {
        Ok(lookups) if (1..=LOOKUPS_MAX).contains(&lookups) => Ok(lookups),
        _ => Err(format!("a number from 1 to {LOOKUPS_MAX} is needed")),
    }
}

/// Reads a machine description.
pub(crate) fn read_machine(path: &Path) -> Result<Machine, UserError> {
    let json = std::fs::read_to_string(path).map_err(|error| UserError::file(path, error))?;
    Machine::from_json(&json).map_err(|error| UserError::file(path, error))
}

#[cfg(test)]
mod tests {
    use super::{Args, Output, first_line};

    fn parse(arguments: &[&str]) -> Result<Args, clap::Error> {
        Args::parse_checked(
            std::iter::once("quickstart")
                .chain(arguments.iter().copied())
                .map(Into::into),
        )
    }

    #[test]
    fn defaults() {
        let args = parse(&[]).unwrap();
        assert_eq!(
            (args.file.as_deref(), args.nodes, args.lookups, args.seed),
            (None, None, 200_000, 1)
        );
        assert_eq!(args.output(), Output::Table);
        assert_eq!(parse(&["--json"]).unwrap().output(), Output::Json);
        assert_eq!(parse(&["--markdown"]).unwrap().output(), Output::Markdown);
        assert!(!parse(&["--json"]).unwrap().shows_progress());
        assert!(!parse(&["--quiet"]).unwrap().shows_progress());
    }

    #[test]
    fn faults_are_one_line() {
        for arguments in [
            &["--no-such-option"] as &[_],
            &["--nodes", "0"],
            &["--nodes", "many"],
            &["--nodes"],
            &["--lookups", "0"],
            &["--lookups", "10000001"],
            &["--json", "--markdown"],
            &["a", "b"],
            &["two\nlines", "b\nc"],
        ] {
            let line = first_line(&parse(arguments).unwrap_err());
            assert!(
                !line.is_empty() && !line.contains('\n'),
                "{arguments:?} gave {line:?}"
            );
        }
    }
}
