//! Traces: the accesses of a program, written down one by one, and read without ever being in
//! memory as a whole.
//!
//! | form | from | a record |
//! |---|---|---|
//! | [text](TextTrace) | `valgrind --tool=lackey --trace-mem=yes` | a line, about 16 bytes |
//! | [binary](BinaryTrace) | [`BinaryTraceWriter`], or any program | 12 bytes |
//!
//! [`Trace`] reads either, and tells them apart by their first byte. Whatever the bytes are,
//! reading them ends in records or in a [`TraceError`] that says where.
//!
//! ```
//! use ccmodel::{
//!     CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, Simulator, Trace, TraceOptions, simulate_trace,
//! };
//!
//! let trace = "==17== Lackey\nI  04001090,3\n S 1ffe000138,8\n L 1ffe000138,8\n";
//! let l1 = CacheLevel::lru("L1", CacheGeometry::new(64, 64, 8)?);
//! let hierarchy = Hierarchy::new(vec![l1], Inclusion::NonInclusive, Vec::new())?;
//! let mut simulator = Simulator::new(&hierarchy, Frames::Identity);
//! let counts = simulate_trace(Trace::new(trace.as_bytes()), &mut simulator, TraceOptions::default())?;
//! assert_eq!((counts.stores, counts.loads, counts.instructions), (1, 1, 1));
//! assert_eq!(simulator.cache_misses()[0], 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod binary;
mod text;

use std::fmt;
use std::io::{self, BufRead};

use super::Simulator;
pub use binary::{BinaryTrace, BinaryTraceWriter};
pub use text::TextTrace;

/// No instruction accesses more at once; traces that say so are broken.
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
    /// What for.
    pub kind: TraceKind,
    /// The first byte.
    pub address: u64,
    /// How many bytes; at least 1.
    pub bytes: u16,
}

/// Whoever is told of the accesses of a trace.
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
    /// So many records at the start, of all kinds, fill the caches without being counted.
    pub warm_up_records: u64,
}

/// What there was in a trace, warm-up left out, whether it was simulated or not.
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

/// Tells a sink, a [`Simulator`] or a [`CachegrindModel`](crate::CachegrindModel), of all accesses
/// of a trace; what there was. Whatever is wrong with a trace, the accesses before it have been
/// simulated.
///
/// # Errors
/// The first that the trace has.
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

/// A trace of either form.
#[derive(Debug)]
pub struct Trace<R> {
    form: Form<R>,
}

#[derive(Debug)]
enum Form<R> {
    /// Nothing has been read yet.
    Unknown(R),
    Text(TextTrace<R>),
    Binary(BinaryTrace<R>),
    /// It could not be read.
    Ended,
}

impl<R: BufRead> Trace<R> {
    /// Reads nothing yet.
    pub fn new(reader: R) -> Trace<R> {
        Trace {
            form: Form::Unknown(reader),
        }
    }

    /// Looks at the first byte, if that has not been done.
    fn recognise(&mut self) -> Result<(), TraceError> {
        let Form::Unknown(reader) = &mut self.form else {
            return Ok(());
        };
        let first = loop {
            match reader.fill_buf() {
                Ok(bytes) => break Ok(bytes.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(TraceError::Io(error)),
            }
        };
        let Form::Unknown(reader) = std::mem::replace(&mut self.form, Form::Ended) else {
            return Ok(());
        };
        self.form = match first? {
            Some(byte) if byte == binary::MAGIC[0] => Form::Binary(BinaryTrace::new(reader)),
            _ => Form::Text(TextTrace::new(reader)),
        };
        Ok(())
    }
}

impl<R: BufRead> Iterator for Trace<R> {
    type Item = Result<TraceRecord, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Result<TraceRecord, TraceError>> {
        loop {
            match &mut self.form {
                Form::Text(text) => return text.next(),
                Form::Binary(binary) => return binary.next(),
                Form::Ended => return None,
                Form::Unknown(_) => {
                    if let Err(error) = self.recognise() {
                        return Some(Err(error));
                    }
                }
            }
        }
    }
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
    /// What is no record of a binary trace.
    Record {
        /// Which, the first behind the header is 1, the header itself 0.
        record: u64,
        /// What is wrong with it.
        what: String,
    },
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceError::Io(error) => write!(f, "cannot read the trace: {error}"),
            TraceError::Line { line, what } => write!(f, "line {line} of the trace: {what}"),
            TraceError::Record { record: 0, what } => write!(f, "header of the trace: {what}"),
            TraceError::Record { record, what } => {
                write!(f, "record {record} of the trace: {what}")
            }
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TraceError::Io(error) => Some(error),
            _ => None,
        }
    }
}
