//! The machine that a question is about, by name or from a file.

use std::fs;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::output::human_bytes;
use super::{CliError, refuse};
use crate::{CalibrateOptions, Machine};

/// Largest machine file that is read; a calibrated one has some ten kilobytes.
const MAX_MACHINE_FILE_BYTES: u64 = 16 << 20;

/// A preset, this machine, or a file.
pub(super) fn machine(name: &Path) -> Result<Machine, CliError> {
    let text = name.to_str().unwrap_or_default();
    match text {
        "this" => return Ok(Machine::this().clone()),
        "calibrate" => return Ok(Machine::calibrate(CalibrateOptions::quick())),
        _ => {}
    }
    let unknown = match Machine::preset(text) {
        Ok(preset) => return Ok(preset),
        Err(unknown) => unknown,
    };
    let cannot_read = |error: &dyn std::fmt::Display| {
        CliError::from(format!("cannot read machine {}: {error}", name.display()))
    };
    let is_name = name.components().count() == 1 && name.extension().is_none();
    let file = match open_regular(name) {
        Ok(file) => file,
        // What looks like a name was meant as one.
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_name => {
            return refuse(format!("no such file, and {unknown}"));
        }
        Err(error) => return Err(cannot_read(&error)),
    };
    let mut text = String::new();
    // One byte more than allowed tells a file that is too large, even if it grows meanwhile.
    let mut file = file.take(MAX_MACHINE_FILE_BYTES + 1);
    let read = file.read_to_string(&mut text);
    if read.map_err(|error| cannot_read(&error))? as u64 > MAX_MACHINE_FILE_BYTES {
        let most = human_bytes(MAX_MACHINE_FILE_BYTES as f64);
        return Err(cannot_read(&format!("larger than {most}")));
    }
    Machine::from_json(&text).map_err(|error| cannot_read(&error))
}

/// A regular file, to be read from its start: devices and pipes may never end, and opening a pipe
/// may wait for ever.
pub(super) fn open_regular(path: &Path) -> io::Result<BufReader<fs::File>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(BufReader::new(fs::File::open(path)?))
}
