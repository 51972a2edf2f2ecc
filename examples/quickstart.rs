//! Where should the nodes of a search tree over real text lie, and what does it gain?
//!
//! ```text
//! cargo run --release --example quickstart                    the names of all Unicode characters
//! cargo run --release --example quickstart -- FILE [NODES]    any UTF-8 text
//! ```
//!
//! The tree has a node for each sampled position of the text; its key is the phrase of four bytes
//! there, and the position. The same lookups go through five structures. The last line says which
//! one to use, or why the measurement does not say it.

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;

use ccmodel::{
    CalibrateOptions, Machine, NO_NODE, NodeExtent, PageSize, Placement, Prediction, Predictor,
    SearchLevel, SearchStyle, Shape, WORTHWHILE_SPEEDUP, predict_levels,
};
use ccmorph::{Morph, MorphError, TreeNode, map};
use ctree::FrozenCTreeMap;
use examples::{Switch, dependent_lookups, median, system_bytes, time_in_turns, with_ccmalloc};

const LOOKUPS: usize = 200_000;
const ROUNDS: usize = 7;

#[global_allocator]
static GLOBAL: Switch = Switch;

/// A node of an ordinary search tree. The derive lets `ccmorph` move it.
#[derive(TreeNode)]
struct Node {
    key: u64,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Node>>,
}

type Root = Option<Box<Node>>;

/// A tree with `keys`, each node allocated by `allocate(parent's link, node)`.
fn grow(keys: &[u64], allocate: fn(&Root, Node) -> Box<Node>) -> Root {
    let mut root: Root = None;
    for &key in keys {
        let mut link = &mut root;
        while let Some(node) = link {
            link = if key < node.key {
                &mut node.left
            } else {
                &mut node.right
            };
        }
        let (left, right) = (None, None);
        *link = Some(allocate(link, Node { key, left, right }));
    }
    root
}

/// The key of the node with `key`.
fn get(root: &Root, key: u64) -> Option<u64> {
    let mut link = root;
    while let Some(node) = link {
        if key == node.key {
            // The answer comes from the node, so that the next lookup waits for this one.
            return Some(black_box(node).key);
        }
        link = if key < node.key {
            &node.left
        } else {
            &node.right
        };
    }
    None
}

/// A phrase of 4 bytes, and its position in the text.
fn key(text: &[u8], position: usize) -> u64 {
    let bytes = text[position..].iter().chain(std::iter::repeat(&0));
    let phrase = bytes.take(4);
    phrase.fold(0, |phrase, &byte| phrase << 8 | u64::from(byte)) << 32 | position as u64
}

#[expect(clippy::cast_possible_truncation, reason = "texts are below 1 GiB")]
fn position(key: u64) -> u32 {
    key as u32
}

/// Looks a key of each pair up.
type Pass = Box<dyn Fn(&[[u64; 2]]) -> u64>;

/// One structure of the table.
struct Row {
    layout: &'static str,
    pass: Pass,
    prediction: Option<Prediction>,
    bytes: usize,
}

impl Row {
    fn new(
        layout: &'static str,
        lookup: impl Fn(u64) -> Option<u32> + 'static,
        prediction: Option<Prediction>,
        bytes: usize,
    ) -> Row {
        let lookup = move |key| lookup(key).map_or(u64::MAX, u64::from);
        let pass = Box::new(move |pairs: &[_]| dependent_lookups(pairs, &lookup));
        Row {
            layout,
            pass,
            prediction,
            bytes,
        }
    }

    /// A tree, predicted from the addresses of its nodes.
    fn tree(
        layout: &'static str,
        mut root: Root,
        machine: &Machine,
        pages: PageSize,
    ) -> Result<Row, MorphError> {
        let map = map(&mut root, Node::children)?;
        let parents = map.nodes().map(|node| node.parent.unwrap_or(NO_NODE));
        let shape = Shape::from_parents(&parents.collect::<Vec<_>>());
        let places = Placement::from_offsets(map.nodes().map(|node| node.address).collect());
        let extent = NodeExtent::new(24, 8).expect("24 is a multiple of 8");
        let prediction = Predictor::new(&shape.expect("parents come first"))
            .style(SearchStyle::BranchFree)
            .predict(&places, extent, pages, machine);
        let bytes = map.pieces(4096).count() * 4096;
        let lookup = move |key| get(&root, key).map(position);
        Ok(Row::new(layout, lookup, Some(prediction), bytes))
    }
}

/// Leaves of 16 entries under nodes of 16 separators, all lines of a node fetched at once.
fn predict_frozen(len: usize, machine: &Machine) -> Prediction {
    let level = |nodes, node_bytes| SearchLevel {
        nodes,
        node_bytes,
        lines_per_visit: node_bytes / 64.0,
        rounds_per_visit: 1.0,
        cpu_ns_per_visit: machine.search.branch_free_node_ns * 1.5,
    };
    let mut nodes = (len as f64 / 16.0).ceil();
    let mut levels = vec![level(nodes, 192.0)];
    while nodes > 1.0 {
        nodes = (nodes / 17.0).ceil();
        levels.insert(0, level(nodes, 128.0));
    }
    predict_levels(&levels, PageSize::Huge2M, machine)
}

/// All five structures; the first is the tree as allocated.
fn build(keys: &[u64], machine: &Machine) -> Result<[Row; 5], MorphError> {
    let malloc = grow(keys, |_, node| Box::new(node));
    // The empty link lies inside the parent, so it is as good a hint as the parent.
    let hinted = |link: &_, node| ccmalloc::near(link, || Box::new(node));
    let hinted = with_ccmalloc(true, || grow(keys, hinted));
    let mut morphed = with_ccmalloc(true, || grow(keys, |_, node| Box::new(node)));
    let morph = Morph::new().machine(machine);
    let report = with_ccmalloc(true, || morph.run(&mut morphed, Node::children))?;
    let pages = if report.huge_pages {
        PageSize::Huge2M
    } else {
        PageSize::Small4K
    };
    println!("ccmorph: {report}\n");

    let entries = || keys.iter().map(|&key| (key, position(key)));
    let frozen: FrozenCTreeMap<u64, u32> = entries().collect();
    let frozen_bytes = frozen.memory_usage();
    let predicted = Some(predict_frozen(frozen.len(), machine));
    let in_frozen = move |key| frozen.get(&key).copied();
    let before = system_bytes();
    let mut std = BTreeMap::new();
    std.extend(entries());
    let std_bytes = system_bytes() - before;
    let in_std = move |key| std.get(&key).copied();
    Ok([
        Row::tree("malloc", malloc, machine, PageSize::Small4K)?,
        Row::tree("hinted", hinted, machine, PageSize::Huge2M)?,
        Row::tree("morphed", morphed, machine, pages)?,
        Row::new("ctree", in_frozen, predicted, frozen_bytes),
        Row::new("btreemap", in_std, None, std_bytes),
    ])
}

/// What was measured and predicted of one structure, in nanoseconds a lookup.
struct Figures {
    layout: &'static str,
    /// What each round took, sorted.
    rounds: Vec<f64>,
    /// The least and the most that is predicted.
    band: (f64, f64),
}

/// Says which layout to use, unless the tree is small, the rounds spread, or a measurement lies
/// outside of its prediction. The first figures are those of the tree as allocated.
fn advice(nodes: usize, figures: &[Figures]) -> String {
    if nodes < 1 << 16 {
        return format!(
            "No recommendation: {nodes} nodes fit in caches, where layouts gain little. \
             Try a text of 65536 characters or more."
        );
    }
    for of in figures.iter().filter(|of| of.layout != "btreemap") {
        let (layout, rounds, (low, high)) = (of.layout, &of.rounds, of.band);
        // One round at each end may be anything.
        let (ns, spread) = (median(rounds), rounds[rounds.len() - 2] / rounds[1]);
        let why = if spread > 1.3 {
            format!(
                "rounds of `{layout}` differ by a factor of {spread:.1}, so something else used \
                 the machine"
            )
        } else if !(low..=high).contains(&ns) {
            format!(
                "`{layout}` took {ns:.0} ns where {low:.0} to {high:.0} are predicted, so one of \
                 the two is wrong"
            )
        } else {
            continue;
        };
        return format!("No recommendation: {why}. Try again when the machine is idle.");
    }
    let clause = |of: &Figures| {
        let what = match of.layout {
            "ctree" => "keep what is built once in a `ctree::FrozenCTreeMap`",
            "morphed" => "call `ccmorph(&mut root, Node::children)` on a tree once it is built",
            "hinted" => "allocate each node inside `ccmalloc::near(&parent, ..)` while it grows",
            _ => return None,
        };
        let gain = median(&figures[0].rounds) / median(&of.rounds);
        (gain >= WORTHWHILE_SPEEDUP).then(|| format!("{what} ({gain:.1}x)"))
    };
    // The best first.
    let clauses: Vec<String> = figures.iter().rev().filter_map(clause).collect();
    if clauses.is_empty() {
        return "No layout gains more than predictions err: leave the tree as it is.".to_owned();
    }
    format!("With a structure like this one, {}.", clauses.join(", or "))
}

/// Looks up the same keys in all structures.
fn measure(rows: &[Row], keys: &[u64]) -> Vec<Figures> {
    let mut rng = fastrand::Rng::with_seed(2);
    let mut query = || keys[rng.usize(..keys.len())];
    let queries: Vec<[u64; 2]> = (0..LOOKUPS).map(|_| [query(), query()]).collect();
    let passes: Vec<_> = rows.iter().map(|row| || (row.pass)(&queries)).collect();
    let times = time_in_turns(ROUNDS, &passes);
    let figures = rows.iter().zip(times).map(|(row, seconds)| {
        let band = row
            .prediction
            .as_ref()
            .map(|prediction| (prediction.ns_low, prediction.ns_high));
        Figures {
            layout: row.layout,
            rounds: seconds
                .iter()
                .map(|seconds| seconds * 1e9 / LOOKUPS as f64)
                .collect(),
            band: band.unwrap_or((0.0, f64::INFINITY)),
        }
    });
    figures.collect()
}

fn print(rows: &[Row], figures: &[Figures], nodes: usize) {
    println!("| layout | ns measured | ns predicted | misses predicted | speedup | B a node |");
    println!("|---|---:|---:|---|---:|---:|");
    for (row, of) in rows.iter().zip(figures) {
        let (mut predicted, mut misses) = (String::new(), Vec::new());
        if let Some(prediction) = &row.prediction {
            predicted = format!("{:.0}", prediction.ns);
            let levels = prediction.levels.iter();
            misses.extend(levels.map(|level| format!("{} {:.1}", level.name, level.misses)));
        }
        let (layout, ns, misses) = (row.layout, median(&of.rounds), misses.join(", "));
        let speedup = median(&figures[0].rounds) / ns;
        let bytes = row.bytes as f64 / nodes as f64;
        println!("| {layout} | {ns:.0} | {predicted} | {misses} | {speedup:.2}x | {bytes:.1} |");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let names = ('\0'..=char::MAX).filter_map(unicode_names2::name);
    let text: String = match args.next() {
        None => names.map(|name| format!("{name}\n")).collect(),
        Some(path) => std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?,
    };
    let nodes = args.next().map_or(Ok(1 << 21), |nodes| nodes.parse())?;
    if !(2..1 << 30).contains(&text.len()) || nodes == 0 {
        return Err("a text of 2 B to 1 GiB is needed, and a node".into());
    }
    let mut rng = fastrand::Rng::with_seed(1);
    let mut positions = rng.choose_multiple(0..text.len(), nodes);
    rng.shuffle(&mut positions);
    let keys: Vec<u64> = positions
        .iter()
        .map(|&at| key(text.as_bytes(), at))
        .collect();

    let machine = Machine::calibrate(CalibrateOptions::quick());
    println!(
        "{} of {} positions as nodes of 24 B, on {}. Lookups of a phrase of 4 bytes, each\n\
         chosen by the answer before: median of {ROUNDS} rounds of {LOOKUPS}.\n",
        keys.len(),
        text.len(),
        machine.name
    );
    let rows = build(&keys, &machine)?;
    let figures = measure(&rows, &keys);
    print(&rows, &figures, keys.len());
    println!("\n{}", advice(keys.len(), &figures));
    Ok(())
}

// The trial of the verdict stands with those of the other findings.
#[cfg(test)]
#[path = "../tests/trials/quickstart_verdict.rs"]
mod verdict;
