//! Counters of Linux's `perf_event_open`.

use std::fmt;
use std::io;

use perf_event::events::{Cache, CacheOp, CacheResult, Hardware, WhichCache};
use perf_event::{Builder, Counter, Group};

use super::{Counts, Event};

/// Events that are counted together.
struct EventGroup {
    group: Group,
    counters: Vec<(Event, Counter)>,
    /// Nanoseconds enabled and running before the last start: a reset keeps the times.
    before: (u64, u64),
}

/// Groups of at least one event.
pub(super) struct Groups(Vec<EventGroup>);

/// Opens the events that the machine has, for this thread, stopped.
///
/// # Errors
/// That of the first event when there are none: `NotFound` where the machine has no counters.
pub(super) fn open() -> io::Result<(Groups, Vec<Event>)> {
    let (first, second) = Event::ALL.split_at(3);
    let (mut groups, mut opened) = (Vec::new(), Vec::new());
    let mut first_error = None;
    for events in [first, second] {
        let mut group = match Group::new() {
            Ok(group) => group,
            Err(error) => {
                first_error.get_or_insert(error);
                continue;
            }
        };
        let mut counters = Vec::new();
        for &event in events {
            match open_event(event, &mut group) {
                Ok(counter) => {
                    counters.push((event, counter));
                    opened.push(event);
                }
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        if !counters.is_empty() {
            groups.push(EventGroup {
                group,
                counters,
                before: (0, 0),
            });
        }
    }
    match first_error {
        Some(error) if groups.is_empty() => Err(error),
        _ => Ok((Groups(groups), opened)),
    }
}

/// One event of this thread. `Builder` leaves the kernel out by default.
fn open_event(event: Event, group: &mut Group) -> io::Result<Counter> {
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

/// Counts while `f` runs.
pub(super) fn around<R>(
    Groups(groups): &mut Groups,
    f: impl FnOnce() -> R,
) -> io::Result<(R, Counts)> {
    for group in groups.iter_mut() {
        group.group.reset()?;
        let counts = group.group.read()?;
        group.before = (counts.time_enabled(), counts.time_running());
        group.group.enable()?;
    }
    let result = f();
    // All stop before any is read.
    for group in groups.iter_mut() {
        group.group.disable()?;
    }
    let mut values = Counts::default();
    for group in groups.iter_mut() {
        let counts = group.group.read()?;
        let enabled_ns = counts.time_enabled().saturating_sub(group.before.0);
        let running_ns = counts.time_running().saturating_sub(group.before.1);
        for (event, counter) in &group.counters {
            let count = counts.get(counter).copied();
            let scaled = count.and_then(|count| scaled(count, enabled_ns, running_ns));
            values.0[*event as usize] = scaled;
        }
    }
    Ok((result, values))
}

/// A count over the share of the time that its counter ran; `None` when it never ran.
fn scaled(count: u64, enabled_ns: u64, running_ns: u64) -> Option<f64> {
    let share = (running_ns as f64 / enabled_ns.max(1) as f64).min(1.0);
    (share > 0.0).then(|| count as f64 / share)
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Groups").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn counts_are_scaled_up_by_the_share_of_the_time() {
        assert_eq!(scaled(10, 100, 50), Some(20.0));
        assert_eq!(scaled(10, 100, 200), Some(10.0));
        assert_eq!(scaled(10, 0, 0), None);
    }
}
