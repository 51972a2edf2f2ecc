//! The example `placement` as its user meets it: as a process.

mod common;

use std::process::{Command, Output};

use common::example_program;

fn placement(arguments: &[&str]) -> Output {
    Command::new(example_program("placement"))
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn every_structure_has_a_row_for_every_policy() {
    let output = placement(&["20000"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| {
            ["| tree", "| chains", "| list"]
                .iter()
                .any(|name| line.starts_with(name))
        })
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 18);
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row.len(), 11, "{row:?}");
        let shares: Vec<f64> = (row[2..8].iter())
            .filter_map(|share| share.parse().ok())
            .collect();
        if index % 6 < 2 {
            assert!(shares.is_empty(), "hints where none were given: {row:?}");
        } else {
            let sum: f64 = shares.iter().sum();
            assert!(shares.len() == 6 && (99.0..101.0).contains(&sum), "{row:?}");
        }
        // An object has 24 bytes, and a structure no more than a page for each.
        let bytes: f64 = row[9].parse().unwrap();
        assert!((24.0..4096.0).contains(&bytes), "{row:?}");
    }
    // Two objects of 24 bytes fit a block: where a new block is taken for the first, the second
    // finds room.
    let new_block = rows
        .iter()
        .find(|row| row[..2] == ["list", "NewBlock"])
        .unwrap();
    assert_eq!(new_block[2], "50.0");
}

#[test]
fn a_wrong_number_is_refused() {
    let output = placement(&["none"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("placement: none: "), "{message}");
}
