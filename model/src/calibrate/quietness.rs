//! How quiet the machine is: chases that should always take the same time, and what the system says
//! of other programs.
//!
//! A chase within the first-level cache notices clock changes and a shared processor, one of half
//! the second level the sibling thread, one of memory all other programs. Each is repeated before
//! and after everything else: the spread of the runs is the noise, the change of the median the
//! drift. `/proc/stat` has the time that a hypervisor gave to other guests, `/proc/loadavg` the
//! number of runnable programs. Either may be missing.

use std::fs;
use std::path::Path;

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
    chases: Vec<(&'static str, u64)>,
    before: Vec<Sample>,
    times: Option<Times>,
}

/// Median of some runs, and their spread.
#[derive(Clone, Copy, Debug)]
struct Sample {
    median_ns: f64,
    spread: f64,
}

impl Listener {
    /// Takes the readings before.
    pub(super) fn start(
        chase: &mut Chase,
        memory: &PagedMemory,
        topology: &Topology,
        runs: u32,
    ) -> Listener {
        let second_level = topology.data_caches().nth(1);
        let mut chases = vec![("L1", FIRST_LEVEL_BYTES / LINE_BYTES)];
        if let Some(cache) = second_level {
            chases.push(("L2", (cache.size_bytes / 2 / LINE_BYTES).max(1)));
        }
        chases.push(("memory", lines_of(memory)));
        Listener {
            before: listen(&chases, chase, memory, runs),
            chases,
            times: Times::read(Path::new("/")),
        }
    }

    /// Takes the readings after.
    pub(super) fn stop(self, chase: &mut Chase, memory: &PagedMemory, runs: u32) -> Quietness {
        let after = listen(&self.chases, chase, memory, runs);
        let steal_share = match (self.times, Times::read(Path::new("/"))) {
            (Some(before), Some(after)) => after.steal_share_since(before),
            _ => None,
        };
        let readings = self.chases.iter().zip(self.before.iter().zip(after));
        let readings = readings.map(|(&(name, _), (before, after))| ChaseReading {
            name: name.to_owned(),
            before_ns: before.median_ns,
            after_ns: after.median_ns,
            spread: before.spread.max(after.spread),
        });
        Quietness::new(
            readings.collect(),
            steal_share,
            load_per_processor(Path::new("/")),
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
    let mut sample = |&(_, lines): &(_, u64)| {
        let lines = lines.min(lines_of(memory)).max(1);
        chase.run(words, lines, (2 * lines).min(100_000) as u32);
        let samples: Vec<f64> = { 0..RUNS * runs.max(1) }
            .map(|_| chase.run(words, lines, LOADS))
            .collect();
        let part = |part| quantile(samples.iter().copied(), part);
        let low = part(0.1);
        Sample {
            median_ns: part(0.5),
            spread: if low > 0.0 {
                part(0.9) / low - 1.0
            } else {
                0.0
            },
        }
    };
    chases.iter().map(&mut sample).collect()
}

/// Time of all processors since the system started, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    all: u64,
    stolen: u64,
}

impl Times {
    /// The first line of `proc/stat`: user, nice, system, idle, waiting for devices, two kinds of
    /// interrupts, stolen.
    fn read(root: &Path) -> Option<Times> {
        let text = fs::read_to_string(root.join("proc/stat")).ok()?;
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks = line.split_ascii_whitespace().take(8);
        let ticks: Vec<u64> = ticks.map_while(|number| number.parse().ok()).collect();
        Some(Times {
            stolen: *ticks.get(7)?,
            all: ticks
                .iter()
                .try_fold(0u64, |sum, &ticks| sum.checked_add(ticks))?,
        })
    }

    fn steal_share_since(self, before: Times) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|&all| all > 0)?;
        let stolen = self.stolen.checked_sub(before.stolen)?;
        Some(stolen as f64 / all as f64)
    }
}

/// The load of the last minute over the number of processors.
fn load_per_processor(root: &Path) -> Option<f64> {
    let text = fs::read_to_string(root.join("proc/loadavg")).ok()?;
    let load: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    let processors = std::thread::available_parallelism().ok()?.get();
    (load.is_finite() && load >= 0.0).then(|| load / processors as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageSize;
    use crate::machine::Verdict;

    /// What `read` makes of a root folder in which `proc/FILE` holds this text.
    fn with<T>(file: &str, text: &str, read: impl Fn(&Path) -> T) -> T {
        let folder = format!("ccmodel-quietness-{}-{file}", std::process::id());
        let root = std::env::temp_dir().join(folder);
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::write(root.join("proc").join(file), text).unwrap();
        let result = read(&root);
        fs::remove_dir_all(&root).unwrap();
        result
    }

    #[test]
    fn stolen_time_is_a_share_of_all() {
        let read = |text| with("stat", text, Times::read);
        let before = read("cpu  10 0 10 70 0 0 5 5 0 0\ncpu0 1\n").unwrap();
        let after = read("cpu  60 0 10 100 0 0 5 25 0 0\n").unwrap();
        assert_eq!(after.steal_share_since(before), Some(0.2));
        assert_eq!(before.steal_share_since(after), None, "clocks go forward");
        assert_eq!(before.steal_share_since(before), None);
        for bad in [
            "",
            "cpu",
            "cpu  1 2 3",
            "cpu  1 2 3 4 5 6 7 x",
            "intr 1 2 3 4 5 6 7 8",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn load_is_read_where_there_is_one() {
        let read = |text| with("loadavg", text, load_per_processor);
        assert!(read("0.50 0.40 0.30 1/80 1234\n").is_some_and(|load| load > 0.0 && load <= 0.5));
        for bad in ["", "x", "nan 1 1", "-1 0 0"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_was_heard_is_judged() {
        let reading = |spread, after_ns| ChaseReading {
            name: "L1".to_owned(),
            before_ns: 4.0,
            after_ns,
            spread,
        };
        let verdict = |readings, steal, load| Quietness::new(readings, steal, load).verdict;
        let judge = |spread, after_ns| verdict(vec![reading(spread, after_ns)], None, None);
        assert_eq!(judge(0.05, 4.1), Verdict::Quiet);
        assert_eq!(judge(0.2, 4.1), Verdict::Busy);
        assert_eq!(judge(0.05, 5.0), Verdict::Busy, "drift");
        assert_eq!(judge(0.05, 2.0), Verdict::Loud, "drift the other way");
        assert_eq!(verdict(Vec::new(), Some(0.2), None), Verdict::Loud);
        assert_eq!(verdict(Vec::new(), Some(0.0), Some(1.0)), Verdict::Busy);
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
