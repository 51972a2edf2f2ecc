//! Loops over 896 bytes that the compiler makes of vectors.

use std::hint::black_box;

fn main() {
    let mut numbers = vec![1_u64; 112];
    for _ in 0..100 {
        for number in black_box(&mut numbers).iter_mut() {
            *number += 1;
        }
    }
    black_box(&numbers);
}
