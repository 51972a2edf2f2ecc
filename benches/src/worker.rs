//! Programs and workloads in processes of their own, allocators in turns.
//!
//! `BENCHES_ALLOCATOR=mimalloc measure --worker json` runs the program `json` and prints a line of
//! JSON. A worker times its own work, so starting it does not count. The parent waits for each
//! before it starts the next, and checks that runs of a program computed the same.

use std::collections::HashMap;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::dispatch::{ALLOCATOR_VARIABLE, served_by};
use crate::olden::runner;
use crate::programs::{LIVE_MIB, PRODUCTION, Program, SPECIAL, Scale, UNHINTED};
use crate::rounds::Rounds;
use crate::sys::{peak_resident_bytes, warm_memory};
use crate::timing::turns;
use crate::workload::{Failure, agree};

/// The line that a worker prints.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Finished {
    pub program: String,
    pub allocator: String,
    pub checksum: u64,
    /// Wall time of the build, of the layout and of the work.
    pub stages_ns: [u64; 3],
    pub peak_bytes: u64,
    /// Resident bytes of an object, where the program counts them.
    pub object_bytes: Option<f64>,
}

/// The runs of a program under one allocator, in the order of the rounds.
#[derive(Clone, Debug)]
pub struct Taken(Vec<Finished>);

impl Taken {
    pub fn checksum(&self) -> u64 {
        self.0[0].checksum
    }

    fn rounds(&self, figure: impl Fn(&Finished) -> f64) -> Rounds {
        Rounds::new(self.0.iter().map(figure).collect())
    }

    pub fn ms(&self) -> Rounds {
        self.rounds(|run| run.stages_ns.iter().sum::<u64>() as f64 / 1e6)
    }

    /// Milliseconds of the build, of the layout and of the work.
    pub fn stages_ms(&self) -> [Rounds; 3] {
        [0, 1, 2].map(|stage| self.rounds(|run| run.stages_ns[stage] as f64 / 1e6))
    }

    pub fn peak_mib(&self) -> Rounds {
        self.rounds(|run| run.peak_bytes as f64 / f64::from(1 << 20))
    }

    /// MiB that the whole program has resident, where it counts that.
    pub fn resident_mib(&self) -> Rounds {
        self.rounds(|run| run.object_bytes.unwrap_or(0.0) / f64::from(1 << 20))
    }

    /// Resident bytes of an object, where the program counts them; else 0.
    pub fn object_bytes(&self) -> Rounds {
        self.rounds(|run| run.object_bytes.unwrap_or(0.0))
    }
}

/// Runs the program called `name` once and returns the line to print. The name may end in a size in
/// MiB, as `json:4` does.
pub fn work(name: &str, scale: Scale) -> Result<String, Failure> {
    let outcome = if runner::is_olden(name) {
        runner::work(name)?
    } else {
        let (plain, mib) = name.split_once(':').unwrap_or((name, ""));
        if let Ok(mib) = mib.parse() {
            LIVE_MIB.get_or_init(|| mib);
        }
        let program = find(plain).ok_or_else(|| format!("there is no program {name:?}"))?;
        (program.run)(scale)
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

fn find(name: &str) -> Option<&'static Program> {
    #[cfg(feature = "apps")]
    let applications = crate::apps::PROGRAMS;
    #[cfg(not(feature = "apps"))]
    let applications: &[Program] = &[];
    let mut all = (UNHINTED.iter().chain(SPECIAL))
        .chain(PRODUCTION)
        .chain(applications);
    all.find(|program| program.name == name)
}

/// What each of `variants`, the names of a program and of an allocator, takes in `rounds`, in
/// turns.
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
        let expected = expected.entry(program).or_default();
        agree(expected, finished.checksum, program, allocator)?;
        all[which].push(finished);
    }
    Ok(all.into_iter().map(Taken).collect())
}

fn start(program: &str, scale: Scale, allocator: &str) -> Result<Finished, Failure> {
    let mut arguments = vec!["--worker", program];
    arguments.extend((scale == Scale::Quick).then_some("--quick"));
    if runner::is_olden(program) {
        // Three times what a run takes at most. With just as much, one build in three of mst in an
        // aged heap waited for the hypervisor, and took 360 ms instead of 130.
        warm_memory(scale.pick(256 << 20, 2 << 30));
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

/// What this program prints with `arguments` under `allocator`, or what went wrong.
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
