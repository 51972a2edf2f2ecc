//! Hardware counters around a closure: cycles, instructions and misses as the processor counts
//! them.
//!
//! Most virtual machines have no counters, and systems may forbid them
//! (`/proc/sys/kernel/perf_event_paranoid`). Then [`Counters::new`] returns an error of one line.
//!
//! Only this thread's own instructions are counted, not the kernel's. Processors count few events
//! at once, so the events form two groups. Where the kernel still has to take turns, counts are
//! scaled up by the share of the time that they ran.
//!
//! ```
//! use ccmodel::counters::{Counters, Event};
//!
//! match Counters::new() {
//!     Ok(mut counters) => {
//!         let (sum, counts) = counters.around(|| (0..1000u64).sum::<u64>())?;
//!         assert_eq!(sum, 499_500);
//!         assert!(counts.get(Event::Instructions).is_none_or(|count| count > 0.0));
//!     }
//!     Err(error) => println!("{error}"),
//! }
//! # Ok::<(), ccmodel::Error>(())
//! ```

use std::fmt;
use std::io;

use crate::Error;

#[cfg(all(target_os = "linux", feature = "counters"))]
#[path = "counters/perf.rs"]
mod system;

#[cfg(not(all(target_os = "linux", feature = "counters")))]
mod system {
    use std::io;

    use super::{Counts, Event};

    pub(super) enum Groups {}

    impl Groups {
        pub(super) fn open() -> io::Result<Groups> {
            let what = "they need Linux and the feature `counters`";
            Err(io::Error::new(io::ErrorKind::Unsupported, what))
        }

        pub(super) fn events(&self) -> impl Iterator<Item = Event> {
            std::iter::empty()
        }

        pub(super) fn around<R>(&mut self, _: impl FnOnce() -> R) -> io::Result<(R, Counts)> {
            match *self {}
        }
    }
}

/// What can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Cycles in which the processor was not halted.
    Cycles,
    /// Instructions that were retired.
    Instructions,
    /// Loads that the first-level data cache did not serve.
    L1dMisses,
    /// Loads that no cache served.
    LlcMisses,
    /// Loads that missed the first-level data TLB, or on some processors loads that walked the
    /// page table.
    DtlbMisses,
}

impl Event {
    /// All events.
    pub const ALL: [Event; 5] = [
        Event::Cycles,
        Event::Instructions,
        Event::L1dMisses,
        Event::LlcMisses,
        Event::DtlbMisses,
    ];

    /// A short name, as in reports.
    pub fn name(self) -> &'static str {
        match self {
            Event::Cycles => "cycles",
            Event::Instructions => "instructions",
            Event::L1dMisses => "L1d misses",
            Event::LlcMisses => "LLC misses",
            Event::DtlbMisses => "dTLB misses",
        }
    }
}

/// Counters of this thread, opened and stopped.
pub struct Counters(system::Groups);

impl Counters {
    /// Opens a counter for each of [`Event::ALL`] that the machine has.
    ///
    /// # Errors
    /// When it has none of them, the system forbids them, or this was built
    /// without the feature `counters` or for another system than Linux.
    pub fn new() -> Result<Counters, Error> {
        let groups = system::Groups::open().map_err(refused)?;
        Ok(Counters(groups))
    }

    /// The events that are counted; the machine does not have the others.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.0.events()
    }

    /// Counts while `f` runs. Costs a few system calls, some microseconds.
    ///
    /// # Errors
    /// When the counters cannot be started or read; `f` has then run, unless they
    /// could not be started.
    pub fn around<R>(&mut self, f: impl FnOnce() -> R) -> Result<(R, Counts), Error> {
        self.0.around(f).map_err(refused)
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.events()).finish()
    }
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts([Option<f64>; Event::ALL.len()]);

impl Counts {
    /// How often the event happened; `None` when the machine does not count it or never had a turn
    /// for it.
    pub fn get(&self, event: Event) -> Option<f64> {
        self.0[event as usize]
    }
}

/// Why nothing can be counted.
fn refused(error: io::Error) -> Error {
    Error::new(match error.kind() {
        io::ErrorKind::NotFound => "this machine has no hardware counters".to_owned(),
        io::ErrorKind::PermissionDenied => {
            let settings = "/proc/sys/kernel/perf_event_paranoid";
            format!("the system forbids hardware counters (see {settings})")
        }
        _ => format!("no hardware counters: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_there_or_one_line_says_why_not() {
        match Counters::new() {
            Ok(mut counters) => {
                assert!(counters.events().count() > 0);
                let (result, counts) = counters.around(|| 7).unwrap();
                assert_eq!(result, 7);
                for event in counters.events() {
                    assert!(counts.get(event).is_none_or(f64::is_finite), "{event:?}");
                }
            }
            Err(error) => {
                let line = error.to_string();
                assert!(!line.is_empty() && !line.contains('\n'), "{line}");
            }
        }
    }
}
