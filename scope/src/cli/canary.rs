//! Checks a compiler's instrumentation: a program with a known number of loads and stores is
//! compiled and run before a compiler is first used, and the counts are compared.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use super::args::RecordArgs;
use super::launch::Recording;
use super::{CliError, fail, runtime};
use crate::capture_format::{self, Chunk, layout};

/// Names and texts of files. The first one is compiled.
type Sources = &'static [(&'static str, &'static str)];

pub(super) const RUST: Sources = &[
    ("main.rs", include_str!("canary/main.rs")),
    ("sort.rs", include_str!("canary/sort.rs")),
];
/// The sources for C and C++.
pub(super) const C: Sources = &[("sort.c", include_str!("canary/sort.c"))];
/// Size of its array in bytes.
const SIZE: u64 = 80_000;
/// Loads and stores of the array.
const EXPECTED: Counts = Counts {
    loads: 410_654,
    stores: 153_536,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    loads: u64,
    stores: u64,
}

/// A compiler with all that its instrumentation depends on.
#[derive(Debug)]
pub(super) struct Canary<'a> {
    pub(super) compiler: &'a OsStr,
    /// What it says of itself, with its name in the first line.
    pub(super) version: &'a str,
    pub(super) flags: Vec<&'a OsStr>,
    pub(super) sources: Sources,
    pub(super) runtime: &'a Path,
}

impl Canary<'_> {
    /// Refuses a compiler whose flags do not count what the canary does. The answer is kept until
    /// the compiler, the flags or the runtime change.
    pub(super) fn check(&self, err: &mut dyn Write) -> Result<(), CliError> {
        let of = (self.version, &self.flags, self.sources, self.runtime);
        let mark = runtime::cache_folder()?.join(format!("canary-{:016x}", runtime::hash_of(of)));
        if mark.exists() {
            return Ok(());
        }
        writeln!(err, "ccscope: checking {} once", self.name())?;
        let counted = self.count()?;
        if counted != EXPECTED {
            let Counts { loads, stores } = EXPECTED;
            return fail(format!(
                "{} cannot be used: expected {loads} loads and {stores} stores in a known \
                 program, counted {} and {}",
                self.name(),
                counted.loads,
                counted.stores
            ));
        }
        // Without this note it is checked again.
        drop(runtime::replace(&mark, self.version.as_bytes()));
        Ok(())
    }

    fn name(&self) -> &str {
        self.version.lines().next().unwrap_or_default()
    }

    fn count(&self) -> Result<Counts, CliError> {
        let folder = tempfile::tempdir();
        let folder = folder.map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        let program = folder.path().join("canary");
        self.compile(folder.path(), &program)?;
        let record = RecordArgs {
            output: None,
            rate: 0,
            no_stacks: true,
            counters_only: false,
            processes: 0,
            page: false,
            keep_arguments: false,
            full: false,
            sample: None,
            leaks: false,
            regions: None,
            levels: false,
            all_memory: false,
            quiet: true,
        };
        let mut command = Command::new(program);
        command.stdin(Stdio::null());
        let mut recording = Recording::start(command, self.runtime, &record, true)?;
        let status = recording.end()?;
        let Some(process) = recording.processes.pop().filter(|_| status.success()) else {
            return fail(format!(
                "{}: the check of its instrumentation ended with {status}",
                self.name()
            ));
        };
        let Some(header) = process.header() else {
            return fail("the runtime does not fit this tool");
        };
        counts(process.capture(), header.chunks)
    }

    fn compile(&self, folder: &Path, program: &Path) -> Result<(), CliError> {
        for (name, text) in self.sources {
            let path = folder.join(name);
            fs::write(&path, text)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        let mut command = Command::new(self.compiler);
        command
            .arg(folder.join(self.sources[0].0))
            .args(&self.flags);
        let output = command.arg("-o").arg(program).output();
        let output = output.map_err(|error| format!("{}: {error}", self.compiler.display()))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let line = text
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("no reason given");
        fail(format!(
            "{} cannot be used: a program that loads {} times and stores {} times does not \
             compile with instrumentation: {line}",
            self.name(),
            EXPECTED.loads,
            EXPECTED.stores
        ))
    }
}

/// Accesses to the one live chunk of the array's size.
fn counts(capture: &File, chunks: u64) -> Result<Counts, CliError> {
    let mut found = Vec::new();
    let mut bytes = [0; size_of::<Chunk>()];
    for number in 1..chunks.min(layout::MAX_CHUNKS) {
        let at = layout::CHUNKS + number * size_of::<Chunk>() as u64;
        capture
            .read_exact_at(&mut bytes, at)
            .map_err(|error| error.to_string())?;
        let chunk = capture_format::read::<Chunk>(&bytes, 0).filter(|chunk| chunk.start != 0);
        found.extend(chunk.filter(|chunk| chunk.size() == SIZE));
    }
    match found[..] {
        [chunk] => Ok(Counts {
            loads: chunk.reads.into(),
            stores: chunk.writes.into(),
        }),
        _ => fail(format!(
            "expected one block of {SIZE} bytes in a known program, saw {}",
            found.len()
        )),
    }
}

#[cfg(test)]
#[path = "canary/sort.rs"]
mod sort;

#[cfg(test)]
mod tests {
    use super::sort::{Array, LEN, fill, sort};
    use super::*;

    struct Counting {
        values: Vec<u32>,
        counts: Counts,
    }

    impl Array for Counting {
        fn load(&mut self, at: usize) -> u32 {
            self.counts.loads += 1;
            self.values[at]
        }

        fn store(&mut self, at: usize, value: u32) {
            self.counts.stores += 1;
            self.values[at] = value;
        }
    }

    #[test]
    fn the_expected_counts_are_those_of_the_sort() {
        let counts = Counts {
            loads: 0,
            stores: 0,
        };
        let mut array = Counting {
            values: vec![0; LEN],
            counts,
        };
        fill(&mut array);
        sort(&mut array, 0, LEN - 1);
        assert!(array.values.is_sorted());
        assert_eq!(array.counts, EXPECTED);
        assert_eq!((LEN * size_of::<u32>()) as u64, SIZE);
    }
}
