//! `cargo-ccscope`: what `cargo ccscope` starts.

use std::io::stderr;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(ccscope::cli::run_cargo(std::env::args_os(), &mut stderr()))
}
