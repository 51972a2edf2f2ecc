//! One vector of all literals, and one of all occurrences.

use super::before::{Literal, index, orders, search};

pub fn idea(size: usize) -> u64 {
    orders(size, |formula| {
        let clauses: Vec<Literal> = formula.clauses.into_iter().flatten().collect();
        let (mut ends, mut occurrences) = (vec![0], Vec::new());
        for numbers in formula.occurrences {
            occurrences.extend(numbers);
            ends.push(occurrences.len());
        }
        search(
            |number| &clauses[3 * number..][..3],
            |literal| &occurrences[ends[index(literal)]..ends[index(literal) + 1]],
        )
    })
}
