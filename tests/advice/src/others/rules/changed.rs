//! The conditions in the order in which they are asked.

use super::before::{Rule, filter, rules};
use ccmorph::{AnyLinks, AnyVisitor, Operation};

impl AnyLinks for Rule {
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        match self {
            Rule::Port(_) | Rule::Longer(_) | Rule::Flag(_) => {}
            Rule::Not(rule) => visitor.show(rule),
            Rule::All(rules) | Rule::Any(rules) => visitor.show(rules),
        }
    }
}

pub fn morph(size: usize) -> u64 {
    let mut rules = rules();
    let morph = crate::morph().operation(Operation::Walk);
    morph.run_any(&mut rules).expect("memory for the nodes");
    filter(size, &rules)
}
