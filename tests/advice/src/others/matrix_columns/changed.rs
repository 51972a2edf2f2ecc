//! All columns of a row at once.

use super::before::{checksum, table};

pub fn idea(size: usize) -> u64 {
    let mut table = table(size);
    let (rows, zero) = (table.len() as f64, vec![0.0; table[0].len()]);
    let (mut means, mut spreads) = (zero.clone(), zero);
    for row in &table {
        for (mean, cell) in means.iter_mut().zip(row) {
            *mean += cell;
        }
    }
    means.iter_mut().for_each(|mean| *mean /= rows);
    for row in &table {
        for (column, spread) in spreads.iter_mut().enumerate() {
            *spread += (row[column] - means[column]).powi(2);
        }
    }
    let root = |variance: &mut f64| *variance = (*variance / rows).sqrt();
    spreads.iter_mut().for_each(root);
    for row in &mut table {
        for (column, cell) in row.iter_mut().enumerate() {
            *cell = (*cell - means[column]) / spreads[column];
        }
    }
    checksum(&table)
}
