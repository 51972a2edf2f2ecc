//! How answers are written: tables for people, comma-separated values and JSON for programs.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use serde::Serialize;
use tempfile::NamedTempFile;

use super::CliError;

/// Rows of cells; the first row has the titles.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds a row; cells that it lacks stay empty.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Writes columns as wide as they need to be, without blanks at the ends of lines. The first
    /// column is aligned left, the others right.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(row.len().max(widths.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                line += &match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("  {cell:>width$}"),
                };
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Writes comma-separated values, as in RFC 4180 but for the line end.
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let quoted = |field: &String| match field.contains([',', '"', '\n', '\r']) {
            true => format!("\"{}\"", field.replace('"', "\"\"")),
            false => field.clone(),
        };
        for row in &self.rows {
            let fields: Vec<String> = row.iter().map(quoted).collect();
            writeln!(out, "{}", fields.join(","))?;
        }
        Ok(())
    }
}

pub(super) fn write_notes(out: &mut dyn Write, notes: &[String]) -> Result<(), CliError> {
    for note in notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

/// Writes one JSON object, indented, with a line end.
pub(super) fn write_json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), CliError> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// A file that gets all of its text or keeps what it had. A new one is removed again where nothing
/// was written.
#[derive(Debug)]
pub(super) struct NewFile {
    path: PathBuf,
    /// Takes the text first, then the file's name. `None` where the file is written in place:
    /// links, devices, and files in folders that take no new file.
    temporary: Option<NamedTempFile>,
    is_new_and_unwritten: bool,
}

impl NewFile {
    /// Finds out whether the file can be written.
    pub(super) fn create(path: &Path) -> Result<NewFile, CliError> {
        let is_new_and_unwritten = !path.exists();
        let opened = fs::OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let mut file = NewFile {
            path: path.to_owned(),
            temporary: None,
            is_new_and_unwritten,
        };
        if fs::symlink_metadata(path).is_ok_and(|known| known.is_file()) {
            let folder = path.parent().unwrap_or(path);
            file.temporary = NamedTempFile::new_in(Path::new(".").join(folder)).ok();
        }
        Ok(file)
    }

    pub(super) fn write(mut self, text: &str) -> Result<(), CliError> {
        let written = match self.temporary.take() {
            Some(temporary) => replace(&self.path, temporary, text),
            None => fs::write(&self.path, text),
        };
        written.map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
        self.is_new_and_unwritten = false;
        Ok(())
    }
}

/// Puts a temporary file with this text in the place of a file, with the same permissions.
fn replace(path: &Path, mut temporary: NamedTempFile, text: &str) -> io::Result<()> {
    temporary.write_all(text.as_bytes())?;
    if let Ok(known) = fs::metadata(path) {
        temporary.as_file().set_permissions(known.permissions())?;
    }
    temporary.persist(path)?;
    Ok(())
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.is_new_and_unwritten {
            // A file that cannot be removed stays.
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Shows on standard error how far a command of `steps` steps is, where that is a terminal.
pub(super) fn progress(steps: u64) -> ProgressBar {
    let bar = ProgressBar::new(steps).with_finish(ProgressFinish::AndClear);
    match ProgressStyle::with_template("[{bar:40}] {percent} %, {eta} left: {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A size for people: `48 KiB`, `1.5 MiB`.
pub(super) fn human_bytes(bytes: f64) -> String {
    let (mut value, mut unit) = (bytes, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value >= 1024.0 {
            (value, unit) = (value / 1024.0, larger);
        }
    }
    let digits = usize::from(value < 10.0 && value.fract() > 0.05);
    format!("{value:.digits$} {unit}")
}

/// A duration for people: `950 ns`, `12.5 ms`.
pub(super) fn human_ns(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = usize::from(value < 99.95);
    format!("{value:.digits$} {unit}")
}

/// A number for people, with about three significant digits: `0.0123`, `4.56`, `789`, `12300`.
pub(super) fn human_number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        m if m < 0.000_95 => format!("{value:.1e}"),
        m if m < 0.0995 => format!("{value:.4}"),
        m if m < 99.95 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// A count for people: whole, with commas: `1,000,000`.
pub(super) fn human_count(count: impl fmt::Display) -> String {
    let mut text = format!("{count:.0}");
    let mut place = text.len();
    while place > 3 {
        place -= 3;
        text.insert(place, ',');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        for (written, expected) in [
            (human_bytes(64.0), "64 B"),
            (human_bytes(49_152.0), "48 KiB"),
            (human_bytes(1.5 * 1024.0 * 1024.0), "1.5 MiB"),
            (human_bytes(2f64.powi(60)), "1048576 TiB"),
            (human_ns(12.34), "12.3 ns"),
            (human_ns(1234.0), "1.2 us"),
            (human_ns(456.7e6), "457 ms"),
            (human_ns(7.2e10), "72.0 s"),
            (human_number(0.0), "0"),
            (human_number(0.000_123), "1.2e-4"),
            (human_number(0.0123), "0.0123"),
            (human_number(4.561), "4.56"),
            (human_number(62_500.4), "62500"),
            (human_number(f64::INFINITY), "inf"),
            (human_count(1234), "1,234"),
            (human_count(12_345), "12,345"),
            (human_count(1_234_567.2), "1,234,567"),
        ] {
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn columns_line_up_and_separators_in_fields_are_quoted() {
        let mut table = Table::default();
        table.row(["layout", "ns"]);
        table.row(["a,b", "12.0"]);
        table.row(["say \"x\""]);
        let (mut text, mut csv) = (Vec::new(), Vec::new());
        table.write(&mut text).unwrap();
        table.write_csv(&mut csv).unwrap();
        assert_eq!(text, b"layout     ns\na,b      12.0\nsay \"x\"\n");
        assert_eq!(csv, b"layout,ns\n\"a,b\",12.0\n\"say \"\"x\"\"\"\n");
    }

    #[test]
    fn a_file_changes_only_when_all_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        fs::write(&old, "old").unwrap();
        for path in [&old, &new] {
            drop(NewFile::create(path).unwrap());
            // A file that is open for reading only cannot be written.
            let mut file = NewFile::create(path).unwrap();
            let (_, name) = file.temporary.take().unwrap().into_parts();
            let unwritable = fs::File::open(&name).unwrap();
            file.temporary = Some(NamedTempFile::from_parts(unwritable, name));
            assert!(file.write("text").is_err());
        }
        assert_eq!(fs::read_to_string(&old).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        for path in [&old, &new] {
            NewFile::create(path).unwrap().write("text").unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), "text");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        let device = NewFile::create(Path::new("/dev/null")).unwrap();
        assert!(device.temporary.is_none());
        device.write("text").unwrap();
    }
}
