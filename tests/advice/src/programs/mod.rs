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
            let morph = ccmorph::Morph::new()$(.operation(ccmorph::Operation::$operation))?;
            morph
                .run(&mut root, $children)
                .expect("the allocator is `CcMalloc`");
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
use crate::Program;

/// Rows of name, size, kind, whether it is worth it, and a note.
macro_rules! programs {
    ($($name:ident, $size:literal, $kind:expr, $worth_it:literal, $note:literal;)*) => {
        &[$(Program {
            name: stringify!($name),
            kind: $kind,
            worth_it: $worth_it,
            note: $note,
            size: $size,
            before: $name::before,
            after: $name::after,
        }),*]
    };
}

/// All programs.
pub const PROGRAMS: &[Program] = programs! {
    // Worth it.
    hash_chains, 2_000_000, Hint, true, "chained hash table in churn";
    tree_sorted, 1_500_000, Morph, true, "search tree linked once, then searched";
    tree_growing, 1_300_000, Hint, true, "search tree that grows while it is searched";
    octree, 900_000, Morph, true, "octree built once, then walked";
    kd_tree, 2_000_000, Morph, true, "k-d tree with range queries";
    trie, 800_000, Smaller, true, "trie with indices in place of boxes";
    adjacency, 2_000_000, Morph, true, "graph with lists of edges, gone through repeatedly";
    timelines, 2_000_000, Hint, true, "lists to which items are pushed in turn";
    expression, 1_000_000, Morph, true, "expression tree, evaluated repeatedly";
    payload, 1_000_000, Hint, true, "boxed value that is read right after its entry";
    btree_lookups, 1_000_000, Container("CTreeMap"), true, "BTreeMap with dependent lookups";
    btree_frozen, 3_000_000, Container("FrozenCTreeMap"), true,
        "BTreeMap built once, then looked up";
    btree_batches, 1_000_000, Container("get_many"), true,
        "BTreeMap with batches of independent lookups";
    btree_walked, 1_500_000, Container("CTreeMap"), true,
        "BTreeMap filled at random and read in order";
    records_split, 1_000_000, Split, true, "boxed records with fields that are seldom read";
    tree_split, 600_000, Split, true, "search tree of wide nodes";
    field_order, 500_000, FieldOrder, true, "records whose hot fields lie in three lines";
    hot_site, 1_000_000, Group, true, "hot objects between cold ones of another site";
    index_links, 2_000_000, Smaller, true, "search tree with indices in place of boxes";
    // Not worth it.
    in_cache, 5_000_000, Hint, false, "search tree that fits the cache";
    quadtree, 1_200_000, Morph, false, "quadtree built once, then searched";
    list_in_order, 2_000_000, Morph, false, "list built and walked in one order";
    gather, 2_000_000, FieldOrder, false, "independent reads at known places";
    huge_nodes, 40_000, FieldOrder, false, "large buffers that are read whole";
    arena_in_order, 2_000_000, Morph, false, "tree in a vector in the order of its walks";
    compute_bound, 200_000, Morph, false, "arithmetic, with a large tree that is seldom asked";
    flat_table, 2_000_000, Container("CTreeMap"), false, "HashMap of integers";
    btree_in_order, 2_000_000, Container("CTreeMap"), false, "BTreeMap filled and read in order";
    sorting, 15_000_000, Container("CTreeMap"), false, "sort of a vector of numbers";
    strings, 8_000_000, Group, false, "temporary strings";
    records_whole, 1_000_000, Split, false, "boxed records that are read whole";
    short_lived, 20_000_000, Hint, false, "queue of short-lived boxes";
    // With crates that others wrote.
    json_search, 150_000, Container("CTreeMap"), false, "serde_json document, searched";
    json_requests, 1_500_000, Hint, false,
        "serde_json, small documents that are parsed and dropped";
    markdown, 20_000, Hint, false, "pulldown-cmark, pages of Markdown";
    intrusive_tree, 600_000, Container("CTreeMap"), true, "intrusive-collections, red-black tree";
    bump_tree, 1_000_000, Group, false, "bumpalo, expression in an arena";
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
