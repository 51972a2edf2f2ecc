//! Arguments of commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::TypedValueParser;
use clap::{Args as ClapArgs, FromArgMatches, ValueEnum};

use crate::analyses::diff::{Gate, gates};
use crate::views::{Filter, Sort, Threshold};

/// A script or a build starts many that nobody asks about.
const DEFAULT_PROCESSES: usize = 16;

/// Of `--sample`.
pub(super) const DEFAULT_SAMPLE: &str = "524288";

/// Numbers of bytes for `--sample`.
pub(super) fn sample() -> impl TypedValueParser<Value = u64> {
    clap::value_parser!(u64).range(1..=1 << 40)
}

/// What is recorded, and where it goes.
#[derive(Clone, Debug, ClapArgs)]
pub(super) struct RecordArgs {
    /// Write the profile of the first process here, instead of PROGRAM.PID.ccscope in the current
    /// folder
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Record one access of N in full, for simulation; 0 records none
    #[arg(long, value_name = "N", default_value_t = crate::capture_format::Options::DEFAULT.rate)]
    pub(super) rate: u64,
    /// Do not record call stacks: all allocations are of one site
    #[arg(long)]
    pub(super) no_stacks: bool,
    /// Record only the totals and curves of the process and its threads
    #[arg(long, conflicts_with = "no_stacks")]
    pub(super) counters_only: bool,
    /// Keep every chunk, not only those alive at the end, a sample of others, and sums: some ten
    /// bytes each in the profile
    #[arg(long, conflicts_with = "counters_only")]
    pub(super) full: bool,
    /// Of chunks of fewer than BYTES record about one in each BYTES, by chance, and count it for
    /// the others: for programs that are never stopped
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = DEFAULT_SAMPLE, value_parser = sample())]
    #[arg(conflicts_with_all = ["rate", "no_stacks", "counters_only", "full", "leaks", "regions"])]
    pub(super) sample: Option<u64>,
    /// At the end of each process look for what nothing leads to: `ccscope show --leaks`
    #[arg(long, conflicts_with_all = ["counters_only", "regions"])]
    pub(super) leaks: bool,
    /// Record what each function and span touches instead of where memory is allocated; with
    /// `=spans`, of spans only
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "all")]
    #[arg(conflicts_with_all = ["rate", "no_stacks", "counters_only", "full"])]
    pub(super) regions: Option<Regions>,
    /// With `--regions`, each level of a recursion by itself, not only the outermost
    #[arg(long, requires = "regions")]
    pub(super) levels: bool,
    /// With `--regions`, stacks and global variables, too, not only the heap. `cargo ccscope`
    /// builds anew for it; `ccscope run` needs a program that is built so
    #[arg(long, requires = "regions")]
    pub(super) all_memory: bool,
    /// Keep the profiles of at most N other processes, those with the largest peaks
    #[arg(long, value_name = "N", default_value_t = DEFAULT_PROCESSES)]
    pub(super) processes: usize,
    /// Keep the arguments of the program and of other processes: they may hold passwords, and are
    /// left out otherwise
    #[arg(long)]
    pub(super) keep_arguments: bool,
    /// Write a page for a browser, too, beside each profile with the ending `html`
    #[arg(long)]
    pub(super) page: bool,
    /// Print neither progress nor the summary, only problems
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// Which regions are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Regions {
    /// Functions and spans
    All,
    /// Spans of `tracing` and those of `ccscope::region!`
    Spans,
}

impl RecordArgs {
    /// What [`RecordArgs::to_args`] says.
    pub(super) fn told(options: &[OsString]) -> Result<RecordArgs, clap::Error> {
        let words = ["run".into()].into_iter().chain(options.iter().cloned());
        let matches =
            RecordArgs::augment_args(clap::Command::new("run")).try_get_matches_from(words)?;
        RecordArgs::from_arg_matches(&matches)
    }

    /// The options that were given, for another command line.
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let mut args = Vec::new();
        if self.rate != crate::capture_format::Options::DEFAULT.rate {
            args.push(format!("--rate={}", self.rate).into());
        }
        if let Some(sample) = self.sample {
            args.push(format!("--sample={sample}").into());
        }
        if self.processes != DEFAULT_PROCESSES {
            args.push(format!("--processes={}", self.processes).into());
        }
        let switches = [
            ("--no-stacks", self.no_stacks),
            ("--counters-only", self.counters_only),
            ("--full", self.full),
            ("--leaks", self.leaks),
            ("--regions", self.regions == Some(Regions::All)),
            ("--regions=spans", self.regions == Some(Regions::Spans)),
            ("--levels", self.levels),
            ("--all-memory", self.all_memory),
            ("--keep-arguments", self.keep_arguments),
            ("--page", self.page),
            ("--quiet", self.quiet),
        ];
        args.extend(
            switches
                .iter()
                .filter(|(_, on)| *on)
                .map(|(name, _)| name.into()),
        );
        if let Some(output) = &self.output {
            args.extend(["--output".into(), output.clone().into()]);
        }
        args
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The program's input, output and exit status pass through. Profiles of \
    other processes that it starts go beside the first one."
)]
pub(super) struct RunArgs {
    #[command(flatten)]
    pub(super) record: RecordArgs,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true)]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal
    Auto,
    Always,
    Never,
}

impl Color {
    /// Whether there is colour, if `screen` says whether the terminal has it.
    pub(super) fn or(self, screen: bool) -> bool {
        match self {
            Color::Auto => screen,
            Color::Always => true,
            Color::Never => false,
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(super) struct ShowArgs {
    /// The profile
    pub(super) profile: PathBuf,
    #[command(flatten)]
    pub(super) view: View,
    /// Keep only sites of a function, type, thread or span of time, as function=parse,
    /// type=String, thread=2 or time=0.5..1.5 (seconds)
    #[arg(long, value_name = "KIND=VALUE")]
    pub(super) filter: Vec<Filter>,
    /// Order of sites: saving, peak, bytes, end, leaked, retained, allocations, severity, lifetime,
    /// usage, useful-lifetime, drag, accesses or misses
    #[arg(long, value_name = "KEY", default_value = "saving")]
    pub(super) sort: Sort,
    /// Change a parameter of the scores, group or short, or of what is reported, share, bytes,
    /// calls, used or idle, as share=0.001: docs/use/ccscope.md explains them
    #[arg(long, value_name = "NAME=NUMBER")]
    pub(super) threshold: Vec<Threshold>,
    /// Rows of a table
    #[arg(long, value_name = "N", default_value = "20")]
    pub(super) rows: usize,
    /// Exit with 1 if the profile has more than these gates allow, as 'leaked>0' or
    /// 'peak>1000000,site:src/index.rs:end>0'; metrics are those of `ccscope diff`
    #[arg(long, value_name = "GATES", value_parser = gates)]
    pub(super) fail_on: Vec<Vec<Gate>>,
    /// Show the source lines of this site, by its number in the table
    #[arg(long, value_name = "SITE", value_parser = site, conflicts_with = "View")]
    pub(super) source: Option<usize>,
    /// Simulate the caches of this machine file (`ccscope calibrate -o FILE`)
    #[arg(long, value_name = "FILE")]
    pub(super) machine: Option<PathBuf>,
    /// Say what this file has on sites: rules that `ccscope improve` has written, or what
    /// `CCMALLOC_LEARN` has
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    /// Columns of the terminal
    #[arg(long, value_name = "N")]
    pub(super) width: Option<usize>,
    /// When to use colour
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) color: Color,
}

/// A site as tables have it: `12`, `#12` or, with more of the same line, `#12+3`.
fn site(text: &str) -> Result<usize, std::num::ParseIntError> {
    let number = text.strip_prefix('#').unwrap_or(text);
    number.split('+').next().unwrap_or(number).parse()
}

#[derive(Debug, ClapArgs)]
pub(super) struct ReportArgs {
    /// The profile
    pub(super) profile: PathBuf,
    /// Write the page here, instead of beside the profile with the ending `html`
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// Simulate the caches of this machine file (`ccscope calibrate -o FILE`)
    #[arg(long, value_name = "FILE")]
    pub(super) machine: Option<PathBuf>,
    /// Say what this file has on sites: rules that `ccscope improve` has written, or what
    /// `CCMALLOC_LEARN` has
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
}

/// What is shown; a summary without any.
#[derive(Clone, Copy, Debug, Default, ClapArgs)]
#[group(multiple = false)]
pub(super) struct View {
    /// All sites
    #[arg(long)]
    pub(super) sites: bool,
    /// Sums by type
    #[arg(long)]
    pub(super) types: bool,
    /// Threads
    #[arg(long)]
    pub(super) threads: bool,
    /// Which sites' chunks point to which
    #[arg(long)]
    pub(super) edges: bool,
    /// What is alive at the end, and after `run --leaks` which of it nothing leads to
    #[arg(long)]
    pub(super) leaks: bool,
    /// Footprints of functions and spans
    #[arg(long)]
    pub(super) regions: bool,
    /// One JSON object
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct BuildArgs {
    #[command(flatten)]
    pub(super) record: RecordArgs,
    /// Leave debug information as the cargo profile has it
    #[arg(long)]
    pub(super) no_debuginfo: bool,
    /// Cargo's own options
    #[arg(value_name = "CARGO OPTIONS")]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) cargo: Vec<OsString>,
}
