//! Programs in processes of their own, allocators in turns; and workloads in processes of their
//! own.
//!
//! ```text
//! report                                                 for each round, for each allocator:
//!   └─ BENCHES_ALLOCATOR=mimalloc report --worker json   runs the program, prints a line of JSON
//! ```
//!
//! A worker times its own work, so starting it does not count. The parent waits for each before it
//! starts the next, and checks that all computed the same.
//!
//! A workload that needs a young process and the system's malloc runs [`alone`]: it compares in
//! turns inside, and prints its comparisons as JSON.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::dispatch::{ALLOCATOR_VARIABLE, served_by};
use crate::olden::runner;
use crate::programs::{LIVE_MIB, Program, SPECIAL, Scale, UNHINTED};
use crate::rivals::system;
use crate::rounds::Rounds;
use crate::sys::peak_resident_bytes;
use crate::workload::{Comparison, Effort, Failure, WrongAnswer};

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

/// What a program took under one allocator in one round.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Wall time of the work.
    pub time: Duration,
    /// The most memory that the process had at any time.
    pub peak_bytes: f64,
    /// Resident bytes an object, where the program counts them; else 0.
    pub object_bytes: f64,
}

impl Taken {
    /// `figure` of all rounds.
    ///
    /// # Panics
    /// When there are none.
    pub fn rounds(all: &[Taken], figure: impl Fn(&Taken) -> f64) -> Rounds {
        Rounds::new(all.iter().map(figure).collect())
    }
}

impl From<Finished> for Taken {
    fn from(finished: Finished) -> Self {
        Taken {
            time: Duration::from_nanos(finished.nanoseconds),
            peak_bytes: finished.peak_bytes as f64,
            object_bytes: finished.object_bytes.unwrap_or(0.0),
        }
    }
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
    if runner::is_olden(name) {
        return runner::work(name).map_err(failure);
    }
    // A name may end in a size, as `json:4` does.
    let (plain, mib) = name.split_once(':').unwrap_or((name, ""));
    if let Ok(mib) = mib.parse() {
        LIVE_MIB.get_or_init(|| mib);
    }
    let program = find(plain).ok_or_else(|| failure("no program is called so".to_owned()))?;
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

/// A program, and the name of the allocator that is to serve it.
pub type Variant<'a> = (&'static Program, &'a str);

/// The parent's part: runs `program` under each of `allocators`, `rounds` times in turns; what it
/// took in each round, in the order of the allocators.
///
/// # Errors
/// When a worker fails, or when two of them computed different things.
pub fn measure(
    program: &'static Program,
    scale: Scale,
    allocators: &[&str],
    rounds: usize,
) -> Result<Vec<Vec<Taken>>, Failure> {
    let variants: Vec<_> = allocators.iter().map(|&name| (program, name)).collect();
    measure_variants(&variants, scale, rounds)
}

/// As [`measure`], once, of `program` with about `mib` MiB of memory.
///
/// # Errors
/// As of [`measure`].
pub fn measure_small(
    program: &'static Program,
    mib: usize,
    allocators: &[&str],
) -> Result<Vec<Vec<Taken>>, Failure> {
    let name = format!("{}:{mib}", program.name);
    let start = |&allocator: &&str| start(&name, Scale::Quick, allocator);
    let finished: Vec<Finished> = allocators.iter().map(start).collect::<Result<_, _>>()?;
    let differs = finished
        .windows(2)
        .find(|two| two[0].checksum != two[1].checksum);
    if let Some([_, other]) = differs {
        return Err(Failure::Answer(WrongAnswer {
            workload: program.name,
            who: other.allocator.clone(),
        }));
    }
    Ok(finished.into_iter().map(|one| vec![one.into()]).collect())
}

/// Runs each of `variants`, a program under an allocator, `rounds` times in turns; what each took,
/// a round after the other, in their order. The programs compute the same in different ways.
///
/// # Errors
/// As of [`measure`].
pub fn measure_variants(
    variants: &[Variant<'_>],
    scale: Scale,
    rounds: usize,
) -> Result<Vec<Vec<Taken>>, Failure> {
    in_turns(variants, scale, rounds, |_| "")
}

/// As [`measure_variants`], of programs that compute different things: runs of one program have to
/// agree with each other.
///
/// # Errors
/// As of [`measure`].
pub fn measure_apart(
    variants: &[Variant<'_>],
    scale: Scale,
    rounds: usize,
) -> Result<Vec<Vec<Taken>>, Failure> {
    in_turns(variants, scale, rounds, |program| program.name)
}

/// Runs of programs of the same `task` have to give the same checksum.
fn in_turns(
    variants: &[Variant<'_>],
    scale: Scale,
    rounds: usize,
    task: fn(&Program) -> &str,
) -> Result<Vec<Vec<Taken>>, Failure> {
    let mut all: Vec<Vec<Taken>> = variants.iter().map(|_| Vec::new()).collect();
    let mut expected = HashMap::new();
    for round in 0..rounds {
        for turn in 0..variants.len() {
            // Each round begins with another one, so that none always runs first.
            let which = (round + turn) % variants.len();
            let (program, allocator) = variants[which];
            let finished = start(program.name, scale, allocator)?;
            let expected = expected.entry(task(program)).or_insert(finished.checksum);
            if *expected != finished.checksum {
                return Err(Failure::Answer(WrongAnswer {
                    workload: program.name,
                    who: finished.allocator,
                }));
            }
            all[which].push(finished.into());
        }
    }
    Ok(all)
}

/// Runs `workload`, the one called `name`, in a process of its own that the system's malloc serves;
/// in such a process, in place.
///
/// # Errors
/// What went wrong in it, or when its process does not do its part.
pub fn alone(
    name: &'static str,
    effort: &Effort,
    workload: fn(&Effort) -> Result<Vec<Comparison>, Failure>,
) -> Result<Vec<Comparison>, Failure> {
    let allocator = system::RIVAL.methods.name;
    if served_by() == allocator {
        return workload(effort);
    }
    let failure = |what: String| Failure::Worker {
        program: name.to_owned(),
        what,
    };
    let mut arguments = vec!["--alone", name];
    arguments.extend((effort.scale == Scale::Quick).then_some("--quick"));
    if let Some(only) = &effort.only {
        arguments.extend(["--only", only]);
    }
    let output = run(&arguments, allocator).map_err(failure)?;
    let lines = output.lines().map(|line| {
        serde_json::from_str(line)
            .map_err(|error| error.to_string())
            .map_err(failure)
    });
    lines.collect()
}

/// The program called `name`.
fn find(name: &str) -> Option<&'static Program> {
    #[cfg(feature = "apps")]
    let applications = crate::apps::PROGRAMS;
    #[cfg(not(feature = "apps"))]
    let applications: &[Program] = &[];
    let mut all = UNHINTED.iter().chain(SPECIAL).chain(applications);
    all.find(|program| program.name == name)
}

/// Runs one worker to its end.
fn start(program: &str, scale: Scale, allocator: &str) -> Result<Finished, Failure> {
    let failure = |what: String| Failure::Worker {
        program: format!("{program} under {allocator}"),
        what,
    };
    let mut arguments = vec!["--worker", program];
    arguments.extend((scale == Scale::Quick).then_some("--quick"));
    let output = run(&arguments, allocator).map_err(failure)?;
    let finished: Finished =
        serde_json::from_str(&output).map_err(|error| failure(error.to_string()))?;
    if finished.program != program || finished.allocator != allocator {
        return Err(failure(format!(
            "it ran {} under {}",
            finished.program, finished.allocator
        )));
    }
    Ok(finished)
}

/// What this program prints when it is started with `arguments` under `allocator`; or what went
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
