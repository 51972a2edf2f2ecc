//! `ccscope report`, and the page after a run.

use std::ffi::OsStr;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use super::args::ReportArgs;
use super::{CliError, machine, show, usage};
use crate::Profile;
use crate::analyses::diff::Diff;
use crate::imports;
use crate::store::{Reader, create, is_stream};
use crate::views::{Options, page};

pub(super) fn run(args: &ReportArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let screen = show::options_for(stdout());
    let given = args.machine.as_deref().map(machine::read).transpose()?;
    let mut options = Options {
        machine: given.or(screen.machine),
        file: Some(args.profile.clone()),
        ..screen
    };
    let output = match &args.output {
        Some(output) => output.clone(),
        None if is_stream(&args.profile) => {
            return usage(format!(
                "{} is no file: add -o FILE",
                args.profile.display()
            ));
        }
        None => beside(&args.profile),
    };
    show::not_over_itself(&args.profile, &output)?;
    let profile = imports::open(&args.profile)?;
    options.rules = show::rules(args.rules.as_deref(), &profile)?;
    write_since(&args.profile, &profile, None, &output, &options)?;
    Ok(writeln!(out, "page in {}", output.display())?)
}

/// Where the page of a profile lies if nothing else is said.
pub(super) fn beside(profile: &Path) -> PathBuf {
    let is_number = |end: &OsStr| end.as_encoded_bytes().iter().all(u8::is_ascii_digit);
    match profile.extension() {
        // As several programs of one command have it.
        Some(end) if is_number(end) => {
            let mut name = profile.as_os_str().to_owned();
            name.push(".html");
            name.into()
        }
        _ => profile.with_extension("html"),
    }
}

/// Writes the page of the profile at `profile`.
pub(super) fn write(profile: &Path, output: &Path, options: &Options) -> Result<(), CliError> {
    show::not_over_itself(profile, output)?;
    let read = imports::open(profile)?;
    write_since(profile, &read, None, output, options)
}

/// Writes the page of the profile `read`, which lies at `profile`, with what has changed `since`.
pub(super) fn write_since(
    profile: &Path,
    read: &Profile,
    since: Option<(&Profile, &Diff)>,
    output: &Path,
    options: &Options,
) -> Result<(), CliError> {
    // Files of other tools have no chunks.
    let mut reader = Reader::open(profile).ok();
    let chunks = reader.iter_mut().flat_map(Reader::chunks);
    let html = page::to_html(read, since, chunks, options)?;
    let written = create(output).and_then(|mut file| file.write_all(html.as_bytes()));
    written.map_err(|error| {
        let path = output.display();
        CliError::from(format!("cannot write {path}: {error}"))
    })
}
