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

use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};

use clap::Parser;
use clap::error::ErrorKind;

mod advise;
mod answer;
mod args;
mod arrangement;
mod calibrate;
mod machine;
mod output;
mod predict;
mod question;
mod shell;
mod simulate;
mod sweep;
mod topology;

use args::{Args, Command};
use output::{human_bytes, write_json};

/// Exit code of a request that makes no sense.
const EXIT_USAGE: u8 = 2;

/// Runs one command line, the program's name first; returns the exit code.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let result = match Args::try_parse_from(args) {
        Ok(args) => execute(args.command, out, err),
        Err(error) => refuse(&error, out),
    };
    match result {
        Ok(code) => code,
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            // Nothing is left to be told when this line cannot be written either.
            drop(writeln!(err, "model: {error}"));
            EXIT_USAGE
        }
    }
}

fn execute(command: Command, out: &mut dyn Write, err: &mut dyn Write) -> Result<u8, CliError> {
    match command {
        Command::Topology(args) => topology::run(&args, out)?,
        Command::Calibrate(args) => calibrate::run(&args, out, err)?,
        Command::Predict(args) => predict::run(&args, out)?,
        Command::Advise(args) => advise::run(&args, out)?,
        Command::Simulate(args) => simulate::run(&args, out)?,
        Command::Completions(args) => shell::completions(&args, out)?,
        Command::Man(args) => shell::man(&args, out)?,
    }
    out.flush()?;
    Ok(0)
}

/// Help and version are answers; everything else becomes one line.
fn refuse(error: &clap::Error, out: &mut dyn Write) -> Result<u8, CliError> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            write!(out, "{error}")?;
            Ok(0)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Err(CliError::Request(
                "no command given: predict, advise, simulate, topology or calibrate (see --help)"
                    .to_owned(),
            ))
        }
        _ => Err(CliError::Request(first_paragraph(&error.to_string()))),
    }
}

/// The message of a `clap` error with its hint, on one line and without the usage text.
fn first_paragraph(message: &str) -> String {
    let mut paragraphs = message.split("\n\n");
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = joined(paragraphs.next().unwrap_or_default());
    let first = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    match paragraphs.find(|text| text.trim_start().starts_with("tip:")) {
        Some(tip) => format!("{first} ({})", joined(tip)),
        None => first,
    }
}

/// Why a command could not be carried out.
#[derive(Debug)]
enum CliError {
    /// The request makes no sense, or cannot be met here.
    Request(String),
    /// The output could not be written.
    Output(io::Error),
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Request(message) => f.write_str(message),
            CliError::Output(error) => write!(f, "cannot write the output: {error}"),
        }
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> CliError {
        CliError::Output(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_messages_become_one_line() {
        let message = "error: unexpected argument '--foo' found\n\n  tip: a similar one\n  exists\n\nUsage: x\n";
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
        let args = || ["model", "topology"].map(OsString::from);
        let mut err = Vec::new();
        assert_eq!(
            run(args(), &mut Gone(io::ErrorKind::BrokenPipe), &mut err),
            0
        );
        assert!(err.is_empty());
        assert_eq!(
            run(args(), &mut Gone(io::ErrorKind::StorageFull), &mut err),
            EXIT_USAGE
        );
        assert_eq!(err.iter().filter(|&&byte| byte == b'\n').count(), 1);
    }
}
