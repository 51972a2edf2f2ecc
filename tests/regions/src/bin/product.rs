//! The product of two matrices of integers by `ndarray`, as it is and in blocks.
//!
//! `product SIDE BLOCK`: with a block as large as the side it is one call. Prints a sum of the
//! product and milliseconds.

use std::error::Error;
use std::time::Instant;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, s};

fn product(a: &Array2<u64>, b: &Array2<u64>, block: usize) -> Array2<u64> {
    let _region = ccscope::region!("product");
    let side = a.nrows();
    let mut sum = Array2::zeros((side, side));
    for column in (0..side).step_by(block) {
        let columns = column..side.min(column + block);
        for middle in (0..side).step_by(block) {
            let middle = middle..side.min(middle + block);
            let _region = ccscope::region!("block");
            let a = a.slice(s![.., middle.clone()]);
            let b = b.slice(s![middle, columns.clone()]);
            general_mat_mul(1, &a, &b, 1, &mut sum.slice_mut(s![.., columns.clone()]));
        }
    }
    sum
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Result<Vec<usize>, _> = std::env::args().skip(1).map(|it| it.parse()).collect();
    let &[side, block @ 1..=usize::MAX] = &words?[..] else {
        return Err("product SIDE BLOCK".into());
    };
    let matrix = |factor| Array2::from_shape_fn((side, side), |(y, x)| (y * factor + x) as u64);
    let (a, b) = (matrix(3), matrix(5));
    let started = Instant::now();
    let product = product(&a, &b, block);
    let elapsed = started.elapsed();
    let sum = product
        .iter()
        .fold(0_u64, |sum, it| sum.wrapping_mul(3).wrapping_add(*it));
    println!("{sum} {:.1}", elapsed.as_secs_f64() * 1e3);
    Ok(())
}
