//! What tests of examples share: an example is met as its user meets it, as a process.

use std::path::{Path, PathBuf};

/// The built example called `name`. `cargo test` builds all examples of a package next to its
/// tests.
pub(crate) fn example_program(name: &str) -> PathBuf {
    let test_program = std::env::current_exe().unwrap();
    let build_folder = test_program.parent().and_then(Path::parent).unwrap();
    let program = build_folder
        .join("examples")
        .join(name)
        .with_extension(std::env::consts::EXE_EXTENSION);
    assert!(
        program.exists(),
        "{} is missing: `cargo test -p examples` builds it",
        program.display()
    );
    program
}
