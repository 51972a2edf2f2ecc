//! The thesis's simulated machine: table 4.1, by cachegrind.
//!
//! Counts do not depend on the machine, its load or the day: where times are a matter of the
//! processor at hand, these can be compared with the thesis's. Cachegrind runs the worker with the
//! caches of the table: 16 KB direct-mapped L1, 256 KB L2 with two ways, lines of 128 bytes. From
//! its counts,
//!
//! ```text
//! cycles = instructions + 9 x L1 data misses + 60 x L2 data misses
//! ```
//!
//! with the table's costs of misses. That is a processor that does one instruction a cycle and
//! waits for each miss. The thesis's was simulated by RSIM: it issued four instructions at once and
//! went on under misses, so both parts are too long here; which of them by more depends on the
//! program.
//!
//! What a process does before the build (starting, making the input) is taken off: a second run
//! ends there. Instruction misses do not count. Prefetches are no accesses to cachegrind, so
//! programs that prefetch are not simulated. Our own simulator agrees with cachegrind on these
//! counts (`model simulate`).

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::race::Entry;
use crate::dispatch::ALLOCATOR_VARIABLE;
use crate::olden::Size;
use crate::olden::runner::{Extent, Program, Run, Setting, Target, Variant};
use crate::programs::Scale;
use crate::rivals::{ours, system};
use crate::workload::Failure;

/// Cycles that a miss of the first-level cache costs.
const L1_MISS_CYCLES: u64 = 9;
/// Cycles that a miss of the second-level cache costs.
const L2_MISS_CYCLES: u64 = 60;

/// The simulator and its caches: bytes, ways, bytes of a line. Of the instruction cache the table
/// says nothing; its line must be that of the others.
const CACHEGRIND: [&str; 6] = [
    "--tool=cachegrind",
    "--cache-sim=yes",
    "--cachegrind-out-file=/dev/null",
    "--I1=16384,2,128",
    "--D1=16384,1,128",
    "--LL=262144,2,128",
];

/// What cachegrind counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    instructions: u64,
    l1_misses: u64,
    l2_misses: u64,
}

impl Counts {
    fn cycles(self) -> u64 {
        self.instructions + L1_MISS_CYCLES * self.l1_misses + L2_MISS_CYCLES * self.l2_misses
    }

    /// From what cachegrind writes at the end.
    fn parse(summary: &str) -> Option<Counts> {
        let count = |label: &str| {
            summary.lines().find_map(|line| {
                // Lines look like `==42== D1  misses:      1,234  ( 1,000 rd + 234 wr)`.
                let (before, after) = line.split_once(':')?;
                let words: Vec<&str> = before.split_whitespace().skip(1).collect();
                if words.join(" ") != label {
                    return None;
                }
                after
                    .split_whitespace()
                    .next()?
                    .replace(',', "")
                    .parse()
                    .ok()
            })
        };
        Some(Counts {
            instructions: count("I refs")?,
            l1_misses: count("D1 misses")?,
            l2_misses: count("LLd misses")?,
        })
    }
}

/// One program on the simulated machine.
#[derive(Clone, Debug)]
pub(super) struct Simulated {
    pub(super) program: &'static Program,
    /// Cycles of each, without those before the build.
    cycles: Vec<(Subject, f64)>,
}

/// A run to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Subject {
    allocator: &'static str,
    variant: Variant,
}

impl Subject {
    const fn ours(variant: Variant) -> Subject {
        Subject {
            allocator: ours::METHODS.name,
            variant,
        }
    }
}

const AS_ALLOCATED: Subject = Subject {
    allocator: system::RIVAL.methods.name,
    variant: Variant::AsAllocated,
};

/// Which of ours a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// Whichever of the two takes fewer cycles, chosen for each program when both are known: as the
    /// thesis reports its results. The floor is about this one.
    Better,
    /// Hinted, under the policy that the program chooses.
    Hinted,
    /// Laid out by a morph.
    Morphed,
}

impl Placed {
    /// Each, with what the names of its rows end in.
    pub(super) const ALL: [(Placed, &str); 3] = [
        (Placed::Better, ""),
        (Placed::Hinted, "_hinted"),
        (Placed::Morphed, "_morphed"),
    ];
}

/// A program hinted and morphed, against [`AS_ALLOCATED`].
const fn placed(program: &Program) -> [Subject; 2] {
    [
        Subject::ours(program.hinted()),
        Subject::ours(Variant::Clustered),
    ]
}

/// What full runs have beside [`AS_ALLOCATED`], for the table.
const ALL_OF_OURS: [Variant; 6] = [
    Variant::NullHints,
    Variant::Closest,
    Variant::FirstFit,
    Variant::NewBlock,
    Variant::Clustered,
    Variant::Coloured,
];

impl Simulated {
    /// Simulates, as many runs at once as there are processors; none where valgrind lacks, which is
    /// said once.
    pub(super) fn run(
        program: &'static Program,
        size: Size,
        scale: Scale,
    ) -> Result<Option<Simulated>, Failure> {
        if !has_valgrind() {
            return Ok(None);
        }
        let [hinted, morphed] = placed(program);
        let mut subjects = vec![AS_ALLOCATED];
        match scale {
            Scale::Quick => subjects.extend([hinted, morphed]),
            Scale::Full => subjects.extend(ALL_OF_OURS.map(Subject::ours)),
        }
        let before = [AS_ALLOCATED, hinted].map(|subject| (subject, Extent::Input));
        let jobs: Vec<(Subject, Extent)> = subjects
            .iter()
            .map(|&subject| (subject, Extent::Run))
            .chain(before)
            .collect();
        let counts = side_by_side(&jobs, |&(subject, extent)| {
            simulate(program, size, subject, extent)
        })?;
        let of_input = |allocator: &str| {
            let mut jobs = jobs.iter().zip(&counts);
            jobs.find(|((subject, extent), _)| {
                *extent == Extent::Input && subject.allocator == allocator
            })
            .map(|(_, counts)| counts.cycles())
        };
        let runs = jobs
            .iter()
            .zip(&counts)
            .filter(|((_, extent), _)| *extent == Extent::Run);
        let cycles = runs.map(|(&(subject, _), counts)| {
            let own = of_input(subject.allocator)
                .and_then(|before| counts.cycles().checked_sub(before))
                .ok_or_else(|| Failure::Worker {
                    program: format!("{} under {}, simulated", program.name, subject.allocator),
                    what: "no shorter run up to the build to take off".to_owned(),
                })?;
            Ok((subject, own as f64))
        });
        Ok(Some(Simulated {
            program,
            cycles: cycles.collect::<Result<_, Failure>>()?,
        }))
    }

    fn cycles_of(&self, subject: Subject) -> Option<f64> {
        let mut all = self.cycles.iter();
        all.find(|(simulated, _)| *simulated == subject)
            .map(|&(_, cycles)| cycles)
    }

    /// As the system's malloc allocates.
    pub(super) fn as_allocated_cycles(&self) -> f64 {
        self.cycles_of(AS_ALLOCATED).unwrap_or(f64::NAN)
    }

    /// With the nodes placed in a way.
    pub(super) fn placed_cycles(&self, which: Placed) -> f64 {
        let cycles_of = |subject| self.cycles_of(subject).unwrap_or(f64::NAN);
        let [hinted, morphed] = placed(self.program).map(cycles_of);
        match which {
            Placed::Better => hinted.min(morphed),
            Placed::Hinted => hinted,
            Placed::Morphed => morphed,
        }
    }

    /// What a contestant takes here, normalised to the system's malloc as allocated, if it was
    /// simulated.
    pub(super) fn share(&self, entry: &Entry) -> Option<f64> {
        let (subject, _) = self.cycles.iter().find(|(subject, _)| {
            let who = if *subject == AS_ALLOCATED {
                system::RIVAL.name
            } else {
                ours::NAME
            };
            who == entry.who && subject.variant == entry.variant
        })?;
        Some(self.cycles_of(*subject)? / self.as_allocated_cycles())
    }
}

/// Whether there is a simulator; complains the first time when there is none.
fn has_valgrind() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let asked = Command::new("valgrind")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        let found = asked.is_ok_and(|status| status.success());
        if !found {
            eprintln!(
                "left out: the simulations of the Olden programs (valgrind is not installed)"
            );
        }
        found
    })
}

/// `work` on each of `jobs`, as many at once as there are processors; the results in their order.
fn side_by_side<J: Sync, R: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let mut results: Vec<(usize, Result<R, Failure>)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..processors.min(jobs.len()))
            .map(|_| {
                scope.spawn(|| {
                    let mut results = Vec::new();
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(job) = jobs.get(index) else {
                            return results;
                        };
                        results.push((index, work(job)));
                    }
                })
            })
            .collect();
        let finished = workers.into_iter().map(|worker| worker.join());
        finished
            .flat_map(|results| results.expect("workers only pass on what they are told"))
            .collect()
    });
    results.sort_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn simulate(
    program: &'static Program,
    size: Size,
    subject: Subject,
    extent: Extent,
) -> Result<Counts, Failure> {
    let run = Run {
        program,
        setting: Setting::Fresh,
        variant: subject.variant,
        size,
        extent,
        target: Target::Rsim,
    };
    let failure = |what: String| Failure::Worker {
        program: format!("{run} under {}, simulated", subject.allocator),
        what,
    };
    let report = std::env::current_exe().map_err(|error| failure(error.to_string()))?;
    let output = Command::new("valgrind")
        .args(CACHEGRIND)
        .arg(report)
        .args(["--worker", &run.to_string()])
        .env(ALLOCATOR_VARIABLE, subject.allocator)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failure(error.to_string()))?;
    let summary = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(failure(format!("{}\n{summary}", output.status)));
    }
    Counts::parse(&summary).ok_or_else(|| failure(format!("no counts in {summary:?}")))
}
