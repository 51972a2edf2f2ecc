//! The thesis's simulated machine: table 4.1, by cachegrind.
//!
//! Counts do not depend on the machine or its load, so they can be compared with the thesis's. From
//! cachegrind's counts and the table's costs of misses,
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

const L1_MISS_CYCLES: u64 = 9;
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

#[derive(Clone, Debug)]
pub(super) struct Simulated {
    pub(super) program: &'static Program,
    /// Cycles of each variant, less those before the build: of `AsAllocated` under malloc, else
    /// ours.
    cycles: Vec<(Variant, f64)>,
}

fn allocator_of(variant: Variant) -> &'static Allocator {
    match variant {
        Variant::AsAllocated => &SYSTEM,
        _ => &OURS,
    }
}

impl Simulated {
    pub(super) fn run(program: &'static Program, scale: Scale) -> Result<Simulated, Failure> {
        let size = scale.pick(Size::Tiny, Size::Thesis);
        let mut simulated = variants(program, scale);
        if scale == Scale::Quick {
            simulated.insert(0, Variant::AsAllocated);
        }
        let inputs = [Variant::AsAllocated, program.hinted].map(|variant| (variant, Mode::Input));
        let whole = simulated.iter().map(|&variant| (variant, Mode::Rsim));
        let jobs: Vec<(Variant, Mode)> = inputs.into_iter().chain(whole).collect();
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let mut cycles: Vec<u64> = Vec::new();
        for jobs in jobs.chunks(processors) {
            let start = |&(variant, mode)| move || simulate(program, size, variant, mode);
            thread::scope(|scope| {
                let started: Vec<_> = jobs.iter().map(|job| scope.spawn(start(job))).collect();
                for thread in started {
                    cycles.push(thread.join().expect("no panic")?);
                }
                Ok::<(), Failure>(())
            })?;
        }
        let of_work = simulated.iter().zip(&cycles[2..]).map(|(&variant, &all)| {
            let input = cycles[usize::from(variant != Variant::AsAllocated)];
            (variant, all.saturating_sub(input) as f64)
        });
        Ok(Simulated {
            program,
            cycles: of_work.collect(),
        })
    }

    /// Not a number for a variant that was not simulated.
    pub(super) fn cycles_of(&self, variant: Variant) -> f64 {
        let found = self.cycles.iter().find(|(it, _)| *it == variant);
        found.map_or(f64::NAN, |&(_, cycles)| cycles)
    }

    /// Cycles of an entry over those of the system's malloc, if it was simulated.
    pub(super) fn share(&self, entry: &Entry) -> Option<f64> {
        let is_it = allocator_of(entry.variant).process == entry.allocator.process;
        let share = self.cycles_of(entry.variant) / self.cycles_of(Variant::AsAllocated);
        Some(share).filter(|share| is_it && !share.is_nan())
    }
}

/// Whether there is a simulator; says so once when there is none.
pub(super) fn has_valgrind() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let asked = Command::new("valgrind").arg("--version").output();
        let found = asked.is_ok_and(|output| output.status.success());
        if !found {
            eprintln!("left out: simulations of the Olden programs (valgrind is not installed)");
        }
        found
    })
}

fn simulate(
    program: &'static Program,
    size: Size,
    variant: Variant,
    mode: Mode,
) -> Result<u64, Failure> {
    let setting = Setting::Fresh;
    let run = Run {
        program,
        setting,
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
