//! Counters of Linux's `perf_event_open`.

use std::fmt;
use std::io;

use perf_event::events::{Cache, CacheOp, CacheResult, Hardware, WhichCache};
use perf_event::{Builder, Counter, Group};

use super::{Event, GroupReading};

/// Events that are counted together.
pub(super) struct EventGroup {
    group: Group,
    counters: Vec<(Event, Counter)>,
    /// Nanoseconds enabled and running before the last start: a reset keeps the times.
    before: (u64, u64),
}

impl EventGroup {
    /// Opens the events that the machine has, for this thread, stopped.
    ///
    /// # Errors
    /// That of the first event when there are none: `NotFound` where the machine has no counters.
    pub(super) fn open(events: &[Event]) -> io::Result<EventGroup> {
        let mut group = Group::new()?;
        let mut counters = Vec::new();
        let mut first_error = None;
        for &event in events {
            match open(event, &mut group) {
                Ok(counter) => counters.push((event, counter)),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if counters.is_empty() => Err(error),
            _ => Ok(EventGroup {
                group,
                counters,
                before: (0, 0),
            }),
        }
    }

    pub(super) fn events(&self) -> impl Iterator<Item = Event> {
        self.counters.iter().map(|&(event, _)| event)
    }

    /// Starts counting from 0.
    pub(super) fn start(&mut self) -> io::Result<()> {
        self.group.reset()?;
        let counts = self.group.read()?;
        self.before = (counts.time_enabled(), counts.time_running());
        self.group.enable()
    }

    pub(super) fn stop(&mut self) -> io::Result<()> {
        self.group.disable()
    }

    /// What was counted between `start` and `stop`.
    pub(super) fn read(&mut self) -> io::Result<GroupReading> {
        let counts = self.group.read()?;
        let counters = self.counters.iter();
        Ok(GroupReading {
            counts: counters
                .filter_map(|(event, counter)| Some((*event, *counts.get(counter)?)))
                .collect(),
            enabled_ns: counts.time_enabled().saturating_sub(self.before.0),
            running_ns: counts.time_running().saturating_sub(self.before.1),
        })
    }
}

/// One event of this thread. `Builder` leaves the kernel out by default.
fn open(event: Event, group: &mut Group) -> io::Result<Counter> {
    let builder = Builder::new().group(group);
    let misses = |which| Cache {
        which,
        operation: CacheOp::READ,
        result: CacheResult::MISS,
    };
    match event {
        Event::Cycles => builder.kind(Hardware::CPU_CYCLES),
        Event::Instructions => builder.kind(Hardware::INSTRUCTIONS),
        Event::L1dMisses => builder.kind(misses(WhichCache::L1D)),
        Event::LlcMisses => builder.kind(misses(WhichCache::LL)),
        Event::DtlbMisses => builder.kind(misses(WhichCache::DTLB)),
    }
    .build()
}

impl fmt::Debug for EventGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.events()).finish()
    }
}
