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
    memory(machine, out)?;
    for probe in &machine.evidence.colours {
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
    let search = machine.search;
    writeln!(
        out,
        "search: {:.1} ns an operation, {:.2} ns a node (branch-free {:.2}), {:.1} ns a \
         misprediction",
        search.operation_ns, search.node_ns, search.branch_free_node_ns, search.misprediction_ns
    )?;
    let overlap = machine.overlap;
    writeln!(
        out,
        "overlap of independent work: {:.0} far misses at once; searches {:.0} nodes ahead \
         branch-free, {:.1} times through their misses with branches",
        overlap.misses, overlap.nodes_ahead, overlap.branches
    )?;
    if let Some(quietness) = &machine.evidence.quietness {
        let band = machine.error_band();
        writeln!(out, "while measured, {quietness}")?;
        writeln!(
            out,
            "times predicted with these figures: {:.0} % less to {:.0} % more",
            100.0 * (1.0 - band.low),
            100.0 * (band.high - 1.0)
        )?;
    }
    Ok(write_notes(out, &machine.notes)?)
}

/// A line for each level, and one for what lies behind them.
fn levels(machine: &Machine, out: &mut dyn Write) -> Result<(), CliError> {
    let mut table = Table::default();
    table.row(["level", "block", "effective capacity", "hit", "miss adds"]);
    let latencies = machine.latencies();
    let hit = |name: &str| {
        let mut known = latencies.iter();
        let hit = known.find(|latency| latency.name == name);
        hit.map_or(String::new(), |hit| format!("{:.1} ns", hit.hit_ns))
    };
    for level in &machine.levels {
        let is_data = level.kind == LevelKind::Data;
        table.row([
            level.name.clone(),
            human_bytes(level.block_bytes as f64),
            human_bytes(level.capacity_bytes()),
            if is_data {
                hit(&level.name)
            } else {
                String::new()
            },
            format!("{:.1} ns", level.step_ns()),
        ]);
    }
    if let Some(memory) = latencies.last() {
        table.row([memory.name.as_str(), "", "", &hit(&memory.name)]);
    }
    Ok(table.write(out)?)
}

/// Translation, and what neighbours save.
fn memory(machine: &Machine, out: &mut dyn Write) -> Result<(), CliError> {
    if let Some(probe) = &machine.evidence.translation {
        for (name, level) in ["dTLB", "STLB"].iter().zip(&probe.levels) {
            writeln!(
                out,
                "{name}: {} entries, a miss adds {:.1} ns",
                level.entries, level.miss_ns
            )?;
        }
        match probe.huge_pages_reach() {
            Some(true) => writeln!(out, "huge pages extend what the TLBs reach")?,
            Some(false) => writeln!(out, "huge pages do not extend what the TLBs reach")?,
            None => {}
        }
    }
    for neighbour in &machine.neighbours {
        writeln!(
            out,
            "in trees, {:.0} % of a far miss are paid once for each {}",
            100.0 * neighbour.share,
            human_bytes(neighbour.block_bytes as f64)
        )?;
    }
    Ok(())
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
