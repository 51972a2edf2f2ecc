//! The lists in the order of walks; what lies in maps stays.

use super::before::{Value, questions, services};
use ccmorph::{AnyLinks, AnyVisitor, Operation};

impl AnyLinks for Value {
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        match self {
            Value::Number(_) | Value::Text(_) => {}
            Value::List(values) => visitor.show(values),
            Value::Object(members) => visitor.show(members),
        }
    }
}

pub fn morph(size: usize) -> u64 {
    let mut all = services(size);
    let morph = crate::morph().operation(Operation::Walk);
    morph.run_any(&mut all).expect("memory for the nodes");
    questions(size, &all)
}
