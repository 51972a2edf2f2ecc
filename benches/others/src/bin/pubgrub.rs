//! Solves a puzzle of versions that has no solution: `pubgrub VERSIONS`.

use pubgrub::range::Range;
use pubgrub::solver::{OfflineDependencyProvider, resolve};
use pubgrub::version::NumberVersion;

fn main() {
    let versions = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let versions: u32 = versions.expect("pubgrub VERSIONS");
    let mut packages = OfflineDependencyProvider::<&str, NumberVersion>::new();
    packages.add_dependencies("root", 0, [("app", Range::any())]);
    for version in 1..versions {
        // What it wants is nowhere.
        let wants = [("library", Range::any()), ("missing", Range::any())];
        packages.add_dependencies("app", version, wants);
        packages.add_dependencies("library", version, []);
    }
    match resolve(&packages, "root", 0) {
        Ok(chosen) => println!("{} packages", chosen.len()),
        Err(error) => println!("{}", error.to_string().len()),
    }
}
