//! What `ccscope` costs: programs of the package `subjects` with it and without, in turns.
//!
//! Times are the processor's, for all threads of a program and without the tool beside it: other
//! programs have no part in them. Overheads, in `x`, are held against the largest allowed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ccscope::profile::{Chunk, Profile};

use crate::programs::Scale;
use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::sys::peak_of;
use crate::timing::turns;
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
        let command = |program: &Path, words: &str| {
            let words = words.split(' ').map(|word| match word {
                "TARGET" => target.as_os_str(),
                "PROFILE" => profile.as_os_str(),
                _ => word.as_ref(),
            });
            let mut command = Command::new(program);
            command.args(words).current_dir(env!("CARGO_MANIFEST_DIR"));
            command
        };
        let plain = "build --quiet --release --target-dir TARGET -p ccscope -p subjects \
                     --features subjects/dhat";
        let instrumented = "ccscope run --quiet --output PROFILE --release --quiet \
                            --target-dir TARGET -p subjects --bin subjects -- tree_sum 1 1";
        let mut plain = command(Path::new(&cargo), plain);
        let mut instrumented = command(&folder.join("cargo-ccscope"), instrumented);
        for command in [&mut plain, &mut instrumented] {
            let output = command.stderr(Stdio::inherit()).output()?;
            if !output.status.success() {
                return Err(format!("{command:?}: {}", output.status).into());
            }
        }
        Ok(Built { folder, profile })
    }

    /// `program` after `words`.
    fn way(&self, words: &str, program: &str) -> Way {
        let words = words.split_whitespace().map(|word| match word {
            "PROFILER" => self.folder.join("ccscope").display().to_string(),
            "PROFILE" => self.profile.display().to_string(),
            _ => word.to_owned(),
        });
        let program = self.folder.join(program).display().to_string();
        words.chain([program]).collect()
    }

    /// Without a profiler, instrumented, with allocations only, and with totals only.
    fn ways(&self) -> [Way; 4] {
        let instrumented = "../ccscope/x86_64-unknown-linux-gnu/release/subjects";
        [
            self.way("", "subjects"),
            self.way("PROFILER run --quiet --output PROFILE", instrumented),
            self.way("PROFILER run --quiet --output PROFILE", "subjects"),
            self.way(
                "PROFILER run --quiet --output PROFILE --counters-only",
                "subjects",
            ),
        ]
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
    let ways = built.ways();
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
    let [plain, instrumented, allocations, _] = built.ways();
    let dhat_rs = built.way("", "subjects-dhat");
    let mut ways = vec![plain, instrumented, allocations, dhat_rs];
    let heaptrack = built.way("heaptrack --output PROFILE", "subjects");
    let dhat = "valgrind --quiet --tool=dhat --dhat-out-file=/dev/null";
    let dhat = built.way(dhat, "subjects");
    let installed = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    let others = [heaptrack, dhat].into_iter();
    ways.extend(others.filter(|way| installed(&way[0])));
    let count = effort.scale.pick(1, effort.process_rounds);
    let runs = measure(&ways, ("alloc", 1, 1), count)?;
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
    for (way, command) in ways.iter().enumerate().skip(4) {
        rows.push(match &*command[0] {
            "heaptrack" => {
                let name = name("heaptrack");
                Comparison::new(name, "heaptrack", "x", &of(2, WALL), &of(way, WALL))
            }
            _ => {
                let [ours, theirs] = [1, way].map(|way| rounds(&runs[way], PROCESSOR));
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
    profile.save(&built.profile)?;
    drop(profile);
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..effort.process_rounds {
        let mut show = Command::new(built.folder.join("ccscope"));
        show.arg("show").arg(&built.profile).stdout(Stdio::null());
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
