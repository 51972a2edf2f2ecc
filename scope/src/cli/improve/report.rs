//! What `ccscope improve` prints and writes.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::analyses::misses::Interval;
use crate::cli::{CliError, runtime};
use crate::improve::gate::{Comparison, Ended, Setup, Stage, Verdict};
use crate::improve::rules::{self, Proposal};
use crate::improve::search::Found;
use crate::improve::sites;
use crate::views::text::{Table, escape, line, place, wrap};

const SCHEMA: &str = "ccscope-improve-1";
/// Columns of a path in the table.
const MAX_PATH: usize = 40;
/// Of so many sites it is said why they have no rule.
const MAX_REFUSED: usize = 3;
/// Colours of what gains and what does not.
const GREEN: u8 = 46;
const GREY: u8 = 244;

/// A search that has ended.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) program: &'a Path,
    pub(super) command: &'a [OsString],
    /// The value of `LD_PRELOAD`.
    pub(super) preloaded: &'a OsStr,
    pub(super) metric: &'a str,
    pub(super) is_steady: bool,
    pub(super) has_input: bool,
    pub(super) proposals: &'a [Proposal],
    /// How many allocations were seen, if that is too few to try anything.
    pub(super) allocations: Option<u64>,
    /// Sites for which no rule is proposed, those with most bytes alive first.
    pub(super) refused: &'a [Proposal],
    /// Function and line of each of them.
    pub(super) refused_places: Vec<Option<String>>,
    /// Function and line of each proposal.
    pub(super) places: Vec<Option<String>>,
    pub(super) found: &'a Found,
    pub(super) output: &'a Path,
}

impl Report<'_> {
    /// Writes the rules that are kept, if there are any.
    pub(super) fn write_rules(&self) -> Result<(), CliError> {
        let Some(kept) = self.found.kept.as_ref().filter(|kept| !kept.is_empty()) else {
            return Ok(());
        };
        let name = self
            .program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let head = [format!(
            "kept by ccscope improve for {name}; gains are of the whole program"
        )];
        let chosen: Vec<(&Proposal, String)> = { kept.iter() }
            .map(|&change| {
                let gain = self.introduced(change).and_then(|it| {
                    let base = match &it.base {
                        Setup::With(others) if others.is_empty() => "the allocator alone",
                        _ => "the other rules",
                    };
                    let gain = times_as(better(self.metric), it.gain?);
                    Some(format!("{gain} over {base}"))
                });
                let parts: Vec<String> = { gain.into_iter() }
                    .chain(self.places[change].clone())
                    .collect();
                (&self.proposals[change], parts.join("; "))
            })
            .collect();
        let written = runtime::replace(&absolute(self.output), &rules::write(&head, &chosen));
        let shown = self.output.display();
        Ok(written.map_err(|error| format!("cannot write {shown}: {error}"))?)
    }

    /// The first comparison that is about this rule alone: over the allocator, or over others.
    fn introduced(&self, change: usize) -> Option<&Comparison> {
        let mut all = self.found.comparisons.iter();
        all.find(|it| added(it) == [change])
    }

    /// The rule that a comparison is the first one about.
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
        let mut table = Table::new(&[">gain", ">interval", ">memory", "verdict", "change"]);
        for it in &self.found.comparisons {
            let gain = it.gain.map(|gain| format!("{:.2}", gain.estimate));
            let interval = it
                .gain
                .map(|gain| format!("{:.2} to {:.2}", gain.low, gain.high));
            let memory = it.memory.map(|memory| format!("{memory:.2}"));
            let cell = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            let (word, why) = verdict(&it.verdict);
            table.row(
                vec![
                    cell(gain),
                    cell(interval),
                    cell(memory),
                    word.to_owned(),
                    self.change(it),
                ],
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
        if let Some(words) = self.command_line() {
            line(&mut out, "", None);
            // Whole, to be copied.
            line(&mut out, &format!("    {words}"), None);
        }
        out
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
        if let Some(seen) = self.allocations {
            all.push(format!(
                "{seen} allocations of the program reach malloc: there is nothing to place. If it \
                 makes more, it brings an allocator of its own."
            ));
        } else if self.proposals.is_empty() && !self.refused.is_empty() {
            all.push(format!(
                "No rule was found: {}.",
                self.refusals().join("; ")
            ));
        }
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
            let rules = undecided.join(", ");
            all.push(format!("Undecided: {rules}. A larger --budget may tell."));
        }
        let rules = self.proposals.len();
        let what = match kept.len() {
            0 if rules == 0 => "The allocator alone pays off.".to_owned(),
            0 => "The allocator alone pays off, without rules.".to_owned(),
            kept => format!(
                "{kept} of {rules} rules are kept, in {}.",
                self.output.display()
            ),
        };
        let gain = match (self.total(), self.found.is_confirmed) {
            (Some(gain), true) => format!(
                " With this the program is {}:",
                times_as(better(self.metric), gain)
            ),
            (Some(gain), false) => format!(
                " With this the program is {}; {} was not confirmed by a second comparison:",
                times_as(better(self.metric), gain),
                if kept.is_empty() {
                    "that"
                } else {
                    "what the rules add"
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

    /// The first sites without a rule, and why.
    fn refusals(&self) -> Vec<String> {
        let first = self
            .refused
            .iter()
            .zip(&self.refused_places)
            .take(MAX_REFUSED);
        first
            .map(|(it, place)| {
                let place = place.iter().map(|place| format!(" in {place}"));
                let place = place.collect::<String>();
                format!("{}{place}, {}", escape(&it.rule()), escape(it.refusal()))
            })
            .collect()
    }

    /// What was not compared long enough, among the allocator and the rules alone.
    fn undecided(&self) -> Vec<String> {
        let is_open = |it: &&Comparison| match it.verdict {
            Verdict::Unclear => true,
            Verdict::NotTried(_) => matches!(it.stage, Stage::Allocator | Stage::Alone),
            _ => false,
        };
        let open = self.found.comparisons.iter().filter(is_open);
        open.filter_map(|it| match (it.stage, &it.setup) {
            (Stage::Allocator, _) if self.found.kept.is_none() => Some("the allocator".to_owned()),
            (Stage::Alone, Setup::With(changes)) => Some(format!("rule {}", changes.first()? + 1)),
            _ => None,
        })
        .collect()
    }

    /// How long a pair of runs takes, as far as it is known.
    fn pair(&self) -> Option<String> {
        let seconds = { self.found.comparisons.iter() }
            .map(|it| it.wall_s[0] + it.wall_s[1])
            .fold(0.0, f64::max);
        (seconds > 0.0).then(|| format!(", of {seconds:.1} s each"))
    }

    /// How the program is run with what is kept.
    fn command_line(&self) -> Option<String> {
        let kept = self.found.kept.as_ref()?;
        let rules = (!kept.is_empty()).then(|| {
            format!(
                "CCMALLOC_RULES={} ",
                quoted(absolute(self.output).as_os_str())
            )
        });
        let preload = format!("LD_PRELOAD={}", quoted(self.preloaded));
        let words: Vec<String> = self.command.iter().map(|word| quoted(word)).collect();
        let input = if self.has_input { " < INPUT" } else { "" };
        let rules = rules.unwrap_or_default();
        Some(format!("{rules}{preload} {}{input}", words.join(" ")))
    }

    /// Where a rule's objects are allocated, and why there is no figure.
    fn note(&self, it: &Comparison, why: Option<&str>) -> Option<String> {
        let place = self.introduces(it);
        let place = place.and_then(|change| self.places[change].clone());
        let parts: Vec<String> = place.into_iter().chain(why.map(escape)).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// What a comparison has tried, in words. Rules are numbered from 1.
    fn change(&self, it: &Comparison) -> String {
        let numbers = |changes: &[usize]| {
            let numbers: Vec<String> = changes.iter().map(|it| (it + 1).to_string()).collect();
            match numbers.len() {
                1 => format!("rule {}", numbers[0]),
                2.. if changes.windows(2).all(|pair| pair[0] + 1 == pair[1]) => {
                    format!("rules {} to {}", numbers[0], numbers[numbers.len() - 1])
                }
                _ => format!("rules {}", numbers.join(", ")),
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
                let rule = escape(&self.proposals[change].rules());
                format!("rule {}: {rule}", change + 1)
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
        let all = json!({
            "schema": SCHEMA,
            "command": self.command.iter().map(text).collect::<Vec<_>>(),
            "metric": self.metric,
            "steady_output": self.is_steady,
            "ended": self.found.ended,
            "allocations": self.allocations,
            "refused": self.refused.iter().zip(&self.refused_places).map(|(it, place)| json!({
                "site": it.rule(), "place": place, "why": it.refusal(), "seen": it.comment,
            })).collect::<Vec<_>>(),
            "tries": self.found.comparisons.iter().map(|it| self.try_json(it)).collect::<Vec<_>>(),
            "kept": {
                "allocator": kept.is_some(),
                "rules": kept.map_or(Vec::new(), |kept| self.rules(kept)),
                "gain": self.total(),
                "least": self.found.least,
                "confirmed": self.found.is_confirmed,
                "output": kept.filter(|kept| !kept.is_empty()).map(|_| absolute(self.output)),
                "command_line": self.command_line(),
            },
        });
        format!("{all}\n")
    }

    fn rules(&self, changes: &[usize]) -> Vec<String> {
        changes
            .iter()
            .map(|&change| self.proposals[change].rules())
            .collect()
    }

    fn try_json(&self, it: &Comparison) -> Value {
        let (word, why) = verdict(&it.verdict);
        let of = |setup: &Setup| match setup {
            Setup::AsIs => Value::Null,
            Setup::With(changes) => json!(self.rules(changes)),
        };
        let places = match &it.setup {
            Setup::With(changes) => changes.iter().map(|&it| self.places[it].as_ref()).collect(),
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
            let seen = |&change: &usize| {
                let proposal = &self.proposals[change];
                json!({
                    "allocations": proposal.allocations, "alive_bytes": proposal.alive_bytes,
                    "learned": proposal.comment,
                })
            };
            entry["features"] = changes.iter().map(seen).collect();
            entry["predicted"] = Value::Null;
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
    rules: usize,
    metric: &str,
) -> String {
    let what = match (base, setup) {
        (_, Setup::With(changes)) if changes.is_empty() => "the allocator alone".to_owned(),
        (Setup::With(others), Setup::With(changes)) if others.is_empty() && changes.len() == 1 => {
            format!("rule {} of {rules}", changes[0] + 1)
        }
        (_, Setup::With(changes)) => format!("{} rules together", changes.len()),
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

/// Where the proposals allocate, as far as symbols tell.
pub(super) fn places(
    proposals: &[Proposal],
    program: &Path,
    root: Option<&Path>,
) -> Vec<Option<String>> {
    let frames = sites::frames(proposals, Some(program)).into_iter();
    frames
        .map(|frame| Some(place(&frame?, root, MAX_PATH)))
        .collect()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A word as a shell takes it.
fn quoted(word: &OsStr) -> String {
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
