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
    /// The commit that is checked out when the run begins, with `+` after it when files have
    /// changed since; empty when git does not tell.
    pub commit: String,
    /// The compiler's name and version.
    pub compiler: String,
    /// The operating system's.
    pub system: String,
    /// The processor's name.
    pub processor: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// Whether it is a guest of a hypervisor.
    pub virtualised: bool,
    /// The data caches that the system names, nearest first.
    pub caches: Vec<String>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Whether the system makes huge pages without being asked: `always`, `madvise`, `never`.
    pub huge_pages: String,
    /// What the processor counts, or why it counts nothing.
    pub counters: String,
    /// Load averages over 1, 5 and 15 minutes before the run.
    pub load_before: Option<[f64; 3]>,
    /// And at its end.
    pub load_after: Option<[f64; 3]>,
    /// The share of the processors' time that went to other processes, and the kernel's work for
    /// them.
    pub others_share: Option<f64>,
    /// The share that the hypervisor gave to others.
    pub stolen_share: Option<f64>,
    /// How long it took.
    pub seconds: f64,
    /// Workloads that it was to run.
    pub workloads: usize,
    /// Those that it has run; fewer than `workloads` when it was interrupted.
    pub finished: usize,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// What went wrong.
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
        let not = if others + stolen < QUIET_SHARE {
            ""
        } else {
            "not "
        };
        let shares = format!(
            "{not}quiet: other processes took {:.1}% of the processors' time, other guests {:.1}%",
            others * 100.0,
            stolen * 100.0
        );
        joined([shares, loads])
    }

    /// Whether it ran all that it was to run, and without failures.
    pub fn is_complete(&self) -> bool {
        self.finished == self.workloads && self.failures.is_empty()
    }

    /// `2 virtual processors of AMD EPYC`.
    pub fn processors(&self) -> String {
        let kind = if self.virtualised { "virtual " } else { "" };
        format!("{} {kind}processors of {}", self.processors, self.processor)
    }

    /// What a reader should know about it, as names and texts.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let memory = match self.memory_bytes {
            0 => String::new(),
            bytes => format!("{:.0} GiB of memory", bytes as f64 / f64::from(1 << 30)),
        };
        let pages = match self.huge_pages.as_str() {
            "" => String::new(),
            mode => format!("huge pages: {mode}"),
        };
        let machine = [
            self.processors(),
            self.caches.join(", "),
            memory,
            self.system.clone(),
            pages,
        ];
        let (finished, all, seconds) = (self.finished, self.workloads, self.seconds);
        let state = match self.is_complete() {
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
pub(super) fn joined<const N: usize>(texts: [String; N]) -> String {
    let said: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    said.join("; ")
}

/// A run in progress.
#[derive(Debug)]
pub struct Watch {
    started: Instant,
    times: Option<ProcessorTime>,
    /// What is known of it, without what changes with time.
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

    /// The facts as of now.
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

/// The command line `arguments` without the path of the program, which comes first, and without
/// `--out`: records leave this machine.
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

/// What a program prints; empty when it does not run or fails.
fn output_of(program: &str, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => String::new(),
    }
}
