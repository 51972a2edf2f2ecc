//! How quiet the machine is: chases that should always take the same time, and what the system says
//! of other programs.
//!
//! A chase within the first-level cache notices clock changes and a shared processor, one of half
//! the second level the sibling thread, one of memory all other programs. Each is repeated before
//! and after everything else: the spread of the runs is the noise, the change of the median the
//! drift. `/proc/stat` has the time that a hypervisor gave to other guests, `/proc/loadavg` the
//! number of runnable programs. Either may be missing.

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
    /// Name and lines of each chase.
    chases: Vec<(&'static str, u64)>,
    before: Vec<Sample>,
    ticks: Option<Ticks>,
}

/// Runs of a chase.
struct Sample {
    median_ns: f64,
    /// The ninth decile over the first, less 1.
    spread: f64,
}

/// Time of all processors since the system started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ticks {
    all: u64,
    stolen: u64,
}

impl Listener {
    /// Takes the readings before.
    pub(super) fn start(
        chase: &mut Chase,
        memory: &PagedMemory,
        topology: &Topology,
        runs: u32,
    ) -> Listener {
        let mut chases = vec![("L1", FIRST_LEVEL_BYTES / LINE_BYTES)];
        if let Some(cache) = topology.data_caches().nth(1) {
            chases.push(("L2", (cache.size_bytes / 2 / LINE_BYTES).max(1)));
        }
        chases.push(("memory", lines_of(memory)));
        Listener {
            before: listen(&chases, chase, memory, runs),
            chases,
            ticks: proc_file("stat", ticks),
        }
    }

    /// Takes the readings after.
    pub(super) fn stop(self, chase: &mut Chase, memory: &PagedMemory, runs: u32) -> Quietness {
        let after = listen(&self.chases, chase, memory, runs);
        let readings = self.chases.iter().zip(self.before.iter().zip(after));
        let readings = readings.map(|(&(name, _), (before, after))| ChaseReading {
            name: name.to_owned(),
            before_ns: before.median_ns,
            after_ns: after.median_ns,
            spread: before.spread.max(after.spread),
        });
        let ticks = self.ticks.zip(proc_file("stat", ticks));
        Quietness::new(
            readings.collect(),
            ticks.and_then(|(before, after)| steal_share(before, after)),
            proc_file("loadavg", load_per_processor),
        )
    }
}

/// Runs each chase many times.
fn listen(
    chases: &[(&'static str, u64)],
    chase: &mut Chase,
    memory: &PagedMemory,
    runs: u32,
) -> Vec<Sample> {
    let words = memory.as_slice();
    let sample = |&(_, lines): &(_, u64)| {
        let lines = lines.min(lines_of(memory)).max(1);
        chase.run(words, lines, (2 * lines).min(100_000) as u32);
        let samples: Vec<f64> = { 0..RUNS * runs.max(1) }
            .map(|_| chase.run(words, lines, LOADS))
            .collect();
        let [low, median, high] = [0.1, 0.5, 0.9].map(|part| quantile(samples.clone(), part));
        Sample {
            median_ns: median,
            spread: if low > 0.0 { high / low - 1.0 } else { 0.0 },
        }
    };
    chases.iter().map(sample).collect()
}

/// What `parse` makes of a file of `/proc`.
fn proc_file<T>(name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    parse(&fs::read_to_string(format!("/proc/{name}")).ok()?)
}

/// All ticks and the stolen ones, from the first line of `/proc/stat`: user, nice, system, idle,
/// waiting for devices, two kinds of interrupts, stolen.
fn ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let numbers = line.split_ascii_whitespace().take(8);
    let ticks: Vec<u64> = numbers.map_while(|number| number.parse().ok()).collect();
    let all = { ticks.iter() }.try_fold(0u64, |sum, &ticks| sum.checked_add(ticks))?;
    let stolen = *ticks.get(7)?;
    Some(Ticks { all, stolen })
}

fn steal_share(before: Ticks, after: Ticks) -> Option<f64> {
    let all = after.all.checked_sub(before.all).filter(|&all| all > 0)?;
    Some(after.stolen.checked_sub(before.stolen)? as f64 / all as f64)
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
    use crate::machine::Verdict;

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let before = ticks("cpu  10 0 10 70 0 0 5 5 0 0\ncpu0 1\n").unwrap();
        let after = ticks("cpu  60 0 10 100 0 0 5 25 0 0\n").unwrap();
        assert_eq!(steal_share(before, after), Some(0.2));
        assert_eq!(steal_share(after, before), None, "clocks go forward");
        assert_eq!(steal_share(before, before), None);
        let other = "intr 1 2 3 4 5 6 7 8";
        for bad in ["", "cpu", "cpu  1 2 3", "cpu  1 2 3 4 5 6 7 x", other] {
            assert_eq!(ticks(bad), None, "{bad}");
        }
    }

    #[test]
    fn load_is_read_where_there_is_one() {
        let load = load_per_processor("0.50 0.40 0.30 1/80 1234\n");
        assert!(load.is_some_and(|load| load > 0.0 && load <= 0.5));
        for bad in ["", "x", "nan 1 1", "-1 0 0"] {
            assert_eq!(load_per_processor(bad), None, "{bad}");
        }
    }

    #[test]
    fn readings_give_a_verdict() {
        let reading = |spread, after_ns| ChaseReading {
            name: "L1".to_owned(),
            before_ns: 4.0,
            after_ns,
            spread,
        };
        for (readings, steal, load, expected) in [
            (vec![reading(0.05, 4.1)], None, None, Verdict::Quiet),
            (vec![reading(0.2, 4.1)], None, None, Verdict::Busy),
            // Drift up and down.
            (vec![reading(0.05, 5.0)], None, None, Verdict::Busy),
            (vec![reading(0.05, 2.0)], None, None, Verdict::Loud),
            (Vec::new(), Some(0.2), None, Verdict::Loud),
            (Vec::new(), Some(0.0), Some(1.0), Verdict::Busy),
        ] {
            assert_eq!(Quietness::new(readings, steal, load).verdict, expected);
        }
        let heard = Quietness::new(vec![reading(0.2, 4.0)], Some(0.01), Some(0.5));
        assert_eq!(
            heard.to_string(),
            "busy: L1 spread 20 % drift 0 %, stolen time 1.0 %, load 0.50 a processor"
        );
    }

    #[test]
    fn listening_reads_every_chase() {
        let memory = PagedMemory::new(1 << 18, PageSize::Small4K).unwrap();
        let mut chase = Chase { state: 1 };
        let listener = Listener::start(&mut chase, &memory, &Topology::this(), 1);
        let heard = listener.stop(&mut chase, &memory, 1);
        assert!(heard.readings.len() >= 2);
        for reading in &heard.readings {
            assert!(reading.before_ns > 0.0 && reading.spread >= 0.0);
        }
    }
}
