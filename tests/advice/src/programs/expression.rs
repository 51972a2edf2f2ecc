//! A large expression of boxed terms, evaluated again and again.
//!
//! It was put together from random parts, as by many rewritings, so its terms lie in no order. A
//! morph puts them into the order of the evaluation.

use super::mix;
use ccmorph::TreeNode;

morphed!(Term::children, Walk; |size| build(size), |root| evaluations(root));

#[derive(TreeNode)]
enum Term {
    Number(u32),
    Variable,
    Sum(#[child] [Box<Term>; 2]),
    Product(#[child] [Box<Term>; 2]),
}

fn build(size: usize) -> Box<Term> {
    let mut random = fastrand::Rng::with_seed(11);
    let leaf = |n| {
        Box::new(if n % 4 == 0 {
            Term::Variable
        } else {
            Term::Number(n)
        })
    };
    let mut parts: Vec<Box<Term>> = (0..).take(size).map(leaf).collect();
    while parts.len() > 1 {
        let left = parts.swap_remove(random.usize(..parts.len()));
        let at = random.usize(..parts.len());
        let right = parts.swap_remove(at);
        let both = [left, right];
        parts.push(Box::new(if random.bool() {
            Term::Sum(both)
        } else {
            Term::Product(both)
        }));
    }
    parts.remove(0)
}

fn evaluations(root: &Term) -> u64 {
    (0..6).fold(0, |sum, variable| mix(sum, evaluate(root, variable)))
}

fn evaluate(term: &Term, variable: u64) -> u64 {
    match term {
        Term::Number(number) => u64::from(*number),
        Term::Variable => variable,
        Term::Sum([a, b]) => evaluate(a, variable).wrapping_add(evaluate(b, variable)),
        Term::Product([a, b]) => mix(evaluate(a, variable), evaluate(b, variable)),
    }
}
