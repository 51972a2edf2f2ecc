//! Tests that cross crates, in a program that is built as a user's would be: `CcMalloc` serves
//! everything, the test harness included.

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

mod maps;
mod messages;
mod predictions;
mod std_surface;
mod stress;
mod trees;
