//! Programs in processes of their own, allocators in turns.
//!
//! ```text
//! report                                           for each round, for each allocator:
//!   └─ BENCHES_ALLOCATOR=mimalloc report --worker json   runs the program once, prints one line of JSON, ends
//! ```
//!
//! A worker times its own work, so that starting it does not count, and weighs itself at the end. The parent waits for each before it starts the next,
//! believes no line that does not say what it asked for, and no checksum that another allocator or round did not give, too.

use std::process::{Command, Stdio};
use std::time::Duration;

use examples::timing::median;
use serde::{Deserialize, Serialize};

use crate::dispatch::{ALLOCATOR_VARIABLE, served_by};
use crate::programs::{Program, Scale, find};
use crate::sys::peak_resident_bytes;
use crate::workload::{Failure, WrongAnswer};

/// What a worker says when it has finished.
#[derive(Debug, Deserialize, Serialize)]
struct Finished {
    program: String,
    allocator: String,
    checksum: u64,
    nanoseconds: u64,
    peak_bytes: u64,
    object_bytes: Option<f64>,
}

/// What a program took under one allocator: medians over the rounds.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Wall time of the work.
    pub time: Duration,
    /// The most memory that the process had at any time.
    pub peak_bytes: f64,
    /// Resident bytes an object, where the program counts them; else 0.
    pub object_bytes: f64,
}

/// The worker's part: runs the program called `name` once and returns the line to print.
///
/// # Errors
/// When there is no such program.
pub fn work(name: &str, scale: Scale) -> Result<String, Failure> {
    let failure = |what: String| Failure::Worker {
        program: name.to_owned(),
        what,
    };
    let program = find(name).ok_or_else(|| failure("no program is called so".to_owned()))?;
    let outcome = (program.run)(scale);
    let finished = Finished {
        program: name.to_owned(),
        allocator: served_by().to_owned(),
        checksum: outcome.checksum,
        nanoseconds: u64::try_from(outcome.time.as_nanos()).unwrap_or(u64::MAX),
        peak_bytes: peak_resident_bytes(),
        object_bytes: outcome.object_bytes,
    };
    serde_json::to_string(&finished).map_err(|error| failure(error.to_string()))
}

/// The parent's part: runs `program` under each of `allocators`, `rounds` times in turns; the medians in their order.
///
/// # Errors
/// When a worker fails, or when two of them computed different things.
pub fn measure(
    program: &'static Program,
    scale: Scale,
    allocators: &[&str],
    rounds: usize,
) -> Result<Vec<Taken>, Failure> {
    let mut all: Vec<Vec<Finished>> = allocators.iter().map(|_| Vec::new()).collect();
    let mut expected = None;
    for round in 0..rounds {
        for turn in 0..allocators.len() {
            // Each round begins with another one, so that none always runs after the same neighbour.
            let which = (round + turn) % allocators.len();
            let finished = start(program, scale, allocators[which])?;
            if *expected.get_or_insert(finished.checksum) != finished.checksum {
                return Err(Failure::Answer(WrongAnswer {
                    workload: program.name,
                    who: finished.allocator,
                }));
            }
            all[which].push(finished);
        }
    }
    Ok(all.iter().map(|runs| medians(runs)).collect())
}

fn medians(runs: &[Finished]) -> Taken {
    let times = runs
        .iter()
        .map(|run| Duration::from_nanos(run.nanoseconds))
        .collect();
    Taken {
        time: median(times),
        peak_bytes: middle(runs.iter().map(|run| run.peak_bytes as f64).collect()),
        object_bytes: middle(runs.iter().filter_map(|run| run.object_bytes).collect()),
    }
}

/// The middle one of `numbers`, 0 when there are none.
fn middle(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}

/// Runs one worker to its end.
fn start(program: &Program, scale: Scale, allocator: &str) -> Result<Finished, Failure> {
    let failure = |what: String| Failure::Worker {
        program: format!("{} under {allocator}", program.name),
        what,
    };
    let report = std::env::current_exe().map_err(|error| failure(error.to_string()))?;
    let output = Command::new(report)
        .args(["--worker", program.name])
        .args((scale == Scale::Quick).then_some("--quick"))
        .env(ALLOCATOR_VARIABLE, allocator)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failure(error.to_string()))?;
    if !output.status.success() {
        return Err(failure(output.status.to_string()));
    }
    let finished: Finished =
        serde_json::from_slice(&output.stdout).map_err(|error| failure(error.to_string()))?;
    if finished.program != program.name || finished.allocator != allocator {
        return Err(failure(format!(
            "it ran {} under {}",
            finished.program, finished.allocator
        )));
    }
    Ok(finished)
}
