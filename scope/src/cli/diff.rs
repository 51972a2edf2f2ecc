//! `ccscope diff`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{CliError, report, show, usage};
use crate::analyses::diff::{Gate, breaches, diff, gates};
use crate::imports;
use crate::views::{Options, diff as view};

/// The gates of one option.
type Gates = Vec<Gate>;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
A gate is METRIC>+CHANGE or METRIC<-CHANGE; a change is a number or, with %, a part of the old
value. METRIC>NUMBER and METRIC<NUMBER are on the new value alone. METRIC is peak, bytes, requested,
allocations, end, leaked, temporary, drag, accesses, lifetime, usage or useful-lifetime.
`site:PLACE:` before it takes only the sites of a file or function, with PLACE in double quotes if
it has a comma. The exit status is 1 if a gate fails, with a line for each on standard error.

Examples:
  ccscope diff main.ccscope new.ccscope -o page.html
  ccscope diff main.ccscope new.ccscope --fail-on 'peak>+5%,drag>+10%,usage<-0.05'
  ccscope diff main.ccscope new.ccscope --fail-on 'site:src/index.rs:allocations>+0'")]
pub(super) struct DiffArgs {
    /// The profile of before
    old: PathBuf,
    /// The profile of now
    new: PathBuf,
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
    if let Some(output) = &args.output {
        show::not_over_itself(&args.old, output)?;
        show::not_over_itself(&args.new, output)?;
    }
    let [old, new] = [imports::open(&args.old)?, imports::open(&args.new)?];
    show::needs_sites(&args.old, &old)?;
    show::needs_sites(&args.new, &new)?;
    // Before anything is printed: a gate that makes no sense is a mistake in the command.
    let breaches = match breaches(&old, &new, &args.fail_on.concat()) {
        Ok(breaches) => breaches,
        Err(why) => return usage(why),
    };
    let options = Options {
        rows: args.rows,
        ..show::options_for(std::io::stdout())
    };
    let diff = diff(&old, &new, options.machine());
    if let Some(output) = &args.output {
        let since = Some((&old, &diff));
        report::write_since(&args.new, &new, since, output, &options)?;
    }
    let text = match args.json {
        true => view::json(&old, &new, &diff),
        false => view::text(&old, &new, &diff, &options),
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    for breach in &breaches {
        writeln!(err, "ccscope: gate {breach}")?;
    }
    Ok(u8::from(!breaches.is_empty()))
}
