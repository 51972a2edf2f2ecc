//! `ccscope improve`: the allocator and rules of placement, for a binary as it is.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use serde_json::json;

use super::super::progress::Progress;
use super::super::{CliError, fail, launch, program, runtime, show, signals};
use super::report::{self, Change, Report, absolute, quoted};
use super::{EXIT_INTERRUPTED, TryArgs, begin, library};
use crate::analyses::misses::Interval;
use crate::improve::gate::{Outcome, Setup};
use crate::improve::programs::Programs;
use crate::improve::rules::{self, Learned, Proposal};
use crate::improve::runs::Variant;
use crate::improve::search::{Found, search};
use crate::improve::sites;
use crate::views::text::{escape, place};

/// A program with fewer allocations has an allocator of its own, or needs none.
const MIN_ALLOCATIONS: u64 = 100;
/// What the library reports of a module whose rules are for another build.
const LEFT_OUT: &str = ": left out, no module with build id ";
/// Columns of a path in the table.
const MAX_PATH: usize = 40;
/// Of so many sites it is said why they have no rule.
const MAX_REFUSED: usize = 3;

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
pub(in crate::cli) struct ImproveArgs {
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
    #[command(flatten)]
    tries: TryArgs,
    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true)]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

pub(in crate::cli) fn run(
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
    let metric = args.tries.metric()?;
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
    let mut runs = args.tries.runs(metric)?;
    let mut progress = Progress::new(args.tries.quiet);
    let Some(is_steady) = begin(&mut runs, &as_is, &mut progress, err)? else {
        return Ok(EXIT_INTERRUPTED);
    };
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
    let mut variant = |changes: &[usize]| {
        if changes.is_empty() {
            return Ok(Ok(with(&[])));
        }
        let numbers: Vec<String> = changes.iter().map(usize::to_string).collect();
        let path = folder.join(format!("rules-{}", numbers.join("-")));
        write_rules(&path, changes.iter().map(|&change| &proposals[change]))?;
        Ok(Ok(with(&[("CCMALLOC_RULES", path.into())])))
    };
    let mut shown = |base: &Setup, setup: &Setup, known: Option<Interval>| {
        progress.say(|| {
            Some(report::progress(
                base,
                setup,
                known,
                ("rule", proposals.len()),
                &args.tries.metric,
            ))
        });
    };
    let mut lab = Programs {
        runs: &mut runs,
        as_is: as_is.clone(),
        with: &mut variant,
        progress: &mut shown,
        started,
        making: Duration::ZERO,
    };
    let excludes = |a: usize, b: usize| proposals[a].excludes(&proposals[b]);
    let found = match is_out_of_reach {
        true => Ok(Found::default()),
        false => search(&mut lab, proposals.len(), excludes, args.tries.limits()),
    };
    progress.end();
    signals::obey();
    let found = found?;
    let screen = show::options_for(stdout());
    let shown_places = |proposals: &[Proposal]| -> Vec<Option<String>> {
        let frames = sites::frames(proposals, Some(&program.path)).into_iter();
        frames
            .map(|frame| Some(place(&frame?, screen.root.as_deref(), MAX_PATH)))
            .collect()
    };
    let changes: Vec<Change> = { proposals.iter().zip(shown_places(&proposals)) }
        .map(|(it, place)| Change {
            text: it.rules(),
            place,
            predicted: None,
            features: json!({
                "allocations": it.allocations, "alive_bytes": it.alive_bytes,
                "learned": it.comment,
            }),
        })
        .collect();
    let allocations = proposed.allocations.filter(|_| is_out_of_reach);
    let refused: Vec<_> =
        { proposed.refused.iter().zip(shown_places(&proposed.refused)) }.collect();
    let mut remarks = Vec::new();
    if let Some(seen) = allocations {
        remarks.push(format!(
            "{seen} allocations of the program reach malloc: there is nothing to place. If it \
             makes more, it brings an allocator of its own."
        ));
    } else if proposals.is_empty() && !refused.is_empty() {
        let first = refused.iter().take(MAX_REFUSED).map(|(it, place)| {
            let place = place.iter().map(|place| format!(" in {place}"));
            let site = escape(&it.rule()) + &place.collect::<String>();
            format!("{site}, {}", escape(it.refusal()))
        });
        let first = first.collect::<Vec<_>>().join("; ");
        remarks.push(format!("No rule was found: {first}."));
    }
    let command_line = found.kept.as_ref().map(|kept| {
        let rules = match kept.is_empty() {
            true => String::new(),
            false => format!("CCMALLOC_RULES={} ", quoted(absolute(&output).as_os_str())),
        };
        let words: Vec<String> = args.command.iter().map(|word| quoted(word)).collect();
        let input = if runs.input.is_some() { " < INPUT" } else { "" };
        let preload = quoted(&preloaded);
        format!("{rules}LD_PRELOAD={preload} {}{input}", words.join(" "))
    });
    let refused = refused.iter().map(|(it, place)| {
        json!({"site": it.rule(), "place": place, "why": it.refusal(), "seen": it.comment})
    });
    let report = Report {
        program: &program.path,
        command: &args.command,
        metric: &args.tries.metric,
        is_steady,
        noun: "rule",
        changes: &changes,
        remarks,
        found: &found,
        output: &output,
        has_allocator: false,
        command_line,
        more: json!({"allocations": allocations, "refused": refused.collect::<Vec<_>>()}),
    };
    if let Some(kept) = found.kept.as_ref().filter(|kept| !kept.is_empty()) {
        let name = program.path.file_name().unwrap_or_default().display();
        let head = format!("kept by ccscope improve for {name}; gains are of the whole program");
        let chosen: Vec<(&Proposal, String)> = { kept.iter() }
            .map(|&change| {
                let parts = report.gain_of(change).into_iter();
                let parts: Vec<String> = parts.chain(changes[change].place.clone()).collect();
                (&proposals[change], parts.join("; "))
            })
            .collect();
        let written = runtime::replace(&absolute(&output), &rules::write(&[head], &chosen));
        written.map_err(|error| format!("cannot write {}: {error}", output.display()))?;
    }
    args.tries.tell(&report, out, err)
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
