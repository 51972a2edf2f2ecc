//! Formulas that grow by random changes, as in genetic programming, and are evaluated after each.

use fastrand::Rng;

pub(super) enum Formula {
    Number(u64),
    Variable(usize),
    Sum(Box<Formula>, Box<Formula>),
    Product(Box<Formula>, Box<Formula>),
    Choice(Box<Formula>, Box<Formula>, Box<Formula>),
}

use Formula::{Choice, Number, Product, Sum, Variable};

impl Formula {
    pub(super) fn value(&self, variables: &[u64]) -> u64 {
        match self {
            Number(number) => *number,
            Variable(at) => variables[*at],
            Sum(a, b) => a.value(variables).wrapping_add(b.value(variables)),
            Product(a, b) => a.value(variables).wrapping_mul(b.value(variables) | 1),
            Choice(condition, yes, no) => {
                if condition.value(variables).is_multiple_of(2) {
                    yes.value(variables)
                } else {
                    no.value(variables)
                }
            }
        }
    }
}

fn leaf(random: &mut Rng) -> Box<Formula> {
    Box::new(match random.bool() {
        true => Number(random.u64(..100)),
        false => Variable(random.usize(..8)),
    })
}

/// Puts a leaf of the formula, and a new one, under an operation.
fn grow(formula: &mut Box<Formula>, random: &mut Rng) {
    match &mut **formula {
        Sum(a, b) | Product(a, b) => grow(if random.bool() { a } else { b }, random),
        Choice(a, b, c) => {
            let parts = [a, b, c];
            grow(parts.into_iter().nth(random.usize(..3)).unwrap(), random);
        }
        Number(_) | Variable(_) => {
            let old = std::mem::replace(formula, leaf(random));
            let new = leaf(random);
            **formula = match random.u8(..8) {
                0..4 => Sum(old, new),
                4..7 => Product(new, old),
                _ => Choice(old, new, leaf(random)),
            };
        }
    }
}

pub(super) fn grown(size: usize) -> Vec<Box<Formula>> {
    let mut random = Rng::with_seed(43);
    let mut formulas: Vec<_> = (0..16).map(|_| leaf(&mut random)).collect();
    for _ in 0..size {
        grow(&mut formulas[random.usize(..16)], &mut random);
    }
    formulas
}

pub(super) fn score(value: impl Fn(usize, &[u64]) -> u64) -> u64 {
    (0..12).fold(0, |sum: u64, round| {
        let variables: Vec<u64> = (0..8).map(|at| at * round + 3).collect();
        (0..16).fold(sum, |sum, at| {
            sum.rotate_left(3).wrapping_add(value(at, &variables))
        })
    })
}

pub fn run(size: usize) -> u64 {
    let formulas = grown(size);
    score(|at, variables| formulas[at].value(variables))
}
