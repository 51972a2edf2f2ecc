//! Traces of valgrind's tool lackey: the accesses of a program, one a line.
//!
//! ```text
//! ==4711== Lackey, an example Valgrind tool       skipped, as all lines with ==, -- or **
//! I  04016a90,3                                   an instruction of 3 bytes
//!  S 1ffefffea8,8                                 stored
//!  L 0402f8e0,8                                   loaded
//!  M 0402fa10,4                                   loaded and stored by one instruction
//! ```

use std::io::BufRead;

use super::Simulator;
use crate::lines::{self, TextError};

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
    /// What the access does.
    pub kind: TraceKind,
    /// Address of the first byte.
    pub address: u64,
    /// Number of bytes; at least 1.
    pub bytes: u16,
}

/// Numbers of accesses of a trace, by kind.
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

    /// Counts an access, and simulates it if it is one to data.
    pub(super) fn simulate(&mut self, record: TraceRecord, simulator: &mut Simulator) {
        *match record.kind {
            TraceKind::Instruction => &mut self.instructions,
            TraceKind::Load => &mut self.loads,
            TraceKind::Store => &mut self.stores,
            TraceKind::Modify => &mut self.modifies,
        } += 1;
        if record.kind != TraceKind::Instruction {
            simulator.access(record.address, u32::from(record.bytes));
        }
    }
}

/// Calls `see` for each record of the text that `valgrind --tool=lackey --trace-mem=yes` writes to
/// its log: standard error, unless `--log-file=FILE` says otherwise. The traced program must not
/// write there. Reads line by line.
///
/// # Errors
/// The first line that is no record.
pub fn read_trace(reader: impl BufRead, mut see: impl FnMut(TraceRecord)) -> Result<(), TextError> {
    lines::for_each(reader, &["==", "--", "**"], |_, line| {
        see(parse(line)?);
        Ok(())
    })
}

/// Simulates the accesses to data of a [trace](read_trace), and counts all accesses.
///
/// # Errors
/// Those of [`read_trace`]. The accesses before the error have been simulated.
///
/// # Examples
/// ```
/// use ccmodel::simulator::simulate_trace;
/// use ccmodel::{CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, Simulator};
///
/// let trace = "==17== Lackey\nI  04001090,3\n S 1ffe000138,8\n L 1ffe000138,8\n";
/// let l1 = CacheLevel::lru("L1", CacheGeometry::new(64, 64, 8)?);
/// let hierarchy = Hierarchy::new(vec![l1], Inclusion::NonInclusive, Vec::new())?;
/// let mut simulator = Simulator::new(&hierarchy, Frames::Identity);
/// let counts = simulate_trace(trace.as_bytes(), &mut simulator)?;
/// assert_eq!((counts.stores, counts.loads, counts.instructions), (1, 1, 1));
/// assert_eq!(simulator.cache_misses()[0], 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn simulate_trace(
    reader: impl BufRead,
    simulator: &mut Simulator,
) -> Result<TraceCounts, TextError> {
    let mut counts = TraceCounts::default();
    read_trace(reader, |record| counts.simulate(record, simulator))?;
    Ok(counts)
}

/// The record of a line, or why it is none.
fn parse(line: &str) -> Result<TraceRecord, String> {
    let wrong = |what: &str| format!("{what}: {:?}", line.chars().take(32).collect::<String>());
    let fields = || {
        let (kind, numbers) = line.split_once([' ', '\t'])?;
        let kind = match kind {
            "I" => TraceKind::Instruction,
            "L" => TraceKind::Load,
            "S" => TraceKind::Store,
            "M" => TraceKind::Modify,
            _ => return None,
        };
        let (address, bytes) = numbers.trim_start().split_once(',')?;
        Some((kind, u64::from_str_radix(address, 16).ok()?, bytes))
    };
    let (kind, address, bytes) = fields().ok_or_else(|| wrong("no access as `L 1ffefffea8,8`"))?;
    match bytes.parse() {
        Ok(bytes) if bytes > 0 => Ok(TraceRecord {
            kind,
            address,
            bytes,
        }),
        _ => Err(wrong("the size is no number from 1 to 65535")),
    }
}
