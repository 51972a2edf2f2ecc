//! Runs of a program: what they print, how they end, and what they take.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tempfile::TempDir;

use super::gate::{Outcome, Sample};

/// How long a server may take until it is ready, and to its end.
const READY_TIME: Duration = Duration::from_secs(30);
const END_TIME: Duration = Duration::from_secs(10);
const READY_INTERVAL: Duration = Duration::from_millis(20);
/// A run is ended after so many times what the first one took, and some.
const PATIENCE: u32 = 10;
const MORE_PATIENCE: Duration = Duration::from_secs(10);
/// Of what a program says of itself on standard error, no more is looked at.
const MAX_SAID: u64 = 1 << 16;
/// Times are measured no finer, so that none is 0.
const MIN_TIME_S: f64 = 1e-5;
/// Why a run is wrong that prints something else.
const OTHER_OUTPUT: &str = "prints something else";
/// Variables that only variants set.
const OURS: [&str; 3] = ["CCMALLOC_RULES", "CCMALLOC_LEARN", "CCMALLOC_REPORT"];

/// A program, and the variables with which it is started.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub(crate) program: PathBuf,
    /// Its name first.
    pub(crate) words: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    Wall,
    User,
    /// The processor's time, the kernel's included.
    Cpu,
    /// A command that prints a number.
    Command {
        line: String,
        higher_is_better: bool,
    },
}

/// A server is driven by another command.
#[derive(Clone, Debug)]
pub(crate) struct Drive {
    /// Succeeds once the server is ready.
    pub(crate) ready: Option<String>,
    pub(crate) line: String,
}

/// How the embedding tool takes part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hooks {
    /// A process has started, which signals are handed on to.
    pub(crate) started: fn(u32),
    /// Whether the user wants an end.
    pub(crate) is_interrupted: fn() -> bool,
}

/// Starts variants, and compares what they print with what the first one has printed.
#[derive(Debug)]
pub(crate) struct Runs {
    pub(crate) metric: Metric,
    pub(crate) check: Option<String>,
    pub(crate) drive: Option<Drive>,
    pub(crate) input: Option<PathBuf>,
    pub(crate) hooks: Hooks,
    folder: TempDir,
    original: Option<Original>,
}

/// The program as it is.
#[derive(Clone, Copy, Debug)]
struct Original {
    status: ExitStatus,
    /// Whether it prints the same each time.
    is_steady: bool,
    took: Duration,
}

/// How a run has ended.
#[derive(Debug)]
struct Ended {
    status: ExitStatus,
    sample: Sample,
}

/// Why there is no sample.
#[derive(Debug)]
enum Failure {
    /// Nothing can be run.
    Fatal(String),
    Wrong(String),
    Interrupted,
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure::Fatal(why)
    }
}

impl Runs {
    /// # Errors
    ///
    /// There is no temporary folder.
    pub(crate) fn new(metric: Metric, hooks: Hooks) -> Result<Runs, String> {
        let folder = tempfile::tempdir();
        Ok(Runs {
            metric,
            check: None,
            drive: None,
            input: None,
            hooks,
            folder: folder.map_err(|error| format!("cannot make a temporary folder: {error}"))?,
            original: None,
        })
    }

    /// The folder of what is printed; it goes with this.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Runs the program as it is twice, as that to which all is compared; whether it prints the
    /// same both times. `None` if the user wants an end.
    ///
    /// # Errors
    ///
    /// It cannot be run, or not measured.
    pub(crate) fn begin(&mut self, as_is: &Variant) -> Result<Option<bool>, String> {
        let start = Instant::now();
        let status = match self.attempt(as_is, &self.first_output()) {
            Ok(first) => first.status,
            Err(Failure::Interrupted) => return Ok(None),
            Err(Failure::Fatal(why) | Failure::Wrong(why)) => {
                return Err(format!("the program as it is {why}"));
            }
        };
        self.original = Some(Original {
            status,
            is_steady: true,
            took: start.elapsed(),
        });
        match self.run_as_is(as_is)? {
            Outcome::Interrupted => Ok(None),
            _ => Ok(self.original.map(|original| original.is_steady)),
        }
    }

    /// How the program as it is ends, if that tells of a failure, and what it has written to
    /// standard error last.
    pub(crate) fn failure(&self) -> Option<(String, String)> {
        let status = self.original.as_ref()?.status;
        let said = self.said();
        let last = said.lines().rfind(|line| !line.trim().is_empty());
        let last = last.unwrap_or_default().to_owned();
        (!status.success()).then(|| (ending(status), last))
    }

    /// Runs the program as it is once more. Where it prints something else than before, what is
    /// printed counts no more.
    ///
    /// # Errors
    ///
    /// It cannot be run, or ends in another way than before.
    pub(crate) fn run_as_is(&mut self, as_is: &Variant) -> Result<Outcome, String> {
        match self.run(as_is)? {
            Outcome::Wrong(why) if why == OTHER_OUTPUT => {
                if let Some(original) = &mut self.original {
                    original.is_steady = false;
                }
                self.run_as_is(as_is)
            }
            Outcome::Wrong(why) => Err(format!("the program as it is {why}")),
            outcome => Ok(outcome),
        }
    }

    /// Runs a variant and compares it with the program as it is.
    fn run(&mut self, variant: &Variant) -> Result<Outcome, String> {
        let ended = match self.attempt(variant, &self.output()) {
            Ok(ended) => ended,
            Err(Failure::Fatal(why)) => return Err(why),
            Err(Failure::Wrong(why)) => return Ok(Outcome::Wrong(why)),
            Err(Failure::Interrupted) => return Ok(Outcome::Interrupted),
        };
        let Some(original) = self.original.filter(|_| self.drive.is_none()) else {
            return Ok(Outcome::Ran(ended.sample));
        };
        if ended.status != original.status {
            let [now, usual] = [ended.status, original.status].map(ending);
            return Ok(Outcome::Wrong(format!(
                "ends with {now} instead of {usual}"
            )));
        }
        if original.is_steady && !self.is_same_output()? {
            return Ok(Outcome::Wrong(OTHER_OUTPUT.to_owned()));
        }
        Ok(Outcome::Ran(ended.sample))
    }

    /// The same for another variant. Where it prints something else, the program as it is may do so
    /// at times, too: that is tried first.
    ///
    /// # Errors
    ///
    /// Nothing can be run.
    pub(crate) fn run_other(
        &mut self,
        variant: &Variant,
        as_is: &Variant,
    ) -> Result<Outcome, String> {
        for _ in 0..2 {
            match self.run(variant)? {
                Outcome::Wrong(why) if why == OTHER_OUTPUT => {}
                outcome => return Ok(outcome),
            }
            if let Outcome::Interrupted = self.run_as_is(as_is)? {
                return Ok(Outcome::Interrupted);
            }
        }
        self.run(variant)
    }

    /// What the latest run has said on standard error, up to some length.
    pub(crate) fn said(&self) -> String {
        let mut bytes = Vec::new();
        let file = File::open(self.folder().join("errors"));
        // What cannot be read says nothing.
        drop(file.and_then(|file| file.take(MAX_SAID).read_to_end(&mut bytes)));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn output(&self) -> PathBuf {
        self.folder().join("output")
    }

    fn first_output(&self) -> PathBuf {
        self.folder().join("first-output")
    }

    fn is_same_output(&self) -> Result<bool, String> {
        same_bytes(&self.first_output(), &self.output())
            .map_err(|error| format!("cannot read what the program printed: {error}"))
    }

    /// One run, with what it prints in `output`.
    fn attempt(&self, variant: &Variant, output: &Path) -> Result<Ended, Failure> {
        let mut command = Command::new(&variant.program);
        if let Some((name, arguments)) = variant.words.split_first() {
            command.arg0(name).args(arguments);
        }
        for name in OURS {
            command.env_remove(name);
        }
        command.envs(
            variant
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        );
        let input = match &self.input {
            Some(path) => open(path)?.into(),
            None => Stdio::null(),
        };
        let server_output = self.folder().join("server-output");
        let own_output = if self.drive.is_some() {
            &server_output
        } else {
            output
        };
        command
            .stdin(input)
            .stdout(create(own_output)?)
            .stderr(create(&self.folder().join("errors"))?);
        let mut running = Running::start(command, self.hooks)
            .map_err(|error| format!("cannot be started: {error}"))?;
        let limit = self.original.map_or(Duration::MAX, |original| {
            original
                .took
                .saturating_mul(PATIENCE)
                .saturating_add(MORE_PATIENCE)
        });
        let mut driven_s = None;
        match &self.drive {
            None => {
                if !running.has_ended(limit)? {
                    running.kill(Signal::KILL);
                    running.end()?;
                    if (self.hooks.is_interrupted)() {
                        return Err(Failure::Interrupted);
                    }
                    return Err(Failure::Wrong(format!("does not end in {limit:.0?}")));
                }
            }
            Some(drive) => {
                let result = self.drive(drive, &running, output, limit);
                let has_ended = running.has_ended(Duration::ZERO)?;
                running.kill(Signal::TERM);
                if !running.has_ended(END_TIME)? {
                    running.kill(Signal::KILL);
                }
                let seconds = match result {
                    Ok(seconds) => seconds,
                    Err(failure) => {
                        running.end()?;
                        return Err(failure);
                    }
                };
                if has_ended {
                    let status = ending(running.end()?.0);
                    return Err(Failure::Wrong(format!(
                        "ends with {status} before its load"
                    )));
                }
                driven_s = Some(seconds);
            }
        }
        let (status, [user_s, system_s], peak_bytes, wall_s) = running.end()?;
        if (self.hooks.is_interrupted)() {
            return Err(Failure::Interrupted);
        }
        let mut sample = Sample {
            cost: 0.0,
            wall_s: driven_s.unwrap_or(wall_s).max(MIN_TIME_S),
            user_s: user_s.max(MIN_TIME_S),
            peak_bytes,
        };
        if let Some(line) = &self.check {
            let checked = self.shell(line, Some(output), None)?;
            if !checked.success() {
                return Err(Failure::Wrong(format!(
                    "fails the check: {}",
                    ending(checked)
                )));
            }
        }
        sample.cost = match &self.metric {
            Metric::Wall => sample.wall_s,
            Metric::User => sample.user_s,
            Metric::Cpu => sample.user_s + system_s,
            Metric::Command {
                line,
                higher_is_better,
            } => {
                let figure = self.figure(line, output)?;
                if *higher_is_better {
                    1.0 / figure
                } else {
                    figure
                }
            }
        };
        Ok(Ended { status, sample })
    }

    /// Waits until the server is ready and runs its load; the seconds that this takes.
    fn drive(
        &self,
        drive: &Drive,
        server: &Running,
        output: &Path,
        limit: Duration,
    ) -> Result<f64, Failure> {
        let start = Instant::now();
        while let Some(line) = &drive.ready {
            if self.shell(line, None, None)?.success() {
                break;
            }
            if (self.hooks.is_interrupted)() {
                return Err(Failure::Interrupted);
            }
            if start.elapsed() > READY_TIME {
                return Err(Failure::Wrong("is not ready in 30 s".to_owned()));
            }
            if server.has_ended(READY_INTERVAL)? {
                return Err(Failure::Wrong("ends before it is ready".to_owned()));
            }
        }
        let start = Instant::now();
        let mut load = Command::new("sh");
        load.args(["-c", &drive.line])
            .stdin(Stdio::null())
            .stdout(create(output)?);
        load.stderr(Stdio::null());
        let mut load = Running::start(
            load,
            Hooks {
                started: |_| (),
                ..self.hooks
            },
        )
        .map_err(|error| format!("cannot start sh: {error}"))?;
        if !load.has_ended(limit)? {
            load.kill(Signal::KILL);
            load.end()?;
            return Err(Failure::Wrong(format!(
                "does not serve its load in {limit:.0?}"
            )));
        }
        let seconds = start.elapsed().as_secs_f64();
        let status = load.end()?.0;
        match status.success() {
            _ if (self.hooks.is_interrupted)() => Err(Failure::Interrupted),
            true => Ok(seconds),
            false => Err(Failure::Wrong(format!(
                "fails its load: {}",
                ending(status)
            ))),
        }
    }

    /// The number that a command prints.
    fn figure(&self, line: &str, output: &Path) -> Result<f64, Failure> {
        let file = self.folder().join("figure");
        let status = self.shell(line, Some(output), Some(&file))?;
        let text = std::fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let number = text.trim().parse::<f64>().ok();
        match number.filter(|number| number.is_finite() && *number > 0.0) {
            Some(number) if status.success() => Ok(number),
            _ if (self.hooks.is_interrupted)() => Err(Failure::Interrupted),
            _ => Err(Failure::Wrong(
                "gives no number above 0 by the metric's command".to_owned(),
            )),
        }
    }

    /// Runs a line of the shell.
    fn shell(
        &self,
        line: &str,
        input: Option<&Path>,
        output: Option<&Path>,
    ) -> Result<ExitStatus, Failure> {
        let mut command = Command::new("sh");
        command.args(["-c", line]).stderr(Stdio::null());
        command.stdin(match input {
            Some(path) => open(path)?.into(),
            None => Stdio::null(),
        });
        command.stdout(match output {
            Some(path) => create(path)?.into(),
            None => Stdio::null(),
        });
        let status = command.status();
        Ok(status.map_err(|error| format!("cannot start sh: {error}"))?)
    }
}

/// A process that is measured.
#[derive(Debug)]
struct Running {
    pid: Pid,
    end: OwnedFd,
    started: Instant,
    wall_s: std::cell::Cell<f64>,
}

impl Running {
    fn start(mut command: Command, hooks: Hooks) -> io::Result<Running> {
        let started = Instant::now();
        let child = command.spawn()?;
        (hooks.started)(child.id());
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("its number is none"))?;
        // A signal that came before went to a process that had ended.
        if (hooks.is_interrupted)() {
            let _ = kill_process(pid, Signal::TERM);
        }
        // The child is waited for by `end`, which asks for more than `Child` tells.
        let end = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Running {
            pid,
            end,
            started,
            wall_s: std::cell::Cell::new(0.0),
        })
    }

    /// Waits for its end for so long.
    fn has_ended(&self, time: Duration) -> Result<bool, String> {
        let start = Instant::now();
        loop {
            let mut ends = [PollFd::new(&self.end, PollFlags::IN)];
            let left = time.saturating_sub(start.elapsed());
            let left = Timespec::try_from(left).ok();
            match poll(&mut ends, left.as_ref()) {
                Ok(0) => return Ok(false),
                Ok(_) => {
                    if self.wall_s.get() == 0.0 {
                        self.wall_s.set(self.started.elapsed().as_secs_f64());
                    }
                    return Ok(true);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("cannot wait for the program: {error}")),
            }
        }
    }

    fn kill(&self, signal: Signal) {
        // It may have ended by itself.
        let _ = kill_process(self.pid, signal);
    }

    /// Waits for its end: status, seconds of user and kernel, peak memory and wall seconds. The
    /// peak is at least that of this process, which the kernel counts until the program starts.
    fn end(&mut self) -> Result<(ExitStatus, [f64; 2], u64, f64), String> {
        self.has_ended(Duration::MAX)?;
        let mut status = 0;
        // SAFETY: all zeros is a value of `rusage`, which has only integers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let pid = self.pid.as_raw_nonzero().get();
        // SAFETY: both pointers are to values of their types that live for the call. The process is
        // a child of this one that nothing else waits for.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) };
        if waited != pid {
            let error = io::Error::last_os_error();
            return Err(format!("cannot wait for the program: {error}"));
        }
        let seconds = [usage.ru_utime, usage.ru_stime]
            .map(|time| time.tv_sec as f64 + time.tv_usec as f64 / 1e6);
        let peak_bytes = u64::try_from(usage.ru_maxrss)
            .unwrap_or(0)
            .saturating_mul(1024);
        Ok((
            ExitStatus::from_raw(status),
            seconds,
            peak_bytes,
            self.wall_s.get(),
        ))
    }
}

/// How a program ended, as people say it.
fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (_, Some(libc::SIGSEGV)) => "SIGSEGV".to_owned(),
        (_, Some(libc::SIGABRT)) => "SIGABRT".to_owned(),
        (_, signal) => format!("signal {}", signal.unwrap_or(0)),
    }
}

fn open(path: &Path) -> Result<File, String> {
    File::open(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn create(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Whether two files have the same content.
fn same_bytes(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let len = a.read(&mut left)?;
        if len == 0 {
            return Ok(true);
        }
        b.read_exact(&mut right[..len])?;
        if left[..len] != right[..len] {
            return Ok(false);
        }
    }
}
