//! What `ccscope improve` prints and writes.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::analyses::misses::Interval;
use crate::cli::runtime;
use crate::improve::gate::{Comparison, Ended, MIN_GAIN, Setup, Stage, Verdict};
use crate::improve::search::Found;
use crate::views::text::{Table, escape, line, wrap};

const SCHEMA: &str = "ccscope-improve-1";
/// Colours of what gains and what does not.
const GREEN: u8 = 46;
const GREY: u8 = 244;

/// A change as it is named.
#[derive(Debug)]
pub(super) struct Change {
    /// In one line of the table.
    pub(super) text: String,
    /// Its function and line, or what else helps to find it.
    pub(super) place: Option<String>,
    /// The gain that a profile predicts.
    pub(super) predicted: Option<Interval>,
    /// What predictions are fitted to.
    pub(super) features: Value,
}

/// A search that has ended.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) program: &'a Path,
    pub(super) command: &'a [OsString],
    pub(super) metric: &'a str,
    pub(super) is_steady: bool,
    /// What a change is called.
    pub(super) noun: &'static str,
    pub(super) changes: &'a [Change],
    /// Sentences before what was found.
    pub(super) remarks: Vec<String>,
    pub(super) found: &'a Found,
    /// The file of what is kept, which has the allocator, too, if it `has_allocator`.
    pub(super) output: &'a Path,
    pub(super) has_allocator: bool,
    /// How the program is run with what is kept, or the file applied.
    pub(super) command_line: Option<String>,
    /// More members of the JSON.
    pub(super) more: Value,
}

impl Report<'_> {
    /// What a kept change gains over what, in words.
    pub(super) fn gain_of(&self, change: usize) -> Option<String> {
        let it = self.introduced(change)?;
        let base = match &it.base {
            Setup::With(others) if others.is_empty() => "the allocator alone".to_owned(),
            _ => format!("the other {}s", self.noun),
        };
        let gain = times_as(better(self.metric), it.gain?);
        Some(format!("{gain} over {base}"))
    }

    /// The first comparison that is about this change alone: over the allocator, or over others.
    fn introduced(&self, change: usize) -> Option<&Comparison> {
        let mut all = self.found.comparisons.iter();
        all.find(|it| added(it) == [change])
    }

    /// The change that a comparison is the first one about.
    fn introduces(&self, it: &Comparison) -> Option<usize> {
        let &[change] = &added(it)[..] else {
            return None;
        };
        std::ptr::eq(it, self.introduced(change)?).then_some(change)
    }

    /// The gain of what is kept over the program as it is.
    fn total(&self) -> Option<Interval> {
        let kept = Setup::With(self.found.kept.clone()?);
        let mut all = self.found.comparisons.iter().rev();
        all.find(|it| it.base == Setup::AsIs && it.setup == kept && it.gains())?
            .gain
    }

    pub(super) fn text(&self, width: usize, colour: bool) -> String {
        let mut out = String::new();
        let is_predicted = self.changes.iter().any(|change| change.predicted.is_some());
        let mut heads = vec![">gain", ">interval", ">memory", "verdict", "change"];
        if is_predicted {
            heads.insert(0, ">predicted");
        }
        let mut table = Table::new(&heads);
        for it in &self.found.comparisons {
            let gain = it.gain.map(|gain| format!("{:.2}", gain.estimate));
            let interval = it
                .gain
                .map(|gain| format!("{:.2} to {:.2}", gain.low, gain.high));
            let memory = it.memory.map(|memory| format!("{memory:.2}"));
            let cell = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let (word, why) = verdict(&it.verdict);
            let (memory, change) = (cell(memory), self.change(it));
            let mut cells = vec![cell(gain), cell(interval), memory, word.to_owned(), change];
            if is_predicted {
                let of = self
                    .introduces(it)
                    .and_then(|change| self.changes[change].predicted);
                cells.insert(0, cell(of.map(|it| format!("{:.2}", it.estimate))));
            }
            table.row(
                cells,
                self.note(it, why),
                Some(if it.gains() { GREEN } else { GREY }),
            );
        }
        if !self.found.comparisons.is_empty() {
            table.print(&mut out, width, colour);
            line(&mut out, "", None);
        }
        for text in self.sentences() {
            for wrapped in wrap(&text, width, 0) {
                line(&mut out, &wrapped, None);
            }
        }
        if let Some(words) = &self.command_line {
            line(&mut out, "", None);
            // Whole, to be copied.
            line(&mut out, &format!("    {words}"), None);
        }
        out
    }

    /// What gains, but takes more memory than is allowed.
    fn too_large(&self) -> Option<String> {
        let all = self.found.comparisons.iter();
        let single = all.filter(|it| added(it).len() == 1 && it.verdict == Verdict::Memory);
        let gaining = single.filter(|it| it.gain.is_some_and(|gain| gain.estimate >= MIN_GAIN));
        let most = gaining.filter_map(|it| it.memory).reduce(f64::max)?;
        Some(format!(
            "What takes too much memory may gain: --memory {:.1} allows it.",
            (most * 10.0).ceil() / 10.0
        ))
    }

    fn sentences(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.is_steady {
            all.push(
                "The program prints something else each time it runs: only its exit status and \
                 --check were compared."
                    .to_owned(),
            );
        }
        match self.found.ended {
            Some(Ended::Budget) => all.push("The budget ran out: --budget gives more.".to_owned()),
            Some(Ended::Interrupted) => all.push("Interrupted: the rest was not tried.".to_owned()),
            None => {}
        }
        all.extend(self.remarks.iter().cloned());
        all.extend(self.too_large());
        let undecided = self.undecided();
        let Some(kept) = &self.found.kept else {
            all.push(match undecided.is_empty() {
                true => "No change pays off.".to_owned(),
                false => format!(
                    "No change is known to pay off. Undecided: {}. A comparison takes three pairs \
                     of runs or more{}: give a larger --budget, or arguments with which the \
                     program runs for a shorter time.",
                    undecided.join(", "),
                    self.pair().unwrap_or_default(),
                ),
            });
            return all;
        };
        if !undecided.is_empty() {
            let undecided = undecided.join(", ");
            all.push(format!(
                "Undecided: {undecided}. A larger --budget may tell."
            ));
        }
        let (noun, tried, file) = (self.noun, self.changes.len(), self.output.display());
        let what = match kept.len() {
            0 if self.has_allocator => format!("The allocator alone pays off; {file} has it."),
            0 if tried == 0 => "The allocator alone pays off.".to_owned(),
            0 => format!("The allocator alone pays off, without {noun}s."),
            kept if self.has_allocator => {
                format!("The allocator and {kept} of {tried} {noun}s are kept, in {file}.")
            }
            kept => format!("{kept} of {tried} {noun}s are kept, in {file}."),
        };
        let gain = match (self.total(), self.found.is_confirmed) {
            (Some(gain), true) => format!(
                " With this the program is {}:",
                times_as(better(self.metric), gain)
            ),
            (Some(gain), false) => format!(
                " With this the program is {}; {} was not confirmed by a second comparison:",
                times_as(better(self.metric), gain),
                match kept.is_empty() {
                    true => "that".to_owned(),
                    false => format!("what the {noun}s add"),
                }
            ),
            (None, _) => format!(
                " By two comparisons the program is at least {:.2} times as {}; with both \
                 changes at once that was not measured:",
                self.found.least.unwrap_or(1.0),
                better(self.metric)
            ),
        };
        all.push(what + &gain);
        all
    }

    /// What was not compared long enough, among the allocator and the changes alone.
    fn undecided(&self) -> Vec<String> {
        let is_open = |it: &&Comparison| match it.verdict {
            Verdict::Unclear => true,
            Verdict::NotTried(_) => matches!(it.stage, Stage::Allocator | Stage::Alone),
            _ => false,
        };
        let is_nothing_kept = self.found.kept.is_none();
        let open = self.found.comparisons.iter().filter(is_open);
        let mut names: Vec<String> = open
            .filter_map(|it| match (it.stage, &it.setup) {
                // The second time, what gained at first.
                (Stage::Allocator | Stage::Last, Setup::With(changes))
                    if is_nothing_kept && changes.is_empty() =>
                {
                    Some("the allocator".to_owned())
                }
                (Stage::Last, Setup::With(_)) if is_nothing_kept && it.base == Setup::AsIs => {
                    Some("what gained at first".to_owned())
                }
                (Stage::Alone, Setup::With(changes)) => {
                    Some(format!("{} {}", self.noun, changes.first()? + 1))
                }
                _ => None,
            })
            .collect();
        let mut seen = BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    }

    /// How long a pair of runs takes, as far as it is known.
    fn pair(&self) -> Option<String> {
        let seconds = { self.found.comparisons.iter() }
            .map(|it| it.wall_s[0] + it.wall_s[1])
            .fold(0.0, f64::max);
        (seconds > 0.0).then(|| format!(", of {seconds:.1} s each"))
    }

    /// Where a change is made, and why there is no figure.
    fn note(&self, it: &Comparison, why: Option<&str>) -> Option<String> {
        let place = self.introduces(it);
        let place = place.and_then(|change| self.changes[change].place.clone());
        let parts: Vec<String> = place.into_iter().chain(why.map(escape)).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// What a comparison has tried, in words. Changes are numbered from 1.
    fn change(&self, it: &Comparison) -> String {
        let noun = self.noun;
        let numbers = |changes: &[usize]| {
            let numbers: Vec<String> = changes.iter().map(|it| (it + 1).to_string()).collect();
            match numbers.len() {
                1 => format!("{noun} {}", numbers[0]),
                3.. if changes.windows(2).all(|pair| pair[0] + 1 == pair[1]) => {
                    format!("{noun}s {} to {}", numbers[0], numbers[numbers.len() - 1])
                }
                _ => format!("{noun}s {}", numbers.join(", ")),
            }
        };
        let again = if it.stage == Stage::Last {
            "again: "
        } else {
            ""
        };
        let base = match &it.base {
            Setup::AsIs => ", over the program as it is".to_owned(),
            Setup::With(others) if !others.is_empty() => format!(" besides {}", numbers(others)),
            Setup::With(_) if self.introduces(it).is_some() => String::new(),
            Setup::With(_) => ", over the allocator".to_owned(),
        };
        let what = match (self.introduces(it), &it.base, &it.setup) {
            (Some(change), ..) => {
                format!(
                    "{noun} {}: {}",
                    change + 1,
                    escape(&self.changes[change].text)
                )
            }
            (_, _, Setup::With(changes)) if changes.is_empty() => "allocator".to_owned(),
            (_, Setup::AsIs, Setup::With(changes)) => format!("allocator and {}", numbers(changes)),
            (_, _, Setup::With(_)) => numbers(&added(it)),
            (_, _, Setup::AsIs) => "program as it is".to_owned(),
        };
        format!("{again}{what}{base}")
    }

    pub(super) fn json(&self) -> String {
        let kept = self.found.kept.as_ref();
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let mut all = json!({
            "schema": SCHEMA,
            "command": self.command.iter().map(text).collect::<Vec<_>>(),
            "metric": self.metric,
            "steady_output": self.is_steady,
            "ended": self.found.ended,
            "tries": self.found.comparisons.iter().map(|it| self.try_json(it)).collect::<Vec<_>>(),
            "kept": {
                "allocator": kept.is_some(),
                "rules": kept.map_or(Vec::new(), |kept| self.texts(kept)),
                "gain": self.total(),
                "least": self.found.least,
                "confirmed": self.found.is_confirmed,
                "output": kept.filter(|kept| !kept.is_empty()).map(|_| absolute(self.output)),
                "command_line": self.command_line,
            },
        });
        if let (Some(all), Some(more)) = (all.as_object_mut(), self.more.as_object()) {
            all.extend(more.clone());
        }
        format!("{all}\n")
    }

    fn texts(&self, changes: &[usize]) -> Vec<&str> {
        { changes.iter() }
            .map(|&change| &*self.changes[change].text)
            .collect()
    }

    fn try_json(&self, it: &Comparison) -> Value {
        let (word, why) = verdict(&it.verdict);
        let of = |setup: &Setup| match setup {
            Setup::AsIs => Value::Null,
            Setup::With(changes) => json!(self.texts(changes)),
        };
        let places = match &it.setup {
            Setup::With(changes) => changes
                .iter()
                .map(|&it| self.changes[it].place.as_ref())
                .collect(),
            Setup::AsIs => Vec::new(),
        };
        json!({
            "stage": it.stage, "base": of(&it.base), "setup": of(&it.setup), "places": places,
            "verdict": word, "why": why, "gain": it.gain, "memory": it.memory,
            "pairs": it.pairs, "wall_s": it.wall_s, "user_s": it.user_s,
        })
    }

    /// Appends each try to the log: what predictions are fitted to.
    pub(super) fn log(&self) -> Result<(), String> {
        let folder = data_folder().ok_or("set HOME or XDG_DATA_HOME")?;
        let path = folder.join("tries.jsonl");
        let time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut text = String::new();
        for it in &self.found.comparisons {
            let mut entry = self.try_json(it);
            let Setup::With(changes) = &it.setup else {
                continue;
            };
            let features = changes
                .iter()
                .map(|&change| self.changes[change].features.clone());
            entry["features"] = features.collect();
            entry["predicted"] = match added(it)[..] {
                [change] => json!(self.changes[change].predicted),
                _ => Value::Null,
            };
            entry["program"] = json!(self.program.file_name().map(OsStr::to_string_lossy));
            entry["metric"] = json!(self.metric);
            entry["time"] = json!(time.as_secs());
            text.push_str(&format!("{entry}\n"));
        }
        let write = || -> io::Result<()> {
            fs::create_dir_all(&folder)?;
            let file = fs::OpenOptions::new().append(true).create(true).open(&path);
            file?.write_all(text.as_bytes())
        };
        write().map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// `$XDG_DATA_HOME/ccscope`, by default `~/.local/share/ccscope`.
fn data_folder() -> Option<PathBuf> {
    let folder = runtime::absolute("XDG_DATA_HOME");
    let folder = folder.or_else(|| Some(runtime::absolute("HOME")?.join(".local/share")));
    Some(folder?.join("ccscope"))
}

/// The line that is shown meanwhile.
pub(super) fn progress(
    base: &Setup,
    setup: &Setup,
    known: Option<Interval>,
    (noun, count): (&str, usize),
    metric: &str,
) -> String {
    let what = match (base, setup) {
        (_, Setup::With(changes)) if changes.is_empty() => "the allocator alone".to_owned(),
        (Setup::With(others), Setup::With(changes)) if others.is_empty() && changes.len() == 1 => {
            format!("{noun} {} of {count}", changes[0] + 1)
        }
        (_, Setup::With(changes)) => format!("{} {noun}s together", changes.len()),
        (_, Setup::AsIs) => "the program as it is".to_owned(),
    };
    let gain = known.map(|gain| format!(": {}", times_as(better(metric), gain)));
    what + &gain.unwrap_or_default()
}

/// The changes of a setup that its base lacks.
fn added(it: &Comparison) -> Vec<usize> {
    let (Setup::With(others), Setup::With(changes)) = (&it.base, &it.setup) else {
        return Vec::new();
    };
    { changes.iter().copied() }
        .filter(|change| !others.contains(change))
        .collect()
}

/// A verdict's word, and why.
fn verdict(verdict: &Verdict) -> (&'static str, Option<&str>) {
    match verdict {
        Verdict::Gains => ("gains", None),
        Verdict::Loses => ("loses", None),
        Verdict::NoGain => ("no gain", None),
        Verdict::Unclear => ("unclear", None),
        Verdict::Memory => ("memory", None),
        Verdict::Wrong(why) => ("wrong", Some(why)),
        Verdict::NotTried(why) => ("not tried", Some(why)),
    }
}

/// What a program is that has gained, by the metric.
fn better(metric: &str) -> &'static str {
    match metric {
        "wall" | "user" | "cpu" => "fast",
        _ => "good",
    }
}

/// `1.31 times as fast (1.25 to 1.38)`.
fn times_as(better: &str, gain: Interval) -> String {
    let Interval {
        low,
        estimate,
        high,
    } = gain;
    format!("{estimate:.2} times as {better} ({low:.2} to {high:.2})")
}

pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_@%+=:,./-".contains(char);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gained_once_is_undecided() {
        let comparison = |stage, base, setup, verdict| Comparison {
            verdict,
            ..Comparison::not_tried(stage, base, setup, "")
        };
        let with = |changes: &[usize]| Setup::With(changes.to_vec());
        let of = |comparisons: Vec<Comparison>| {
            let found = Found {
                comparisons,
                ..Found::default()
            };
            let report = Report {
                program: Path::new("p"),
                command: &[],
                metric: "wall",
                is_steady: true,
                noun: "change",
                changes: &[],
                remarks: Vec::new(),
                found: &found,
                output: Path::new("p"),
                has_allocator: true,
                command_line: None,
                more: Value::Null,
            };
            report.undecided()
        };
        use Verdict::{Gains, NoGain, Unclear};
        let first = |verdict| comparison(Stage::Allocator, Setup::AsIs, with(&[]), verdict);
        let alone = |verdict| comparison(Stage::Alone, with(&[]), with(&[1]), verdict);
        let last = |set: &[usize]| comparison(Stage::Last, Setup::AsIs, with(set), Unclear);
        assert_eq!(of(vec![first(NoGain), alone(NoGain)]), [""; 0]);
        assert_eq!(of(vec![first(Gains), last(&[])]), ["the allocator"]);
        let all = of(vec![first(Unclear), alone(Unclear), last(&[])]);
        assert_eq!(all, ["the allocator", "change 2"]);
        let all = of(vec![first(Gains), alone(Gains), last(&[1])]);
        assert_eq!(all, ["what gained at first"]);
    }

    #[test]
    fn words_are_quoted_for_shells() {
        for (word, expected) in [
            ("./a-b_c.1", "./a-b_c.1"),
            ("--x=1", "--x=1"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME*", "'$HOME*'"),
        ] {
            assert_eq!(quoted(OsStr::new(word)), expected);
        }
    }
}
