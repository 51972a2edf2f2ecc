//! Other maps, or all rows in one vector once they are complete.

use super::before::{conductors, solve, stamp};
use ctree::CTreeMap;
use std::collections::BTreeMap;

macro_rules! rows {
    ($Map:ident, $size:expr) => {{
        let mut rows: Vec<$Map<usize, f64>> = Vec::new();
        rows.resize_with($size, $Map::new);
        for conductor in conductors($size) {
            stamp(conductor, |row, column, value| {
                *rows[row].entry(column).or_default() += value;
            });
        }
        rows
    }};
}

pub fn container(size: usize) -> u64 {
    let rows = rows!(CTreeMap, size);
    solve(size, |row| {
        rows[row].iter().map(|(&column, &value)| (column, value))
    })
}

pub fn idea(size: usize) -> u64 {
    let (mut ends, mut entries) = (vec![0], Vec::new());
    for row in rows!(BTreeMap, size) {
        entries.extend(row);
        ends.push(entries.len());
    }
    solve(size, |row| {
        entries[ends[row]..ends[row + 1]].iter().copied()
    })
}
