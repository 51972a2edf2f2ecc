//! What ends the program with one line on standard error and exit code 2.

use std::fmt;
use std::path::Path;

/// A line for the user: what is wrong and, where that is not plain, what to do.
#[derive(Debug)]
pub(crate) struct UserError(String);

impl UserError {
    pub(crate) fn new(line: impl Into<String>) -> Self {
        UserError(line.into())
    }

    /// `path` cannot be used, for the reason that `why` gives.
    pub(crate) fn file(path: &Path, why: impl fmt::Display) -> Self {
        UserError(format!("{}: {why}", path.display()))
    }

    /// Two structures disagree: a fault of this project, never of the input.
    pub(crate) fn wrong_answers(during: &str) -> Self {
        UserError(format!(
            "{during} gave different answers in different structures; please report this as a bug"
        ))
    }
}

impl fmt::Display for UserError {
    /// One line whatever a path or a message from elsewhere holds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| {
            if c.is_control() {
                write!(f, "{}", c.escape_default())
            } else {
                write!(f, "{c}")
            }
        })
    }
}

impl std::error::Error for UserError {}
