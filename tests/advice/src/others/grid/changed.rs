//! Bodies near the vectors of their cells, or in them.

use super::before::{Body, Cell, body, shots};
use fastrand::Rng;
use std::collections::HashMap;

pub fn hint(size: usize) -> u64 {
    let mut random = Rng::with_seed(62);
    let mut grid: HashMap<Cell, Vec<Box<Body>>> = HashMap::new();
    for _ in 0..size {
        let (cell, body) = body(&mut random, size);
        let bodies = grid.entry(cell).or_default();
        let body = match bodies.last() {
            Some(last) => ccmalloc::near(last, || Box::new(body)),
            None => ccmalloc::near(&(), || Box::new(body)),
        };
        bodies.push(body);
    }
    shots(size, |cell, x, y| match grid.get_mut(&cell) {
        Some(bodies) => bodies.iter_mut().map(|it| it.hit(x, y)).sum(),
        None => 0,
    })
}

pub fn idea(size: usize) -> u64 {
    let mut random = Rng::with_seed(62);
    let mut grid: HashMap<Cell, Vec<Body>> = HashMap::new();
    for _ in 0..size {
        let (cell, body) = body(&mut random, size);
        grid.entry(cell).or_default().push(body);
    }
    shots(size, |cell, x, y| match grid.get_mut(&cell) {
        Some(bodies) => bodies.iter_mut().map(|it| it.hit(x, y)).sum(),
        None => 0,
    })
}

/// A vector of vectors in place of the map.
pub fn smaller(size: usize) -> u64 {
    let mut random = Rng::with_seed(62);
    let columns = (size as f32).sqrt() as usize / 2 + 2;
    let mut grid: Vec<Vec<Body>> = Vec::new();
    grid.resize_with(columns * columns, Vec::new);
    let place = |(x, y): Cell| y as usize * columns + x as usize;
    for _ in 0..size {
        let (cell, body) = body(&mut random, size);
        grid[place(cell)].push(body);
    }
    shots(size, |cell, x, y| {
        let bodies = &mut grid[place(cell)];
        bodies.iter_mut().map(|it| it.hit(x, y)).sum()
    })
}
