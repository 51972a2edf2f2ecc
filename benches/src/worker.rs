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

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::dispatch::{ALLOCATOR_VARIABLE, served_by};
use crate::olden::runner;
use crate::programs::{LIVE_MIB, Program, SPECIAL, Scale, UNHINTED};
use crate::rounds::Rounds;
use crate::sys::peak_resident_bytes;
use crate::timing::turns;
use crate::workload::{Failure, wrong_answer};

/// The line that a worker prints.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Finished {
    program: String,
    allocator: String,
    checksum: u64,
    nanoseconds: u64,
    peak_bytes: u64,
    object_bytes: Option<f64>,
}

/// What a program took under one allocator.
#[derive(Clone, Debug)]
pub struct Taken {
    /// What it computed, in every round.
    pub checksum: u64,
    /// Wall time of the work, in milliseconds.
    pub ms: Rounds,
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
    if runner::is_olden(name) {
        return Ok(runner::work(name)?);
    }
    let (plain, mib) = name.split_once(':').unwrap_or((name, ""));
    if let Ok(mib) = mib.parse() {
        LIVE_MIB.get_or_init(|| mib);
    }
    let program = find(plain).ok_or_else(|| format!("there is no program {name:?}"))?;
    let outcome = (program.run)(scale);
    let finished = Finished {
        program: name.to_owned(),
        allocator: served_by().to_owned(),
        checksum: outcome.checksum,
        nanoseconds: u64::try_from(outcome.time.as_nanos()).unwrap_or(u64::MAX),
        peak_bytes: peak_resident_bytes(),
        object_bytes: outcome.object_bytes,
    };
    Ok(serde_json::to_string(&finished)?)
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
            ms: rounds(|one| one.nanoseconds as f64 / 1e6),
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
    let finished: Finished = read_line(&arguments, allocator)?;
    if finished.program != program || finished.allocator != allocator {
        let (ran, served) = (finished.program, finished.allocator);
        return Err(format!("{ran} ran under {served}, not {program} under {allocator}").into());
    }
    Ok(finished)
}

/// Starts this program with `arguments` under `allocator`, and reads the line that it prints.
pub(crate) fn read_line<T: DeserializeOwned>(
    arguments: &[&str],
    allocator: &str,
) -> Result<T, Failure> {
    let failure = |what: String| format!("{} under {allocator}: {what}", arguments.join(" "));
    let output = run(arguments, allocator).map_err(failure)?;
    let line = serde_json::from_str(&output);
    Ok(line.map_err(|error| failure(error.to_string()))?)
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
