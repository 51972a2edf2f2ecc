//! `ccscope advise`.

use std::io::Write;
use std::path::PathBuf;

use ccmodel::Machine;
use clap::Args as ClapArgs;

use super::args::Color;
use super::{CliError, calibrate, fail, machine, show};
use crate::advice::{Advice, Kind, advise};
use crate::imports;
use crate::improve::rules::Learned;
use crate::improve::sites;
use crate::profile::Profile;
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
    /// Name the parents in hints as `CCMALLOC_LEARN` has learned them: this file
    #[arg(long, value_name = "FILE")]
    learned: Option<PathBuf>,
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
    let profile = imports::open_with_chunks(&args.profile)?;
    show::needs_sites(&args.profile, &profile)?;
    let is_known = options.machine.is_some() || Machine::this().hierarchy.is_none();
    if !is_known && profile.run.accesses && !profile.windows.is_empty() {
        options.machine = Some(calibrate::measure(err)?);
    }
    let given = args.machine.as_ref();
    let machine = options.machine();
    let Some(mut advice) = advise(&profile, machine, args.seconds) else {
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
    if let Some(file) = &args.learned {
        name_parents(&mut advice, &profile, &Learned::read(file)?);
    }
    let text = match args.json {
        true => view::json(&profile, &advice, &options),
        false => view::text(&profile, &advice, &options),
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// Says in the code of hints which object is the parent, or that none is known when the new one is
/// allocated.
fn name_parents(advice: &mut Advice, profile: &Profile, learned: &Learned) {
    let said = sites::of_sites(profile, learned);
    for item in advice.advice.iter_mut().filter(|it| it.kind == Kind::Hint) {
        let of_item = item
            .sites
            .iter()
            .filter_map(|site| said.get(&usize::try_from(*site).ok()?));
        let mut of_item: Vec<_> = of_item.collect();
        of_item.sort_by_key(|(_, is_rule)| !is_rule);
        let (Some((proposal, is_rule)), Some(code)) = (of_item.first(), &mut item.code) else {
            continue;
        };
        let line = match proposal.parent().filter(|_| *is_rule) {
            Some(parent) => format!("// parent: {parent}"),
            None => format!("// not learned: {}", proposal.refusal()),
        };
        let at = code.rfind('\n').map_or(0, |end| end + 1);
        code.insert_str(at, &format!("{line}\n"));
    }
}
