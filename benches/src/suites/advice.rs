//! Whether `ccscope advise` is right: the programs of `tests/advice`, as they are and with the
//! change that their kind of advice asks for, in turns.
//!
//! A call is about the piece of advice of the kind that the program's change is of: worth it or
//! not. The clock confirms "worth it" if the program with the change takes less time, by more than
//! its [noise](Noise); it confirms "not worth it" if it does not take less than a tenth less, by as
//! much. Times are the processor's, of the whole process. Those of hints and morphs are compared
//! with `CcMalloc` alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ccmodel::{CalibrateOptions, Machine};
use serde_json::Value;

use super::advice_profiles::held;
use super::scope::{Built, INSTRUMENTED, done};
use crate::rounds::Rounds;
use crate::sys::children_seconds;
use crate::timing::turns;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload, agree};

/// One access in so many is recorded, so that windows are as many as fit.
const RATE: &str = "--rate=40";
/// Structs of published crates, by what `plain` calls a run that uses many of one.
const STRUCTS: [&str; 5] = ["KdTree", "NodeData", "Waypoint", "Point", "Item"];
/// What is worth it, as `ccscope` has it.
const WORTH_IT: f64 = 1.1;

/// A line of `plain --list`.
struct Program {
    name: String,
    kind: String,
    /// Which of the changes of its kind, if there are several.
    api: Option<String>,
    binary: String,
}

impl Program {
    fn read(line: &str) -> Option<Program> {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let kind = words.next()?.trim_start_matches('!');
        let (kind, api) = match kind.split_once(':') {
            Some((kind, api)) => (kind, Some(api.to_owned())),
            None => (kind, None),
        };
        Some(Program {
            name,
            kind: kind.to_owned(),
            api,
            binary: words.next()?.to_owned(),
        })
    }

    /// Whether a piece of advice is what its change does.
    fn is_about(&self, item: &Value) -> bool {
        let code = item["code"].as_str().unwrap_or_default();
        let apis = ["get_many", "FrozenCTree", "CTree"];
        let of_code = apis.into_iter().find(|api| code.contains(api));
        let is_it = |api: &str| of_code.is_some_and(|of_code| api.starts_with(of_code));
        item["kind"] == *self.kind && self.api.as_ref().is_none_or(|api| is_it(api))
    }
}

/// What came out for a program.
struct Outcome {
    name: String,
    /// Time before and after, by round.
    measured: Rounds,
    predicted: Option<f64>,
    worth_it: bool,
    is_right: bool,
    what: String,
}

/// All programs, and what they say of the advice.
pub(super) fn judge(workload: &Workload, effort: &Effort) -> Rows {
    let (built, machine) = prepared()?;
    let list = Command::new(built.folder.join("plain"))
        .arg("--list")
        .output()?;
    let list = String::from_utf8(list.stdout)?;
    let programs = list.lines().filter_map(Program::read);
    let wanted = |program: &Program| {
        let name = format!("advice_of_{}", program.name);
        effort
            .only
            .as_ref()
            .is_none_or(|only| *only == workload.name || *only == name)
    };
    let mut outcomes = Vec::new();
    for (number, program) in programs.filter(wanted).enumerate() {
        if number == 0 {
            built.instrument(instrumented(&program.name).split(' '))?;
        }
        outcomes.push(outcome(&built, &program, &machine, effort)?);
    }
    Ok(rows(workload, &outcomes))
}

/// The programs, and what the caches of this machine cost.
fn prepared() -> Result<(Built, PathBuf), Failure> {
    let built = Built::of("-p ccscope -p advice-programs --features published")?;
    let machine = built.scratch.path().join("machine.json");
    let calibrated = Machine::calibrate(CalibrateOptions::quick());
    std::fs::write(&machine, calibrated.to_json())?;
    Ok((built, machine))
}

/// A short run, which builds what others run.
fn instrumented(name: &str) -> String {
    format!("-p advice-programs --features published --bin plain -- {name} before 0.01")
}

fn outcome(
    built: &Built,
    program: &Program,
    machine: &Path,
    effort: &Effort,
) -> Result<Outcome, Failure> {
    let rounds = effort.process_rounds.max(3) | 1;
    let (mut times, mut expected) = ([Vec::new(), Vec::new(), Vec::new()], None);
    // What hints and morphs gain is what they gain beyond the allocator that they need.
    let variants = [
        (&*program.binary, "before"),
        (&*program.binary, "after"),
        ("plain", "before"),
    ];
    let is_plain = program.binary == "plain";
    for which in turns(rounds, if is_plain { 2 } else { 3 }) {
        let (binary, version) = variants[which];
        let mut command = Command::new(built.folder.join(binary));
        command
            .args([&program.name, version])
            .stderr(Stdio::inherit());
        let started = children_seconds();
        let output = command.output()?;
        times[which].push(children_seconds() - started);
        let sum = String::from_utf8_lossy(&output.stdout);
        let sum = u64::from_str_radix(sum.trim(), 16)?;
        agree(&mut expected, sum, &program.name, version)?;
    }
    let [before, after, plain] = &times;
    let recorded = if is_plain { before } else { plain };
    let seconds = Rounds::new(recorded.clone()).median();
    let ratios = before
        .iter()
        .zip(after)
        .map(|(before, after)| before / after);
    let measured = Rounds::new(ratios.collect());
    let items = advised(built, &program.name, machine, Some(seconds))?;
    let estimate = |item: &Value| item["speedup"]["estimate"].as_f64();
    let item = { items.iter().filter(|item| program.is_about(item)) }.max_by(|a, b| {
        estimate(a)
            .partial_cmp(&estimate(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let worth_it = item.is_some_and(|item| item["worth_it"] == true);
    let noise = Noise::of(&measured);
    let is_right = match worth_it {
        true => measured.median() > 1.0 + noise.0,
        false => measured.median() < WORTH_IT + noise.0,
    };
    let change = program.api.as_ref().unwrap_or(&program.kind);
    Ok(Outcome {
        name: program.name.clone(),
        predicted: item.and_then(estimate),
        worth_it,
        is_right,
        what: format!(
            "the clock; {change}: {}{}",
            if worth_it { "worth it" } else { "not worth it" },
            if is_right { "" } else { ", WRONG" }
        ),
        measured,
    })
}

/// What `ccscope advise` says of a run of `plain NAME before`.
fn advised(
    built: &Built,
    name: &str,
    machine: &Path,
    seconds: Option<f64>,
) -> Result<Vec<Value>, Failure> {
    let mut run = Command::new(built.folder.join("ccscope"));
    run.args(["run", "--quiet", RATE, "--output"])
        .arg(built.profile());
    run.arg(built.folder.join(INSTRUMENTED).join("plain"));
    done(run.args([name, "before"]).stdout(Stdio::null()))?;
    let mut advise = Command::new(built.folder.join("ccscope"));
    advise.args(["advise", "--json", "--machine"]).arg(machine);
    if let Some(seconds) = seconds {
        advise.args(["--seconds", &seconds.to_string()]);
    }
    let output = advise.arg(built.profile()).output()?;
    match serde_json::from_slice(&output.stdout)? {
        Value::Object(mut advice) => match advice.remove("advice") {
            Some(Value::Array(items)) => Ok(items),
            _ => Err("no advice".into()),
        },
        _ => Err("no advice".into()),
    }
}

/// Second-level misses with the advised order of fields over today's, by replay, of structs of
/// published crates. Where no order is advised, they stay.
pub(super) fn fields_misses(workload: &Workload, _: &Effort) -> Rows {
    let (built, machine) = prepared()?;
    built.instrument(instrumented("KdTree").split(' '))?;
    let mut rows = Vec::new();
    for name in STRUCTS {
        let items = advised(&built, name, &machine, None)?;
        let is_order = |item: &&Value| {
            let what = item["what"].as_str().unwrap_or_default();
            let of = format!("order the fields of {name}");
            item["kind"] == "field-order" && what.starts_with(&of)
        };
        let left = items.iter().find(is_order).and_then(|item| {
            let misses = |when: &str| item["misses"][1][when].as_f64();
            Some(misses("after")? / misses("before")?)
        });
        let row = format!("{}_of_{name}", workload.name);
        rows.push(held(&row, "x", left.unwrap_or(1.0), 0.9));
    }
    let each: Vec<Rounds> = rows.iter().map(|row| Rounds::once(row.ours)).collect();
    let mean = Rounds::geometric_mean(&each);
    rows.insert(0, held(workload.name, "x", mean.median(), 0.9));
    Ok(rows)
}

/// How far the median of ratios may be from the truth: half of their middle half, at least a
/// fiftieth.
struct Noise(f64);

impl Noise {
    fn of(ratios: &Rounds) -> Noise {
        let spread = crate::rounds::Spread::of(ratios.each().iter().copied());
        Noise(
            spread
                .map_or(0.0, |it| (it.upper - it.lower) / 2.0)
                .max(0.02),
        )
    }
}

fn rows(workload: &Workload, outcomes: &[Outcome]) -> Vec<Comparison> {
    let once = |name: &str, unit: &str, ours: f64, wanted: f64| {
        Comparison::new(
            name,
            "the floor",
            unit,
            &Rounds::once(ours),
            &Rounds::once(wanted),
        )
    };
    // Less is better only for the error.
    let least = |name: &str, unit: &str, ours: f64, wanted: f64| Comparison {
        ratio: ours / wanted,
        ..once(name, unit, ours, wanted)
    };
    let mut rows: Vec<Comparison> = { outcomes.iter() }
        .map(|outcome| {
            let name = format!("advice_of_{}", outcome.name);
            let predicted = Rounds::once(outcome.predicted.unwrap_or(1.0));
            Comparison::new(name, &outcome.what, "x", &predicted, &outcome.measured)
        })
        .collect();
    if outcomes.len() < 2 {
        return rows;
    }
    let right = outcomes.iter().filter(|it| it.is_right).count() as f64 / outcomes.len() as f64;
    let followed = || {
        { outcomes.iter() }
            .filter(|it| it.worth_it)
            .map(|it| it.measured.median())
    };
    let errors: Vec<f64> = { outcomes.iter() }
        .filter_map(|it| Some((it.predicted? / it.measured.median()).ln().abs()))
        .collect();
    let error = (errors.iter().sum::<f64>() / errors.len().max(1) as f64).exp();
    rows.extend([
        least(workload.name, "of the calls", right, 0.95),
        least(
            "advice_worst",
            "x",
            followed().fold(f64::INFINITY, f64::min),
            0.98,
        ),
        once("advice_gain_error", "x", error, 1.25),
        least("advice_best_gain", "x", followed().fold(0.0, f64::max), 2.0),
    ]);
    rows
}
