//! A configurator: local searches for assignments that satisfy clauses, one for each order.

use fastrand::Rng;

/// The number of a variable from 1 on, negative where it is negated.
pub(super) type Literal = i32;

const VARIABLES: usize = 500;
const CLAUSES: usize = 2000;

pub(super) struct Formula {
    pub(super) clauses: Vec<Vec<Literal>>,
    /// The clauses of each literal, by `index`.
    pub(super) occurrences: Vec<Vec<usize>>,
}

pub(super) fn index(literal: Literal) -> usize {
    2 * literal.unsigned_abs() as usize + usize::from(literal < 0)
}

pub(super) fn formula(order: usize) -> Formula {
    let (mut random, variables) = (Rng::with_seed(order as u64), VARIABLES);
    let mut occurrences = vec![Vec::new(); 2 * variables + 2];
    let clause = |number| {
        let mut literal = |_| {
            let literal = random.i32(1..=variables as i32) * if random.bool() { 1 } else { -1 };
            occurrences[index(literal)].push(number);
            literal
        };
        (0..3).map(&mut literal).collect()
    };
    let clauses = (0..CLAUSES).map(clause).collect();
    Formula {
        clauses,
        occurrences,
    }
}

/// Flips variables of clauses that do not hold until there are none, or it takes too long.
pub(super) fn search<'a>(
    clause: impl Fn(usize) -> &'a [Literal],
    clauses_with: impl Fn(Literal) -> &'a [usize],
) -> u64 {
    let (mut random, variables) = (Rng::with_seed(106), VARIABLES);
    let mut values: Vec<bool> = (0..=variables).map(|_| random.bool()).collect();
    let holds = |literal: Literal, values: &[bool]| {
        values[literal.unsigned_abs() as usize] == (literal > 0)
    };
    let true_literals = |number| {
        let literals = clause(number).iter();
        literals.filter(|&&it| holds(it, &values)).count()
    };
    let mut satisfied: Vec<usize> = (0..CLAUSES).map(true_literals).collect();
    let mut broken: Vec<usize> = (0..satisfied.len())
        .filter(|&it| satisfied[it] == 0)
        .collect();
    let mut flips = 0;
    while !broken.is_empty() && flips < 40 * variables as u64 {
        let number = broken.swap_remove(random.usize(..broken.len()));
        if satisfied[number] > 0 {
            continue;
        }
        let literals = clause(number);
        let breaks = |&&literal: &&Literal| {
            let negated = clauses_with(-literal).iter();
            negated.filter(|&&it| satisfied[it] == 1).count()
        };
        let best = literals.iter().min_by_key(breaks).unwrap();
        let is_noise = random.u8(..5) == 0;
        let literal = if is_noise {
            literals[random.usize(..3)]
        } else {
            *best
        };
        values[literal.unsigned_abs() as usize] = literal > 0;
        clauses_with(literal)
            .iter()
            .for_each(|&it| satisfied[it] += 1);
        for &other in clauses_with(-literal) {
            satisfied[other] -= 1;
            if satisfied[other] == 0 {
                broken.push(other);
            }
        }
        flips += 1;
    }
    let ones = values.iter().filter(|&&value| value).count() as u64;
    flips << 32 | broken.len() as u64 ^ ones
}

pub(super) fn orders(size: usize, solve: impl Fn(Formula) -> u64) -> u64 {
    (0..size / 100 + 1).fold(0, |sum: u64, order| {
        sum.rotate_left(7) ^ solve(formula(order))
    })
}

pub fn run(size: usize) -> u64 {
    orders(size, |formula| {
        search(
            |number| &formula.clauses[number],
            |literal| &formula.occurrences[index(literal)],
        )
    })
}
