//! Programs and workloads in processes of their own, allocators in turns.
//!
//! ```text
//! report                                                 for each round, for each allocator:
//!   └─ BENCHES_ALLOCATOR=mimalloc report --worker json   runs the program, prints a line of JSON
//! ```
//!
//! A worker times its own work, so starting it does not count. The parent waits for each before it
//! starts the next, and checks that runs of a program computed the same.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::dispatch::{ALLOCATOR_VARIABLE, served_by};
use crate::olden::runner;
use crate::programs::{LIVE_MIB, Outcome, Program, SPECIAL, Scale, UNHINTED};
use crate::rounds::Rounds;
use crate::sys::{peak_resident_bytes, warm_memory};
use crate::timing::turns;
use crate::workload::{Failure, wrong_answer};

/// The line that a worker prints.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Finished {
    /// The name of the program.
    pub program: String,
    /// The allocator of the process.
    pub allocator: String,
    /// What it computed.
    pub checksum: u64,
    /// Wall time of the build, of the layout and of the work.
    pub stages_ns: [u64; 3],
    /// The most memory that the process had.
    pub peak_bytes: u64,
    /// Resident bytes of an object, where the program counts them.
    pub object_bytes: Option<f64>,
}

/// What a program took under one allocator.
#[derive(Clone, Debug)]
pub struct Taken {
    /// What it computed, in every round.
    pub checksum: u64,
    /// Wall time in milliseconds.
    pub ms: Rounds,
    /// That of the build, of the layout and of the work.
    pub stages_ms: [Rounds; 3],
    /// The most memory that the process had at any time, in MiB.
    pub peak_mib: Rounds,
    /// Resident bytes an object, where the program counts them; else 0.
    pub object_bytes: Rounds,
}

/// Runs the program called `name` once and returns the line to print. A name may end in a size in
/// MiB, as `json:4` does.
///
/// # Errors
/// When there is no such program.
pub fn work(name: &str, scale: Scale) -> Result<String, Failure> {
    let outcome = match runner::is_olden(name) {
        true => runner::work(name)?,
        false => run_program(name, scale)?,
    };
    let stages = [outcome.build, outcome.layout, outcome.work];
    let finished = Finished {
        program: name.to_owned(),
        allocator: served_by().to_owned(),
        checksum: outcome.checksum,
        stages_ns: stages.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        peak_bytes: peak_resident_bytes(),
        object_bytes: outcome.object_bytes,
    };
    Ok(serde_json::to_string(&finished)?)
}

fn run_program(name: &str, scale: Scale) -> Result<Outcome, String> {
    let (plain, mib) = name.split_once(':').unwrap_or((name, ""));
    if let Ok(mib) = mib.parse() {
        LIVE_MIB.get_or_init(|| mib);
    }
    let program = find(plain).ok_or_else(|| format!("there is no program {name:?}"))?;
    Ok((program.run)(scale))
}

fn find(name: &str) -> Option<&'static Program> {
    #[cfg(feature = "apps")]
    let applications = crate::apps::PROGRAMS;
    #[cfg(not(feature = "apps"))]
    let applications: &[Program] = &[];
    let mut all = UNHINTED.iter().chain(SPECIAL).chain(applications);
    all.find(|program| program.name == name)
}

/// Runs each of `variants`, the names of a program and of an allocator, `rounds` times in turns.
/// Returns what each took, in their order.
///
/// # Errors
/// When a worker fails, or when two runs of a program computed different things.
pub fn measure(
    variants: &[(&str, &str)],
    scale: Scale,
    rounds: usize,
) -> Result<Vec<Taken>, Failure> {
    let mut all: Vec<Vec<Finished>> = vec![Vec::new(); variants.len()];
    let mut expected = HashMap::new();
    for which in turns(rounds, variants.len()) {
        let (program, allocator) = variants[which];
        let finished = start(program, scale, allocator)?;
        if *expected.entry(program).or_insert(finished.checksum) != finished.checksum {
            return Err(wrong_answer(program, allocator));
        }
        all[which].push(finished);
    }
    let taken = all.iter().map(|all| {
        let rounds = |figure: fn(&Finished) -> f64| Rounds::new(all.iter().map(figure).collect());
        Taken {
            checksum: all[0].checksum,
            ms: rounds(|one| one.stages_ns.iter().sum::<u64>() as f64 / 1e6),
            stages_ms: [
                rounds(|one| one.stages_ns[0] as f64 / 1e6),
                rounds(|one| one.stages_ns[1] as f64 / 1e6),
                rounds(|one| one.stages_ns[2] as f64 / 1e6),
            ],
            peak_mib: rounds(|one| one.peak_bytes as f64 / f64::from(1 << 20)),
            object_bytes: rounds(|one| one.object_bytes.unwrap_or(0.0)),
        }
    });
    Ok(taken.collect())
}

/// Runs one worker to its end.
fn start(program: &str, scale: Scale, allocator: &str) -> Result<Finished, Failure> {
    let mut arguments = vec!["--worker", program];
    arguments.extend((scale == Scale::Quick).then_some("--quick"));
    if runner::is_olden(program) {
        warm_memory(warm_bytes(scale));
    }
    let failure = |what: String| format!("{program} under {allocator}: {what}");
    let output = run(&arguments, allocator).map_err(failure)?;
    let finished: Finished =
        serde_json::from_str(&output).map_err(|error| failure(error.to_string()))?;
    if finished.program != program || finished.allocator != allocator {
        let (ran, served) = (finished.program, finished.allocator);
        return Err(format!("{ran} ran under {served}, not {program} under {allocator}").into());
    }
    Ok(finished)
}

/// Memory to take from the hypervisor before a run of an Olden program: about three times the most
/// that a run takes. With only as much as it takes, one build in three of mst in an aged heap still
/// waited for the hypervisor, and took 360 ms instead of 130.
fn warm_bytes(scale: Scale) -> usize {
    match scale {
        Scale::Quick => 256 << 20,
        Scale::Full => 2 << 30,
    }
}

/// Starts this program with `arguments` under `allocator`. Returns what it prints, or what went
/// wrong.
pub(crate) fn run(arguments: &[&str], allocator: &str) -> Result<String, String> {
    let report = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(report)
        .args(arguments)
        .env(ALLOCATOR_VARIABLE, allocator)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(output.status.to_string());
    }
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}
