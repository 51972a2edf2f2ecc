//! The programs, a module each.

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

use crate::Program;

/// All programs.
pub const PROGRAMS: &[Program] = &[
    // Worth it.
    hash_chains::PROGRAM,
    tree_sorted::PROGRAM,
    tree_growing::PROGRAM,
    octree::PROGRAM,
    kd_tree::PROGRAM,
    trie::PROGRAM,
    adjacency::PROGRAM,
    timelines::PROGRAM,
    expression::PROGRAM,
    payload::PROGRAM,
    btree_lookups::PROGRAM,
    btree_frozen::PROGRAM,
    btree_batches::PROGRAM,
    btree_walked::PROGRAM,
    records_split::PROGRAM,
    tree_split::PROGRAM,
    field_order::PROGRAM,
    hot_site::PROGRAM,
    index_links::PROGRAM,
    // Not worth it.
    in_cache::PROGRAM,
    quadtree::PROGRAM,
    list_in_order::PROGRAM,
    gather::PROGRAM,
    huge_nodes::PROGRAM,
    arena_in_order::PROGRAM,
    compute_bound::PROGRAM,
    flat_table::PROGRAM,
    btree_in_order::PROGRAM,
    sorting::PROGRAM,
    strings::PROGRAM,
    records_whole::PROGRAM,
    short_lived::PROGRAM,
    // With crates that others wrote.
    json_search::PROGRAM,
    json_requests::PROGRAM,
    markdown::PROGRAM,
    intrusive_tree::PROGRAM,
    bump_tree::PROGRAM,
];

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
