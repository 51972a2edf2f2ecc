//! The machine on which misses are simulated: where the measured one is kept, and files of others.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use ccmodel::Machine;

use super::{CliError, fail, runtime};

/// Largest machine file that is read; a calibrated one has some ten kilobytes.
const MAX_MACHINE_FILE: u64 = 16 << 20;

/// This machine, if it has been measured: all commands show what they simulate on the same one.
pub(super) fn known() -> Option<Machine> {
    read(&kept().ok()?).ok()
}

/// Home folders may be shared by machines.
pub(super) fn kept() -> Result<PathBuf, CliError> {
    let of = runtime::hash_of(Machine::this().to_json());
    Ok(runtime::cache_folder()?.join(format!("machine-{of:016x}.json")))
}

/// The machine of a file.
pub(super) fn read(path: &Path) -> Result<Machine, CliError> {
    let read = || {
        // Opening a pipe may wait for ever.
        if !fs::metadata(path)?.is_file() {
            return fail("not a regular file");
        }
        let mut text = String::new();
        File::open(path)?
            .take(MAX_MACHINE_FILE)
            .read_to_string(&mut text)?;
        Ok(Machine::from_json(&text)?)
    };
    read().map_err(|error| format!("cannot read machine {}: {error}", path.display()).into())
}
