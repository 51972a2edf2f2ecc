//! `ccscope calibrate`, and the measurement that `ccscope advise` keeps.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use ccmodel::{CalibrateOptions, Machine};
use clap::Args as ClapArgs;

use super::{CliError, machine, runtime};

#[derive(Debug, ClapArgs)]
pub(super) struct CalibrateArgs {
    /// Write the machine file here, instead of where `ccscope advise` looks for it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Measure for some ten seconds instead of forty
    #[arg(long)]
    quick: bool,
}

pub(super) fn run(args: &CalibrateArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let path = args.output.clone().map_or_else(machine::kept, Ok)?;
    super::launch::check_output(
        Some(&path)
            .filter(|_| args.output.is_some())
            .map(|path| &**path),
    )?;
    let machine = Machine::calibrate(CalibrateOptions {
        quick: args.quick,
        progress: None,
    });
    for note in &machine.notes {
        writeln!(out, "note: {note}")?;
    }
    let text = machine.to_json();
    let shown = path.display();
    let written = match args.output {
        Some(_) => fs::write(&path, text),
        None => runtime::replace(&path, text.as_bytes()),
    };
    written.map_err(|error| format!("cannot write {shown}: {error}"))?;
    Ok(writeln!(out, "{}: machine file in {shown}", machine.name)?)
}

/// This machine, which [`machine::known`] does not know yet, measured once.
pub(super) fn measure(err: &mut dyn Write) -> Result<Machine, CliError> {
    let path = machine::kept()?;
    writeln!(
        err,
        "ccscope: measuring the caches of this machine once, in seconds"
    )?;
    let machine = Machine::calibrate(CalibrateOptions::quick());
    // Where it cannot be kept it is measured again.
    drop(runtime::replace(&path, machine.to_json().as_bytes()));
    Ok(machine)
}
