//! What the allocator says before it ends a process, and what its guide says about that.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const GUIDE: &str = include_str!("../../docs/ccmalloc.md");

/// All Rust files under `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The messages in `text`: the first string in each call of `die`.
fn messages(text: &str) -> impl Iterator<Item = &str> {
    text.split("die(").skip(1).filter_map(|call| {
        let quoted = call.trim_start().strip_prefix('"')?;
        quoted.split('"').next()
    })
}

#[test]
fn the_guide_explains_each_abort_message() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ccmalloc");
    let mut files = Vec::new();
    sources(&crate_folder.join("src"), &mut files);
    sources(&crate_folder.join("capi/src"), &mut files);
    let texts: Vec<String> = files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    let said: BTreeSet<&str> = texts.iter().flat_map(|text| messages(text)).collect();
    let (_, table) = GUIDE.split_once("| message | means |").unwrap();
    let explained: BTreeSet<&str> = table
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with('|') || line.starts_with(' '))
        .filter_map(|row| row.strip_prefix("| `")?.split('`').next())
        .collect();
    assert!(said.len() > 10, "calls of `die` have changed their form");
    assert_eq!(said, explained);
}
