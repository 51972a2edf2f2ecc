//! Records a process that nobody records, as long as it is watched.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use super::super::super::args::RecordArgs;
use super::super::super::launch::Recording;
use super::super::super::reporter::Reporter;
use super::super::super::socket::{Arrival, Ask, ask};
use super::super::super::{CliError, fail};
use super::super::{load, target};

/// What is recorded: allocations with their stacks.
const OPTIONS: &str = "stacks=1,sites=1,accesses=0,full=0,rate=0";

/// A recording by another thread. Other commands see it as one of `ccscope attach`.
pub(super) struct Attached {
    pid: u32,
    thread: Option<JoinHandle<Result<(), CliError>>>,
}

impl Attached {
    /// The recording, and its capture.
    pub(super) fn new(pid: u32, despite_seccomp: bool) -> Result<(Attached, File), CliError> {
        let (sends, comes) = channel();
        let thread = thread::spawn(move || record(pid, despite_seccomp, &sends));
        let mut attached = Attached {
            pid,
            thread: Some(thread),
        };
        match comes.recv() {
            Ok(capture) => Ok((attached, capture)),
            Err(_) => {
                attached.join()?;
                fail(format!("process {pid} has ended"))
            }
        }
    }

    /// Whether the process has ended, or another command has had it detached.
    pub(super) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Detaches.
    pub(super) fn end(mut self) -> Result<(), CliError> {
        self.join()
    }

    fn join(&mut self) -> Result<(), CliError> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        if !thread.is_finished() {
            // The thread says itself what went wrong.
            drop(ask(self.pid, &Ask::End));
        }
        let ended = thread.join();
        ended.unwrap_or_else(|_| fail(format!("process {}: it is attached to still", self.pid)))
    }
}

impl Drop for Attached {
    /// After a panic, too.
    fn drop(&mut self) {
        drop(self.join());
    }
}

/// Records until the process ends, or a signal or a command asks for the end.
fn record(pid: u32, despite_seccomp: bool, sends: &Sender<File>) -> Result<(), CliError> {
    let program = target::program(pid, despite_seccomp)?;
    let record = RecordArgs {
        quiet: true,
        rate: 0,
        ..RecordArgs::told(&[])?
    };
    let (capture, _) = load::attach(pid, OPTIONS)?;
    let begun = capture
        .try_clone()
        .map_err(CliError::from)
        .and_then(|copy| {
            let recording = Recording::of(Arrival { pid, capture }, &record)?;
            // From here on it can be asked for its end.
            sends.send(copy)?;
            Ok(recording)
        });
    let mut recording = match begun {
        Ok(recording) => recording,
        Err(error) => {
            load::detach(pid)?;
            return Err(error);
        }
    };
    let mut reporter = Reporter::new(&record, None, &program, pid);
    let has_ended = recording.record(&mut reporter, &mut io::sink());
    let detached = match has_ended {
        true => Ok(()),
        false => load::detach(pid).map(drop),
    };
    if let Some(request) = recording.end_asked() {
        request.answer(match &detached {
            Ok(()) => Ok(format!("process {pid} is no longer recorded")),
            Err(error) => Err(error.to_string()),
        });
    }
    detached
}
