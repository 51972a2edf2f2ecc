//! Trees and hash chains: built once, with hints, and with hints that are null.

use ccmalloc::default_policy;

use super::{Checksum, Outcome, Scale, collect};
use crate::dispatch::served_by;
use crate::placement::{AS_ALLOCATED, Hinted, NodeAllocator, NullHinted};
use crate::raw::{RawChains, RawTree};
use crate::rivals::OURS;
use crate::rng::Rng;
use crate::search_tree::Node;
use crate::sys::resident_bytes;

/// A tree of 2^22 - 1 nodes, in quick runs too, is built from the root down and walked twice, as in
/// Olden's `treeadd`, and never freed. Ascending addresses have the order of the walk.
pub(super) fn build_once(_scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        // Leaked, as in the original: the process ends after it.
        let root: Option<&Node> = build(22, 1).map(|root| &*Box::leak(root));
        add_in_order(root, sum);
        sum.0 = sum.0.wrapping_add(sum_pre_order(root));
    })
}

/// A node is allocated before its children.
fn build(levels: u32, value: u64) -> Option<Box<Node>> {
    let deeper = levels.checked_sub(1)?;
    let mut node = Box::new(Node::leaf(value, ()));
    node.left = build(deeper, 2 * value);
    node.right = build(deeper, 2 * value + 1);
    Some(node)
}

fn sum_pre_order(node: Option<&Node>) -> u64 {
    node.map_or(0, |node| {
        node.key
            .wrapping_add(sum_pre_order(node.left.as_deref()))
            .wrapping_add(sum_pre_order(node.right.as_deref()))
    })
}

fn add_in_order(node: Option<&Node>, sum: &mut Checksum) {
    if let Some(node) = node {
        add_in_order(node.left.as_deref(), sum);
        sum.add(node.key);
        add_in_order(node.right.as_deref(), sum);
    }
}

fn random_keys(count: usize, seed: u64) -> Vec<u64> {
    let mut rng = Rng::new(seed);
    collect(count, |_| rng.next_u64())
}

/// Nodes of the tree and links of the chains under null hints: 24 MiB.
const NULL_HINT_OBJECTS: usize = 1 << 20;

/// The hinted search tree with every hint null: random inserts and searches, then freed.
pub(super) fn null_hint_bst(scale: Scale) -> Outcome {
    let keys = random_keys(scale.of(NULL_HINT_OBJECTS), 11);
    if served_by() == OURS.process {
        Outcome::of(|sum| search_some(NullHinted::new(default_policy()), &keys, sum))
    } else {
        Outcome::of(|sum| search_some(AS_ALLOCATED, &keys, sum))
    }
}

fn search_some<A: NodeAllocator>(allocator: A, keys: &[u64], sum: &mut Checksum) {
    let tree = RawTree::with_keys(allocator, keys);
    for &key in keys.iter().step_by(2) {
        sum.add(u64::from(tree.get(key)));
    }
    sum.add(keys.len() as u64);
}

/// The hinted hash chains with every hint null: added, deleted, walked, then freed.
pub(super) fn null_hint_chain(scale: Scale) -> Outcome {
    let links = scale.of(NULL_HINT_OBJECTS);
    if served_by() == OURS.process {
        Outcome::of(|sum| walk_some(NullHinted::new(default_policy()), links, sum))
    } else {
        Outcome::of(|sum| walk_some(AS_ALLOCATED, links, sum))
    }
}

fn walk_some<A: NodeAllocator>(allocator: A, links: usize, sum: &mut Checksum) {
    let (chains, keys) = aged_chains(allocator, links);
    for &key in keys.iter().step_by(4) {
        sum.add(u64::from(chains.walk(key)));
    }
    sum.add(links as u64);
}

/// Chains of `links` random keys after as many deletions and additions, and their keys.
pub fn aged_chains<A: NodeAllocator>(allocator: A, links: usize) -> (RawChains<A>, Vec<u64>) {
    let mut rng = Rng::new(12);
    let mut chains = RawChains::new(allocator, links.div_ceil(8));
    let mut keys = collect(links, |_| rng.next_u64());
    for &key in &keys {
        chains.push(key, key.rotate_left(32));
    }
    for _ in 0..links {
        let index = rng.below(links);
        let old = std::mem::replace(&mut keys[index], rng.next_u64());
        let removed = chains.remove(old);
        assert_eq!(removed, Some(old.rotate_left(32)), "each key is in a chain");
        chains.push(keys[index], keys[index].rotate_left(32));
    }
    (chains, keys)
}

/// Resident memory of a search tree's node: hinted under `ccmalloc`, plain under the others.
pub(super) fn memory_bst(scale: Scale) -> Outcome {
    let keys = random_keys(scale.of(1 << 21), 13);
    if served_by() == OURS.process {
        weigh(Hinted::new(default_policy()), &keys)
    } else {
        weigh(AS_ALLOCATED, &keys)
    }
}

/// Builds a tree, with parents as hints, and tells by how much the process grew.
fn weigh<A: NodeAllocator>(allocator: A, keys: &[u64]) -> Outcome {
    let before = resident_bytes();
    let mut tree = None;
    let outcome = Outcome::of(|sum| {
        tree = Some(RawTree::with_keys(allocator, keys));
        sum.0 = keys.len() as u64;
    });
    let grown = resident_bytes().saturating_sub(before);
    drop(tree);
    Outcome {
        object_bytes: Some(grown as f64 / keys.len() as f64),
        ..outcome
    }
}
