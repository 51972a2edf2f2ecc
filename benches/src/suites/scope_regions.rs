//! What `ccscope run --regions` costs: the programs of `subjects` with it and without, in turns.

use std::process::{Command, Stdio};
use std::time::Instant;

use super::reference;
use super::scope::{
    Built, Case, PEAK, PROCESSOR, PROGRAMS, floor, measure, overhead, rounds, worst,
};
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload};

const INSTRUMENTED: &str = "../ccscope-regions/x86_64-unknown-linux-gnu/release/subjects";
const PROFILED: &str = "PROFILER run --regions --quiet --output PROFILE";
/// Programs of 512 MB.
const BIG: [&str; 2] = ["big_vec", "big_list"];

fn case(built: &Built, name: &str, work: u64) -> Case {
    let plain = built.way("", "subjects");
    let ways = vec![plain, built.way(PROFILED, INSTRUMENTED)];
    let words = [name, "1", &work.to_string()].map(str::to_owned).to_vec();
    Case {
        name: name.to_owned(),
        ways,
        words,
        threads: 1,
    }
}

/// Time and memory with every function's footprint recorded.
pub(super) fn programs(workload: &Workload, effort: &Effort) -> Rows {
    let built = Built::of("-p ccscope -p subjects")?;
    let subjects = "--regions -p subjects --bin subjects -- tree_sum 1 1";
    built.instrument(subjects.split(' '))?;
    let work =
        |(name, [quick, full]): (&'static str, [u64; 2])| (name, effort.scale.pick(quick, full));
    let times = PROGRAMS.into_iter().chain([("deep", [1, 1])]).map(work);
    let count = effort.scale.pick(1, effort.process_rounds);
    let (mut rows, mut overheads) = (Vec::new(), Vec::new());
    for (name, work) in times {
        let runs = measure(&case(&built, name, work), count)?;
        let [without, with] = [0, 1].map(|way| rounds(&runs[way], PROCESSOR));
        let row = format!("{}_of_{name}", workload.name);
        rows.push(Comparison::new(row, "not profiled", "ms", &with, &without));
        overheads.push(overhead(&runs[1], &runs[0], PROCESSOR));
    }
    let mut peaks = Vec::new();
    for name in BIG {
        let runs = measure(&case(&built, name, 1), 1)?;
        peaks.push(overhead(&runs[1], &runs[0], PEAK));
    }
    rows.splice(
        0..0,
        [
            floor(
                "regions_geomean",
                "x",
                &Rounds::geometric_mean(&overheads),
                7.0,
            ),
            floor("regions_max", "x", worst(&overheads), 20.0),
            floor(
                "regions_memory_geomean",
                "x",
                &Rounds::geometric_mean(&peaks),
                1.5,
            ),
        ],
    );
    rows.push(beside_reference(&built)?);
    Ok(rows)
}

/// The time that sets for each open region take, over ours, in one program; the answers agree.
fn beside_reference(built: &Built) -> Result<Comparison, Failure> {
    let case = case(built, "deep", 1);
    let (program, words) = case.ways[1].split_first().ok_or("no program")?;
    let run = |events: Option<&std::path::Path>| -> Result<f64, Failure> {
        let mut command = Command::new(program);
        command.args(words).args(&case.words).stdout(Stdio::null());
        if let Some(events) = events {
            command.env("CCSCOPE_EVENTS", events);
        }
        let started = Instant::now();
        let status = command.status()?;
        let seconds = started.elapsed().as_secs_f64();
        match status.success() {
            true => Ok(seconds),
            false => Err(format!("{command:?}: {status}").into()),
        }
    };
    let ours = run(None)?;
    let events = built.scratch.path().join("events");
    run(Some(&events))?;
    let bytes = std::fs::read(events)?;
    let started = Instant::now();
    let regions = reference::regions(&bytes);
    let theirs = started.elapsed().as_secs_f64();
    if regions.is_empty() {
        return Err("the reference has found no regions".into());
    }
    let [ours, theirs] = [ours, theirs].map(|seconds| Rounds::new(vec![1e3 * seconds]));
    Ok(Comparison::new(
        "regions_vs_reference",
        "exact sets",
        "ms",
        &ours,
        &theirs,
    ))
}
