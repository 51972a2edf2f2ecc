//! What it costs to attach `ccscope` to programs that run: for how long they stand still, and how
//! much slower they are from then on.

use std::fs;

use super::scope::{
    Built, Case, PEAK, PROCESSOR, PROFILED, PROGRAMS, Run, Way, floor, measure, overhead, rounds,
};
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload};

/// Starts a program and attaches to it as soon as that can be done. What the program does until
/// then, some hundredths of a second, is not profiled.
const ATTACHED: &str = "\
tool=$1 profile=$2 said=$3; shift 3
\"$@\" & program=$!
\"$tool\" attach $program --verbose --output \"$profile\" 2>>\"$said\" &
wait $program; status=$?; wait; exit $status";

/// Runs of a program without the tool, and with it.
type Pair = [Vec<Run>; 2];

/// The longest stop, and the mean of how much longer the programs take.
pub(super) fn attached(workload: &Workload, effort: &Effort) -> Rows {
    let built = Built::of("-p ccscope -p subjects")?;
    let said = built.scratch.path().join("said");
    let script = ["sh", "-c", ATTACHED, "sh"].map(str::to_owned);
    let words = built.way(&format!("PROFILER PROFILE {}", said.display()), "subjects");
    let way = script.into_iter().chain(words).collect();
    let (mut rows, runs) = compared(
        workload,
        &built,
        way,
        effort.process_rounds.div_ceil(3),
        effort,
    )?;
    rows.push(mean(workload, &runs, 1.3));
    let text = fs::read_to_string(&said)?;
    let stops = text.lines().filter_map(|line| {
        let (_, time) = line.split_once(" was stopped for ")?;
        time.trim_end_matches(" ms").parse::<f64>().ok()
    });
    let longest = stops.reduce(f64::max).ok_or("no program was attached to")?;
    let longest = Rounds::new(vec![longest]);
    rows.push(floor(
        &format!("{}_pause_ms", workload.name),
        "ms",
        &longest,
        100.0,
    ));
    Ok(rows)
}

/// What sampling costs: the mean of how much longer the programs take, and the most memory.
pub(super) fn sampled(workload: &Workload, effort: &Effort) -> Rows {
    let built = Built::of("-p ccscope -p subjects")?;
    let way = built.way(&format!("{PROFILED} --sample"), "subjects");
    let (mut rows, runs) = compared(workload, &built, way, effort.process_rounds, effort)?;
    rows.push(mean(workload, &runs, 1.02));
    let more = |[without, with]: &Pair| {
        let [without, with] = [without, with].map(|runs| rounds(runs, PEAK).median());
        with - without
    };
    let most = Rounds::new(vec![runs.iter().map(more).fold(0.0, f64::max)]);
    let name = format!("{}_memory_mib", workload.name);
    rows.push(floor(&name, "MiB", &most, 16.0));
    Ok(rows)
}

/// Programs without the tool and in this `way`, in turns: rows of each, and the runs.
fn compared(
    workload: &Workload,
    built: &Built,
    way: Way,
    turns: usize,
    effort: &Effort,
) -> Result<(Vec<Comparison>, Vec<Pair>), Failure> {
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    for (name, [quick, full]) in PROGRAMS {
        let case = Case {
            name: name.to_owned(),
            ways: vec![built.way("", "subjects"), way.clone()],
            words: vec![
                name.to_owned(),
                "1".to_owned(),
                effort.scale.pick(quick, full).to_string(),
            ],
            threads: 1,
        };
        let runs = <[_; 2]>::try_from(measure(&case, turns)?).expect("there are two ways");
        let [without, with] = [0, 1].map(|way| rounds(&runs[way], PROCESSOR));
        let name = format!("{}_of_{name}", workload.name);
        rows.push(Comparison::new(name, "not profiled", "ms", &with, &without));
        all.push(runs);
    }
    Ok((rows, all))
}

/// The mean of how much longer the programs take.
fn mean(workload: &Workload, runs: &[Pair], largest: f64) -> Comparison {
    let overheads: Vec<Rounds> = { runs.iter() }
        .map(|[without, with]| overhead(with, without, PROCESSOR))
        .collect();
    let mean = Rounds::geometric_mean(&overheads);
    floor(&format!("{}_geomean", workload.name), "x", &mean, largest)
}
