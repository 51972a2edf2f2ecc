//! `model`: the command line of `ccmodel`.

use std::io::{stderr, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(ccmodel::cli::run(
        std::env::args_os(),
        &mut stdout().lock(),
        // Not locked: threads write their progress, too.
        &mut stderr(),
    ))
}
