//! Other structures than complete trees, with other operations and keys than uniform searches.
//!
//! The machines have last levels of 4 to 8 MiB, so that structures of some MiB use all levels.
//! Direct-mapped caches are in [`steady`](super::steady).

use ccmodel::{
    Accesses, Growth, InNode, KeyDistribution, Layout, Links, Operation, Sizes, Structure,
};
use rayon::prelude::*;

use super::compare::{Compared, compare, row};
use super::{Effort, Row};
use crate::progress;
use crate::sample::{Precision, node, three_level_machines};

/// Streams of operations and random shapes are the same in every run.
const SEED: u64 = 0x5eed;
/// Levels that miss less often than this in an operation are not compared.
const RARE: f64 = 0.05;
const ALLOWED: f64 = 0.03;
const QUICK_KEYS: u32 = 1 << 16;

pub(super) struct Case {
    structure: Structure,
    keys: u32,
    node_bytes: u32,
    operation: Operation,
    distribution: KeyDistribution,
    layout: Layout,
}

impl Case {
    fn new(structure: Structure, keys: u32, node_bytes: u32, layout: Layout) -> Case {
        Case {
            structure,
            keys,
            node_bytes,
            operation: Operation::Search,
            distribution: KeyDistribution::Uniform,
            layout,
        }
    }

    fn doing(self, operation: Operation) -> Case {
        Case { operation, ..self }
    }

    fn name(&self) -> String {
        let (operation, keys, layout) = (self.operation, &self.distribution, self.layout);
        let (structure, count, bytes) = (self.structure, self.keys, self.node_bytes);
        format!("{structure:?} of {count} keys, {bytes} B, {layout}, {operation}, {keys}")
    }

    fn accesses(&self) -> Accesses {
        let (layout, operation, keys) = (self.layout, self.operation, &self.distribution);
        let built = self
            .structure
            .build(self.keys, &Sizes::of(node(self.node_bytes)));
        let accesses = built.and_then(|built| {
            let placement = match layout {
                Layout::Weighted => built.place_weighted(layout, operation, keys)?,
                _ => built.place(layout),
            };
            built.accesses(&placement, operation, keys)
        });
        match accesses {
            Ok(accesses) => accesses,
            Err(error) => panic!("{}: {error}", self.name()),
        }
    }
}

const RANDOM_GROWTH: Growth = Growth::RandomInsert { seed: SEED };

pub(super) fn rows(name: &'static str, cases: fn(Effort) -> Vec<Case>, effort: Effort) -> Vec<Row> {
    let precision = Precision {
        seed: SEED,
        batches_min: 16,
        batches_max: match effort {
            Effort::Quick => 20,
            Effort::Full => 120,
        },
        standard_error: 0.0025,
        rare: RARE,
    };
    let cases = cases(effort);
    let machines = three_level_machines([(8 << 20, 16), (4 << 20, 16), (4 << 20, 16)]);
    let compared = cases.par_iter().map(|case| {
        progress(&format!("{name}: {}", case.name()));
        compare(&case.name(), &case.accesses(), &machines, precision)
    });
    let compared: Vec<Vec<Compared>> = compared.collect();
    let levels = compared.iter().flatten();
    let frequent = levels.filter(|level| level.simulated >= RARE);
    vec![row(name, ALLOWED, frequent)]
}

/// As many of these cases as the effort is for: when quick, each `step`-th of the small ones.
fn some(cases: Vec<Case>, effort: Effort, step: usize) -> Vec<Case> {
    if effort == Effort::Full {
        return cases;
    }
    let small = cases.into_iter().filter(|case| case.keys <= QUICK_KEYS);
    small.step_by(step).collect()
}

const RANDOM: Layout = Layout::Random { seed: 2 };
const DFS: Layout = Layout::DepthFirst;
const VEB: Layout = Layout::VanEmdeBoas;
const RANDOM_TREE: Structure = Structure::SearchTree {
    growth: RANDOM_GROWTH,
};

pub(super) fn zipf(effort: Effort) -> Vec<Case> {
    let of = |exponent| KeyDistribution::Zipf {
        exponent,
        seed: SEED,
    };
    let hot = KeyDistribution::HotSet {
        keys_share: 0.1,
        operations_share: 0.9,
        seed: SEED,
    };
    let layouts = [VEB, RANDOM, Layout::Weighted, DFS];
    let mut cases = Vec::new();
    for (growth, keys) in [(RANDOM_GROWTH, 1 << 15), (Growth::Complete, (1 << 19) - 1)] {
        let tree = Structure::SearchTree { growth };
        for distribution in [of(0.99), of(0.7), of(1.3), hot.clone()] {
            cases.extend(layouts.map(|layout| Case {
                distribution: distribution.clone(),
                ..Case::new(tree, keys, 32, layout)
            }));
        }
    }
    some(cases, effort, 7)
}

pub(super) fn random_shapes(effort: Effort) -> Vec<Case> {
    let ternary = Structure::Tree {
        arity: 3,
        growth: RANDOM_GROWTH,
    };
    let mut cases = Vec::new();
    for keys in [1 << 15, 1 << 19] {
        let clusters = Layout::SubtreeCluster { block_bytes: 64 };
        for layout in [
            Layout::Hierarchical,
            RANDOM,
            Layout::BreadthFirst,
            DFS,
            clusters,
        ] {
            cases.push(Case::new(RANDOM_TREE, keys, 24, layout));
            cases.push(Case::new(RANDOM_TREE, keys, 24, layout).doing(Operation::Miss));
        }
    }
    cases.push(Case::new(ternary, 1 << 18, 40, VEB));
    cases.push(Case::new(ternary, 1 << 18, 40, RANDOM).doing(Operation::Insert));
    let range = Operation::Range { keys: 10 };
    cases.extend([DFS, VEB].map(|layout| Case::new(RANDOM_TREE, 1 << 18, 24, layout).doing(range)));
    some(cases, effort, 5)
}

pub(super) fn b_trees(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for growth in [RANDOM_GROWTH, Growth::Complete] {
        let nodes = [
            (12, InNode::Linear),
            (32, InNode::Binary),
            (16, InNode::Whole),
        ];
        for (fanout, in_node) in nodes {
            let tree = Structure::BTree {
                fanout,
                fill: 0.8,
                in_node,
                growth,
            };
            for layout in [RANDOM, Layout::BreadthFirst, VEB] {
                cases.push(Case::new(tree, 1 << 19, 8, layout));
            }
            cases.push(Case::new(tree, 1 << 16, 8, RANDOM).doing(Operation::Insert));
            let range = Operation::Range { keys: 30 };
            cases.push(Case::new(tree, 1 << 18, 8, RANDOM).doing(range));
        }
    }
    some(cases, effort, 4)
}

pub(super) fn lists(effort: Effort) -> Vec<Case> {
    let [single, double] = [Links::Single, Links::Double].map(|links| Structure::List { links });
    let mut cases = Vec::new();
    // From a little more than a first-level cache to a little more than the largest second-level
    // one. A list that hardly exceeds a level is read to where it does so seldom, and misses all of
    // it then: such cases are too noisy.
    for (keys, node_bytes) in [(2000, 32), (1000, 64), (20_000, 32), (50_000, 64)] {
        for layout in [DFS, RANDOM] {
            cases.push(Case::new(single, keys, node_bytes, layout));
            cases.push(Case::new(double, keys, node_bytes, layout).doing(Operation::Insert));
            cases.push(Case::new(single, keys, node_bytes, layout).doing(Operation::Miss));
        }
    }
    let skewed = ["zipf:1", "hot:0.1:0.9"].into_iter().flat_map(str::parse);
    cases.extend(skewed.map(|distribution| Case {
        distribution,
        ..Case::new(single, 3000, 32, DFS)
    }));
    let walk = Operation::Walk { returns: true };
    cases
        .extend([RANDOM, VEB].map(|layout| Case::new(RANDOM_TREE, 50_000, 32, layout).doing(walk)));
    some(cases, effort, 11)
}

pub(super) fn hash_tables(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for load in [0.75, 3.0, 16.0] {
        let table = Structure::Hash { load, seed: SEED };
        for keys in [1 << 14, 1 << 19] {
            for layout in [RANDOM, DFS] {
                cases.push(Case::new(table, keys, 32, layout));
                cases.push(Case::new(table, keys, 32, layout).doing(Operation::Miss));
            }
        }
    }
    some(cases, effort, 5)
}

pub(super) fn octrees(effort: Effort) -> Vec<Case> {
    let mut cases = Vec::new();
    for dimensions in [3, 2] {
        for growth in [RANDOM_GROWTH, Growth::Complete] {
            let tree = Structure::PointTree { dimensions, growth };
            for layout in [RANDOM, DFS, VEB, Layout::Hierarchical] {
                for (keys, node_bytes) in [(200_000, 80), (30_000, 48)] {
                    cases.push(Case::new(tree, keys, node_bytes, layout));
                }
            }
            cases.push(Case::new(tree, 200_000, 80, RANDOM).doing(Operation::Miss));
        }
    }
    some(cases, effort, 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_a_structure() {
        for cases in [zipf, random_shapes, b_trees, lists, hash_tables, octrees] {
            let quick = cases(Effort::Quick).len();
            let cases = cases(Effort::Full);
            assert!(quick > 0 && quick < cases.len());
            for case in cases {
                let small = Case { keys: 50, ..case };
                assert!(!small.accesses().is_empty(), "{}", small.name());
            }
        }
    }
}
