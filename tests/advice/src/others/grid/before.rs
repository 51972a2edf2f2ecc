//! Bodies in a grid of cells, found by the cells around them.

use fastrand::Rng;
use std::collections::HashMap;

pub(super) struct Body {
    x: f32,
    y: f32,
    radius: f32,
    hits: u32,
}

pub(super) type Cell = (i32, i32);

pub(super) fn body(random: &mut Rng, size: usize) -> (Cell, Body) {
    let side = (size as f32).sqrt();
    let (x, y) = (random.f32() * side, random.f32() * side);
    let body = Body {
        x,
        y,
        radius: random.f32() * 0.7,
        hits: 0,
    };
    ((x as i32 / 2, y as i32 / 2), body)
}

impl Body {
    pub(super) fn hit(&mut self, x: f32, y: f32) -> usize {
        let is_hit = (self.x - x).hypot(self.y - y) < self.radius;
        self.hits += u32::from(is_hit);
        usize::from(is_hit)
    }
}

/// Shots at random places, and how many bodies each hits.
pub(super) fn shots(size: usize, mut hits: impl FnMut(Cell, f32, f32) -> usize) -> u64 {
    let mut random = Rng::with_seed(61);
    let side = (size as f32).sqrt();
    (0..size).fold(0, |sum: u64, _| {
        let (x, y) = (random.f32() * side, random.f32() * side);
        let (left, top) = ((x as i32 - 1) / 2, (y as i32 - 1) / 2);
        let around = [(0, 0), (1, 0), (0, 1), (1, 1)];
        let hits: usize = { around.iter() }
            .map(|(right, down)| hits((left + right, top + down), x, y))
            .sum();
        sum.rotate_left(1) ^ hits as u64
    })
}

pub fn run(size: usize) -> u64 {
    let mut random = Rng::with_seed(62);
    let mut grid: HashMap<Cell, Vec<Box<Body>>> = HashMap::new();
    for _ in 0..size {
        let (cell, body) = body(&mut random, size);
        grid.entry(cell).or_default().push(Box::new(body));
    }
    shots(size, |cell, x, y| match grid.get_mut(&cell) {
        Some(bodies) => bodies.iter_mut().map(|it| it.hit(x, y)).sum(),
        None => 0,
    })
}
