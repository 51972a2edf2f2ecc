//! Where should the nodes of a search tree over real text lie, and what does it gain?
//!
//! ```text
//! cargo run --release --example quickstart                    the names of all Unicode characters
//! cargo run --release --example quickstart -- FILE [NODES]    any UTF-8 text
//! ```
//!
//! The tree has a node for each sampled position of the text; a lookup asks where a phrase occurs
//! next. The same lookups go through five structures. The last line says which one to use, or why
//! the measurement does not say it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use ccmalloc::CcMalloc;
use ccmodel::{
    CalibrateOptions, Machine, NO_NODE, NodeExtent, PageSize, Placement, Prediction, Predictor,
    SearchLevel, SearchStyle, Shape, WORTHWHILE_SPEEDUP, predict_levels,
};
use ccmorph::{Morph, MorphError, TreeNode, map};
use ctree::FrozenCTreeMap;

const LOOKUPS: usize = 200_000;
const ROUNDS: usize = 7;

/// Serves objects from the system's malloc or from `CcMalloc`. Only this comparison needs both; a
/// program says `static GLOBAL: CcMalloc = CcMalloc::new();`.
struct Switch;

#[global_allocator]
static GLOBAL: Switch = Switch;
static USE_CCMALLOC: AtomicBool = AtomicBool::new(false);
static SYSTEM_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: both allocators keep the contract. The one that served an object frees it: `contains` is
// true for objects of `CcMalloc` and for no others.
unsafe impl GlobalAlloc for Switch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if USE_CCMALLOC.load(Relaxed) {
            // SAFETY: the caller keeps the contract of `alloc`.
            return unsafe { CcMalloc.alloc(layout) };
        }
        SYSTEM_BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if ccmalloc::contains(ptr) {
            // SAFETY: `CcMalloc` served it; the caller keeps the contract of `dealloc`.
            return unsafe { CcMalloc.dealloc(ptr, layout) };
        }
        SYSTEM_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the system served it.
        unsafe { System.dealloc(ptr, layout) }
    }
}

/// Runs `f` with new objects from `CcMalloc`.
fn with_ccmalloc<R>(f: impl FnOnce() -> R) -> R {
    USE_CCMALLOC.store(true, Relaxed);
    let result = f();
    USE_CCMALLOC.store(false, Relaxed);
    result
}

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
            link = match key < node.key {
                true => &mut node.left,
                false => &mut node.right,
            };
        }
        let (left, right) = (None, None);
        *link = Some(allocate(link, Node { key, left, right }));
    }
    root
}

/// The smallest key that is not below `key`.
fn lower_bound(root: &Root, key: u64) -> Option<u64> {
    let (mut link, mut found) = (root, None);
    while let Some(node) = link {
        if key <= node.key {
            found = Some(&**node);
        }
        link = match key {
            _ if key == node.key => break,
            _ if key < node.key => &node.left,
            _ => &node.right,
        };
    }
    // `black_box`: the answer must come from the node, or lookups do not wait for each other.
    found.map(|node| black_box(node).key)
}

/// Keys in the order of a text: the bytes that follow a position, as many as fit, then the position
/// in this number of bits.
#[derive(Clone, Copy)]
struct Format(u32);

impl Format {
    fn phrase_bytes(self) -> usize {
        ((u64::BITS - self.0) / 8) as usize
    }

    fn key(self, text: &str, position: usize) -> u64 {
        let bytes = text.as_bytes()[position..].iter();
        let phrase = bytes.chain(std::iter::repeat(&0)).take(self.phrase_bytes());
        phrase.fold(0, |phrase, &byte| phrase << 8 | u64::from(byte)) << self.0 | position as u64
    }

    #[expect(clippy::cast_possible_truncation, reason = "texts are below 1 GiB")]
    fn position(self, key: u64) -> u32 {
        key as u32 & ((1 << self.0) - 1)
    }

    /// The position in `found` if it has the phrase of `query`, `u32::MAX` otherwise.
    fn answer(self, query: u64, found: Option<u64>) -> u32 {
        let same = |found: &u64| (query ^ found) >> self.0 == 0;
        (found.filter(same)).map_or(u32::MAX, |found| self.position(found))
    }
}

/// Looks all queries up, each chosen by the answer before, and returns a sum over the answers.
fn follow(queries: &[[u64; 2]], lookup: impl Fn(u64) -> u32) -> u64 {
    let (mut sum, mut answer) = (0_u64, 0);
    for pair in queries {
        answer = lookup(pair[answer as usize & 1]);
        sum = sum.wrapping_mul(31).wrapping_add(u64::from(answer));
    }
    sum
}

type Pass = Box<dyn Fn(&[[u64; 2]]) -> u64>;

/// One structure of the table.
struct Row {
    figures: Figures,
    /// Looks all queries up and returns a sum over the answers.
    pass: Pass,
    prediction: Option<Prediction>,
    bytes: usize,
}

impl Row {
    fn new(
        layout: &'static str,
        lookup: impl Fn(u64) -> u32 + 'static,
        prediction: Option<Prediction>,
        bytes: usize,
    ) -> Row {
        let bounds = |of: &Prediction| (of.ns_low, of.ns_high);
        let band = prediction.as_ref().map_or((0.0, f64::INFINITY), bounds);
        Row {
            figures: Figures {
                layout,
                rounds: Vec::new(),
                band,
            },
            pass: Box::new(move |queries| follow(queries, &lookup)),
            prediction,
            bytes,
        }
    }

    /// A tree, predicted from the addresses of its nodes.
    fn tree(
        layout: &'static str,
        mut root: Root,
        format: Format,
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
        let lookup = move |key| format.answer(key, lower_bound(&root, key));
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
fn build(keys: &[u64], format: Format, machine: &Machine) -> Result<[Row; 5], MorphError> {
    let malloc = grow(keys, |_, node| Box::new(node));
    // The empty link lies inside the parent, so it is as good a hint as the parent.
    let hinted = |link: &_, node| ccmalloc::near(link, || Box::new(node));
    let hinted = with_ccmalloc(|| grow(keys, hinted));
    let (morphed, report) = with_ccmalloc(|| {
        let mut root = grow(keys, |_, node| Box::new(node));
        let report = Morph::new().machine(machine).run(&mut root, Node::children);
        (root, report)
    });
    let report = report?;
    let pages = match report.huge_pages {
        true => PageSize::Huge2M,
        false => PageSize::Small4K,
    };
    println!("ccmorph: {report}\n");

    let entries = || keys.iter().map(|&key| (key, format.position(key)));
    let frozen: FrozenCTreeMap<u64, u32> = entries().collect();
    let frozen_bytes = frozen.memory_usage();
    let in_frozen = move |key| match frozen.get(&key) {
        Some(&position) => position,
        None => {
            let next = frozen.get_index(frozen.rank(&key));
            format.answer(key, next.map(|(&key, _)| key))
        }
    };
    let before = SYSTEM_BYTES.load(Relaxed);
    let mut std = BTreeMap::new();
    std.extend(entries());
    let std_bytes = SYSTEM_BYTES.load(Relaxed) - before;
    let in_std = move |key| match std.get(&key) {
        Some(&position) => position,
        None => format.answer(key, std.range(key..).next().map(|(&key, _)| key)),
    };
    let predicted = Some(predict_frozen(keys.len(), machine));
    Ok([
        Row::tree("malloc", malloc, format, machine, PageSize::Small4K)?,
        Row::tree("hinted", hinted, format, machine, PageSize::Huge2M)?,
        Row::tree("morphed", morphed, format, machine, pages)?,
        Row::new("ctree", in_frozen, predicted, frozen_bytes),
        Row::new("btreemap", in_std, None, std_bytes),
    ])
}

/// What was measured and predicted of one structure, in nanoseconds a lookup.
struct Figures {
    layout: &'static str,
    /// What each round took.
    rounds: Vec<f64>,
    /// The least and the most that is predicted.
    band: (f64, f64),
}

impl Figures {
    /// The median, and how many times as long as the second shortest round the second longest took.
    fn median_and_spread(&self) -> (f64, f64) {
        let mut rounds = self.rounds.clone();
        rounds.sort_by(f64::total_cmp);
        let last = rounds.len() - 1;
        (rounds[last.div_ceil(2)], rounds[last - 1] / rounds[1])
    }

    fn median(&self) -> f64 {
        self.median_and_spread().0
    }
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
        let (layout, (median, spread), (low, high)) = (of.layout, of.median_and_spread(), of.band);
        let why = match () {
            () if spread > 1.3 => format!(
                "rounds of `{layout}` differ by a factor of {spread:.1}, so something else used \
                 the machine"
            ),
            () if !(low..=high).contains(&median) => format!(
                "`{layout}` took {median:.0} ns where {low:.0} to {high:.0} are predicted, so one \
                 of the two is wrong"
            ),
            () => continue,
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
        let gain = figures[0].median() / of.median();
        (gain >= WORTHWHILE_SPEEDUP).then(|| format!("{what} ({gain:.1}x)"))
    };
    // The best first.
    let clauses: Vec<String> = figures.iter().rev().filter_map(clause).collect();
    match clauses.is_empty() {
        true => "No layout gains more than predictions err: leave the tree as it is.".to_owned(),
        false => format!("With a structure like this one, {}.", clauses.join(", or ")),
    }
}

/// Times all structures in turns, so that noise of the machine falls on all of them.
fn measure(rows: &mut [Row], keys: &[u64]) {
    let mut rng = fastrand::Rng::with_seed(2);
    let mut query = || keys[rng.usize(..keys.len())];
    let queries: Vec<[u64; 2]> = (0..LOOKUPS).map(|_| [query(), query()]).collect();
    let expected = (rows[0].pass)(&queries);
    for round in 0..=ROUNDS {
        for row in rows.iter_mut() {
            let start = Instant::now();
            let sum = (row.pass)(&queries);
            let ns = start.elapsed().as_secs_f64() * 1e9 / LOOKUPS as f64;
            assert_eq!(sum, expected, "{} answers differently", row.figures.layout);
            // The first round fills the caches.
            if round > 0 {
                row.figures.rounds.push(ns);
            }
        }
    }
}

fn print(rows: &[Row], nodes: usize) {
    println!("| layout | ns measured | ns predicted | misses predicted | speedup | B a node |");
    println!("|---|---:|---:|---|---:|---:|");
    for row in rows {
        let (mut predicted, mut misses) = (String::new(), Vec::new());
        if let Some(prediction) = &row.prediction {
            predicted = format!("{:.0}", prediction.ns);
            let levels = prediction.levels.iter();
            misses.extend(levels.map(|level| format!("{} {:.1}", level.name, level.misses)));
        }
        let (layout, ns, misses) = (row.figures.layout, row.figures.median(), misses.join(", "));
        let (speedup, bytes) = (
            rows[0].figures.median() / ns,
            row.bytes as f64 / nodes as f64,
        );
        println!("| {layout} | {ns:.0} | {predicted} | {misses} | {speedup:.2}x | {bytes:.1} |");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let names = ('\0'..=char::MAX).filter_map(unicode_names2::name);
    let text = match args.next() {
        None => names.map(|name| format!("{name}\n")).collect(),
        Some(path) => std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?,
    };
    let nodes = args.next().map_or(Ok(1 << 21), |nodes| nodes.parse())?;
    if !(2..1 << 30).contains(&text.len()) || nodes == 0 {
        return Err("a text of 2 B to 1 GiB is needed, and a node".into());
    }
    let format = Format(usize::BITS - text.len().leading_zeros());
    let mut rng = fastrand::Rng::with_seed(1);
    let mut positions = rng.choose_multiple(0..text.len(), nodes);
    rng.shuffle(&mut positions);
    let keys: Vec<u64> = positions.iter().map(|&at| format.key(&text, at)).collect();

    let machine = Machine::calibrate(CalibrateOptions::quick());
    println!(
        "{} of {} positions as nodes of 24 B, on {}. Lookups of a phrase of {} bytes, each\n\
         chosen by the answer before: median of {ROUNDS} rounds of {LOOKUPS}.\n",
        keys.len(),
        text.len(),
        machine.name,
        format.phrase_bytes()
    );
    let mut rows = build(&keys, format, &machine)?;
    measure(&mut rows, &keys);
    print(&rows, keys.len());
    let figures = rows.map(|row| row.figures);
    println!("\n{}", advice(keys.len(), &figures));
    Ok(())
}

// The trial of the verdict stands with those of the other findings.
#[cfg(test)]
#[path = "../tests/trials/quickstart_verdict.rs"]
mod verdict;
