//! Arrays that are searched without links: sorted, and in the order of a complete tree's levels.

use std::collections::VecDeque;

use super::built::Parts;
use super::tree::{inverse, ranks_left_first};
use super::{Built, Sizes};
use crate::accesses::{Role, Span};
use crate::{NO_NODE, Shape};

/// A sorted array: of elements `low..high`, a search compares with the one at `(low + high) / 2`
/// and ends where it is equal.
pub(super) fn sorted(keys: u32, sizes: &Sizes) -> Built {
    let mut parts = Parts::of_keys(keys);
    // Ranges that are left to search, with the point that was compared before.
    let mut ranges = VecDeque::from([(0, keys, NO_NODE)]);
    while let Some((low, high, above)) = ranges.pop_front() {
        if low < high {
            let middle = low + (high - low) / 2;
            let point = add(&mut parts, above, middle, sizes);
            parts.found[middle as usize] = point;
            ranges.push_back((low, middle, point));
            ranges.push_back((middle + 1, high, point));
        }
    }
    let mut built = of_elements(parts, sizes);
    if keys > 0 {
        built.runs.push(Span {
            start: 0,
            end: keys,
        });
    }
    built
}

/// An array in Eytzinger order: a complete search tree whose links are computed.
pub(super) fn eytzinger(keys: u32, sizes: &Sizes) -> Built {
    let shape = Shape::complete_binary(keys);
    let mut parts = Parts::of_keys(keys);
    parts.found = inverse(&ranks_left_first(&shape));
    for (element, &above) in (0..).zip(shape.parents()) {
        add(&mut parts, above, element, sizes);
    }
    of_elements(parts, sizes)
}

fn add(parts: &mut Parts, above: u32, element: u32, sizes: &Sizes) -> u32 {
    // A stride is below 2^33: a size rounded up to an alignment.
    let offset = u64::from(element).saturating_mul(sizes.node.stride_bytes());
    parts.add(above, sizes.touched_bytes, Role::Key, NO_NODE, offset)
}

fn of_elements(parts: Parts, sizes: &Sizes) -> Built {
    let elements = parts.found.len() as u64;
    Built {
        fixed_bytes: elements.saturating_mul(sizes.node.stride_bytes()),
        ..parts.built(Shape::from_generated(Vec::new()), sizes.node)
    }
}
