//! Linear equations of a network of conductors, with a sorted map for each row.

use fastrand::Rng;
use std::collections::BTreeMap;

/// The conductors between two nodes each.
pub(super) fn conductors(size: usize) -> impl Iterator<Item = (usize, usize, f64)> {
    let mut random = Rng::with_seed(114);
    (0..4 * size).map(move |_| {
        let node = random.usize(..size);
        // Most lead to a node nearby.
        let far = if random.u8(..4) == 0 {
            size
        } else {
            50.min(size)
        };
        (node, (node + random.usize(1..far)) % size, random.f64())
    })
}

#[derive(Default)]
struct Matrix {
    rows: Vec<BTreeMap<usize, f64>>,
}

impl Matrix {
    fn add(&mut self, row: usize, column: usize, value: f64) {
        *self.rows[row].entry(column).or_default() += value;
    }

    fn row(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        self.rows[row]
            .iter()
            .map(|(&column, &value)| (column, value))
    }
}

/// Adds a conductor to the equations.
pub(super) fn stamp((a, b, value): (usize, usize, f64), mut add: impl FnMut(usize, usize, f64)) {
    add(a, a, value);
    add(b, b, value);
    add(a, b, -value);
    add(b, a, -value);
}

/// The method of Jacobi, for a current into the first node.
pub(super) fn solve<I>(size: usize, row: impl Fn(usize) -> I) -> u64
where
    I: Iterator<Item = (usize, f64)>,
{
    let mut volts = vec![0.0; size];
    for _ in 0..15 {
        let next = |node| {
            let mut diagonal = 1.0;
            let mut current = if node == 0 { 10.0 } else { 0.0 };
            for (column, value) in row(node) {
                if column == node {
                    diagonal += value;
                } else {
                    current -= value * volts[column];
                }
            }
            current / diagonal
        };
        volts = (0..size).map(next).collect();
    }
    volts.iter().fold(0, |sum: u64, volts: &f64| {
        sum.rotate_left(1) ^ volts.to_bits()
    })
}

pub fn run(size: usize) -> u64 {
    let mut matrix = Matrix::default();
    matrix.rows.resize_with(size, BTreeMap::new);
    for conductor in conductors(size) {
        stamp(conductor, |row, column, value| {
            matrix.add(row, column, value);
        });
    }
    solve(size, |row| matrix.row(row))
}
