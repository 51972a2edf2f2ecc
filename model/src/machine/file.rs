//! Machine files: a [`Machine`](super::Machine) as JSON, and what is wrong with one.

use std::fmt;

#[cfg(feature = "json")]
impl super::Machine {
    /// Reads a machine file.
    ///
    /// # Errors
    /// [`MachineError`] when the text is no such file, or one of another version, or its numbers
    /// describe no machine.
    pub fn from_json(text: &str) -> Result<super::Machine, MachineError> {
        let syntax = |what: &dyn fmt::Display| MachineError(format!("not a machine file: {what}"));
        // The version first: a file of another version must be told apart from a broken one.
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|error| syntax(&error))?;
        let format = value.get("format").and_then(serde_json::Value::as_u64);
        let format = format.ok_or_else(|| syntax(&"no number called `format`"))?;
        if format != u64::from(super::MACHINE_FORMAT) {
            return Err(MachineError::of_format(format));
        }
        let machine: super::Machine =
            serde_json::from_value(value).map_err(|error| syntax(&error))?;
        machine.check()?;
        Ok(machine)
    }

    /// The machine file of this machine, indented for people.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

/// Why a description is no machine, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineError(pub(super) String);

impl MachineError {
    /// The file has another version.
    pub(super) fn of_format(found: u64) -> MachineError {
        MachineError(format!(
            "machine file has format {found}, this program reads format {}: calibrate again",
            super::MACHINE_FORMAT
        ))
    }
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Messages repeat what a file holds, and go to terminals.
        f.write_str(&self.0.replace(char::is_control, " "))
    }
}

impl core::error::Error for MachineError {}
