//! Tests that cross crates, in a program that is built as a user's would be: `CcMalloc` serves
//! everything, the test harness included.

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

mod maps;
mod messages;
mod predictions;
#[path = "../../benches/src/search_tree.rs"]
#[expect(
    unreachable_pub,
    reason = "the benchmarks' tree, which is public there"
)]
mod search_tree;
#[path = "../skipped.rs"]
mod skipped;
mod std_surface;
#[path = "../../benches/src/survey.rs"]
#[expect(unreachable_pub, reason = "as above")]
mod survey;
mod trees;
