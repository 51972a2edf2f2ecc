//! How quiet the machine is: chases that should always take the same time, and what the system says
//! of other programs.
//!
//! A chase within the first-level cache notices clock changes and a shared processor, one of half
//! the second level the sibling thread, one of memory all other programs. Each is repeated before
//! and after everything else: the spread of the runs is the noise, the change of the median the
//! drift. The system adds stolen time and runnable programs, where it knows them.

use std::fs;

use super::{Chase, LINE_BYTES, lines_of, quantile};
use crate::PagedMemory;
use crate::machine::{ChaseReading, Quietness};
use crate::topology::Topology;

/// Loads of a run: about a hundred microseconds of memory, much shorter than a scheduler's slice.
const LOADS: u32 = 1000;
/// Runs for each timed run of other measurements.
const RUNS: u32 = 8;
/// Chased in the first-level cache.
const FIRST_LEVEL_BYTES: u64 = 16 << 10;

/// The readings before a measurement.
pub(super) struct Listener {
    /// How many lines each chase has, and what it took.
    chases: Vec<(u64, ChaseReading)>,
    ticks: Option<[u64; 2]>,
}

impl Listener {
    /// Takes the readings before.
    pub(super) fn start(
        chase: &mut Chase,
        memory: &PagedMemory,
        topology: &Topology,
        runs: u32,
    ) -> Listener {
        let second = topology.data_caches().nth(1);
        let chases = [
            ("L1", Some(FIRST_LEVEL_BYTES / LINE_BYTES)),
            (
                "L2",
                second.map(|cache| (cache.size_bytes / 2 / LINE_BYTES).max(1)),
            ),
            ("memory", Some(lines_of(memory))),
        ];
        let mut read = |(name, lines): (&str, Option<u64>)| {
            let (before_ns, spread) = listen(lines?, chase, memory, runs);
            let reading = ChaseReading {
                name: name.to_owned(),
                before_ns,
                after_ns: 0.0,
                spread,
            };
            Some((lines?, reading))
        };
        Listener {
            chases: chases.into_iter().filter_map(&mut read).collect(),
            ticks: proc_file("stat", ticks),
        }
    }

    /// Takes the readings after.
    pub(super) fn stop(mut self, chase: &mut Chase, memory: &PagedMemory, runs: u32) -> Quietness {
        for (lines, reading) in &mut self.chases {
            let (after_ns, spread) = listen(*lines, chase, memory, runs);
            reading.after_ns = after_ns;
            reading.spread = reading.spread.max(spread);
        }
        let ticks = self.ticks.zip(proc_file("stat", ticks));
        Quietness::new(
            self.chases
                .into_iter()
                .map(|(_, reading)| reading)
                .collect(),
            ticks.and_then(|(before, after)| steal_share(before, after)),
            proc_file("loadavg", load_per_processor),
        )
    }
}

/// Runs a chase many times: the median, and the ninth decile over the first, less 1.
fn listen(lines: u64, chase: &mut Chase, memory: &PagedMemory, runs: u32) -> (f64, f64) {
    let (words, lines) = (memory.as_slice(), lines.min(lines_of(memory)).max(1));
    chase.run(words, lines, (2 * lines).min(100_000) as u32);
    let run = |_| chase.run(words, lines, LOADS);
    let samples: Vec<f64> = (0..RUNS * runs.max(1)).map(run).collect();
    let [low, median, high] = [0.1, 0.5, 0.9].map(|part| quantile(samples.clone(), part));
    (median, if low > 0.0 { high / low - 1.0 } else { 0.0 })
}

/// What `parse` makes of a file of `/proc`.
fn proc_file<T>(name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    parse(&fs::read_to_string(format!("/proc/{name}")).ok()?)
}

/// Time of all processors since the start, in all and stolen, from `/proc/stat`: user, nice,
/// system, idle, waiting for devices, two kinds of interrupts, stolen.
fn ticks(stat: &str) -> Option<[u64; 2]> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers = line.split_ascii_whitespace().take(8);
    let ticks: Vec<u64> = numbers.map_while(|number| number.parse().ok()).collect();
    Some([
        ticks.iter().copied().fold(0, u64::saturating_add),
        *ticks.get(7)?,
    ])
}

fn steal_share(before: [u64; 2], after: [u64; 2]) -> Option<f64> {
    let all = after[0].checked_sub(before[0]).filter(|&all| all > 0)?;
    Some(after[1].checked_sub(before[1])? as f64 / all as f64)
}

/// The load of the last minute over the number of processors.
fn load_per_processor(loadavg: &str) -> Option<f64> {
    let load: f64 = loadavg.split_ascii_whitespace().next()?.parse().ok()?;
    let processors = std::thread::available_parallelism().ok()?.get();
    (load.is_finite() && load >= 0.0).then(|| load / processors as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageSize;

    #[test]
    fn what_the_system_says_is_read_or_left_out() {
        let before = ticks("cpu  10 0 10 70 0 0 5 5 0 0\ncpu0 1\n").unwrap();
        let after = ticks("cpu  60 0 10 100 0 0 5 25 0 0\n").unwrap();
        assert_eq!(steal_share(before, after), Some(0.2));
        assert_eq!(steal_share(after, before), None, "clocks go forward");
        assert_eq!(steal_share(before, before), None);
        let other = "intr 1 2 3 4 5 6 7 8";
        for bad in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x", other] {
            assert_eq!(ticks(bad), None, "{bad}");
        }
        let load = load_per_processor("0.50 0.40 0.30 1/80 1234\n");
        assert!(load.is_some_and(|load| load > 0.0 && load <= 0.5));
        for bad in ["", "x", "nan 1 1", "-1 0 0"] {
            assert_eq!(load_per_processor(bad), None, "{bad}");
        }
    }

    #[test]
    fn listening_reads_every_chase() {
        let memory = PagedMemory::new(1 << 18, PageSize::Small4K).unwrap();
        let mut chase = Chase { state: 1 };
        let listener = Listener::start(&mut chase, &memory, &Topology::this(), 1);
        let heard = listener.stop(&mut chase, &memory, 1);
        assert!(heard.readings.len() >= 2);
        for reading in &heard.readings {
            assert!(reading.before_ns > 0.0 && reading.after_ns > 0.0 && reading.spread >= 0.0);
        }
    }
}
