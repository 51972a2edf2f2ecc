//! Text files that may hold anything, line by line.

use std::fmt;
use std::io::{BufRead, Read};

/// Only this much of a file without line ends is ever in memory.
const LINE_BYTES_MAX: usize = 1 << 16;

/// Why a text could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The number of the line, from 1 on; `None` for an error of the whole text.
    pub line: Option<u64>,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.what)
    }
}

impl std::error::Error for TextError {}

/// Calls `see` with the number and the trimmed text of each line, up to the first error. Skips
/// empty lines and those that begin with one of `remarks`.
pub(crate) fn for_each(
    mut reader: impl BufRead,
    remarks: &[&str],
    mut see: impl FnMut(u64, &str) -> Result<(), String>,
) -> Result<(), TextError> {
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        number += 1;
        let at_line = |what| TextError {
            line: Some(number),
            what,
        };
        let cannot_read = |error| at_line(format!("reading fails: {error}"));
        let mut limited = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1);
        if limited.read_until(b'\n', &mut line).map_err(cannot_read)? == 0 {
            return Ok(());
        }
        let (bytes, is_whole) = (line.trim_ascii(), line.len() <= LINE_BYTES_MAX);
        let mut starts = remarks.iter().map(|remark| remark.as_bytes());
        if starts.any(|start| bytes.starts_with(start)) {
            if !is_whole {
                reader.skip_until(b'\n').map_err(cannot_read)?;
            }
        } else if !is_whole {
            let what = format!("it is longer than {LINE_BYTES_MAX} bytes");
            return Err(at_line(what));
        } else if !bytes.is_empty() {
            let text = std::str::from_utf8(bytes);
            let text = text.map_err(|_| at_line("it is not UTF-8 text".to_owned()))?;
            see(number, text).map_err(at_line)?;
        }
    }
}
