//! The error of everything that can be refused in one line of words.

use std::fmt;

/// Why something was refused, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    /// An error with this message.
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

/// The message of an error of `clap` with its hint, on one line and without the usage text.
pub fn first_paragraph(message: &str) -> String {
    let mut paragraphs = message.split("\n\n");
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = joined(paragraphs.next().unwrap_or_default());
    let first = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    match paragraphs.find(|text| text.trim_start().starts_with("tip:")) {
        Some(tip) => format!("{first} ({})", joined(tip)),
        None => first,
    }
}
