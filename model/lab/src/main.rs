//! Checks the predictions of `ccmodel`, and makes figures of T. Chilimbi's thesis again.

// Modules, lowest first: `probe_layout`, `sample`, `thesis`, `figures`, `validate`.

mod figures;
mod probe_layout;
mod sample;
mod thesis;
mod validate;

use std::error::Error;
use std::io::{ErrorKind, IsTerminal, stderr, stdout};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Checks the predictions of ccmodel, and makes figures of the thesis again
#[derive(Debug, Parser)]
#[command(name = "ccmodel-lab", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare the model with the simulator, cachegrind, the clock and the thesis
    Validate(validate::Args),
    /// Make the thesis's figures 3-4 to 3-6: predicted, simulated, and what its text says
    Thesis(figures::Args),
    /// Print what the thesis's formulas say of a tree and a machine
    Formulas(thesis::Args),
    /// Build a tree and search it, watched by valgrind
    #[command(hide = true)]
    ProbeLayout(probe_layout::Args),
}

/// Exit code of a request that cannot be met, as clap's.
const EXIT_USAGE: u8 = 2;

/// Simulations at once; more would need too much memory.
const THREADS_MAX: usize = 4;

fn main() -> ExitCode {
    let mut out = stdout().lock();
    let command = Args::parse().command;
    // Valgrind watches `probe-layout`, whose accesses must be the same in each run: no threads.
    if !matches!(command, Command::ProbeLayout(_)) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.min(THREADS_MAX));
        if let Err(error) = pool.build_global() {
            eprintln!("ccmodel-lab: {error}");
        }
    }
    let done = match command {
        Command::Validate(args) => validate::run(&args, &mut out),
        Command::Thesis(args) => figures::run(&args, &mut out).map(|()| true),
        Command::Formulas(args) => thesis::run(&args, &mut out).map(|()| true),
        Command::ProbeLayout(args) => probe_layout::run(&args, &mut out).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ccmodel-lab: {error}");
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

/// Shows one line of progress in place of the last, on a terminal only. An empty line clears it.
fn progress(line: &str) {
    if stderr().is_terminal() {
        eprint!("\r\x1b[K{line}");
    }
}
