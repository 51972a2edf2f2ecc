//! Where do the nodes of a structure lie, and what does a morph change? Pictures of a search tree
//! and of a list, before and after.
//!
//! ```text
//! cargo run --release --example layout_map                       2000 nodes each, pictures in target/layout_map
//! cargo run --release --example layout_map -- FOLDER 10000       pictures in a folder of yours, as many nodes as you say
//! cargo run --release --example layout_map -- docs/pictures      the pictures in docs/pictures
//! ```
//!
//! The work is done in `src/layout_map`.

use std::process::ExitCode;

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

fn main() -> ExitCode {
    examples::layout_map::run_from_command_line()
}
