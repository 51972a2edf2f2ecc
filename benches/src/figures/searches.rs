//! Figure 2-7: what a random search takes on average, against the number of searches since the
//! caches were cold.
//!
//! The thesis: 2,097,151 keys in 40 MB, forty times its second cache, one to a million searches.
//! Here the same number of keys, in nodes with links of 8 B, and a tree that is four times as
//! large. The first searches miss at each level; later ones find the top of the tree cached, the
//! more of it the better the layout packs it.
//!
//! | structure | nodes | where they lie |
//! |---|---|---|
//! | random binary tree | 32 B: key, value, two links | in random order |
//! | depth-first binary tree | the same | depth-first, one behind the other |
//! | coloured B-tree | 96 B | half of the first cache for the top |
//! | coloured B-tree, 512 B nodes | 512 B | the same; the size that suits today's memory better |
//! | C-tree | as the binary trees | clusters of 64 B, half of the first cache for the top |
//! | C-tree without colours | the same | in clusters of 64 B |
//! | binary tree as the model lays it out | the same | [`LayoutChoice::Auto`] |
//!
//! On the simulated machine nodes have 20 B, three to a block of 64 B, the B-tree's words have 4 B,
//! and the colours are those of its second cache, half of it for the top, as the thesis has it.

use ccmodel::{
    CacheGeometry, Coloured, Colouring, Layout, Machine, NodeExtent, PageSize, Placement,
    Prediction, Predictor, Shape,
};
use ccmorph::LayoutChoice;

use super::btree::InCoreBTree;
use super::c_tree::CTree;
use super::chain::{Chain, Searched};
use super::clock::Clock;
use super::cold::Cold;
use super::node_size::b_tree;
use super::thesis::{SearchCost, ThesisMachine};
use super::{Effort, Kind, Row, progress};
use crate::timing::median;

/// Its name in rows.
pub const FIGURE: &str = "2-7";
/// Runs of at most so many searches are repeated more often.
pub const SHORT: u64 = 1000;

/// Names of what is searched.
pub const RANDOM: &str = "random binary tree";
/// Depth-first order.
pub const DEPTH_FIRST: &str = "depth-first binary tree";
/// The thesis's rival.
pub const COLOURED_B_TREE: &str = "coloured B-tree";
/// The same, with larger nodes.
pub const LARGE_B_TREE: &str = "coloured B-tree, 512 B nodes";
/// The thesis's own.
pub const C_TREE: &str = "C-tree";
/// The same without its colours.
pub const UNCOLOURED: &str = "C-tree without colours";
/// Any layout.
pub const AUTO: &str = "binary tree as the model lays it out";

const B_TREE_NODE_BYTES: usize = 96;
const LARGE_B_TREE_NODE_BYTES: usize = 512;
/// The share of a cache that is for the top of a tree: the thesis's.
const HOT_SHARE: f64 = 0.5;
const CLUSTERS: Layout = Layout::SubtreeCluster { block_bytes: 64 };
const RANDOM_ORDER: Layout = Layout::Random { seed: 27 };
const SEED: u64 = 27;

/// Why there is no figure.
type Failure = Box<dyn std::error::Error>;

/// 10, 100, ... searches.
fn checkpoints(most: u64) -> Vec<u64> {
    std::iter::successors(Some(10_u64), |count| count.checked_mul(10))
        .take_while(|&count| count <= most)
        .collect()
}

/// All points of the figure.
///
/// # Errors
/// When there is no memory, or a number of keys is not one less than a power of two.
///
/// # Panics
/// When a structure gives a wrong answer.
pub fn rows(effort: &Effort) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for &keys in &effort.search_keys {
        if !(keys + 1).is_power_of_two() || !(3..1 << 30).contains(&keys) {
            return Err(format!("{keys} keys are no complete tree: 2^k - 1 are").into());
        }
        measure(keys, effort, &mut rows)?;
    }
    let keys = effort.search_keys.first().copied().unwrap_or(3);
    simulate(keys, effort, &mut rows)?;
    Ok(rows)
}

/// What is searched on this machine.
struct Subject {
    structure: &'static str,
    node_bytes: usize,
    searched: Box<dyn Searched>,
}

/// The binary tree of the numbers below `keys` in a layout.
fn binary_tree(
    structure: &'static str,
    keys: usize,
    lay_out: impl FnOnce(&mut CTree) -> Result<ccmorph::Report, ccmorph::MorphError>,
) -> Result<(Subject, ccmorph::Report), Failure> {
    let mut tree = CTree::new(keys);
    let report = lay_out(&mut tree)?;
    let subject = Subject {
        structure,
        node_bytes: CTree::NODE_BYTES,
        searched: Box::new(tree),
    };
    Ok((subject, report))
}

/// A coloured B-tree of the numbers below `keys`.
fn coloured_b_tree(
    structure: &'static str,
    keys: usize,
    node_bytes: usize,
    colouring: Colouring,
) -> Result<Subject, Failure> {
    let mut tree: InCoreBTree<u64> = b_tree(node_bytes, keys);
    tree.colour(colouring)?;
    Ok(Subject {
        structure,
        node_bytes,
        searched: Box::new(tree),
    })
}

fn subjects(keys: usize) -> Result<Vec<Subject>, Failure> {
    let plain = |structure, layout: LayoutChoice| {
        binary_tree(structure, keys, |tree| tree.morph_with(layout))
    };
    let (c_tree, report) = binary_tree(C_TREE, keys, CTree::morph)?;
    let colouring = report.colour.ok_or("the C-tree has no colours")?.colouring;
    let auto = plain(AUTO, LayoutChoice::Auto)?;
    progress(&format!(
        "the model lays {keys} nodes out as {}",
        auto.1.layout
    ));
    Ok(vec![
        plain(RANDOM, RANDOM_ORDER.into())?.0,
        plain(DEPTH_FIRST, Layout::DepthFirst.into())?.0,
        coloured_b_tree(COLOURED_B_TREE, keys, B_TREE_NODE_BYTES, colouring)?,
        coloured_b_tree(LARGE_B_TREE, keys, LARGE_B_TREE_NODE_BYTES, colouring)?,
        c_tree,
        plain(UNCOLOURED, CLUSTERS.into())?.0,
        auto.0,
    ])
}

/// Searches from cold caches on. Returns nanoseconds of each search up to each of `checkpoints`.
fn timed(searched: &dyn Searched, mut chain: Chain, checkpoints: &[u64]) -> (Vec<f64>, Chain) {
    let (mut times, mut done, mut ns) = (Vec::new(), 0, 0.0);
    for &checkpoint in checkpoints {
        let clock = Clock::start();
        chain = searched.follow(chain, checkpoint - done);
        ns += clock.elapsed_ns();
        done = checkpoint;
        times.push(ns / checkpoint as f64);
    }
    (times, chain)
}

/// Runs of `checkpoints` on all subjects in turns, each after its `flush`. Returns the medians for
/// each subject.
fn medians(
    subjects: &[Subject],
    (keys, runs): (usize, usize),
    checkpoints: &[u64],
    cold: &Cold,
    flush_all: bool,
) -> Vec<Vec<f64>> {
    let searches = checkpoints.last().copied().unwrap_or(0);
    let mut times: Vec<Vec<Vec<f64>>> = vec![vec![Vec::new(); checkpoints.len()]; subjects.len()];
    for run in 0..runs {
        let begin = Chain::new(keys, SEED + run as u64);
        let mut end = None;
        for turn in 0..subjects.len() {
            let which = (run + turn) % subjects.len();
            let searched = &*subjects[which].searched;
            if flush_all || run == 0 {
                searched.flush(cold);
            }
            assert_eq!(cold.sweep(), 0, "the memory swept is zeroed");
            let (each, after) = timed(searched, begin, checkpoints);
            assert_eq!(*end.get_or_insert(after), after, "all answer alike");
            for (times, each) in times[which].iter_mut().zip(each) {
                times.push(each);
            }
            if !flush_all {
                begin
                    .known_keys(searches)
                    .for_each(|key| searched.flush_way(key, cold));
            }
        }
    }
    times
        .into_iter()
        .map(|times| times.iter().map(|times| median(times)).collect())
        .collect()
}

/// Adds what the clock says.
fn measure(keys: usize, effort: &Effort, rows: &mut Vec<Row>) -> Result<(), Failure> {
    progress(&format!("figure 2-7, {keys} keys: building"));
    let subjects = subjects(keys)?;
    let cold = Cold::new()?;
    let all = checkpoints(effort.searches_max);
    let short: Vec<u64> = all
        .iter()
        .copied()
        .filter(|&count| count <= SHORT)
        .collect();
    progress(&format!("figure 2-7, {keys} keys: few searches"));
    let few = medians(&subjects, (keys, effort.short_runs), &short, &cold, false);
    progress(&format!("figure 2-7, {keys} keys: many searches"));
    let many = medians(&subjects, (keys, effort.long_runs), &all, &cold, true);
    for ((subject, few), many) in subjects.iter().zip(&few).zip(&many) {
        for (index, &searches) in all.iter().enumerate() {
            let (ns, runs) = match few.get(index) {
                Some(&ns) => (ns, effort.short_runs),
                None => (many[index], effort.long_runs),
            };
            rows.push(Row {
                figure: FIGURE,
                kind: Kind::Measured,
                structure: subject.structure,
                keys,
                node_bytes: subject.node_bytes,
                searches: Some(searches),
                ns: Some(ns),
                cost: None,
                runs,
            });
        }
    }
    Ok(())
}

/// Size of the thesis's node, three to a block.
const THESIS_NODE: NodeExtent = NodeExtent {
    bytes: 20,
    align: 4,
};
/// Words of a node: the key, the left link, the right link, and two that a search does not read.
const KEY_WORD: u64 = 0;
const LINK_WORD: u64 = 4;

/// The cache that the thesis colours: sets, bytes of a block, ways.
fn thesis_colouring() -> Result<Colouring, Failure> {
    Ok(Colouring::new(
        CacheGeometry::new(16_384, 64, 1)?,
        HOT_SHARE,
    )?)
}

/// Where the nodes of the thesis's binary tree lie.
enum Places {
    Plain(Placement),
    Coloured(Box<Coloured>),
}

impl Places {
    fn placement(&self) -> &Placement {
        match self {
            Places::Plain(placement) => placement,
            Places::Coloured(coloured) => coloured.placement(),
        }
    }

    /// What the model says of a search in the steady state.
    fn predict(&self, predictor: &Predictor, machine: &Machine) -> Result<Prediction, Failure> {
        let pages = PageSize::Small4K;
        Ok(match self {
            Places::Plain(placement) => predictor.predict(placement, THESIS_NODE, pages, machine),
            Places::Coloured(coloured) => {
                coloured.predict(predictor, THESIS_NODE, pages, machine, "L2")?
            }
        })
    }
}

/// Adds what the thesis's machine would do, by simulation and by the model.
fn simulate(keys: usize, effort: &Effort, rows: &mut Vec<Row>) -> Result<(), Failure> {
    progress(&format!("figure 2-7, {keys} keys on the thesis's machine"));
    let nodes = u32::try_from(keys)?;
    let shape = Shape::complete_binary(nodes);
    let predictor = Predictor::new(&shape);
    let machine = Machine::thesis();
    let checkpoints = checkpoints(effort.searches_max);
    let plain = |layout: Layout| Places::Plain(layout.place(&shape, THESIS_NODE));
    let coloured = thesis_colouring()?.place(&shape, THESIS_NODE, CLUSTERS, None)?;
    let row = |structure, kind, node_bytes, searches, cost| Row {
        figure: FIGURE,
        kind,
        structure,
        keys,
        node_bytes,
        searches,
        ns: None,
        cost: Some(cost),
        runs: 1,
    };
    let node_bytes = THESIS_NODE.bytes as usize;
    for (structure, places) in [
        (RANDOM, plain(RANDOM_ORDER)),
        (DEPTH_FIRST, plain(Layout::DepthFirst)),
        (C_TREE, Places::Coloured(Box::new(coloured))),
        (UNCOLOURED, plain(CLUSTERS)),
    ] {
        let offsets = places.placement();
        let costs = simulated(keys, &checkpoints, |key, machine| {
            search_complete_tree(keys, key, |node, link| {
                let address = offsets.offset(node);
                machine.read(address + KEY_WORD);
                if let Some(link) = link {
                    machine.read(address + LINK_WORD + 4 * u64::from(link));
                }
            });
        });
        let simulated =
            |(&searches, cost)| row(structure, Kind::Simulated, node_bytes, Some(searches), cost);
        rows.extend(checkpoints.iter().zip(costs).map(simulated));

        let prediction = places.predict(&predictor, &machine)?;
        let misses = |level| prediction.misses(level).unwrap_or(f64::NAN);
        let cost = SearchCost::of_memory(prediction.nodes_visited, misses("L1"), misses("L2"));
        rows.push(row(structure, Kind::Model, node_bytes, None, cost));
    }

    let mut tree: InCoreBTree<u32> = b_tree(B_TREE_NODE_BYTES, keys);
    tree.colour(thesis_colouring()?)?;
    let costs = simulated(keys, &checkpoints, |key, machine| {
        let key = u32::try_from(key).unwrap_or(u32::MAX);
        let found = tree.get_watched(key, |offset| machine.read(offset as u64));
        assert_eq!(found, Some(&key), "a tree has its keys");
    });
    rows.extend(checkpoints.iter().zip(costs).map(|(&searches, cost)| {
        row(
            COLOURED_B_TREE,
            Kind::Simulated,
            B_TREE_NODE_BYTES,
            Some(searches),
            cost,
        )
    }));
    Ok(())
}

/// Costs of a search up to each checkpoint, `search` telling the machine what a search for a key
/// reads.
fn simulated(
    keys: usize,
    checkpoints: &[u64],
    mut search: impl FnMut(usize, &mut ThesisMachine),
) -> Vec<SearchCost> {
    let mut machine = ThesisMachine::cold();
    let mut queries = Chain::new(keys, SEED).known_keys(u64::MAX);
    let (mut costs, mut done) = (Vec::new(), 0);
    for &checkpoint in checkpoints {
        for key in queries
            .by_ref()
            .take(usize::try_from(checkpoint - done).unwrap_or(0))
        {
            search(key, &mut machine);
        }
        done = checkpoint;
        costs.push(machine.cost_of_each(checkpoint));
    }
    costs
}

/// The nodes that a search for `key` visits in a complete tree of the numbers below `keys`,
/// numbered breadth-first, with the side that it goes on to.
///
/// `keys + 1` is a power of two.
fn search_complete_tree(keys: usize, key: usize, mut visit: impl FnMut(u32, Option<bool>)) {
    let (mut node, mut low, mut high) = (0_u32, 0, keys);
    while low < high {
        let middle = (low + high) / 2;
        if key == middle {
            visit(node, None);
            return;
        }
        let is_right = key > middle;
        visit(node, Some(is_right));
        (low, high) = if is_right {
            (middle + 1, high)
        } else {
            (low, middle)
        };
        node = 2 * node + 1 + u32::from(is_right);
    }
}
