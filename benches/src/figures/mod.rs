//! The thesis's figures 2-6 and 2-7, measured on this machine and simulated for the thesis's.
//!
//! T. Chilimbi, *Cache-Conscious Data Structures* (1999), sections 2.2.3 and 2.3, describes the
//! figures without their plotted points. `docs/ctree-figures.md` has the results, and says why the
//! two machines differ. Each row says whether it was measured ([`Kind`]); each panel of a picture
//! is of one kind.

pub mod btree;
pub mod draw;
pub mod searched;
pub mod thesis;

use std::error::Error;

use ccmodel::{CacheGeometry, ColourError, Colouring, Layout, NodeExtent, Shape};
use ccmorph::{Morph, MorphError, Report, TreeNode as _};
use serde::Serialize;

use self::btree::{InCoreBTree, Word};
use self::searched::{Chain, Searched, measure};
use self::thesis::{SearchCost, ThesisMachine};
use crate::rivals::OURS;
use crate::rng::Rng;
use crate::search_tree::{Node, Tree};
use crate::source::allocate_from;
use crate::timing::median;

/// Where a row's numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The clock of this machine.
    Measured,
    /// The thesis's machine, simulated read by read: cycles of memory, without instructions and TLB
    /// misses.
    Simulated,
}

/// One point of a figure.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// `2-6` or `2-7`.
    pub figure: &'static str,
    /// Measured or not.
    pub kind: Kind,
    /// What is searched.
    pub structure: &'static str,
    /// The number of its keys.
    pub keys: usize,
    /// Bytes of a node.
    pub node_bytes: usize,
    /// The number of searches from cold caches on.
    pub searches: u64,
    /// Average nanoseconds of a search: the median over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns: Option<f64>,
    /// Its reads, misses and cycles.
    #[serde(flatten)]
    pub cost: Option<SearchCost>,
    /// The number of runs.
    pub runs: usize,
}

impl Row {
    /// What is plotted: nanoseconds where they were measured, cycles elsewhere.
    pub fn height(&self) -> f64 {
        let cycles = self.cost.map_or(f64::NAN, |cost| cost.cycles);
        self.ns.unwrap_or(cycles)
    }
}

/// How much is done.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The most searches of one run.
    pub searches_max: u64,
    /// Runs of many searches.
    pub long_runs: usize,
    /// Runs of up to a thousand searches.
    pub short_runs: usize,
    /// Numbers of keys of figure 2-6; the first is the thesis's.
    pub node_size_keys: [usize; 2],
    /// Numbers of keys of figure 2-7, each one less than a power of two; the first is the thesis's.
    pub search_keys: Vec<usize>,
}

impl Effort {
    /// As in the thesis, and larger: some minutes.
    pub fn full() -> Effort {
        Effort {
            searches_max: 1_000_000,
            long_runs: 5,
            short_runs: 50,
            node_size_keys: [32_767, 2_097_151],
            search_keys: vec![2_097_151, 8_388_607],
        }
    }

    /// Seconds, with figures that mean little.
    pub fn quick() -> Effort {
        Effort {
            searches_max: 10_000,
            long_runs: 3,
            short_runs: 5,
            node_size_keys: [4_095, 32_767],
            search_keys: vec![65_535, 131_071],
        }
    }
}

/// All points of a figure.
pub type Rows = Result<Vec<Row>, Box<dyn Error>>;

/// Makes a figure.
pub type Make = fn(&Effort) -> Rows;

/// The figures by name.
pub const FIGURES: [(&str, Make); 2] = [("2-6", node_sizes), ("2-7", searches)];

/// The rows of one figure for one number of keys.
struct Points<'a> {
    figure: &'static str,
    keys: usize,
    /// Of the searches.
    seed: u64,
    checkpoints: Vec<u64>,
    effort: &'a Effort,
    rows: &'a mut Vec<Row>,
}

impl Points<'_> {
    /// Adds times on this machine.
    fn measure(&mut self, subjects: &[Searched]) -> std::io::Result<()> {
        progress(&format!("figure {}, {} keys", self.figure, self.keys));
        let runs = (self.effort.long_runs, self.effort.short_runs);
        let times = measure(subjects, (self.keys, self.seed), &self.checkpoints, runs)?;
        for (subject, times) in subjects.iter().zip(times) {
            for (&searches, times) in self.checkpoints.iter().zip(times) {
                self.rows.push(Row {
                    figure: self.figure,
                    kind: Kind::Measured,
                    structure: subject.structure,
                    keys: self.keys,
                    node_bytes: subject.node_bytes,
                    searches,
                    ns: Some(median(&times)),
                    cost: None,
                    runs: times.len(),
                });
            }
        }
        Ok(())
    }

    /// Adds costs on the thesis's machine. `search` reads there what a search for a key reads.
    fn simulate(
        &mut self,
        structure: &'static str,
        node_bytes: usize,
        mut search: impl FnMut(usize, &mut ThesisMachine),
    ) {
        let mut machine = ThesisMachine::cold();
        let mut queries = Chain::new(self.keys, self.seed).known_keys();
        let mut done = 0;
        for &checkpoint in &self.checkpoints {
            for (_, key) in (done..checkpoint).zip(&mut queries) {
                search(key, &mut machine);
            }
            done = checkpoint;
            self.rows.push(Row {
                figure: self.figure,
                kind: Kind::Simulated,
                structure,
                keys: self.keys,
                node_bytes,
                searches: checkpoint,
                ns: None,
                cost: Some(machine.cost_of_each(checkpoint)),
                runs: 1,
            });
        }
    }

    fn simulate_b_tree(&mut self, structure: &'static str, tree: &InCoreBTree<u32>) {
        self.simulate(structure, tree.node_bytes(), |key, machine| {
            let key = u32::try_from(key).expect("keys are few enough");
            let found = tree.get_watched(key, |offset| machine.read(offset as u64));
            assert_eq!(found, Some(&key), "a tree has its keys");
        });
    }
}

/// The B-tree of the numbers below `keys`, inserted in random order.
///
/// # Errors
/// Those of [`Colouring::place`].
pub fn b_tree<W: Word>(
    node_bytes: usize,
    keys: usize,
    colouring: Option<Colouring>,
) -> Result<InCoreBTree<W>, ColourError> {
    let mut order: Vec<usize> = (0..keys).collect();
    Rng::new(26).shuffle(&mut order);
    InCoreBTree::new(node_bytes, order.into_iter(), colouring)
}

/// Figure 2-6: the time of a random search in an in-core B-tree against the size of its nodes.
///
/// The thesis: 32,767 keys, a million searches, and a minimum at nodes of 96 B where blocks have
/// 64. Words have 4 bytes here too. Today that tree fits a cache, so a larger one is searched too.
fn node_sizes(effort: &Effort) -> Rows {
    const B_TREE: &str = "B-tree";
    let mut rows = Vec::new();
    for keys in effort.node_size_keys {
        let mut points = Points {
            figure: "2-6",
            keys,
            seed: 26,
            checkpoints: vec![effort.searches_max],
            effort,
            rows: &mut rows,
        };
        let mut subjects = Vec::new();
        for node_bytes in [
            32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 384, 512, 1024, 2048, 4096,
        ] {
            let tree = b_tree(node_bytes, keys, None)?;
            points.simulate_b_tree(B_TREE, &tree);
            subjects.push(Searched::b_tree(B_TREE, tree));
        }
        points.measure(&subjects)?;
    }
    Ok(rows)
}

const RANDOM: &str = "random binary tree";
const DEPTH_FIRST: &str = "depth-first binary tree";
/// The thesis's rival: nodes of 96 B, half of the first cache for the top.
const COLOURED_B_TREE: &str = "coloured B-tree";
/// The size of nodes that suits today's memory better.
const LARGE_B_TREE: &str = "coloured B-tree, 512 B nodes";
/// The thesis's own (section 2.2.3): a search tree that a morph lays out in clusters of 64 B, half
/// of the first cache for the top.
const C_TREE: &str = "C-tree";
const UNCOLOURED: &str = "C-tree without colours";
const AUTO: &str = "binary tree as the model lays it out";

/// The share of a cache that is for the top of a tree: the thesis's (section 3.2.1).
const HOT_SHARE: f64 = 0.5;
const B_TREE_NODE_BYTES: usize = 96;
const CLUSTERS: Layout = Layout::SubtreeCluster { block_bytes: 64 };

/// Names and layouts of the binary trees.
const BINARY_TREES: [(&str, Layout); 4] = [
    (RANDOM, Layout::Random { seed: 27 }),
    (DEPTH_FIRST, Layout::DepthFirst),
    (C_TREE, CLUSTERS),
    (UNCOLOURED, CLUSTERS),
];

/// Figure 2-7: the average time of a random search against the number of searches since the caches
/// were cold.
///
/// The thesis: 2,097,151 keys in 40 MB, forty times its second cache, one to a million searches.
/// The first searches miss at each level; later ones find the top of the tree cached, and more of
/// it the better the layout packs it. Here binary trees have nodes of 32 B; one of them is four
/// times as large.
fn searches(effort: &Effort) -> Rows {
    let mut rows = Vec::new();
    let checkpoints = (1..).map(|power| 10_u64.pow(power));
    let checkpoints: Vec<u64> = checkpoints
        .take_while(|&count| count <= effort.searches_max)
        .collect();
    for (index, &keys) in effort.search_keys.iter().enumerate() {
        if !(keys + 1).is_power_of_two() || !(3..1 << 30).contains(&keys) {
            return Err(format!("{keys} keys are no complete tree: 2^k - 1 are").into());
        }
        let mut points = Points {
            figure: "2-7",
            keys,
            seed: 27,
            checkpoints: checkpoints.clone(),
            effort,
            rows: &mut rows,
        };
        points.measure(&subjects(keys)?)?;
        if index == 0 {
            simulate_searches(&mut points)?;
        }
    }
    Ok(rows)
}

/// The balanced tree of the numbers below `keys`, each with itself as its value. `CcMalloc`
/// allocates the nodes in the order of the keys, and a morph lays them out in `layout`; coloured
/// ones have half of the first-level cache for the top of the tree.
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
    allocate_from(&OURS, || {
        let root = balanced(0, keys as u64);
        let mut tree = Tree { root };
        let mut morph = Morph::new().layout(layout);
        if coloured {
            morph = morph.colour(HOT_SHARE);
        }
        let report = morph.run(&mut tree.root, Node::children)?;
        Ok((tree, report))
    })
}

/// The structures of figure 2-7 on this machine.
fn subjects(keys: usize) -> Result<Vec<Searched>, Box<dyn Error>> {
    let (mut subjects, mut colouring) = (Vec::new(), None);
    let layouts = BINARY_TREES.map(|(structure, layout)| (structure, Some(layout)));
    for (structure, layout) in layouts.into_iter().chain([(AUTO, None)]) {
        let (tree, report) = binary_tree(keys, layout, structure == C_TREE)?;
        if structure == AUTO {
            progress(&format!(
                "the model lays {keys} nodes out as {}",
                report.layout
            ));
        }
        colouring = colouring.or(report.colour.map(|colour| colour.colouring));
        subjects.push(Searched::binary(structure, tree));
    }
    let colouring = Some(colouring.ok_or("the C-tree has no colours")?);
    for (structure, node_bytes) in [(COLOURED_B_TREE, B_TREE_NODE_BYTES), (LARGE_B_TREE, 512)] {
        let tree: InCoreBTree<u64> = b_tree(node_bytes, keys, colouring)?;
        subjects.push(Searched::b_tree(structure, tree));
    }
    Ok(subjects)
}

/// The thesis's node, three to a block: the key, the left link, the right link, and two words that
/// a search does not read.
const THESIS_NODE: NodeExtent = NodeExtent {
    bytes: 20,
    align: 4,
};
const LINK_WORD: u64 = 4;

/// Adds the costs on the thesis's machine, by simulation. The colours are those of its second
/// cache.
fn simulate_searches(points: &mut Points<'_>) -> Result<(), Box<dyn Error>> {
    let keys = points.keys;
    progress(&format!("figure 2-7, {keys} keys on the thesis's machine"));
    let shape = Shape::complete_binary(u32::try_from(keys)?);
    let colouring = Colouring::new(CacheGeometry::new(16_384, 64, 1)?, HOT_SHARE)?;
    for (structure, layout) in BINARY_TREES {
        let placement = if structure == C_TREE {
            let coloured = colouring.place(&shape, THESIS_NODE, layout, None)?;
            coloured.placement
        } else {
            layout.place(&shape, THESIS_NODE)
        };
        let node_bytes = THESIS_NODE.bytes as usize;
        points.simulate(structure, node_bytes, |key, machine| {
            // Nodes have breadth-first numbers.
            let (mut node, mut low, mut high) = (0_u32, 0_usize, keys);
            loop {
                let (middle, address) = (low.midpoint(high), placement.offset(node));
                machine.read(address);
                if key == middle {
                    break;
                }
                let is_right = key > middle;
                machine.read(address + LINK_WORD + 4 * u64::from(is_right));
                (low, high) = match is_right {
                    true => (middle + 1, high),
                    false => (low, middle),
                };
                node = 2 * node + 1 + u32::from(is_right);
            }
        });
    }
    let tree = b_tree(B_TREE_NODE_BYTES, keys, Some(colouring))?;
    points.simulate_b_tree(COLOURED_B_TREE, &tree);
    Ok(())
}

/// Tells the user what is being done.
fn progress(what: &str) {
    eprintln!("figures: {what}");
}
