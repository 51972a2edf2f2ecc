//! The public face of `ctree`, from outside, under an allocator that counts.

mod doubles;
mod edges;
#[cfg(feature = "mmap")]
mod mapped;
mod memory;
mod model;
mod transparent;
