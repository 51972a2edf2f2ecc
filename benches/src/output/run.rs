//! When, where and from what a run was made, and how busy the machine was meanwhile.

use std::process::Command;
use std::time::Instant;

use ccmodel::counters::Counters;
use ccmodel::{CacheKind, Topology};
use serde::{Deserialize, Serialize};

use crate::sys::{ProcessorTime, load_average, system_name};

/// The facts of one run: the first line of `report.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// When it began, as `2026-11-21T04:00:00Z`.
    pub date: String,
    /// The command line, without the folders of the program and of the files.
    pub command: String,
    /// With `+` after it when files have changed since; empty when git does not tell.
    pub commit: String,
    pub compiler: String,
    pub system: String,
    pub processor: String,
    /// Processors that this process may use.
    pub processors: usize,
    pub virtualised: bool,
    /// The data caches that the system names, nearest first.
    pub caches: Vec<String>,
    pub memory_bytes: u64,
    /// Whether the system makes huge pages without being asked: `always`, `madvise`, `never`.
    pub huge_pages: String,
    pub counters: String,
    pub load_before: Option<[f64; 3]>,
    pub load_after: Option<[f64; 3]>,
    /// The part of the processors' time that went to other processes and the kernel's work for
    /// them.
    pub others_share: Option<f64>,
    /// And what the hypervisor gave to other guests.
    pub stolen_share: Option<f64>,
    pub seconds: f64,
    /// To be run, and run.
    pub workloads: usize,
    pub finished: usize,
    /// What was left out, and why.
    pub notes: Vec<String>,
    pub failures: Vec<String>,
}

/// A machine on which others take less than this share of the processors is called quiet.
const QUIET_SHARE: f64 = 0.03;

impl Run {
    /// How quiet the machine was, in words; empty when that was not recorded.
    pub fn quietness(&self) -> String {
        let loads = match (self.load_before, self.load_after) {
            (Some([before, ..]), Some([after, ..])) => format!(
                "load average {before:.2} before, {after:.2} after (the run itself makes 1)"
            ),
            _ => String::new(),
        };
        let (Some(others), Some(stolen)) = (self.others_share, self.stolen_share) else {
            return loads;
        };
        let is_quiet = others + stolen < QUIET_SHARE;
        let not = if is_quiet { "" } else { "not " };
        let (others, stolen) = (others * 100.0, stolen * 100.0);
        let shares = format!(
            "{not}quiet: other processes took {others:.1}% of the processors' time, \
             other guests {stolen:.1}%"
        );
        joined([shares, loads])
    }

    /// `2 virtual processors of AMD EPYC`.
    pub fn processors(&self) -> String {
        let kind = if self.virtualised { "virtual " } else { "" };
        format!("{} {kind}processors of {}", self.processors, self.processor)
    }

    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut machine = vec![self.processors(), self.caches.join(", ")];
        if self.memory_bytes > 0 {
            let gib = self.memory_bytes as f64 / f64::from(1 << 30);
            machine.push(format!("{gib:.0} GiB of memory"));
        }
        machine.push(self.system.clone());
        if !self.huge_pages.is_empty() {
            machine.push(format!("huge pages: {}", self.huge_pages));
        }
        let (finished, all, seconds) = (self.finished, self.workloads, self.seconds);
        let state = match finished == all && self.failures.is_empty() {
            true => format!("complete, {seconds:.0} s"),
            false => format!("NOT complete: {finished} of {all} workloads in {seconds:.0} s"),
        };
        let mut facts = vec![
            ("date", self.date.clone()),
            ("command", self.command.clone()),
            ("commit", self.commit.clone()),
            ("compiler", self.compiler.clone()),
            ("machine", joined(machine)),
            ("counters", self.counters.clone()),
            ("quietness", self.quietness()),
            ("run", state),
        ];
        facts.extend(self.notes.iter().map(|note| ("note", note.clone())));
        facts.extend(self.failures.iter().map(|it| ("failure", it.clone())));
        facts.retain(|(_, text)| !text.is_empty());
        facts
    }
}

/// Those of `texts` that are not empty, in one.
pub(super) fn joined(texts: impl IntoIterator<Item = String>) -> String {
    let said = texts.into_iter().filter(|text| !text.is_empty());
    said.collect::<Vec<_>>().join("; ")
}

/// A run in progress.
#[derive(Debug)]
pub struct Watch {
    started: Instant,
    times: Option<ProcessorTime>,
    pub run: Run,
}

impl Watch {
    /// Gathers the facts, which takes some milliseconds, and starts the clock.
    pub fn start(arguments: impl Iterator<Item = String>, workloads: usize) -> Self {
        let topology = Topology::this();
        let caches = topology.data_caches();
        let caches = caches
            .filter(|cache| matches!(cache.kind, CacheKind::Data | CacheKind::Unified))
            .map(|cache| format!("{} L{}", bytes(cache.size_bytes), cache.level));
        let names = |counters: Counters| {
            let names: Vec<&str> = counters.events().map(|event| event.name()).collect();
            names.join(", ")
        };
        let run = Run {
            date: output_of("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
            command: command(arguments),
            commit: commit(),
            compiler: output_of("rustc", &["--version"]),
            system: system_name(),
            caches: caches.collect(),
            processor: topology.cpu_name.value,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            virtualised: topology.virtualised.value,
            memory_bytes: topology.memory_bytes.value,
            huge_pages: topology.huge_pages.value.to_string(),
            counters: Counters::new().map_or_else(|error| error.to_string(), names),
            load_before: load_average(),
            workloads,
            ..Run::default()
        };
        Watch {
            started: Instant::now(),
            times: ProcessorTime::now(),
            run,
        }
    }

    pub fn now(&self) -> Run {
        let mut run = self.run.clone();
        run.seconds = self.started.elapsed().as_secs_f64();
        run.load_after = load_average();
        if let (Some(before), Some(after)) = (self.times, ProcessorTime::now()) {
            let since = |ticks: fn(&ProcessorTime) -> u64| {
                ticks(&after).saturating_sub(ticks(&before)) as f64
            };
            let total = since(|time| time.total);
            if total > 0.0 {
                let others = since(|time| time.busy) - since(|time| time.own);
                run.others_share = Some((others / total).max(0.0));
                run.stolen_share = Some(since(|time| time.stolen) / total);
            }
        }
        run
    }
}

/// Without the path of the program and `--out`, because records leave this machine.
pub fn command(arguments: impl Iterator<Item = String>) -> String {
    let mut command = String::from("report");
    let mut arguments = arguments.skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--out" {
            arguments.next();
        } else if !argument.starts_with("--out=") {
            command.push(' ');
            command.push_str(&argument);
        }
    }
    command
}

/// A number of bytes in the largest unit that leaves no fraction.
fn bytes(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(size, _)| bytes.is_multiple_of(*size));
    let (size, name) = unit.unwrap_or(&(1, "B"));
    format!("{} {name}", bytes / size)
}

/// The commit of the sources: `9116c7f4a0d2`, with a `+` when tracked files differ from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let sources = ["-C", env!("CARGO_MANIFEST_DIR")];
        output_of("git", &[&sources, arguments].concat())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
    let mark = if changes.is_empty() { "" } else { "+" };
    commit + mark
}

/// Empty when the program does not run or fails.
fn output_of(program: &str, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => String::new(),
    }
}
