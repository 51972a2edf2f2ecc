//! Compiles the runtime: a library of its own with a C interface, which the tool carries as bytes.
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
    let out = PathBuf::from(variable("OUT_DIR")).join("libccscope_runtime.so");
    let status = Command::new(variable("RUSTC"))
        .args([
            "--edition=2024",
            "--crate-name=ccscope_runtime",
            "--crate-type=cdylib",
        ])
        .args([
            "-Copt-level=3",
            "-Cpanic=abort",
            "-Ccodegen-units=1",
            "-Cdebuginfo=1",
        ])
        // Stacks are walked from within the runtime.
        .arg("-Cforce-unwind-tables=yes")
        .args([
            "-Clink-arg=-nostartfiles",
            "-Clink-arg=-Wl,-z,now,-z,nodelete,--no-undefined",
        ])
        .args([
            "-Clink-arg=-Wl,-soname,libccscope_runtime.so",
            "-Clink-arg=-lc",
        ])
        .args(["--target", &target])
        .arg("-o")
        .arg(&out)
        .arg("runtime/lib.rs")
        .status()
        .expect("the compiler can be started");
    assert!(status.success(), "the runtime does not compile: {status}");
}
