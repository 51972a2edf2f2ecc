//! `model topology`.

use std::io::Write;

use super::CliError;
use super::output::{human_bytes, write_json, write_notes};
use crate::Inclusion;
use crate::counters::{Counters, Event};
use crate::topology::Topology;

pub(super) fn run(json: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let topology = Topology::this();
    if json {
        return write_json(out, &topology);
    }
    let mut row =
        |name: &str, value: &str, source| writeln!(out, "{name:<18} {value:<44} {source}");
    let (cpu, pages) = (&topology.cpu_name, &topology.huge_pages);
    row("processor", &cpu.value, cpu.source)?;
    let is_guest = if topology.virtualised.value {
        "yes"
    } else {
        "no"
    };
    row("virtual machine", is_guest, topology.virtualised.source)?;
    for (name, fact) in [
        ("memory", &topology.memory_bytes),
        ("page", &topology.page_bytes),
    ] {
        row(name, &human_bytes(fact.value as f64), fact.source)?;
    }
    row("huge pages", &pages.value.to_string(), pages.source)?;
    for cache in &topology.caches {
        let size = human_bytes(cache.size_bytes as f64);
        let mut facts = format!("{size}, lines of {} B", cache.line_bytes);
        match (cache.sets, cache.ways) {
            (_, 0) => {}
            (0, ways) => facts += &format!(", {ways} ways"),
            (sets, ways) => facts += &format!(", {sets} sets of {ways}"),
        }
        if cache.shared_by > 1 {
            facts += &format!(", shared by {}", cache.shared_by);
        }
        let name = format!("L{} {}", cache.level, cache.kind);
        row(&name, &facts, cache.source)?;
    }
    let last_level = match topology.inclusion.value {
        Inclusion::NonInclusive => "not inclusive",
        Inclusion::Inclusive => "inclusive",
        Inclusion::VictimLast => "holds what the level above evicts",
    };
    row("last level", last_level, topology.inclusion.source)?;
    let counters = match Counters::new() {
        Ok(counters) => counters
            .events()
            .map(Event::name)
            .collect::<Vec<_>>()
            .join(", "),
        Err(error) => error.to_string(),
    };
    writeln!(out, "{:<18} {counters}", "counters")?;
    write_notes(out, &topology.notes)
}
