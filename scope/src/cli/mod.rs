//! The commands of `ccscope` and `cargo ccscope`.
//!
//! [`run`] and [`run_cargo`] take arguments and writers and return an exit code. Results go to
//! standard output; what is said beside a running program goes to standard error, since standard
//! output is the program's.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done; also when the reader of the output has gone away |
//! | 1 | could not be carried out: one line says why |
//! | 2 | the request makes no sense: one line says why |
//! | other | the profiled program's own, or 128 and the number of the signal that ended it |

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};

use ccmodel::first_paragraph;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

mod advise;
mod args;
mod built;
mod calibrate;
mod canary;
mod cargo;
mod cargo_commands;
mod cc;
mod commands;
mod config;
mod diff;
mod elf;
mod export;
mod flags;
mod improve;
mod launch;
mod leaks;
mod live;
mod machine;
mod process;
mod program;
mod progress;
mod report;
mod reporter;
mod runtime;
mod secrets;
#[doc(hidden)]
pub mod shared;
mod show;
mod signals;
mod socket;
mod spool;
mod stopped;
mod subcommand;
mod wrapper;

use cargo_commands::{CargoArgs, CargoCommand};
use commands::{Args, Command};

const EXIT_FAILURE: u8 = 1;
const EXIT_USAGE: u8 = 2;

/// Why a command could not be carried out. An [`io::Error`] is one of the output.
pub type CliError = Box<dyn Error + Send + Sync>;

/// A request that makes no sense.
#[derive(Debug)]
struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// Runs one command line of `ccscope`, the program's name first; returns the exit code.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let result = match Args::try_parse_from(args) {
        Ok(args) => execute(args.command, out, err),
        Err(error) => answer_or_refuse(&error, out),
    };
    code_of("ccscope", result, err)
}

/// Runs one command line of `cargo-ccscope`; returns the exit code, if it did not become the
/// compiler.
pub fn run_cargo(args: impl IntoIterator<Item = OsString>, err: &mut dyn Write) -> u8 {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let is_named = args.get(1).is_none_or(|word| word == "ccscope");
    if let Some(built) = built::Built::told().filter(|_| !is_named) {
        return code_of("cargo ccscope", wrapper::run(&built, &args[1..]), err);
    }
    // `cargo ccscope` repeats its own name.
    if args.get(1).is_some_and(|word| word == "ccscope") {
        args.remove(1);
    }
    // What comes after is the program's.
    let end = args
        .iter()
        .position(|word| word == "--")
        .unwrap_or(args.len());
    let rest = args.split_off(end);
    let result = match CargoArgs::try_parse_from(cargo_commands::ours_first(args)) {
        Ok(args) => match &args.command {
            CargoCommand::Build(args) => cargo::run("build", args, &rest, err),
            CargoCommand::Run(args) => cargo::run("run", args, &rest, err),
            CargoCommand::Test(args) => cargo::run("test", args, &rest, err),
            CargoCommand::Bench(args) => cargo::run("bench", args, &rest, err),
            CargoCommand::Improve(args) => {
                improve::package::run(args, &rest, &mut io::stdout(), err)
            }
        },
        Err(error) => answer_or_refuse(&error, &mut io::stdout()),
    };
    code_of("cargo ccscope", result, err)
}

/// The exit code of a command; what went wrong becomes one line.
pub fn code_of(tool: &str, result: Result<u8, CliError>, err: &mut dyn Write) -> u8 {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    let code = if error.is::<Usage>() {
        EXIT_USAGE
    } else {
        EXIT_FAILURE
    };
    let text = match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return 0,
        Some(error) => format!("cannot write the output: {error}"),
        None => error.to_string(),
    };
    // Nothing can be done when this line cannot be written either.
    drop(writeln!(err, "{tool}: {text}"));
    code
}

fn execute(command: Command, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, CliError> {
    match command {
        Command::Run(mut args) => {
            let built = built::Built::told();
            if let Some(built) = &built {
                args.record = args::RecordArgs::told(&built.options)?;
            }
            return launch::run(&args, built, err);
        }
        Command::Cc { args } => return Err(cc::become_compiler(cc::Language::C, &args, err)),
        Command::Cxx { args } => return Err(cc::become_compiler(cc::Language::Cxx, &args, err)),
        Command::Trace { args } => return Err(subcommand::become_command("trace", &args)),
        Command::Attach(args) => live::attach(&args, err)?,
        Command::Detach(args) => live::detach(&args, err)?,
        Command::Snapshot(args) => live::snapshot(&args, err)?,
        Command::Serve(args) => live::serve(&args, err)?,
        Command::Top(args) => live::top(&args)?,
        Command::Show(args) => return show::run(&args, out, err),
        Command::Report(args) => report::run(&args, out)?,
        Command::Diff(args) => return diff::run(&args, out, err),
        Command::Advise(args) => advise::run(&args, out, err)?,
        Command::Improve(args) => {
            let code = improve::run(&args, out, err)?;
            out.flush()?;
            return Ok(code);
        }
        Command::Calibrate(args) => calibrate::run(&args, out)?,
        Command::Export(args) => export::run(&args, out)?,
        Command::Completions { shell } => {
            // Into memory first: the generator panics where it cannot write.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "ccscope", &mut script);
            out.write_all(&script)?;
        }
        Command::Man { command } if command.as_deref() == Some("trace") => {
            return Err(subcommand::become_command("trace", &["--man".into()]));
        }
        Command::Man { command } => {
            let mut program = match command.as_deref() {
                Some("cargo") => CargoArgs::command(),
                _ => Args::command(),
            };
            program.build();
            let page = command.and_then(|name| program.find_subcommand(name).cloned());
            clap_mangen::Man::new(page.unwrap_or(program)).render(&mut &mut *out)?;
        }
    }
    out.flush()?;
    Ok(0)
}

/// Help and version are answers; everything else becomes one line.
///
/// # Errors
///
/// The request makes no sense, or the answer cannot be written.
pub fn answer_or_refuse(error: &clap::Error, out: &mut dyn Write) -> Result<u8, CliError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            write!(out, "{error}")?;
            Ok(0)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            usage("no command given (see --help)")
        }
        _ => usage(first_paragraph(&error.to_string())),
    }
}

/// The request makes no sense.
///
/// # Errors
///
/// Always.
pub fn usage<T>(why: impl Into<String>) -> Result<T, CliError> {
    Err(Box::new(Usage(why.into())))
}

/// The command could not be carried out.
///
/// # Errors
///
/// Always.
pub fn fail<T>(why: impl Into<String>) -> Result<T, CliError> {
    Err(why.into().into())
}
