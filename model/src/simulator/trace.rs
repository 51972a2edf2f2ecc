//! Traces of lackey: the accesses of a program, one a line, read without holding them in memory.

mod text;

use std::fmt;
use std::io;

use super::Simulator;
pub use text::TextTrace;

/// What an access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceKind {
    /// An instruction is fetched.
    Instruction,
    /// Data is read.
    Load,
    /// Data is written.
    Store,
    /// Data is read and written by one instruction: one access.
    Modify,
}

/// One access of a traced program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceRecord {
    /// What for.
    pub kind: TraceKind,
    /// The first byte.
    pub address: u64,
    /// How many bytes; at least 1.
    pub bytes: u16,
}

/// How many accesses of each kind a trace has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct TraceCounts {
    /// Instructions fetched.
    pub instructions: u64,
    /// Reads of data.
    pub loads: u64,
    /// Writes of data.
    pub stores: u64,
    /// Reads with a write by the same instruction.
    pub modifies: u64,
}

impl TraceCounts {
    /// Accesses to data.
    pub fn data(&self) -> u64 {
        self.loads + self.stores + self.modifies
    }
}

/// Simulates the accesses to data of a trace, and counts all accesses.
///
/// # Errors
/// The first error of the trace. The accesses before it have been simulated.
///
/// # Examples
/// ```
/// use ccmodel::simulator::{TextTrace, simulate_trace};
/// use ccmodel::{CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, Simulator};
///
/// let trace = "==17== Lackey\nI  04001090,3\n S 1ffe000138,8\n L 1ffe000138,8\n";
/// let l1 = CacheLevel::lru("L1", CacheGeometry::new(64, 64, 8)?);
/// let hierarchy = Hierarchy::new(vec![l1], Inclusion::NonInclusive, Vec::new())?;
/// let mut simulator = Simulator::new(&hierarchy, Frames::Identity);
/// let counts = simulate_trace(TextTrace::new(trace.as_bytes()), &mut simulator)?;
/// assert_eq!((counts.stores, counts.loads, counts.instructions), (1, 1, 1));
/// assert_eq!(simulator.cache_misses()[0], 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn simulate_trace(
    trace: impl IntoIterator<Item = Result<TraceRecord, TraceError>>,
    simulator: &mut Simulator,
) -> Result<TraceCounts, TraceError> {
    let mut counts = TraceCounts::default();
    for record in trace {
        let record = record?;
        *match record.kind {
            TraceKind::Instruction => &mut counts.instructions,
            TraceKind::Load => &mut counts.loads,
            TraceKind::Store => &mut counts.stores,
            TraceKind::Modify => &mut counts.modifies,
        } += 1;
        if record.kind != TraceKind::Instruction {
            simulator.access(record.address, u32::from(record.bytes));
        }
    }
    Ok(counts)
}

/// Why a trace cannot be read on.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// It could not be read at all.
    Io(io::Error),
    /// A line of a text is no record.
    Line {
        /// Which, the first is 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Io(error) => write!(f, "cannot read the trace: {error}"),
            TraceError::Line { line, what } => write!(f, "line {line} of the trace: {what}"),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TraceError::Io(error) => Some(error),
            TraceError::Line { .. } => None,
        }
    }
}
