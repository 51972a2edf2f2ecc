//! `model simulate`: the same question by simulation, and traces.

use std::io::Write;
use std::process::{Command, Stdio};

use ccmodel::Machine;
use serde_json::Value;

use super::{TempFile, answer, json, refusal};

const SMALL: [&str; 7] = [
    "simulate",
    "--nodes",
    "50000",
    "--node-bytes",
    "32",
    "--machine",
    "thesis",
];

fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], more].concat()
}

#[test]
fn simulation_and_prediction_agree() {
    let simulated = json(&small(&["--layout", "random,cluster", "--json"]));
    let mut args = small(&["--layout", "random,cluster", "--json"]);
    args[0] = "predict";
    let predicted = json(&args);
    for (simulated, predicted) in
        (simulated["rows"].as_array().unwrap().iter()).zip(predicted["rows"].as_array().unwrap())
    {
        for level in ["L1", "L2"] {
            let by = |row: &Value| row["misses"][level].as_f64().unwrap();
            let (simulated, predicted) = (by(simulated), by(predicted));
            assert!(
                (predicted / simulated - 1.0).abs() < 0.05,
                "{level}: {predicted} predicted, {simulated} simulated"
            );
        }
    }
}

#[test]
fn cold_starts_are_repeated() {
    let object = json(&small(&["--layout", "veb", "--searches", "50", "--json"]));
    assert_eq!(object["state"]["first"], 50);
    let row = &object["rows"][0];
    assert!(row["operations"].as_u64().unwrap() >= 100);
    let mut args = small(&["--layout", "veb", "--searches", "50", "--json"]);
    args[0] = "predict";
    let predicted = json(&args)["rows"][0]["misses"]["L2"].as_f64().unwrap();
    let simulated = row["misses"]["L2"].as_f64().unwrap();
    assert!(
        (predicted / simulated - 1.0).abs() < 0.05,
        "{predicted} {simulated}"
    );
}

#[test]
fn the_number_of_operations_can_be_given() {
    let object = json(&small(&[
        "--layout",
        "dfs",
        "--operations",
        "6400",
        "--json",
    ]));
    assert_eq!(object["rows"][0]["operations"], 6400);
    let text = answer(&small(&["--layout", "dfs", "--operations", "100"]));
    assert!(text.contains("L2 miss"), "{text}");
    let csv = answer(&small(&["--layout", "dfs", "--operations", "100", "--csv"]));
    assert_eq!(csv.lines().count(), 1 + 2, "a line a level: {csv}");
    assert!(refusal(&small(&["--operations", "5", "--searches", "5"])).contains("--searches"));
}

#[test]
fn long_operations_are_simulated_a_bounded_number_of_times() {
    let list = [
        "simulate",
        "--structure",
        "list",
        "--nodes",
        "100000",
        "--machine",
        "thesis",
    ];
    let walk = ["--operation", "walk", "--layout", "random,dfs", "--json"];
    let object = json(&[&list[..], &walk].concat());
    for row in object["rows"].as_array().unwrap() {
        // Walks are all alike: one is enough.
        assert_eq!(row["operations"], 1, "{row}");
    }
    // Searches in it differ, and take long: a sample, which is said.
    let search = json(&[&list[..], &["--layout", "random", "--json"]].concat());
    assert!(search["rows"][0]["accesses"].as_u64().unwrap() <= 101_000_000);
    let is_known = search["rows"][0]["errors"]["L2"].as_f64().unwrap()
        <= 0.005 * search["rows"][0]["misses"]["L2"].as_f64().unwrap();
    assert!(
        is_known || search["notes"].to_string().contains("a sample of"),
        "{search}"
    );
}

const LACKEY: &str = "==12== Lackey\nI  04000000,4\n L 1000,8\n S 2000,4\n M 1000,8\n==12== end\n";

#[test]
fn traces_are_simulated() {
    let file = TempFile::new("trace.txt", LACKEY);
    let object = json(&[
        "simulate",
        "--trace",
        file.path(),
        "--machine",
        "thesis",
        "--json",
    ]);
    assert_eq!(object["trace"]["loads"], 1);
    assert_eq!(object["levels"][0]["accesses"], 3);
    assert_eq!(object["levels"][0]["misses"], 2);
    let text = answer(&["simulate", "--trace", file.path(), "--machine", "thesis"]);
    assert!(text.contains("66.667 %"), "{text}");
    let csv = answer(&[
        "simulate",
        "--trace",
        file.path(),
        "--machine",
        "thesis",
        "--csv",
    ]);
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn a_trace_can_come_from_a_pipe() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_model"))
        .args(["simulate", "--trace", "-", "--machine", "thesis", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(LACKEY.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["trace"]["stores"], 1);
}

#[test]
fn broken_traces_are_refused_with_the_line() {
    for (name, text, expected) in [
        ("bad.txt", " L 1000,8\n L zzz,8\n", "line 2"),
        ("size.txt", " L 1000,0\n", "line 1"),
        ("half.txt", " L 1000,8\n\n L 10", "line 3"),
        ("empty.txt", "", "no access"),
        ("lackey-only.txt", "==12== Lackey\n", "no access"),
    ] {
        let file = TempFile::new(name, text);
        let line = refusal(&["simulate", "--trace", file.path(), "--machine", "thesis"]);
        assert!(line.contains(expected), "{text:?}: {line}");
    }
    assert!(refusal(&["simulate", "--trace", "no/such/file"]).contains("no/such/file"));
    assert!(refusal(&["simulate", "--trace", "x", "--nodes", "5"]).contains("--nodes"));
}

#[test]
fn machines_without_geometry_cannot_be_simulated() {
    let mut machine = Machine::thesis();
    machine.hierarchy = None;
    let file = TempFile::new("flat.json", &machine.to_json());
    let line = refusal(&["simulate", "--nodes", "100", "--machine", file.path()]);
    assert!(line.contains("sets and ways"), "{line}");
}
