//! The profile of a traced process: its pages.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Instant, SystemTime};

use ccmodel::Topology;

use super::{BSS, DATA, HEAP, TraceArgs, kinds};
use crate::names::Names;
use crate::pages::Pages;
use crate::reader::{Counts, Event, Row};
use ccscope::cli::shared::hide;
use ccscope::profile::{Exit, Profile, Run, Totals};

/// A run that has begun.
pub(super) struct Begun {
    at: Instant,
    run: Run,
}

impl Begun {
    pub(super) fn new(args: &TraceArgs, pid: u32) -> Begun {
        let words: Vec<String> = { args.command.iter() }
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let started = since.unwrap_or_default().as_nanos();
        let mut caveats = Vec::new();
        if let Some(from) = &args.from {
            let to = args.to.as_ref().map_or("its return", |to| to);
            caveats.push(format!("Traced from calls of {from} to {to} only."));
        }
        if let Some(only) = &args.only {
            caveats.push(format!("Of {only} only."));
        }
        if args.every > 1 {
            caveats.push(format!(
                "One of {} parts of the memory was traced: other pages look as if nobody had \
                 accessed them.",
                args.every
            ));
        }
        Begun {
            at: Instant::now(),
            run: Run {
                tool: env!("CARGO_PKG_VERSION").to_owned(),
                command: hide(&words, args.keep_arguments),
                pid,
                parent: pid,
                machine: Topology::this().cpu_name.value,
                started_ns: u64::try_from(started).unwrap_or(u64::MAX),
                accesses: true,
                caveats,
                ..Run::default()
            },
        }
    }

    /// The first process has ended.
    pub(super) fn end(self, status: ExitStatus) -> Run {
        let exit = match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Unknown,
        };
        Run {
            seconds: self.at.elapsed().as_secs_f64(),
            exit,
            ..self.run
        }
    }
}

/// A profile that is being made.
pub(super) struct Recording {
    path: PathBuf,
    run: Run,
    kinds: u64,
    pages: Pages,
}

impl Recording {
    pub(super) fn new(args: &TraceArgs, path: &Path, run: &Run, counts: Counts) -> Recording {
        let mut run = Run {
            pid: u32::try_from(counts.pid).unwrap_or(0),
            end: counts.events,
            ..run.clone()
        };
        if run.pid != run.parent {
            run.exit = Exit::Unknown;
        }
        if counts.lost > 0 {
            let lost = counts.lost;
            run.caveats.push(format!(
                "The last {lost} events had no room (--most has more)."
            ));
        }
        Recording {
            path: path.to_owned(),
            run,
            kinds: kinds(args),
            pages: Pages::new(counts.events),
        }
    }

    pub(super) fn add(&mut self, event: &Event) {
        self.pages.add(event);
    }

    pub(super) fn finish(mut self, names: &Names) -> Result<(), ccscope::Error> {
        let kinds = self.kinds;
        let is_traced = |row: &Row| is_traced(row, names.rows(), kinds);
        let (mappings, pages) = self.pages.finish(names, is_traced);
        // Of others, the executable is known, which comes first.
        let own = mappings.iter().find(|it| !it.name.starts_with('['));
        if let Some(own) = own.filter(|_| self.run.pid != self.run.parent) {
            self.run.command = vec![own.name.clone()];
        }
        let profile = Profile {
            run: self.run,
            total: Totals::default(),
            mappings,
            pages,
            ..Profile::default()
        };
        profile.save(self.path)
    }
}

/// Whether the tracer takes over a mapping; see `take` in `tracer/start.rs`. `None` of what is the
/// tracer's, or no memory: room that is reserved.
fn is_traced(row: &Row, all: &[Row], kinds: u64) -> Option<bool> {
    let path = row.name.trim_end_matches(" (bss)");
    let file = Path::new(path).file_name().unwrap_or_default();
    let begins = |start| file.to_string_lossy().starts_with(start);
    let is_events = file.to_string_lossy().ends_with(".events");
    if row.rights == "---p" && path.is_empty() || begins("libccscope_") || is_events {
        return None;
    }
    let is_plain = row.rights.is_empty() || row.rights == "rw-p";
    let is_module = || { all.iter() }.any(|it| it.name == path && it.rights.contains('x'));
    let kind = match &*row.name {
        "[heap]" | "[mapped]" => HEAP,
        _ if !path.starts_with('/') || begins("ld-") || !is_module() => 0,
        name if name.ends_with(" (bss)") => BSS,
        _ => DATA,
    };
    Some(is_plain && kinds & kind != 0)
}
