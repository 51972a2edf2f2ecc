//! How answers are written: tables for people, comma-separated values and JSON for programs.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

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
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                if column == 0 {
                    line += &format!("{cell:<width$}");
                } else {
                    line += &format!("  {cell:>width$}");
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }

    /// Writes comma-separated values, as in RFC 4180 but for the line end.
    pub(super) fn write_csv(&self, out: &mut dyn Write) -> io::Result<()> {
        for row in &self.rows {
            let fields: Vec<String> = row.iter().map(|field| quoted(field)).collect();
            writeln!(out, "{}", fields.join(","))?;
        }
        Ok(())
    }
}

/// A field, in quotes where it holds what separates fields.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Writes notes, a line each.
pub(super) fn write_notes(out: &mut dyn Write, notes: &[String]) -> io::Result<()> {
    notes
        .iter()
        .try_for_each(|note| writeln!(out, "note: {note}"))
}

/// Writes one JSON object, indented, with a line end.
pub(super) fn write_json(
    out: &mut dyn Write,
    value: &impl serde::Serialize,
) -> Result<(), CliError> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// A file that gets its name when all of it is written: until then its text has another name
/// beside it.
#[derive(Debug)]
pub(super) struct NewFile {
    path: PathBuf,
    /// As `path` where that is a device or a pipe, which is written as it is.
    temporary: PathBuf,
}

impl NewFile {
    /// Finds out whether the file can be written.
    pub(super) fn create(path: &Path) -> Result<NewFile, CliError> {
        let is_special = fs::metadata(path).is_ok_and(|known| !known.is_file());
        let mut temporary = path.as_os_str().to_owned();
        if !is_special {
            temporary.push(format!(".{}.tmp", std::process::id()));
        }
        let file = NewFile {
            path: path.to_owned(),
            temporary: temporary.into(),
        };
        let mut options = fs::OpenOptions::new();
        let opened = options
            .write(true)
            .create(!is_special)
            .open(&file.temporary);
        opened.map_err(|error| file.cannot(&error))?;
        Ok(file)
    }

    /// Writes the text and gives the file its name.
    pub(super) fn write(self, text: &str) -> Result<(), CliError> {
        let mut written = fs::write(&self.temporary, text);
        if self.temporary != self.path {
            written = written.and_then(|()| fs::rename(&self.temporary, &self.path));
        }
        written.map_err(|error| self.cannot(&error))
    }

    fn cannot(&self, error: &io::Error) -> CliError {
        CliError::Request(format!("cannot write {}: {error}", self.path.display()))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.temporary != self.path {
            // It does not exist where all was written.
            drop(fs::remove_file(&self.temporary));
        }
    }
}

/// Shows on standard error how far a long command is, where that is a terminal.
#[derive(Debug)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    /// Begins a command of `steps` steps.
    pub(super) fn new(steps: u64) -> Progress {
        let bar = ProgressBar::new(steps);
        let style = ProgressStyle::with_template("[{bar:40}] {percent} %, {eta} left: {msg}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        Progress(bar)
    }

    /// Shows what the command works on.
    pub(super) fn show(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }

    /// Shows that `steps` steps are done.
    pub(super) fn set(&self, steps: u64) {
        self.0.set_position(steps);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A size for people: `48 KiB`, `1.5 MiB`.
pub(super) fn human_bytes(bytes: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(value < 10.0 && value.fract() > 0.05);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// A duration for people: `950 ns`, `12.5 ms`.
pub(super) fn human_ns(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    if value < 99.95 {
        format!("{value:.1} {unit}")
    } else {
        format!("{value:.0} {unit}")
    }
}

/// A number for people, with three digits that count: `0.0123`, `4.56`, `789`, `12300`.
pub(super) fn human_number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude == 0.0 {
        return "0".to_owned();
    }
    if !magnitude.is_finite() {
        return value.to_string();
    }
    match magnitude {
        m if m < 0.000_95 => format!("{value:.1e}"),
        m if m < 0.0995 => format!("{value:.4}"),
        m if m < 99.95 => format!("{value:.2}"),
        _ => format!("{value:.0}"),
    }
}

/// A count for people: whole, with a space for each thousand from 10 000 on.
pub(super) fn human_count(count: impl fmt::Display) -> String {
    let digits = format!("{count:.0}");
    if digits.len() <= 4 {
        return digits;
    }
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        let exbi = 2f64.powi(60);
        for (written, expected) in [
            (human_bytes(64.0), "64 B"),
            (human_bytes(49_152.0), "48 KiB"),
            (human_bytes(1.5 * 1024.0 * 1024.0), "1.5 MiB"),
            (human_bytes(exbi), "1048576 TiB"),
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
            (human_count(1234), "1234"),
            (human_count(1_234_567.2), "1 234 567"),
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
        let written = |csv| {
            let mut text = Vec::new();
            let done = if csv {
                table.write_csv(&mut text)
            } else {
                table.write(&mut text)
            };
            done.unwrap();
            String::from_utf8(text).unwrap()
        };
        assert_eq!(written(false), "layout     ns\na,b      12.0\nsay \"x\"\n");
        assert_eq!(
            written(true),
            "layout,ns\n\"a,b\",12.0\n\"say \"\"x\"\"\"\n"
        );
    }
}
