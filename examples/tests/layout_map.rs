//! The example `layout_map` as its user meets it: as a process that writes pictures.

mod common;

use std::path::PathBuf;
use std::process::{Command, Output};

use common::example_program;

fn layout_map(arguments: &[&str]) -> Output {
    Command::new(example_program("layout_map"))
        .args(arguments)
        .output()
        .unwrap()
}

/// A folder of this test process alone.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("layout_map-{name}-{}", std::process::id()))
}

/// The share of edges in the same block, as the counts say it.
fn share_in_block(counts: &str) -> f64 {
    let (_, rest) = counts.split_once("same 64 B: ").unwrap();
    rest.split_once('%').unwrap().0.parse().unwrap()
}

#[test]
fn four_pictures_and_their_counts() {
    let folder = scratch("pictures");
    let output = layout_map(&[folder.to_str().unwrap(), "500"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let sections: Vec<&str> = text.trim_end().split("\n\n").collect();
    assert_eq!(sections.len(), 4, "{text}");
    for (section, name) in
        sections
            .iter()
            .zip(["tree-before", "tree-after", "list-before", "list-after"])
    {
        assert!(
            section.contains(&format!("{name}.svg\n500 nodes of 24 B")),
            "{section}"
        );
        let svg = std::fs::read_to_string(folder.join(format!("{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(
            svg.contains("500 nodes of 24 B") && svg.len() < 150_000,
            "{}",
            svg.len()
        );
    }
    // Two nodes of 24 bytes fit a block of 64, so that an after of a third is much.
    for pair in sections.chunks(2) {
        assert!(
            share_in_block(pair[1]) > 30.0 && share_in_block(pair[0]) < 15.0,
            "{pair:?}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn wrong_arguments_are_refused() {
    for arguments in [
        &["folder", "many"][..],
        &["folder", "3"],
        &["folder", "20", "extra"],
    ] {
        let output = layout_map(arguments);
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8(output.stderr).unwrap();
        let wrong = arguments.last().unwrap();
        assert!(
            message.starts_with(&format!("layout_map: {wrong}: ")),
            "{message}"
        );
    }
    // A file where the folder should be.
    let file = scratch("file");
    std::fs::write(&file, "").unwrap();
    let output = layout_map(&[file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    std::fs::remove_file(file).unwrap();
}
