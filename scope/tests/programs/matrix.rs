//! Multiplies two matrices of 24 by 24 numbers.

#[path = "common/mod.rs"]
mod common;

const N: usize = 24;

fn main() {
    let mut random = common::Random::new();
    let mut matrix = || {
        (0..N * N)
            .map(|_| random.next() as f64)
            .collect::<Vec<f64>>()
    };
    let (a, b) = (matrix(), matrix());
    let mut c = vec![0.0; N * N];
    for i in 0..N {
        for k in 0..N {
            for j in 0..N {
                c[i * N + j] += a[i * N + k] * b[k * N + j];
            }
        }
    }
    println!("{}", c.iter().sum::<f64>());
    for matrix in [a, b, c] {
        common::print_chunk(matrix.as_ptr(), matrix.len());
        matrix.leak();
    }
    common::end();
}
