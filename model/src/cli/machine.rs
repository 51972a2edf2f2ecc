//! The machine that a question is about, by name or from a file.

use std::fmt::Display;
use std::fs;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::output::human_bytes;
use super::{CliError, refuse};
use crate::{CalibrateOptions, Machine};

/// Largest machine file that is read; a calibrated one has some ten kilobytes.
const MAX_MACHINE_FILE_BYTES: u64 = 16 << 20;

pub(super) fn machine(name: &Path) -> Result<Machine, CliError> {
    let unknown = match name.to_str().unwrap_or_default() {
        "this" => return Ok(Machine::this().clone()),
        "calibrate" => return Ok(Machine::calibrate(CalibrateOptions::quick())),
        preset => match Machine::preset(preset) {
            Ok(preset) => return Ok(preset),
            Err(unknown) => unknown,
        },
    };
    // What looks like a name was meant as one.
    let is_name = name.components().count() == 1 && name.extension().is_none();
    if is_name && !name.exists() {
        return refuse(format!("no such file, and {unknown}"));
    }
    read("machine", name, |file| {
        let mut text = String::new();
        // One byte more than allowed tells a file that is too large, even if it grows meanwhile.
        let bytes = file
            .take(MAX_MACHINE_FILE_BYTES + 1)
            .read_to_string(&mut text)?;
        if bytes as u64 > MAX_MACHINE_FILE_BYTES {
            let most = human_bytes(MAX_MACHINE_FILE_BYTES as f64);
            return refuse(format!("larger than {most}"));
        }
        Ok(Machine::from_json(&text)?)
    })
}

/// What `parse` makes of a regular file; refusals say what it is and name it.
pub(super) fn read<T>(
    what: &str,
    path: &Path,
    parse: impl FnOnce(BufReader<fs::File>) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let parsed = open_regular(path).map_err(CliError::from).and_then(parse);
    parsed.map_err(|error| cannot_read(what, path, error))
}

pub(super) fn cannot_read(what: &str, path: &Path, error: impl Display) -> CliError {
    format!("cannot read {what} {}: {error}", path.display()).into()
}

/// A regular file, to be read from its start: devices and pipes may never end, and opening a pipe
/// may wait for ever.
fn open_regular(path: &Path) -> io::Result<BufReader<fs::File>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(BufReader::new(fs::File::open(path)?))
}
