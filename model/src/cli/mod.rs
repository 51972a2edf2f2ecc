//! The commands of `model`, as a library function.
//!
//! [`run`] takes arguments and two writers and returns an exit code, so that tests call it as the
//! binary does. Results go to the first writer, in tables for people or as one JSON object;
//! everything else is one line on the second.
//!
//! | exit code | meaning |
//! |---|---|
//! | 0 | done; also when the reader of the output has gone away |
//! | 2 | the request makes no sense or cannot be met: one line says why |

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, Write};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

mod advise;
mod answer;
mod args;
mod arrangement;
mod calibrate;
mod machine;
mod output;
mod predict;
mod question;
mod simulate;
mod sweep;
mod topology;

use args::{Args, Command};

use crate::first_paragraph;

/// Exit code of a request that makes no sense.
const EXIT_USAGE: u8 = 2;

/// Why a command could not be carried out. An [`io::Error`] is one of the output.
type CliError = Box<dyn Error + Send + Sync>;

/// Runs one command line, the program's name first; returns the exit code.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let result = match Args::try_parse_from(args) {
        Ok(args) => execute(args.command, out, err),
        Err(error) => answer_or_refuse(&error, out),
    };
    let Err(error) = result else { return 0 };
    let text = match error.downcast_ref::<io::Error>() {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => return 0,
        Some(error) => format!("cannot write the output: {error}"),
        None => error.to_string(),
    };
    // Nothing can be done when this line cannot be written either.
    drop(writeln!(err, "model: {text}"));
    EXIT_USAGE
}

fn execute(command: Command, out: &mut dyn Write, err: &mut dyn Write) -> Result<(), CliError> {
    match command {
        Command::Topology { json } => topology::run(json, out)?,
        Command::Calibrate(args) => calibrate::run(&args, out, err)?,
        Command::Predict(args) => predict::run(&args, out)?,
        Command::Advise(args) => advise::run(&args, out)?,
        Command::Simulate(args) => simulate::run(&args, out)?,
        Command::Completions { shell } => {
            // Into memory first: the generator panics where it cannot write.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "model", &mut script);
            out.write_all(&script)?;
        }
        Command::Man { command } => {
            let mut program = Args::command();
            program.build();
            let page = command.and_then(|name| program.find_subcommand(name).cloned());
            clap_mangen::Man::new(page.unwrap_or(program)).render(&mut &mut *out)?;
        }
    }
    Ok(out.flush()?)
}

/// Help and version are answers; everything else becomes one line.
fn answer_or_refuse(error: &clap::Error, out: &mut dyn Write) -> Result<(), CliError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(write!(out, "{error}")?),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            refuse(
                "no command given: predict, advise, simulate, topology or calibrate (see --help)",
            )
        }
        _ => refuse(first_paragraph(&error.to_string())),
    }
}

fn refuse<T>(why: impl Into<CliError>) -> Result<T, CliError> {
    Err(why.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_messages_become_one_line() {
        let message = "error: unexpected argument '--foo' found\n\n  tip: a similar one\n\
                       \x20 exists\n\nUsage: x\n";
        assert_eq!(
            first_paragraph(message),
            "unexpected argument '--foo' found (tip: a similar one exists)"
        );
        assert_eq!(first_paragraph("error: a\n  b\n\nUsage: x"), "a b");
        assert_eq!(first_paragraph(""), "");
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        struct Gone(io::ErrorKind);
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        for (kind, code, lines) in [
            (io::ErrorKind::BrokenPipe, 0, 0),
            (io::ErrorKind::StorageFull, EXIT_USAGE, 1),
        ] {
            let mut err = Vec::new();
            for args in [&["model", "topology"][..], &["model", "topology", "--json"]] {
                err.clear();
                let args = args.iter().map(OsString::from);
                assert_eq!(run(args, &mut Gone(kind), &mut err), code);
                assert_eq!(err.iter().filter(|&&byte| byte == b'\n').count(), lines);
            }
        }
    }
}
