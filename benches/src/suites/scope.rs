//! What `ccscope` costs: programs of the package `subjects` with it and without, in turns.
//!
//! Times are the processor's, for all threads of a program and without the tool beside it: other
//! programs have no part in them. Overheads, in `x`, are held against the largest allowed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use ccscope::profile::{Chunk, Profile};

use crate::programs::Scale;
use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::timing::{timed, turns};
use crate::workload::{Comparison, Effort, Failure, Rows, SEED, Workload, agree};

/// The programs, and how many rounds of each a quick and a full run take.
const PROGRAMS: [(&str, [u64; 2]); 11] = [
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

/// One run of a program.
#[derive(Clone, Copy)]
struct Run {
    processor_ms: f64,
    wall_ms: f64,
    peak_mib: f64,
}

const PROCESSOR: fn(&Run) -> f64 = |run| run.processor_ms;
const WALL: fn(&Run) -> f64 = |run| run.wall_ms;
const PEAK: fn(&Run) -> f64 = |run| run.peak_mib;

/// The first words of a command: a profiler with its options, and a program.
type Way = Vec<String>;

struct Built {
    /// Of release builds.
    folder: PathBuf,
    profile: PathBuf,
}

impl Built {
    fn new() -> Result<Self, Failure> {
        let measure = std::env::current_exe()?;
        let folder = measure.parent().ok_or("no folder of programs")?.to_owned();
        let target = folder.parent().ok_or("no target folder")?;
        let profile = std::env::temp_dir().join(format!("report-{}.ccscope", std::process::id()));
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut plain = Command::new(cargo);
        plain.args([
            "build",
            "--quiet",
            "--release",
            "-p",
            "ccscope",
            "-p",
            "subjects",
        ]);
        plain
            .args(["--features", "subjects/dhat", "--target-dir"])
            .arg(target);
        let mut instrumented = Command::new(folder.join("cargo-ccscope"));
        instrumented
            .args(["ccscope", "run", "--quiet", "--output"])
            .arg(&profile);
        instrumented.args(["--release", "-p", "subjects", "--bin", "subjects"]);
        instrumented
            .arg("--target-dir")
            .arg(target)
            .args(["--", "tree_sum", "1", "1"]);
        for command in [&mut plain, &mut instrumented] {
            command.current_dir(env!("CARGO_MANIFEST_DIR"));
            let output = command.stderr(Stdio::inherit()).output()?;
            if !output.status.success() {
                return Err(format!("{command:?}: {}", output.status).into());
            }
        }
        Ok(Built { folder, profile })
    }

    fn way(&self, words: &[&str], program: &str) -> Way {
        let words = words.iter().map(|&word| match word {
            "ccscope" => self.folder.join(word).display().to_string(),
            "PROFILE" => self.profile.display().to_string(),
            _ => word.to_owned(),
        });
        words
            .chain([self.folder.join(program).display().to_string()])
            .collect()
    }

    fn plain(&self) -> Way {
        self.way(&[], "subjects")
    }

    fn instrumented(&self) -> Way {
        let program = "../ccscope/x86_64-unknown-linux-gnu/release/subjects";
        self.way(
            &["ccscope", "run", "--quiet", "--output", "PROFILE"],
            program,
        )
    }

    fn allocations(&self) -> Way {
        self.way(
            &["ccscope", "run", "--quiet", "--output", "PROFILE"],
            "subjects",
        )
    }

    fn counters(&self) -> Way {
        let words = [
            "ccscope",
            "run",
            "--quiet",
            "--counters-only",
            "--output",
            "PROFILE",
        ];
        self.way(&words, "subjects")
    }
}

impl Drop for Built {
    fn drop(&mut self) {
        // There may be none.
        drop(std::fs::remove_file(&self.profile));
    }
}

/// `name`, with so many threads, in each of `ways`, in turns.
fn measure(
    ways: &[Way],
    (name, threads, work): (&str, u64, u64),
    rounds: usize,
) -> Result<Vec<Vec<Run>>, Failure> {
    let (mut all, mut expected) = (vec![Vec::new(); ways.len()], None);
    for which in turns(rounds, ways.len()) {
        let (program, words) = ways[which].split_first().expect("it names a program");
        let mut command = Command::new(program);
        command
            .args(words)
            .args([name, &threads.to_string(), &work.to_string()]);
        let output = command.stderr(Stdio::null()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find_map(|line| line.strip_prefix("subject "));
        let numbers = line.unwrap_or_default().split(' ').map(str::parse);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
        let &[sum, processor, wall, peak] = &numbers[..] else {
            return Err(format!("{command:?}: {}", output.status).into());
        };
        agree(&mut expected, sum, name, &ways[which].join(" "))?;
        all[which].push(Run {
            processor_ms: processor as f64 / 1e6,
            wall_ms: wall as f64 / 1e6,
            peak_mib: peak as f64 / f64::from(1 << 20),
        });
    }
    Ok(all)
}

fn rounds(runs: &[Run], figure: fn(&Run) -> f64) -> Rounds {
    Rounds::new(runs.iter().map(figure).collect())
}

fn overhead(with: &[Run], without: &[Run], figure: fn(&Run) -> f64) -> Rounds {
    let pairs = with.iter().zip(without);
    Rounds::new(
        pairs
            .map(|(with, without)| figure(with) / figure(without))
            .collect(),
    )
}

/// What is held against the largest that is allowed.
fn floor(name: &str, unit: &str, ours: &Rounds, largest: f64) -> Comparison {
    let allowed = Rounds::new(vec![largest; ours.each().len()]);
    Comparison::new(name, "largest allowed", unit, ours, &allowed)
}

/// All programs with one thread and two: accesses, allocations with stacks, and totals only.
pub(super) fn programs(workload: &Workload, effort: &Effort) -> Rows {
    let built = Built::new()?;
    let ways = [
        built.plain(),
        built.instrumented(),
        built.allocations(),
        built.counters(),
    ];
    let (mut rows, mut overheads) = (Vec::new(), [const { Vec::new() }; 4]);
    let count = effort.scale.pick(1, effort.process_rounds);
    for (program, [quick, full]) in PROGRAMS {
        for threads in [1, 2] {
            let work = effort.scale.pick(quick, full);
            let runs = measure(&ways, (program, threads, work), count)?;
            let figures = [(1, PROCESSOR), (1, PEAK), (2, PROCESSOR), (3, PROCESSOR)];
            for (sum, (way, figure)) in overheads.iter_mut().zip(figures) {
                sum.push(overhead(&runs[way], &runs[0], figure));
            }
            let [without, heap, stacks, _] = [0, 1, 2, 3].map(|way| rounds(&runs[way], PROCESSOR));
            for (kind, with) in [(workload.name, heap), ("scope_alloc_of", stacks)] {
                let name = format!("{kind}_{program}_{threads}");
                rows.push(Comparison::new(name, "not profiled", "ms", &with, &without));
            }
        }
    }
    let mean = |which: usize| Rounds::geometric_mean(&overheads[which]);
    let worst = overheads[0]
        .iter()
        .max_by(|a, b| a.median().total_cmp(&b.median()));
    let floors = [
        ("scope_heap_geomean", &mean(0), 5.0),
        ("scope_heap_max", worst.expect("there are programs"), 12.0),
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
    let valgrind = [
        "valgrind",
        "--quiet",
        "--tool=dhat",
        "--dhat-out-file=/dev/null",
    ];
    let heaptrack = ["heaptrack", "--output", "PROFILE"];
    let mut ways = vec![
        built.plain(),
        built.allocations(),
        built.instrumented(),
        built.way(&[], "subjects-dhat"),
    ];
    let installed = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    ways.extend(installed("heaptrack").then(|| built.way(&heaptrack, "subjects")));
    ways.extend(installed("valgrind").then(|| built.way(&valgrind, "subjects")));
    let runs = measure(
        &ways,
        ("alloc", 1, 1),
        effort.scale.pick(1, effort.process_rounds),
    )?;
    let of = |way: usize, figure| overhead(&runs[way], &runs[0], figure);
    let ours = of(1, PROCESSOR);
    let mut rows = vec![floor(workload.name, "x", &ours, 2.0)];
    let name = |rival: &str| format!("{}_vs_{rival}", workload.name);
    rows.push(Comparison::new(
        name("dhat_rs"),
        "dhat-rs",
        "x",
        &ours,
        &of(3, PROCESSOR),
    ));
    for (way, command) in ways.iter().enumerate().skip(4) {
        rows.push(match &*command[0] {
            "heaptrack" => {
                let name = name("heaptrack");
                Comparison::new(name, "heaptrack", "x", &of(1, WALL), &of(way, WALL))
            }
            _ => {
                let [ours, theirs] = [2, way].map(|way| rounds(&runs[way], PROCESSOR));
                Comparison::new(workload.also[0], "valgrind DHAT", "ms", &ours, &theirs)
            }
        });
    }
    Ok(rows)
}

/// Shows the worst sites of a profile of 1 GB, in a process of its own.
pub(super) fn open(workload: &Workload, effort: &Effort) -> Rows {
    // A minute, and 3 GB of memory and disk.
    if effort.scale == Scale::Quick && effort.only.is_none() {
        return Ok(Vec::new());
    }
    let built = Built::new()?;
    let mut profile = Profile::open(&built.profile)?;
    let mut random = Rng::new(SEED);
    let chunk = profile
        .chunks
        .first()
        .copied()
        .ok_or("a profile without chunks")?;
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
    profile.save(&built.profile)?;
    drop(profile);
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..effort.process_rounds {
        let mut show = Command::new(built.folder.join("ccscope"));
        show.arg("show").arg(&built.profile).stdout(Stdio::null());
        // SAFETY: numbers may be 0.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let (time, status) = timed(|| {
            let child = show.spawn()?;
            let mut status = 0;
            // SAFETY: the child is this process's, and nobody else waits for it.
            unsafe { libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut usage) };
            Ok::<_, Failure>(status)
        });
        if status? != 0 {
            return Err(format!("{show:?} fails").into());
        }
        times.push(time.as_secs_f64() * 1e3);
        peaks.push(usage.ru_maxrss as f64 / 1024.0);
    }
    let [times, peaks] = [times, peaks].map(Rounds::new);
    let memory = format!("{}_memory", workload.name);
    Ok(vec![
        floor(workload.name, "ms", &times, 2000.0),
        floor(&memory, "MiB", &peaks, 500.0),
    ])
}
