//! The public face of `ctree`, from outside, under an allocator that counts.

mod doubles;
mod edges;
mod memory;
mod model;
mod transparent;
