//! Builds the programs of `tests/programs`, runs them under the tool and opens what it has written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ccscope::Profile;
use tempfile::TempDir;

pub(crate) use crate::tools::{
    SCRATCH, SOURCES, command, compile, is_installed, numbers, succeed, text,
};

pub(crate) const CCSCOPE: &str = env!("CARGO_BIN_EXE_ccscope");

/// Runs a tool in a folder of its own, where profiles land.
pub(crate) fn run_in(folder: &Path, tool: &str, words: &[&str]) -> Output {
    let mut command = Command::new(tool);
    command.args(words).current_dir(folder).output().unwrap()
}

/// A finished run under the tool.
pub(crate) struct Run {
    pub(crate) output: Output,
    pub(crate) folder: TempDir,
}

impl Run {
    /// `ccscope run -q -o main.ccscope`, with more options and the program's words.
    pub(crate) fn of(words: &[&str]) -> Run {
        Run::with(words, |_| ())
    }

    /// The same with changes to the command.
    pub(crate) fn with(words: &[&str], change: impl FnOnce(&mut Command)) -> Run {
        let folder = TempDir::new().unwrap();
        let mut command = command(CCSCOPE);
        command
            .args(["run", "-q", "-o", "main.ccscope"])
            .args(words)
            .current_dir(folder.path());
        change(&mut command);
        let output = command.output().unwrap();
        Run { output, folder }
    }

    /// The profile of the first process.
    pub(crate) fn profile(&self) -> Profile {
        let path = self.folder.path().join("main.ccscope");
        Profile::open(&path).unwrap_or_else(|error| panic!("{error}: {}", self.err()))
    }

    /// Those of other processes.
    pub(crate) fn others(&self) -> Vec<Profile> {
        let files = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut others: Vec<PathBuf> = files
            .filter(|path| path.extension().is_some_and(|end| end == "ccscope"))
            .filter(|path| !path.ends_with("main.ccscope"))
            .collect();
        others.sort();
        others
            .iter()
            .map(|path| Profile::open(path).unwrap())
            .collect()
    }

    pub(crate) fn out(&self) -> String {
        text(&self.output.stdout)
    }

    pub(crate) fn err(&self) -> String {
        text(&self.output.stderr)
    }
}

/// A program in Rust, instrumented by `cargo ccscope run`.
pub(crate) struct Instrumented {
    pub(crate) executable: PathBuf,
    pub(crate) out: String,
    pub(crate) profile: Profile,
}

/// Builds and runs a program in Rust as users do.
pub(crate) fn cargo_run(name: &str) -> Instrumented {
    cargo_run_with(name, |_| ())
}

/// The same with changes to the command.
pub(crate) fn cargo_run_with(name: &str, change: impl FnOnce(&mut Command)) -> Instrumented {
    let package = Path::new(SCRATCH).join("programs").join(name);
    fs::create_dir_all(&package).unwrap();
    let source = Path::new(SOURCES).join(format!("{name}.rs"));
    let mut manifest = format!(
        "[package]\nname = {name:?}\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
         [[bin]]\nname = {name:?}\npath = {source:?}\n"
    );
    if fs::read_to_string(&source).unwrap().contains("ccscope::") {
        let ours = env!("CARGO_MANIFEST_DIR");
        let line =
            format!("[dependencies]\nccscope = {{ path = {ours:?}, default-features = false }}");
        manifest.push_str(&line);
    }
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    let profile = package.join("main.ccscope");
    let target = package.join("target");
    let mut command = command(env!("CARGO_BIN_EXE_cargo-ccscope"));
    command.args(["ccscope", "run", "-q", "-o", "main.ccscope", "--release"]);
    command.arg("--offline").arg("--target-dir").arg(&target);
    change(command.current_dir(&package));
    let has = |option| command.get_args().any(|word| word == option);
    let folder = match (has("--regions"), has("--all-memory")) {
        (false, _) => "ccscope",
        (true, false) => "ccscope-regions",
        (true, true) => "ccscope-regions-all",
    };
    let output = succeed(&mut command);
    Instrumented {
        executable: target
            .join(folder)
            .join("x86_64-unknown-linux-gnu/release")
            .join(name),
        out: text(&output.stdout),
        profile: Profile::open(&profile).unwrap(),
    }
}
