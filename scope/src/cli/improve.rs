//! `ccscope improve` and `cargo ccscope improve`: what both share.

use std::fs;
use std::io::{IsTerminal, Write, stdin, stdout};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args as ClapArgs;

use super::args::Color;
use super::progress::Progress;
use super::{CliError, fail, show, signals, usage};
use crate::improve::gate::{Ended, Limits};
use crate::improve::runs::{Drive, Hooks, Metric, Runs, Variant};
use crate::views::text::escape;
use report::Report;

mod binary;
mod library;
pub(super) mod package;
mod report;

pub(super) use binary::{ImproveArgs, run};

/// As shells say that a program was interrupted.
const EXIT_INTERRUPTED: u8 = 130;

/// How changes are tried.
#[derive(Debug, ClapArgs)]
pub(super) struct TryArgs {
    /// Take so much time, as 30s, 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    budget: Duration,
    /// Refuse what takes more than so many times the peak memory of the program as it is
    #[arg(long, value_name = "MAX", default_value = "1.25", value_parser = factor)]
    memory: f64,
    /// What is compared: wall, user (its processor time without the kernel's), cpu (with it), or a
    /// command that reads the output and prints one number, lower is better
    #[arg(long, value_name = "METRIC", default_value = "wall")]
    metric: String,
    /// Higher numbers of the metric's command are better
    #[arg(long)]
    higher_is_better: bool,
    /// After each run, this command reads the output and must succeed
    #[arg(long, value_name = "COMMAND")]
    check: Option<String>,
    /// The program is a server: once it is ready this command is run, its time is taken and its
    /// output read; then the server gets SIGTERM
    #[arg(long, value_name = "COMMAND")]
    drive: Option<String>,
    /// The server is ready once this command succeeds, for which it has 30 seconds
    #[arg(long, value_name = "COMMAND", requires = "drive")]
    ready: Option<String>,
    /// Do not append what was tried to ccscope/tries.jsonl in `$XDG_DATA_HOME`
    #[arg(long)]
    no_log: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
    /// Columns of the terminal
    #[arg(long, value_name = "N")]
    width: Option<usize>,
    /// When to use colour
    #[arg(long, value_enum, default_value = "auto")]
    color: Color,
}

impl TryArgs {
    fn metric(&self) -> Result<Metric, CliError> {
        let metric = match &*self.metric {
            "wall" => Metric::Wall,
            "user" => Metric::User,
            "cpu" => Metric::Cpu,
            line => Metric::Command {
                line: line.to_owned(),
                higher_is_better: self.higher_is_better,
            },
        };
        if self.higher_is_better && !matches!(metric, Metric::Command { .. }) {
            return usage("--higher-is-better is for a --metric that is a command");
        }
        Ok(metric)
    }

    fn limits(&self) -> Limits {
        Limits {
            budget: self.budget,
            memory: self.memory,
            each: false,
        }
    }

    /// What runs the program. From here on signals are the programs', until the end of the search.
    fn runs(&self, metric: Metric) -> Result<Runs, CliError> {
        signals::outlive();
        let hooks = Hooks {
            started: signals::hand_on_to,
            is_interrupted: signals::is_interrupted,
        };
        let mut runs = Runs::new(metric, hooks)?;
        (runs.check, runs.input) = (self.check.clone(), input(runs.folder())?);
        runs.drive = self.drive.clone().map(|line| Drive {
            ready: self.ready.clone(),
            line,
        });
        Ok(runs)
    }

    /// Prints what was found, and appends it to the log; the exit code.
    fn tell(
        &self,
        report: &Report<'_>,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<u8, CliError> {
        if !self.no_log
            && let Err(error) = report.log()
        {
            writeln!(err, "ccscope: cannot keep what was tried: {error}")?;
        }
        let screen = show::options_for(stdout());
        let width = self.width.unwrap_or(screen.width);
        let text = match self.json {
            true => report.json(),
            false => report.text(width, self.color.or(screen.colour)),
        };
        out.write_all(text.as_bytes())?;
        Ok(match report.found.ended {
            Some(Ended::Interrupted) => EXIT_INTERRUPTED,
            _ => 0,
        })
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|char: char| char.is_ascii_alphabetic());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let seconds = match unit {
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("not a time, such as 30s, 10m or 1h".to_owned()),
    };
    let number = number.parse::<f64>().ok().filter(|number| *number > 0.0);
    let time = number.map(|number| Duration::try_from_secs_f64(number * seconds));
    match time {
        Some(Ok(time)) if time < Duration::from_secs(1 << 30) => Ok(time),
        _ => Err("not a time, such as 30s, 10m or 1h".to_owned()),
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number >= 1.0);
    number.ok_or_else(|| "not a number from 1 on".to_owned())
}

/// Runs the program as it is, and says so if that fails; whether it prints the same each time.
/// `None` if the user wants an end.
fn begin(
    runs: &mut Runs,
    as_is: &Variant,
    progress: &mut Progress,
    err: &mut dyn Write,
) -> Result<Option<bool>, CliError> {
    progress.say(|| Some("the program as it is".to_owned()));
    let is_steady = runs.begin(as_is)?;
    if let Some((ending, last)) = runs.failure().filter(|_| runs.drive.is_none()) {
        let last = escape(&last);
        writeln!(
            err,
            "ccscope: as it is, the program ends with {ending} each time"
        )?;
        if !last.is_empty() {
            writeln!(err, "ccscope: its last line on standard error: {last}")?;
        }
    }
    Ok(is_steady)
}

/// A copy of standard input, for each run to read from its start; none of a terminal or a device.
fn input(folder: &Path) -> Result<Option<PathBuf>, CliError> {
    let input = stdin();
    let file = fs::metadata("/proc/self/fd/0");
    if input.is_terminal() || file.is_ok_and(|file| file.file_type().is_char_device()) {
        return Ok(None);
    }
    let path = folder.join("input");
    let copied =
        fs::File::create(&path).and_then(|mut file| std::io::copy(&mut input.lock(), &mut file));
    match copied {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(path)),
        // It was closed.
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(None),
        Err(error) => fail(format!("cannot copy standard input: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, seconds) in [("30s", 30.0), ("10m", 600.0), ("1.5h", 5400.0), ("2", 2.0)] {
            assert_eq!(duration(text), Ok(Duration::from_secs_f64(seconds)));
        }
        for text in ["", "s", "0", "-1s", "1d", "1e99h", "nan", "m10"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(factor("1.6").is_ok() && factor("0.9").is_err() && factor("inf").is_err());
    }
}
