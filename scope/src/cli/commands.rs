//! The commands of `ccscope`.

use std::ffi::OsString;

use clap::{Parser, Subcommand};

use super::advise::AdviseArgs;
use super::args::{ReportArgs, RunArgs, ShowArgs};
use super::calibrate::CalibrateArgs;
use super::diff::DiffArgs;
use super::export::ExportArgs;
use super::improve::ImproveArgs;
use super::live::{AttachArgs, DetachArgs, ServeArgs, SnapshotArgs, TopArgs};

/// Finds what to place: a heap profiler that sees every access
#[derive(Debug, Parser)]
#[command(name = "ccscope", version, about, after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

const EXAMPLES: &str = "Examples:
  cargo ccscope run --release -- ARGS      build with instrumentation, run, show where memory went
  ccscope run ./program ARGS               any program as it is: allocations and lifetimes
  CC='ccscope cc' ./configure && make      C with instrumentation, to be started by `ccscope run`
  ccscope attach 1234                      a program that runs
  ccscope top 1234                         the same, watched in the terminal
  ccscope show program.1234.ccscope        open a profile again
  ccscope report program.1234.ccscope      write a page for a browser
  ccscope advise program.1234.ccscope      say what to change, and what it gains
  ccscope improve ./program ARGS           try allocator and placement, keep what gains
  ccscope trace -o t.trace ./program       every load and store of a program as it is

`ccscope COMMAND --help` has more.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run a program and profile it and its children
    Run(RunArgs),
    /// Compile or link C with instrumentation: takes the arguments of gcc or clang
    #[command(disable_help_flag = true)]
    Cc {
        /// Arguments of the compiler, which is `cc` or that of `CCSCOPE_CC`; with
        /// `CCSCOPE_REGIONS=1` for `run --regions`, and with `all` for its `--all-memory`, too
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compile or link C++ with instrumentation: takes the arguments of g++ or clang++
    #[command(name = "c++", disable_help_flag = true)]
    Cxx {
        /// Arguments of the compiler, which is `c++` or that of `CCSCOPE_CXX`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Record every load and store of a program as it is
    #[command(disable_help_flag = true)]
    Trace {
        /// Arguments of `ccscope-trace`, of the package `cctrace`; `--help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Record a program that runs
    Attach(AttachArgs),
    /// End the recording of a program that was attached to
    Detach(DetachArgs),
    /// Write a profile of a program that is recorded, while it runs on
    Snapshot(SnapshotArgs),
    /// Serve such profiles over HTTP, to what collects those of Go programs
    Serve(ServeArgs),
    /// Watch the allocation sites of a program that runs
    Top(TopArgs),
    /// Show a profile
    Show(ShowArgs),
    /// Write a profile as one page for a browser, which works without network and server
    Report(ReportArgs),
    /// Say what to change, where, and what it would gain
    Advise(AdviseArgs),
    /// Make a program faster as it is: try the allocator and rules of placement, keep what gains
    Improve(ImproveArgs),
    /// Measure the caches of this machine
    Calibrate(CalibrateArgs),
    /// Write a profile in the format of another viewer
    Export(ExportArgs),
    /// Compare two profiles
    Diff(DiffArgs),
    /// Print the script that completes this command line in a shell
    #[command(after_help = "Examples:
  ccscope completions bash > ~/.local/share/bash-completion/completions/ccscope
  ccscope completions zsh > ~/.zfunc/_ccscope
  ccscope completions fish > ~/.config/fish/completions/ccscope.fish")]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page, in roff
    #[command(after_help = "Examples:
  ccscope man | man -l -
  ccscope man cargo > cargo-ccscope.1")]
    Man {
        /// The command that the page is about, or `cargo` for `cargo ccscope`; the whole program
        /// without it
        #[arg(value_parser = [
            "run", "cc", "c++", "trace", "attach", "detach", "snapshot", "serve", "top", "show",
            "report", "advise", "improve", "calibrate", "export", "diff", "completions", "man",
            "cargo",
        ])]
        command: Option<String>,
    },
}
