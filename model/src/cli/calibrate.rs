//! `model calibrate`.

use std::io::{IsTerminal, Write, stderr};

use super::CliError;
use super::args::CalibrateArgs;
use super::output::{NewFile, Table, human_bytes, write_notes};
use crate::{CalibrateOptions, LevelKind, Machine};

pub(super) fn run(
    args: &CalibrateArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<(), CliError> {
    // Asked first: a measurement of half a minute that cannot be stored is a nuisance.
    let file = args.output.as_deref().map(NewFile::create).transpose()?;
    let show = stderr().is_terminal();
    let machine = Machine::calibrate(CalibrateOptions {
        quick: args.quick,
        progress: show.then_some(|done| eprint!("\rmeasuring: {:3.0} %", 100.0 * done)),
    });
    if show {
        writeln!(err)?;
    }
    if let Some(file) = file {
        file.write(&machine.to_json())?;
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
    levels(machine, out)?;
    let evidence = &machine.evidence;
    if let Some(probe) = &evidence.translation {
        for (name, level) in ["dTLB", "STLB"].iter().zip(&probe.levels) {
            let (entries, ns) = (level.entries, level.miss_ns);
            writeln!(out, "{name}: {entries} entries, a miss adds {ns:.1} ns")?;
        }
        match probe.huge_pages_reach() {
            Some(true) => writeln!(out, "huge pages extend what the TLBs reach")?,
            Some(false) => writeln!(out, "huge pages do not extend what the TLBs reach")?,
            None => {}
        }
    }
    for neighbour in &machine.neighbours {
        let (share, bytes) = (100.0 * neighbour.share, neighbour.block_bytes as f64);
        let bytes = human_bytes(bytes);
        writeln!(
            out,
            "in trees, {share:.0} % of a far miss are paid once for each {bytes}"
        )?;
    }
    for probe in &evidence.colours {
        writeln!(
            out,
            "colours by address {} in caches with ways of {}: hot lines beside cold ones {:.1} ns \
             in another colour, {:.1} in the same",
            if probe.works() { "work" } else { "do nothing" },
            human_bytes(probe.way_bytes as f64),
            probe.other_ns,
            probe.same_ns
        )?;
    }
    let (search, overlap) = (machine.search, machine.overlap);
    writeln!(
        out,
        "search: {:.1} ns an operation, {:.2} ns a node (branch-free {:.2}), {:.1} ns a \
         misprediction\noverlap of independent work: {:.0} far misses at once; searches {:.0} \
         nodes ahead branch-free, {:.1} times through their misses with branches",
        search.operation_ns,
        search.node_ns,
        search.branch_free_node_ns,
        search.misprediction_ns,
        overlap.misses,
        overlap.nodes_ahead,
        overlap.branches
    )?;
    if let Some(quietness) = &evidence.quietness {
        let band = machine.error_band();
        let (low, high) = (100.0 * (1.0 - band.low), 100.0 * (band.high - 1.0));
        writeln!(
            out,
            "while measured, {quietness}\ntimes predicted with these figures: {low:.0} % less to \
             {high:.0} % more"
        )?;
    }
    write_notes(out, &machine.notes)
}

/// A line for each level, and one for what lies behind them.
fn levels(machine: &Machine, out: &mut dyn Write) -> Result<(), CliError> {
    let mut table = Table::default();
    table.row(["level", "block", "effective capacity", "hit", "miss adds"]);
    // A hit of a level costs the steps of those before it.
    let mut hit_ns = machine.evidence.hit_ns.unwrap_or(0.0);
    for level in &machine.levels {
        let mut hit = String::new();
        if level.kind == LevelKind::Data {
            hit = format!("{hit_ns:.1} ns");
            hit_ns += level.step_ns();
        }
        table.row([
            level.name.clone(),
            human_bytes(level.block_bytes as f64),
            human_bytes(level.capacity_bytes()),
            hit,
            format!("{:.1} ns", level.step_ns()),
        ]);
    }
    table.row(["memory", "", "", &format!("{hit_ns:.1} ns")]);
    Ok(table.write(out)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_can_be_shown_too() {
        for preset in Machine::presets() {
            let mut out = Vec::new();
            table(&preset.machine(), &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.contains("L1") && text.contains("memory"), "{text}");
        }
    }
}
