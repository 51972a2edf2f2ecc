//! A multiplier as a binary decision diagram, asked for its output.
//!
//! The circuit is an array multiplier of 16 x 16 bits, as C6288 of the ISCAS'85 benchmarks. The
//! diagram of its middle output has about a million nodes. `biodivine-lib-bdd` builds it gate by
//! gate. Then test vectors walk from the root to a terminal.
//!
//! The crate keeps a diagram as a vector of nodes of 12 bytes, linked by index, in any order with
//! the terminals first and the root last. So [`Morph::run_slice`] can permute them.

use biodivine_lib_bdd::{Bdd, BddNode, BddPointer, BddValuation, BddVariableSet};
use ccmorph::{Layout, Morph};

use crate::programs::{Outcome, Scale};
use crate::rng::Rng;

const TERMINALS: usize = 2;

/// The change. A layout begins with the root, the crate ends with it: indices are turned round.
pub(super) fn morph(diagram: Bdd) -> Bdd {
    let nodes = diagram.to_nodes();
    let (terminals, inner) = nodes.split_at(TERMINALS);
    let turned = |index: usize| match index {
        0..TERMINALS => index,
        _ => nodes.len() - 1 + TERMINALS - index,
    };
    let links = inner.iter().rev().map(|node| {
        let links = [node.low_link, node.high_link];
        (node.var, links.map(|link| turned(link.to_index())))
    });
    let mut links: Vec<_> = links.collect();
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
    let turned_back = links.iter().rev().map(|&(var, links)| {
        let [low_link, high_link] = links.map(|link| BddPointer::from_index(turned(link)));
        BddNode {
            var,
            low_link,
            high_link,
        }
    });
    let laid_out: Vec<BddNode> = terminals.iter().copied().chain(turned_back).collect();
    Bdd::from_nodes(&laid_out).expect("the same nodes in another order")
}

const VECTORS: usize = 16_000_000;

pub(super) fn run(scale: Scale, morph: impl Fn(Bdd) -> Bdd) -> Outcome {
    // Of each factor. Two more of them take ten times as long.
    let bits = scale.pick(14, 16);
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

/// The highest bit of the lower half of the product, by rows of full adders.
fn middle_output(variables: &BddVariableSet) -> Bdd {
    let names = variables.variables();
    let factors = names.chunks_exact(2);
    let factors = factors.map(|pair| [variables.mk_var(pair[0]), variables.mk_var(pair[1])]);
    let factors: Vec<[Bdd; 2]> = factors.collect();
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
