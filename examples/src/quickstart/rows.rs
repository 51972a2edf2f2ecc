//! The five structures: how each is built, asked, predicted and weighed.
//!
//! All hold the same keys, and the trees and the `BTreeMap` get them in the same random order:
//!
//! | layout | nodes come from | and then |
//! |---|---|---|
//! | `malloc` | the system's malloc, one after the other | |
//! | `hinted` | `CcMalloc`, each inside `ccmalloc::near` with its parent as the hint | |
//! | `morphed` | `CcMalloc` without hints, a tree of its own | `ccmorph` with the layout that the model chooses for this machine |
//! | `ctree` | sorted keys, in one go | |
//! | `btreemap` | the system's malloc | |
//!
//! `B a node` counts the 4 KiB pages that hold nodes of a tree, headers, gaps and reserved room
//! included; for the two maps, which do not show their nodes, it counts what they hold of their
//! allocator's memory.

use std::collections::BTreeMap;
use std::hint::black_box;

use crate::chain::QueryChain;
use crate::search_tree::{Node, SearchTree};
use crate::survey::Survey;
use crate::switch::{Source, born_in, system_live_bytes};
use ccmodel::{Machine, PageSize, Prediction, predict_levels};
use ccmorph::{Morph, TreeNode};
use ctree::FrozenCTreeMap;

use super::blocks::{btreemap_levels, frozen_levels};
use super::error::UserError;
use super::keys::{KeySplit, PositionKeys};
use super::progress::Progress;

/// The unit that moves between memory and cache.
const CACHE_BLOCK_BYTES: u64 = 64;

/// Names of the layouts, as in the table and in JSON.
pub(crate) mod layouts {
    pub(crate) const MALLOC: &str = "malloc";
    pub(crate) const HINTED: &str = "hinted";
    pub(crate) const MORPHED: &str = "morphed";
    pub(crate) const CTREE: &str = "ctree";
    pub(crate) const BTREEMAP: &str = "btreemap";
}

/// The keys in one structure.
#[derive(Debug)]
enum Index {
    Tree(SearchTree),
    Frozen(Box<FrozenCTreeMap<u64, u32>>),
    Std(BTreeMap<u64, u32>),
}

/// One structure of the table.
#[derive(Debug)]
pub(crate) struct Structure {
    layout: &'static str,
    /// How it came to be, for the reader.
    origin: String,
    index: Index,
    /// What it lies in.
    pages: PageSize,
    /// Bytes that its allocator holds for it; 0 for the trees, whose nodes are counted where they
    /// lie.
    held_bytes: usize,
    split: KeySplit,
}

/// What a structure should cost, and what it takes.
#[derive(Clone, Debug)]
pub(crate) struct Assessment {
    /// Time and misses of a lookup.
    pub(crate) prediction: Prediction,
    /// Memory, as the module's documentation says.
    pub(crate) bytes: u64,
    /// What is worth knowing beside the figures.
    pub(crate) detail: String,
}

impl Structure {
    /// Its name in the table.
    pub(crate) fn layout(&self) -> &'static str {
        self.layout
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        match &self.index {
            Index::Tree(tree) => tree.len(),
            Index::Frozen(map) => map.len(),
            Index::Std(map) => map.len(),
        }
    }

    /// Where the phrase of `query` occurs next, at the position of `query` or later.
    pub(crate) fn next_occurrence(&self, query: u64) -> Option<u32> {
        match &self.index {
            Index::Tree(tree) => in_tree(tree, self.split, query),
            Index::Frozen(map) => in_frozen(map, self.split, query),
            Index::Std(map) => in_std(map, self.split, query),
        }
    }

    /// What a lookup should cost on `machine`, and what the structure takes. O(n log n): trees are
    /// walked and each node's address is noted.
    pub(crate) fn assess(&self, machine: &Machine) -> Assessment {
        let held_bytes = self.held_bytes as u64;
        match &self.index {
            Index::Tree(tree) => {
                let survey = Survey::of(tree);
                let prediction = survey.predict(self.pages, machine);
                let together = survey.share_with_parent(CACHE_BLOCK_BYTES) * 100.0;
                let detail = format!(
                    "{}; {together:.0}% of the nodes share a cache block with their parent",
                    self.origin
                );
                Assessment {
                    prediction,
                    bytes: survey.page_bytes(),
                    detail,
                }
            }
            Index::Frozen(map) => {
                let prediction =
                    predict_levels(&frozen_levels(map.len(), machine), self.pages, machine);
                Assessment {
                    prediction,
                    bytes: held_bytes,
                    detail: self.origin.clone(),
                }
            }
            Index::Std(map) => {
                let prediction =
                    predict_levels(&btreemap_levels(map.len(), machine), self.pages, machine);
                Assessment {
                    prediction,
                    bytes: held_bytes,
                    detail: self.origin.clone(),
                }
            }
        }
    }

    /// Asks all of `chain`; see [`QueryChain::follow`]. A loop for each kind of index, so that
    /// nothing is dispatched inside.
    pub(crate) fn follow(&self, chain: &QueryChain) -> u64 {
        const ABSENT: u32 = u32::MAX;
        let split = self.split;
        match &self.index {
            Index::Tree(tree) => {
                chain.follow(|query| in_tree(tree, split, query).unwrap_or(ABSENT))
            }
            Index::Frozen(map) => {
                chain.follow(|query| in_frozen(map, split, query).unwrap_or(ABSENT))
            }
            Index::Std(map) => chain.follow(|query| in_std(map, split, query).unwrap_or(ABSENT)),
        }
    }
}

/// The answer of a tree. The key is read back through a reference that the compiler knows nothing
/// about: from the query alone the answer must not be told, or lookups would not wait for each
/// other.
#[inline]
fn in_tree(tree: &SearchTree, split: KeySplit, query: u64) -> Option<u32> {
    let node: &Node = black_box(tree.lower_bound(query)?);
    split
        .same_phrase(node.key, query)
        .then(|| split.position(node.key))
}

/// The answer of a frozen map; its values are the positions. Asked in the same way as a `BTreeMap`.
#[inline]
fn in_frozen(map: &FrozenCTreeMap<u64, u32>, split: KeySplit, query: u64) -> Option<u32> {
    if let Some(&position) = map.get(&query) {
        return Some(position);
    }
    let (&key, &position) = map.get_index(map.lower_bound(&query))?;
    split.same_phrase(key, query).then_some(position)
}

/// The answer of a `BTreeMap`, by its fastest way: `get`, which ends early at the key itself, and a
/// range only where that fails.
#[inline]
fn in_std(map: &BTreeMap<u64, u32>, split: KeySplit, query: u64) -> Option<u32> {
    if let Some(&position) = map.get(&query) {
        return Some(position);
    }
    let (&key, &position) = map.range(query..).next()?;
    split.same_phrase(key, query).then_some(position)
}

/// All five, in the order of the table.
#[derive(Debug)]
pub(crate) struct Structures(Vec<Structure>);

impl Structures {
    /// Builds them. A tree that cannot be re-laid for want of memory is an error.
    pub(crate) fn build(
        positions: &PositionKeys,
        machine: &Machine,
        progress: &Progress,
    ) -> Result<Self, UserError> {
        let keys = positions.keys();
        let split = positions.format().split();
        let tree = |layout, origin: String, pages, tree| Structure {
            layout,
            origin,
            index: Index::Tree(tree),
            pages,
            held_bytes: 0,
            split,
        };

        let malloc = born_in(Source::System, || {
            grow(progress.count("tree in malloc", keys), SearchTree::insert)
        });
        let malloc = tree(
            layouts::MALLOC,
            "plain insertion in random order".to_owned(),
            PageSize::Small4K,
            malloc,
        );

        let hinted = born_in(Source::CcMalloc, || {
            grow(
                progress.count("tree with hints", keys),
                SearchTree::insert_near_parent,
            )
        });
        let hinted = tree(
            layouts::HINTED,
            "each node allocated near its parent".to_owned(),
            PageSize::Huge2M,
            hinted,
        );

        let mut unhinted = born_in(Source::CcMalloc, || {
            grow(progress.count("tree for ccmorph", keys), SearchTree::insert)
        });
        let report = progress
            .step("re-laying it", || {
                born_in(Source::CcMalloc, || {
                    Morph::new()
                        .machine(machine)
                        .run(unhinted.root_mut(), Node::children)
                })
            })
            .map_err(|error| UserError::new(format!("the tree cannot be re-laid: {error}")))?;
        let origin = format!(
            "built without hints, then re-laid once; the model chose the layout {}",
            report.layout
        );
        let pages = if report.huge_pages {
            PageSize::Huge2M
        } else {
            PageSize::Small4K
        };
        let morphed = tree(layouts::MORPHED, origin, pages, unhinted);

        let frozen = progress.step("freezing", || frozen(positions));
        let frozen = Structure {
            layout: layouts::CTREE,
            origin: "FrozenCTreeMap, built once from sorted keys".to_owned(),
            held_bytes: frozen.memory_usage(),
            index: Index::Frozen(Box::new(frozen)),
            pages: PageSize::Huge2M,
            split,
        };

        let bytes_before = system_live_bytes();
        let mut std = BTreeMap::new();
        for &key in progress.count("BTreeMap", keys) {
            std.insert(key, split.position(key));
        }
        let std = Structure {
            layout: layouts::BTREEMAP,
            origin: "std's BTreeMap, insertion in the same random order".to_owned(),
            index: Index::Std(std),
            pages: PageSize::Small4K,
            held_bytes: system_live_bytes().saturating_sub(bytes_before),
            split,
        };
        Ok(Structures(vec![malloc, hinted, morphed, frozen, std]))
    }

    /// One after the other.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Structure> {
        self.0.iter()
    }
}

/// A tree with `keys`, by `insert`.
fn grow<'a>(
    keys: impl Iterator<Item = &'a u64>,
    insert: fn(&mut SearchTree, u64) -> bool,
) -> SearchTree {
    let mut tree = SearchTree::new();
    for &key in keys {
        insert(&mut tree, key);
    }
    tree
}

/// The frozen map of all keys.
fn frozen(positions: &PositionKeys) -> FrozenCTreeMap<u64, u32> {
    let split = positions.format().split();
    let mut entries: Vec<(u64, u32)> = positions
        .keys()
        .iter()
        .map(|&key| (key, split.position(key)))
        .collect();
    entries.sort_unstable();
    entries.into_iter().collect()
}
