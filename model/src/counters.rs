//! Hardware counters around a closure: what the processor itself says of misses, cycles and
//! instructions.
//!
//! Predictions of misses can be held against these where there are any. Virtual machines mostly
//! have none, and systems may forbid them (`/proc/sys/kernel/perf_event_paranoid`); then
//! [`Counters::new`] gives an error of one line, and whoever wanted to count says so and goes on.
//!
//! Processors count few events at once, so that the events come in two groups of at most three; the
//! kernel takes turns where even that is too much, and counts are scaled up by the time that they
//! ran. Only the program's own instructions on this thread are counted, not the kernel's.
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
//! # Ok::<(), ccmodel::counters::CountersError>(())
//! ```

use std::fmt;
use std::io;

use crate::sys::EventGroup;

/// What can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// Cycles in which the processor was not halted.
    Cycles,
    /// Instructions that took effect.
    Instructions,
    /// Loads that the first-level data cache did not serve.
    L1dMisses,
    /// Loads that no cache served.
    LlcMisses,
    /// Loads whose page the first-level TLB for data did not have, or on some processors those that
    /// walked the page table.
    DtlbMisses,
}

impl Event {
    /// All of them.
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

    /// Place in [`Event::ALL`].
    fn index(self) -> usize {
        self as usize
    }
}

/// Events that are counted at once.
const GROUPS: [&[Event]; 2] = [
    &[Event::Cycles, Event::Instructions, Event::L1dMisses],
    &[Event::LlcMisses, Event::DtlbMisses],
];

/// Counters of this thread, opened and stopped.
#[derive(Debug)]
pub struct Counters {
    groups: Vec<EventGroup>,
}

impl Counters {
    /// Opens what the machine has of [`Event::ALL`].
    ///
    /// # Errors
    /// [`CountersError`] when it has none of them, the system forbids them, or this was built
    /// without the feature `counters` or for another system than Linux.
    pub fn new() -> Result<Counters, CountersError> {
        let mut groups = Vec::new();
        let mut first_error = None;
        for events in GROUPS {
            match EventGroup::open(events) {
                Ok(group) => groups.push(group),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if groups.is_empty() => Err(CountersError { error }),
            _ => Ok(Counters { groups }),
        }
    }

    /// The events that are counted; the machine does not have the others.
    pub fn events(&self) -> impl Iterator<Item = Event> {
        self.groups.iter().flat_map(|group| group.events())
    }

    /// Counts while `f` runs. Costs a few system calls, some microseconds.
    ///
    /// # Errors
    /// [`CountersError`] when the counters cannot be started or read; `f` has then run, unless they
    /// could not be started.
    pub fn around<R>(&mut self, f: impl FnOnce() -> R) -> Result<(R, Counts), CountersError> {
        for group in &mut self.groups {
            group.start()?;
        }
        let result = f();
        let mut counts = Counts {
            values: [None; Event::ALL.len()],
            running_share: 1.0,
        };
        // All stop before any is read.
        for group in &mut self.groups {
            group.stop()?;
        }
        for group in &mut self.groups {
            let reading = group.read()?;
            let share = reading.running_share();
            counts.running_share = counts.running_share.min(share);
            for (event, count) in reading.counts {
                // What never ran says nothing.
                counts.values[event.index()] = (share > 0.0).then(|| count as f64 / share);
            }
        }
        Ok((result, counts))
    }
}

/// What was counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    values: [Option<f64>; Event::ALL.len()],
    running_share: f64,
}

impl Counts {
    /// How often it happened; `None` when the machine does not count it or had no turn for it.
    pub fn get(&self, event: Event) -> Option<f64> {
        self.values[event.index()]
    }

    /// The part of the time in which the counters ran that had least of it; counts are scaled up by
    /// it.
    pub fn running_share(&self) -> f64 {
        self.running_share
    }
}

/// The counts of a group, and for how long it was wanted and ran.
#[derive(Debug)]
pub(crate) struct GroupReading {
    pub(crate) counts: Vec<(Event, u64)>,
    pub(crate) enabled_ns: u64,
    pub(crate) running_ns: u64,
}

impl GroupReading {
    fn running_share(&self) -> f64 {
        if self.enabled_ns == 0 {
            0.0
        } else {
            (self.running_ns as f64 / self.enabled_ns as f64).min(1.0)
        }
    }
}

/// Why nothing can be counted, in one line.
#[derive(Debug)]
pub struct CountersError {
    error: io::Error,
}

impl From<io::Error> for CountersError {
    fn from(error: io::Error) -> CountersError {
        CountersError { error }
    }
}

impl fmt::Display for CountersError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.error.kind() {
            io::ErrorKind::NotFound => f.write_str("this machine has no hardware counters"),
            io::ErrorKind::PermissionDenied => f.write_str(
                "the system forbids hardware counters (see /proc/sys/kernel/perf_event_paranoid)",
            ),
            _ => write!(f, "no hardware counters: {}", self.error),
        }
    }
}

impl std::error::Error for CountersError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_in_their_places() {
        for (i, event) in Event::ALL.into_iter().enumerate() {
            assert_eq!(event.index(), i);
        }
        let grouped: Vec<Event> = GROUPS.concat();
        assert_eq!(grouped, Event::ALL);
    }

    #[test]
    fn counts_are_there_or_one_line_says_why_not() {
        match Counters::new() {
            Ok(mut counters) => {
                assert!(counters.events().count() > 0);
                let (result, counts) = counters.around(|| 7).unwrap();
                assert_eq!(result, 7);
                for event in counters.events() {
                    assert!(
                        counts.get(event).is_none_or(f64::is_finite),
                        "{}",
                        event.name()
                    );
                }
                assert!((0.0..=1.0).contains(&counts.running_share()));
            }
            Err(error) => {
                let line = error.to_string();
                assert!(!line.is_empty() && !line.contains('\n'), "{line}");
            }
        }
    }

    #[test]
    fn what_ran_half_of_the_time_counts_twice() {
        let reading = |enabled_ns, running_ns| GroupReading {
            counts: Vec::new(),
            enabled_ns,
            running_ns,
        };
        assert!((reading(100, 50).running_share() - 0.5).abs() < 1e-12);
        assert!((reading(100, 200).running_share() - 1.0).abs() < 1e-12);
        assert!(reading(0, 0).running_share().abs() < 1e-12);
    }
}
