//! The error of everything that can be refused in one line of words.

use std::fmt;

/// Why something was refused, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    /// The error of these words. `ccscope` has no other type of its own.
    pub fn new(what: impl Into<String>) -> Error {
        Error(what.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Messages repeat what files and command lines hold, and go to terminals.
        f.write_str(&self.0.replace(char::is_control, " "))
    }
}

impl std::error::Error for Error {}
