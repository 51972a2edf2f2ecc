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
//! | binary tree as the model lays it out | the same | the model's choice |
//!
//! The C-tree is the thesis's (section 2.2.3): an ordinary search tree whose nodes a morph lays
//! out, those of a subtree in one block and the top of the tree where nothing evicts it.
//!
//! On the simulated machine nodes have 20 B, three to a block of 64 B, the B-tree's words have 4 B,
//! and the colours are those of its second cache, half of it for the top, as the thesis has it.

use ccmodel::{
    CacheGeometry, Colouring, Layout, Machine, NodeExtent, PageSize, Placement, Predictor, Shape,
};
use ccmorph::{Morph, MorphError, Report, TreeNode as _};

use super::btree::InCoreBTree;
use super::chain::{Chain, Searched, thread_ns};
use super::cold::Cold;
use super::node_size::b_tree;
use super::thesis::{SearchCost, ThesisMachine};
use super::{Effort, Kind, Row, progress};
use crate::search_tree::{Node, Tree};
use crate::source::{Source, allocate_from};
use crate::timing::median;

/// Its name in rows.
pub const FIGURE: &str = "2-7";
/// Runs of at most this many searches are repeated more often.
pub const SHORT: u64 = 1000;

pub(super) const RANDOM: &str = "random binary tree";
pub(super) const DEPTH_FIRST: &str = "depth-first binary tree";
/// The thesis's rival.
pub(super) const COLOURED_B_TREE: &str = "coloured B-tree";
pub(super) const LARGE_B_TREE: &str = "coloured B-tree, 512 B nodes";
/// The thesis's own.
pub(super) const C_TREE: &str = "C-tree";
pub(super) const UNCOLOURED: &str = "C-tree without colours";
pub(super) const AUTO: &str = "binary tree as the model lays it out";

const B_TREE_NODE_BYTES: usize = 96;
const LARGE_B_TREE_NODE_BYTES: usize = 512;
/// The share of a cache that is for the top of a tree: the thesis's (section 3.2.1).
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

/// The balanced tree of the numbers below `keys`, each with itself as its value, whose nodes are
/// allocated by `CcMalloc` in the order of the keys and laid out in `layout`; the coloured ones
/// have half of the first-level cache for the top of the tree.
///
/// # Errors
/// Those of [`Morph::run`].
pub fn binary_tree(
    keys: usize,
    layout: Option<Layout>,
    coloured: bool,
) -> Result<(Tree<u64>, Report), MorphError> {
    fn balanced(low: u64, high: u64) -> Option<Box<Node<u64>>> {
        let key = low + high.checked_sub(low + 1)? / 2;
        let left = balanced(low, key);
        let mut node = Box::new(Node::leaf(key, key));
        (node.left, node.right) = (left, balanced(key + 1, high));
        Some(node)
    }
    allocate_from(Source::CcMalloc, || {
        let root = balanced(0, keys as u64);
        let mut tree = Tree { root };
        let morph = Morph::new().layout(layout);
        let morph = if coloured {
            morph.colour(HOT_SHARE)
        } else {
            morph
        };
        let report = morph.run(&mut tree.root, Node::children)?;
        Ok((tree, report))
    })
}

/// What is searched on this machine.
struct Subject {
    structure: &'static str,
    node_bytes: usize,
    searched: Box<dyn Searched>,
}

fn subjects(keys: usize) -> Result<Vec<Subject>, Failure> {
    let mut subjects = Vec::new();
    let mut colouring = None;
    for (structure, layout, coloured) in [
        (RANDOM, RANDOM_ORDER.into(), false),
        (DEPTH_FIRST, Layout::DepthFirst.into(), false),
        (C_TREE, CLUSTERS.into(), true),
        (UNCOLOURED, CLUSTERS.into(), false),
        (AUTO, None, false),
    ] {
        let (tree, report) = binary_tree(keys, layout, coloured)?;
        if structure == AUTO {
            progress(&format!(
                "the model lays {keys} nodes out as {}",
                report.layout
            ));
        }
        colouring = colouring.or(report.colour.map(|colour| colour.colouring));
        subjects.push(Subject {
            structure,
            node_bytes: size_of::<Node<u64>>(),
            searched: Box::new(tree),
        });
    }
    let colouring = colouring.ok_or("the C-tree has no colours")?;
    for (at, structure, node_bytes) in [
        (2, COLOURED_B_TREE, B_TREE_NODE_BYTES),
        (3, LARGE_B_TREE, LARGE_B_TREE_NODE_BYTES),
    ] {
        let mut tree: InCoreBTree<u64> = b_tree(node_bytes, keys);
        tree.colour(colouring)?;
        let searched = Box::new(tree);
        subjects.insert(
            at,
            Subject {
                structure,
                node_bytes,
                searched,
            },
        );
    }
    Ok(subjects)
}

/// Searches from cold caches on. Returns nanoseconds of each search up to each of `checkpoints`.
fn timed(searched: &dyn Searched, mut chain: Chain, checkpoints: &[u64]) -> (Vec<f64>, Chain) {
    let (mut times, mut done, mut ns) = (Vec::new(), 0, 0.0);
    for &checkpoint in checkpoints {
        let start = thread_ns();
        chain = searched.follow(chain, checkpoint - done);
        ns += thread_ns() - start;
        done = checkpoint;
        times.push(ns / checkpoint as f64);
    }
    (times, chain)
}

/// Runs of `checkpoints` on all subjects in turns, each from cold caches on. Returns the medians
/// for each subject. Few searches are flushed one by one, many with the whole structure.
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
                    .for_each(|key| searched.flush_path(key, cold));
            }
        }
    }
    let medians = |times: Vec<Vec<f64>>| times.iter().map(|times| median(times)).collect();
    times.into_iter().map(medians).collect()
}

/// Adds what the clock says.
fn measure(keys: usize, effort: &Effort, rows: &mut Vec<Row>) -> Result<(), Failure> {
    progress(&format!("figure 2-7, {keys} keys: building"));
    let subjects = subjects(keys)?;
    let cold = Cold::new()?;
    let all = checkpoints(effort.searches_max);
    let short = checkpoints(effort.searches_max.min(SHORT));
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

/// Size of the thesis's node, three to a block: the key, the left link, the right link, and two
/// words that a search does not read.
const THESIS_NODE: NodeExtent = NodeExtent {
    bytes: 20,
    align: 4,
};
const KEY_WORD: u64 = 0;
const LINK_WORD: u64 = 4;

/// Adds what the thesis's machine would do, by simulation and by the model.
fn simulate(keys: usize, effort: &Effort, rows: &mut Vec<Row>) -> Result<(), Failure> {
    progress(&format!("figure 2-7, {keys} keys on the thesis's machine"));
    let shape = Shape::complete_binary(u32::try_from(keys)?);
    let predictor = Predictor::new(&shape);
    let machine = Machine::thesis();
    let colouring = Colouring::new(CacheGeometry::new(16_384, 64, 1)?, HOT_SHARE)?;
    let checkpoints = checkpoints(effort.searches_max);
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
    for (structure, layout) in [
        (RANDOM, RANDOM_ORDER),
        (DEPTH_FIRST, Layout::DepthFirst),
        (C_TREE, CLUSTERS),
        (UNCOLOURED, CLUSTERS),
    ] {
        let pages = PageSize::Small4K;
        let (prediction, offsets): (_, Placement) = if structure == C_TREE {
            let coloured = colouring.place(&shape, THESIS_NODE, layout, None)?;
            let prediction = coloured.predict(&predictor, THESIS_NODE, pages, &machine, "L2")?;
            (prediction, coloured.placement().clone())
        } else {
            let placement = layout.place(&shape, THESIS_NODE);
            let prediction = predictor.predict(&placement, THESIS_NODE, pages, &machine);
            (prediction, placement)
        };
        let costs = simulated(keys, &checkpoints, |key, machine| {
            search_complete_tree(keys, key, |node, link| {
                let address = offsets.offset(node);
                machine.read(address + KEY_WORD);
                if let Some(link) = link {
                    machine.read(address + LINK_WORD + 4 * u64::from(link));
                }
            });
        });
        rows.extend(checkpoints.iter().zip(costs).map(|(&searches, cost)| {
            row(structure, Kind::Simulated, node_bytes, Some(searches), cost)
        }));
        let misses = |level| prediction.misses(level).unwrap_or(f64::NAN);
        let cost = SearchCost::of_memory(prediction.nodes_visited, misses("L1"), misses("L2"));
        rows.push(row(structure, Kind::Model, node_bytes, None, cost));
    }

    let mut tree: InCoreBTree<u32> = b_tree(B_TREE_NODE_BYTES, keys);
    tree.colour(colouring)?;
    let costs = simulated(keys, &checkpoints, |key, machine| {
        let key = u32::try_from(key).unwrap_or(u32::MAX);
        let found = tree.get_watched(key, |offset| machine.read(offset as u64));
        assert_eq!(found, Some(&key), "a tree has its keys");
    });
    rows.extend(checkpoints.iter().zip(costs).map(|(&searches, cost)| {
        let (structure, node_bytes) = (COLOURED_B_TREE, B_TREE_NODE_BYTES);
        row(structure, Kind::Simulated, node_bytes, Some(searches), cost)
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
        for _ in done..checkpoint {
            search(queries.next().expect("there are many"), &mut machine);
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
