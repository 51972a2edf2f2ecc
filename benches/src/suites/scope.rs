//! What `ccscope` costs: programs of the package `subjects` with it and without, in turns.
//!
//! Times are the processor's, for all threads of a program and without the tool beside it: other
//! programs have no part in them. Those of real programs are of their whole process. Overheads, in
//! `x`, are held against the largest allowed.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ccscope::profile::{Chunk, Profile};
use tempfile::TempDir;

use crate::programs::Scale;
use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::sys::peak_of;
use crate::timing::turns;
use crate::workload::{Comparison, Effort, Failure, Rows, SEED, Workload, agree};

/// This repository.
pub(super) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Programs of `subjects`, and how many rounds of each a quick and a full run take.
pub(super) const PROGRAMS: [(&str, [u64; 2]); 11] = [
    ("tree_find", [1, 2]),
    ("tree_sum", [1, 4]),
    ("vec_sum", [2, 10]),
    ("vec_gather", [1, 1]),
    ("vec_push", [1, 4]),
    ("hashmap", [1, 6]),
    ("sort", [1, 5]),
    ("btree", [1, 2]),
    // 2 MB and 100 MB.
    ("json", [1, 50]),
    ("maps", [1, 4]),
    ("alloc", [1, 1]),
];

/// A program that does not know that it is measured.
pub(super) struct Real {
    pub(super) name: &'static str,
    /// For cargo. One of the registry is NAME@VERSION; one with a path is no member.
    pub(super) package: &'static str,
    pub(super) target: [&'static str; 2],
    pub(super) threads: &'static [u64],
    /// As many of its lines as do not depend on time.
    pub(super) lines: u64,
    /// The arguments of a quick and of a full run, by the number of threads. `SCRATCH` is a folder.
    pub(super) words: [fn(u64) -> String; 2],
}

/// They read this repository, in a full run so often that starting them has no part in the figures.
const REAL_PROGRAMS: [Real; 3] = [
    Real {
        name: "quickstart",
        package: "examples",
        target: ["--example", "quickstart"],
        threads: &[1],
        lines: 2,
        words: [
            |_| "Cargo.lock 5000".to_owned(),
            |_| "Cargo.lock 40000".to_owned(),
        ],
    },
    Real {
        name: "ripgrep",
        package: "ripgrep@15.2.0",
        target: ["--bin", "rg"],
        threads: &[1, 2],
        lines: u64::MAX,
        words: [
            |threads| format!("-j{threads} fn ."),
            |threads| format!("-j{threads} fn{}", " .".repeat(10)),
        ],
    },
    // Its threads are those of `RAYON_NUM_THREADS`.
    Real {
        name: "tokei",
        package: "tokei@15.0.0",
        target: ["--bin", "tokei"],
        threads: &[1, 2],
        lines: u64::MAX,
        words: [|_| ".".to_owned(), |_| " .".repeat(10).trim().to_owned()],
    },
];

/// One run of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    processor_ms: f64,
    wall_ms: f64,
    peak_mib: f64,
}

pub(super) const PROCESSOR: fn(&Run) -> f64 = |run| run.processor_ms;
pub(super) const WALL: fn(&Run) -> f64 = |run| run.wall_ms;
pub(super) const PEAK: fn(&Run) -> f64 = |run| run.peak_mib;

/// The first words of a command: a profiler with its options, and a program.
pub(super) type Way = Vec<String>;

/// A program with its words, in each of some ways.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) ways: Vec<Way>,
    pub(super) words: Vec<String>,
    pub(super) threads: u64,
}

/// Below the folder of release builds.
pub(super) const INSTRUMENTED: &str = "../ccscope/x86_64-unknown-linux-gnu/release";
pub(super) const PROFILED: &str = "PROFILER run --quiet --output PROFILE";
const COUNTERS_ONLY: &str = "PROFILER run --quiet --output PROFILE --counters-only";

pub(super) struct Built {
    /// Where cargo puts release builds.
    pub(super) folder: PathBuf,
    pub(super) scratch: TempDir,
}

impl Built {
    /// Builds the packages that the words name for cargo.
    pub(super) fn of(packages: &str) -> Result<Self, Failure> {
        let measure = std::env::current_exe()?;
        let folder = measure.parent().ok_or("no folder of programs")?.to_owned();
        let built = Built {
            folder,
            scratch: TempDir::new()?,
        };
        built.build(packages.split(' '))?;
        Ok(built)
    }

    fn new() -> Result<Self, Failure> {
        let built = Built::of("-p ccscope -p subjects --features subjects/dhat")?;
        let subjects = "-p subjects --bin subjects -- tree_sum 1 1";
        built.instrument(subjects.split(' '))?;
        Ok(built)
    }

    fn build<'a>(&self, words: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
        let mut cargo = cargo();
        cargo.args(["build", "--quiet", "--release", "--target-dir"]);
        done(cargo.arg(self.folder.with_file_name("")).args(words))
    }

    /// The words have a run at their end.
    pub(super) fn instrument<'a>(
        &self,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<(), Failure> {
        let mut cargo = Command::new(self.folder.join("cargo-ccscope"));
        cargo
            .current_dir(ROOT)
            .args(["ccscope", "run", "--quiet", "--output"]);
        cargo
            .arg(self.profile())
            .args(["--release", "--target-dir"]);
        done(cargo.arg(self.folder.with_file_name("")).args(words))
    }

    pub(super) fn profile(&self) -> PathBuf {
        self.scratch.path().join("main.ccscope")
    }

    /// `program` after `words`.
    pub(super) fn way(&self, words: &str, program: &str) -> Way {
        let words = words.split_whitespace().map(|word| match word {
            "PROFILER" => self.folder.join("ccscope").display().to_string(),
            "PROFILE" => self.profile().display().to_string(),
            _ => word.to_owned(),
        });
        let program = self.folder.join(program).display().to_string();
        words.chain([program]).collect()
    }

    /// Without a profiler, instrumented, with allocations only, and with totals only.
    fn ways(&self) -> [Way; 4] {
        [
            self.way("", "subjects"),
            self.way(PROFILED, &format!("{INSTRUMENTED}/subjects")),
            self.way(PROFILED, "subjects"),
            self.way(COUNTERS_ONLY, "subjects"),
        ]
    }

    fn subject(&self, (name, work): (&str, u64), threads: u64) -> Case {
        Case {
            name: format!("{name}_{threads}"),
            ways: self.ways().to_vec(),
            words: vec![name.to_owned(), threads.to_string(), work.to_string()],
            threads,
        }
    }

    /// Builds `real`, plain and instrumented; a case for each number of threads. It runs in a
    /// process of its own below `subjects`, which is told its cost by the kernel.
    pub(super) fn real(
        &self,
        real: &Real,
        scale: Scale,
        ways: &[Way],
    ) -> Result<Vec<Case>, Failure> {
        let mut words = self.package(real.package)?;
        words.extend(real.target.map(str::to_owned));
        self.build(words.iter().map(String::as_str))?;
        words.push("--".to_owned());
        let scratch = self.scratch.path().display().to_string();
        let words_of = |words: String| words.replace("SCRATCH", &scratch);
        let run = words_of(real.words[0](1));
        self.instrument(words.iter().map(String::as_str).chain(run.split(' ')))?;
        let file = match real.target {
            ["--example", name] => format!("examples/{name}"),
            [_, name] => name.to_owned(),
        };
        let instrumented = format!("{INSTRUMENTED}/{file}");
        let lines = real.lines.to_string();
        let ways = ways.iter().zip([&file, &instrumented, &file, &file]);
        let ways = ways.map(|(way, file)| {
            let file = self.folder.join(file).display().to_string();
            let of = ["of".to_owned(), lines.clone(), file];
            way.iter().cloned().chain(of).collect()
        });
        let ways: Vec<Way> = ways.collect();
        let cases = real.threads.iter().map(|&threads| {
            let words = words_of(scale.pick(real.words[0], real.words[1])(threads));
            Case {
                name: format!("{}_{threads}", real.name),
                ways: ways.clone(),
                words: words.split(' ').map(str::to_owned).collect(),
                threads,
            }
        });
        Ok(cases.collect())
    }

    /// The words by which cargo finds a package.
    fn package(&self, package: &str) -> Result<Vec<String>, Failure> {
        let folder = match package.split_once('@') {
            Some((name, version)) => source(name, version)?,
            None if package.contains('/') => PathBuf::from(ROOT).join(package),
            None => return Ok(vec!["-p".to_owned(), package.to_owned()]),
        };
        let (folder, locked) = match folder.join("Cargo.lock").exists() {
            true => (folder, Some("--locked".to_owned())),
            // It gets one, but not among cargo's sources.
            false => {
                let copy = self.scratch.path().join(package);
                done(Command::new("cp").arg("-r").args([&folder, &copy]))?;
                (copy, None)
            }
        };
        let manifest = folder.join("Cargo.toml").display().to_string();
        let words = [Some("--manifest-path".to_owned()), Some(manifest), locked];
        Ok(words.into_iter().flatten().collect())
    }
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(ROOT);
    cargo
}

pub(super) fn done(command: &mut Command) -> Result<(), Failure> {
    let output = command.stderr(Stdio::inherit()).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {}", output.status).into()),
    }
}

/// The folder of a package's source, which cargo unpacks.
fn source(name: &str, version: &str) -> Result<PathBuf, Failure> {
    // Without a network, it may be there all the same.
    let package = format!("{name}@{version}");
    drop(cargo().args(["info", "--quiet", &package]).output()?);
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = home.ok_or("no home folder")?.join("registry/src");
    let registries = std::fs::read_dir(&sources)?.filter_map(Result::ok);
    let mut folders = registries.map(|it| it.path().join(format!("{name}-{version}")));
    let found = folders.find(|folder| folder.is_dir());
    found.ok_or_else(|| format!("{package} cannot be fetched").into())
}

/// `case` in each of its ways, in turns.
pub(super) fn measure(case: &Case, rounds: usize) -> Result<Vec<Vec<Run>>, Failure> {
    let (mut all, mut expected) = (vec![Vec::new(); case.ways.len()], None);
    for which in turns(rounds, case.ways.len()) {
        let way = &case.ways[which];
        let (program, words) = way.split_first().expect("it names a program");
        let mut command = Command::new(program);
        command.args(words).args(&case.words).current_dir(ROOT);
        command.env("RAYON_NUM_THREADS", case.threads.to_string());
        let output = command.stderr(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.strip_prefix("subject "));
        let numbers = line.unwrap_or_default().split(' ').map(str::parse);
        let numbers: Result<Vec<u64>, _> = numbers.collect();
        let Ok(&[sum, processor, wall, peak]) = numbers.as_deref() else {
            return Err(format!("{command:?}: {}", output.status).into());
        };
        agree(&mut expected, sum, &case.name, &way.join(" "))?;
        all[which].push(Run {
            processor_ms: processor as f64 / 1e6,
            wall_ms: wall as f64 / 1e6,
            peak_mib: peak as f64 / f64::from(1 << 20),
        });
    }
    Ok(all)
}

pub(super) fn rounds(runs: &[Run], figure: fn(&Run) -> f64) -> Rounds {
    Rounds::new(runs.iter().map(figure).collect())
}

pub(super) fn overhead(with: &[Run], without: &[Run], figure: fn(&Run) -> f64) -> Rounds {
    let pairs = with.iter().zip(without);
    Rounds::new(
        pairs
            .map(|(with, without)| figure(with) / figure(without))
            .collect(),
    )
}

/// The one with the largest median.
pub(super) fn worst(all: &[Rounds]) -> &Rounds {
    let worst = all.iter().max_by(|a, b| a.median().total_cmp(&b.median()));
    worst.expect("there are programs")
}

/// What is held against the largest that is allowed.
pub(super) fn floor(name: &str, unit: &str, ours: &Rounds, largest: f64) -> Comparison {
    let allowed = Rounds::new(vec![largest; ours.each().len()]);
    Comparison::new(name, "largest allowed", unit, ours, &allowed)
}

/// All programs with one thread and two: accesses, allocations with stacks, and totals only.
pub(super) fn programs(workload: &Workload, effort: &Effort) -> Rows {
    let built = Built::new()?;
    let subjects = PROGRAMS.iter().flat_map(|&(name, [quick, full])| {
        let work = effort.scale.pick(quick, full);
        [1, 2].map(|threads| built.subject((name, work), threads))
    });
    let mut cases: Vec<Case> = subjects.collect();
    for real in &REAL_PROGRAMS {
        match built.real(real, effort.scale, &built.ways()) {
            Ok(real) => cases.extend(real),
            Err(error) => eprintln!("left out: {} ({error})", real.name),
        }
    }
    let (mut rows, mut overheads) = (Vec::new(), [const { Vec::new() }; 4]);
    let count = effort.scale.pick(1, effort.process_rounds);
    for case in &cases {
        let runs = measure(case, count)?;
        let figures = [(1, PROCESSOR), (1, PEAK), (2, PROCESSOR), (3, PROCESSOR)];
        for (sum, (way, figure)) in overheads.iter_mut().zip(figures) {
            sum.push(overhead(&runs[way], &runs[0], figure));
        }
        let [without, heap, stacks, _] = [0, 1, 2, 3].map(|way| rounds(&runs[way], PROCESSOR));
        for (kind, with) in [(workload.name, heap), ("scope_alloc_of", stacks)] {
            let name = format!("{kind}_{}", case.name);
            rows.push(Comparison::new(name, "not profiled", "ms", &with, &without));
        }
    }
    let mean = |which: usize| Rounds::geometric_mean(&overheads[which]);
    let floors = [
        ("scope_heap_geomean", &mean(0), 5.0),
        ("scope_heap_max", worst(&overheads[0]), 12.0),
        ("scope_memory_geomean", &mean(1), 2.0),
        ("scope_alloc_geomean", &mean(2), 1.15),
        ("scope_counters_only", &mean(3), 1.05),
    ];
    let floors = floors.map(|(name, overhead, largest)| floor(name, "x", overhead, largest));
    rows.splice(0..0, floors);
    Ok(rows)
}

/// The program that only allocates, beside other profilers: heaptrack by wall time, since it works
/// in a process of its own, too. DHAT sees accesses, as the instrumented program does.
pub(super) fn allocations(workload: &Workload, effort: &Effort) -> Rows {
    let built = Built::new()?;
    let mut case = built.subject(("alloc", 1), 1);
    // In place of the totals.
    case.ways[3] = built.way("", "subjects-dhat");
    let heaptrack = built.way("heaptrack --output PROFILE", "subjects");
    let dhat = "valgrind --quiet --tool=dhat --dhat-out-file=/dev/null";
    let dhat = built.way(dhat, "subjects");
    // Twenty seconds a round.
    let dhat = Some(dhat).filter(|_| effort.wants(workload, workload.if_full[0]));
    let installed = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    let others = [Some(heaptrack), dhat].into_iter().flatten();
    case.ways.extend(others.filter(|way| installed(&way[0])));
    let count = effort.scale.pick(1, effort.process_rounds);
    let runs = measure(&case, count)?;
    let of = |way: usize, figure| overhead(&runs[way], &runs[0], figure);
    let [ours, dhat_rs] = [2, 3].map(|way| of(way, PROCESSOR));
    let mut rows = vec![floor(workload.name, "x", &ours, 2.0)];
    let name = |rival: &str| format!("{}_vs_{rival}", workload.name);
    rows.push(Comparison::new(
        name("dhat_rs"),
        "dhat-rs",
        "x",
        &ours,
        &dhat_rs,
    ));
    for (way, command) in case.ways.iter().enumerate().skip(4) {
        rows.push(match &*command[0] {
            "heaptrack" => {
                let name = name("heaptrack");
                Comparison::new(name, "heaptrack", "x", &of(2, WALL), &of(way, WALL))
            }
            _ => {
                let [ours, theirs] = [1, way].map(|way| rounds(&runs[way], PROCESSOR));
                Comparison::new(workload.if_full[0], "valgrind DHAT", "ms", &ours, &theirs)
            }
        });
    }
    Ok(rows)
}

/// Shows the worst sites of a profile of 1 GB, in a process of its own.
pub(super) fn open(workload: &Workload, effort: &Effort) -> Rows {
    // A minute, and 3 GB of memory and disk.
    if !effort.wants(workload, workload.if_full[0]) {
        return Ok(Vec::new());
    }
    let built = Built::new()?;
    let mut profile = Profile::open(built.profile())?;
    let mut random = Rng::new(SEED);
    let chunk = *profile.chunks.first().ok_or("no chunk")?;
    // Seven numbers of nine or ten bytes.
    profile.chunks.resize_with(15_000_000, || Chunk {
        address: random.next_u64(),
        size: random.next_u64(),
        allocated: random.next_u64(),
        first: random.next_u64(),
        last: random.next_u64(),
        freed: random.next_u64(),
        touched: random.next_u64(),
        ..chunk
    });
    profile.save(built.profile())?;
    drop(profile);
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..effort.process_rounds {
        let mut show = Command::new(built.folder.join("ccscope"));
        show.arg("show").arg(built.profile()).stdout(Stdio::null());
        let (started, mut peak, mut child) = (Instant::now(), 0, show.spawn()?);
        // Not `wait4`, by which a child begins with the peak of its parent.
        let status = loop {
            peak = peak_of(child.id()).unwrap_or(peak);
            if let Some(status) = child.try_wait()? {
                break status;
            }
            sleep(Duration::from_millis(1));
        };
        if !status.success() {
            return Err(format!("{show:?}: {status}").into());
        }
        times.push(started.elapsed().as_secs_f64() * 1e3);
        peaks.push(peak as f64 / f64::from(1 << 20));
    }
    let [times, peaks] = [times, peaks].map(Rounds::new);
    let memory = format!("{}_memory", workload.name);
    Ok(vec![
        floor(workload.name, "ms", &times, 2000.0),
        floor(&memory, "MiB", &peaks, 500.0),
    ])
}
