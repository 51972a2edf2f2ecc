//! `ccscope`: the command line.

use std::io::{stderr, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Not locked: the profiled program's lines and the progress go to the same places.
    ExitCode::from(ccscope::cli::run(
        std::env::args_os(),
        &mut stdout(),
        &mut stderr(),
    ))
}
