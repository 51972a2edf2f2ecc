//! The binary: each command, and each mistake that it refuses.

mod machines;
mod predict;
mod simulate;

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::NamedTempFile;

/// Runs `model` with the words of a command line.
fn model(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_model"));
    command.args(line.split_whitespace()).output().unwrap()
}

/// Runs a command that must succeed quietly; its standard output.
fn answer(line: &str) -> String {
    let output = model(line);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{line}: {err}");
    assert!(err.is_empty(), "{line}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command that must succeed with one JSON object.
fn json(line: &str) -> Value {
    serde_json::from_str(&answer(&format!("{line} --json"))).unwrap()
}

/// Runs a command that must be refused with one line; that line.
fn refusal(line: &str) -> String {
    let output = model(line);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{line}: {err}");
    assert_eq!(err.lines().count(), 1, "{line}: {err}");
    assert!(err.starts_with("model: "), "{line}: {err}");
    assert!(output.stdout.is_empty(), "{line}");
    err
}

/// A number of an object, by the names of fields or the indices of elements.
fn number(object: &Value, path: &str) -> f64 {
    let pointer = format!("/{}", path.replace('.', "/"));
    let value = object.pointer(&pointer).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("{path} is no number in {object}"))
}

/// A file that is removed at the end.
struct TempFile(NamedTempFile);

impl TempFile {
    fn new(text: &str) -> TempFile {
        let file = NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        TempFile(file)
    }

    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }
}

/// A small prediction, by the tier that takes least time: debug builds are slow.
const SMALL: &str = "predict --nodes 5000 --node-bytes 24 --tier footprint";
/// The same by the usual tier, on the thesis's machine.
const ANY_TIER: &str = "predict --nodes 5000 --node-bytes 24 --machine thesis";

#[test]
fn help_completions_and_manual_pages_are_answers() {
    for (line, fragment) in [
        ("--help", "calibrate"),
        ("--version", "model "),
        ("predict --help", "Examples:"),
        ("advise --help", "Examples:"),
        ("simulate --help", "Examples:"),
        ("completions --help", "Examples:"),
        ("man --help", "Examples:"),
        ("completions bash", "--node-bytes"),
        ("completions zsh", "advise"),
        ("completions fish", "simulate"),
        ("man", ".TH model 1"),
        ("man predict", ".TH model-predict 1"),
        ("topology", "L1 data"),
    ] {
        assert!(answer(line).contains(fragment), "{line}");
    }
}

/// Command lines, and what the refusal says. `SMALL` and `ANY_TIER` are the constants.
const REFUSED: &str = "
predikt                                         | predict
pre                                             | 'predict'
                                                | no command
completions dosh                                | dosh
completions                                     | SHELL
man predikt                                     | 'predict'
calibrate --quick -o no/such/folder/file        | no/such/folder/file
advise                                          | --nodes
advise --nodes 10 --now vebb                    | `veb`
advise --nodes 10 --operations -1               | -1
advise --nodes 10 --machine no/file             | no/file
advise --nodes 4e9 --machine zen4-server        | of memory
simulate --nodes 4e9 --machine zen4-server      | of memory
simulate --trace no/such/file --machine thesis  | no/such/file
simulate --trace x --nodes 5                    | --nodes
simulate --nodes 9 --operations 5 --searches 5  | --searches
predict --node-bytes 8                          | --nodes is missing
predict --nodes 0                               | at least one
predict --nodes 100 --node-bytes 0              | at least one
predict --nodes 4e9 --node-bytes 4000000000     | this machine has
predict --nodes 1 --node-bytes 99999999999      | more than can be predicted
predict --nodes 18446744073709551615            | at most 4294967294 nodes
predict --nodes 4294967295 --node-bytes 1       | at most 4294967294 nodes
predict --nodes -5                              | -5
predict --nodes many                            | whole number
predict --nodes 10 --searches 0                 | at least one
predict --nodes 10 --searches 10 --steady       | --steady
predict --structure edges:no/such/file          | no/such/file
predict --structure edges                       | name of a file
SMALL --machine no/such/file                    | no/such/file
SMALL --machine thesys                          | `thesis`
SMALL --layout vebb                             | `veb`
SMALL --layout dfs,cluster:48                   | power of two
SMALL --layout coloured:vebb                    | `veb`
SMALL --layout given                            | edges:FILE
SMALL --layout coloured:dfs --colour-share 1.5  | between 0 and 1
SMALL --layout coloured:dfs --machine thesis --colour-cache L9 | no cache called `L9`
SMALL --structure hash --layout eliminated      | without its links
SMALL --structure octree --layout eliminated    | 8 links
SMALL --jsn                                     | --json
SMALL --csv --json                              | --json
SMALL --pages 1g                                | 1g
SMALL --baseline vebb                           | `veb`
SMALL --sweep coloured                          | --plot
SMALL --plot no/such/folder/file.svg            | no/such/folder
SMALL --structure rope                          | rope
SMALL --structure bts                           | `bst`
SMALL --structure nary:0                        | links
SMALL --structure nary:many                     | number of children
SMALL --structure nary                          | number of children
SMALL --structure hash:0                        | load
SMALL --structure hash:nan                      | load
SMALL --structure hash:-1                       | load
SMALL --structure bst:3                         | takes nothing
SMALL --structure btree --fanout 2              | fanout
SMALL --structure btree --fill 0                | filled
SMALL --structure btree --fill nan              | filled
SMALL --structure btree --fill 1.5              | filled
SMALL --structure btree --key-bytes 99999999999 | --key-bytes
SMALL --structure hash --operation range:5      | no order
SMALL --operation serch                         | search
SMALL --operation range:0                       | at least 1
SMALL --operation range:x                       | range:M
SMALL --keys zipf                               | zipf:S
SMALL --keys zipf:-1                            | Zipf
SMALL --keys zipf:nan                           | Zipf
SMALL --keys hot:2:0.5                          | share
SMALL --keys hot:0.5                            | keys
SMALL --keys trace:no/such/file                 | keys
ANY_TIER --tier per_set                         | per-set
ANY_TIER --tier closed --layout dfs             | layout dfs
ANY_TIER --tier closed --shape random           | complete trees
ANY_TIER --tier closed --keys zipf:1            | uniform keys
ANY_TIER --tier closed --searches 10            | steady state
predict --nodes 6e8 --layout dfs,bfs --machine zen4-server --tier closed | dfs
";

#[test]
fn requests_that_make_no_sense_are_refused() {
    for case in REFUSED.trim_matches('\n').lines() {
        let (line, fragment) = case.rsplit_once(" | ").unwrap();
        let line = line.replace("SMALL", SMALL).replace("ANY_TIER", ANY_TIER);
        let refused = refusal(&line);
        assert!(refused.contains(fragment), "{line}: {refused}");
    }
    // A word that is like no name gets no suggestion.
    for option in ["--machine nope", "--layout nope"] {
        assert!(!refusal(&format!("{SMALL} {option}")).contains("did you mean"));
    }
}

/// Files with mistakes: the command line before the file's name, its text, and what the refusal
/// says.
#[test]
fn files_with_mistakes_are_refused_with_the_line() {
    let keys = format!("{SMALL} --keys trace:");
    let edges = "predict --structure edges:";
    let with_nodes = "predict --nodes 5 --structure edges:";
    let trace = "simulate --machine thesis --trace ";
    for (line, text, fragment) in [
        (keys.as_str(), "1\nx\n", "line 2"),
        (&keys, "5000\n", "line 1"),
        (&keys, "", "no key"),
        (edges, "a,b\nb,a\n", "line 2"),
        (edges, "a,c\nb,c\n", "line 2"),
        (edges, "a\n", "line 1"),
        (edges, "", "no edge"),
        (edges, "parent,child\n", "no edge"),
        (with_nodes, "a,b\n", "--nodes cannot"),
        (trace, " L 1000,8\n L zzz,8\n", "line 2"),
        (trace, " L 1000,0\n", "line 1"),
        (trace, " L 1000,8\n\n L 10", "line 3"),
        (trace, "", "no access"),
        (trace, "==12== Lackey\n", "no access"),
    ] {
        let file = TempFile::new(text);
        let refused = refusal(&format!("{line}{}", file.path()));
        assert!(refused.contains(fragment), "{line} {text:?}: {refused}");
    }
}
