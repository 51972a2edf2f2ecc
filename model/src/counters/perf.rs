//! Counters of Linux's `perf_event_open`.

use std::io;

use perf_event::events::{Cache, CacheOp, CacheResult, Hardware, WhichCache};
use perf_event::{Builder, Counter, Group};

use super::{Counts, Event};

/// Events that are counted together, and their groups; at least one.
pub(super) struct Groups(Vec<(Group, Vec<(Event, Counter)>)>);

impl Groups {
    /// Opens the events that the machine has, for this thread, stopped.
    ///
    /// # Errors
    /// That of the first event when there are none: `NotFound` where the machine has no counters.
    pub(super) fn open() -> io::Result<Groups> {
        let (first, second) = Event::ALL.split_at(3);
        let (mut groups, mut first_error) = (Vec::new(), None);
        for events in [first, second] {
            let opened = Group::new().map(|mut group| {
                let open = |&event| match open_event(event, &mut group) {
                    Ok(counter) => Some((event, counter)),
                    Err(error) => {
                        first_error.get_or_insert(error);
                        None
                    }
                };
                let counters: Vec<_> = events.iter().filter_map(open).collect();
                (group, counters)
            });
            match opened {
                Ok(opened) if opened.1.is_empty() => {}
                Ok(opened) => groups.push(opened),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if groups.is_empty() => Err(error),
            _ => Ok(Groups(groups)),
        }
    }

    pub(super) fn events(&self) -> impl Iterator<Item = Event> {
        let counters = self.0.iter().flat_map(|(_, counters)| counters);
        counters.map(|&(event, _)| event)
    }

    /// Counts while `f` runs.
    pub(super) fn around<R>(&mut self, f: impl FnOnce() -> R) -> io::Result<(R, Counts)> {
        // Nanoseconds enabled and running so far, which a reset keeps.
        let mut before = Vec::new();
        for (group, _) in &mut self.0 {
            group.reset()?;
            let counts = group.read()?;
            before.push((counts.time_enabled(), counts.time_running()));
            group.enable()?;
        }
        let result = f();
        // All stop before any is read.
        for (group, _) in &mut self.0 {
            group.disable()?;
        }
        let mut values = Counts::default();
        for ((group, counters), (enabled_ns, running_ns)) in self.0.iter_mut().zip(before) {
            let counts = group.read()?;
            let enabled_ns = counts.time_enabled().saturating_sub(enabled_ns);
            let running_ns = counts.time_running().saturating_sub(running_ns);
            for (event, counter) in counters {
                let count = counts.get(counter).copied();
                let scaled = count.and_then(|count| scaled(count, enabled_ns, running_ns));
                values.0[*event as usize] = scaled;
            }
        }
        Ok((result, values))
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

/// A count over the share of the time that its counter ran; `None` when it never ran.
fn scaled(count: u64, enabled_ns: u64, running_ns: u64) -> Option<f64> {
    let share = (running_ns as f64 / enabled_ns.max(1) as f64).min(1.0);
    (share > 0.0).then(|| count as f64 / share)
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
