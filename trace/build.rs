//! Compiles the tracer, a library of its own with a C interface, which the tool carries as bytes.
//!
//! It uses neither `std` nor a crate but one, so one call of the compiler for each is enough.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=tracer");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"));
    let target = variable("TARGET");
    assert!(
        target == "x86_64-unknown-linux-gnu",
        "ccscope traces on x86_64-unknown-linux-gnu only, not on {target}"
    );
    let out = PathBuf::from(variable("OUT_DIR"));
    let compile = |words: &[&str], file: &str| {
        let status = Command::new(variable("RUSTC"))
            .args(["--edition=2024", "-Copt-level=3", "-Cpanic=abort"])
            // Stacks are walked from within the tracer.
            .args(["-Ccodegen-units=1", "-Cforce-unwind-tables=yes"])
            .args(["--target", &target])
            .args(words)
            .arg("-o")
            .arg(out.join(file))
            .status()
            .expect("the compiler can be started");
        assert!(status.success(), "the tracer does not compile: {status}");
    };
    const INSIDE: &str = "libccscope_inside.rlib";
    let words = ["--crate-name=ccscope_inside", "--crate-type=rlib"];
    compile(&[&words[..], &[inside::SOURCE]].concat(), INSIDE);
    let inside = format!("inside={}", out.join(INSIDE).display());
    let words = [
        "--crate-name=ccscope_tracer",
        "--crate-type=cdylib",
        // Functions that are taken over find their caller by it.
        "-Cforce-frame-pointers=yes",
        "-Clink-arg=-nostartfiles",
        "-Clink-arg=-Wl,-z,now,-z,nodelete,--no-undefined",
        "-Clink-arg=-Wl,-soname,libccscope_tracer.so",
        "-Clink-arg=-lc",
        "--extern",
        &inside,
        "tracer/lib.rs",
    ];
    compile(&words, "libccscope_tracer.so");
}
