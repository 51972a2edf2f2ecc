//! A vector for each field that is summed.

use super::before::{SUMS, checksum, particles};

pub fn split(size: usize) -> u64 {
    let all = particles(size);
    let mut positions = [0, 1, 2].map(|axis| {
        let along = all.iter().map(|it| it.position[axis]);
        along.collect::<Vec<f64>>()
    });
    let charges: Vec<f64> = all.iter().map(|it| it.charge).collect();
    let mut sum = 0.0;
    for round in 0..SUMS {
        let places = positions[round % 3].iter().zip(&charges);
        sum += places.filter(|it| *it.0 > 0.5).map(|it| it.1).sum::<f64>();
        if round % 50 == 0 {
            for (axis, positions) in positions.iter_mut().enumerate() {
                for (position, it) in positions.iter_mut().zip(&all) {
                    *position = (*position + it.velocity[axis]).fract();
                }
            }
        }
    }
    checksum(&all, sum)
}
