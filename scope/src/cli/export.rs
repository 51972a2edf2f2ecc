//! `ccscope export`.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{CliError, show};
use crate::exports::{Weight, collapsed, dhat, firefox, perfetto, pprof, speedscope};
use crate::imports;
use crate::profile::Profile;

#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:
  ccscope export p.ccscope --to pprof -o p.pb.gz; go tool pprof -http=: p.pb.gz
  ccscope export p.ccscope --to collapsed --weight drag | inferno-flamegraph > drag.svg")]
pub(super) struct ExportArgs {
    /// The profile
    profile: PathBuf,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// Write here: a file, or a folder for parquet; standard output without it
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// The number of collapsed stacks: allocations, bytes, peak-chunks, peak, end-chunks, end,
    /// drag, accesses or waits; of regions, always the bytes that each is the first of its thread
    /// to touch, without what it calls
    #[arg(long, value_name = "NUMBER", default_value = "peak")]
    weight: Weight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The page `dh_view.html` of valgrind
    Dhat,
    /// profiler.firefox.com
    Firefox,
    /// ui.perfetto.dev
    Perfetto,
    /// speedscope.app
    Speedscope,
    /// `go tool pprof`
    Pprof,
    /// Flame graphs: a line for each stack, or each path of regions
    Collapsed,
    /// Databases: a folder of tables
    #[cfg(feature = "parquet")]
    Parquet,
}

pub(super) fn run(args: &ExportArgs, out: &mut dyn Write) -> Result<(), CliError> {
    let profile = imports::open(&args.profile)?;
    let has_regions = match args.to {
        Format::Collapsed => true,
        #[cfg(feature = "parquet")]
        Format::Parquet => true,
        _ => false,
    };
    if profile.regions.is_empty() || !has_regions {
        show::needs_sites(&args.profile, &profile)?;
    }
    #[cfg(feature = "parquet")]
    if args.to == Format::Parquet {
        let Some(folder) = &args.output else {
            return super::usage("tables need a folder: add -o FOLDER");
        };
        // Files of other tools have no chunks.
        let mut reader = crate::store::Reader::open(&args.profile).ok();
        return Ok(crate::exports::parquet::write(
            &profile,
            reader.iter_mut().flat_map(crate::store::Reader::chunks),
            show::options_for(std::io::stdout()).machine(),
            folder,
        )?);
    }
    match &args.output {
        None => write(args, &profile, out),
        Some(path) => {
            let failed = |why: &dyn std::fmt::Display| {
                format!("{} cannot be written: {why}", path.display())
            };
            show::not_over_itself(&args.profile, path)?;
            let file = crate::store::create(path).map_err(|why| failed(&why))?;
            let written = write(args, &profile, &mut BufWriter::new(file));
            written.map_err(|why| failed(&why).into())
        }
    }
}

fn write(args: &ExportArgs, profile: &Profile, out: &mut dyn Write) -> Result<(), CliError> {
    let options = show::options_for(std::io::stdout());
    let machine = options.machine();
    match args.to {
        Format::Dhat => dhat::write(profile, &mut *out)?,
        Format::Firefox => firefox::write(profile, &mut *out)?,
        Format::Perfetto => perfetto::write(profile, &mut *out)?,
        Format::Speedscope => speedscope::write(profile, machine, &mut *out)?,
        Format::Pprof => pprof::write(profile, machine, &mut *out)?,
        Format::Collapsed => collapsed::write(profile, args.weight, machine, &mut *out)?,
        #[cfg(feature = "parquet")]
        Format::Parquet => {}
    }
    Ok(out.flush()?)
}
