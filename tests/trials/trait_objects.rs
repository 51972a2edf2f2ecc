//! `Box<dyn Trait>` could not be morphed. The supertrait `AnyLinks` is all that it takes.

use ccmorph::{AnyLinks, Morph, TreeNode};
use std::rc::Rc;

trait Formula: AnyLinks {
    fn value(&self) -> u64;
}

struct Number(
    u64,
    #[expect(dead_code, reason = "counted, not read")] Rc<()>,
);
impl AnyLinks for Number {} // owns no nodes
impl Formula for Number {
    fn value(&self) -> u64 {
        self.0
    }
}

#[derive(TreeNode)]
struct Sum(#[child] Vec<Box<dyn Formula>>);
impl Formula for Sum {
    fn value(&self) -> u64 {
        self.0.iter().map(|formula| formula.value()).sum()
    }
}

#[derive(TreeNode)]
#[repr(align(64))]
struct Twice(#[child] Box<dyn Formula>);
impl Formula for Twice {
    fn value(&self) -> u64 {
        2 * self.0.value()
    }
}

#[test]
fn trait_objects_of_all_sizes_move_as_one() {
    let token = Rc::new(());
    let number = |n| Box::new(Number(n, Rc::clone(&token)));
    let mut formula: Box<dyn Formula> = number(0);
    for n in 0..1000 {
        let twice = Box::new(Twice(number(n)));
        formula = Box::new(Sum(vec![formula, twice, number(1)]));
    }
    let value = formula.value();
    for _ in 0..2 {
        let report = Morph::new().run_any(&mut formula).unwrap();
        // Sums, their vectors, doubles, and numbers.
        assert_eq!((report.nodes, report.placed), (3 * 1000 + 2001, true));
        assert_eq!(formula.value(), value);
    }
    assert_eq!(Rc::strong_count(&token), 2002);
    drop(formula);
    assert_eq!(Rc::strong_count(&token), 1);
}
