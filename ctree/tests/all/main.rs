//! The public face of `ctree`, from outside, under an allocator that counts.

mod doubles;
mod edges;
mod frozen_heads;
mod frozen_narrow;
mod frozen_sets;
#[cfg(feature = "mmap")]
mod mapped;
mod memory;
mod model;
mod transparent;
