//! Compiles the runtime, a library with a C interface, and two archives with its fast path, of
//! which one is linked into an instrumented program. The tool carries all three as bytes.
//!
//! They use neither `std` nor a crate but `inside`, so one call of the compiler for each is enough,
//! and the same files serve programs of any compiler.

use std::hash::{DefaultHasher, Hash, Hasher};
#[cfg(feature = "cli")]
use std::{path::PathBuf, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=runtime");
    println!("cargo::rerun-if-changed=capture_format");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(in_program)");
    // Names what a program and the library must agree on when the fast path is in the program.
    let mut hasher = DefaultHasher::new();
    for file in [
        "capture_format/mod.rs",
        "runtime/callbacks.rs",
        "runtime/capture.rs",
        "runtime/chunks.rs",
        "runtime/clock.rs",
        "runtime/counts.rs",
        "runtime/entries.rs",
        "runtime/fast_path.rs",
        "runtime/local.rs",
        "runtime/maps.rs",
        "runtime/regions/fast_path.rs",
        "runtime/regions/shadow.rs",
        "runtime/shadow.rs",
        "runtime/slow_path.rs",
        "runtime/track.rs",
    ] {
        let text = std::fs::read(file).unwrap_or_else(|error| panic!("{file}: {error}"));
        text.hash(&mut hasher);
    }
    let version = format!("{:016x}", hasher.finish());
    println!("cargo::rustc-env=CCSCOPE_FAST_PATH={version}");
    #[cfg(feature = "cli")]
    compile_libraries(&version);
}

/// Compiles what the tool carries.
#[cfg(feature = "cli")]
fn compile_libraries(version: &str) {
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
            .env("CCSCOPE_FAST_PATH", version)
            .args(words)
            .arg("-o")
            .arg(out.join(file))
            .status()
            .expect("the compiler can be started");
        assert!(status.success(), "the runtime does not compile: {status}");
    };
    const INSIDE: &str = "libccscope_inside.rlib";
    let words = [
        "--crate-name=ccscope_inside",
        "--crate-type=rlib",
        "-Cdebuginfo=1",
    ];
    compile(&[&words[..], &[inside::SOURCE]].concat(), INSIDE);
    let inside = format!("inside={}", out.join(INSIDE).display());
    let inside = ["--extern", &*inside];
    compile(
        &[
            "--crate-name=ccscope_runtime",
            "--crate-type=cdylib",
            "-Clink-arg=-nostartfiles",
            "-Clink-arg=-Wl,-z,now,-z,nodelete,--no-undefined",
            // By `ccscope attach` it comes behind the libraries whose functions it takes over.
            "-Clink-arg=-Wl,-Bsymbolic-functions",
            "-Clink-arg=-Wl,-soname,libccscope_runtime.so",
            "-Clink-arg=-lc",
            "-Cdebuginfo=1",
            inside[0],
            inside[1],
            "runtime/lib.rs",
        ],
        "libccscope_runtime.so",
    );
    for (name, source) in [
        ("fast_path", "runtime/fast_path_archive.rs"),
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
                "-Aunused",
                inside[0],
                inside[1],
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
