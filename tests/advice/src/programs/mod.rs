//! The programs, a module each.

/// Versions of a program that gets new boxes from a closure, with the link that will lead there:
/// `after` has that for a hint.
macro_rules! hinted {
    ($run:ident) => {
        pub(super) fn before(size: usize) -> u64 {
            $run(size, |_, object| Box::new(object))
        }

        pub(super) fn after(size: usize) -> u64 {
            $run(size, |link, object| {
                ccmalloc::near(link, || Box::new(object))
            })
        }
    };
}

/// Versions of a program of two parts: `after` has a morph between them.
macro_rules! morphed {
    ($children:path $(, $operation:ident)?; |$size:ident| $build:expr, |$root:ident| $run:expr) => {
        pub(super) fn before($size: usize) -> u64 {
            let $root = &$build;
            $run
        }

        pub(super) fn after($size: usize) -> u64 {
            let mut root = $build;
            let morph = $crate::morph()$(.operation(ccmorph::Operation::$operation))?;
            morph
                .run(&mut root, $children)
                .expect("memory for the nodes");
            let $root = &root;
            $run
        }
    };
}

/// Versions of a program that differ in what `Map` is.
macro_rules! in_maps {
    ($before:ident, $after:ident, |$size:ident| $run:expr) => {
        pub(super) fn before($size: usize) -> u64 {
            use std::collections::$before as Map;
            $run
        }

        pub(super) fn after($size: usize) -> u64 {
            use ctree::$after as Map;
            $run
        }
    };
}

mod adjacency;
mod arena_in_order;
mod btree_batches;
mod btree_frozen;
mod btree_in_order;
mod btree_lookups;
mod btree_walked;
mod bump_tree;
mod compute_bound;
mod expression;
mod field_order;
mod flat_table;
mod gather;
mod hash_chains;
mod hot_site;
mod huge_nodes;
mod in_cache;
mod index_links;
mod intrusive_tree;
mod json_requests;
mod json_search;
mod kd_tree;
mod list_in_order;
mod markdown;
mod octree;
mod payload;
mod quadtree;
mod records_split;
mod records_whole;
mod short_lived;
mod sorting;
mod strings;
mod timelines;
mod tree_growing;
mod tree_sorted;
mod tree_split;
mod trie;

use crate::Kind::{Container, FieldOrder, Group, Hint, Morph, Smaller, Split};
use crate::{Change, Program};

/// All programs.
pub(crate) const PROGRAMS: &[Program] = programs! {
    Training [before] [];
    hash_chains, 2_000_000, "chained hash table in churn", [Hint => after];
    tree_sorted, 1_500_000, "search tree linked once, then searched", [Morph => after];
    tree_growing, 1_300_000, "search tree that grows while it is searched", [Hint => after];
    octree, 900_000, "octree built once, then walked", [Morph => after];
    kd_tree, 2_000_000, "k-d tree with range queries", [Morph => after];
    trie, 800_000, "trie with indices in place of boxes", [Smaller => after];
    adjacency, 2_000_000, "graph with lists of edges, gone through repeatedly", [Morph => after];
    timelines, 2_000_000, "lists to which items are pushed in turn", [Hint => after];
    expression, 1_000_000, "expression tree, evaluated repeatedly", [Morph => after];
    payload, 1_000_000, "boxed value that is read right after its entry", [Hint => after];
    btree_lookups, 1_000_000, "BTreeMap with dependent lookups", [Container("CTreeMap") => after];
    btree_frozen, 3_000_000, "BTreeMap built once, then looked up",
        [Container("FrozenCTreeMap") => after];
    btree_batches, 1_000_000, "BTreeMap with batches of independent lookups",
        [Container("get_many") => after];
    btree_walked, 1_500_000, "BTreeMap filled at random and read in order",
        [Container("CTreeMap") => after];
    records_split, 1_000_000, "boxed records with fields that are seldom read", [Split => after];
    tree_split, 600_000, "search tree of wide nodes", [Split => after];
    field_order, 500_000, "records whose hot fields lie in three lines", [FieldOrder => after];
    hot_site, 1_000_000, "hot objects between cold ones of another site", [Group => after];
    index_links, 2_000_000, "search tree with indices in place of boxes", [Smaller => after];
    in_cache, 5_000_000, "search tree that fits the cache", [Hint => after];
    quadtree, 1_200_000, "quadtree built once, then searched", [Morph => after];
    list_in_order, 2_000_000, "list built and walked in one order", [Morph => after];
    gather, 2_000_000, "independent reads at known places", [FieldOrder => after];
    huge_nodes, 40_000, "large buffers that are read whole", [FieldOrder => after];
    arena_in_order, 2_000_000, "tree in a vector in the order of its walks", [Morph => after];
    compute_bound, 200_000, "arithmetic, with a large tree that is seldom asked", [Morph => after];
    flat_table, 2_000_000, "HashMap of integers", [Container("CTreeMap") => after];
    btree_in_order, 2_000_000, "BTreeMap filled and read in order",
        [Container("CTreeMap") => after];
    sorting, 15_000_000, "sort of a vector of numbers", [Container("CTreeMap") => after];
    strings, 8_000_000, "temporary strings", [Group => after];
    records_whole, 1_000_000, "boxed records that are read whole", [Split => after];
    short_lived, 20_000_000, "queue of short-lived boxes", [Hint => after];
    // With crates that others wrote.
    json_search, 150_000, "serde_json document, searched", [Container("CTreeMap") => after];
    json_requests, 1_500_000, "serde_json, small documents that are parsed and dropped",
        [Hint => after];
    markdown, 20_000, "pulldown-cmark, pages of Markdown", [Hint => after];
    intrusive_tree, 600_000, "intrusive-collections, red-black tree",
        [Container("CTreeMap") => after];
    bump_tree, 1_000_000, "bumpalo, expression in an arena", [Group => after];
};

/// The numbers below `n` in random order.
fn order(n: usize) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..n).collect();
    fastrand::Rng::with_seed(7).shuffle(&mut numbers);
    numbers
}

/// `n` keys in random order.
fn shuffled(n: usize) -> impl Iterator<Item = u64> {
    order(n)
        .into_iter()
        .map(|i| (i as u64).wrapping_mul(SPREAD))
}

/// Odd, so that products with it differ, and lie far apart.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Makes an object for each key below `n`, in random order. Returns them in the order of keys.
fn arrive<T>(n: usize, mut new: impl FnMut(usize) -> T) -> Vec<Option<T>> {
    let mut objects = Vec::new();
    objects.resize_with(n, || None);
    for key in order(n) {
        objects[key] = Some(new(key));
    }
    objects
}

type Link<N> = Option<Box<N>>;

/// Links nodes, in the order of keys, to a balanced search tree.
fn balance<N>(nodes: &mut [Link<N>], links: fn(&mut N) -> &mut [Link<N>; 2]) -> Link<N> {
    let (below, rest) = nodes.split_at_mut(nodes.len() / 2);
    let (root, above) = rest.split_first_mut()?;
    *links(root.as_mut()?) = [balance(below, links), balance(above, links)];
    root.take()
}

/// Adds an answer to a checksum that depends on their order.
pub(crate) fn mix(sum: u64, answer: u64) -> u64 {
    (sum.rotate_left(5) ^ answer).wrapping_mul(SPREAD)
}

/// Where a hash table of a power of two of buckets has a key.
fn bucket(key: u64, buckets: usize) -> usize {
    (key.wrapping_mul(SPREAD) >> 32) as usize & (buckets - 1)
}
