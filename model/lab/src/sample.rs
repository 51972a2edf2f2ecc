//! Misses of an operation at each level of some machines, by simulation.
//!
//! One stream of random operations runs through all machines. Caches are warmed by one pass over
//! all nodes and then by random operations, more than twice the characteristic time of the largest
//! cache that the structure does not fit into. Then batches of operations are counted until the
//! standard error of each level is small, or there are `batches_max`.
//!
//! What varies most from batch to batch is the number of reads, whose mean is known of searches. So
//! misses are taken at that mean, along the line that fits the batches best (a control variate).

use ccmodel::{
    Access, Accesses, CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, NodeExtent,
    Operations, Replacement, Simulator,
};

/// Reads of a batch.
const BATCH_READS: f64 = 1e6;
/// Reads that warm the caches, at most. Depth-first order under Zipf keys needs 1.4e8 until the few
/// sets that it uses hold what they hold in the steady state.
const WARMING_READS: f64 = 2e8;

pub(crate) struct Simulated {
    pub(crate) name: &'static str,
    pub(crate) hierarchy: Hierarchy,
}

impl Simulated {
    /// # Panics
    /// When there is no such machine.
    pub(crate) fn new(
        name: &'static str,
        caches: Vec<CacheLevel>,
        inclusion: Inclusion,
        tlbs: Vec<CacheLevel>,
    ) -> Simulated {
        match Hierarchy::new(caches, inclusion, tlbs) {
            Ok(hierarchy) => Simulated { name, hierarchy },
            Err(error) => panic!("{error}"),
        }
    }
}

/// A cache with LRU replacement.
///
/// # Panics
/// When there is no such cache.
pub(crate) fn level(name: &str, bytes: u64, ways: u64, block_bytes: u64) -> CacheLevel {
    match CacheGeometry::new(bytes / ways / block_bytes, block_bytes, ways) {
        Ok(geometry) => CacheLevel::lru(name, geometry),
        Err(error) => panic!("{error}"),
    }
}

/// A server core with a private second level (as Emerald Rapids), one with a victim cache (as Zen
/// 4) and an inclusive one (as Broadwell), with last levels of these bytes and ways.
pub(crate) fn three_level_machines(last: [(u64, u64); 3]) -> [Simulated; 3] {
    type Sizes = ([(u64, u64); 3], [(u64, u64); 2]);
    let machine = |name, ([l1, l2, l3], [dtlb, stlb]): Sizes, inclusion| {
        let cache = |name, (bytes, ways)| level(name, bytes, ways, 64);
        let tlb = |name, (entries, ways)| level(name, entries * 4096, ways, 4096);
        let caches = vec![cache("L1", l1), cache("L2", l2), cache("L3", l3)];
        let tlbs = vec![tlb("dTLB", dtlb), tlb("STLB", stlb)];
        Simulated::new(name, caches, inclusion, tlbs)
    };
    let [server, victim, inclusive] = last;
    let server = (
        [(48 << 10, 12), (2 << 20, 16), server],
        [(96, 6), (2048, 16)],
    );
    let victim = (
        [(32 << 10, 8), (1 << 20, 8), victim],
        [(72, 72), (3072, 12)],
    );
    let inclusive = (
        [(32 << 10, 8), (256 << 10, 8), inclusive],
        [(64, 4), (1536, 6)],
    );
    [
        machine("server", server, Inclusion::NonInclusive),
        machine("victim", victim, Inclusion::VictimLast),
        machine("inclusive", inclusive, Inclusion::Inclusive),
    ]
}

/// A node whose words are aligned.
pub(crate) const fn node(bytes: u32) -> NodeExtent {
    NodeExtent { bytes, align: 8 }
}

/// How well misses are to be known.
#[derive(Clone, Copy)]
pub(crate) struct Precision {
    /// Seed of the stream of operations, which is the same in every run.
    pub(crate) seed: u64,
    pub(crate) batches_min: u32,
    pub(crate) batches_max: u32,
    /// Sampling ends when no level's relative standard error is larger.
    pub(crate) standard_error: f64,
    /// Levels that miss less often in an operation need not be known as well.
    pub(crate) rare: f64,
}

#[derive(Clone, Copy)]
pub(crate) struct Misses {
    /// Misses of an operation, on average.
    pub(crate) mean: f64,
    /// The standard error of the mean, relative to it or to what counts as rare.
    pub(crate) standard_error: f64,
}

/// Misses of an operation on each machine, by level: caches, then TLBs.
pub(crate) fn sample(
    accesses: &Accesses,
    machines: &[Simulated],
    precision: Precision,
) -> Vec<Vec<Misses>> {
    let simulator = |machine: &Simulated| Simulator::new(&machine.hierarchy, Frames::Identity);
    let mut stream = Stream {
        simulators: machines.iter().map(simulator).collect(),
        operations: accesses.operations(precision.seed),
        // After one pass over all nodes, what fits stays.
        reads: { 0u32.. }
            .take(accesses.len())
            .map(|point| accesses.access(point))
            .collect(),
    };
    stream.access();
    let reads_each = stream.run(100) / 100.0;
    let is_fixed = accesses.fixed_sequence().is_some();
    if !is_fixed {
        let enough = warming(accesses, machines);
        stream.run(enough.min(operations_of(WARMING_READS, reads_each)));
    }
    let batch = operations_of(BATCH_READS, reads_each).max(20);
    stream
        .simulators
        .iter_mut()
        .for_each(Simulator::reset_counts);
    let batches = |simulator| vec![Batches::default(); all_misses(simulator).len()];
    let mut counted: Vec<Vec<Batches>> = stream.simulators.iter().map(batches).collect();
    // The mean number of reads is known of searches only.
    let length = accesses
        .is_paths()
        .then(|| accesses.visits().nodes_per_operation() * batch as f64);
    let rare = precision.rare * batch as f64;
    // Fixed sequences are all the same.
    let batches_max = if is_fixed { 2 } else { precision.batches_max };
    for batches in 1..=batches_max {
        let reads = stream.run(batch);
        let mut is_exact = true;
        for (simulator, levels) in stream.simulators.iter().zip(&mut counted) {
            for (level, misses) in levels.iter_mut().zip(all_misses(simulator)) {
                level.add(reads, misses);
                let (mean, error) = level.mean_and_error(length);
                is_exact &= error <= precision.standard_error * mean.max(rare);
            }
        }
        if is_exact && batches >= precision.batches_min {
            break;
        }
    }
    let misses = |level: Batches| {
        let (mean, error) = level.mean_and_error(length);
        Misses {
            mean: mean / batch as f64,
            standard_error: error / mean.max(rare),
        }
    };
    let levels = |levels: Vec<Batches>| levels.into_iter().map(misses).collect();
    counted.into_iter().map(levels).collect()
}

struct Stream<'a> {
    simulators: Vec<Simulator>,
    operations: Operations<'a>,
    reads: Vec<Access>,
}

impl Stream<'_> {
    fn access(&mut self) {
        for simulator in &mut self.simulators {
            for read in &self.reads {
                simulator.access(read.address, read.bytes);
            }
        }
    }

    /// Runs `count` operations; how many reads they made.
    fn run(&mut self, count: u64) -> f64 {
        let mut total = 0;
        for _ in 0..count {
            self.operations.next_into(&mut self.reads);
            total += self.reads.len();
            self.access();
        }
        total as f64
    }
}

/// Operations after which even the fuller sets of the largest cache that is too small are in the
/// steady state.
fn warming(accesses: &Accesses, machines: &[Simulated]) -> u64 {
    let lines = accesses.block_probabilities(64).footprint();
    let pages = accesses.block_probabilities(4096).footprint();
    let mut longest = 10_000.0f64;
    for machine in machines {
        let caches = machine.hierarchy.caches();
        let together = match machine.hierarchy.inclusion() {
            Inclusion::VictimLast => caches.iter().map(CacheLevel::bytes).sum(),
            _ => caches.last().map_or(0, CacheLevel::bytes),
        };
        let tlb = machine.hierarchy.tlbs().last();
        let reach = tlb.map_or(0, CacheLevel::blocks) as f64;
        for (footprint, blocks) in [(&lines, together as f64 / 64.0), (&pages, reach)] {
            let time = footprint.characteristic_time(blocks, Replacement::Lru);
            if time.is_finite() {
                longest = longest.max(2.2 * time);
            }
        }
    }
    operations_of(longest, 1.0)
}

fn operations_of(reads: f64, reads_each: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most the number of reads, which fits"
    )]
    let operations = (reads / reads_each.max(1.0)).max(1.0) as u64;
    operations
}

/// Misses so far of each level: caches, then TLBs.
pub(crate) fn all_misses(simulator: &Simulator) -> Vec<u64> {
    let hierarchy = simulator.hierarchy();
    let (caches, tlbs) = (simulator.cache_misses(), simulator.tlb_misses());
    [
        &caches[..hierarchy.caches().len()],
        &tlbs[..hierarchy.tlbs().len()],
    ]
    .concat()
}

#[derive(Clone, Copy, Default)]
struct Batches {
    before: u64,
    batches: f64,
    misses: f64,
    misses_squared: f64,
    reads: f64,
    reads_squared: f64,
    both: f64,
}

impl Batches {
    /// Takes the count of misses at the end of a batch.
    fn add(&mut self, reads: f64, misses_so_far: u64) {
        let misses = (misses_so_far - self.before) as f64;
        self.before = misses_so_far;
        self.batches += 1.0;
        self.misses += misses;
        self.misses_squared += misses * misses;
        self.reads += reads;
        self.reads_squared += reads * reads;
        self.both += reads * misses;
    }

    /// Mean misses of a batch and their standard error. `reads` is the mean number of reads of a
    /// batch, if known.
    fn mean_and_error(&self, reads: Option<f64>) -> (f64, f64) {
        let count = self.batches.max(1.0);
        let mut mean = self.misses / count;
        let mut variance = (self.misses_squared / count - mean * mean).max(0.0);
        let mut freedom = count - 1.0;
        let mean_reads = self.reads / count;
        let variance_reads = self.reads_squared / count - mean_reads * mean_reads;
        if let Some(expected) = reads
            && variance_reads > 0.0
            && count > 3.0
        {
            let covariance = self.both / count - mean * mean_reads;
            let slope = covariance / variance_reads;
            mean -= slope * (mean_reads - expected);
            variance = (variance - slope * covariance).max(0.0);
            freedom -= 1.0;
        }
        (mean.max(0.0), (variance / freedom.max(1.0)).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_variate_keeps_the_mean_and_takes_the_spread() {
        let mut batches = Batches::default();
        let mut total = 0;
        // Misses are half of the reads and 3; the mean of the reads is 10, but these are more.
        for reads in [8u32, 12, 10, 14, 6, 16] {
            total += u64::from(reads / 2 + 3);
            batches.add(f64::from(reads), total);
        }
        let (mean, error) = batches.mean_and_error(Some(10.0));
        assert!((mean - 8.0).abs() < 1e-9 && error < 1e-5, "{mean} {error}");
        let (plain, error) = batches.mean_and_error(None);
        assert!((plain - 8.5).abs() < 1e-9 && error > 0.4, "{plain} {error}");
    }
}
