//! The text that applications read: the Rust sources of all packages from the registry that this
//! workspace's lock file names.
//!
//! Cargo has them on every machine on which this program could be built, and says where (`cargo
//! metadata`). The lock file fixes what they are.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    /// None for the members of the workspace: they change from day to day.
    source: Option<String>,
    manifest_path: PathBuf,
}

/// The sources, file by file, in the order of the packages' names and versions and of the paths.
pub(super) fn sources() -> Vec<String> {
    let mut files = Vec::new();
    for package in packages() {
        if let Some(root) = package.manifest_path.parent() {
            collect(root, &mut files);
        }
    }
    // Parsers' tests hold files that are no UTF-8 on purpose.
    let texts = files
        .iter()
        .map(|file| String::from_utf8(fs::read(file).expect("cargo has it")));
    texts.filter_map(Result::ok).collect()
}

/// The packages from the registry that are built on this platform with default features.
fn packages() -> Vec<Package> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        // One platform, so that the text is the same everywhere.
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .output()
        .expect("a machine that built this has cargo");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {errors}");
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).expect("cargo writes its own format");
    let mut packages = metadata.packages;
    packages.retain(|package| package.source.is_some());
    packages.sort_by(|a, b| a.id.cmp(&b.id));
    packages
}

/// The Rust files below `folder`, in the order of their names.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("cargo has unpacked it");
    let paths = entries.map(|entry| entry.expect("a folder that does not change").path());
    let mut paths: Vec<PathBuf> = paths.collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The words of `text`: names, keywords, and words of comments.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(|c: char| !c.is_ascii_digit()))
}

/// The number of `word`: words are numbered in the order in which they first come.
pub(super) fn number<'t>(numbers: &mut HashMap<&'t str, u32>, word: &'t str) -> u32 {
    let next = u32::try_from(numbers.len()).expect("fewer words than bytes");
    *numbers.entry(word).or_insert(next)
}
