//! Makes the profiles of recorded processes, and says so.

use std::cmp::Reverse;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use ccmodel::Topology;

use super::args::RecordArgs;
use super::built::Built;
use super::process::Process;
use super::program::Program;
use super::spool::Spool;
use super::{CliError, fail, report, show};
use crate::analyses::sampled;
use crate::profile::{Profile, Run};
use crate::store::is_stream;
use crate::symbols::Symbols;
use crate::views::text::escape;

/// Other processes that are named at the end.
const SHOWN_PROCESSES: usize = 3;
/// A program that maps so much more than it allocates is told how to show its allocator.
const UNSEEN_BYTES: u64 = 1_000_000;

/// Makes profiles of processes and says so.
#[derive(Debug)]
pub(super) struct Reporter<'a> {
    record: &'a RecordArgs,
    built: Option<Built>,
    program: &'a Program,
    /// Process that was started, or attached to.
    main: u32,
    pub(super) seconds: f64,
    pub(super) symbols: Symbols,
    paths: Vec<PathBuf>,
    /// Those whose profiles are kept, the largest first, of so many.
    others: Vec<Other>,
    others_seen: usize,
    /// Whether it is said why there may be no profile.
    pub(super) is_told: bool,
}

/// A process that is not the first one.
#[derive(Debug)]
struct Other {
    peak: u64,
    program: String,
    path: PathBuf,
}

impl<'a> Reporter<'a> {
    pub(super) fn new(
        record: &'a RecordArgs,
        built: Option<Built>,
        program: &'a Program,
        main: u32,
    ) -> Self {
        Reporter {
            record,
            built,
            program,
            main,
            seconds: 0.0,
            symbols: Symbols::default(),
            paths: Vec::new(),
            others: Vec::new(),
            others_seen: 0,
            is_told: false,
        }
    }

    /// Reports the processes that are left, and the first one's end last.
    pub(super) fn finish(
        &mut self,
        processes: Vec<Process>,
        err: &mut dyn Write,
    ) -> Result<(), CliError> {
        let is_main = |process: &Process| process.is_main();
        let (main, others): (Vec<_>, _) = processes.into_iter().partition(is_main);
        let has_come = !main.is_empty();
        self.report(others, err)?;
        self.report(main, err)?;
        if self.paths.is_empty() && !has_come && !self.is_told {
            writeln!(
                err,
                "ccscope: no profile: the runtime did not start in the program"
            )?;
        } else if self.is_stream() && self.others_seen > 0 && !self.record.quiet {
            let seen = self.others_seen;
            writeln!(
                err,
                "ccscope: no profiles of {seen} other processes: the output is no file"
            )?;
        } else if !self.others.is_empty() && !self.record.quiet {
            let largest: Vec<String> = { self.others.iter().take(SHOWN_PROCESSES) }
                .map(|other| format!("{} ({})", other.path.display(), other.program))
                .map(|text| escape(&text))
                .collect();
            let (seen, largest) = (self.others_seen, largest.join(", "));
            let kept = self.others.len();
            writeln!(
                err,
                "ccscope: profiles of {kept} of {seen} other processes, the largest {largest}"
            )?;
        }
        Ok(())
    }

    pub(super) fn report(
        &mut self,
        processes: Vec<Process>,
        err: &mut dyn Write,
    ) -> Result<(), CliError> {
        for process in processes {
            let is_main = process.is_main();
            let (pid, name) = (process.pid, process.name());
            let total = process.header().map(|header| header.total);
            let total = total.filter(|total| total.allocations > 0);
            self.others_seen += usize::from(total.is_some() && !is_main);
            // Making a profile takes time.
            let last = self.others.get(self.record.processes.wrapping_sub(1));
            let least = last.map_or(0, |other| other.peak + 1);
            let is_kept = !self.is_stream() && total.is_some_and(|it| it.peak_usable >= least);
            if !is_main && !is_kept {
                continue;
            }
            match self.make(process, is_main, err) {
                Ok((profile, path)) if is_main && !self.record.quiet => {
                    write!(err, "{}", show::summary(&profile, &path))?;
                    let path = path.display();
                    let others = match self.record.regions {
                        Some(_) => format!(" --regions`, `ccscope report {path}` for a browser"),
                        None => format!(
                            "`, `ccscope report {path}` for a browser, `ccscope advise {path}` \
                             for what to change"
                        ),
                    };
                    writeln!(
                        err,
                        "ccscope: profile in {path}; see `ccscope show {path}{others}"
                    )?;
                }
                Ok(_) if is_main => {}
                Ok((profile, path)) => {
                    let peak = profile.total.peak_usable;
                    self.others.push(Other {
                        peak,
                        program: name,
                        path,
                    });
                    self.others.sort_by_key(|other| Reverse(other.peak));
                    if self.others.len() > self.record.processes
                        && let Some(Other { path, .. }) = self.others.pop()
                    {
                        drop((
                            fs::remove_file(report::beside(&path)),
                            fs::remove_file(path),
                        ));
                    }
                }
                // The other processes have theirs all the same.
                Err(error) => {
                    let name = escape(&name);
                    writeln!(err, "ccscope: no profile of {name} ({pid}): {error}")?;
                }
            }
        }
        Ok(())
    }

    /// Whether the profile goes where none can lie beside it.
    fn is_stream(&self) -> bool {
        self.record.output.as_deref().is_some_and(is_stream)
    }

    fn make(
        &mut self,
        process: Process,
        is_main: bool,
        err: &mut dyn Write,
    ) -> Result<(Profile, PathBuf), CliError> {
        if process.header().is_none() {
            return fail("it ended before the runtime was ready");
        }
        let path = self.path_for(&process, is_main, err)?;
        let seconds = is_main.then_some(self.seconds);
        let mut symbols = std::mem::take(&mut self.symbols);
        let made = self.maker().write(process, seconds, &path, &mut symbols);
        self.symbols = symbols;
        let profile = made?;
        self.paths.push(path.clone());
        if self.record.page {
            let output = report::beside(&path);
            report::write(&path, &output, &show::options_for(std::io::stderr()))?;
        }
        Ok((profile, path))
    }

    /// What writes profiles, for another thread.
    pub(super) fn maker(&self) -> Maker<'_> {
        Maker {
            record: self.record,
            built: self.built.as_ref(),
            program: self.program,
            main: self.main,
        }
    }

    /// Where a snapshot goes that nobody has named.
    pub(super) fn path_of_snapshot(&self, process: &Process, number: usize) -> PathBuf {
        let asked = self
            .record
            .output
            .as_deref()
            .filter(|path| !is_stream(path));
        let stem = match asked {
            Some(path) if process.pid == self.main => path.with_extension(""),
            _ => PathBuf::from(format!("{}.{}", process.name(), process.pid)),
        };
        let mut path = stem.into_os_string();
        path.push(format!(".{number}.ccscope"));
        path.into()
    }

    fn path_for(
        &self,
        process: &Process,
        is_main: bool,
        err: &mut dyn Write,
    ) -> Result<PathBuf, CliError> {
        let asked = self.record.output.as_deref();
        if let Some(path) = asked.filter(|_| is_main) {
            let Some(built) = self.built.as_ref().filter(|_| !is_stream(path)) else {
                return Ok(path.to_owned());
            };
            let path_text = path.display();
            let placed = built.place(path, err);
            return Ok(placed.map_err(|error| format!("cannot write {path_text}: {error}"))?);
        }
        let folder = match (asked.and_then(Path::parent), &self.built) {
            (Some(folder), _) => folder.to_owned(),
            // As short as it can be said.
            (None, Some(built)) if env::current_dir().is_ok_and(|here| here == built.folder) => {
                PathBuf::new()
            }
            (None, built) => built
                .as_ref()
                .map(|built| built.folder.clone())
                .unwrap_or_default(),
        };
        let name = Some(process.name()).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| "process".to_owned());
        let mut path = folder.join(format!("{name}.{}.ccscope", process.pid));
        let mut number = 2;
        while self.paths.contains(&path) || path.exists() {
            path = folder.join(format!("{name}.{}.{number}.ccscope", process.pid));
            number += 1;
        }
        Ok(path)
    }
}

/// Writes profiles of processes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maker<'a> {
    record: &'a RecordArgs,
    built: Option<&'a Built>,
    program: &'a Program,
    main: u32,
}

impl Maker<'_> {
    /// Writes the profile of `process` to `path`; of the first one, after so many `seconds`.
    pub(super) fn write(
        &self,
        mut process: Process,
        seconds: Option<f64>,
        path: &Path,
        symbols: &mut Symbols,
    ) -> Result<Profile, CliError> {
        let is_main = seconds.is_some();
        let Some(header) = process.header() else {
            return fail("it ended before the runtime was ready");
        };
        let name = process.name();
        let mut caveats = Vec::new();
        let scan = match process.leaks.take() {
            Some(Ok(scan)) => Some(scan),
            Some(Err(error)) => {
                caveats.push(format!("Leaks are not known: {error}."));
                None
            }
            None if self.record.leaks => {
                caveats
                    .push("Leaks are not known: the process has not ended by `exit`.".to_owned());
                None
            }
            None => None,
        };
        let mapped = header.mapped_peak;
        if is_main
            && self.program.facts.may_have_allocator
            && mapped > header.total.peak_usable.saturating_add(UNSEEN_BYTES)
        {
            caveats.push(format!(
                "{} MB were mapped and not by an allocator that is seen: if the program has a \
                 `#[global_allocator]`, wrap it in `ccscope::Profiled`",
                mapped / 1_000_000
            ));
        }
        let run = Run {
            caveats,
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            parent: self.main,
            machine: Topology::this().cpu_name.value,
            started_ns: header.start_ns,
            seconds: seconds
                .unwrap_or_else(|| header.last_ns.saturating_sub(header.start_ns) as f64 / 1e9),
            window_rate: self.record.rate,
            ..Run::default()
        };
        let finished = process.finish(run);
        let ((capture, data), run, resident, dead) =
            finished.map_err(|error| format!("its capture cannot be mapped: {error}"))?;
        let (mut profile, numbers) =
            crate::capture::profile_and_numbers(&capture, &data, run, resident, symbols)?;
        if let Some(scan) = &scan {
            numbers.add_leaks(scan, &mut profile);
        }
        profile.run.caveats.extend(sampled::sentence(&profile));
        self.name_compiler(&mut profile, is_main);
        if lacks_lines(&profile, &name) {
            profile.run.caveats.push(format!(
                "{name} has no debug information, so that its sites have no lines: set `debug = \
                 \"line-tables-only\"` in Cargo.toml, or `-g` for C"
            ));
        }
        let mut failed = None;
        let dead = { dead.as_ref().map(Spool::read) }
            .transpose()
            .map_err(|error| error.to_string())?;
        let dead = dead.into_iter().flatten();
        let dead = dead.map_while(|dead| dead.map_err(|error| failed = Some(error)).ok());
        profile.save_with(dead.filter_map(|dead| numbers.chunk(&dead)), path)?;
        match failed {
            Some(error) => fail(format!(
                "the chunks that were freed cannot be read back: {error}"
            )),
            None => Ok(profile),
        }
    }

    /// Says whether loads and stores were seen, and by which compiler's code.
    fn name_compiler(&self, profile: &mut Profile, is_main: bool) {
        let (facts, total) = (&self.program.facts, &profile.total);
        let counts = [
            total.heap_reads,
            total.heap_writes,
            total.other_reads,
            total.other_writes,
        ];
        // What chunks that are alive have counted is in none of the capture's sums.
        profile.run.accesses = is_main && facts.is_instrumented || counts.iter().any(|&n| n > 0);
        if !profile.run.accesses {
            return;
        }
        (profile.run.compiler, profile.run.flags) = match &self.built {
            Some(built) => (built.compiler.clone(), built.flags.clone()),
            // The first may be that of the C library's part.
            None => (
                facts.compilers.last().cloned().unwrap_or_default(),
                Vec::new(),
            ),
        };
    }
}

/// Whether stacks go through the executable and no line of it is known.
fn lacks_lines(profile: &Profile, name: &str) -> bool {
    let mut own = profile
        .frames
        .iter()
        // An interpreter in a library has nothing but its start in the executable.
        .filter(|frame| frame.module == name && frame.function != "_start")
        .peekable();
    own.peek().is_some() && own.all(|frame| frame.line == 0)
}
