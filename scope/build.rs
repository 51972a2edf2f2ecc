//! Compiles the runtime: a library of its own with a C interface, and an archive with its hot path;
//! and the tracer, another library.
//! The tool carries both as bytes.
//!
//! It uses neither `std` nor a crate, so one call of the compiler is enough, and the same file
//! serves programs of any compiler.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=runtime");
    println!("cargo::rerun-if-changed=format");
    println!("cargo::rerun-if-changed=tracer");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(in_program)");
    // Names what a program and the library must agree on when the hot path is in the program.
    let mut hasher = DefaultHasher::new();
    for file in [
        "format/mod.rs",
        "runtime/access.rs",
        "runtime/arena.rs",
        "runtime/callbacks.rs",
        "runtime/chunks.rs",
        "runtime/hot.rs",
        "runtime/local.rs",
        "runtime/maps.rs",
        "runtime/regions/hot.rs",
        "runtime/regions/shadow.rs",
        "runtime/shadow.rs",
    ] {
        let text = std::fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        text.hash(&mut hasher);
    }
    let hot = format!("{:016x}", hasher.finish());
    println!("cargo::rustc-env=CCSCOPE_HOT={hot}");
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
            .env("CCSCOPE_HOT", &hot)
            .args(words)
            .arg("-o")
            .arg(out.join(file))
            .status()
            .expect("the compiler can be started");
        assert!(status.success(), "the runtime does not compile: {status}");
    };
    for (name, words) in [
        ("runtime", &["-Cdebuginfo=1"][..]),
        // Functions that are taken over find their caller by it.
        ("tracer", &["-Cforce-frame-pointers=yes"]),
    ] {
        let file = format!("libccscope_{name}.so");
        let (crate_name, soname, source) = (
            format!("--crate-name=ccscope_{name}"),
            format!("-Clink-arg=-Wl,-soname,{file}"),
            format!("{name}/lib.rs"),
        );
        let mut all = vec![
            &*crate_name,
            "--crate-type=cdylib",
            "-Clink-arg=-nostartfiles",
            "-Clink-arg=-Wl,-z,now,-z,nodelete,--no-undefined",
            &soname,
            "-Clink-arg=-lc",
            &source,
        ];
        all.extend(words);
        compile(&all, &file);
    }
    for (name, source) in [
        ("hot", "runtime/hot_archive.rs"),
        ("regions", "runtime/regions_archive.rs"),
    ] {
        // To the linker, an `rlib` is an archive.
        let file = format!("libccscope_{name}.rlib");
        compile(
            &[
                &format!("--crate-name=ccscope_{name}"),
                "--crate-type=rlib",
                "--cfg=in_program",
                // Loops that call these take up to a sixth longer where one begins at an odd
                // multiple of 16.
                "-Cllvm-args=-align-all-functions=5",
                "-Adead_code",
                source,
            ],
            &file,
        );
        // What a program says of its compilers is not to tell of ours.
        let archive = out.join(file);
        let mut bytes = std::fs::read(&archive).expect("it was just written");
        while let Some(at) = bytes.windows(13).position(|it| it == b"rustc version") {
            bytes[at..]
                .iter_mut()
                .take_while(|it| **it != 0)
                .for_each(|it| *it = 0);
        }
        std::fs::write(&archive, bytes).expect("it was just written");
    }
}
