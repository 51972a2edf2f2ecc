//! `ccscope attach`, `detach`, `snapshot`, `serve` and `top`: profiles of programs that run.

mod inject;
mod load;
mod memory;
mod ptrace;
mod serve;
mod target;
mod top;

use std::env;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;

use super::args::{DEFAULT_SAMPLE, RecordArgs, sample};
use super::launch::{Recording, check_output};
use super::reporter::Reporter;
use super::socket::{Arrival, Ask, ask};
use super::{CliError, fail, signals};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
It records until the program ends, this command is interrupted (Ctrl-C), or `ccscope detach PID`.
Then the program goes on as it was before. Processes that it starts are not recorded.

Examples:
  ccscope attach 1234 -o server.ccscope &
  ccscope snapshot 1234 -o before.ccscope
  ccscope snapshot 1234 -o after.ccscope
  ccscope diff before.ccscope after.ccscope
  ccscope detach 1234")]
pub(super) struct AttachArgs {
    /// The process
    #[arg(value_name = "PID")]
    pid: u32,
    /// Write the profile here, instead of PROGRAM.PID.ccscope in the current folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Do not record call stacks: all allocations are of one site
    #[arg(long)]
    no_stacks: bool,
    /// Keep every chunk, not only those alive at the end, a sample of others, and sums
    #[arg(long)]
    full: bool,
    /// Of chunks of fewer than BYTES record about one in each BYTES, by chance, and count it for
    /// the others
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = DEFAULT_SAMPLE, value_parser = sample())]
    #[arg(conflicts_with_all = ["no_stacks", "full"])]
    sample: Option<u64>,
    /// Keep the arguments of the program: they may hold passwords, and are left out otherwise
    #[arg(long)]
    keep_arguments: bool,
    /// Write a page for a browser, too, beside the profile with the ending `html`
    #[arg(long)]
    page: bool,
    /// Attach also if a filter of system calls might end the process for loading a library
    #[arg(long)]
    despite_seccomp: bool,
    /// Print neither progress nor the summary, only problems
    #[arg(short, long)]
    quiet: bool,
    /// Say for how long a thread of the process was stopped
    #[arg(short, long)]
    verbose: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct DetachArgs {
    /// The process
    #[arg(value_name = "PID")]
    pid: u32,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The program runs on meanwhile. `ccscope diff` of two snapshots shows what has grown. The command
that records, `ccscope run` or `attach`, also takes a snapshot when it gets the signal USR1, and
when a program that it has started calls `ccscope_snapshot()`, in Rust `ccscope::snapshot()`.")]
pub(super) struct SnapshotArgs {
    /// The process; not needed if one program is recorded
    #[arg(value_name = "PID")]
    pid: Option<u32>,
    /// Write the profile here
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

pub(super) use serve::{ServeArgs, run as serve};
pub(super) use top::{TopArgs, run as top};

/// Records a process until its end, or until somebody asks for the end of the recording.
pub(super) fn attach(args: &AttachArgs, err: &mut dyn Write) -> Result<(), CliError> {
    check_output(args.output.as_deref())?;
    let pid = args.pid;
    if !ask(pid, &Ask::Who).is_empty() {
        return fail(format!(
            "process {pid} is recorded by another ccscope: see `ccscope snapshot {pid}`"
        ));
    }
    let program = target::program(pid, args.despite_seccomp)?;
    let record = RecordArgs {
        output: args.output.clone(),
        no_stacks: args.no_stacks,
        full: args.full,
        keep_arguments: args.keep_arguments,
        page: args.page,
        quiet: args.quiet,
        rate: 0,
        ..RecordArgs::told(&[])?
    };
    let options = format!(
        "stacks={},sites=1,accesses=0,full={},rate=0,sample={}",
        u8::from(!args.no_stacks),
        u8::from(args.full),
        args.sample.unwrap_or(0)
    );
    // A process whose thread is stopped is not to be left so.
    signals::outlive();
    let (capture, stopped) = load::attach(pid, &options)?;
    // That nobody reads this is no reason to leave the process as it is now.
    let say = |err: &mut dyn Write, what: &str, time: Duration| {
        if args.verbose {
            let ms = time.as_secs_f64() * 1e3;
            drop(writeln!(
                err,
                "ccscope: {what}: a thread of process {pid} was stopped for {ms:.1} ms"
            ));
        }
    };
    say(err, "attached", stopped);
    let mut recording = match Recording::of(Arrival { pid, capture }, &record) {
        Ok(recording) => recording,
        Err(error) => {
            load::detach(pid)?;
            return Err(error);
        }
    };
    // From here on other commands find this one.
    if !args.quiet {
        drop(writeln!(
            err,
            "ccscope: process {pid} is recorded; `ccscope detach {pid}` ends that"
        ));
    }
    let mut reporter = Reporter::new(&record, None, &program, pid);
    let has_ended = recording.record(&mut reporter, err);
    if !has_ended {
        match load::detach(pid) {
            Ok(stopped) => say(err, "detached", stopped),
            // Its profile is whole all the same.
            Err(error) => drop(writeln!(err, "ccscope: {error}")),
        }
    }
    let request = recording.end_asked();
    let finished = reporter.finish(recording.processes, err);
    let is_unread = |error: &CliError| {
        { error.downcast_ref() }.is_some_and(|it: &io::Error| it.kind() == ErrorKind::BrokenPipe)
    };
    let finished = match finished {
        Err(error) if is_unread(&error) => Ok(()),
        finished => finished,
    };
    if let Some(request) = request {
        request.answer(match &finished {
            Ok(()) => Ok(format!("process {pid} is no longer recorded")),
            Err(error) => Err(error.to_string()),
        });
    }
    finished
}

/// Ends the recording of a process that was attached to.
pub(super) fn detach(args: &DetachArgs, err: &mut dyn Write) -> Result<(), CliError> {
    let pid = args.pid;
    match ask(pid, &Ask::End).into_iter().next() {
        Some(Ok(_)) => {}
        Some(Err(why)) => return fail(why),
        None => {
            target::program(pid, true)?;
            load::detach(pid)?;
            writeln!(
                err,
                "ccscope: no command recorded process {pid} any more: there is no profile"
            )?;
        }
    }
    Ok(())
}

/// Has the command that records a process write a profile of this moment.
pub(super) fn snapshot(args: &SnapshotArgs, err: &mut dyn Write) -> Result<(), CliError> {
    check_output(Some(&args.output))?;
    let pid = match args.pid {
        Some(pid) => pid,
        None => target::the_only_one()?,
    };
    // The other command may be in another folder.
    let path = env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
    let line = ask_recorder(pid, &Ask::Snapshot(path.join(&args.output)))?;
    Ok(writeln!(err, "ccscope: {line}")?)
}

/// Asks the command that records a process; what it has done, or why not.
fn ask_recorder(pid: u32, what: &Ask) -> Result<String, String> {
    ask(pid, what).into_iter().next().unwrap_or_else(|| {
        Err(format!(
            "no ccscope of yours records process {pid}: start it by `ccscope run`, or `ccscope \
             attach {pid}`"
        ))
    })
}
