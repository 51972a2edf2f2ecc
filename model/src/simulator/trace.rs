//! Traces: the memory accesses of a program, one by one, read as a stream.
//!
//! ```
//! use ccmodel::{
//!     CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, Simulator, TextTrace,
//!     TraceOptions, simulate_trace,
//! };
//!
//! let trace = TextTrace::new("I  04001090,3\n S 1ffe000138,8\n L 1ffe000138,8\n".as_bytes());
//! let l1 = CacheLevel::lru("L1", CacheGeometry::new(64, 64, 8)?);
//! let hierarchy = Hierarchy::new(vec![l1], Inclusion::NonInclusive, Vec::new())?;
//! let mut simulator = Simulator::new(&hierarchy, Frames::Identity);
//! let counts = simulate_trace(trace, &mut simulator, TraceOptions::default())?;
//! assert_eq!((counts.stores, counts.loads, counts.instructions), (1, 1, 1));
//! assert_eq!(simulator.cache_misses()[0], 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod text;

use std::fmt;
use std::io;

use super::Simulator;
pub use text::TextTrace;

/// The largest access of one instruction; a trace with a larger one is refused.
pub const MAX_TRACE_ACCESS_BYTES: u32 = u16::MAX as u32;

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
    /// What the access is for.
    pub kind: TraceKind,
    /// The first byte.
    pub address: u64,
    /// How many bytes; at least 1.
    pub bytes: u16,
}

/// Receives the accesses of a trace.
pub trait TraceSink {
    /// An instruction is fetched.
    fn instruction(&mut self, address: u64, bytes: u32);
    /// Data is read, written, or both.
    fn data(&mut self, address: u64, bytes: u32);
    /// Counts from 0 again, and keeps what caches hold.
    fn reset_counts(&mut self);
}

/// Instructions go through the same caches and TLBs as data, as in a machine whose first cache is
/// unified.
impl TraceSink for Simulator {
    fn instruction(&mut self, address: u64, bytes: u32) {
        self.access(address, bytes);
    }

    fn data(&mut self, address: u64, bytes: u32) {
        self.access(address, bytes);
    }

    fn reset_counts(&mut self) {
        Simulator::reset_counts(self);
    }
}

/// Which accesses of a trace are simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TraceMode {
    /// Loads, stores and modifications: for first caches of data.
    #[default]
    Data,
    /// Fetches of instructions, too.
    InstructionsAndData,
}

/// How a trace is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TraceOptions {
    /// Which accesses are simulated.
    pub mode: TraceMode,
    /// The first records, of all kinds, that fill the caches and are not counted.
    pub warm_up_records: u64,
}

/// Records of a trace by kind, simulated or not, without the warm-up.
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

/// Passes the accesses of a trace to a sink, a [`Simulator`] or a
/// [`CachegrindModel`](crate::CachegrindModel), and counts its records.
///
/// # Errors
/// The first error of the trace. The accesses before it have been simulated.
pub fn simulate_trace(
    trace: impl IntoIterator<Item = Result<TraceRecord, TraceError>>,
    sink: &mut impl TraceSink,
    options: TraceOptions,
) -> Result<TraceCounts, TraceError> {
    let mut counts = TraceCounts::default();
    let mut warm_up = options.warm_up_records;
    for record in trace {
        let TraceRecord {
            kind,
            address,
            bytes,
        } = record?;
        let bytes = u32::from(bytes);
        match (kind, options.mode) {
            (TraceKind::Instruction, TraceMode::Data) => {}
            (TraceKind::Instruction, TraceMode::InstructionsAndData) => {
                sink.instruction(address, bytes);
            }
            _ => sink.data(address, bytes),
        }
        if warm_up > 0 {
            warm_up -= 1;
            if warm_up == 0 {
                sink.reset_counts();
            }
            continue;
        }
        *match kind {
            TraceKind::Instruction => &mut counts.instructions,
            TraceKind::Load => &mut counts.loads,
            TraceKind::Store => &mut counts.stores,
            TraceKind::Modify => &mut counts.modifies,
        } += 1;
    }
    if warm_up > 0 {
        // All of it was warm-up.
        sink.reset_counts();
    }
    Ok(counts)
}

/// Why the rest of a trace cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// Reading failed.
    Io(io::Error),
    /// A line is not a record.
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
