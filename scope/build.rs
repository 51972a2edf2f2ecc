//! Compiles the runtime: a library of its own with a C interface, and an archive with its hot path.
//! The tool carries both as bytes.
//!
//! It uses neither `std` nor a crate, so one call of the compiler is enough, and the same file
//! serves programs of any compiler.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=runtime");
    println!("cargo::rerun-if-changed=format");
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_FEATURE_CLI").is_none() {
        return;
    }
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let target = variable("TARGET");
    assert!(
        target == "x86_64-unknown-linux-gnu",
        "ccscope profiles on x86_64-unknown-linux-gnu only, not on {target}"
    );
    let out = PathBuf::from(variable("OUT_DIR"));
    let compile = |words: &[&str], file: &str| {
        let status = Command::new(variable("RUSTC"))
            .args(["--edition=2024", "-Copt-level=3", "-Cpanic=abort"])
            // Stacks are walked from within the runtime.
            .args(["-Ccodegen-units=1", "-Cforce-unwind-tables=yes"])
            .args(["--target", &target])
            .args(words)
            .arg("-o")
            .arg(out.join(file))
            .status()
            .expect("the compiler can be started");
        assert!(status.success(), "the runtime does not compile: {status}");
    };
    compile(
        &[
            "--crate-name=ccscope_runtime",
            "--crate-type=cdylib",
            "-Cdebuginfo=1",
            "-Clink-arg=-nostartfiles",
            "-Clink-arg=-Wl,-z,now,-z,nodelete,--no-undefined",
            "-Clink-arg=-Wl,-soname,libccscope_runtime.so",
            "-Clink-arg=-lc",
            "runtime/lib.rs",
        ],
        "libccscope_runtime.so",
    );
    // To the linker, an `rlib` is an archive.
    compile(
        &[
            "--crate-name=ccscope_hot",
            "--crate-type=rlib",
            "-Adead_code",
            "runtime/hot_archive.rs",
        ],
        "libccscope_hot.rlib",
    );
}
