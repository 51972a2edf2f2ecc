//! Machine files: a [`Machine`] as JSON, and what is wrong with one.

use std::fmt;

use super::MACHINE_FORMAT;
#[cfg(feature = "json")]
use super::Machine;

#[cfg(feature = "json")]
impl Machine {
    /// Reads a machine file.
    ///
    /// # Errors
    /// [`MachineError::Syntax`] when the text is not such a file, [`MachineError::Format`] when it
    /// is one of another version, [`MachineError::Absurd`] when its numbers describe no machine.
    pub fn from_json(text: &str) -> Result<Machine, MachineError> {
        let syntax = |error: serde_json::Error| MachineError::Syntax {
            message: printable(&error.to_string()),
        };
        // The version first: a file of another version must be told apart from a broken one.
        let value: serde_json::Value = serde_json::from_str(text).map_err(syntax)?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format == u64::from(MACHINE_FORMAT) => {}
            Some(found) => return Err(MachineError::Format { found }),
            None => {
                return Err(MachineError::Syntax {
                    message: "no number called `format`".to_owned(),
                });
            }
        }
        let machine: Machine = serde_json::from_value(value).map_err(syntax)?;
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

/// The text with its control characters escaped: messages repeat what a file holds, and go to
/// terminals.
#[cfg(feature = "json")]
fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            printable.extend(c.escape_default());
        } else {
            printable.push(c);
        }
    }
    printable
}

/// Why a description is no machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MachineError {
    /// Not the JSON of a machine file.
    Syntax {
        /// What is wrong, with line and column where known.
        message: String,
    },
    /// A machine file of another version.
    Format {
        /// The version that was found.
        found: u64,
    },
    /// Numbers that no machine has.
    Absurd {
        /// Which one.
        what: String,
    },
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineError::Syntax { message } => write!(f, "not a machine file: {message}"),
            MachineError::Format { found } => write!(
                f,
                "machine file has format {found}, this program reads format {MACHINE_FORMAT}: \
                 calibrate again"
            ),
            MachineError::Absurd { what } => write!(f, "machine file describes no machine: {what}"),
        }
    }
}

impl core::error::Error for MachineError {}
