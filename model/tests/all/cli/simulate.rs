//! `model simulate`: the same question by simulation, and traces.

use std::io::Write;
use std::process::{Command, Stdio};

use ccmodel::Machine;
use serde_json::Value;

use super::{TempFile, answer, json, number, refusal};

const SMALL: &str = "--nodes 50000 --node-bytes 32 --machine thesis";

#[test]
fn simulation_and_prediction_agree() {
    for more in ["", "--searches 50"] {
        let of = |command: &str| json(&format!("{command} {SMALL} --layout random,veb {more}"));
        // A prediction that does not simulate.
        let (simulated, predicted) = (of("simulate"), of("predict --tier footprint --pages 4k"));
        assert_eq!(simulated["state"], predicted["state"]);
        for layout in 0..2 {
            let misses = |object: &Value| number(object, &format!("rows.{layout}.misses.L2"));
            let error = misses(&predicted) / misses(&simulated) - 1.0;
            // The second cache is direct-mapped, which the footprint does not know.
            assert!((-0.5..0.1).contains(&error), "{more} {layout}: {error}");
            let by_sets = of("predict --tier per-set");
            let error = misses(&by_sets) / misses(&simulated) - 1.0;
            assert!(error.abs() < 0.02, "{more} {layout}: {error}");
        }
    }
}

#[test]
fn the_number_of_operations_can_be_given() {
    let simulate = format!("simulate {SMALL} --layout dfs");
    let object = json(&format!("{simulate} --operations 6400"));
    assert_eq!(object["rows"][0]["operations"], 6400);
    assert!(answer(&format!("{simulate} --operations 100")).contains("L2 miss"));
    let csv = answer(&format!("{simulate} --operations 100 --csv"));
    assert_eq!(csv.lines().count(), 1 + 2, "a line a level: {csv}");
}

#[test]
fn long_operations_are_simulated_a_bounded_number_of_times() {
    let list = "simulate --structure list --nodes 100000 --machine thesis";
    let object = json(&format!("{list} --operation walk --layout random,dfs"));
    for row in object["rows"].as_array().unwrap() {
        // Walks are all alike: one is enough.
        assert_eq!(row["operations"], 1, "{row}");
    }
    // Searches in it differ, and take long: a note says that they are a sample.
    let search = json(&format!("{list} --layout random"));
    assert!(number(&search, "rows.0.accesses") <= 101e6);
    let [error, misses] =
        ["errors", "misses"].map(|of| number(&search, &format!("rows.0.{of}.L2")));
    let is_sample = search["notes"].to_string().contains("a sample of");
    assert!(error <= 0.005 * misses || is_sample, "{search}");
}

const LACKEY: &str = "==12== Lackey\nI  04000000,4\n L 1000,8\n S 2000,4\n M 1000,8\n==12== end\n";

#[test]
fn traces_are_simulated() {
    let file = TempFile::new(LACKEY);
    let simulate = format!("simulate --machine thesis --trace {}", file.path());
    let object = json(&simulate);
    assert_eq!(object["trace"]["loads"], 1);
    assert_eq!(object["levels"][0]["accesses"], 3);
    assert_eq!(object["levels"][0]["misses"], 2);
    assert!(answer(&simulate).contains("66.667 %"));
    assert_eq!(answer(&format!("{simulate} --csv")).lines().count(), 3);
    let mut child = Command::new(env!("CARGO_BIN_EXE_model"))
        .args(["simulate", "--trace", "-", "--machine", "thesis", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(LACKEY.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["trace"]["stores"], 1);
}

/// A whole one is simulated in the tests of the simulator.
#[test]
fn a_table_is_known_by_its_first_bytes() {
    let file = TempFile::new("PAR1 and no table");
    let line = refusal(&format!(
        "simulate --machine thesis --trace {}",
        file.path()
    ));
    let expected = match cfg!(feature = "parquet") {
        true => "Parquet error",
        false => "cargo install --path model --features parquet",
    };
    assert!(line.contains(expected), "{line}");
}

#[test]
fn a_simulation_needs_sets() {
    let mut machine = Machine::thesis();
    machine.hierarchy = None;
    let flat = TempFile::new(&machine.to_json());
    let line = refusal(&format!("simulate --nodes 100 --machine {}", flat.path()));
    assert!(line.contains("sets and ways"), "{line}");
}
