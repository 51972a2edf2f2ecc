//! The formulas applied to a structure and a machine: the table of `model predict --thesis`.

use std::fmt;

use super::{
    Clustering, CompleteTree, System, miss_rate, nodes_per_block, transient_miss_rate,
    transient_misses,
};
use crate::{Layout, Machine};

/// K, R and m of one layout at one cache.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct LevelRate {
    /// Name of the cache.
    pub name: String,
    /// k, elements in a block.
    pub nodes_per_block: u64,
    /// K, elements of a block that one access needs.
    pub k: f64,
    /// `R_s`, elements that an access finds in the cache.
    pub reuse: f64,
    /// `m_s`, misses for each reference.
    pub miss_rate: f64,
}

/// What the formulas say of one layout.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct ReportRow {
    /// The layout, and whether its top is coloured.
    pub layout: String,
    /// Nodes that have a part of the last cache for themselves; 0 without colours.
    pub coloured_nodes: f64,
    /// By cache, the first level first.
    pub levels: Vec<LevelRate>,
    /// `t_memory` for one reference, in the unit of the system.
    pub reference_time: f64,
    /// `t_memory`, for D references.
    pub time: f64,
    /// Figure 3-2: against a layout that misses always.
    pub best_case_speedup: f64,
}

/// Section 3.3.1 for a number of searches from cold, in blocks of the last cache, none of which is
/// evicted.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Transient {
    /// How many searches, i.
    pub searches: u64,
    /// Misses of each on average in the worst sequence of a subtree-clustered tree.
    pub worst_case_misses: f64,
    /// m(i), the rate that the chapter ends with.
    pub miss_rate: f64,
}

/// The answer of [`report`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Report {
    /// What is searched.
    pub structure: CompleteTree,
    /// The machine as the formulas see it.
    pub system: System,
    /// D, references of one access.
    pub references: f64,
    /// By layout; those that the formulas know, then colours.
    pub rows: Vec<ReportRow>,
    /// From cold, where a number of searches was asked for and the structure is a binary tree.
    #[cfg_attr(feature = "json", serde(skip_serializing_if = "Option::is_none"))]
    pub transient: Option<Transient>,
    /// What the formulas leave out here.
    pub notes: Vec<String>,
}

/// Applies the formulas of chapter 3 to `structure` on `machine`: for those of `layouts` that they
/// know (random, depth-first, and subtree clusters of the last cache's block size), for colours
/// alone, and for clusters with colours.
///
/// Colours are of the last cache; the top of the structure has the first half of its sets (section
/// 3.2.1). `searches` adds the start from cold (section 3.3.1).
///
/// # Examples
/// ```
/// use ccmodel::{Layout, Machine, thesis};
///
/// let tree = thesis::CompleteTree::binary(2_097_151, thesis::THESIS_NODE_BYTES);
/// let report = thesis::report(tree, &Machine::thesis(), &[Layout::DepthFirst], None);
/// let depth_first = &report.rows[0];
/// assert!((depth_first.levels[1].miss_rate - 0.571).abs() < 5e-4);
/// assert!((depth_first.best_case_speedup - 1.63).abs() < 5e-3);
/// ```
pub fn report(
    structure: CompleteTree,
    machine: &Machine,
    layouts: &[Layout],
    searches: Option<u64>,
) -> Report {
    let system = System::of_machine(machine);
    let references = structure.references();
    let last_block_bytes = system.caches.last().map_or(0, |cache| cache.block_bytes);
    let coloured_nodes = system.caches.last().map_or(0.0, |cache| {
        cache.blocks / 2.0 * nodes_per_block(cache.block_bytes, structure.node_bytes) as f64
    });
    let coloured_nodes = coloured_nodes.min(structure.nodes as f64);
    let row = |layout: String, clustering: Clustering, coloured_nodes: f64| {
        row(&system, structure, layout, clustering, coloured_nodes)
    };
    let (mut rows, mut unknown) = (Vec::new(), Vec::new());
    for &layout in layouts {
        let clustering = match layout {
            Layout::Random { .. } => Clustering::None,
            Layout::DepthFirst => Clustering::DepthFirst,
            Layout::SubtreeCluster { block_bytes }
                if u64::from(block_bytes) == last_block_bytes =>
            {
                Clustering::Subtree
            }
            _ => {
                unknown.push(layout.to_string());
                continue;
            }
        };
        rows.push(row(layout.to_string(), clustering, 0.0));
    }
    for (name, clustering) in [
        ("random, coloured", Clustering::None),
        ("cluster, coloured", Clustering::Subtree),
    ] {
        rows.push(row(name.to_owned(), clustering, coloured_nodes));
    }
    let transient = searches.filter(|_| structure.arity == 2).map(|searches| {
        let k = nodes_per_block(last_block_bytes, structure.node_bytes);
        Transient {
            searches,
            worst_case_misses: transient_misses(structure.nodes, k, searches),
            miss_rate: transient_miss_rate(structure.nodes, k, searches),
        }
    });
    let mut notes = Vec::new();
    if !unknown.is_empty() {
        notes.push(format!(
            "the thesis has no formulas for {}",
            unknown.join(", ")
        ));
    }
    if structure.arity != 2 {
        notes.push(
            "the thesis works out binary trees; K, D and R are for others by the same argument"
                .to_owned(),
        );
    }
    Report {
        structure,
        system,
        references,
        rows,
        transient,
        notes,
    }
}

fn row(
    system: &System,
    structure: CompleteTree,
    layout: String,
    clustering: Clustering,
    coloured_nodes: f64,
) -> ReportRow {
    let references = structure.references();
    let last = system.caches.len().saturating_sub(1);
    let levels: Vec<LevelRate> = { system.caches.iter().enumerate() }
        .map(|(i, cache)| {
            let nodes_per_block = nodes_per_block(cache.block_bytes, structure.node_bytes);
            let k = clustering.k_of(nodes_per_block, structure.arity);
            let reuse = if i == last {
                structure.coloured_reuse(coloured_nodes)
            } else {
                0.0
            };
            LevelRate {
                name: cache.name.clone(),
                nodes_per_block,
                k,
                reuse,
                miss_rate: miss_rate(references, reuse, k),
            }
        })
        .collect();
    let rates: Vec<f64> = levels.iter().map(|level| level.miss_rate).collect();
    let reference_time = system.reference_time(&rates);
    ReportRow {
        layout,
        coloured_nodes,
        levels,
        reference_time,
        time: reference_time * references,
        best_case_speedup: system.best_case_speedup(&rates),
    }
}

impl fmt::Display for Report {
    /// A table for people, its lines ended.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (structure, system) = (self.structure, &self.system);
        writeln!(
            f,
            "formulas of the thesis (chapter 3): n = {}, e = {} B, D = {:.2}, t_h = {:.2} {}; best \
             case, against a layout that misses always",
            structure.nodes, structure.node_bytes, self.references, system.hit_time, system.unit
        )?;
        write!(f, "{:<18} {:>6}", "layout", "R_s")?;
        for cache in &system.caches {
            let name = &cache.name;
            write!(f, " {:>8} {:>8}", format!("K {name}"), format!("m {name}"))?;
        }
        writeln!(f, " {:>9} {:>8}", system.unit, "speedup")?;
        for row in &self.rows {
            let reuse = row.levels.last().map_or(0.0, |level| level.reuse);
            write!(f, "{:<18} {reuse:>6.2}", row.layout)?;
            for level in &row.levels {
                write!(f, " {:>8.3} {:>8.3}", level.k, level.miss_rate)?;
            }
            writeln!(f, " {:>9.1} {:>7.2}x", row.time, row.best_case_speedup)?;
        }
        if let Some(transient) = self.transient {
            writeln!(
                f,
                "{} searches from cold, no block evicted, subtree clusters: at worst {:.2} misses \
                 a search, m(i) = {:.3} at the last",
                transient.searches, transient.worst_case_misses, transient.miss_rate
            )?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}
