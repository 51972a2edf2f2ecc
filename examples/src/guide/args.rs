//! The command line.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use super::stage::Stage;

/// Too few make no tree; more than this, the map of a tree cannot number.
const NODES: RangeInclusive<usize> = 16..=1 << 28;
const LOOKUPS_MAX: usize = 10_000_000;

/// Is this program waiting for memory, and what helps?
///
/// A price list in a search tree, as it was written and after each cure: what a lookup takes, and
/// where the nodes lie. docs/guide.md goes through it.
#[derive(Clone, Debug, PartialEq, Eq, Parser)]
#[command(name = "guide")]
pub(super) struct Args {
    /// Articles on the list
    #[arg(long, value_name = "N", default_value = "1048576", value_parser = nodes)]
    pub(super) nodes: usize,

    /// Lookups in each round
    #[arg(long, value_name = "N", default_value = "100000", value_parser = lookups)]
    pub(super) lookups: usize,

    /// Rounds of which the median is shown
    #[arg(long, value_name = "N", default_value = "9", value_parser = clap::value_parser!(u8).range(1..))]
    pub(super) rounds: u8,

    /// Only this one, for tools that watch a process
    #[arg(long, value_enum, conflicts_with_all = ["growth", "pictures"])]
    pub(super) stage: Option<Stage>,

    /// The program as it was written, with ever longer lists, up to `--nodes`
    #[arg(long, conflicts_with = "pictures")]
    pub(super) growth: bool,

    /// Draw where the nodes lie, into this folder, and time nothing
    #[arg(long, value_name = "FOLDER")]
    pub(super) pictures: Option<PathBuf>,
}

impl Args {
    /// Reads the program's arguments. `Err` is how to exit: help is shown, faults are told in one
    /// line.
    pub(super) fn from_command_line() -> Result<Args, ExitCode> {
        Args::parse_checked(std::env::args_os()).map_err(|error| {
            if error.kind() == ErrorKind::DisplayHelp {
                print!("{error}");
                return ExitCode::SUCCESS;
            }
            let message = error.render().to_string();
            let line = message.lines().next().unwrap_or_default();
            eprintln!("guide: {} (see --help)", line.trim_start_matches("error: "));
            ExitCode::from(2)
        })
    }

    fn parse_checked(
        arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Args, clap::Error> {
        Args::try_parse_from(arguments)
    }
}

fn nodes(argument: &str) -> Result<usize, String> {
    let nodes = argument.parse().ok();
    nodes.filter(|nodes| NODES.contains(nodes)).ok_or_else(|| {
        format!(
            "a number from {} to {} is needed",
            NODES.start(),
            NODES.end()
        )
    })
}

fn lookups(argument: &str) -> Result<usize, String> {
    let lookups = argument.parse().ok();
    lookups
        .filter(|lookups| (1..=LOOKUPS_MAX).contains(lookups))
        .ok_or_else(|| format!("a number from 1 to {LOOKUPS_MAX} is needed"))
}

#[cfg(test)]
mod tests {
    use super::{Args, Stage};

    #[test]
    fn defaults_and_options() {
        let args = Args::parse_checked(["guide"]).unwrap();
        assert_eq!(
            (args.nodes, args.lookups, args.rounds),
            (1 << 20, 100_000, 9)
        );
        let args = Args::parse_checked(["guide", "--stage", "morphed", "--lookups", "9"]).unwrap();
        assert_eq!((args.stage, args.lookups), (Some(Stage::Morphed), 9));
    }

    #[test]
    fn nonsense_is_refused() {
        for wrong in [
            &["--nodes", "1"][..],
            &["--nodes", "many"],
            &["--lookups", "0"],
            &["--rounds", "0"],
            &["--stage", "best"],
            &["--stage", "plain", "--growth"],
            &["extra"],
        ] {
            let arguments = ["guide"].iter().chain(wrong);
            assert!(Args::parse_checked(arguments).is_err(), "{wrong:?}");
        }
    }

    /// The guide's commands are those of this version.
    #[test]
    fn the_commands_in_the_guide_are_understood() {
        let guide = include_str!("../../../docs/guide.md").replace(" 2>", " >");
        // Up to where the shell goes on; a loop's variable stands for a number.
        let commands: Vec<String> = ["examples/guide ", "--example guide -- "]
            .iter()
            .flat_map(|program| guide.split(program).skip(1))
            .filter_map(|rest| rest.split(['#', '|', '>', '`', ')', ';', '\n']).next())
            .map(|command| command.replace("$rounds", "2"))
            .collect();
        assert!(commands.len() >= 4, "{commands:?}");
        for command in commands {
            let arguments = command.split_whitespace();
            let parsed = Args::parse_checked(std::iter::once("guide").chain(arguments));
            assert!(parsed.is_ok(), "{command}: {parsed:?}");
        }
    }
}
