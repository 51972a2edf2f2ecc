//! A multiplier as a binary decision diagram, asked for its output.
//!
//! The circuit is an array multiplier of 16 x 16 bits, as C6288 of the ISCAS'85 benchmarks is, the
//! kind of circuit that decision diagrams are bad at (R. Bryant, *On the Complexity of VLSI
//! Implementations and Graph Representations of Boolean Functions*, 1991): the diagram of its
//! middle output has about a million nodes. `biodivine-lib-bdd` builds it gate by gate; then test
//! vectors are put to it, one walk from the root to a terminal each. Every answer is compared with
//! that of the processor's own multiplier.
//!
//! The crate keeps a diagram as a vector of nodes of 12 bytes, linked by index, in depth-first
//! order. It takes nodes in any order, as long as the terminals come first and the root comes last,
//! so the change takes the nodes out, has [`Morph::run_slice`] permute them, and puts them back.
//! Shared nodes lie with the first of their parents.

use crate::rng::Rng;
use biodivine_lib_bdd::{Bdd, BddNode, BddPointer, BddValuation, BddVariableSet};
use ccmorph::{Layout, Morph};

use crate::programs::{Outcome, Scale};

/// What every diagram begins with.
const TERMINALS: usize = 2;

/// The change. A layout begins with the root, and the crate's vectors end with it, so the order is
/// turned round before and after.
pub(super) fn morph(diagram: Bdd) -> Bdd {
    let nodes = diagram.to_nodes();
    let (terminals, inner) = nodes.split_at(TERMINALS);
    let turned = |index: usize| match index {
        0..TERMINALS => index,
        _ => nodes.len() - 1 + TERMINALS - index,
    };
    let mut links: Vec<_> = inner
        .iter()
        .rev()
        .map(|node| {
            (
                node.var,
                [node.low_link, node.high_link].map(|link| turned(link.to_index())),
            )
        })
        .collect();
    let mut root = TERMINALS;
    let report = Morph::new()
        .first_index(TERMINALS)
        .layout(Layout::SubtreeCluster { block_bytes: 64 })
        .run_slice(&mut links, &mut root, |(_, links), visit| {
            visit.child(links);
        })
        .expect("a usize can hold any index");
    assert_eq!(report.reached, links.len(), "a diagram has no other nodes");
    assert_eq!(root, TERMINALS, "a root that is first stays so");
    let laid_out: Vec<BddNode> = terminals
        .iter()
        .copied()
        .chain(links.iter().rev().map(|&(var, links)| {
            let [low_link, high_link] = links.map(|link| BddPointer::from_index(turned(link)));
            BddNode {
                var,
                low_link,
                high_link,
            }
        }))
        .collect();
    Bdd::from_nodes(&laid_out).expect("the same nodes in another order")
}

/// Test vectors.
const VECTORS: usize = 16_000_000;

/// Bits of each factor. Two more of them make the diagram five times as large, and its construction
/// take ten times as long.
fn bits(scale: Scale) -> u16 {
    match scale {
        Scale::Quick => 14,
        Scale::Full => 16,
    }
}

pub(super) fn run(scale: Scale, morph: impl Fn(Bdd) -> Bdd) -> Outcome {
    let bits = bits(scale);
    Outcome::of(|sum| {
        let variables = BddVariableSet::new_anonymous(2 * bits);
        let diagram = morph(middle_output(&variables));
        let names = variables.variables();
        let mut vector = BddValuation::all_false(2 * bits);
        let mut rng = Rng::new(43);
        for _ in 0..scale.of(VECTORS) {
            let random = rng.next_u64();
            let (mut left, mut right) = (0_u32, 0_u32);
            for (bit, pair) in names.chunks_exact(2).enumerate() {
                let [a, b] = [2 * bit, 2 * bit + 1].map(|place| random >> place & 1 == 1);
                left |= u32::from(a) << bit;
                right |= u32::from(b) << bit;
                vector.set_value(pair[0], a);
                vector.set_value(pair[1], b);
            }
            let output = diagram.eval_in(&vector);
            let expected = left.wrapping_mul(right) >> (bits - 1) & 1 == 1;
            assert_eq!(output, expected, "{left} * {right}");
            sum.add(u64::from(output));
        }
        diagram
    })
}

/// The highest bit of the lower half of the product, by rows of full adders. The factors' variables
/// take turns, from the lowest bits on.
fn middle_output(variables: &BddVariableSet) -> Bdd {
    let names = variables.variables();
    let factors: Vec<[Bdd; 2]> = names
        .chunks_exact(2)
        .map(|pair| [variables.mk_var(pair[0]), variables.mk_var(pair[1])])
        .collect();
    let mut row = vec![variables.mk_false(); factors.len()];
    for (shift, [left, _]) in factors.iter().enumerate() {
        let mut carry = variables.mk_false();
        for (sum, [_, right]) in row[shift..].iter_mut().zip(&factors) {
            let product = left.and(right);
            let half = sum.xor(&product);
            let next_carry = sum.and(&product).or(&half.and(&carry));
            *sum = half.xor(&carry);
            carry = next_carry;
        }
    }
    row.pop().expect("factors have bits")
}
