//! The order in which a growing structure's nodes are allocated: each after its parent, every such
//! order being equally probable.
//!
//! Node `v`, with `s` nodes in its subtree, is allocated at `t(v) = t(parent) + E / s` with `E`
//! exponentially distributed with mean 1: waiting times with the rates `s` each win in proportion
//! to `s`, as the hook length formula asks (D. Knuth, *The Art of Computer Programming*, volume 3,
//! section 5.1.4, exercise 20).

use crate::Shape;
use crate::shape::random::SplitMix64;

/// Node numbers in an order of allocation, the same for equal seeds. O(n log n), no recursion.
pub(super) fn birth_order(shape: &Shape, seed: u64) -> Vec<u32> {
    let sizes = shape.subtree_nodes();
    let mut random = SplitMix64::new(seed);
    let mut births = vec![0.0f64; shape.len()];
    for v in 0..shape.nodes() {
        let after = births.get(shape.parent(v) as usize).copied();
        let wait = exponential(&mut random) / f64::from(sizes[v as usize]);
        births[v as usize] = after.unwrap_or(0.0) + wait;
    }
    let mut order: Vec<u32> = (0..shape.nodes()).collect();
    // Stable: where rounding loses a wait, the parent comes first, as it has the smaller number.
    order.sort_by(|&a, &b| births[a as usize].total_cmp(&births[b as usize]));
    order
}

/// A waiting time with mean 1.
fn exponential(random: &mut SplitMix64) -> f64 {
    /// The largest number that a 53-bit mantissa counts, plus one.
    const RANGE: f64 = (1u64 << 53) as f64;
    let uniform = ((random.next_u64() >> 11) as f64 + 1.0) / RANGE;
    -uniform.ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NO_NODE;
    use quickcheck::quickcheck;
    use std::collections::BTreeMap;

    #[test]
    fn all_orders_of_insertion_are_as_probable() {
        // A root with a chain of two and a leaf: three orders.
        let shape = Shape::from_parents(&[NO_NODE, 0, 0, 1]).unwrap();
        let mut orders = BTreeMap::new();
        for seed in 0..30_000 {
            *orders.entry(birth_order(&shape, seed)).or_insert(0) += 1;
        }
        assert_eq!(orders.len(), 3);
        assert!(orders.values().all(|count| (9400..=10_600).contains(count)));
    }

    quickcheck! {
        fn parents_are_born_first(parents: Vec<u16>, seed: u64) -> bool {
            let parents = (0u32..).zip(&parents).map(|(v, &p)| match v {
                0 => NO_NODE,
                _ if p % 7 == 0 => NO_NODE,
                _ => u32::from(p) % v,
            });
            let shape = Shape::from_generated(parents.collect());
            let order = birth_order(&shape, seed);
            let mut is_born = vec![false; order.len()];
            order.iter().all(|&v| {
                let parent = shape.parent(v);
                let is_next = parent == NO_NODE || is_born[parent as usize];
                is_next && !std::mem::replace(&mut is_born[v as usize], true)
            })
        }
    }
}
