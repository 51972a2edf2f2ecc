//! Arrays that are searched without links: sorted, and in the order of a complete tree's levels.

use std::collections::VecDeque;

use super::built::{Homes, Places};
use super::tree::{inverse, ranks_left_first};
use super::{Built, Sizes};
use crate::accesses::{Lengths, Points, Role, Span};
use crate::{NO_NODE, Shape};

/// A sorted array: of elements `low..high`, a search compares with the one at `(low + high) / 2`
/// and ends where it is equal.
pub(super) fn sorted(keys: u32, sizes: &Sizes) -> Built {
    let mut parents = Vec::with_capacity(keys as usize);
    let mut elements: Vec<u32> = Vec::with_capacity(keys as usize);
    // Ranges that are left to search, with the point that was compared before.
    let mut ranges = VecDeque::from([(0, keys, NO_NODE)]);
    while let Some((low, high, above)) = ranges.pop_front() {
        if low >= high {
            continue;
        }
        let point = u32::try_from(parents.len()).unwrap_or(NO_NODE);
        let middle = low + (high - low) / 2;
        parents.push(above);
        elements.push(middle);
        ranges.push_back((low, middle, point));
        ranges.push_back((middle + 1, high, point));
    }
    let places = elements.iter().map(|&element| place(element, sizes));
    let offsets = places.collect();
    let found = inverse(&elements);
    let mut built = of_elements(Shape::from_generated(parents), found, offsets, sizes);
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
    let found = inverse(&ranks_left_first(&shape));
    let offsets = (0..keys).map(|element| place(element, sizes)).collect();
    of_elements(shape, found, offsets, sizes)
}

/// Where an element lies in the array.
fn place(element: u32, sizes: &Sizes) -> u64 {
    // A stride is below 2^33: a size rounded up to an alignment.
    u64::from(element).saturating_mul(sizes.node.stride_bytes())
}

fn of_elements(shape: Shape, found: Vec<u32>, offsets: Vec<u64>, sizes: &Sizes) -> Built {
    let elements = shape.len();
    let fixed_bytes = (elements as u64).saturating_mul(sizes.node.stride_bytes());
    let lengths = Lengths::Uniform(sizes.touched_bytes.min(sizes.node.bytes));
    let points = Points::of_keys(shape, lengths, vec![Role::Key; elements], found);
    let homes = Homes::Parts {
        nodes: vec![NO_NODE; elements],
        offsets,
    };
    let no_nodes = Shape::from_generated(Vec::new());
    Built {
        fixed_bytes,
        ..Built::new(no_nodes, sizes.node, points, homes, Places::Gaps)
    }
}
