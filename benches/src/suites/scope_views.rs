//! What views of `ccscope` cost: the comparison of two profiles, and tables of Parquet.

use std::path::Path;
use std::time::Instant;

use ccmodel::Machine;
use ccscope::analyses::diff::diff;
use ccscope::exports::parquet;
use ccscope::profile::{BUCKETS, Chunk, Frame, Profile, Run, Site, Totals};

use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Failure, Rows, SEED, Workload};

const SITES: u64 = 100_000;
const FUNCTIONS: u64 = 20_000;
const STACK_LEN: usize = 30;
const CHUNKS: u64 = 2_000_000;

/// Sites of a program in which each function calls eight others.
fn profile(sites: u64) -> Profile {
    let mut random = Rng::new(SEED);
    let frame = |number: u64| Frame {
        function: format!(
            "demo::module{}::<T as Trait{}>::f{number}",
            number / 100,
            number / 7
        ),
        file: format!("src/module{}.rs", number / 100),
        line: u32::try_from(number % 1000 + 1).expect("it is small"),
        module: "demo".to_owned(),
        address: number * 16,
        inlined: number.is_multiple_of(3),
    };
    let mut site = || {
        let mut at = random.next_u64() % FUNCTIONS;
        let mut stack = Vec::with_capacity(STACK_LEN);
        for _ in 0..STACK_LEN {
            stack.push(u32::try_from(at).expect("there are few functions"));
            at = (at * 31 + random.next_u64() % 8 * 977 + 1) % FUNCTIONS;
        }
        let chunks = random.next_u64() % 1000 + 1;
        Site {
            place: Some(stack[0]),
            stack,
            allocations: chunks,
            frees: chunks,
            requested: 24 * chunks,
            usable: 24 * chunks,
            sizes: vec![0; BUCKETS],
            lifetimes: vec![0; BUCKETS],
            ..Site::default()
        }
    };
    Profile {
        run: Run {
            end: 1000,
            seconds: 1.0,
            ..Run::default()
        },
        total: Totals::default(),
        frames: (0..FUNCTIONS).map(frame).collect(),
        types: Vec::new(),
        sites: (0..sites).map(|_| site()).collect(),
        threads: Vec::new(),
        curve: Vec::new(),
        resident: Vec::new(),
        regions: Vec::new(),
        mappings: Vec::new(),
        pages: Vec::new(),
        lines: Vec::new(),
        edges: Vec::new(),
        chunks: Vec::new(),
        windows: Vec::new(),
    }
}

/// Two profiles of 10^5 sites: lines have moved, a hundredth of the functions has other names,
/// a fiftieth of the stacks another frame, and a hundredth of the sites is gone.
pub(super) fn diff_sites(workload: &Workload, effort: &Effort) -> Rows {
    let old = profile(SITES);
    let mut new = old.clone();
    for (number, frame) in new.frames.iter_mut().enumerate() {
        frame.line += 3;
        frame.address += 64;
        if number.is_multiple_of(100) {
            frame.function.push_str("_renamed");
        }
    }
    for site in new.sites.iter_mut().step_by(50) {
        site.stack.remove(3);
    }
    new.sites.drain(..1000);
    let mut times = Vec::new();
    for _ in 0..effort.process_rounds {
        let started = Instant::now();
        let found = diff(&old, &new, Machine::this());
        times.push(started.elapsed().as_secs_f64() * 1e3);
        if found.sites.len() < old.sites.len() {
            return Err("sites are missing".into());
        }
    }
    Ok(vec![floor(workload.name, times, 1000.0)])
}

/// Writing chunks as Parquet: the time for 100 MB of them, as they are in memory.
pub(super) fn export_parquet(workload: &Workload, effort: &Effort) -> Rows {
    let profile = profile(1000);
    let mut random = Rng::new(SEED);
    let mut below = |limit: u64| random.next_u64() % limit;
    let chunk = |number: u64| {
        let (allocated, life) = (number * 50, below(1_000_000) + 10);
        let size = 8 << below(8);
        Chunk {
            site: u32::try_from(below(1000)).expect("there are few sites"),
            address: 0x7f00_0000_0000 + below(1 << 30) * 16,
            size,
            thread: u16::MAX,
            shared: false,
            allocated: allocated + 1,
            first: allocated + 2,
            last: allocated + life / 2,
            freed: allocated + life,
            reads: u32::try_from(below(100)).expect("it is small"),
            writes: u32::try_from(below(10)).expect("it is small"),
            touched: size,
        }
    };
    let chunks: Vec<Chunk> = (0..CHUNKS).map(chunk).collect();
    let megabytes = size_of_val(&chunks[..]) as f64 / 1e6;
    let folder = std::env::temp_dir().join(format!("report-tables-{}", std::process::id()));
    let mut times = Vec::new();
    for _ in 0..effort.process_rounds {
        let parts: Vec<Vec<Chunk>> = chunks.chunks(8192).map(<[Chunk]>::to_vec).collect();
        let started = Instant::now();
        let written = write(&profile, parts, &folder);
        times.push(started.elapsed().as_secs_f64() * 1e3 * 100.0 / megabytes);
        std::fs::remove_dir_all(&folder)?;
        written?;
    }
    // 100 MB a second.
    Ok(vec![floor(workload.name, times, 1000.0)])
}

/// Milliseconds, held against the most that is allowed.
fn floor(name: &str, times: Vec<f64>, largest: f64) -> Comparison {
    let allowed = Rounds::new(vec![largest; times.len()]);
    Comparison::new(name, "largest allowed", "ms", &Rounds::new(times), &allowed)
}

fn write(profile: &Profile, parts: Vec<Vec<Chunk>>, folder: &Path) -> Result<(), Failure> {
    Ok(parquet::write(
        profile,
        parts.into_iter().map(Ok),
        Machine::this(),
        folder,
    )?)
}
