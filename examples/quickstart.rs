//! The main job, end to end: where should the nodes of a search tree over real text lie, and what
//! does it gain?
//!
//! ```text
//! cargo run --release --example quickstart                     the names of all Unicode characters
//! cargo run --release --example quickstart -- FILE             any UTF-8 text
//! ```
//!
//! The work is done in `src/quickstart`. Here stands what only a program can decide: its global
//! allocator. This one serves a thread from the system's malloc or from `CcMalloc`, as asked,
//! because the comparison needs both; a program of one's own says `static GLOBAL:
//! ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();`.

use std::process::ExitCode;

use examples::switch::SwitchAllocator;

#[global_allocator]
static GLOBAL: SwitchAllocator = SwitchAllocator;

fn main() -> ExitCode {
    examples::quickstart::run_from_command_line()
}
