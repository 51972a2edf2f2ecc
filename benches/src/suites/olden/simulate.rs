//! The thesis's simulated machine: table 4.1, by cachegrind.
//!
//! Counts do not depend on the machine or its load, so they can be compared with the thesis's.
//! Cachegrind runs the worker with the caches of the table: 16 KB direct-mapped L1, 256 KB L2 with
//! two ways, lines of 128 bytes. From its counts and the table's costs of misses,
//!
//! ```text
//! cycles = instructions + 9 x L1 data misses + 60 x L2 data misses
//! ```
//!
//! That is a processor that does one instruction a cycle and waits for each miss. The thesis's
//! issued four instructions at once and went on under misses, so both parts are too long here.
//!
//! The cycles of a second run, which ends before the build, are subtracted. Instruction misses do
//! not count. Cachegrind does not simulate prefetches, so programs that prefetch are left out.

use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;

use super::race::Entry;
use super::variants;
use crate::dispatch::ALLOCATOR_VARIABLE;
use crate::olden::Size;
use crate::olden::runner::{Mode, Program, Run, Setting, Variant};
use crate::programs::Scale;
use crate::rivals::{Allocator, OURS, SYSTEM};
use crate::workload::Failure;

/// Cycles that a miss of the first-level cache costs.
const L1_MISS_CYCLES: u64 = 9;
/// Cycles that a miss of the second-level cache costs.
const L2_MISS_CYCLES: u64 = 60;

/// The simulator and its caches: bytes, ways, bytes of a line. The table says nothing of the
/// instruction cache; its line must be that of the others.
const CACHEGRIND: [&str; 6] = [
    "--tool=cachegrind",
    "--cache-sim=yes",
    "--cachegrind-out-file=/dev/null",
    "--I1=16384,2,128",
    "--D1=16384,1,128",
    "--LL=262144,2,128",
];

/// Cycles, from the counts that cachegrind writes at the end.
fn cycles(summary: &str) -> Option<u64> {
    let count = |label: &str| -> Option<u64> {
        summary.lines().find_map(|line| {
            // Lines look like `==42== D1  misses:      1,234  ( 1,000 rd + 234 wr)`.
            let (before, after) = line.split_once(':')?;
            let is_it = before.split_whitespace().skip(1).eq(label.split(' '));
            let number = after.split_whitespace().next()?.replace(',', "");
            is_it.then(|| number.parse().ok())?
        })
    };
    let misses = L1_MISS_CYCLES * count("D1 misses")? + L2_MISS_CYCLES * count("LLd misses")?;
    Some(count("I refs")? + misses)
}

/// One program on the simulated machine.
#[derive(Clone, Debug)]
pub(super) struct Simulated {
    pub(super) program: &'static Program,
    /// Cycles of each variant, without those before the build: of `AsAllocated` under the system's
    /// malloc, of the others under ours.
    cycles: Vec<(Variant, f64)>,
}

/// The allocator under which a variant is simulated.
fn allocator_of(variant: Variant) -> &'static Allocator {
    match variant {
        Variant::AsAllocated => &SYSTEM,
        _ => &OURS,
    }
}

impl Simulated {
    /// Simulates, on all processors.
    pub(super) fn run(program: &'static Program, scale: Scale) -> Result<Simulated, Failure> {
        let size = match scale {
            Scale::Quick => Size::Tiny,
            Scale::Full => Size::Thesis,
        };
        let mut simulated = variants(program, scale);
        if scale == Scale::Quick {
            simulated.insert(0, Variant::AsAllocated);
        }
        let whole = simulated.iter().map(|&variant| (variant, Mode::Rsim));
        let inputs = [Variant::AsAllocated, program.hinted].map(|one| (one, Mode::Input));
        let jobs: Vec<(Variant, Mode)> = inputs.into_iter().chain(whole).collect();
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let mut cycles = Vec::new();
        for jobs in jobs.chunks(processors) {
            let results: Vec<_> = thread::scope(|scope| {
                let start = |&(variant, mode): &(Variant, Mode)| {
                    scope.spawn(move || simulate(program, size, variant, mode))
                };
                let started: Vec<_> = jobs.iter().map(start).collect();
                let results = started.into_iter().map(|thread| thread.join());
                results.map(|result| result.expect("no panic")).collect()
            });
            cycles.extend(results.into_iter().collect::<Result<Vec<u64>, Failure>>()?);
        }
        let cycles_of_work = simulated.iter().zip(&cycles[2..]).map(|(&variant, &all)| {
            let input = cycles[usize::from(variant != Variant::AsAllocated)];
            (variant, all.saturating_sub(input) as f64)
        });
        Ok(Simulated {
            program,
            cycles: cycles_of_work.collect(),
        })
    }

    pub(super) fn cycles_of(&self, variant: Variant) -> Option<f64> {
        let mut all = self.cycles.iter();
        let found = all.find(|(simulated, _)| *simulated == variant);
        found.map(|&(_, cycles)| cycles)
    }

    /// Cycles of an entry over those of the system's malloc as allocated, if it was simulated.
    pub(super) fn share(&self, entry: &Entry) -> Option<f64> {
        let is_it = allocator_of(entry.variant).process == entry.allocator.process;
        let cycles = self.cycles_of(entry.variant).filter(|_| is_it)?;
        Some(cycles / self.cycles_of(Variant::AsAllocated)?)
    }
}

/// Whether there is a simulator; says so once when there is none.
pub(super) fn has_valgrind() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let asked = Command::new("valgrind").arg("--version").output();
        let found = asked.is_ok_and(|output| output.status.success());
        if !found {
            eprintln!(
                "left out: the simulations of the Olden programs (valgrind is not installed)"
            );
        }
        found
    })
}

/// Cycles of one run.
fn simulate(
    program: &'static Program,
    size: Size,
    variant: Variant,
    mode: Mode,
) -> Result<u64, Failure> {
    let run = Run {
        program,
        setting: Setting::Fresh,
        variant,
        size,
        mode,
    };
    let allocator = allocator_of(variant).process;
    let failure = |what: String| format!("{run} under {allocator}, simulated: {what}");
    let report = std::env::current_exe()?;
    let output = Command::new("valgrind")
        .args(CACHEGRIND)
        .arg(report)
        .args(["--worker", &run.to_string()])
        .env(ALLOCATOR_VARIABLE, allocator)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failure(error.to_string()))?;
    let summary = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(failure(format!("{}\n{summary}", output.status)).into());
    }
    Ok(cycles(&summary).ok_or_else(|| failure(format!("no counts in {summary:?}")))?)
}
