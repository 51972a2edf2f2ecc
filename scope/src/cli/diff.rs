//! `ccscope diff`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{CliError, fail, report, show, usage};
use crate::analyses::diff::{Diff, Gate, Metric, breaches, diff, gates};
use crate::analyses::growth::{self, Growth, NoSeries, growth};
use crate::imports;
use crate::profile::Profile;
use crate::views::{self, Options, diff as view};

/// The gates of one option.
type Gates = Vec<Gate>;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
A gate is METRIC>+CHANGE or METRIC<-CHANGE; a change is a number or, with %, a part of the old
value. METRIC>NUMBER and METRIC<NUMBER are on the new value alone. METRIC is peak, bytes, requested,
allocations, end, leaked, temporary, drag, accesses, lifetime, usage or useful-lifetime; and of
snapshots of one run grown, bytes of sites that grow in each: grown>BYTES.
`site:PLACE:` before it takes only the sites of a file or function, with PLACE in double quotes if
it has a comma. The exit status is 1 if a gate fails, with a line for each on standard error.

Examples:
  ccscope diff main.ccscope new.ccscope -o page.html
  ccscope diff main.ccscope new.ccscope --fail-on 'peak>+5%,drag>+10%,usage<-0.05'
  ccscope diff main.ccscope new.ccscope --fail-on 'site:src/index.rs:allocations>+0'
  ccscope diff 1.ccscope 2.ccscope 3.ccscope --fail-on 'grown>1000000'")]
pub(super) struct DiffArgs {
    /// The profile of before
    old: PathBuf,
    /// The profile of now
    new: PathBuf,
    /// More snapshots of the same run: which sites grow from each to the next
    more: Vec<PathBuf>,
    /// Gates, separated by commas
    #[arg(long, value_name = "GATES", value_parser = gates)]
    fail_on: Vec<Gates>,
    /// Write a page for a browser, too: that of the new profile with the old one's curves, and with
    /// what has changed
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Rows of a table
    #[arg(long, value_name = "N", default_value = "10")]
    rows: usize,
}

pub(super) fn run(
    args: &DiffArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, CliError> {
    let mut files = open(args)?;
    let (of_growth, of_two): (Vec<Gate>, Vec<Gate>) =
        { args.fail_on.concat().into_iter() }.partition(|gate| gate.metric == Metric::Grown);
    let is_series = !args.more.is_empty();
    let has_growth = is_series || !of_growth.is_empty();
    if has_growth {
        files = in_order(files)?;
    }
    let profiles: Vec<&Profile> = files.iter().map(|(_, profile)| profile).collect();
    let [first, .., last] = profiles[..] else {
        return usage("two profiles are compared");
    };
    let growth = match has_growth {
        true => growth(&profiles),
        false => Growth::default(),
    };
    // Before anything is printed: a gate that makes no sense is a mistake in the command.
    let mut breaches = breaches(first, last, &of_two).or_else(usage)?;
    breaches.extend(growth::breaches(&growth, last, &of_growth).or_else(usage)?);
    let options = Options {
        rows: args.rows,
        ..show::options_for(std::io::stdout())
    };
    let difference = || diff(first, last, options.machine());
    let page = |diff: &Diff| match (&args.output, files.last()) {
        (Some(output), Some((path, _))) => {
            report::write_since(path, last, Some((first, diff)), output, &options)
        }
        _ => Ok(()),
    };
    let text = if is_series {
        if args.output.is_some() {
            page(&difference())?;
        }
        match args.json {
            true => views::growth::json(&growth, last),
            false => views::growth::text(&growth, last, &options),
        }
    } else {
        let diff = difference();
        page(&diff)?;
        match args.json {
            true => view::json(first, last, &diff),
            false => view::text(first, last, &diff, &options),
        }
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    for breach in &breaches {
        writeln!(err, "ccscope: gate {breach}")?;
    }
    Ok(u8::from(!breaches.is_empty()))
}

/// All profiles, with their paths.
fn open(args: &DiffArgs) -> Result<Vec<(PathBuf, Profile)>, CliError> {
    let paths: Vec<&PathBuf> = { [&args.old, &args.new].into_iter() }
        .chain(&args.more)
        .collect();
    if let Some(output) = &args.output {
        for path in &paths {
            show::not_over_itself(path, output)?;
        }
    }
    let opened = paths.into_iter().map(|path| {
        let mut profile = imports::open(path)?;
        show::needs_sites(path, &profile)?;
        if !args.more.is_empty() && args.output.is_none() {
            // Growth needs no waits.
            profile.windows = Vec::new();
        }
        Ok((path.clone(), profile))
    });
    opened.collect()
}

/// Snapshots of one run in the order of time.
fn in_order(files: Vec<(PathBuf, Profile)>) -> Result<Vec<(PathBuf, Profile)>, CliError> {
    let (paths, profiles): (Vec<PathBuf>, Vec<Profile>) = files.into_iter().unzip();
    let name = |at: usize| paths[at].display();
    match growth::order(&profiles) {
        Ok(order) => {
            let mut profiles: Vec<Option<Profile>> = profiles.into_iter().map(Some).collect();
            let moved = order
                .iter()
                .filter_map(|&at| Some((paths[at].clone(), profiles[at].take()?)));
            Ok(moved.collect())
        }
        Err(NoSeries::Unknown(at)) => fail(format!(
            "{} does not say which run it is of: growth is of snapshots of one run",
            name(at)
        )),
        Err(NoSeries::OtherRun(a, b)) => fail(format!(
            "{} and {} are not snapshots of one run: compare two profiles at a time",
            name(a),
            name(b)
        )),
        Err(NoSeries::SameMoment(a, b)) => {
            fail(format!("{} and {} are the same snapshot", name(a), name(b)))
        }
    }
}
