//! Runs each example as a user does, as a process. Counts are asserted, times are not.

#[path = "../quickstart.rs"]
#[expect(dead_code, reason = "only its verdict is tested here")]
mod quickstart;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Runs the example, which `cargo test` builds next to its tests.
fn run(example: &str, args: &[&str]) -> Output {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let program = folder.join("examples").join(example);
    let program = program.with_extension(std::env::consts::EXE_EXTENSION);
    Command::new(&program)
        .args(args)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

fn text(example: &str, args: &[&str]) -> String {
    let output = run(example, args);
    assert!(output.status.success(), "{example} {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn refused(example: &str, args: &[&str], part: &str) {
    let output = run(example, args);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{example} {args:?}");
    assert!(message.contains(part), "{example} {args:?}: {message}");
}

/// The cells of the Markdown table in `text`, without its header.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().skip_while(|line| !line.starts_with("|--"));
    lines
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

fn number(cell: &str) -> f64 {
    let digits = cell.trim_end_matches(['%', 'x', ' ']);
    digits
        .parse()
        .unwrap_or_else(|_| panic!("no number: {cell}"))
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("examples-{name}-{}", std::process::id()))
}

#[test]
fn quickstart_compares_five_structures_of_the_embedded_text_or_a_file() {
    let file = scratch("text");
    std::fs::write(&file, "Ἄνδρα μοι ἔννεπε, μοῦσα\r\n".repeat(40)).unwrap();
    let of_file = text("quickstart", &[file.to_str().unwrap(), "500"]);
    std::fs::write(&file, [b'a', 0xE9]).unwrap();
    refused("quickstart", &[file.to_str().unwrap()], "UTF-8");
    std::fs::write(&file, "a").unwrap();
    refused("quickstart", &[file.to_str().unwrap()], "2 B");
    std::fs::remove_file(&file).unwrap();
    refused("quickstart", &["no-such-file"], "no-such-file: ");
    refused("quickstart", &["no-such-file", "many"], "no-such-file: ");

    let rows = rows(&of_file);
    let layouts: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let expected = ["malloc", "hinted", "morphed", "ctree", "btreemap"];
    assert_eq!(layouts, expected, "{of_file}");
    for row in &rows {
        assert!(number(row[1]) > 0.0 && number(row[5]) > 12.0, "{of_file}");
        assert_eq!(row[0] == "btreemap", row[2].is_empty(), "{of_file}");
    }
    assert_eq!(rows[0][4], "1.00x");
    let advice = "No recommendation: 500 nodes fit in caches";
    assert!(of_file.contains(advice), "{of_file}");
}

#[test]
fn each_cure_of_the_guide_does_what_the_guide_says() {
    let text = text(
        "guide",
        &["--nodes", "20000", "--lookups", "2000", "--rounds", "1"],
    );
    let rows = rows(&text);
    let stages: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(stages, ["plain", "hinted", "morphed", "map", "frozen"]);
    let cell = |stage: usize, column: usize| number(rows[stage][column]);
    let (together, blocks, pages, bytes) = (1, 2, 3, 4);
    // Two nodes of 32 bytes fit a block, so hints and a morph fill four of ten blocks with a parent
    // and its child, and halve the blocks of a lookup.
    assert!(cell(0, together) < 1.0, "{text}");
    for cured in [1, 2] {
        assert!(cell(cured, together) > 35.0, "{text}");
        assert!(cell(cured, blocks) < 0.65 * cell(0, blocks), "{text}");
    }
    assert!(cell(2, pages) < 0.25 * cell(0, pages), "{text}");
    assert!((cell(2, bytes) - 32.0).abs() < 1.0, "{text}");
    for map in [3, 4] {
        assert_eq!(rows[map][1..4], ["-"; 3], "{text}");
        assert!(cell(map, bytes) >= 16.0, "{text}");
    }
}

#[test]
fn one_stage_of_the_guide_runs_alone() {
    let size = ["--nodes", "3000", "--lookups", "500", "--rounds", "2"];
    let stages = ["plain", "hinted", "morphed", "map", "frozen"];
    let [plain, hinted, morphed, map, frozen] =
        stages.map(|stage| text("guide", &[&size[..], &["--stage", stage]].concat()));
    assert!(plain.starts_with("plain: 3000 articles, 2 times 500 lookups, "));
    assert!(hinted.contains("same_block: "), "{hinted}");
    assert!(
        morphed.contains("3000 nodes of 32 B laid out as "),
        "{morphed}"
    );
    let checksum = |text: &str| text.split_once("checksum ").unwrap().1[..16].to_owned();
    for other in [hinted, morphed, map, frozen] {
        assert_eq!(checksum(&other), checksum(&plain));
    }
    refused("guide", &["--stage", "plain", "--growth"], "--growth");
    refused("guide", &["--nodes", "1"], "--nodes");
}

#[test]
fn the_guide_shows_growth_and_pictures() {
    let args = ["--growth", "--nodes", "5000", "--lookups", "100"];
    let growth = text("guide", &args);
    let rows = rows(&growth);
    let lengths: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(lengths, ["256", "1024", "4096"]);
    // 1.39 levels for each doubling.
    for pair in rows.windows(2) {
        let more = number(pair[1][2]) - number(pair[0][2]);
        assert!((1.5..4.0).contains(&more), "{growth}");
    }
    let folder = scratch("guide");
    let args = ["--nodes", "500", "--pictures", folder.to_str().unwrap()];
    let text = text("guide", &args);
    for stage in ["plain", "hinted", "morphed"] {
        let svg = std::fs::read_to_string(folder.join(format!("guide-{stage}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("500 nodes of 32 B"));
        assert!(text.contains(&format!("{stage}: ")), "{text}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn layout_map_draws_four_pictures() {
    let folder = scratch("pictures");
    let text = text("layout_map", &[folder.to_str().unwrap(), "500"]);
    let sections: Vec<&str> = text.trim_end().split("\n\n").collect();
    let names = ["tree-before", "tree-after", "list-before", "list-after"];
    assert_eq!(sections.len(), names.len(), "{text}");
    let mut shares = Vec::new();
    for (section, name) in sections.iter().zip(names) {
        let counts = format!("{name}.svg\n500 nodes of 24 B");
        assert!(section.contains(&counts), "{section}");
        let svg = std::fs::read_to_string(folder.join(format!("{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("500 nodes of 24 B"));
        let (_, share) = section.split_once("same 64 B: ").unwrap();
        shares.push(number(share.split_once('%').unwrap().0));
    }
    // Two nodes of 24 bytes fit a block, so a third is much.
    for pair in shares.chunks(2) {
        assert!(pair[0] < 15.0 && pair[1] > 30.0, "{text}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    refused("layout_map", &[folder.to_str().unwrap(), "3"], "3: from 10");
    refused("layout_map", &[folder.to_str().unwrap(), "many"], "digit");
}

#[test]
fn placement_has_a_row_for_every_structure_and_policy() {
    let text = text("placement", &["20000"]);
    let rows = rows(&text);
    assert_eq!(rows.len(), 18, "{text}");
    for (index, row) in rows.iter().enumerate() {
        let shares = row[2..8].iter().filter(|share| !share.is_empty());
        let shares: Vec<f64> = shares.map(|share| number(share)).collect();
        // No hints in the first two rows of each structure.
        assert_eq!(shares.len(), if index % 6 < 2 { 0 } else { 6 }, "{row:?}");
        let sum: f64 = shares.iter().sum();
        assert!(shares.is_empty() || (99.0..101.0).contains(&sum), "{row:?}");
        assert!((24.0..4096.0).contains(&number(row[9])), "{row:?}");
    }
    // A new block is taken for the first item; the second finds room in it.
    assert_eq!(rows[16][..3], ["list", "NewBlock", "50.0"]);
    refused("placement", &["none"], "digit");
}
