//! What it costs to attach `ccscope` to programs that run: for how long they stand still, and how
//! much slower they are from then on.

use std::fs;

use super::scope::{Built, Case, PROCESSOR, PROGRAMS, floor, measure, overhead, rounds};
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Rows, Workload};

/// Starts a program and attaches to it as soon as that can be done. What the program does until
/// then, some hundredths of a second, is not profiled.
const ATTACHED: &str = "\
tool=$1 profile=$2 said=$3; shift 3
\"$@\" & program=$!
\"$tool\" attach $program --verbose --output \"$profile\" 2>>\"$said\" &
wait $program; status=$?; wait; exit $status";

/// The longest stop, and the mean of how much longer the programs take.
pub(super) fn attached(workload: &Workload, effort: &Effort) -> Rows {
    let built = Built::of("-p ccscope -p subjects")?;
    let said = built.scratch.path().join("said");
    let script = ["sh", "-c", ATTACHED, "sh"].map(str::to_owned);
    let words = built.way(&format!("PROFILER PROFILE {}", said.display()), "subjects");
    let ways = [
        built.way("", "subjects"),
        script.into_iter().chain(words).collect(),
    ];
    let (mut rows, mut overheads) = (Vec::new(), Vec::new());
    for (name, [quick, full]) in PROGRAMS {
        let case = Case {
            name: name.to_owned(),
            ways: ways.to_vec(),
            words: vec![
                name.to_owned(),
                "1".to_owned(),
                effort.scale.pick(quick, full).to_string(),
            ],
            threads: 1,
        };
        let runs = measure(&case, effort.process_rounds.div_ceil(3))?;
        overheads.push(overhead(&runs[1], &runs[0], PROCESSOR));
        let [with, without] = [1, 0].map(|way| rounds(&runs[way], PROCESSOR));
        let name = format!("{}_of_{name}", workload.name);
        rows.push(Comparison::new(name, "not profiled", "ms", &with, &without));
    }
    let text = fs::read_to_string(&said)?;
    let stops = text.lines().filter_map(|line| {
        let (_, time) = line.split_once(" was stopped for ")?;
        time.trim_end_matches(" ms").parse::<f64>().ok()
    });
    let longest = stops.reduce(f64::max).ok_or("no program was attached to")?;
    let mean = Rounds::geometric_mean(&overheads);
    rows.push(floor(
        &format!("{}_geomean", workload.name),
        "x",
        &mean,
        1.3,
    ));
    let longest = Rounds::new(vec![longest]);
    rows.push(floor(
        &format!("{}_pause_ms", workload.name),
        "ms",
        &longest,
        100.0,
    ));
    Ok(rows)
}
