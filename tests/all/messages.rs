//! What the allocator says before it ends a process, what `ccmorph` gives as errors, and what the
//! guides say about them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const GUIDE: &str = include_str!("../../docs/use/ccmalloc.md");
const MORPH_GUIDE: &str = include_str!("../../docs/use/ccmorph.md");
const MORPH_ERRORS: &str = include_str!("../../ccmorph/src/error.rs");

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

/// The messages in `text`: the first string in each call of `die` and of `refuse`.
fn messages(text: &str) -> impl Iterator<Item = &str> {
    let calls = |function: &'static str| text.split(function).skip(1);
    calls("die(").chain(calls("refuse(")).filter_map(|call| {
        let quoted = call.trim_start().strip_prefix('"')?;
        quoted.split('"').next()
    })
}

/// What the rows of a table in a guide are about: the first code in each.
fn explained<'g>(guide: &'g str, head: &str) -> BTreeSet<&'g str> {
    let (_, table) = guide.split_once(head).unwrap();
    table
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with('|') || line.starts_with(' '))
        .filter_map(|row| row.strip_prefix("| `")?.split('`').next())
        .collect()
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
    let explained = explained(GUIDE, "| message | means |");
    assert!(said.len() > 10, "these calls have changed their form");
    assert_eq!(said, explained);
}

#[test]
fn the_guide_explains_each_error_of_a_morph() {
    let (_, variants) = MORPH_ERRORS.split_once("pub enum MorphError {").unwrap();
    let (variants, _) = variants.split_once("\n}").unwrap();
    // Variants begin with a capital letter, four spaces in.
    let given: BTreeSet<&str> = variants
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
        .filter_map(|line| line.split([',', ' ']).next())
        .collect();
    assert!(given.len() > 10, "`MorphError` has changed its form");
    assert_eq!(given, explained(MORPH_GUIDE, "| error | means |"));
}
