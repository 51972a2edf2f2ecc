//! Lines of text from files that may hold anything: bounded, counted.

use std::io::{BufRead, Read};

/// Why a line could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineError {
    /// Its number, from 1 on.
    pub(crate) number: u64,
    pub(crate) what: String,
}

/// Reads the next line into `line`, its end included, and counts it in `number`; whether there was
/// one. No more than `bytes_max` bytes and one are ever held.
pub(crate) fn read(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
    bytes_max: usize,
    number: &mut u64,
) -> Result<bool, LineError> {
    line.clear();
    *number += 1;
    let mut limited = reader.by_ref().take(bytes_max as u64 + 1);
    match limited.read_until(b'\n', line) {
        Ok(_) if line.len() > bytes_max => Err(LineError {
            number: *number,
            what: format!("it is longer than {bytes_max} bytes"),
        }),
        Ok(bytes) => Ok(bytes > 0),
        Err(error) => Err(LineError {
            number: *number,
            what: format!("reading fails: {error}"),
        }),
    }
}
