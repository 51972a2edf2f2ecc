//! `model calibrate`.

use std::fs;
use std::io::{IsTerminal, Write, stderr};

use super::args::CalibrateArgs;
use super::{CliError, human_bytes};
use crate::{CalibrateOptions, Machine};

pub(super) fn run(
    args: &CalibrateArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), CliError> {
    // Asked first: a measurement of ten seconds that cannot be stored is a nuisance.
    if let Some(path) = &args.output {
        let cannot = |error| CliError::Request(format!("cannot write {}: {error}", path.display()));
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(cannot)?;
    }
    let show = stderr().is_terminal();
    let machine = Machine::calibrate(CalibrateOptions {
        quick: args.quick,
        progress: show.then_some(|done| eprint!("\rmeasuring {:3.0} %", 100.0 * done)),
    });
    if show {
        writeln!(err)?;
    }
    if let Some(path) = &args.output {
        let cannot = |error| CliError::Request(format!("cannot write {}: {error}", path.display()));
        fs::write(path, machine.to_json()).map_err(cannot)?;
    }
    if args.json {
        write!(out, "{}", machine.to_json())?;
        return Ok(());
    }
    table(&machine, out)?;
    if let Some(path) = &args.output {
        writeln!(out, "written to {}", path.display())?;
    }
    Ok(())
}

fn table(machine: &Machine, out: &mut dyn Write) -> Result<(), CliError> {
    writeln!(out, "{}", machine.name)?;
    writeln!(
        out,
        "{:<8} {:>8} {:>20} {:>12}",
        "level", "block", "effective capacity", "miss costs"
    )?;
    for level in &machine.levels {
        writeln!(
            out,
            "{:<8} {:>8} {:>20} {:>9.1} ns",
            level.name,
            human_bytes(level.block_bytes as f64),
            human_bytes(level.capacity_bytes()),
            level.step_ns()
        )?;
    }
    for neighbour in &machine.neighbours {
        writeln!(
            out,
            "{:.0} % of a far miss are paid once for each {}",
            100.0 * neighbour.share,
            human_bytes(neighbour.block_bytes as f64)
        )?;
    }
    for probe in &machine.evidence.colours {
        writeln!(
            out,
            "colours by address {} in caches with ways of {}: hot lines beside cold ones {:.1} ns in another colour, {:.1} in the same",
            if probe.works() { "work" } else { "do nothing" },
            human_bytes(probe.way_bytes as f64),
            probe.other_ns,
            probe.same_ns
        )?;
    }
    let search = machine.search;
    writeln!(
        out,
        "search: {:.1} ns an operation, {:.2} ns a node (branch-free {:.2}), {:.1} ns a misprediction",
        search.operation_ns, search.node_ns, search.branch_free_node_ns, search.misprediction_ns
    )?;
    for note in &machine.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}
