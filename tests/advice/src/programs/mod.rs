//! The programs, a module each.

use crate::Program;

/// Declares the modules, and lists the program of each.
macro_rules! programs {
    ($($name:ident),+ $(,)?) => {
        $(mod $name;)+

        /// All programs.
        pub const PROGRAMS: &[Program] = &[$($name::PROGRAM),+];
    };
}

programs! {
    // Worth it.
    hash_chains,
    tree_sorted,
    tree_growing,
    octree,
    kd_tree,
    trie,
    adjacency,
    timelines,
    expression,
    payload,
    btree_lookups,
    btree_frozen,
    btree_batches,
    btree_walked,
    records_split,
    tree_split,
    field_order,
    hot_site,
    index_links,
    // Not worth it.
    in_cache,
    quadtree,
    list_in_order,
    gather,
    huge_nodes,
    arena_in_order,
    compute_bound,
    flat_table,
    btree_in_order,
    sorting,
    strings,
    records_whole,
    short_lived,
    // With crates that others wrote.
    json_search,
    json_requests,
    markdown,
    intrusive_tree,
    indexset,
    bump_tree,
}

/// `n` keys in random order: odd multiples of a constant, each once.
fn shuffled(n: usize) -> Vec<u64> {
    let mut keys: Vec<u64> = (0..n as u64).map(|i| i.wrapping_mul(SPREAD)).collect();
    fastrand::Rng::with_seed(7).shuffle(&mut keys);
    keys
}

/// Odd, so that products with it differ, and lie far apart.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Adds an answer to a checksum that depends on their order.
fn mix(sum: u64, answer: u64) -> u64 {
    (sum.rotate_left(5) ^ answer).wrapping_mul(SPREAD)
}

/// Where a hash table of a power of two of buckets has a key.
fn bucket(key: u64, buckets: usize) -> usize {
    (key.wrapping_mul(SPREAD) >> 32) as usize & (buckets - 1)
}
