//! The worked example of `docs/guide.md`: a price list in a search tree, as it was written, and
//! after each cure.
//!
//! ```text
//! cargo run --release --example guide                             all stages, timed in turns
//! cargo run --release --example guide -- --growth                 the program as it was written, small to large
//! cargo run --release --example guide -- --stage plain            one stage alone, for valgrind and perf
//! cargo run --release --example guide -- --nodes 2000 --pictures FOLDER
//! ```
//!
//! The work is done in `src/guide`. The global allocator serves a thread from the system's malloc
//! or from `CcMalloc`, as asked, because the comparison needs both; a program of one's own says
//! `static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();`.

use std::process::ExitCode;

use examples::switch::SwitchAllocator;

#[global_allocator]
static GLOBAL: SwitchAllocator = SwitchAllocator;

fn main() -> ExitCode {
    examples::guide::run_from_command_line()
}
