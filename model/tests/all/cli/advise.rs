//! `model advise`: the verdict, and what it rests on.

use std::fs;

use ccmodel::Machine;
use serde_json::Value;

use super::{TempFile, answer, json, refusal};

/// Larger than the second cache of the thesis's machine. By its size, which takes least time.
const TREE: [&str; 9] = [
    "advise",
    "--shape",
    "random",
    "--nodes",
    "100000",
    "--node-bytes",
    "32",
    "--tier",
    "footprint",
];

fn advice(more: &[&str]) -> Value {
    json(&[&TREE[..], more, &["--json"]].concat())
}

#[test]
fn a_scattered_tree_is_worth_a_morph_if_enough_is_to_come() {
    let object = advice(&["--machine", "thesis"]);
    assert_eq!(object["worth_it"], true, "{object}");
    assert_eq!(object["now"]["layout"], "random");
    let ns = |row: &str| object[row]["ns"].as_f64().unwrap();
    let saved = object["saved_ns"].as_f64().unwrap();
    assert!((ns("now") - ns("best") - saved).abs() < 1e-6);
    let break_even = object["break_even_operations"].as_f64().unwrap();
    let cost = object["morph_ns"].as_f64().unwrap();
    assert!((break_even - cost / saved).abs() < 1e-6 * break_even);
    for other in object["others"].as_array().unwrap() {
        assert!(other["by"].is_string() || other["ns"].as_f64() >= object["best"]["ns"].as_f64());
    }
    let few = format!("{:.0}", (break_even / 2.0).floor());
    let too_few = advice(&["--machine", "thesis", "--operations", &few]);
    assert_eq!(too_few["worth_it"], false);
    assert!(too_few["verdict"].as_str().unwrap().contains("are to come"));
    let many = format!("{:.0}", (break_even * 3.0).ceil());
    let enough = advice(&["--machine", "thesis", "--operations", &many]);
    assert_eq!(enough["worth_it"], true);
    let text = answer(&[&TREE[..], &["--machine", "thesis"]].concat());
    assert!(text.contains("worth it if more than"), "{text}");
}

#[test]
fn what_lies_well_or_fits_a_cache_is_left_alone() {
    let again = advice(&["--machine", "thesis", "--now", "cluster-veb"]);
    assert_eq!(again["worth_it"], false, "{again}");
    let small = json(&[
        "advise",
        "--nodes",
        "300",
        "--node-bytes",
        "32",
        "--json",
        "--machine",
        "zen4-desktop",
    ]);
    assert_eq!(small["worth_it"], false, "{small}");
    let reasons = small["reasons"].to_string();
    assert!(reasons.contains("L1 holds all of it"), "{reasons}");
    // A list in the order of its links.
    let list = json(&[
        "advise",
        "--structure",
        "list",
        "--nodes",
        "5000",
        "--node-bytes",
        "24",
        "--operation",
        "walk",
        "--now",
        "allocated",
        "--machine",
        "thesis",
        "--json",
    ]);
    assert_eq!(list["worth_it"], false, "{list}");
    let array = json(&[
        "advise",
        "--structure",
        "array",
        "--nodes",
        "10000",
        "--node-bytes",
        "16",
        "--machine",
        "thesis",
        "--json",
    ]);
    assert_eq!(array["worth_it"], false);
    assert_eq!(array["best"], Value::Null);
    assert!(array["verdict"].as_str().unwrap().contains("no nodes"));
}

#[test]
fn walks_know_the_order_of_nodes() {
    // The machine of the first trials was known by its capacities alone.
    let mut flat = Machine::thesis();
    flat.hierarchy = None;
    let file = TempFile::new("capacities.json", &flat.to_json());
    let list = ["--structure", "list", "--nodes", "100000", "--json"];
    let walk = ["--operation", "walk", "--machine", file.path()];
    let object = json(&[&["advise"][..], &list, &walk].concat());
    assert_eq!(object["worth_it"], true, "{object}");
    assert_eq!(object["best"]["layout"], "dfs");
    // Two nodes share a line, as `simulate` says of the same machine with its sets.
    let same = ["--operation", "walk", "--machine", "thesis"];
    let few = ["--layout", "random,dfs", "--operations", "2"];
    let simulated = json(&[&["simulate"][..], &list, &same, &few].concat());
    for (row, layout) in [("now", 0), ("best", 1)] {
        let predicted = object[row]["misses"]["L2"].as_f64().unwrap();
        let counted = simulated["rows"][layout]["misses"]["L2"].as_f64().unwrap();
        assert!(
            (predicted / counted - 1.0).abs() < 0.02,
            "{row}: {predicted} {counted}"
        );
    }
    // So do searches in one list, which end anywhere.
    let search = json(&[&["advise"][..], &list, &["--machine", file.path()]].concat());
    assert_eq!(search["worth_it"], true, "{search}");
}

#[test]
fn where_the_model_cannot_know_no_verdict_is_given() {
    let range = ["--operation", "range:5000", "--machine", "thesis"];
    let object = advice(&range);
    assert_eq!(object["worth_it"], Value::Null, "{object}");
    let verdict = object["verdict"].as_str().unwrap();
    assert!(verdict.starts_with("cannot say: "), "{verdict}");
    assert!(verdict.contains("`model simulate`"), "{verdict}");
    let text = answer(&[&TREE[..], &range].concat());
    let headline = text.lines().nth(1).unwrap();
    assert!(headline.starts_with("cannot say: "), "{text}");
}

#[test]
fn chains_get_one_answer() {
    let text = answer(&["advise", "--structure", "hash:4", "--nodes", "50000"]);
    assert!(text.contains("the only good order is that of the links"));
    assert!(
        text.contains("dfs") && !text.contains("hierarchical"),
        "{text}"
    );
}

#[test]
fn a_machine_on_which_misses_are_free_needs_no_layout() {
    let mut machine = Machine::thesis();
    for level in &mut machine.levels {
        level.steps[0].step_ns = 0.0;
    }
    let file = TempFile::new("free-misses.json", &machine.to_json());
    let object = advice(&["--machine", file.path()]);
    assert_eq!(object["worth_it"], false, "{object}");
    assert_eq!(object["break_even_operations"], Value::Null);
    assert!(fs::metadata(&file.0).is_ok());
}

#[test]
fn advice_is_refused_as_predictions_are() {
    assert!(refusal(&["advise"]).contains("--nodes"));
    assert!(refusal(&["advise", "--nodes", "10", "--now", "vebb"]).contains("`veb`"));
    assert!(refusal(&["advise", "--nodes", "10", "--operations", "-1"]).contains("-1"));
    assert!(refusal(&["advise", "--nodes", "10", "--machine", "no/file"]).contains("no/file"));
}
