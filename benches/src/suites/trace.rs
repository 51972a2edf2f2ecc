//! What `ccscope trace` costs: a sort in C with each of its accesses recorded, in turns with other
//! tracers, which must see the same.
//!
//! Times are the processor's, of all processes of a run, and writing files is part of them; where
//! a function says so, they are of the sort alone.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ccmodel::simulator::{TraceKind, read_table, read_trace};

use super::scope::{Built, ROOT, done, floor};
use crate::rounds::Rounds;
use crate::sys::children_seconds;
use crate::timing::turns;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload, agree};

/// Loads and stores of the array, and all.
#[derive(Clone, Copy, Default)]
struct Accesses {
    loads: u64,
    stores: u64,
    all: u64,
}

impl Accesses {
    fn add(&mut self, kind: TraceKind, address: u64, array: &Range<u64>) {
        let is_load = u64::from(matches!(kind, TraceKind::Load | TraceKind::Modify));
        let is_store = u64::from(matches!(kind, TraceKind::Store | TraceKind::Modify));
        self.all += is_load + is_store;
        if array.contains(&address) {
            self.loads += is_load;
            self.stores += is_store;
        }
    }
}

/// One run of the sort.
struct Run {
    /// Checksum of the answer.
    sum: u64,
    /// Processor time of all of it, and of the sort alone.
    seconds: f64,
    sort_seconds: f64,
}

/// A run, and what the tracer saw of the array.
type Traced = Result<(Run, Accesses), Failure>;

/// Reads a trace.
type Reader = fn(&Path, &Range<u64>) -> Result<Accesses, Failure>;

struct Subject {
    built: Built,
    /// How many numbers are sorted.
    len: String,
}

impl Subject {
    /// Builds the tool, and the sort of `len` numbers.
    fn new(len: u32) -> Result<Subject, Failure> {
        let subject = Subject {
            built: Built::of("-p ccscope -p cctrace --features cctrace/parquet")?,
            len: len.to_string(),
        };
        subject.compile("sort.c", "sort", &["-O1"])?;
        Ok(subject)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.built.scratch.path().join(name)
    }

    fn compile(&self, source: &str, name: &str, flags: &[&str]) -> Result<(), Failure> {
        let mut compiler = Command::new("cc");
        compiler.args(flags).arg("-o").arg(self.path(name));
        done(compiler.arg(format!("{ROOT}/benches/subjects/c/{source}")))
    }

    /// Under `ccscope trace` with these words, which writes to `output`.
    fn ours(&self, words: &[&str], output: &str, reader: Reader) -> Traced {
        let mut command = Command::new(self.built.folder.join("ccscope"));
        command.args(["trace", "--quiet"]).args(words).arg("-o");
        command.arg(self.path(output));
        self.run(command, output, reader)
    }

    /// Runs the sort behind `command`, which writes to `output`.
    fn run(&self, mut command: Command, output: &str, reader: Reader) -> Traced {
        command.arg(self.path("sort")).arg(&self.len);
        let before = children_seconds();
        let ended = command.stderr(Stdio::inherit()).output()?;
        let seconds = children_seconds() - before;
        let text = String::from_utf8_lossy(&ended.stdout);
        let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        let Ok(&[start, bytes, sum, nanoseconds]) = numbers.as_deref() else {
            return Err(format!("{command:?}: {}", ended.status).into());
        };
        let accesses = reader(&self.path(output), &(start..start + bytes))?;
        let sort_seconds = nanoseconds as f64 / 1e9;
        let run = Run {
            sum,
            seconds,
            sort_seconds,
        };
        Ok((run, accesses))
    }
}

/// Text of lackey.
fn lackey(path: &Path, array: &Range<u64>) -> Result<Accesses, Failure> {
    let mut accesses = Accesses::default();
    read_trace(BufReader::new(File::open(path)?), |record| {
        accesses.add(record.kind, record.address, array);
    })?;
    Ok(accesses)
}

/// Our form `raw`: `L#7:0x55e0c2a0,4,..`.
fn raw(path: &Path, array: &Range<u64>) -> Result<Accesses, Failure> {
    let mut accesses = Accesses::default();
    for line in BufReader::new(File::open(path)?).lines() {
        let line = line?;
        let kind = match line.get(..1) {
            Some("L") => TraceKind::Load,
            Some("S") => TraceKind::Store,
            _ => continue,
        };
        let address = line.split([':', ',']).nth(1).unwrap_or_default();
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
        accesses.add(kind, address, array);
    }
    Ok(accesses)
}

/// Our table.
fn table(path: &Path, array: &Range<u64>) -> Result<Accesses, Failure> {
    let mut accesses = Accesses::default();
    read_table(File::open(path)?, |record| {
        accesses.add(record.kind, record.address, array);
    })?;
    Ok(accesses)
}

/// The log of `madt.c`: an instruction, an address, and 1 for a store.
fn log(path: &Path, array: &Range<u64>) -> Result<Accesses, Failure> {
    let (mut accesses, bytes) = (Accesses::default(), std::fs::read(path)?);
    let (words, _) = bytes.as_chunks::<8>();
    let (records, _) = words.as_chunks::<3>();
    for &[_, address, is_store] in records {
        let kind = match u64::from_le_bytes(is_store) {
            0 => TraceKind::Load,
            _ => TraceKind::Store,
        };
        accesses.add(kind, u64::from_le_bytes(address), array);
    }
    Ok(accesses)
}

/// Ours and another one in turns: nanoseconds for each access of the array.
fn race(
    workload: &Workload,
    effort: &Effort,
    rival: &str,
    sides: [&dyn Fn() -> Traced; 2],
    seconds: fn(&Run) -> f64,
) -> Rows {
    let (mut times, mut expected) = ([Vec::new(), Vec::new()], None);
    for which in turns(effort.process_rounds, 2) {
        let (run, accesses) = sides[which]()?;
        let found = (run.sum, accesses.loads, accesses.stores);
        agree(&mut expected, found, workload.name, ["ours", rival][which])?;
        let number = (accesses.loads + accesses.stores) as f64;
        times[which].push(seconds(&run) * 1e9 / number);
    }
    let [ours, theirs] = times.map(Rounds::new);
    let row = Comparison::new(workload.name, rival, "ns", &ours, &theirs);
    Ok(vec![row])
}

/// Beside valgrind's lackey: both write lackey's text, ours of heap and globals only.
pub(super) fn beside_lackey(workload: &Workload, effort: &Effort) -> Rows {
    let version = Command::new("valgrind").arg("--version").output();
    if !version.is_ok_and(|it| it.status.success()) {
        eprintln!("left out: {} (there is no valgrind)", workload.name);
        return Ok(Vec::new());
    }
    let subject = Subject::new(20_000)?;
    let ours = || subject.ours(&["--form=lackey"], "ours.txt", lackey);
    let theirs = || {
        let log = subject.path("lackey.txt");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=lackey", "--trace-mem=yes"]);
        valgrind.arg(format!("--log-file={}", log.display()));
        subject.run(valgrind, "lackey.txt", lackey)
    };
    let sides: [&dyn Fn() -> Traced; 2] = [&ours, &theirs];
    race(workload, effort, "valgrind lackey", sides, |run| {
        run.seconds
    })
}

/// Beside the mechanism of MadT, which records the array, ours all of the heap. Of the sort alone:
/// theirs starts no tool, finds no names and writes no text.
pub(super) fn beside_madt(workload: &Workload, effort: &Effort) -> Rows {
    let subject = Subject::new(8_000)?;
    subject.compile("madt.c", "madt.so", &["-O2", "-shared", "-fPIC"])?;
    let ours = || subject.ours(&["--form=raw", "--only=heap"], "ours.txt", raw);
    let theirs = || {
        let mut env = Command::new("env");
        for (name, file) in [("LD_PRELOAD", "madt.so"), ("MADT_LOG", "madt.log")] {
            env.arg(format!("{name}={}", subject.path(file).display()));
        }
        subject.run(env, "madt.log", log)
    };
    let sides: [&dyn Fn() -> Traced; 2] = [&ours, &theirs];
    race(workload, effort, "MadT's mechanism", sides, |run| {
        run.sort_seconds
    })
}

/// The bytes of a table for each load and store in it.
pub(super) fn bytes_per_access(workload: &Workload, _: &Effort) -> Rows {
    let subject = Subject::new(20_000)?;
    let (run, in_table) = subject.ours(&[], "ours.parquet", table)?;
    let (again, in_text) = subject.ours(&["--form=lackey"], "ours.txt", lackey)?;
    let mut expected = None;
    for (run, accesses, who) in [(run, in_table, "the table"), (again, in_text, "the text")] {
        let found = (run.sum, accesses.loads, accesses.stores);
        agree(&mut expected, found, workload.name, who)?;
    }
    let bytes = std::fs::metadata(subject.path("ours.parquet"))?.len();
    let each = Rounds::once(bytes as f64 / in_table.all as f64);
    Ok(vec![floor(workload.name, "B", &each, 4.0)])
}

/// Ours with instructions patched that fault often, beside ours with a fault for each access. Of
/// the sort alone, since reading names and writing text takes the same with both.
pub(super) fn patched(workload: &Workload, effort: &Effort) -> Rows {
    let subject = Subject::new(20_000)?;
    let ours = || subject.ours(&["--form=lackey", "--patch"], "ours.txt", lackey);
    let theirs = || subject.ours(&["--form=lackey"], "ours.txt", lackey);
    let sides: [&dyn Fn() -> Traced; 2] = [&ours, &theirs];
    race(workload, effort, "a fault for each", sides, |run| {
        run.sort_seconds
    })
}
