//! The example `guide` as its reader meets it: as a process. Asserted are counts, which
//! docs/guide.md rests on, and no times.

mod common;

use std::process::{Command, Output};

use common::example_program;

fn guide(arguments: &[&str]) -> Output {
    Command::new(example_program("guide"))
        .args(arguments)
        .output()
        .unwrap()
}

fn text_of(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The cells of the rows of a Markdown table below its header.
fn rows_of(text: &str) -> Vec<Vec<&str>> {
    text.lines()
        .skip_while(|line| !line.starts_with("|--"))
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

fn number(cell: &str) -> f64 {
    let digits = cell.trim_end_matches(['%', 'x', ' ']);
    digits
        .parse()
        .unwrap_or_else(|_| panic!("{cell} is no number"))
}

#[test]
fn each_cure_does_what_the_guide_says() {
    let text = text_of(guide(&[
        "--nodes",
        "20000",
        "--lookups",
        "2000",
        "--rounds",
        "1",
    ]));
    let rows = rows_of(&text);
    let stages: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(stages, ["plain", "hinted", "morphed", "map", "frozen"]);
    assert!(rows.iter().all(|row| row.len() == 9), "{text}");
    let cell = |stage: usize, column: usize| number(rows[stage][column]);
    const TOGETHER: usize = 1;
    const BLOCKS: usize = 2;
    const PAGES: usize = 3;
    const BYTES: usize = 4;
    // Two nodes of 32 bytes fit a block: hints and a morph fill four of ten blocks with a parent
    // and its child, and halve the blocks of a lookup.
    assert!(cell(0, TOGETHER) < 1.0, "{text}");
    for cured in [1, 2] {
        assert!(cell(cured, TOGETHER) > 35.0, "{text}");
        assert!(cell(cured, BLOCKS) < 0.65 * cell(0, BLOCKS), "{text}");
    }
    // A morph also takes a lookup through a few pages only.
    assert!(cell(2, PAGES) < 0.25 * cell(0, PAGES), "{text}");
    assert!((cell(2, BYTES) - 32.0).abs() < 1.0, "{text}");
    // A key and a value are 16 bytes.
    for map in [3, 4] {
        assert_eq!(rows[map][1..4], ["-"; 3], "{text}");
        assert!(cell(map, BYTES) >= 16.0, "{text}");
    }
    for row in &rows {
        assert!(row[5..].iter().all(|cell| number(cell) > 0.0), "{text}");
    }
}

#[test]
fn one_stage_says_what_it_asked_and_what_became_of_its_nodes() {
    let checksum = |text: &str| {
        let (_, rest) = text.split_once("checksum ").unwrap();
        rest[..16].to_owned()
    };
    let size = [
        "--nodes",
        "3000",
        "--lookups",
        "500",
        "--rounds",
        "2",
        "--stage",
    ];
    let run = |stage| text_of(guide(&[&size[..], &[stage]].concat()));
    let plain = run("plain");
    assert!(plain.starts_with("plain: 3000 articles, 2 times 500 lookups, "));
    let hinted = run("hinted");
    assert!(hinted.contains("same_block: "), "{hinted}");
    let morphed = run("morphed");
    assert!(
        morphed.contains("3000 nodes of 32 B laid out as "),
        "{morphed}"
    );
    for other in [hinted, morphed, run("map"), run("frozen")] {
        assert_eq!(checksum(&other), checksum(&plain));
    }
}

#[test]
fn growth_has_a_row_for_each_length() {
    let text = text_of(guide(&[
        "--growth",
        "--nodes",
        "5000",
        "--lookups",
        "100",
        "--rounds",
        "1",
    ]));
    let rows = rows_of(&text);
    let lengths: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(lengths, ["256", "1024", "4096"]);
    let levels: Vec<f64> = rows.iter().map(|row| number(row[2])).collect();
    // 1.39 levels for each doubling.
    assert!(
        levels
            .windows(2)
            .all(|pair| (1.5..4.0).contains(&(pair[1] - pair[0]))),
        "{text}"
    );
}

#[test]
fn pictures_are_drawn() {
    let folder = std::env::temp_dir().join(format!("guide-pictures-{}", std::process::id()));
    let text = text_of(guide(&[
        "--nodes",
        "500",
        "--pictures",
        folder.to_str().unwrap(),
    ]));
    for stage in ["plain", "hinted", "morphed"] {
        let svg = std::fs::read_to_string(folder.join(format!("guide-{stage}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("500 nodes of 32 B"));
        assert!(text.contains(&format!("{stage}: ")), "{text}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn wrong_arguments_are_refused_in_one_line() {
    let output = guide(&["--nodes", "none"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.starts_with("guide: ") && message.lines().count() == 1,
        "{message}"
    );
}
