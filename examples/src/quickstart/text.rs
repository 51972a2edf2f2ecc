//! The text: the names of all assigned Unicode characters, or a file.
//!
//! The names are real text that a published crate carries: 150,000 lines, four million characters,
//! with the long shared prefixes (`CJK UNIFIED IDEOGRAPH-`, `LATIN SMALL LETTER `) that real keys
//! have. Nothing has to be downloaded or committed for it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::error::UserError;

/// The longest text taken, in bytes: with its index it stays below 2 GB, and a position fits 32
/// bits.
const TEXT_BYTES_MAX: u64 = 1 << 30;

/// A text of at least two characters.
#[derive(Debug)]
pub(crate) struct Text {
    name: String,
    content: String,
}

impl Text {
    /// Reads `file`, or gathers the embedded text when there is none.
    pub(crate) fn load(file: Option<&Path>) -> Result<Self, UserError> {
        match file {
            None => Ok(Text {
                name: "names of all Unicode characters".to_owned(),
                content: unicode_names(),
            }),
            Some(path) => read(path),
        }
    }

    /// What to call it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// All of it.
    pub(crate) fn as_str(&self) -> &str {
        &self.content
    }
}

/// The names of all characters that have one, in code point order, one a line.
fn unicode_names() -> String {
    let mut names = String::with_capacity(4 << 20);
    for character in '\0'..=char::MAX {
        if let Some(name) = unicode_names2::name(character) {
            writeln!(names, "{name}").expect("a String takes all that is written to it");
        }
    }
    names
}

fn read(path: &Path) -> Result<Text, UserError> {
    let fail = |why: &dyn std::fmt::Display| UserError::file(path, why);
    let file = File::open(path).map_err(|error| fail(&error))?;
    if file.metadata().map_err(|error| fail(&error))?.is_dir() {
        return Err(fail(&"is a directory; a UTF-8 text file is needed"));
    }
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| fail(&error))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        return Err(fail(&"longer than 1 GiB; pass a part of it"));
    }
    let content = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        fail(&format_args!(
            "not UTF-8 from byte {at} on; a UTF-8 text file is needed"
        ))
    })?;
    match content.chars().take(2).count() {
        0 => Err(fail(
            &"is empty; a text of at least two characters is needed",
        )),
        1 => Err(fail(
            &"holds a single character; a text of at least two is needed",
        )),
        _ => Ok(Text {
            name: path.display().to_string(),
            content,
        }),
    }
}

#[cfg(test)]
impl Text {
    /// A text for tests.
    pub(crate) fn of(content: &str) -> Self {
        Text {
            name: "test".to_owned(),
            content: content.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn embedded_names_are_many_and_ascii() {
        let text = Text::load(None).unwrap();
        assert!(text.as_str().len() > 3_000_000);
        assert!(text.as_str().is_ascii());
        assert!(
            text.as_str()
                .lines()
                .any(|line| line == "LATIN SMALL LETTER SHARP S")
        );
    }
}
