//! `ccscope advise`.

use std::io::Write;
use std::path::PathBuf;

use ccmodel::Machine;
use clap::Args as ClapArgs;

use super::args::Color;
use super::{CliError, calibrate, fail, machine, show};
use crate::advice::advise;
use crate::imports;
use crate::views::{Options, advice as view};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Each change is checked by replaying the recorded accesses, with the addresses that it would give
them, through a simulation of the machine's caches. Gains are of the whole program.

Examples:
  cargo ccscope run --release --rate 50 -o a.ccscope -- ARGS
  ccscope advise a.ccscope --seconds 1.25")]
pub(super) struct AdviseArgs {
    /// The profile
    profile: PathBuf,
    /// Simulate the machine of this file (`ccscope calibrate -o FILE`) instead of this one, which
    /// is measured once
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
    /// Seconds that the program takes without the profiler; estimated if it is not given
    #[arg(long, value_name = "S", value_parser = seconds)]
    seconds: Option<f64>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Columns of the terminal
    #[arg(long, value_name = "N")]
    width: Option<usize>,
    /// When to use colour
    #[arg(long, value_enum, default_value = "auto")]
    color: Color,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "not a number of seconds above 0".to_owned())
}

pub(super) fn run(
    args: &AdviseArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), CliError> {
    let screen = show::options_for(std::io::stdout());
    let given = args.machine.as_deref().map(machine::read).transpose()?;
    let mut options = Options {
        width: args.width.unwrap_or(screen.width),
        colour: args.color.or(screen.colour),
        machine: given.or(screen.machine),
        ..screen
    };
    let profile = imports::open(&args.profile)?;
    show::needs_sites(&args.profile, &profile)?;
    let is_known = options.machine.is_some() || Machine::this().hierarchy.is_none();
    if !is_known && profile.run.accesses && !profile.windows.is_empty() {
        options.machine = Some(calibrate::measure(err)?);
    }
    let given = args.machine.as_ref();
    let machine = options.machine();
    let Some(advice) = advise(&profile, machine, args.seconds) else {
        return fail(match (&machine.hierarchy, given, profile.run.accesses) {
            (None, Some(_), _) => "the machine's file says nothing about its caches",
            (None, None, _) => "the caches of this machine are not known: name one by --machine",
            (Some(_), _, false) => {
                "the profile has no accesses, since the program was not instrumented: build it by \
                 `cargo ccscope run` or `ccscope cc`"
            }
            (Some(_), _, true) => {
                "the profile has no windows of accesses: record it without --rate 0"
            }
        });
    };
    let text = match args.json {
        true => view::json(&profile, &advice, &options),
        false => view::text(&profile, &advice, &options),
    };
    Ok(out.write_all(text.as_bytes())?)
}
