//! Trees laid out before they are calculated.

use super::before::{Formula, Parser, calculate, sheet};
use ccmorph::Operation;

pub fn morph(size: usize) -> u64 {
    sheet(size, |text, cells| {
        let mut formula = Parser { text }.sum();
        let morph = crate::morph().operation(Operation::Walk);
        let done = morph.run(&mut formula, |formula, visit| match formula {
            Formula::Number(_) | Formula::Cell(_) => {}
            Formula::Negated(inner) => visit(inner),
            Formula::Binary(_, left, right) => {
                visit(left);
                visit(right);
            }
        });
        done.expect("memory for the nodes");
        calculate(&formula, cells)
    })
}
