//! Traces as valgrind's tool lackey writes them.
//!
//! ```text
//! ==4711== Lackey, an example Valgrind tool       what valgrind says: skipped, however long
//! I  04016a90,3                                   an instruction of 3 bytes
//!  S 1ffefffea8,8                                 stored
//!  L 0402f8e0,8                                   loaded
//!  M 0402fa10,4                                   loaded and stored by one instruction
//! ```

use std::io::{self, BufRead, Read};

use super::{TraceError, TraceKind, TraceRecord};

/// No record is longer: kind, blanks, 16 digits of an address, 5 of a size, and room to spare.
const MAX_LINE_BYTES: usize = 64;
/// How much of a line that is no record an error repeats.
const QUOTED_BYTES: usize = 32;

/// Reads the text that `valgrind --tool=lackey --trace-mem=yes` writes to its log. That is standard
/// error unless `--log-file=FILE` says otherwise, and what the program itself writes there is no
/// trace.
///
/// A record is `I  ADDRESS,BYTES`, or the same with `L`, `S`, `M` behind one blank; blanks are
/// taken as they come. Addresses are hexadecimal, sizes decimal. Lines that begin with `==`, `--`
/// or `**`, valgrind's own, and empty ones are skipped.
///
/// An iterator over records that ends after the first error.
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

    /// The next line; `None` at the end.
    fn next_line(&mut self) -> io::Result<Option<Line>> {
        self.text.clear();
        let mut limited = self.reader.by_ref().take(MAX_LINE_BYTES as u64 + 1);
        if limited.read_until(b'\n', &mut self.text)? == 0 {
            return Ok(None);
        }
        if self.text.len() <= MAX_LINE_BYTES || self.text.ends_with(b"\n") {
            return Ok(Some(parse(&self.text)));
        }
        // A file without line ends must not be loaded into memory.
        if is_remark(&self.text) {
            self.reader.skip_until(b'\n')?;
            return Ok(Some(Line::Nothing));
        }
        let start = quoted(&self.text);
        Ok(Some(Line::Fault(format!(
            "longer than any record: {start}..."
        ))))
    }
}

impl<R: BufRead> Iterator for TextTrace<R> {
    type Item = Result<TraceRecord, TraceError>;

    #[inline]
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
    /// Valgrind's remark, or empty.
    Nothing,
    Fault(String),
}

/// Whether a line is valgrind's own.
fn is_remark(line: &[u8]) -> bool {
    line.starts_with(b"==") || line.starts_with(b"--") || line.starts_with(b"**")
}

#[inline]
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
    // A letter alone must not be a kind when it is the beginning of a word.
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

/// What a line is that does not begin as a record.
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
