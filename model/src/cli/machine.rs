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
    let request = |error: &dyn std::fmt::Display| {
        CliError::Request(format!("cannot read machine {}: {error}", name.display()))
    };
    let text = match read_machine_file(name) {
        Ok(text) => text,
        // What looks like a name was meant as one.
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_name(name) => {
            return refuse(format!("no such file, and {unknown}"));
        }
        Err(error) => return Err(request(&error)),
    };
    Machine::from_json(&text).map_err(|error| request(&error))
}

/// Whether this is a word, not a path.
fn is_name(path: &Path) -> bool {
    path.components().count() == 1 && path.extension().is_none()
}

/// The text of a regular file of sensible size: devices and pipes may never end, and opening a pipe
/// may wait for ever.
fn read_machine_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // One byte more than allowed tells a file that is too large, even if it grows meanwhile.
    open_regular(path)?
        .take(MAX_MACHINE_FILE_BYTES + 1)
        .read_to_string(&mut text)?;
    if text.len() as u64 > MAX_MACHINE_FILE_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("larger than {}", human_bytes(MAX_MACHINE_FILE_BYTES as f64)),
        ));
    }
    Ok(text)
}

/// A regular file, to be read from its start.
pub(super) fn open_regular(path: &Path) -> io::Result<BufReader<fs::File>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    Ok(BufReader::new(fs::File::open(path)?))
}
