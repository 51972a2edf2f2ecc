//! Whether `ccscope advise` is right: the programs of `tests/advice`, as they are and with each
//! change that was made of them, in turns.
//!
//! All versions have the allocator that the tool offers first, so that a change gains what it adds
//! to that; the profile is of the program as it was written, with the standard library's. Times are
//! the processor's, of the whole process. Thresholds and exponents are fitted to the programs of
//! the training half; the floors hold for the other half.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ccmodel::{CalibrateOptions, Machine};
use ccscope::advice::fitted;
use serde_json::Value;

use super::advice_profiles::held;
use super::improve::{at_least, ratios};
use super::scope::{Built, INSTRUMENTED, done};
use crate::rounds::{Rounds, Spread};
use crate::sys::children_seconds;
use crate::timing::turns;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload, agree};

/// One access in so many is recorded, so that windows are as many as fit.
pub(super) const RATE: &str = "--rate=40";
/// Structs of published crates, by what `plain` calls a run that uses many of one.
const STRUCTS: [&str; 5] = ["KdTree", "NodeData", "Waypoint", "Point", "Item"];
/// What is worth it, as `ccscope` has it.
const WORTH_IT: f64 = 1.1;
/// A change that gains so much is to be among the first [`FIRST`].
const TO_BE_FOUND: f64 = 1.2;
const FIRST: usize = 3;
/// The weight of a try that confirms today's exponent: few rows move it little.
const PRIOR: f64 = 0.2;
/// Ranges hold for this part of tries.
const RANGE_PART: f64 = 0.8;

/// A line of `plain --list`.
pub(super) struct Program {
    pub(super) name: String,
    pub(super) is_test: bool,
    pub(super) size: usize,
    changes: Vec<String>,
}

impl Program {
    fn read(line: &str) -> Option<Program> {
        let mut words = line.split(' ');
        Some(Program {
            name: words.next()?.to_owned(),
            is_test: words.next()? == "test",
            size: words.next()?.parse().ok()?,
            changes: words.next()?.split(',').map(str::to_owned).collect(),
        })
    }

    pub(super) fn all(built: &Built) -> Result<Vec<Program>, Failure> {
        let mut list = Command::new(built.folder.join("plain"));
        let list = list.arg("--list").output()?;
        let list = String::from_utf8(list.stdout)?;
        Ok(list.lines().filter_map(Program::read).collect())
    }
}

/// Whether a piece of advice is what a change does: `KIND`, or `KIND:WORD` where it must name more.
fn is_about(item: &Value, change: &str) -> bool {
    let (kind, word) = change.split_once(':').unwrap_or((change, ""));
    let text = |member: &str| item[member].as_str().unwrap_or_default();
    let apis = ["get_many", "FrozenCTree", "CTree"];
    let is_named = match (
        kind,
        apis.into_iter().find(|api| text("code").contains(api)),
    ) {
        ("container", Some(api)) => word.starts_with(api),
        _ => [text("what"), text("code")]
            .iter()
            .any(|it| it.contains(word)),
    };
    item["kind"] == *kind && is_named
}

/// What the tool says of a change.
struct Said {
    /// Its place among the advice, the allocator left out.
    place: usize,
    worth_it: bool,
    /// The ends of the range, and the estimate between them.
    gain: Option<[f64; 3]>,
}

impl Said {
    fn of(items: &[Value], change: &str) -> Option<Said> {
        let others = items.iter().filter(|item| item["kind"] != "allocator");
        let (place, item) = others
            .enumerate()
            .find(|(_, item)| is_about(item, change))?;
        let speedup = ["low", "estimate", "high"].map(|it| item["speedup"][it].as_f64());
        Some(Said {
            place,
            worth_it: item["worth_it"] == true,
            gain: match speedup {
                // An idea has no gain.
                [Some(low), Some(estimate), Some(high)] if item["kind"] != "idea" => {
                    Some([low, estimate, high])
                }
                _ => None,
            },
        })
    }

    /// A gain, or what was not tried and is offered.
    fn is_offered(&self) -> bool {
        self.worth_it || self.gain.is_none()
    }
}

/// A change of a program.
struct Try {
    change: String,
    said: Option<Said>,
    /// Time without over time with it, by round.
    measured: Rounds,
}

impl Try {
    /// How far the median may be from the truth: half of the middle half, at least a fiftieth.
    fn noise(&self) -> f64 {
        let spread = Spread::of(self.measured.each().iter().copied());
        spread
            .map_or(0.0, |it| (it.upper - it.lower) / 2.0)
            .max(0.02)
    }

    fn gain(&self) -> f64 {
        self.measured.median()
    }

    fn predicted(&self) -> Option<[f64; 3]> {
        self.said.as_ref()?.gain
    }
}

/// A program with all its changes.
struct Judged {
    name: String,
    is_test: bool,
    /// Of the allocator alone.
    allocator: Rounds,
    tries: Vec<Try>,
}

impl Judged {
    /// The change that the tool would have a user make first, of those that the clock knows.
    fn advised(&self) -> Option<&Try> {
        let offered = |it: &&Try| it.said.as_ref().is_some_and(Said::is_offered);
        let place = |it: &&Try| it.said.as_ref().map(|said| said.place);
        self.tries.iter().filter(offered).min_by_key(place)
    }

    /// Each change with what it gains and what was predicted.
    fn in_words(&self) -> String {
        let tries = self.tries.iter().map(|it| {
            let said = match (&it.said, it.predicted()) {
                (_, Some([low, gain, high])) => format!("{gain:.2} ({low:.2} to {high:.2})"),
                (Some(_), None) => "an idea".to_owned(),
                (None, _) => "not said".to_owned(),
            };
            let place = match &it.said {
                Some(said) if said.is_offered() => format!(", advised at {}", said.place + 1),
                _ => String::new(),
            };
            format!("{} {:.2}, {said}{place}", it.change, it.gain())
        });
        let wrong = if self.is_right() { "right" } else { "WRONG" };
        format!("{wrong}; {}", tries.collect::<Vec<_>>().join("; "))
    }

    /// Whether what is advised gains, or nothing does where nothing is.
    fn is_right(&self) -> bool {
        match self.advised() {
            Some(it) => it.gain() > 1.0 + it.noise(),
            None => { self.tries.iter() }.all(|it| it.gain() < WORTH_IT + it.noise()),
        }
    }
}

/// All programs, and what they say of the advice.
pub(super) fn judge(workload: &Workload, effort: &Effort) -> Rows {
    let (built, machine) = prepared()?;
    let wanted = |program: &Program| {
        let name = format!("advice_of_{}", program.name);
        effort
            .only
            .as_ref()
            .is_none_or(|only| *only == workload.name || *only == name)
    };
    let mut programs = Program::all(&built)?;
    // The floors are of the test half: a run that is ended early has told of that.
    programs.sort_by_key(|it| !it.is_test);
    let mut judged = Vec::new();
    for (number, program) in programs.iter().filter(|it| wanted(it)).enumerate() {
        if number == 0 {
            built.instrument(instrumented(&program.name).split(' '))?;
        }
        let it = judged_program(&built, program, &machine, effort)?;
        eprintln!("{}: {}", it.name, it.in_words());
        judged.push(it);
    }
    Ok(rows(&judged))
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

fn judged_program(
    built: &Built,
    program: &Program,
    machine: &Path,
    effort: &Effort,
) -> Result<Judged, Failure> {
    let rounds = effort.process_rounds.max(3) | 1;
    let mut versions = vec![("plain", "before"), ("placed", "before")];
    versions.extend(program.changes.iter().map(|change| ("placed", &**change)));
    let (mut times, mut expected) = (vec![Vec::new(); versions.len()], None);
    for which in turns(rounds, versions.len()) {
        let (binary, version) = versions[which];
        let mut command = Command::new(built.folder.join(binary));
        command.args([&program.name, version]);
        let started = children_seconds();
        let output = command.stderr(Stdio::inherit()).output()?;
        times[which].push(children_seconds() - started);
        let sum = String::from_utf8_lossy(&output.stdout);
        let sum = u64::from_str_radix(sum.trim(), 16)?;
        agree(&mut expected, sum, &program.name, version)?;
    }
    let seconds = Rounds::new(times[0].clone()).median();
    let items = advised(built, &program.name, machine, Some(seconds))?;
    let tries = program.changes.iter().zip(&times[2..]);
    Ok(Judged {
        name: program.name.clone(),
        is_test: program.is_test,
        allocator: ratios(&times[0], &times[1]),
        tries: tries
            .map(|(change, after)| Try {
                change: change.clone(),
                said: Said::of(&items, change),
                measured: ratios(&times[1], after),
            })
            .collect(),
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

/// The rows of each program, and then the figures of both halves.
fn rows(judged: &[Judged]) -> Vec<Comparison> {
    let mut rows = Vec::new();
    for it in judged {
        let half = if it.is_test { "test" } else { "training" };
        let advised = it.advised().map(|it| &*it.change).unwrap_or("nothing");
        let wrong = if it.is_right() { "" } else { ", WRONG" };
        let what = format!("the clock; {half}: {advised} is advised{wrong}");
        let row = format!("advice_of_{}", it.name);
        for one in &it.tries {
            let predicted = one.predicted().map_or(1.0, |gain| gain[1]);
            let change = one.change.replace([':', '-'], "_");
            rows.push(Comparison::new(
                format!("{row}_{change}"),
                &what,
                "x",
                &Rounds::once(predicted),
                &one.measured,
            ));
        }
        let allocator = format!("{row}_allocator");
        rows.push(Comparison::new(
            allocator,
            &what,
            "x",
            &Rounds::once(1.0),
            &it.allocator,
        ));
    }
    let of_half = |is_test: bool| -> Vec<&Judged> {
        judged.iter().filter(|it| it.is_test == is_test).collect()
    };
    let [training, test] = [false, true].map(of_half);
    for (half, prefix) in [(&test, "advice"), (&training, "training")] {
        if half.len() >= 2 {
            rows.extend(figures(prefix, half));
        }
    }
    if training.len() >= 2 {
        rows.extend(fit(&training));
    }
    rows
}

/// What a half of the programs says.
fn figures(prefix: &str, half: &[&Judged]) -> Vec<Comparison> {
    let part = |yes: usize, all: usize| yes as f64 / all.max(1) as f64;
    let name = |what: &str| format!("{prefix}_{what}");
    let right = half.iter().filter(|it| it.is_right()).count();
    let tries = || half.iter().flat_map(|it| &it.tries);
    let is_first = |it: &Try| {
        it.said
            .as_ref()
            .is_some_and(|it| it.place < FIRST && it.is_offered())
    };
    let gaining = || tries().filter(|it| it.gain() >= TO_BE_FOUND);
    let found = gaining().filter(|it| is_first(it)).count();
    let predicted = || tries().filter_map(|it| Some((it, it.predicted()?)));
    let errors: Vec<f64> = predicted()
        .map(|(it, [_, gain, _])| (gain / it.gain()).ln().abs())
        .collect();
    let error = (errors.iter().sum::<f64>() / errors.len().max(1) as f64).exp();
    let holds = |(it, [low, _, high]): &(&Try, [f64; 3])| {
        let (gain, noise) = (it.gain(), it.noise());
        low - noise <= gain && gain <= high + noise
    };
    let held_ranges = predicted().filter(holds).count();
    let followed = || half.iter().filter_map(|it| it.advised()).map(Try::gain);
    vec![
        at_least(
            &name("right"),
            "of the programs",
            part(right, half.len()),
            0.95,
        ),
        at_least(
            &name("found"),
            "of the changes",
            part(found, gaining().count()),
            0.8,
        ),
        held(&name("gain_error"), "x", error, 1.25),
        at_least(
            &name("range_holds"),
            "of the tries",
            part(held_ranges, errors.len()),
            RANGE_PART,
        ),
        at_least(
            &name("worst"),
            "x",
            followed().fold(f64::INFINITY, f64::min),
            0.98,
        ),
        at_least(&name("best_gain"), "x", followed().fold(0.0, f64::max), 2.0),
    ]
}

/// What the constants of `ccscope::advice::fitted` would be by these tries, against today's.
///
/// A measured gain is a power of the predicted one, with an exponent for each kind: least squares
/// of logarithms through the origin, with [`PRIOR`] in favour of today's. The factor of ranges is
/// that which holds [`RANGE_PART`] of all tries.
fn fit(training: &[&Judged]) -> Vec<Comparison> {
    let logs = |it: &Try| {
        let [_, gain, _] = it.predicted()?;
        Some((gain.ln(), it.gain().ln()))
    };
    let tries = || training.iter().flat_map(|it| &it.tries);
    let row = |name: String, fitted: f64, today: f64| {
        let [ours, theirs] = [fitted, today].map(Rounds::once);
        Comparison::new(name, "today's", "", &ours, &theirs)
    };
    let mut rows = Vec::new();
    for (kind, today) in fitted::EXPONENTS {
        let kind = serde_json::to_value(kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default();
        let of_kind = |it: &&Try| it.change.split(':').next() == Some(kind);
        let (mut squares, mut products) = (PRIOR, PRIOR);
        for (x, y) in tries().filter(of_kind).filter_map(logs) {
            squares += x * x;
            products += x * y;
        }
        let name = format!("advice_fit_{}", kind.replace('-', "_"));
        rows.push(row(name, today * products / squares, today));
    }
    let mut errors: Vec<f64> = { tries().filter_map(logs) }
        .map(|(x, y)| (x - y).abs().exp())
        .collect();
    errors.sort_by(f64::total_cmp);
    // Four fifths are at most that, which is RANGE_PART.
    if let Some(&error) = errors.get(errors.len() * 4 / 5) {
        rows.push(row("advice_fit_range".to_owned(), error, fitted::RANGE));
    }
    rows
}
