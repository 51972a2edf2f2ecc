//! Lists, hash chains and an octree: as the allocators left them, and morphed.
//!
//! Each operation's query depends on the answer before. Within an operation the processor may do
//! what it can: the links of a list have to be waited for one by one, the octants that a box
//! reaches do not.

use crate::rng::Rng;

use super::super::{SEED, random_keys};
use super::Subjects;
use crate::programs::Scale;
use crate::queries::{Queries, Skew};
use crate::structures::Structure;
use crate::structures::lists::{LINKS_EACH, Lists};
use crate::structures::octree::Octree;
use crate::structures::table::Table;
use crate::workload::{Comparison, Effort, Failure, Workload};

/// Walks of whole lists, each of some 32 links that were inserted and deleted at random.
pub const LIST_CHURNED_WALK: Workload = Workload {
    suite: "ccmorph",
    name: "list_churned_walk",
    also: &[],
    run: list_churned_walk,
};

/// Walks to a key in the chains of a hash table of 4 M entries at load factor 4.
pub const HASH_CHAINS_WALK: Workload = Workload {
    suite: "ccmorph",
    name: "hash_chains_walk",
    also: &[],
    run: hash_chains_walk,
};

/// Sums over the points of small cubes in an octree of 2^20 points, some 64 points each.
pub const OCTREE_QUERIES: Workload = Workload {
    suite: "ccmorph",
    name: "octree_queries",
    also: &[],
    run: octree_queries,
};

/// Links in all lists together in a full run: 48 MiB. A quick run has half of them.
const LINKS: usize = 1 << 21;
/// Links of a full run that are deleted, and as many inserted; a quarter in a quick run.
const CHURN: usize = 1 << 20;

fn list_churned_walk(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let links = match effort.scale {
        Scale::Quick => LINKS / 2,
        Scale::Full => LINKS,
    };
    let churn = effort.scale.of(CHURN);
    let subjects = Subjects::new(effort, || Lists::churned(links, churn, SEED));
    let all = subjects.morphed.iter().map(|(_, lists)| lists);
    for lists in all.chain([&subjects.unmorphed]) {
        assert!(
            lists.is_linked_both_ways(),
            "a morph and a copy keep the links to the front right"
        );
    }
    let numbers: Vec<u64> = (0..subjects.unmorphed.len() as u64).collect();
    let chain = Queries::new(&numbers, Skew::Uniform, SEED).chain(effort.lookups / 8);
    let walk = |lists: &Lists| lists.follow(&chain);
    // Per link, so that the figure does not change with their number in a list.
    subjects.contest(&LIST_CHURNED_WALK, effort, chain.len() * LINKS_EACH, walk)
}

/// Entries of the table.
const ENTRIES: usize = 1 << 22;

fn hash_chains_walk(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let keys = random_keys(ENTRIES);
    let subjects = Subjects::new(effort, || Table::with_keys(&keys));
    let chain = Queries::new(&keys, Skew::Uniform, SEED).chain(effort.lookups / 4);
    let walk = |table: &Table| table.follow(&chain);
    subjects.contest(&HASH_CHAINS_WALK, effort, chain.len(), walk)
}

/// Points of the octree.
const POINTS: usize = 1 << 20;

fn octree_queries(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let subjects = Subjects::new(effort, || Octree::random(POINTS, SEED));
    let chain = octree_chain(effort.lookups / 16);
    let query = |octree: &Octree| octree.follow(&chain);
    subjects.contest(&OCTREE_QUERIES, effort, chain.len(), query)
}

/// Queries for cubes anywhere.
fn octree_chain(lookups: usize) -> crate::chain::QueryChain {
    let mut rng = Rng::new(SEED);
    crate::chain::QueryChain::draw(lookups, || rng.next_u64())
}
