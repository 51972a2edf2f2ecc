//! That every stable method and trait of `BTreeMap`, `BTreeSet`, their entries and their iterators
//! is there, with the same signature.
//!
//! 1. `std.txt` lists what the standard library has: extracted from its source, which `rustup
//!    component add rust-src` installs.
//! 2. `build.rs` makes the module `signatures` from the list. For each method it has one of the
//!    same signature that does nothing but call ours; for each implemented trait a function with
//!    the same bounds that needs ours to implement it. That it compiles is the proof.
//! 3. `docs/ctree-std.md` is the list as a page for users.
//!
//! The test compares the list and the page with what they are made from. To write them again:
//!
//! ```text
//! STD_SURFACE=write cargo test -p tests --test all std_surface
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;

mod extract;
mod item;
mod page;

#[allow(
    dead_code,
    unused_imports,
    unused_qualifications,
    clippy::all,
    reason = "only the type checker reads it, and the signatures are the standard library's"
)]
mod signatures {
    include!(concat!(env!("OUT_DIR"), "/std_signatures.rs"));
}

const LIST: &str = "tests/all/std_surface/std.txt";
const PAGE: &str = "docs/ctree-std.md";

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Asserts that a committed file is as it should be, or makes it so.
fn assert_is(path: &str, expected: &str) {
    if std::env::var("STD_SURFACE").is_ok_and(|what| what == "write") {
        std::fs::write(file(path), expected).unwrap();
    }
    let found = std::fs::read_to_string(file(path)).unwrap_or_default();
    if found == expected {
        return;
    }
    let line = found
        .lines()
        .zip(expected.lines())
        .position(|(a, b)| a != b);
    let line = line.unwrap_or_else(|| found.lines().count().min(expected.lines().count()));
    panic!(
        "{path} differs from what it is made from in line {}, which should be\n{}\n\
         Both are written again by\nSTD_SURFACE=write cargo test -p tests --test all std_surface",
        line + 1,
        expected.lines().nth(line).unwrap_or("(none)"),
    );
}

/// The folder of the collections' source, where this compiler has it and is of the list's version.
fn std_source() -> Option<PathBuf> {
    let rustc = |argument: &[&str]| {
        let output = Command::new("rustc").args(argument).output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    let version = rustc(&["--version"])?;
    if version.split(' ').nth(1) != Some(item::VERSION) {
        return None;
    }
    let sysroot = rustc(&["--print", "sysroot"])?;
    let source =
        Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/alloc/src/collections/btree");
    source.is_dir().then_some(source)
}

#[test]
fn each_file_is_what_it_is_made_from() {
    if let Some(source) = std_source() {
        assert_is(LIST, &item::write(&extract::items(&source)));
    } else {
        eprintln!(
            "there is no source of Rust {} here: the list is taken as it is",
            item::VERSION
        );
    }
    let items = item::parse(&std::fs::read_to_string(file(LIST)).unwrap());
    assert_is(PAGE, &page::page(&items));
    // So many there are in Rust 1.95, and the standard library takes nothing away.
    let methods = items.iter().filter(|item| item.is_method()).count();
    assert!(methods >= 76 && items.len() - methods >= 141);
}
