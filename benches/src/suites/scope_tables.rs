//! What tables of `ccscope export` cost.

use std::time::Instant;

use ccmodel::Machine;
use ccscope::exports::parquet;
use ccscope::profile::Chunk;

use super::scope_views::{floor, profile};
use crate::rng::Rng;
use crate::workload::{Effort, Rows, SEED, Workload};

const CHUNKS: u64 = 2_000_000;

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
        let parts = parts.into_iter().map(Ok);
        let written = parquet::write(&profile, parts, Machine::this(), &folder);
        times.push(started.elapsed().as_secs_f64() * 1e3 * 100.0 / megabytes);
        std::fs::remove_dir_all(&folder)?;
        written?;
    }
    // 100 MB a second.
    Ok(vec![floor(workload.name, times, 1000.0)])
}
