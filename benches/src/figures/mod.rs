//! The thesis's figures 2-6 and 2-7, measured on this machine and simulated for the thesis's.
//!
//! T. Chilimbi, *Cache-Conscious Data Structures* (1999), describes them without their plotted
//! points in sections 2.2.3 and 2.3. `docs/inside/ctree.md` has the results.

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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The clock of this machine.
    Measured,
    /// The thesis's machine, simulated: cycles of memory, without instructions and TLB misses.
    Simulated,
}

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    figure: &'static str,
    pub kind: Kind,
    pub structure: &'static str,
    keys: usize,
    node_bytes: usize,
    /// From cold caches on.
    searches: u64,
    /// Nanoseconds of an average search: the median over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns: Option<f64>,
    #[serde(flatten)]
    cost: Option<SearchCost>,
    runs: usize,
}

impl Row {
    /// What is plotted: nanoseconds or cycles.
    pub fn height(&self) -> f64 {
        let cycles = self.cost.map_or(f64::NAN, |cost| cost.cycles);
        self.ns.unwrap_or(cycles)
    }
}

#[derive(Clone, Debug)]
pub struct Effort {
    pub searches_max: u64,
    pub long_runs: usize,
    /// Runs of up to a thousand searches.
    pub short_runs: usize,
    /// Numbers of keys of figure 2-6; the first is the thesis's.
    pub node_size_keys: [usize; 2],
    /// Those of figure 2-7, each one less than a power of two.
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

pub type Rows = Result<Vec<Row>, Box<dyn Error>>;

pub type Make = fn(&Effort) -> Rows;

pub const FIGURES: [(&str, Make); 2] = [("2-6", node_sizes), ("2-7", searches)];

/// The rows of one figure for one number of keys.
struct Points<'a> {
    figure: &'static str,
    keys: usize,
    seed: u64,
    checkpoints: Vec<u64>,
    effort: &'a Effort,
    rows: &'a mut Vec<Row>,
}

impl Points<'_> {
    fn row(&self, structure: &'static str, node_bytes: usize, searches: u64) -> Row {
        Row {
            figure: self.figure,
            kind: Kind::Simulated,
            structure,
            keys: self.keys,
            node_bytes,
            searches,
            ns: None,
            cost: None,
            runs: 1,
        }
    }

    fn measure(&mut self, subjects: &[Searched]) -> std::io::Result<()> {
        eprintln!("figures: figure {}, {} keys", self.figure, self.keys);
        let runs = (self.effort.long_runs, self.effort.short_runs);
        let times = measure(subjects, (self.keys, self.seed), &self.checkpoints, runs)?;
        for (subject, times) in subjects.iter().zip(times) {
            for (&searches, times) in self.checkpoints.iter().zip(times) {
                let row = self.row(subject.structure, subject.node_bytes, searches);
                self.rows.push(Row {
                    kind: Kind::Measured,
                    ns: Some(median(&times)),
                    runs: times.len(),
                    ..row
                });
            }
        }
        Ok(())
    }

    /// Adds costs on the thesis's machine, where `search` reads what a search for a key reads.
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
            let cost = Some(machine.cost_of_each(checkpoint));
            let row = self.row(structure, node_bytes, checkpoint);
            self.rows.push(Row { cost, ..row });
        }
    }

    fn simulate_b_tree(&mut self, structure: &'static str, tree: &InCoreBTree<u32>) {
        self.simulate(structure, tree.node_bytes, |key, machine| {
            let key = u32::try_from(key).expect("keys are few enough");
            let found = tree.get_watched(key, |offset| machine.read(offset as u64));
            assert_eq!(found, Some(&key), "a tree has its keys");
        });
    }
}

/// The B-tree of the numbers below `keys`, inserted in random order. Fails as [`InCoreBTree::new`].
pub fn b_tree<W: Word>(
    node_bytes: usize,
    keys: usize,
    colouring: Option<Colouring>,
) -> Result<InCoreBTree<W>, ColourError> {
    let mut order: Vec<usize> = (0..keys).collect();
    Rng::new(26).shuffle(&mut order);
    InCoreBTree::new(node_bytes, order.into_iter(), colouring)
}

/// Figure 2-6: the time of a random search in an in-core B-tree against the size of its nodes. The
/// thesis's 32,767 keys fit a cache today, so a larger tree is searched too.
fn node_sizes(effort: &Effort) -> Rows {
    const SIZES: [usize; 15] = [
        32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 384, 512, 1024, 2048, 4096,
    ];
    let structure = "B-tree";
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
        for node_bytes in SIZES {
            let tree = b_tree(node_bytes, keys, None)?;
            points.simulate_b_tree(structure, &tree);
            subjects.push(Searched::b_tree(structure, tree));
        }
        points.measure(&subjects)?;
    }
    Ok(rows)
}

/// The thesis's own (section 2.2.3): a search tree in clusters of 64 B, its top in half a cache.
const C_TREE: &str = "C-tree";
/// The thesis's rival: nodes of 96 B, half of the first cache for the top.
const COLOURED_B_TREE: &str = "coloured B-tree";
const B_TREE_NODE_BYTES: usize = 96;
/// The share of a cache that is for the top of a tree: the thesis's (section 3.2.1).
const HOT_SHARE: f64 = 0.5;
const CLUSTERS: Layout = Layout::SubtreeCluster { block_bytes: 64 };

const BINARY_TREES: [(&str, Layout); 4] = [
    ("random binary tree", Layout::Random { seed: 27 }),
    ("depth-first binary tree", Layout::DepthFirst),
    (C_TREE, CLUSTERS),
    ("C-tree without colours", CLUSTERS),
];

/// Figure 2-7: the average time of a random search against the number of searches from cold caches.
fn searches(effort: &Effort) -> Rows {
    let mut rows = Vec::new();
    let checkpoints = (1..).map(|power| 10_u64.pow(power));
    let checkpoints = checkpoints.take_while(|&count| count <= effort.searches_max);
    let checkpoints: Vec<u64> = checkpoints.collect();
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
/// allocates the nodes in the order of the keys, and a morph lays them out in `layout`, or as the
/// model chooses; half of the first-level cache is for the top of a coloured tree.
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

fn subjects(keys: usize) -> Result<Vec<Searched>, Box<dyn Error>> {
    let (mut subjects, mut colouring) = (Vec::new(), None);
    let layouts = BINARY_TREES.map(|(structure, layout)| (structure, Some(layout)));
    let auto = ("binary tree as the model lays it out", None);
    for (structure, layout) in layouts.into_iter().chain([auto]) {
        let (tree, report) = binary_tree(keys, layout, structure == C_TREE)?;
        if layout.is_none() {
            let chosen = report.layout;
            eprintln!("figures: the model lays {keys} nodes out as {chosen}");
        }
        colouring = colouring.or(report.colour.map(|colour| colour.colouring));
        subjects.push(Searched::binary(structure, tree));
    }
    let colouring = Some(colouring.ok_or("the C-tree has no colours")?);
    // Larger nodes suit today's memory better.
    let larger = ("coloured B-tree, 512 B nodes", 512);
    for (structure, node_bytes) in [(COLOURED_B_TREE, B_TREE_NODE_BYTES), larger] {
        let tree: InCoreBTree<u64> = b_tree(node_bytes, keys, colouring)?;
        subjects.push(Searched::b_tree(structure, tree));
    }
    Ok(subjects)
}

/// The thesis's node: the key, two links, and two words that a search does not read.
const THESIS_NODE: NodeExtent = NodeExtent {
    bytes: 20,
    align: 4,
};
const LINK_WORD: u64 = 4;

/// Adds costs on the thesis's machine. The colours are those of its second cache.
fn simulate_searches(points: &mut Points<'_>) -> Result<(), Box<dyn Error>> {
    let keys = points.keys;
    eprintln!("figures: figure 2-7, {keys} keys on the thesis's machine");
    let shape = Shape::complete_binary(u32::try_from(keys)?);
    let colouring = Colouring::new(CacheGeometry::new(16_384, 64, 1)?, HOT_SHARE)?;
    for (structure, layout) in BINARY_TREES {
        let placement = match structure {
            C_TREE => {
                colouring
                    .place(&shape, THESIS_NODE, layout, None)?
                    .placement
            }
            _ => layout.place(&shape, THESIS_NODE),
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
