//! Traces of valgrind's tool lackey: the accesses of a program, one a line, read without holding
//! them in memory.
//!
//! ```text
//! ==4711== Lackey, an example Valgrind tool       what valgrind says: skipped, however long
//! I  04016a90,3                                   an instruction of 3 bytes
//!  S 1ffefffea8,8                                 stored
//!  L 0402f8e0,8                                   loaded
//!  M 0402fa10,4                                   loaded and stored by one instruction
//! ```

use std::fmt;
use std::io::{self, BufRead, Read};

use super::Simulator;

/// No record is longer: kind, blanks, 16 digits of an address, 5 of a size, and room to spare.
const MAX_LINE_BYTES: usize = 64;
/// How much of a line that is no record an error repeats.
const QUOTED_BYTES: usize = 32;

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

/// Reads the text that `valgrind --tool=lackey --trace-mem=yes` writes to its log: standard error,
/// unless `--log-file=FILE` says otherwise. The traced program must not write there.
///
/// Addresses are hexadecimal, sizes decimal. Empty lines and valgrind's own, which begin with `==`,
/// `--` or `**`, are skipped. The iterator ends after the first error.
#[derive(Debug)]
pub struct TextTrace<R> {
    reader: R,
    text: Vec<u8>,
    /// Lines read so far.
    line: u64,
    ended: bool,
}

impl<R: BufRead> TextTrace<R> {
    /// Reads nothing yet.
    pub fn new(reader: R) -> TextTrace<R> {
        TextTrace {
            reader,
            text: Vec::with_capacity(MAX_LINE_BYTES + 1),
            line: 0,
            ended: false,
        }
    }

    /// The next record; `None` at the end.
    fn next_record(&mut self) -> Result<Option<TraceRecord>, TraceError> {
        loop {
            self.line += 1;
            self.text.clear();
            // A file without line ends must not be loaded into memory.
            let mut limited = self.reader.by_ref().take(MAX_LINE_BYTES as u64 + 1);
            if limited.read_until(b'\n', &mut self.text)? == 0 {
                return Ok(None);
            }
            let is_whole = self.text.len() <= MAX_LINE_BYTES || self.text.ends_with(b"\n");
            let fault = match parse(&self.text) {
                Ok(record) if is_whole => return Ok(Some(record)),
                Err(_) if is_remark(&self.text) => {
                    if !is_whole {
                        self.reader.skip_until(b'\n')?;
                    }
                    continue;
                }
                Err(what) if is_whole => format!("{what}: {}", quoted(self.text.trim_ascii())),
                _ => format!("longer than any record: {}...", quoted(&self.text)),
            };
            return Err(TraceError::Line {
                line: self.line,
                what: fault,
            });
        }
    }
}

impl<R: BufRead> Iterator for TextTrace<R> {
    type Item = Result<TraceRecord, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Result<TraceRecord, TraceError>> {
        if self.ended {
            return None;
        }
        let record = self.next_record().transpose();
        self.ended = !matches!(record, Some(Ok(_)));
        record
    }
}

/// Whether a line is empty or valgrind's own.
fn is_remark(line: &[u8]) -> bool {
    let starts = |mark| line.trim_ascii_start().starts_with(mark);
    line.len() <= MAX_LINE_BYTES && line.trim_ascii().is_empty()
        || starts(b"==")
        || starts(b"--")
        || starts(b"**")
}

/// The record of a line, or why it is none.
#[inline]
fn parse(line: &[u8]) -> Result<TraceRecord, &'static str> {
    const NO_RECORD: &str = "no access as `L 1ffefffea8,8`";
    let line = line.trim_ascii();
    let kind = match line.first() {
        Some(b'I') => TraceKind::Instruction,
        Some(b'L') => TraceKind::Load,
        Some(b'S') => TraceKind::Store,
        Some(b'M') => TraceKind::Modify,
        _ => return Err(NO_RECORD),
    };
    let numbers = line[1..].trim_ascii_start();
    let (address, rest) = hexadecimal(numbers).ok_or(NO_RECORD)?;
    // Without a blank, the letter is the beginning of a word.
    match rest.split_first() {
        Some((b',', digits)) if numbers.len() < line.len() - 1 => {
            let bytes = decimal(digits).ok_or("the size is no number from 1 to 65535")?;
            Ok(TraceRecord {
                kind,
                address,
                bytes,
            })
        }
        _ => Err(NO_RECORD),
    }
}

/// The start of a line, printable.
fn quoted(line: &[u8]) -> String {
    format!("`{}`", line[..line.len().min(QUOTED_BYTES)].escape_ascii())
}

/// The number of at most 16 hexadecimal digits that a text begins with, and what follows.
#[inline]
fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0u64;
    let mut digits = 0;
    while let Some(digit) = text
        .get(digits)
        .and_then(|&byte| char::from(byte).to_digit(16))
    {
        number = number << 4 | u64::from(digit);
        digits += 1;
    }
    (1..=16)
        .contains(&digits)
        .then(|| (number, &text[digits..]))
}

/// A text that is a number from 1 to 65535.
#[inline]
fn decimal(text: &[u8]) -> Option<u16> {
    let mut number = 0u16;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u16::from(digit))?;
    }
    (number > 0).then_some(number)
}

/// Why a trace cannot be read on.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// Reading failed.
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

impl From<io::Error> for TraceError {
    fn from(error: io::Error) -> TraceError {
        TraceError::Io(error)
    }
}
