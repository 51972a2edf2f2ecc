//! Where do hinted objects come to lie, and what does it gain? A tree, hash chains and a list, by
//! each policy and without hints.
//!
//! ```text
//! cargo run --release --example placement                 600000 objects in each structure
//! cargo run --release --example placement -- 4000000      as many as you say
//! ```
//!
//! The work is done in `src/placement`; `docs/ccmalloc.md` reads the table. The global allocator
//! serves a thread from the system's malloc or from `CcMalloc`, as asked, because the comparison
//! needs both.

use std::process::ExitCode;

use examples::switch::SwitchAllocator;

#[global_allocator]
static GLOBAL: SwitchAllocator = SwitchAllocator;

fn main() -> ExitCode {
    examples::placement::run_from_command_line()
}
