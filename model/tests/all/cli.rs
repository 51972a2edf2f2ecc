//! The binary: each command, each way to get it wrong.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use ccmodel::Machine;
use serde_json::Value;

fn model(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_model"))
        .args(args)
        .output()
        .unwrap()
}

/// Runs a command that must succeed quietly; its standard output.
fn answer(args: &[&str]) -> String {
    let output = model(args);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {err}");
    assert!(err.is_empty(), "{args:?}: {err}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&answer(args)).unwrap()
}

/// Runs a command that must be refused with one line; that line.
fn refusal(args: &[&str]) -> String {
    let output = model(args);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    assert!(err.starts_with("model: "), "{args:?}: {err}");
    assert!(output.stdout.is_empty(), "{args:?}");
    err
}

/// A file of this test run that is removed at the end.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, text: &str) -> TempFile {
        let path = std::env::temp_dir().join(format!("ccmodel-cli-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        TempFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // What cannot be removed is the system's to clean up.
        drop(fs::remove_file(&self.0));
    }
}

const SMALL: [&str; 5] = ["predict", "--nodes", "5000", "--node-bytes", "24"];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

#[test]
fn topology_names_sources() {
    let text = answer(&["topology"]);
    assert!(text.contains("L1 data"), "{text}");
    let object = json(&["topology", "--json"]);
    assert!(object["caches"][0]["source"].is_string());
    assert!(
        object["page_bytes"]["value"]
            .as_u64()
            .unwrap()
            .is_power_of_two()
    );
}

#[test]
fn the_documented_prediction_prints_misses_and_ns_for_each_layout() {
    let object = json(&[
        "predict",
        "--structure",
        "bst",
        "--nodes",
        "100001",
        "--node-bytes",
        "32",
        "--layout",
        "random,dfs,cluster,veb",
        "--json",
    ]);
    let rows = object["rows"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["layout"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["random", "dfs", "cluster", "veb"]);
    for row in rows {
        assert!(row["ns"].as_f64().unwrap() > 0.0);
        assert!(row["misses"]["L1"].as_f64().unwrap() > 0.0);
    }
    let speedup = |i: usize| rows[i]["speedup_vs_random"].as_f64().unwrap();
    assert!((speedup(0) - 1.0).abs() < 1e-9);
    assert!(speedup(3) > 1.0);
    assert_eq!(object["structure"]["nodes"], 100_001);
}

#[test]
fn speedups_are_relative_to_random_even_when_it_is_not_asked_for() {
    let with = json(&small(&[
        "--machine",
        "thesis",
        "--layout",
        "random,veb",
        "--json",
    ]));
    let without = json(&small(&[
        "--machine",
        "thesis",
        "--layout",
        "veb",
        "--json",
    ]));
    assert_eq!(with["rows"][1], without["rows"][0]);
    assert!(without["rows"][0]["speedup_vs_random"].as_f64().unwrap() > 1.0);
}

#[test]
fn thesis_formulas_stand_beside_ours() {
    let object = json(&[
        "predict",
        "--nodes",
        "2_097_151",
        "--node-bytes",
        "20",
        "--layout",
        "dfs,cluster,veb",
        "--machine",
        "thesis",
        "--thesis",
        "--json",
    ]);
    let rows = object["thesis"]["rows"].as_array().unwrap();
    assert_eq!(
        rows.len(),
        3,
        "veb is not in the thesis, the coloured tree is"
    );
    assert!((rows[0]["miss_rate"].as_f64().unwrap() - 0.571).abs() < 5e-4);
    assert!((rows[1]["miss_rate"].as_f64().unwrap() - 0.5).abs() < 1e-9);
    let text = answer(&small(&["--thesis"]));
    assert!(text.contains("formulas of the thesis"), "{text}");
}

#[test]
fn tables_have_a_line_for_each_layout() {
    let text = answer(&small(&[
        "--shape",
        "random",
        "--pages",
        "2m",
        "--machine",
        "thesis",
    ]));
    for name in [
        "random",
        "bfs",
        "dfs",
        "cluster",
        "veb",
        "cluster-veb",
        "hierarchical",
    ] {
        assert!(
            text.lines()
                .any(|line| line.starts_with(&format!("{name} "))),
            "{name}: {text}"
        );
    }
}

#[test]
fn depth_first_aliasing_is_pointed_out() {
    let aliased = [
        "predict",
        "--nodes",
        "65535",
        "--node-bytes",
        "32",
        "--layout",
        "dfs",
    ];
    assert!(answer(&aliased).contains("powers of two"));
    assert!(
        !answer(&[
            "predict",
            "--nodes",
            "65000",
            "--node-bytes",
            "32",
            "--layout",
            "dfs"
        ])
        .contains("powers of two")
    );
}

#[test]
fn machine_files_are_read_and_bad_ones_refused() {
    let good = TempFile::new("good.json", &Machine::thesis().to_json());
    let from_file = json(&small(&["--machine", good.path(), "--json"]));
    let preset = json(&small(&["--machine", "thesis", "--json"]));
    assert_eq!(from_file["rows"], preset["rows"]);
    let cases = [
        ("version.json", "{\"format\": 99}", "format 99"),
        ("broken.json", "{\"format\": 1,", "not a machine file"),
        ("empty.json", "", "not a machine file"),
        ("other.json", "[]", "not a machine file"),
    ];
    for (name, text, expected) in cases {
        let file = TempFile::new(name, text);
        let line = refusal(&small(&["--machine", file.path()]));
        assert!(line.contains(expected), "{line}");
    }
    let odd = Machine::thesis()
        .to_json()
        .replacen("\"block_bytes\": 64", "\"block_bytes\": 48", 1);
    let odd = TempFile::new("odd.json", &odd);
    assert!(refusal(&small(&["--machine", odd.path()])).contains("block_bytes"));
    let contradiction = Machine::thesis()
        .to_json()
        .replacen("\"sets\": 1024", "\"sets\": 512", 1);
    let contradiction = TempFile::new("contradiction.json", &contradiction);
    let line = refusal(&small(&["--machine", contradiction.path()]));
    assert!(line.contains("8192 bytes, not 16384"), "{line}");
    assert!(refusal(&small(&["--machine", "no/such/file"])).contains("no/such/file"));
}

#[test]
fn machine_files_without_end_or_sense_are_refused() {
    // None of these may hang, whatever it says.
    let folder = std::env::temp_dir();
    assert!(
        refusal(&small(&["--machine", folder.to_str().unwrap()])).contains("not a regular file")
    );
    #[cfg(unix)]
    assert!(refusal(&small(&["--machine", "/dev/zero"])).contains("not a regular file"));
    let large = TempFile::new("large.json", "");
    let file = fs::OpenOptions::new().write(true).open(&large.0).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    assert!(refusal(&small(&["--machine", large.path()])).contains("larger than 16 MiB"));
    let mut machine = Machine::thesis();
    let level = machine.levels[0].clone();
    machine.levels = (0..256)
        .map(|i| ccmodel::Level {
            name: format!("L{i}"),
            ..level.clone()
        })
        .collect();
    machine.neighbours = vec![
        ccmodel::NeighbourShare {
            block_bytes: 256,
            share: 0.001,
        };
        256
    ];
    let heavy = TempFile::new("heavy.json", &machine.to_json());
    assert!(refusal(&small(&["--machine", heavy.path()])).contains("256 levels"));
    let escape = Machine::thesis().to_json().replace("Sun", "\\u001b[31m");
    let escape = TempFile::new("escape.json", &escape);
    assert!(refusal(&small(&["--machine", escape.path()])).contains("control characters"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_machine_file() {
    let path = std::env::temp_dir().join(format!("ccmodel-cli-{}-pipe", std::process::id()));
    let made = Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        // Without the tool there is no pipe to try; the folder and the device of the test above go the same way.
        return;
    }
    let pipe = TempFile(path);
    assert!(refusal(&small(&["--machine", pipe.path()])).contains("not a regular file"));
}

#[test]
fn a_machine_on_which_all_is_free_gives_speedups_of_one() {
    let mut machine = Machine::thesis();
    machine.search = ccmodel::SearchCosts {
        operation_ns: 0.0,
        node_ns: 0.0,
        misprediction_ns: 0.0,
        branch_free_node_ns: 0.0,
    };
    for level in &mut machine.levels {
        level.steps[0].step_ns = 0.0;
    }
    let free = TempFile::new("free.json", &machine.to_json());
    let object = json(&small(&["--machine", free.path(), "--json"]));
    for row in object["rows"].as_array().unwrap() {
        assert_eq!(row["ns"].as_f64(), Some(0.0));
        assert_eq!(row["speedup_vs_random"].as_f64(), Some(1.0), "{row}");
    }
}

#[test]
fn operations_as_long_as_a_cache_are_pointed_out() {
    let predict = |nodes, bytes| {
        answer(&[
            "predict",
            "--nodes",
            nodes,
            "--node-bytes",
            bytes,
            "--machine",
            "thesis",
        ])
    };
    let long = predict("1", "1e6");
    assert!(long.contains("of what L1 can hold"), "{long}");
    assert!(long.contains(" 62500.00"), "all lines are missed: {long}");
    let usual = predict("100000", "32");
    assert!(!usual.contains("can hold"), "{usual}");
}

#[test]
fn notes_of_a_machine_file_are_passed_on() {
    let mut machine = Machine::thesis();
    machine.notes.push("the clock stood still".to_owned());
    let file = TempFile::new("notes.json", &machine.to_json());
    let text = answer(&small(&["--machine", file.path()]));
    assert!(text.contains("note: the clock stood still"), "{text}");
}

#[test]
fn impossible_structures_are_refused() {
    let predict = |nodes, bytes| refusal(&["predict", "--nodes", nodes, "--node-bytes", bytes]);
    assert!(predict("0", "32").contains("at least one node"));
    assert!(predict("100", "0").contains("at least one byte"));
    assert!(predict("4000000000", "4000000000").contains("this machine has"));
    assert!(predict("1", "99999999999").contains("more than can be predicted"));
    assert!(predict("18446744073709551615", "2").contains("more than can be predicted"));
    // The number says it, whatever the memory: the last one means "no node".
    let line = predict("4294967295", "1");
    assert!(line.contains("at most 4294967294 nodes"), "{line}");
    assert!(predict("-5", "32").contains("-5"));
    assert!(predict("many", "32").contains("whole number"));
}

#[test]
fn unknown_words_are_refused_with_a_suggestion() {
    assert!(refusal(&small(&["--layout", "vebb"])).contains("`veb`"));
    assert!(refusal(&small(&["--layout", "dfs,cluster:48"])).contains("power of two"));
    assert!(refusal(&small(&["--jsn"])).contains("--json"));
    assert!(refusal(&small(&["--pages", "1g"])).contains("1g"));
    assert!(refusal(&small(&["--structure", "rope"])).contains("rope"));
    assert!(refusal(&["predikt"]).contains("predict"));
    assert!(refusal(&["predict", "--node-bytes", "8"]).contains("--nodes"));
    refusal(&[]);
}

#[test]
fn help_and_version_are_answers() {
    assert!(answer(&["--help"]).contains("calibrate"));
    assert!(answer(&["predict", "--help"]).contains("Examples"));
    assert!(answer(&["--version"]).starts_with("model "));
}

#[test]
fn calibration_writes_a_file_that_predict_reads() {
    let file = TempFile::new("calibrated.json", "");
    let printed = answer(&["calibrate", "--quick", "--json", "-o", file.path()]);
    let written = fs::read_to_string(&file.0).unwrap();
    assert_eq!(printed, written);
    let machine = Machine::from_json(&written).unwrap();
    assert!(machine.levels.iter().any(|level| level.name == "L1"));
    assert!(!machine.evidence.huge_pages.is_empty());
    assert!(answer(&small(&["--machine", file.path()])).contains("veb"));
    let line = refusal(&["calibrate", "--quick", "-o", "no/such/folder/file"]);
    assert!(line.contains("no/such/folder/file"), "{line}");
}

#[test]
fn a_closed_pipe_is_quiet() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_model"))
        .args(["topology", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let status = child.wait().unwrap();
    let mut err = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
}
