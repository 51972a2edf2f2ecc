//! `ccscope improve`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{IsTerminal, Write, stdin, stdout};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;

use super::args::Color;
use super::progress::Progress;
use super::{CliError, fail, launch, program, show, signals, usage};
use crate::analyses::misses::Interval;
use crate::improve::gate::{Ended, Limits, Outcome, Setup};
use crate::improve::programs::Programs;
use crate::improve::rules::{self, Learned, Proposal};
use crate::improve::runs::{Drive, Hooks, Metric, Runs, Variant};
use crate::improve::search::{Found, search};
use crate::views::text::escape;
use report::Report;

mod library;
mod report;

/// A program with fewer allocations has an allocator of its own, or needs none.
const MIN_ALLOCATIONS: u64 = 100;
/// What the library reports of a module whose rules are for another build.
const LEFT_OUT: &str = ": left out, no module with build id ";
/// As shells say that a program was interrupted.
const EXIT_INTERRUPTED: u8 = 130;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The program runs many times, with the same arguments and the same standard input. Its standard
output and exit status must stay the same; what it writes elsewhere is looked at by --check only.

Examples:
  ccscope improve ./program ARGS
  ccscope improve --check 'cmp - expected' ./program < input
  ccscope improve --ready 'redis-cli -p 7000 ping' \\
      --drive 'redis-benchmark -p 7000 -t lpush,lrange -n 200000 -q' \\
      redis-server --port 7000 --save ''")]
pub(super) struct ImproveArgs {
    /// Write the rules that are kept here, instead of PROGRAM.ccrules in the current folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Try the rules of this file instead of learning; may be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Try what `CCMALLOC_LEARN` has learned in other runs of the same program; may be repeated
    #[arg(long, value_name = "FILE")]
    learned: Vec<PathBuf>,
    /// Use this `libccmalloc.so`
    #[arg(long, value_name = "PATH")]
    allocator: Option<PathBuf>,
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
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true)]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
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

pub(super) fn run(
    args: &ImproveArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, CliError> {
    let (name, _) = args.command.split_first().expect("clap asks for it");
    let program = program::find(name)?;
    if let Some(why) = &program.aside {
        return fail(format!(
            "{why}: its allocations do not reach malloc of a library"
        ));
    }
    let metric = match &*args.metric {
        "wall" => Metric::Wall,
        "user" => Metric::User,
        "cpu" => Metric::Cpu,
        line => Metric::Command {
            line: line.to_owned(),
            higher_is_better: args.higher_is_better,
        },
    };
    if args.higher_is_better && !matches!(metric, Metric::Command { .. }) {
        return usage("--higher-is-better is for a --metric that is a command");
    }
    let output = args.output.clone().unwrap_or_else(|| {
        let name = program.path.file_name().unwrap_or(OsStr::new("program"));
        let mut name = name.to_owned();
        name.push(".ccrules");
        name.into()
    });
    launch::check_output(Some(&output))?;
    let library = library::find(args.allocator.as_deref(), err)?;
    let started = Instant::now();
    let preloaded = launch::preload_before(library.into(), std::env::var_os("LD_PRELOAD"));
    let as_is = Variant {
        program: program.path.clone(),
        words: args.command.clone(),
        environment: Vec::new(),
    };
    let with = |variables: &[(&str, OsString)]| Variant {
        environment: { variables.iter().cloned() }
            .chain([("LD_PRELOAD", preloaded.clone())])
            .map(|(name, value)| (name.into(), value))
            .collect(),
        ..as_is.clone()
    };
    let mut proposed = given(args)?;
    signals::outlive();
    let hooks = Hooks {
        started: signals::hand_on_to,
        is_interrupted: signals::is_interrupted,
    };
    let mut runs = Runs::new(metric, hooks)?;
    (runs.check, runs.input) = (args.check.clone(), input(runs.folder())?);
    runs.drive = args.drive.clone().map(|line| Drive {
        ready: args.ready.clone(),
        line,
    });
    let mut progress = Progress::new(args.quiet);
    progress.say(|| Some("the program as it is".to_owned()));
    let Some(is_steady) = runs.begin(&as_is)? else {
        return Ok(EXIT_INTERRUPTED);
    };
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
    if args.rules.is_empty() && args.learned.is_empty() {
        progress.say(|| Some("learning".to_owned()));
        let files = runs.folder().join("learned");
        let learner = with(&[("CCMALLOC_LEARN", files.clone().into())]);
        match runs.run_other(&learner, &as_is)? {
            Outcome::Interrupted => return Ok(EXIT_INTERRUPTED),
            Outcome::Wrong(why) => {
                writeln!(err, "ccscope: while it learns, the program {why}")?;
            }
            Outcome::Ran(_) => {}
        }
        proposed = learned(runs.folder(), &runs.said())?;
    }
    let is_out_of_reach = proposed.proposals.is_empty()
        && proposed
            .allocations
            .is_some_and(|seen| seen < MIN_ALLOCATIONS);
    let proposed = proposed.joined();
    let mut proposals = proposed.proposals;
    let folder = runs.folder().to_owned();
    if !(args.rules.is_empty() && args.learned.is_empty()) {
        let [path, said] = ["rules-given", "report"].map(|name| folder.join(name));
        write_rules(&path, &proposals)?;
        let given = with(&[
            ("CCMALLOC_RULES", path.into()),
            ("CCMALLOC_REPORT", said.clone().into()),
        ]);
        progress.say(|| Some("the rules that are given".to_owned()));
        if let Outcome::Interrupted = runs.run_other(&given, &as_is)? {
            return Ok(EXIT_INTERRUPTED);
        }
        let said = fs::read(&said).unwrap_or_default();
        for line in String::from_utf8_lossy(&said)
            .lines()
            .filter(|it| it.contains(LEFT_OUT))
        {
            writeln!(err, "ccscope: {}", escape(line))?;
            let of = line
                .strip_prefix("rules of ")
                .and_then(|rest| rest.split_once(LEFT_OUT));
            proposals.retain(|it| of.is_none_or(|(name, _)| it.module().0 != name));
        }
    }
    let mut variant = |changes: &[usize]| -> Result<Variant, String> {
        if changes.is_empty() {
            return Ok(with(&[]));
        }
        let numbers: Vec<String> = changes.iter().map(usize::to_string).collect();
        let path = folder.join(format!("rules-{}", numbers.join("-")));
        write_rules(&path, changes.iter().map(|&change| &proposals[change]))?;
        Ok(with(&[("CCMALLOC_RULES", path.into())]))
    };
    let mut shown = |base: &Setup, setup: &Setup, known: Option<Interval>| {
        progress.say(|| {
            Some(report::progress(
                base,
                setup,
                known,
                proposals.len(),
                &args.metric,
            ))
        });
    };
    let mut lab = Programs {
        runs: &mut runs,
        as_is: as_is.clone(),
        with: &mut variant,
        progress: &mut shown,
        started,
    };
    let limits = Limits {
        budget: args.budget,
        memory: args.memory,
    };
    let excludes = |a: usize, b: usize| proposals[a].excludes(&proposals[b]);
    let found = match is_out_of_reach {
        true => Ok(Found::default()),
        false => search(&mut lab, proposals.len(), excludes, limits),
    };
    progress.end();
    signals::obey();
    let found = found?;
    let screen = show::options_for(stdout());
    let report = Report {
        program: &program.path,
        command: &args.command,
        preloaded: &preloaded,
        metric: &args.metric,
        is_steady,
        has_input: runs.input.is_some(),
        proposals: &proposals,
        allocations: proposed.allocations.filter(|_| is_out_of_reach),
        refused: &proposed.refused,
        refused_places: report::places(&proposed.refused, &program.path, screen.root.as_deref()),
        places: report::places(&proposals, &program.path, screen.root.as_deref()),
        found: &found,
        output: &output,
    };
    report.write_rules()?;
    if !args.no_log
        && let Err(error) = report.log()
    {
        writeln!(err, "ccscope: cannot keep what was tried: {error}")?;
    }
    let width = args.width.unwrap_or(screen.width);
    let text = match args.json {
        true => report.json(),
        false => report.text(width, args.color.or(screen.colour)),
    };
    out.write_all(text.as_bytes())?;
    Ok(match found.ended {
        Some(Ended::Interrupted) => EXIT_INTERRUPTED,
        _ => 0,
    })
}

/// The proposals of files that the user names.
fn given(args: &ImproveArgs) -> Result<Learned, CliError> {
    let mut all = Learned::default();
    for path in args.rules.iter().chain(&args.learned) {
        all.merge(Learned::read(path)?);
    }
    Ok(all)
}

fn write_rules<'p>(
    path: &Path,
    proposals: impl IntoIterator<Item = &'p Proposal>,
) -> Result<(), String> {
    let rules: Vec<_> = { proposals.into_iter() }
        .map(|it| (it, String::new()))
        .collect();
    let written = fs::write(path, rules::write(&[], &rules));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// What the program's processes have learned; one that has ended abruptly has no file.
fn learned(folder: &Path, said: &str) -> Result<Learned, CliError> {
    let mut all = Learned::default();
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut paths: Vec<PathBuf> = { entries.flatten() }
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let pid = name.strip_prefix("learned.");
            pid.is_some_and(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()))
        })
        .collect();
    paths.sort();
    for path in &paths {
        all.merge(Learned::read(path)?);
    }
    if paths.is_empty() {
        let why = { said.lines() }.find(|line| line.contains("ld.so: object"));
        return fail(match why {
            Some(line) => format!("the allocator is not loaded: {line}"),
            None => "the allocator has written nothing of what it learned: the program ends \
                     without its exit handlers, or this libccmalloc.so cannot learn"
                .to_owned(),
        });
    }
    Ok(all)
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
