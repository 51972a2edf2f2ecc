//! Traces of 12 bytes an access.
//!
//! All numbers are little-endian, whatever machine writes or reads them.
//!
//! ```text
//! header   0   8  89 43 43 54 52 0d 0a 1a     no text begins so, and whoever changes line ends breaks it
//!          8   4  1                           the version of the format
//! record   0   8  address of the first byte
//!          8   2  bytes, 1 to 65535
//!         10   1  kind: 1 instruction, 2 load, 3 store, 4 modify
//!         11   1  0
//! ...
//! end      0   8  how many records there were
//!          8   4  0
//! ```
//!
//! Without the last record the trace was cut off, and without the right number in it something is
//! missing. Nothing may follow.

use std::io::{self, BufRead, Write};

use super::{TraceError, TraceKind, TraceRecord};

/// The first bytes of a trace.
pub(super) const MAGIC: [u8; 8] = *b"\x89CCTR\r\n\x1a";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 12;
const RECORD_BYTES: usize = 12;

/// Reads a binary trace.
///
/// ```text
/// header   0   8  89 43 43 54 52 0d 0a 1a
///          8   4  1, the version
/// record   0   8  address of the first byte
///          8   2  bytes, 1 to 65535
///         10   1  kind: 1 instruction, 2 load, 3 store, 4 modify
///         11   1  0
/// ...
/// end      0   8  how many records there were
///          8   4  0
/// ```
///
/// All numbers are little-endian. An iterator over records; nothing comes behind an error. About 5
/// ns a record.
#[derive(Debug)]
pub struct BinaryTrace<R> {
    reader: R,
    records: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Header,
    Records,
    Ended,
}

impl<R: BufRead> BinaryTrace<R> {
    /// Reads nothing yet.
    pub fn new(reader: R) -> BinaryTrace<R> {
        BinaryTrace {
            reader,
            records: 0,
            state: State::Header,
        }
    }

    fn fail(&mut self, record: u64, what: String) -> Option<Result<TraceRecord, TraceError>> {
        self.state = State::Ended;
        Some(Err(TraceError::Record { record, what }))
    }

    /// The next 12 bytes, fewer at the end.
    #[inline]
    fn read(&mut self) -> io::Result<([u8; RECORD_BYTES], usize)> {
        let ready = match self.reader.fill_buf() {
            Ok(ready) => ready.first_chunk().copied(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(error) => return Err(error),
        };
        match ready {
            Some(bytes) => {
                self.reader.consume(RECORD_BYTES);
                Ok((bytes, RECORD_BYTES))
            }
            None => self.read_slow(),
        }
    }

    /// The next bytes where they are in several pieces, or an error among them.
    #[cold]
    #[inline(never)]
    fn read_slow(&mut self) -> io::Result<([u8; RECORD_BYTES], usize)> {
        let mut bytes = [0; RECORD_BYTES];
        let mut len = 0;
        while len < RECORD_BYTES {
            match self.reader.read(&mut bytes[len..]) {
                Ok(0) => break,
                Ok(more) => len += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((bytes, len))
    }

    #[cold]
    fn header(&mut self, bytes: &[u8]) -> Option<Result<TraceRecord, TraceError>> {
        let fault = match bytes.split_first_chunk() {
            Some((&MAGIC, version)) => match version.try_into().map(u32::from_le_bytes) {
                Ok(VERSION) => {
                    self.state = State::Records;
                    return None;
                }
                Ok(other) => format!("version {other}, this program reads {VERSION}"),
                Err(_) => "cut off".to_owned(),
            },
            _ if MAGIC.starts_with(bytes) => "cut off".to_owned(),
            _ => "not that of a binary trace".to_owned(),
        };
        self.fail(0, fault)
    }

    #[cold]
    fn end(&mut self, announced: u64) -> Option<Result<TraceRecord, TraceError>> {
        let (found, record) = (self.records, self.records + 1);
        if announced != found {
            let what =
                format!("the trace ends after {found} records, and says that it has {announced}");
            return self.fail(record, what);
        }
        match self.read_slow() {
            Ok((_, 0)) => {
                self.state = State::Ended;
                None
            }
            Ok(_) => self.fail(record + 1, "follows the end".to_owned()),
            Err(error) => {
                self.state = State::Ended;
                Some(Err(TraceError::Io(error)))
            }
        }
    }
}

impl<R: BufRead> Iterator for BinaryTrace<R> {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Result<TraceRecord, TraceError>> {
        const { assert!(HEADER_BYTES == RECORD_BYTES) };
        loop {
            if self.state == State::Ended {
                return None;
            }
            let (bytes, len) = match self.read() {
                Ok(read) => read,
                Err(error) => {
                    self.state = State::Ended;
                    return Some(Err(TraceError::Io(error)));
                }
            };
            if self.state == State::Header {
                if let Some(fault) = self.header(&bytes[..len]) {
                    return Some(fault);
                }
                continue;
            }
            let record = self.records + 1;
            if len < RECORD_BYTES {
                return self.fail(record, "cut off".to_owned());
            }
            let [a, b, c, d, e, f, g, h, low, high, kind, zero] = bytes;
            let address = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
            let bytes = u16::from_le_bytes([low, high]);
            let kind = match (kind, bytes, zero) {
                (0, 0, 0) => return self.end(address),
                (1, 1.., 0) => TraceKind::Instruction,
                (2, 1.., 0) => TraceKind::Load,
                (3, 1.., 0) => TraceKind::Store,
                (4, 1.., 0) => TraceKind::Modify,
                (1..=4, 0, 0) => return self.fail(record, "an access of no bytes".to_owned()),
                _ => return self.fail(record, format!("kind {kind}, {zero} are none")),
            };
            self.records = record;
            return Some(Ok(TraceRecord {
                kind,
                address,
                bytes,
            }));
        }
    }
}

/// Writes a binary trace, to be read by [`BinaryTrace`].
///
/// # Examples
/// ```
/// use ccmodel::{BinaryTrace, BinaryTraceWriter, TraceKind, TraceRecord};
///
/// let record = TraceRecord { kind: TraceKind::Load, address: 0x1000, bytes: 8 };
/// let mut writer = BinaryTraceWriter::new(Vec::new())?;
/// writer.write(record)?;
/// let bytes = writer.finish()?;
/// let read: Vec<TraceRecord> = BinaryTrace::new(&bytes[..]).collect::<Result<_, _>>()?;
/// assert_eq!(read, [record]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BinaryTraceWriter<W> {
    writer: W,
    records: u64,
}

impl<W: Write> BinaryTraceWriter<W> {
    /// Writes the header. A file should have a [`BufWriter`](std::io::BufWriter) before it: each
    /// record is one write.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(mut writer: W) -> io::Result<BinaryTraceWriter<W>> {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..].copy_from_slice(&VERSION.to_le_bytes());
        writer.write_all(&header)?;
        Ok(BinaryTraceWriter { writer, records: 0 })
    }

    /// Writes a record.
    ///
    /// # Errors
    /// Those of the writer; `InvalidInput` for a record of no bytes.
    pub fn write(&mut self, record: TraceRecord) -> io::Result<()> {
        let kind = match record.kind {
            TraceKind::Instruction => 1,
            TraceKind::Load => 2,
            TraceKind::Store => 3,
            TraceKind::Modify => 4,
        };
        if record.bytes == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an access of no bytes",
            ));
        }
        let [low, high] = record.bytes.to_le_bytes();
        self.writer
            .write_all(&bytes_of(record.address, [low, high, kind, 0]))?;
        self.records += 1;
        Ok(())
    }

    /// Writes the end and gives the writer back, flushed. Without it, the trace reads as cut off.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.writer.write_all(&bytes_of(self.records, [0; 4]))?;
        self.writer.flush()?;
        Ok(self.writer)
    }
}

/// A record, of its number and what follows.
fn bytes_of(number: u64, rest: [u8; 4]) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&rest);
    bytes
}
