//! How far a long run is, on standard error where that is a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::process::{Overhead, Process};
use crate::analyses::units::{bytes, plural, short_count};
use crate::capture_format::Header;

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
        self.say(|| {
            let header = process.header()?;
            Some(message(&header, &process.overhead(&header)))
        });
    }

    /// Shows a message, which is made only if it is time for one.
    pub(super) fn say(&mut self, message: impl FnOnce() -> Option<String>) {
        let now = Instant::now();
        if self.bar.is_hidden() || now < self.next {
            return;
        }
        let Some(message) = message() else {
            return;
        };
        self.next = now + INTERVAL;
        self.bar.set_message(message);
        self.bar.tick();
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

fn message(header: &Header, overhead: &Overhead) -> String {
    let time = overhead.time.map_or_else(String::new, |part| {
        format!("at least {:.0} % of its time and ", part.min(0.99) * 100.0)
    });
    format!(
        "{} live, {}; profiler: {time}{}; {} events",
        bytes(header.total.live_bytes),
        plural(header.sites, "site"),
        bytes(overhead.bytes),
        short_count(header.events)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_program_and_the_profiler() {
        let zeros = [0; size_of::<Header>()];
        let mut header = crate::capture_format::read::<Header>(&zeros, 0).unwrap();
        (header.sites, header.events) = (2, 5000);
        header.total.live_bytes = 3_000_000;
        let mut overhead = Overhead {
            time: None,
            bytes: 8_000_000,
        };
        assert_eq!(
            message(&header, &overhead),
            "3.00 MB live, 2 sites; profiler: 8.00 MB; 5,000 events"
        );
        // More than all of it is an estimate that was too high.
        for (part, percent) in [(0.4, 40), (1.7, 99)] {
            overhead.time = Some(part);
            let expected = format!("profiler: at least {percent} % of its time and 8.00 MB;");
            assert!(message(&header, &overhead).contains(&expected));
        }
    }
}
