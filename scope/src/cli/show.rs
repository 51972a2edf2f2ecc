//! `ccscope show`.

use std::io::{IsTerminal, Write, stdout};

use super::CliError;
use super::args::{Color, ShowArgs};
use crate::profile::Profile;

pub(super) fn run(args: &ShowArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let profile = Profile::open(&args.profile)?;
    let _color = match args.color {
        Color::Auto => stdout().is_terminal(),
        Color::Always => true,
        Color::Never => false,
    };
    write!(out, "{}", summary_for_stderr(&profile))?;
    Ok(())
}

pub(super) fn summary_for_stderr(profile: &Profile) -> String {
    format!(
        "{:?}\n{:?}\n{} sites, {} resident\n",
        profile.run,
        profile.total,
        profile.sites.len(),
        profile.resident.len()
    )
}
