//! Samples as rows of a table, whose columns are brought to one mean and one spread.

use fastrand::Rng;

const COLUMNS: usize = 200;

pub(super) fn table(size: usize) -> Vec<Vec<f64>> {
    let mut random = Rng::with_seed(59);
    let mut row = || (0..COLUMNS).map(|_| random.f64()).collect();
    (0..size).map(|_| row()).collect()
}

fn normalize(table: &mut [Vec<f64>], column: usize) {
    let rows = table.len() as f64;
    let mut mean = 0.0;
    for row in &*table {
        mean += row[column];
    }
    mean /= rows;
    let mut variance = 0.0;
    for row in &*table {
        variance += (row[column] - mean).powi(2);
    }
    let spread = (variance / rows).sqrt();
    for row in table {
        row[column] = (row[column] - mean) / spread;
    }
}

pub(super) fn checksum(table: &[Vec<f64>]) -> u64 {
    let cells = table.iter().flatten();
    cells.fold(0, |sum, cell| sum.rotate_left(1) ^ cell.to_bits())
}

pub fn run(size: usize) -> u64 {
    let mut table = table(size);
    for column in 0..COLUMNS {
        normalize(&mut table, column);
    }
    checksum(&table)
}
