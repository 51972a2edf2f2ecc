//! `ccscope-trace`: the command line of `ccscope trace`.

use std::io::{stderr, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(cctrace::run(
        std::env::args_os(),
        &mut stdout(),
        &mut stderr(),
    ))
}
