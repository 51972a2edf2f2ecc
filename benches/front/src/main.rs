//! Runs the list of workloads and reports ours against the rivals.
//!
//! Help and lists need no rival. For the rest this program has cargo build and run `measure`, with
//! the features that it was built with itself.

use std::env;
use std::io::{self, Write};
use std::process::{Command, ExitCode};

use benches::{Args, FEATURES, list};
use clap::Parser;

fn main() -> ExitCode {
    if Args::parse().list {
        // A reader that went away has seen enough.
        let _gone = io::stdout().write_all(list().as_bytes());
        return ExitCode::SUCCESS;
    }
    let features = FEATURES.iter().filter(|(_, is_on)| *is_on);
    let features: Vec<&str> = features.map(|(name, _)| *name).collect();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let measure = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "measure"])
        .args(["--bin", "measure", "--no-default-features", "--features"])
        .arg(features.join(","))
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .arg("--")
        .args(env::args_os().skip(1))
        .status();
    match measure {
        // A signal ends `measure` without a code.
        Ok(status) => status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            eprintln!("report: cannot start cargo: {error}");
            ExitCode::FAILURE
        }
    }
}
