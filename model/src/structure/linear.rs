//! Lists and chained hash tables.

use super::built::{Family, Parts, Places};
use super::{Built, Sizes, too_large};
use crate::accesses::Role;
use crate::shape::random::SplitMix64;
use crate::{Error, Lengths, Links, NO_NODE, Shape};

/// A link is an address.
const LINK_BYTES: u32 = 8;

/// A list; node `v` is the one after `v - 1`.
pub(super) fn list(keys: u32, links: Links, sizes: &Sizes) -> Built {
    let parent = |v: u32| v.checked_sub(1).unwrap_or(NO_NODE);
    let parents = (0..keys).map(parent).collect();
    let lengths = Lengths::Uniform(sizes.touched_bytes);
    Built {
        places: Places::NullLinks { arity: 1 },
        family: match links {
            Links::Single => Family::SingleList,
            Links::Double => Family::DoubleList,
        },
        ..Built::of_nodes(Shape::from_generated(parents), sizes.node, lengths)
    }
}

/// A chained hash table; keys are numbered bucket by bucket, and nodes as their keys.
pub(super) fn hash(keys: u32, load: f64, seed: u64, sizes: &Sizes) -> Result<Built, Error> {
    let wanted = (f64::from(keys) / load).ceil().max(1.0);
    // Buckets and nodes are points.
    if wanted + f64::from(keys) >= f64::from(NO_NODE) {
        return Err(too_large());
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 1, and below 2^32 by the check above"
    )]
    let buckets = wanted as u32;
    let mut random = SplitMix64::new(seed);
    let mut lengths = vec![0u32; buckets as usize];
    for _ in 0..keys {
        lengths[random.below(buckets) as usize] += 1;
    }
    let mut parts = Parts::of_keys(keys);
    for bucket in 0..u64::from(buckets) {
        let offset = bucket * u64::from(LINK_BYTES);
        parts.add(NO_NODE, LINK_BYTES, Role::Entry, NO_NODE, offset);
    }
    let mut node_parents = Vec::with_capacity(keys as usize);
    for (bucket, &length) in (0..).zip(&lengths) {
        let (mut above, mut above_node) = (bucket, NO_NODE);
        for _ in 0..length {
            let node = u32::try_from(node_parents.len()).unwrap_or(NO_NODE);
            node_parents.push(above_node);
            above = parts.add(above, sizes.touched_bytes, Role::Entry, node, 0);
            parts.found[node as usize] = above;
            above_node = node;
        }
    }
    Ok(Built {
        family: Family::Hash,
        fixed_bytes: u64::from(buckets) * u64::from(LINK_BYTES),
        places: Places::NullLinks { arity: 1 },
        ..parts.built(Shape::from_generated(node_parents), sizes.node)
    })
}
