//! Figure 2-6: what a random search in an in-core B-tree takes, against the size of its nodes.
//!
//! The thesis: 32,767 keys, a million searches, and a minimum at nodes of 96 B where blocks
//! have 64. Words have 4 bytes here as there, so that a node of a size has as many keys. On the
//! thesis's machine that tree is half as large as the second cache; on one of today it is a good
//! part of one, so that the same is done with a tree that is not.
//!
//! Nodes lie one behind the other, as they came to be; no colours. Each run begins with cold
//! caches, as the thesis's did if it began with its first search.

use crate::rng::Rng;

use super::btree::InCoreBTree;
use super::chain::{Chain, Searched as _, thread_ns};
use super::cold::Cold;
use super::thesis::ThesisMachine;
use super::{Effort, Kind, Row, progress};
use crate::timing::median;

/// Its name in rows.
pub const FIGURE: &str = "2-6";
/// What is searched.
pub const B_TREE: &str = "B-tree";
/// Sizes of nodes, in bytes.
const NODE_BYTES: [usize; 15] = [
    32, 48, 64, 80, 96, 112, 128, 160, 192, 256, 384, 512, 1024, 2048, 4096,
];
const SEED: u64 = 26;

/// The tree of the numbers below `keys`, inserted in random order.
pub fn b_tree<W: super::btree::Word>(node_bytes: usize, keys: usize) -> InCoreBTree<W> {
    let mut order: Vec<u32> = (0..u32::try_from(keys).expect("keys are few enough")).collect();
    Rng::new(SEED).shuffle(&mut order);
    InCoreBTree::new(node_bytes, order.into_iter().map(|key| key as usize))
}

/// All points of the figure.
///
/// # Errors
/// When there is no memory to empty caches with.
///
/// # Panics
/// When a tree gives a wrong answer.
pub fn rows(effort: &Effort) -> std::io::Result<Vec<Row>> {
    let cold = Cold::new()?;
    let searches = effort.searches_max;
    let mut rows = Vec::new();
    for keys in effort.node_size_keys {
        progress(&format!("figure 2-6, {keys} keys"));
        let trees: Vec<InCoreBTree<u32>> = NODE_BYTES.map(|bytes| b_tree(bytes, keys)).into();
        let mut times = vec![Vec::new(); trees.len()];
        for run in 0..effort.long_runs {
            let chain = Chain::new(keys, SEED + run as u64);
            let mut ends = Vec::new();
            for turn in 0..trees.len() {
                let which = (run + turn) % trees.len();
                trees[which].flush(&cold);
                let swept = cold.sweep();
                assert_eq!(swept, 0, "the memory swept is zeroed");
                let start = thread_ns();
                ends.push(trees[which].follow(chain, searches));
                times[which].push((thread_ns() - start) / searches as f64);
            }
            assert!(
                ends.iter().all(|end| *end == ends[0]),
                "all trees answer alike"
            );
        }
        for (tree, times) in trees.iter().zip(times) {
            let row = Row {
                figure: FIGURE,
                kind: Kind::Measured,
                structure: B_TREE,
                keys,
                node_bytes: tree.node_bytes(),
                searches: Some(searches),
                ns: None,
                cost: None,
                runs: times.len(),
            };
            rows.push(Row {
                ns: Some(median(&times)),
                ..row.clone()
            });
            let mut machine = ThesisMachine::cold();
            for key in Chain::new(keys, SEED).known_keys(searches) {
                let key = u32::try_from(key).expect("keys are few enough");
                let found = tree.get_watched(key, |offset| machine.read(offset as u64));
                assert_eq!(found, Some(&key), "a tree has its keys");
            }
            rows.push(Row {
                kind: Kind::Simulated,
                cost: Some(machine.cost_of_each(searches)),
                runs: 1,
                ..row
            });
        }
    }
    Ok(rows)
}
