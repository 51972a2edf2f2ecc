//! Traces as valgrind's tool lackey writes them.
//!
//! ```text
//! ==4711== Lackey, an example Valgrind tool       a remark of valgrind: skipped
//! I  04016a90,3                                   an instruction of 3 bytes
//!  S 1ffefffea8,8                                 a store
//!  L 0402f8e0,8                                   a load
//!  M 0402fa10,4                                   a load and a store by one instruction
//! ```

use std::io::{self, BufRead, Read};

use super::{TraceError, TraceKind, TraceRecord};

/// No record is longer: kind, blanks, 16 digits of an address, 5 of a size, and room to spare.
const MAX_LINE_BYTES: usize = 64;
/// How much of a line an error repeats.
const QUOTED_BYTES: usize = 32;

/// Reads the text that `valgrind --tool=lackey --trace-mem=yes` writes to its log: standard error,
/// or the file that `--log-file=FILE` names.
///
/// A record is `I  ADDRESS,BYTES`, or the same with `L`, `S`, `M`, with any number of blanks around
/// the kind. Addresses are hexadecimal, sizes decimal. Empty lines and those that begin with `==`,
/// `--` or `**` are skipped.
///
/// An iterator over records. It ends after an error.
#[derive(Debug)]
pub struct TextTrace<R> {
    reader: R,
    /// Lines read so far.
    line: u64,
    buffer: Vec<u8>,
    ended: bool,
}

impl<R: BufRead> TextTrace<R> {
    /// Reads nothing yet.
    pub fn new(reader: R) -> TextTrace<R> {
        TextTrace {
            reader,
            line: 0,
            buffer: Vec::new(),
            ended: false,
        }
    }

    /// Reads and parses the next line; `None` at the end.
    ///
    /// Never keeps more of a line than a record can have, so that a file without line ends is
    /// refused, not loaded.
    fn next_line(&mut self) -> io::Result<Option<Line>> {
        self.buffer.clear();
        let limit = MAX_LINE_BYTES as u64 + 1;
        let mut start = self.reader.by_ref().take(limit);
        if start.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(None);
        }
        if self.buffer.ends_with(b"\n") || self.buffer.len() <= MAX_LINE_BYTES {
            return Ok(Some(parse(&self.buffer)));
        }
        if !is_remark(&self.buffer) {
            let start = quoted(&self.buffer);
            return Ok(Some(Line::Fault(format!(
                "longer than any record: {start}..."
            ))));
        }
        self.reader.skip_until(b'\n')?;
        Ok(Some(Line::Nothing))
    }
}

impl<R: BufRead> Iterator for TextTrace<R> {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Result<TraceRecord, TraceError>> {
        while !self.ended {
            self.line += 1;
            let fault = match self.next_line() {
                Ok(Some(Line::Record(record))) => return Some(Ok(record)),
                Ok(Some(Line::Nothing)) => continue,
                Ok(None) => None,
                Ok(Some(Line::Fault(what))) => Some(TraceError::Line {
                    line: self.line,
                    what,
                }),
                Err(error) => Some(TraceError::Io(error)),
            };
            self.ended = true;
            return fault.map(Err);
        }
        None
    }
}

/// What a line is.
#[derive(Debug)]
enum Line {
    Record(TraceRecord),
    /// A remark of valgrind, or empty.
    Nothing,
    Fault(String),
}

/// Whether a line is a remark of valgrind.
fn is_remark(line: &[u8]) -> bool {
    line.starts_with(b"==") || line.starts_with(b"--") || line.starts_with(b"**")
}

fn parse(line: &[u8]) -> Line {
    let line = line.trim_ascii();
    let kind = match line.first() {
        Some(b'I') => TraceKind::Instruction,
        Some(b'L') => TraceKind::Load,
        Some(b'S') => TraceKind::Store,
        Some(b'M') => TraceKind::Modify,
        _ => return no_record(line),
    };
    let numbers = line[1..].trim_ascii_start();
    // The kind is a letter of its own, not the start of a word.
    if numbers.len() == line.len() - 1 {
        return no_record(line);
    }
    let Some((address, rest)) = hexadecimal(numbers) else {
        return no_record(line);
    };
    match rest.split_first() {
        Some((b',', digits)) => match decimal(digits) {
            Some(bytes) => Line::Record(TraceRecord {
                kind,
                address,
                bytes,
            }),
            None => fault("the size is no number from 1 to 65535", line),
        },
        _ => no_record(line),
    }
}

/// A line that does not begin as a record does.
#[cold]
fn no_record(line: &[u8]) -> Line {
    if line.is_empty() || is_remark(line) {
        Line::Nothing
    } else {
        fault("no access as `L 1ffefffea8,8`", line)
    }
}

#[cold]
fn fault(what: &str, line: &[u8]) -> Line {
    Line::Fault(format!("{what}: {}", quoted(line)))
}

/// The start of a line, printable.
fn quoted(line: &[u8]) -> String {
    format!("`{}`", line[..line.len().min(QUOTED_BYTES)].escape_ascii())
}

/// The number of at most 16 hexadecimal digits that a text begins with, and what follows.
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
