//! `model topology`.

use std::io::Write;

use super::args::TopologyArgs;
use super::{CliError, human_bytes, write_json};
use crate::Inclusion;
use crate::counters::{Counters, Event};
use crate::topology::{Fact, Topology};

pub(super) fn run(args: &TopologyArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let topology = Topology::this();
    if args.json {
        return write_json(out, &topology);
    }
    let mut row =
        |name: &str, value: String, source| writeln!(out, "{name:<18} {value:<44} {source}");
    let name = &topology.cpu_name;
    row("processor", name.value.clone(), name.source)?;
    let Fact {
        value: guest,
        source,
    } = topology.virtualised;
    row(
        "virtual machine",
        if guest { "yes" } else { "no" }.to_owned(),
        source,
    )?;
    row(
        "memory",
        human_bytes(topology.memory_bytes.value as f64),
        topology.memory_bytes.source,
    )?;
    row(
        "page",
        human_bytes(topology.page_bytes.value as f64),
        topology.page_bytes.source,
    )?;
    row(
        "huge pages",
        topology.huge_pages.value.to_string(),
        topology.huge_pages.source,
    )?;
    for cache in &topology.caches {
        let mut facts = format!(
            "{}, lines of {} B",
            human_bytes(cache.size_bytes as f64),
            cache.line_bytes
        );
        match (cache.sets, cache.ways) {
            (_, 0) => {}
            (0, ways) => facts += &format!(", {ways} ways"),
            (sets, ways) => facts += &format!(", {sets} sets of {ways}"),
        }
        if cache.shared_by > 1 {
            facts += &format!(", shared by {}", cache.shared_by);
        }
        row(
            &format!("L{} {}", cache.level, cache.kind),
            facts,
            cache.source,
        )?;
    }
    let last_level = match topology.inclusion.value {
        Inclusion::NonInclusive => "not inclusive",
        Inclusion::Inclusive => "inclusive",
        Inclusion::VictimLast => "holds what the level above evicts",
    };
    row(
        "last level",
        last_level.to_owned(),
        topology.inclusion.source,
    )?;
    match Counters::new() {
        Ok(counters) => {
            let names: Vec<&str> = counters.events().map(Event::name).collect();
            writeln!(out, "{:<18} {}", "counters", names.join(", "))?;
        }
        Err(error) => writeln!(out, "{:<18} {error}", "counters")?,
    }
    for note in &topology.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}
