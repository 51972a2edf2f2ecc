//! `cargo ccscope improve`: changes of source, tried in a copy of the package.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use serde_json::{Value, json};

use super::super::progress::Progress;
use super::super::{CliError, fail, launch, runtime, show, signals};
use super::report::{self, Report, absolute, quoted};
use super::{EXIT_INTERRUPTED, TryArgs, begin};
use crate::advice::{self, Advice, advise, site_type};
use crate::analyses::misses::Interval;
use crate::imports;
use crate::improve::edits::{Asked, Edit, Fields, Kind, Library, describe};
use crate::improve::gate::{Ended, Limits, Setup};
use crate::improve::package::{Change, Package};
use crate::improve::programs::Programs;
use crate::improve::runs::Variant;
use crate::improve::search::search;
use crate::profile::Profile;
use crate::views::Options;
use crate::views::advice::idea;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The package and its path dependencies are copied into the target folder; your files are only read.
There each change is made and built, and the program runs many times in turns with the one as it is.
What is kept is written as a patch, after the package's tests have passed with it.

Examples:
  cargo ccscope improve --release -- ARGS
  cargo ccscope improve --release --list
  cargo ccscope improve --release --with idea.patch --budget 20m -- ARGS")]
pub(in crate::cli) struct PackageArgs {
    /// Write what is kept here
    #[arg(short, long, value_name = "FILE", default_value = "improve.patch")]
    output: PathBuf,
    /// Try this patch, too, which `git apply` takes; may be repeated
    #[arg(long, value_name = "PATCH")]
    with: Vec<PathBuf>,
    /// Change this crate of crates.io, too, as `[patch]` does: NAME, or NAME@VERSION; may be
    /// repeated
    #[arg(long, value_name = "CRATE")]
    patch: Vec<String>,
    /// Try only changes whose line in the list has this text; may be repeated
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// Set predictions beside what is measured, and name what only a person can try: a profile of
    /// the same program, of `cargo ccscope run` [default: the newest PROGRAM.PID.ccscope here]
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Print the changes that would be tried, and try none
    #[arg(long)]
    list: bool,
    /// Do not run the package's tests with what is kept
    #[arg(long)]
    no_tests: bool,
    #[command(flatten)]
    tries: TryArgs,
    /// Cargo's own options
    #[arg(value_name = "CARGO OPTIONS")]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo: Vec<OsString>,
}

/// `rest` are the arguments from `--` on.
pub(in crate::cli) fn run(
    args: &PackageArgs,
    rest: &[OsString],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, CliError> {
    let metric = args.tries.metric()?;
    launch::check_output(Some(&args.output))?;
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut progress = Progress::new(args.tries.quiet);
    progress.say(|| Some("building a copy of the package".to_owned()));
    let (mut package, program) = Package::copy(cargo, &args.cargo, &args.patch)?;
    let options = show::options_for(stdout());
    let newest = newest_profile(&package.name());
    let advised = match (&args.profile, &newest) {
        (Some(path), _) => Some(advised(path, &options)?),
        // Without being asked, one that says nothing is no error.
        (None, Some(path)) => advised(path, &options).ok(),
        (None, None) => None,
    };
    if let Some((_, advice)) = &advised {
        let items = || advice.advice.iter();
        let fields = |(of, fields)| Fields { of, fields };
        package.offer(Asked {
            orders: items()
                .filter_map(advice::Item::order)
                .map(fields)
                .collect(),
            cold: items().filter_map(advice::Item::cold).map(fields).collect(),
        });
    }
    let Changes {
        of_allocator,
        others: mut changes,
        mut built,
    } = changes(args, &mut package, &mut progress)?;
    let ideas = match &advised {
        Some(known) => predict(known, &mut changes, &options),
        None => Vec::new(),
    };
    if args.list {
        progress.end();
        writeln!(out, "the allocator: {}", of_allocator.0.text)?;
        for (number, (named, _)) in (1..).zip(&changes) {
            writeln!(out, "change {number}: {}", named.text)?;
        }
        return Ok(0);
    }
    let words = [package.name().into()]
        .into_iter()
        .chain(rest.iter().skip(1).cloned());
    let as_is = Variant {
        program,
        words: words.collect(),
        environment: vec![(
            "CARGO_MANIFEST_DIR".into(),
            package.manifest_folder().into(),
        )],
    };
    let mut runs = args.tries.runs(metric)?;
    let started = Instant::now();
    let Some(is_steady) = begin(&mut runs, &as_is, &mut progress, err)? else {
        return Ok(EXIT_INTERRUPTED);
    };
    let chosen = |numbers: &[usize]| -> Vec<&Change> {
        let others = numbers.iter().map(|&number| &changes[number].1);
        [&of_allocator.1].into_iter().chain(others).collect()
    };
    let mut variant = |numbers: &[usize]| {
        let mut numbers = numbers.to_vec();
        // In the order in which edits are made.
        numbers.sort_unstable();
        let known = built.entry(numbers).or_insert_with_key(|numbers| {
            let program = package.build(&program_name(numbers), &chosen(numbers));
            program.map_err(|why| format!("does not build: {why}"))
        });
        Ok(known.clone().map(|program| Variant {
            program,
            ..as_is.clone()
        }))
    };
    let mut shown = |base: &Setup, setup: &Setup, known: Option<Interval>| {
        let count = changes.len();
        progress.say(|| {
            let metric = &args.tries.metric;
            Some(report::progress(
                base,
                setup,
                known,
                ("change", count),
                metric,
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
    let limits = Limits {
        // A change of source costs those who read it.
        each: true,
        ..args.tries.limits()
    };
    let found = search(&mut lab, changes.len(), |_, _| false, limits);
    signals::obey();
    let mut found = found?;
    let mut remarks = Vec::new();
    if found.kept.is_some() && found.ended == Some(Ended::Interrupted) && !args.no_tests {
        remarks.push("The package's tests were not run with it.".to_owned());
    } else if let Some(kept) = found.kept.clone()
        && !args.no_tests
    {
        progress.say(|| Some("the package's tests".to_owned()));
        if let Err(first) = package.test(&chosen(&kept)) {
            // Tests and compilers may fail by chance.
            let as_is = package.test(&[]);
            let again = as_is.map(|()| package.test(&chosen(&kept)));
            remarks.push(match again {
                Err(why) => format!(
                    "The package's tests say nothing, since they fail without a change: {why}."
                ),
                Ok(Ok(())) => format!(
                    "The package's tests passed with it the second time; the first time: {first}."
                ),
                Ok(Err(with)) => {
                    found.kept = None;
                    format!(
                        "What gains is not offered, since the package's tests fail with it: {with}."
                    )
                }
            });
        }
    }
    progress.end();
    if let Some(kept) = &found.kept {
        let patch = package.patch_of(&chosen(kept))?;
        let written = runtime::replace(&absolute(&args.output), &patch);
        written.map_err(|error| format!("cannot write {}: {error}", args.output.display()))?;
    }
    if let (Some(path), None, Some(_)) = (&newest, &args.profile, &advised) {
        remarks.push(format!("Predictions are by {}.", path.display()));
    }
    if let [_, ..] = &*ideas {
        remarks.push(format!("Not tried, but predicted: {}.", ideas.join("; ")));
    }
    let (named, _): (Vec<report::Change>, Vec<Change>) = changes.into_iter().unzip();
    let name = package.name();
    let command_line = found.kept.as_ref().map(|_| {
        let (top, patch) = (package.top(), absolute(&args.output));
        format!(
            "git -C {} apply {}",
            quoted(top.as_os_str()),
            quoted(patch.as_os_str())
        )
    });
    let report = Report {
        program: Path::new(&name),
        command: &as_is.words,
        metric: &args.tries.metric,
        is_steady,
        noun: "change",
        changes: &named,
        remarks,
        found: &found,
        output: &args.output,
        has_allocator: true,
        command_line,
        more: json!({"allocator": of_allocator.0.text, "ideas": ideas}),
    };
    args.tries.tell(&report, out, err)
}

type Named = (report::Change, Change);

/// What is tried.
struct Changes {
    of_allocator: Named,
    others: Vec<Named>,
    /// Programs by the numbers of their changes, or why they do not build.
    built: HashMap<Vec<usize>, Result<PathBuf, String>>,
}

fn program_name(changes: &[usize]) -> String {
    let names: Vec<String> = changes.iter().map(usize::to_string).collect();
    format!("with-{}", names.join("-"))
}

/// The change of the allocator, and all others that are tried. Of those with several sites the
/// compiler is asked which ones it takes.
fn changes(
    args: &PackageArgs,
    package: &mut Package,
    progress: &mut Progress,
) -> Result<Changes, CliError> {
    let possible = package.possible();
    let is_asked = |kind: &Kind, edits: &[Edit]| {
        let text = describe(kind, edits);
        args.only.is_empty() || args.only.iter().any(|it| text.contains(it))
    };
    let of_allocator = Change::Edit(Kind::Allocator);
    let mut built = HashMap::new();
    let (mut all, mut kinds) = (Vec::new(), Vec::new());
    for (kind, edits) in possible {
        match kind {
            Kind::Allocator => all.push((describe(&kind, &edits), of_allocator.clone())),
            kind if is_asked(&kind, &edits) => kinds.push((kind, edits)),
            _ => {}
        }
    }
    if all.is_empty() {
        return fail("the program's crate root cannot be parsed");
    }
    for (number, (kind, edits)) in kinds.iter().enumerate() {
        if edits.iter().all(|edit| edit.site.is_none()) {
            continue;
        }
        progress.say(|| Some(format!("building: {}", describe(kind, edits))));
        let change = Change::Edit(kind.clone());
        let program = package.fit(&program_name(&[number]), &[&of_allocator, &change]);
        let program = program.map_err(|why| format!("does not build: {why}"));
        built.insert(vec![number], program);
    }
    // Without the sites that are refused.
    let left = package.possible();
    for (kind, before) in kinds {
        let edits = left.iter().find(|(it, _)| *it == kind);
        let edits = edits.map_or(&before, |(_, edits)| edits);
        all.push((describe(&kind, edits), Change::Edit(kind)));
    }
    for path in &args.with {
        let full = path.canonicalize();
        let full = full.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let what = format!("the patch {}", path.display());
        if args.only.is_empty() || args.only.iter().any(|it| what.contains(it)) {
            all.push((what, Change::Patch(full)));
        }
    }
    let named = all
        .into_iter()
        .map(|(what, change)| -> Result<Named, String> {
            let lines = package.lines(&[&change]);
            let lines = lines.map_err(|why| format!("{what}: {why}"))?;
            let named = report::Change {
                text: format!("{what} ({lines} lines)"),
                place: None,
                predicted: None,
                features: Value::Null,
            };
            Ok((named, change))
        });
    let mut named = named.collect::<Result<Vec<_>, _>>()?;
    Ok(Changes {
        of_allocator: named.remove(0),
        others: named,
        built,
    })
}

/// What a profile advises.
fn advised(path: &Path, options: &Options) -> Result<(Profile, Advice), CliError> {
    let profile = imports::open_with_chunks(path)?;
    match advise(&profile, options.machine(), None) {
        Some(advice) => Ok((profile, advice)),
        None => fail(format!(
            "{} predicts nothing: `ccscope advise` says why",
            path.display()
        )),
    }
}

/// Sets what a profile predicts beside the changes; what else it advises, in words.
fn predict(
    (profile, advice): &(Profile, Advice),
    changes: &mut [Named],
    options: &Options,
) -> Vec<String> {
    let mut ideas = Vec::new();
    for item in &advice.advice {
        let node = item.sites.iter().find_map(|&site| site_type(profile, site));
        let change = changes.iter_mut().find(|(_, change)| match change {
            Change::Edit(kind) => is_advised(kind, item.kind, node.unwrap_or_default()),
            Change::Patch(_) => false,
        });
        match change {
            // Of several sites the best.
            Some((named, _)) => {
                let known = named
                    .predicted
                    .filter(|it| it.estimate >= item.speedup.estimate);
                named.predicted = known.or(Some(item.speedup));
            }
            None if item.worth_it => ideas.push(idea(profile, item, options)),
            None => {}
        }
    }
    ideas
}

/// Whether an edit makes a change of this kind, for objects of this type.
fn is_advised(edit: &Kind, advised: advice::Kind, type_name: &str) -> bool {
    let is_of = |node: &str| {
        let mut words = type_name.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == node)
    };
    match (edit, advised) {
        (Kind::Maps(Library::CTree), advice::Kind::Container)
        | (Kind::Near, advice::Kind::Hint) => true,
        (Kind::Morph(node), advice::Kind::Morph)
        | (Kind::Fields(node), advice::Kind::FieldOrder)
        | (Kind::Split(node), advice::Kind::Split) => is_of(node),
        _ => false,
    }
}

/// The newest profile of the program in the current folder.
fn newest_profile(program: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(".").ok()?.flatten();
    let profiles = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let number = name.strip_prefix(program)?.strip_prefix('.')?;
        let number = number.strip_suffix(".ccscope")?;
        let is_one = number.split('.').all(|it| it.parse::<u32>().is_ok());
        let changed = entry.metadata().ok()?.modified().ok()?;
        is_one.then(|| (changed, PathBuf::from(name)))
    });
    profiles.max().map(|(_, path)| path)
}
