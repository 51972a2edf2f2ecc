//! ccmorph under the allocator that it is made for.

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

/// Called first by tests of modules that `declared` runs, too.
fn begin() {}

mod any;
mod colour;
mod derive;
mod index;
mod kinds;
mod life;
mod map;
mod pointers;
mod raw;
mod sizes;
mod split;
mod traversals;
mod tree;
