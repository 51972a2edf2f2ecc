//! Lines of source around frames.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::profile::Frame;
use crate::views::text::escape;

/// Lines before and after.
const AROUND: usize = 3;
/// A file of source that is larger is none.
const MAX_BYTES: u64 = 4 << 20;
/// Frames that have lines, and files that are read.
const MAX_SNIPPETS: usize = 1000;
const MAX_FILES: usize = 300;
/// A line that is longer is cut.
const MAX_COLUMNS: usize = 200;
/// A profile of a stranger may name any file, and pages are sent to others: only source is read.
const EXTENSIONS: [&str; 12] = [
    "rs", "c", "h", "cc", "cpp", "cxx", "hh", "hpp", "hxx", "inc", "ipp", "tcc",
];

/// The lines that a page shows.
#[derive(Debug)]
pub(super) struct Snippets<'a> {
    root: Option<&'a Path>,
    files: HashMap<PathBuf, Option<String>>,
    /// By frame: the number of the first line, and the lines.
    found: HashMap<u64, Value>,
}

impl<'a> Snippets<'a> {
    pub(super) fn new(root: Option<&'a Path>) -> Snippets<'a> {
        Snippets {
            root,
            files: HashMap::new(),
            found: HashMap::new(),
        }
    }

    /// Takes the lines around a frame, if the file is there and limits allow it.
    pub(super) fn add(&mut self, id: u64, frame: &Frame) {
        if self.found.len() >= MAX_SNIPPETS || frame.line == 0 || self.found.contains_key(&id) {
            return;
        }
        let path = match self.root {
            Some(root) => root.join(&frame.file),
            None => PathBuf::from(&frame.file),
        };
        if self.files.len() >= MAX_FILES && !self.files.contains_key(&path) {
            return;
        }
        let text = self.files.entry(path).or_insert_with_key(|path| read(path));
        let Some(text) = text else { return };
        let at = usize::try_from(frame.line).unwrap_or(usize::MAX);
        let first = at.saturating_sub(AROUND).max(1);
        let lines = text.lines().skip(first - 1).take(at - first + AROUND + 1);
        let shown = |line: &str| {
            let cut: String = line
                .replace('\t', "    ")
                .chars()
                .take(MAX_COLUMNS)
                .collect();
            escape(&cut)
        };
        let lines: Vec<String> = lines.map(shown).collect();
        if lines.len() > at - first {
            self.found.insert(id, json!([first, lines]));
        }
    }

    pub(super) fn finish(self) -> Value {
        let entries = self.found.into_iter();
        Value::Object(entries.map(|(id, it)| (id.to_string(), it)).collect())
    }
}

fn read(path: &Path) -> Option<String> {
    let extension = path.extension()?.to_str()?;
    let data = fs::metadata(path).ok()?;
    // A profile may name a device or a pipe.
    let is_source = EXTENSIONS.contains(&extension) && data.is_file() && data.len() <= MAX_BYTES;
    let bytes = is_source.then(|| fs::read(path).ok()).flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_source_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let text: String = (1..=20).map(|line| format!("\tline {line}\n")).collect();
        fs::write(folder.path().join("a.rs"), &text).unwrap();
        fs::write(folder.path().join("key.pem"), &text).unwrap();
        let frame = |file: &str, line| Frame {
            file: file.to_owned(),
            line,
            ..Frame::default()
        };
        let mut snippets = Snippets::new(Some(folder.path()));
        snippets.add(0, &frame("a.rs", 2));
        snippets.add(1, &frame("key.pem", 2));
        snippets.add(2, &frame("a.rs", 99));
        snippets.add(3, &frame("b.rs", 1));
        let lines: Vec<String> = (1..=5).map(|line| format!("    line {line}")).collect();
        assert_eq!(snippets.finish(), json!({ "0": [1, lines] }));
    }
}
