//! `ccscope top`: the allocation sites of a program that runs, in the terminal.
//!
//! A thread makes profiles of copies of the capture, one after the other, with the symbols that it
//! has read before; the other draws the newest and takes keys. A process that nobody records is
//! attached to by a third, which detaches in the end, however that comes.

mod draw;
mod record;
mod state;

use std::fs::{self, File};
use std::io::{IsTerminal, stdout};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

use super::super::socket::{Ask, ask};
use super::super::{CliError, fail, process, show, signals};
use super::target;
use crate::capture::sites_and_numbers;
use crate::capture_format::{self, Header, layout};
use crate::profile::Run;
use crate::symbols::Symbols;
use draw::{Look, draw};
use record::Attached;
use state::{Next, Picture, Sort, State};

/// Between pictures.
const INTERVAL: Duration = Duration::from_secs(1);
/// Making pictures takes one part of so many of a processor at most.
const PARTS: u32 = 4;
/// A key or a signal is seen within this.
const LISTEN_INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
A program that is not recorded is attached to, as by `ccscope attach`, and detached from at the end.

Examples:
  ccscope top 1234
  ccscope top --sort growth          the one program under `ccscope run` or `ccscope attach`")]
pub(in super::super) struct TopArgs {
    /// The process; not needed if one program is recorded
    #[arg(value_name = "PID")]
    pid: Option<u32>,
    /// Order of sites at first
    #[arg(long, value_enum, value_name = "KEY", default_value = "live")]
    sort: Sort,
    /// Attach also if a filter of system calls might end the process for loading a library
    #[arg(long)]
    despite_seccomp: bool,
}

/// Shows a process until the user quits.
pub(in super::super) fn run(args: &TopArgs) -> Result<(), CliError> {
    if !stdout().is_terminal() {
        return fail("`ccscope top` needs a terminal: see `ccscope snapshot` for a file");
    }
    let pid = args.pid.map_or_else(target::the_only_one, Ok)?;
    signals::outlive();
    let (capture, attached) = match ask(pid, &Ask::Capture).into_iter().next() {
        Some(Ok(name)) => {
            let opened = File::open(name);
            (
                opened.map_err(|error| format!("the capture of process {pid}: {error}"))?,
                None,
            )
        }
        Some(Err(why)) => return fail(why),
        None => {
            let (attached, capture) = Attached::new(pid, args.despite_seccomp)?;
            (capture, Some(attached))
        }
    };
    let watched = ratatui::try_init()
        .map_err(CliError::from)
        .and_then(|mut terminal| watch(&mut terminal, pid, capture, args.sort, attached.as_ref()));
    ratatui::restore();
    let detached = attached.map_or(Ok(()), Attached::end);
    watched.and(detached)
}

/// Draws and takes keys until the user or a signal ends it.
fn watch(
    terminal: &mut DefaultTerminal,
    pid: u32,
    capture: File,
    sort: Sort,
    attached: Option<&Attached>,
) -> Result<(), CliError> {
    let started = Instant::now();
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let mut look = Look {
        title: format!("{} ({pid})", name.trim_end()),
        now: Duration::ZERO,
        options: show::options_for(stdout()),
    };
    look.options.colour = false;
    let mut state = State::new(sort);
    let mut pictures = Pictures::begin(capture, started)?;
    let mut is_drawn = false;
    while !signals::is_interrupted() {
        // The age of the picture, at least, is another.
        if !is_drawn || started.elapsed() > look.now + INTERVAL {
            look.now = started.elapsed();
            let mut last_line = 0;
            terminal.draw(|frame| last_line = draw(frame, &state, &look))?;
            state.last_line = last_line;
        }
        is_drawn = !event::poll(LISTEN_INTERVAL)?;
        if !is_drawn
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && state.key(key) == Next::Quit
        {
            break;
        }
        if pictures.take(&mut state)? {
            is_drawn = false;
        }
        if pictures.is_due() {
            let end = end_of(pid, attached);
            pictures.ask(end.is_none() && !state.is_paused)?;
            if end.is_some() {
                state.problem = end;
            }
        }
    }
    Ok(())
}

/// Pictures as another thread makes them.
struct Pictures {
    asks: Sender<()>,
    made: Receiver<Result<Picture, String>>,
    /// `None` while one is being made.
    next: Option<Instant>,
}

impl Pictures {
    fn begin(capture: File, started: Instant) -> Result<Pictures, CliError> {
        let (asks, asked) = channel();
        let (sends, made) = channel();
        // It ends when `asks` is dropped, or with the process.
        thread::spawn(move || take_pictures(&capture, started, &asked, &sends));
        asks.send(())?;
        Ok(Pictures {
            asks,
            made,
            next: None,
        })
    }

    /// Whether one has come; `state` has it then.
    fn take(&mut self, state: &mut State) -> Result<bool, CliError> {
        match self.made.try_recv() {
            Ok(Ok(picture)) => state.take(picture),
            Ok(Err(why)) => state.problem = Some(why),
            Err(TryRecvError::Empty) => return Ok(false),
            Err(TryRecvError::Disconnected) => return fail("no more profiles can be made"),
        }
        self.next = Some(Instant::now() + INTERVAL.max(state.picture.took * (PARTS - 1)));
        Ok(true)
    }

    fn is_due(&self) -> bool {
        self.next.is_some_and(|next| Instant::now() >= next)
    }

    /// Asks for the next, if one is wanted.
    fn ask(&mut self, is_wanted: bool) -> Result<(), CliError> {
        self.next = (!is_wanted).then(|| Instant::now() + INTERVAL);
        match is_wanted {
            true => Ok(self.asks.send(())?),
            false => Ok(()),
        }
    }
}

/// Why there will be no newer picture.
fn end_of(pid: u32, attached: Option<&Attached>) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    if state.is_none_or(|state| state.starts_with(['Z', 'X'])) {
        return Some(format!("process {pid} has ended"));
    }
    let is_over = attached.is_some_and(Attached::is_over);
    is_over.then(|| format!("process {pid} is no longer recorded"))
}

/// Makes a picture for each that is asked for.
fn take_pictures(
    capture: &File,
    started: Instant,
    asked: &Receiver<()>,
    sends: &Sender<Result<Picture, String>>,
) {
    let mut symbols = Symbols::default();
    while asked.recv().is_ok() {
        let at = started.elapsed();
        let picture = picture(capture, &mut symbols, at).map(|picture| Picture {
            took: started.elapsed().saturating_sub(at),
            ..picture
        });
        if sends
            .send(picture.map_err(|error| error.to_string()))
            .is_err()
        {
            return;
        }
    }
}

fn picture(capture: &File, symbols: &mut Symbols, at: Duration) -> Result<Picture, CliError> {
    let mapped = process::map(capture.try_clone()?);
    let (bytes, data) = mapped.map_err(|error| format!("the capture cannot be read: {error}"))?;
    let header = capture_format::read::<Header>(&bytes, layout::HEADER);
    let start_ns = header.map_or(0, |header| header.start_ns);
    let run = Run {
        seconds: process::nanoseconds_now().saturating_sub(start_ns) as f64 / 1e9,
        ..Run::default()
    };
    let (profile, numbers) = sites_and_numbers(&bytes, &data, run, symbols)?;
    Ok(Picture {
        profile,
        numbers,
        at,
        ..Picture::default()
    })
}

#[cfg(test)]
mod tests;
