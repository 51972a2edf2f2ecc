//! The order in which a growing structure's nodes are allocated.
//!
//! A structure that grows by insertions allocates each node after the one that it hangs under;
//! beyond that, a shape does not say when its nodes were born. Insertions in random order make
//! every order in which parents come before children equally probable (for binary search trees
//! exactly: given the shape, all such orders of keys lead to it, and no others do). One of them is
//! drawn as follows. Node `v`, with `s` nodes in its subtree, is born
//!
//! ```text
//! t(v) = t(parent) + E / s        E exponentially distributed with mean 1
//! ```
//!
//! and nodes are ordered by `t`: of those that could be next, the one with the earliest `t` is;
//! exponential waiting times with the rates `s` have each win with probability `s` over the sum of
//! all, which is what the hook length formula asks for (D. Knuth, *The Art of Computer
//! Programming*, volume 3, section 5.1.4, exercise 20), and have no memory, so that the next choice
//! is as free as the first.

use crate::Shape;
use crate::shape::random::SplitMix64;

/// Node numbers in an order of birth, the same for equal seeds. O(n log n), no recursion.
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
    // Stable: where a wait is lost to rounding, the smaller number comes first, which is the
    // parent's.
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
        let draws = 30_000;
        for seed in 0..draws {
            *orders.entry(birth_order(&shape, seed)).or_insert(0u32) += 1;
        }
        assert_eq!(orders.len(), 3);
        for (order, &count) in &orders {
            let share = f64::from(count) / draws as f64;
            assert!((share - 1.0 / 3.0).abs() < 0.02, "{order:?}: {share}");
        }
    }

    #[test]
    fn a_list_has_one_order() {
        let parents: Vec<u32> = (0..50_000u32)
            .map(|v| v.checked_sub(1).unwrap_or(NO_NODE))
            .collect();
        let shape = Shape::from_parents(&parents).unwrap();
        assert!(birth_order(&shape, 7).is_sorted());
    }

    quickcheck! {
        fn parents_are_born_first(parents: Vec<u16>, seed: u64) -> bool {
            let parents: Vec<u32> = (0u32..).zip(&parents)
                .map(|(v, &p)| if v == 0 || p % 7 == 0 { NO_NODE } else { u32::from(p) % v })
                .collect();
            let shape = Shape::from_parents(&parents).unwrap();
            let order = birth_order(&shape, seed);
            let mut time = vec![usize::MAX; order.len()];
            for (t, &v) in order.iter().enumerate() {
                time[v as usize] = t;
            }
            (0..shape.nodes()).all(|v| {
                let parent = shape.parent(v);
                time[v as usize] < usize::MAX && (parent == NO_NODE || time[parent as usize] < time[v as usize])
            })
        }
    }
}
