//! How far a long run is, on standard error where that is a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::process::Process;
use crate::analyses::units::{bytes, plural, short_count};

/// Shorter runs get no line.
const QUIET_TIME: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    next: Instant,
}

impl Progress {
    pub(super) fn new(is_quiet: bool) -> Progress {
        let bar = if is_quiet {
            ProgressBar::hidden()
        } else {
            ProgressBar::no_length()
        };
        let bar = match ProgressStyle::with_template("ccscope: {elapsed}, {msg}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Progress {
            bar,
            next: Instant::now() + QUIET_TIME,
        }
    }

    pub(super) fn show(&mut self, process: &Process) {
        let now = Instant::now();
        let Some(header) = process.header().filter(|_| now >= self.next) else {
            return;
        };
        self.next = now + INTERVAL;
        let overhead = process.overhead(&header);
        let time = overhead.time.map_or_else(String::new, |part| {
            format!("at least {:.0} % of its time and ", part.min(0.99) * 100.0)
        });
        self.bar.set_message(format!(
            "{} live, {}; profiler: {time}{}; {} events",
            bytes(header.total.live_bytes),
            plural(header.sites, "site"),
            bytes(overhead.bytes),
            short_count(header.events)
        ));
        self.bar.tick();
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
