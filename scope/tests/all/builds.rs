//! `cargo ccscope` with others' settings: optimisation by the linker, runners, flags, linkers, and
//! several programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use ccscope::Profile;
use tempfile::TempDir;

use crate::programs::{command, is_installed, succeed, text};

/// A package whose only program is `source`, which is built by the tests' own compiler.
fn package(source: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    fs::create_dir_all(path.join("src")).unwrap();
    fs::create_dir_all(path.join(".cargo")).unwrap();
    let manifest = "[package]\nname = \"it\"\nedition = \"2021\"\n[workspace]\n\
                    [lints.rust]\nunexpected_cfgs = \"allow\"\n";
    fs::write(path.join("Cargo.toml"), manifest).unwrap();
    fs::write(path.join("src/main.rs"), source).unwrap();
    folder
}

fn configure(folder: &TempDir, text: &str) {
    fs::write(folder.path().join(".cargo/config.toml"), text).unwrap();
}

/// `cargo ccscope` in that folder, without what cargo has set for this test.
fn cargo(folder: &Path, words: &[&str]) -> Command {
    let mut command = command(env!("CARGO_BIN_EXE_cargo-ccscope"));
    command.arg("ccscope").args(words).arg("--offline");
    command.current_dir(folder).env_remove("CARGO_TARGET_DIR");
    command
}

fn err(output: &Output) -> String {
    text(&output.stderr)
}

#[test]
fn counts_do_not_depend_on_optimisation_by_the_linker() {
    let folder = package(
        "fn main() { let v: Vec<u64> = std::hint::black_box((0..100_000).collect()); let mut s = 0;
        for _ in 0..50 { s += std::hint::black_box(&v).iter().sum::<u64>() } println!(\"{s}\") }",
    );
    let counts = |lto: &str, flags: &str| {
        let mut command = cargo(folder.path(), &["run", "-r", "-o", "p"]);
        command.env("CARGO_PROFILE_RELEASE_LTO", lto);
        let output = succeed(command.env("RUSTFLAGS", flags));
        let said = err(&output)
            .matches("without link-time optimisation")
            .count();
        let profile = Profile::open(folder.path().join("p")).unwrap();
        let sites = profile.sites.iter();
        let site = sites.max_by_key(|site| site.largest).unwrap();
        assert!(site.reads > 0, "{site:?}");
        (said, (site.reads, site.writes))
    };
    let (said, expected) = counts("off", "");
    assert_eq!(said, 0);
    for (lto, flags) in [
        ("thin", ""),
        ("fat", ""),
        ("off", "-Clinker-plugin-lto -Clto=thin"),
    ] {
        assert_eq!(counts(lto, flags), (1, expected), "{lto} {flags}");
    }
    assert_eq!(counts("false", ""), (0, expected));
}

#[test]
fn programs_are_started_by_the_user_s_runner() {
    let folder = package("fn main() { println!(\"{:?}\", std::env::var(\"A\").ok()); }");
    let tool = folder.path().join("tools");
    fs::create_dir(&tool).unwrap();
    let script = tool.join("script");
    fs::write(&script, "#!/bin/sh\nA=script exec \"$@\"\n").unwrap();
    succeed(Command::new("chmod").arg("+x").arg(script));
    let run = |config: &str, words: &[&str], variable: Option<&str>| {
        configure(&folder, config);
        drop(fs::remove_file(folder.path().join("p")));
        let mut command = cargo(folder.path(), &[&["run", "-o", "p"], words].concat());
        command.envs(variable.map(|it| ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", it)));
        let output = succeed(&mut command);
        assert!(Profile::open(folder.path().join("p")).unwrap().run.accesses);
        text(&output.stdout)
    };
    let triple = |value: &str| format!("[target.x86_64-unknown-linux-gnu]\nrunner = {value}\n");
    let cfg = |cfg: &str| format!("[target.'cfg({cfg})']\nrunner = [\"env\", \"A=4\"]\n");
    let file = triple("\"env A=1\"");
    let option = "target.x86_64-unknown-linux-gnu.runner='env A=6'";
    for (config, words, variable, expected) in [
        ("", &[][..], None, "None"),
        (&file, &[], None, "Some(\"1\")"),
        (&triple("[\"env\", \"A=2 3\"]"), &[], None, "Some(\"2 3\")"),
        (&triple("\"tools/script\""), &[], None, "Some(\"script\")"),
        (&cfg("all(unix, not(windows))"), &[], None, "Some(\"4\")"),
        (&cfg("windows"), &[], None, "None"),
        (&file, &[], Some("env A=5"), "Some(\"5\")"),
        (&file, &["--config", option], Some("env A=5"), "Some(\"6\")"),
    ] {
        assert_eq!(run(config, words, variable).trim(), expected, "{config}");
    }
    // A cargo that starts the program itself.
    let deaf = folder.path().join("cargo");
    let script = "#!/bin/sh\ncase $1 in run) echo ran;; *) exec cargo \"$@\";; esac\n";
    fs::write(&deaf, script).unwrap();
    succeed(Command::new("chmod").arg("+x").arg(&deaf));
    let output = succeed(cargo(folder.path(), &["run"]).env("CARGO", deaf));
    assert!(
        err(&output).contains("ccscope: no profile: cargo started"),
        "{output:?}"
    );
}

/// Each line of configuration and variables, with the `cfg`s that plain cargo sets by it.
#[test]
#[ignore = "takes long: CI runs it"]
fn flags_are_those_that_cargo_takes() {
    let folder = package(
        "fn main() { let all = [(\"a\", cfg!(a)), (\"b\", cfg!(b)), (\"c\", cfg!(c))];
        for (name, on) in all { if on { print!(\"{name}\") } } println!(); }",
    );
    let build = "[build]\nrustflags = [\"--cfg\", \"a\"]\n";
    let target = "[target.x86_64-unknown-linux-gnu]\nrustflags = \"--cfg b\"\n";
    let cfg = "[target.'cfg(unix)']\nrustflags = [\"--cfg\", \"c\"]\n";
    let broken = "[target.'cfg(unix)']\nrustflags = \"--no-such-option\"\n";
    let wrapper = "[build]\nrustc-wrapper = \"env\"\n";
    let mut before = String::new();
    for (config, variable, expected) in [
        (build.to_owned(), "", "a"),
        (format!("{build}{target}"), "", "b"),
        (format!("{build}{target}{cfg}"), "", "bc"),
        (format!("{broken}{build}"), "RUSTFLAGS=--cfg c", "c"),
        (
            target.to_owned(),
            "CARGO_ENCODED_RUSTFLAGS=--cfg\u{1f}a",
            "a",
        ),
        (build.to_owned(), "CARGO_BUILD_RUSTFLAGS=--cfg c", "ac"),
        (
            cfg.to_owned(),
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS=--cfg a",
            "ac",
        ),
        (format!("{wrapper}{target}"), "", "b"),
    ] {
        configure(&folder, &config);
        let run = |mut command: Command| {
            command.envs(variable.split_once('='));
            text(&succeed(&mut command).stdout).trim().to_owned()
        };
        let mut plain = Command::new("cargo");
        plain.args(["run", "--offline"]).current_dir(folder.path());
        plain.env_remove("CARGO_TARGET_DIR");
        if variable.starts_with("CARGO_ENCODED") || before != expected {
            assert_eq!(run(plain), expected, "plain cargo: {config} {variable}");
        }
        let ours = run(cargo(folder.path(), &["run", "-q", "-o", "p"]));
        assert_eq!(ours, expected, "{config} {variable}");
        assert!(Profile::open(folder.path().join("p")).unwrap().run.accesses);
        before = expected.to_owned();
    }
}

#[test]
fn profiles_of_several_programs_are_numbered() {
    let folder =
        package("#[test] fn a() { drop(std::hint::black_box(Box::new(7))) }\nfn main() {}");
    let path = folder.path();
    fs::create_dir(path.join("tests")).unwrap();
    fs::write(path.join("tests/one.rs"), "#[test] fn b() {}").unwrap();
    fs::write(path.join("tests/two.rs"), "#[test] fn c() {}").unwrap();
    for (name, files) in [
        ("X", ["X.1", "X.2", "X.3", "X.1.html", "X.3.html"]),
        (
            "p.ccscope",
            [
                "p.1.ccscope",
                "p.2.ccscope",
                "p.3.ccscope",
                "p.1.html",
                "p.3.html",
            ],
        ),
    ] {
        let output = succeed(&mut cargo(path, &["test", "--page", "-o", name]));
        assert!(
            err(&output).contains("several programs"),
            "{}",
            err(&output)
        );
        assert!(
            files.iter().all(|file| path.join(file).exists()),
            "{}",
            err(&output)
        );
        assert!(!path.join(name).exists());
        let names = files[..3]
            .iter()
            .map(|file| Profile::open(path.join(file)).unwrap().run.command);
        let mut names: Vec<String> = names.map(|words| words[0].clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 3, "{names:?}");
    }
}

/// An allocator in an archive, under the names of jemalloc.
#[test]
fn allocators_are_wrapped_by_each_linker() {
    let folder = package(
        "use std::alloc::{GlobalAlloc, Layout};
        extern \"C\" { fn _rjem_malloc(n: usize) -> *mut u8; fn _rjem_free(p: *mut u8); }
        struct A;
        unsafe impl GlobalAlloc for A {
            unsafe fn alloc(&self, l: Layout) -> *mut u8 { _rjem_malloc(l.size()) }
            unsafe fn dealloc(&self, p: *mut u8, _: Layout) { _rjem_free(p) }
        }
        #[global_allocator]
        static G: A = A;
        fn main() { println!(\"{}\", std::hint::black_box(vec![1u8; 1234]).len()) }",
    );
    let path = folder.path();
    let allocator = "#include <stdlib.h>\nvoid *_rjem_malloc(size_t n) { return malloc(n); }\n\
                     void _rjem_free(void *p) { free(p); }\n";
    fs::write(path.join("j.c"), allocator).unwrap();
    succeed(
        Command::new("cc")
            .args(["-c", "-fPIC", "j.c"])
            .current_dir(path),
    );
    succeed(
        Command::new("ar")
            .args(["rcs", "libj.a", "j.o"])
            .current_dir(path),
    );
    let build = format!(
        "fn main() {{ println!(\"cargo::rustc-link-search={}\"); \
         println!(\"cargo::rustc-link-lib=static=j\") }}",
        path.display()
    );
    fs::write(path.join("build.rs"), build).unwrap();
    for (linker, flags) in [
        ("cc", "-Clinker-features=-lld"),
        ("mold", "-Clinker=clang -Clink-arg=-fuse-ld=mold"),
        ("lld", "-Clinker=clang -Clink-arg=-fuse-ld=lld"),
    ] {
        if !is_installed("clang") || !is_installed(linker) && linker != "lld" {
            continue;
        }
        let mut command = cargo(path, &["run", "-o", "p"]);
        let output = succeed(command.env("RUSTFLAGS", flags));
        assert_eq!(text(&output.stdout), "1234\n", "{linker}");
        let profile = Profile::open(path.join("p")).unwrap();
        let site = profile.sites.iter().find(|site| site.largest == 1234);
        assert!(
            site.is_some_and(|site| site.writes > 0),
            "{linker}: {:?}",
            profile.sites
        );
    }
}

/// A module that another program loads: its accesses, its types, and no note about the program.
#[test]
fn modules_of_other_programs_are_built_and_seen() {
    if !is_installed("python3") {
        return;
    }
    let folder = package("");
    let path = folder.path();
    let source = "#[no_mangle] pub extern \"C\" fn total(n: u64) -> u64 {
        let list: Vec<u64> = std::hint::black_box((0..n).collect()); list.iter().sum() }";
    fs::write(path.join("src/lib.rs"), source).unwrap();
    fs::remove_file(path.join("src/main.rs")).unwrap();
    let manifest = "[package]\nname = \"it\"\nedition = \"2021\"\n[workspace]\n\
                    [lib]\ncrate-type = [\"cdylib\"]\n[profile.release]\nlto = \"thin\"\n";
    fs::write(path.join("Cargo.toml"), manifest).unwrap();
    let said = err(&succeed(&mut cargo(path, &["build", "--release"])));
    assert!(
        said.contains("built in") && said.contains("without link-time"),
        "{said}"
    );
    let library = path.join("target/ccscope/x86_64-unknown-linux-gnu/release/libit.so");
    let script = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).total(1001))";
    let mut run = command(crate::programs::CCSCOPE);
    run.args([
        "run",
        "-q",
        "--processes=0",
        "-o",
        "p",
        "python3",
        "-c",
        script,
    ])
    .arg(library);
    let output = succeed(run.current_dir(path));
    assert_eq!(text(&output.stdout), "500500\n");
    let profile = Profile::open(path.join("p")).unwrap();
    let site = profile
        .sites
        .iter()
        .find(|site| site.largest == 8008)
        .unwrap();
    assert!(
        site.reads > 0 && site.writes > 0 && site.touched_bytes == 8008,
        "{site:?}"
    );
    assert_eq!(
        profile.types[site.type_id.unwrap() as usize].name,
        "Vec<u64>"
    );
    let notes = profile.run.caveats.concat();
    assert!(!notes.contains("Cargo.toml"), "{notes}");
}
