//! `ccscope show`, and the summary after a run.

use std::collections::HashMap;
use std::env;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::termios::tcgetwinsize;

use super::args::ShowArgs;
use super::{CliError, fail, machine, usage};
use crate::analyses::diff::exceeded;
use crate::imports;
use crate::improve::rules::Learned;
use crate::improve::sites;
use crate::profile::Profile;
use crate::views::{Options, json, terminal};

pub(super) fn run(
    args: &ShowArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, CliError> {
    let screen = options_for(stdout());
    let given = args.machine.as_deref().map(machine::read).transpose()?;
    let mut options = Options {
        width: args.width.unwrap_or(screen.width),
        colour: args.color.or(screen.colour),
        rows: args.rows,
        file: Some(args.profile.clone()),
        filters: args.filter.clone(),
        sort: args.sort,
        machine: given.or(screen.machine),
        ..screen
    };
    for threshold in &args.threshold {
        threshold.apply(&mut options);
    }
    // Views need no single chunks, of which there may be more than memory holds.
    let profile = imports::open(&args.profile)?;
    options.rules = rules(args.rules.as_deref(), &profile)?;
    let view = &args.view;
    let gates = args.fail_on.concat();
    let breaches = exceeded(&profile, &gates).or_else(usage)?;
    let of_sites = !gates.is_empty()
        || view.leaks
        || view.sites
        || view.types
        || view.threads
        || view.edges
        || args.source.is_some();
    if of_sites || !args.filter.is_empty() || args.sort != Options::default().sort {
        needs_sites(&args.profile, &profile)?;
    }
    let text = match (view, args.source) {
        (_, Some(site)) if site >= profile.sites.len() => {
            return fail(terminal::source(&profile, &options, site).trim_end());
        }
        (_, Some(site)) => terminal::source(&profile, &options, site),
        (view, _) if view.sites => terminal::sites(&profile, &options),
        (view, _) if view.types => terminal::types(&profile, &options),
        (view, _) if view.threads => terminal::threads(&profile, &options),
        (view, _) if view.edges => terminal::edges(&profile, &options),
        (view, _) if view.leaks => terminal::leaks(&profile, &options),
        (view, _) if view.regions => terminal::regions(&profile, &options),
        (view, _) if view.json => json::to_json(&profile, &options),
        _ => terminal::summary(&profile, &options),
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    for breach in &breaches {
        writeln!(err, "ccscope: gate {breach}")?;
    }
    Ok(u8::from(!breaches.is_empty()))
}

/// What a file of rules says of the sites of a profile.
pub(super) fn rules(
    file: Option<&Path>,
    profile: &Profile,
) -> Result<HashMap<usize, String>, CliError> {
    let Some(file) = file else {
        return Ok(HashMap::new());
    };
    let learned = Learned::read(file)?.joined();
    let said = sites::of_sites(profile, &learned).into_iter();
    Ok(said
        .map(|(site, (proposal, is_rule))| {
            let text = match (is_rule, proposal.parent()) {
                (false, _) => format!("none: {}", proposal.refusal()),
                (true, None) => proposal.rules(),
                (true, Some(parent)) => format!("{}: {parent}", proposal.rules()),
            };
            (site, text)
        })
        .collect())
}

/// Refuses a profile of regions or of a trace, which is at `path`, for what is about sites.
pub(super) fn needs_sites(path: &Path, profile: &Profile) -> Result<(), CliError> {
    let path = path.display();
    if !profile.sites.is_empty() {
        return Ok(());
    }
    if !profile.mappings.is_empty() {
        return fail(format!(
            "this profile is of a trace: it has pages, not sites: `ccscope report {path}`"
        ));
    }
    if !profile.regions.is_empty() {
        return fail(format!(
            "this profile has regions, not sites: `ccscope show {path} --regions`"
        ));
    }
    Ok(())
}

/// Refuses to write over the profile that is read.
///
/// # Errors
///
/// That is asked for.
pub fn not_over_itself(profile: &Path, output: &Path) -> Result<(), CliError> {
    let [profile, there] = [profile, output].map(|path| path.canonicalize().ok());
    if there.is_some() && there == profile {
        return fail(format!("{} is the profile itself", output.display()));
    }
    Ok(())
}

/// What is said on standard error at the end of a run.
pub(super) fn summary(profile: &Profile, file: &Path) -> String {
    let options = Options {
        file: Some(from_here(file)),
        ..options_for(stderr())
    };
    terminal::summary(profile, &options)
}

/// The path as it is named where we are.
fn from_here(file: &Path) -> PathBuf {
    let here = env::current_dir().ok();
    let inside = here.and_then(|here| file.strip_prefix(here).ok().map(Path::to_owned));
    inside.unwrap_or_else(|| file.to_owned())
}

pub(super) fn options_for(stream: impl IsTerminal + AsFd) -> Options {
    let is_terminal = stream.is_terminal();
    let size = tcgetwinsize(&stream)
        .ok()
        .filter(|size| is_terminal && size.ws_col > 0);
    let options = Options::default();
    Options {
        width: size.map_or(options.width, |size| size.ws_col.into()),
        colour: is_terminal && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        root: env::current_dir().ok().map(workspace),
        machine: machine::known(),
        ..options
    }
}

/// The folder that the compiler's paths begin with: cargo's workspace, or else where we are.
fn workspace(here: PathBuf) -> PathBuf {
    let has_lock = |folder: &&Path| folder.join("Cargo.lock").is_file();
    let found = here.ancestors().find(has_lock).map(Path::to_owned);
    found.unwrap_or(here)
}
