//! ccmorph under the allocator that it is made for. Whatever gives `MorphError::NotCcMalloc` here
//! fails.

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

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
mod traversals;
mod tree;
