//! `ccscope run`: starts a program with the runtime and makes a profile of each of its processes.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, setrlimit};

use super::args::{RecordArgs, RunArgs};
use super::built::Built;
use super::process::Process;
use super::program::{self, Program};
use super::progress::Progress;
use super::reporter::Reporter;
use super::socket::{Arrival, Ask, Ending, Listener, Message, Request};
use super::{CliError, fail, leaks, runtime, secrets, signals, usage};
use crate::capture_format::{OPTIONS_VARIABLE, SOCKET_VARIABLE};
use crate::profile::Exit;
use crate::store::is_stream;

/// With `--full` the ring of dead chunks is emptied so often.
const FULL_INTERVAL: Duration = Duration::from_millis(2);
/// Commands and programs that ask for a snapshot wait for so long.
const LISTEN_INTERVAL: Duration = Duration::from_millis(50);
/// Between samples of resident memory. Each takes a tenth of a millisecond of a processor, with the
/// tool's waking up for it: 0.5 %.
const FIRST_INTERVAL: Duration = Duration::from_millis(20);
/// A run has so many of these samples, and as many again for each factor of e.
const SAMPLES: u32 = 500;
/// Captures that are held before those of ended processes become profiles. Each maps a good
/// TiB of addresses while it does, and its memory stays until then.
const MAX_HELD: usize = 64;

/// `built` is what `cargo ccscope` says, if it started this.
pub(super) fn run(
    args: &RunArgs,
    built: Option<Built>,
    err: &mut dyn Write,
) -> Result<u8, CliError> {
    if let Some(built) = &built {
        built.start();
    }
    let (name, rest) = args.command.split_first().expect("clap asks for it");
    let program = program::find(name)?;
    if let Some(why) = &program.aside {
        return alone(&program, name, rest, why, err);
    }
    if args.record.regions.is_some() && !program.facts.has_regions {
        let shown = program.path.display();
        return fail(format!(
            "{shown} is not built for regions: use `cargo ccscope run --regions`, or for C \
             `ccscope cc` with CCSCOPE_REGIONS=1"
        ));
    }
    if args.record.sample.is_some() && program.facts.is_instrumented {
        let shown = program.path.display();
        return fail(format!(
            "{shown} is built so that its accesses are seen: `--sample` is for programs as they \
             are shipped"
        ));
    }
    check_output(args.record.output.as_deref())?;
    if let Some(path) = args.record.output.as_ref().filter(|path| is_stream(path))
        && args.record.page
    {
        return usage(format!(
            "no page can lie beside {}: it is no file",
            path.display()
        ));
    }
    let runtime = runtime::install_runtime()?;
    let mut command = Command::new(&program.path);
    command.arg0(name).args(rest);
    let mut recording = Recording::start(
        command,
        &runtime,
        &args.record,
        program.facts.is_instrumented,
    )?;
    let words = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    recording.words = secrets::hide(&words.collect::<Vec<_>>(), args.record.keep_arguments);
    let mut reporter = Reporter::new(&args.record, built, &program, recording.pid);
    recording.record(&mut reporter, err);
    let status = recording.end()?;
    signals::obey();
    let said = recording.listener.said();
    for line in &said {
        drop(writeln!(err, "ccscope: {line}"));
    }
    reporter.is_told = said.iter().any(|line| line.contains(ALONE));
    // The program's status counts more than lines that nobody can read.
    drop(reporter.finish(recording.processes, err));
    Ok(exit_code(status))
}

/// In what is said of a program that the library is not in.
pub const ALONE: &str = "runs as without the tool";

/// Becomes a program that the tool's library cannot be in.
///
/// # Errors
///
/// It cannot be started.
pub fn alone(
    program: &Program,
    name: &OsString,
    rest: &[OsString],
    why: &str,
    err: &mut dyn Write,
) -> Result<u8, CliError> {
    writeln!(err, "ccscope: {why}: it runs as without the tool")?;
    let error = Command::new(&program.path).arg0(name).args(rest).exec();
    fail(format!(
        "{}: cannot be started: {error}",
        program.path.display()
    ))
}

/// Asked first: a long run whose profile cannot be stored is a nuisance.
///
/// # Errors
///
/// Nothing can be written there.
pub fn check_output(path: Option<&Path>) -> Result<(), CliError> {
    let Some(path) = path else { return Ok(()) };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let path_text = path.display();
    if path.is_dir() {
        return fail(format!("cannot write {path_text}: it is a folder"));
    }
    match folder.is_some_and(|folder| !folder.is_dir()) {
        true => fail(format!(
            "cannot write {path_text}: its folder does not exist"
        )),
        false => Ok(()),
    }
}

/// As shells have it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    code.try_into().unwrap_or(u8::MAX)
}

/// A program that runs with the runtime, and the processes that have come of it.
#[derive(Debug)]
pub(super) struct Recording {
    listener: Listener,
    /// `None` if the process was there before.
    child: Option<Child>,
    pid: u32,
    /// Commands that ask for something.
    requests: Vec<Request>,
    /// The one that asked for the end, of a process that runs on.
    end_asked: Option<Request>,
    snapshots: usize,
    /// What the child was started as: it may have ended before it can be asked.
    words: Vec<String>,
    end: OwnedFd,
    started: Instant,
    progress: Progress,
    full: bool,
    keep_arguments: bool,
    pub(super) processes: Vec<Process>,
}

impl Recording {
    pub(super) fn start(
        mut command: Command,
        runtime: &Path,
        record: &RecordArgs,
        instrumented: bool,
    ) -> Result<Recording, CliError> {
        let listener = Listener::new()?;
        let options = format!(
            "stacks={},sites={},accesses={},full={},regions={},all_memory={},leaks={},rate={},\
             sample={}",
            u8::from(!record.no_stacks),
            u8::from(!record.counters_only && record.regions.is_none()),
            u8::from(instrumented),
            u8::from(record.full),
            u8::from(record.regions.is_some()) + u8::from(record.levels),
            u8::from(record.all_memory),
            u8::from(record.leaks),
            record.rate,
            record.sample.unwrap_or(0)
        );
        command
            .env("LD_PRELOAD", preload(runtime, env::var_os("LD_PRELOAD")))
            .env(SOCKET_VARIABLE, listener.path())
            .env(OPTIONS_VARIABLE, options);
        Built::hide(&mut command);
        signals::outlive();
        let name = command.get_program().to_owned();
        let child = command.spawn();
        let child = child.map_err(|error| {
            format!("{}: cannot be started: {error}", Path::new(&name).display())
        })?;
        signals::hand_on_to(child.id());
        // After the start: the program keeps its own limit. Each process takes a descriptor.
        let files = getrlimit(Resource::Nofile);
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: files.maximum,
                ..files
            },
        );
        let pid = child.id();
        Recording::new(listener, pid, Some(child), record)
    }

    /// A recording of a process that runs, whose capture this is.
    pub(super) fn of(arrival: Arrival, record: &RecordArgs) -> Result<Recording, CliError> {
        signals::outlive();
        let mut recording = Recording::new(Listener::new()?, arrival.pid, None, record)?;
        let process = Process::attached(arrival, record.keep_arguments);
        recording.processes.push(process);
        Ok(recording)
    }

    fn new(
        listener: Listener,
        pid: u32,
        child: Option<Child>,
        record: &RecordArgs,
    ) -> Result<Recording, CliError> {
        let end = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let end = match end.map(|pid| pidfd_open(pid, PidfdFlags::empty())) {
            Some(Ok(end)) => end,
            Some(Err(Errno::SRCH)) | None => return fail(format!("process {pid} has ended")),
            Some(Err(_)) => {
                return fail(
                    "this kernel has no pidfd_open: Linux 5.3 is the oldest that is supported",
                );
            }
        };
        let (started, progress) = (Instant::now(), Progress::new(record.quiet));
        Ok(Recording {
            listener,
            child,
            pid,
            requests: Vec::new(),
            end_asked: None,
            snapshots: 0,
            words: Vec::new(),
            end,
            started,
            progress,
            full: record.full,
            keep_arguments: record.keep_arguments,
            processes: Vec::new(),
        })
    }

    /// Waits for the program's end while it takes captures and samples. Returns whether it has
    /// ended: a process that was there before may run on.
    pub(super) fn record(&mut self, reporter: &mut Reporter<'_>, err: &mut dyn Write) -> bool {
        let mut next = Instant::now();
        let longest = if self.full {
            FULL_INTERVAL
        } else {
            LISTEN_INTERVAL
        };
        let has_ended = loop {
            if self.wait(next.saturating_duration_since(Instant::now()).min(longest)) {
                break true;
            }
            self.accept();
            self.take_snapshots(reporter, err);
            let is_asked = self.end_asked.is_some() || signals::is_interrupted();
            if self.child.is_none() && is_asked {
                break false;
            }
            for process in &mut self.processes {
                // What is lost is told by the capture.
                drop(process.drain());
            }
            if Instant::now() >= next {
                self.processes.iter_mut().for_each(Process::sample);
                let main = self
                    .processes
                    .iter()
                    .rfind(|process| process.pid == self.pid);
                if let Some(main) = main {
                    self.progress.show(main);
                }
                next = Instant::now() + FIRST_INTERVAL.max(self.started.elapsed() / SAMPLES);
            }
            if self.processes.len() > MAX_HELD {
                let held = std::mem::take(&mut self.processes);
                let (ended, running) = held.into_iter().partition(Process::has_ended);
                self.processes = running;
                drop(reporter.report(ended, err));
            }
        };
        self.progress.end();
        reporter.seconds = self.started.elapsed().as_secs_f64();
        has_ended
    }

    /// The command that waits for the end of a process's recording.
    pub(super) fn end_asked(&mut self) -> Option<Request> {
        self.end_asked.take()
    }

    /// Takes the snapshots that commands, signals and programs have asked for.
    fn take_snapshots(&mut self, reporter: &mut Reporter<'_>, err: &mut dyn Write) {
        for request in std::mem::take(&mut self.requests) {
            let pid = if request.pid == 0 {
                self.pid
            } else {
                request.pid
            };
            // One that is not answered knows that the process is another's.
            let found = self
                .processes
                .iter()
                .rposition(|process| process.pid == pid);
            match (found, &request.ask) {
                (None, _) => {}
                (Some(_), Ask::Who) => request.answer(Ok(pid.to_string())),
                (Some(index), Ask::Snapshot(path)) => {
                    let path = path.clone();
                    let made = self.snapshot(index, &path, reporter);
                    request.answer(made.map_err(|error| error.to_string()));
                }
                (Some(index), Ask::Capture) => {
                    let capture = self.processes[index].capture().as_raw_fd();
                    let name = format!("/proc/{}/fd/{capture}", std::process::id());
                    request.answer(Ok(name));
                }
                (Some(_), Ask::End) if self.child.is_none() => self.end_asked = Some(request),
                (Some(_), Ask::End) => {
                    let why =
                        format!("process {pid} was started by `ccscope run`, which ends with it");
                    request.answer(Err(why));
                }
            }
        }
        let mut indices: Vec<usize> = (0..self.processes.len())
            .filter(|&index| self.processes[index].asks_for_snapshot())
            .collect();
        let main = self
            .processes
            .iter()
            .rposition(|process| process.pid == self.pid);
        // The wish waits for the process.
        if let Some(main) = main
            && signals::asks_for_snapshot()
            && !indices.contains(&main)
        {
            indices.push(main);
        }
        for index in indices {
            self.snapshots += 1;
            let path = reporter.path_of_snapshot(&self.processes[index], self.snapshots);
            match self.snapshot(index, &path, reporter) {
                Ok(line) => drop(writeln!(err, "ccscope: {line}")),
                Err(error) => drop(writeln!(err, "ccscope: no snapshot: {error}")),
            }
        }
    }

    /// Writes a profile of this moment, while chunks that die are taken.
    fn snapshot(
        &mut self,
        index: usize,
        path: &Path,
        reporter: &mut Reporter<'_>,
    ) -> Result<String, CliError> {
        /// So often a capture may be copied while what it says does not fit together.
        const TRIES: usize = 5;
        check_output(Some(path))?;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_snapshot(index, path, reporter) {
                Err(_) if tries < TRIES => {}
                made => return made,
            }
        }
    }

    fn try_snapshot(
        &mut self,
        index: usize,
        path: &Path,
        reporter: &mut Reporter<'_>,
    ) -> Result<String, CliError> {
        let (pid, seconds) = (
            self.processes[index].pid,
            self.started.elapsed().as_secs_f64(),
        );
        drop(self.processes[index].drain());
        let copy = self.processes[index].copy();
        let copy = copy.map_err(|error| format!("the capture cannot be copied: {error}"))?;
        // They are read once for all snapshots.
        let mut symbols = std::mem::take(&mut reporter.symbols);
        let maker = reporter.maker();
        let is_main = pid == self.pid;
        let made = std::thread::scope(|scope| {
            let made = scope.spawn(|| {
                let seconds = is_main.then_some(seconds);
                maker.write(copy, seconds, path, &mut symbols)
            });
            while !made.is_finished() {
                for process in &mut self.processes {
                    drop(process.drain());
                }
                std::thread::sleep(FULL_INTERVAL);
            }
            made.join()
                .unwrap_or_else(|_| fail("the profile could not be made"))
        });
        reporter.symbols = symbols;
        made?;
        Ok(format!("snapshot of process {pid} in {}", path.display()))
    }

    /// The exit status of the program; takes the captures that have come until then.
    pub(super) fn end(&mut self) -> Result<ExitStatus, CliError> {
        let child = self.child.as_mut().expect("the program was started here");
        let status = child.wait();
        let status = status.map_err(|error| format!("cannot wait for the program: {error}"))?;
        self.accept();
        // If it has replaced itself by `exec`, the last one has ended like this.
        let main = self
            .processes
            .iter_mut()
            .rfind(|process| process.pid == self.pid);
        if let Some(main) = main {
            main.exit = match status.signal() {
                Some(signal) => Exit::Signal(signal),
                None => status.code().map_or(Exit::Unknown, Exit::Code),
            };
        }
        Ok(status)
    }

    /// Whether the program has ended; returns early when a process comes.
    fn wait(&self, time: Duration) -> bool {
        let ends = PollFd::new(&self.end, PollFlags::IN);
        let comes = PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN);
        let mut both = [ends, comes];
        let time = Timespec::try_from(time).unwrap_or_default();
        // A signal ends the wait; the caller waits again.
        poll(&mut both, Some(&time)).is_ok() && both[0].revents().contains(PollFlags::IN)
    }

    fn accept(&mut self) {
        while let Some(message) = self.listener.accept() {
            let arrival = match message {
                Message::Arrival(arrival) => arrival,
                Message::Request(request) => {
                    self.requests.push(request);
                    continue;
                }
                Message::Ending(ending) => {
                    self.look_for_leaks(&ending);
                    continue;
                }
            };
            let mut process = Process::new(arrival, self.keep_arguments);
            // After an `exec` they are those of another program.
            let is_first = { self.processes.iter() }.all(|other| other.pid != process.pid);
            let is_known = !is_first && process.executable().is_some();
            if process.pid == self.pid && process.command.is_empty() && !is_known {
                process.command.clone_from(&self.words);
            }
            self.processes.push(process);
        }
    }

    /// In a process that ends, which waits until `ending` is dropped.
    fn look_for_leaks(&mut self, ending: &Ending) {
        let process = self.processes.iter_mut().rfind(|it| it.pid == ending.pid);
        if let Some(process) = process {
            process.leaks = Some(leaks::leaks(process).map_err(|error| error.to_string()));
        }
    }
}

/// The runtime before what the user has there.
pub fn preload(runtime: &Path, existing: Option<OsString>) -> OsString {
    preload_before(runtime::preloaded(runtime), existing)
}

/// A list for `LD_PRELOAD`: `first`, and what the user has there.
pub(super) fn preload_before(first: OsString, existing: Option<OsString>) -> OsString {
    let mut list = first;
    if let Some(existing) = existing.filter(|text| !text.is_empty()) {
        list.push(":");
        list.push(existing);
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_preload_is_kept() {
        let runtime = Path::new("/c/lib.so");
        assert_eq!(preload(runtime, None), "/c/$PLATFORM/lib.so");
        assert_eq!(
            preload(runtime, Some(OsString::new())),
            "/c/$PLATFORM/lib.so"
        );
        assert_eq!(
            preload(runtime, Some("/a.so:/b.so".into())),
            "/c/$PLATFORM/lib.so:/a.so:/b.so"
        );
    }

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!(exit_code(ExitStatus::from_raw(3 << 8)), 3);
        assert_eq!(exit_code(ExitStatus::from_raw(libc::SIGKILL)), 137);
    }
}
