//! `model predict`.
//!
//! The JSON object:
//!
//! ```text
//! {
//!   "machine":   name of the processor or preset,
//!   "origin":    "defaults" | "preset" | {"calibrated": {"unix_seconds": .., "quick": ..}},
//!   "structure": {"kind": "bst", "shape": .., "nodes": .., "node_bytes": ..},
//!   "pages":     "4k" | "2m",
//!   "rows":      [{"layout": .., "ns": .., "cpu_ns": .., "nodes_visited": .., "misses": {"L1": .., ...},
//!                  "span_bytes": .., "speedup_vs_random": ..}, ...],
//!   "thesis":    absent, or {"rows": [{"layout": .., "k": .., "miss_rate": .., "best_case_speedup": ..}, ...]},
//!   "notes":     [..]
//! }
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::Serialize;

use super::args::{PredictArgs, TreeShape};
use super::{CliError, human_bytes, write_json};
use crate::machine::Origin;
use crate::thesis::{self, Clustering, MissRates};
use crate::topology::Topology;
use crate::{
    CalibrateOptions, Layout, LevelMisses, Machine, NO_NODE, NodeExtent, PageSize, Predictor, Shape,
};

/// Largest machine file that is read; a calibrated one has some ten kilobytes.
const MAX_MACHINE_FILE_BYTES: u64 = 16 << 20;
/// Seed of random shapes.
const SHAPE_SEED: u64 = 1;
/// The layout that speedups are relative to.
const BASELINE: Layout = Layout::Random { seed: 0 };

#[derive(Serialize)]
struct Report {
    machine: String,
    origin: Origin,
    structure: StructureReport,
    pages: PageSize,
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thesis: Option<ThesisReport>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct StructureReport {
    kind: &'static str,
    shape: &'static str,
    nodes: u64,
    node_bytes: u64,
}

#[derive(Serialize)]
struct Row {
    layout: String,
    ns: f64,
    cpu_ns: f64,
    nodes_visited: f64,
    misses: BTreeMap<String, f64>,
    span_bytes: u64,
    speedup_vs_random: f64,
}

#[derive(Serialize)]
struct ThesisReport {
    rows: Vec<ThesisRow>,
}

#[derive(Serialize)]
struct ThesisRow {
    layout: String,
    /// K, elements of a block that one search needs.
    k: f64,
    /// `m_s`, misses of the second level for each reference.
    miss_rate: f64,
    /// Figure 3-2.
    best_case_speedup: f64,
}

pub(super) fn run(args: &PredictArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let (nodes, node) = check_size(args)?;
    let machine = machine(&args.machine)?;
    check_analysis(args, node, &machine)?;
    let shape = match args.shape {
        TreeShape::Complete => Shape::complete_binary(nodes),
        TreeShape::Random => Shape::random_binary(nodes, SHAPE_SEED),
    };
    let pages = args.pages.size();
    let predictor = Predictor::new(&shape);
    let mut rows = Vec::new();
    let mut baseline_ns = None;
    let mut crowded = BTreeSet::new();
    for &layout in &args.layout {
        let placement = layout.place(&shape, node);
        let prediction = predictor.predict(&placement, node, pages, &machine);
        if layout == BASELINE {
            baseline_ns = Some(prediction.ns);
        }
        crowded.extend(prediction.crowded_levels().map(|level| level.name.clone()));
        rows.push(Row {
            layout: layout.to_string(),
            ns: prediction.ns,
            cpu_ns: prediction.cpu_ns,
            nodes_visited: prediction.nodes_visited,
            misses: prediction
                .levels
                .into_iter()
                .map(|level| (level.name, level.misses))
                .collect(),
            span_bytes: placement.span_bytes(node),
            speedup_vs_random: 1.0,
        });
    }
    let baseline_ns = baseline_ns.unwrap_or_else(|| {
        predictor
            .predict(&BASELINE.place(&shape, node), node, pages, &machine)
            .ns
    });
    for row in &mut rows {
        row.speedup_vs_random = speedup(baseline_ns, row.ns);
    }
    let report = Report {
        notes: notes(args, &machine, &crowded),
        machine: machine.name.clone(),
        origin: machine.origin.clone(),
        structure: StructureReport {
            kind: "bst",
            shape: args.shape.name(),
            nodes: args.nodes,
            node_bytes: args.node_bytes,
        },
        pages,
        rows,
        thesis: args.thesis.then(|| thesis_report(args)),
    };
    if args.json {
        write_json(out, &report)
    } else {
        table(&report, &machine, out)
    }
}

/// How many times faster than the baseline; 1 where a machine file makes everything free.
fn speedup(baseline_ns: f64, ns: f64) -> f64 {
    if ns > 0.0 { baseline_ns / ns } else { 1.0 }
}

/// Refuses structures that this machine could not hold.
fn check_size(args: &PredictArgs) -> Result<(u32, NodeExtent), CliError> {
    let refuse = |message: String| Err(CliError::Request(message));
    if args.nodes == 0 {
        return refuse("--nodes is 0: a structure needs at least one node".to_owned());
    }
    if args.node_bytes == 0 {
        return refuse("--node-bytes is 0: a node has at least one byte".to_owned());
    }
    let memory = Topology::this().memory_bytes.value;
    let bytes = args.nodes.checked_mul(args.node_bytes);
    // The last number says "no node".
    let (Some(bytes), Some(nodes), Ok(node_bytes)) = (
        bytes,
        u32::try_from(args.nodes)
            .ok()
            .filter(|&nodes| nodes < NO_NODE),
        u32::try_from(args.node_bytes),
    ) else {
        return refuse(format!(
            "{} nodes of {} bytes are more than can be predicted: at most {} nodes of at most {} bytes",
            args.nodes,
            args.node_bytes,
            NO_NODE - 1,
            u32::MAX
        ));
    };
    if bytes > memory {
        return refuse(format!(
            "{nodes} nodes of {node_bytes} bytes need {}, this machine has {}",
            human_bytes(bytes as f64),
            human_bytes(memory as f64)
        ));
    }
    // What a compiler would align such a node to: the largest power of two in its size, up to a word.
    let align = 1 << node_bytes.trailing_zeros().min(3);
    let node =
        NodeExtent::new(node_bytes, align).map_err(|error| CliError::Request(error.to_string()))?;
    Ok((nodes, node))
}

/// Refuses predictions that take more memory than this machine has.
fn check_analysis(args: &PredictArgs, node: NodeExtent, machine: &Machine) -> Result<(), CliError> {
    let memory = Topology::this().memory_bytes.value as f64;
    let analysis = args.nodes as f64 * analysis_bytes_per_node(node, machine, args.pages.size());
    if analysis > memory {
        return Err(CliError::Request(format!(
            "predicting {} nodes of {} bytes takes {}, this machine has {}",
            args.nodes,
            args.node_bytes,
            human_bytes(analysis),
            human_bytes(memory)
        )));
    }
    Ok(())
}

/// Memory that a prediction takes for each node, in bytes: shape, visits and placement, what is kept of each block size,
/// and the pass over the smallest blocks.
///
/// An upper estimate: on a machine of three block sizes, the six default layouts of 10^6 nodes of 24, 200 and 1000 bytes
/// took at most 84, 200 and 503 bytes a node (20 November 2026, the process's largest resident set), where this says 91,
/// 255 and 700.
fn analysis_bytes_per_node(node: NodeExtent, machine: &Machine, pages: PageSize) -> f64 {
    /// Shape, visits, placement, and the blocks that each node covers.
    const NODE_BYTES: f64 = 64.0;
    /// A block's number and probabilities, in vectors that grow by doubling; or its cell during the pass.
    const BLOCK_BYTES: f64 = 32.0;
    /// Blocks with a cell of their own, for each node: more are sorted instead.
    const CELLS: f64 = 16.0;
    let levels = machine.levels_for(pages).map(|level| level.block_bytes);
    let neighbours = machine.neighbours.iter().map(|other| other.block_bytes);
    let sizes: BTreeSet<u64> = levels.chain(neighbours).collect();
    let blocks = |size: u64| node.stride_bytes() as f64 / size as f64;
    // Of each node at most the first and the last block are kept one by one.
    let kept: f64 = sizes.iter().map(|&size| blocks(size).min(2.0)).sum();
    let cells = sizes.first().map_or(0.0, |&size| blocks(size).min(CELLS));
    NODE_BYTES + BLOCK_BYTES * (kept + cells)
}

/// A preset, this machine, or a file.
fn machine(name: &Path) -> Result<Machine, CliError> {
    match name.to_str() {
        Some("thesis") => Ok(Machine::thesis()),
        Some("this") => Ok(Machine::this().clone()),
        Some("calibrate") => Ok(Machine::calibrate(CalibrateOptions::quick())),
        _ => {
            let request = |error: &dyn std::fmt::Display| {
                CliError::Request(format!("cannot read machine {}: {error}", name.display()))
            };
            let text = read_machine_file(name).map_err(|error| request(&error))?;
            Machine::from_json(&text).map_err(|error| request(&error))
        }
    }
}

/// The text of a regular file of sensible size: devices and pipes may never end, and opening a pipe may wait for ever.
fn read_machine_file(path: &Path) -> io::Result<String> {
    let refuse = |message: String| Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    if !fs::metadata(path)?.is_file() {
        return refuse("not a regular file".to_owned());
    }
    let mut text = String::new();
    // One byte more than allowed tells a file that is too large, even if it grows meanwhile.
    fs::File::open(path)?
        .take(MAX_MACHINE_FILE_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_MACHINE_FILE_BYTES {
        return refuse(format!(
            "larger than {}",
            human_bytes(MAX_MACHINE_FILE_BYTES as f64)
        ));
    }
    Ok(text)
}

/// What the reader should know before believing the figures.
fn notes(args: &PredictArgs, machine: &Machine, crowded: &BTreeSet<String>) -> Vec<String> {
    let mut notes = machine.notes.clone();
    if !crowded.is_empty() {
        let names: Vec<&str> = crowded.iter().map(String::as_str).collect();
        notes.push(format!(
            "one search touches more than {:.0} % of what {} can hold: real caches miss more there than predicted",
            100.0 * LevelMisses::CROWDED_SHARE,
            names.join(", ")
        ));
    }
    if machine.origin == Origin::Defaults {
        notes.push(
            "latencies are defaults, not measured: use --machine calibrate, or calibrate -o FILE and --machine FILE"
                .to_owned(),
        );
    }
    let aliasing = args.shape == TreeShape::Complete
        && args.nodes > 1 << 12
        && (args.nodes + 1).is_power_of_two()
        && args.node_bytes.is_power_of_two()
        && args.layout.contains(&Layout::DepthFirst);
    if aliasing {
        notes.push(
            "depth-first order of this complete tree puts nodes at large powers of two from each other: real caches miss more than predicted"
                .to_owned(),
        );
    }
    notes
}

/// The formulas for the layouts that they know: the thesis's tree and machine, this node size.
fn thesis_report(args: &PredictArgs) -> ThesisReport {
    let k = thesis::THESIS_L2.nodes_per_block(args.node_bytes);
    let references = thesis::search_references(args.nodes);
    let coloured = thesis::THESIS_L2.colourable_nodes(args.node_bytes);
    let row = |layout: String, reuse: f64, clustering: Clustering| {
        let miss_rate = thesis::miss_rate(references, reuse, clustering.k(k));
        ThesisRow {
            layout,
            k: clustering.k(k),
            miss_rate,
            best_case_speedup: thesis::THESIS_LATENCIES.best_case_speedup(MissRates {
                l1: 1.0,
                l2: miss_rate,
            }),
        }
    };
    let mut rows: Vec<ThesisRow> = args
        .layout
        .iter()
        .filter_map(|layout| {
            let clustering = match layout {
                Layout::Random { .. } => Clustering::None,
                Layout::DepthFirst => Clustering::DepthFirst,
                Layout::SubtreeCluster { .. } => Clustering::Subtree,
                _ => return None,
            };
            Some(row(layout.to_string(), 0.0, clustering))
        })
        .collect();
    let reuse = thesis::coloured_reuse(args.nodes, coloured);
    rows.push(row(
        "cluster, coloured".to_owned(),
        reuse,
        Clustering::Subtree,
    ));
    ThesisReport { rows }
}

fn table(report: &Report, machine: &Machine, out: &mut dyn Write) -> Result<(), CliError> {
    let structure = &report.structure;
    writeln!(
        out,
        "{} tree of {} nodes of {} bytes in {} pages on {}; one uniform search:",
        structure.shape, structure.nodes, structure.node_bytes, report.pages, report.machine
    )?;
    // Level names in the machine's order, not in the order of the alphabet.
    let levels: Vec<&str> = machine
        .levels_for(report.pages)
        .map(|level| level.name.as_str())
        .collect();
    write!(out, "{:<12} {:>9} {:>8}", "layout", "ns", "speedup")?;
    for level in &levels {
        write!(out, " {:>10}", format!("{level} miss"))?;
    }
    writeln!(out, " {:>10}", "span")?;
    for row in &report.rows {
        write!(
            out,
            "{:<12} {:>9.1} {:>7.2}x",
            row.layout, row.ns, row.speedup_vs_random
        )?;
        for level in &levels {
            write!(
                out,
                " {:>10.2}",
                row.misses.get(*level).copied().unwrap_or(0.0)
            )?;
        }
        writeln!(out, " {:>10}", human_bytes(row.span_bytes as f64))?;
    }
    if let Some(thesis) = &report.thesis {
        writeln!(out, "\nformulas of the thesis (its machine, best case):")?;
        writeln!(
            out,
            "{:<18} {:>6} {:>10} {:>8}",
            "layout", "K", "miss rate", "speedup"
        )?;
        for row in &thesis.rows {
            writeln!(
                out,
                "{:<18} {:>6.3} {:>10.3} {:>7.2}x",
                row.layout, row.k, row.miss_rate, row.best_case_speedup
            )?;
        }
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Sources;

    #[test]
    fn speedups_are_numbers_even_where_time_is_free() {
        assert!((speedup(6.0, 3.0) - 2.0).abs() < 1e-12);
        assert!((speedup(0.0, 0.0) - 1.0).abs() < 1e-12);
        assert!((speedup(5.0, 0.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn larger_nodes_take_more_memory_to_predict() {
        let nowhere = Sources {
            root: "/nonexistent".into(),
            ask_processor: false,
        };
        let machine = Machine::from_topology(&Topology::read(&nowhere));
        let estimate = |bytes| {
            let node = NodeExtent::new(bytes, 8).unwrap();
            analysis_bytes_per_node(node, &machine, PageSize::Small4K)
        };
        // What was measured, and not more than half as much again.
        for (bytes, measured) in [(24, 84.0), (200, 200.0), (1000, 503.0)] {
            let ratio = estimate(bytes) / measured;
            assert!((1.0..1.5).contains(&ratio), "{bytes} bytes: {ratio}");
        }
        // A node of many blocks costs no more than one of sixteen.
        assert!((estimate(1 << 20) - estimate(1 << 30)).abs() < 1e-9);
    }
}
