//! The allocator of this repository, which no tool sees, within one that tells.

use std::hint::black_box;

use ccmalloc::CcMalloc;
use ccscope::Profiled;

#[global_allocator]
static GLOBAL: Profiled<CcMalloc> = Profiled::new(CcMalloc::new());

fn main() {
    let lists: Vec<Vec<u64>> = (0..2000).map(|n| (0..n % 50).collect()).collect();
    let sum: u64 = black_box(&lists).iter().flatten().sum();
    println!("{sum}");
}
