//! How answers are written: tables for people, comma-separated values and JSON for programs.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};

use super::CliError;

/// Lines of text in columns as wide as they need to be; the first is aligned left, the others
/// right.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column titles.
    pub(super) fn new(titles: impl IntoIterator<Item = impl Into<String>>) -> Table {
        let mut table = Table::default();
        table.row(titles);
        table
    }

    /// Adds a line; what it lacks stays empty.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Writes the lines, without blanks at their ends.
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
}

/// Writes one record of comma-separated values, as RFC 4180 has them but for the line end.
pub(super) fn write_csv<T: fmt::Display>(
    out: &mut dyn Write,
    fields: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    let fields: Vec<String> = fields
        .into_iter()
        .map(|field| quoted(&field.to_string()))
        .collect();
    writeln!(out, "{}", fields.join(","))
}

/// A field, in quotes where it holds what separates fields.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// Writes one JSON object, indented, with a line end.
pub(super) fn write_json(
    out: &mut dyn Write,
    value: &impl serde::Serialize,
) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(not_json)?;
    writeln!(out, "{text}")?;
    Ok(())
}

fn not_json(error: serde_json::Error) -> CliError {
    CliError::Output(io::Error::new(io::ErrorKind::InvalidData, error))
}

/// A file that comes to be when all of it is written: until then its text has another name beside
/// it.
#[derive(Debug)]
pub(super) struct NewFile {
    path: PathBuf,
    /// `None` where `path` is something else than a file, which is written to as it is.
    temporary: Option<PathBuf>,
}

impl NewFile {
    /// Finds out whether the file can be written.
    pub(super) fn create(path: &Path) -> Result<NewFile, CliError> {
        let is_special = fs::metadata(path).is_ok_and(|known| !known.is_file());
        let temporary = (!is_special).then(|| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{}.tmp", std::process::id()));
            PathBuf::from(name)
        });
        let file = NewFile {
            path: path.to_owned(),
            temporary,
        };
        let mut options = fs::OpenOptions::new();
        options.write(true).create(!is_special);
        let opened = options.open(file.temporary.as_deref().unwrap_or(path));
        opened.map_err(|error| file.cannot(&error))?;
        Ok(file)
    }

    /// Writes the text and gives the file its name.
    pub(super) fn write(self, text: &str) -> Result<(), CliError> {
        let written = match &self.temporary {
            Some(temporary) => {
                fs::write(temporary, text).and_then(|()| fs::rename(temporary, &self.path))
            }
            None => fs::write(&self.path, text),
        };
        written.map_err(|error| self.cannot(&error))
    }

    fn cannot(&self, error: &io::Error) -> CliError {
        CliError::Request(format!("cannot write {}: {error}", self.path.display()))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // It is gone where all was written.
            drop(fs::remove_file(temporary));
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
pub(super) fn human_count(count: f64) -> String {
    let digits = format!("{:.0}", count.max(0.0));
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
    fn sizes_are_written_for_people() {
        assert_eq!(human_bytes(64.0), "64 B");
        assert_eq!(human_bytes(49_152.0), "48 KiB");
        assert_eq!(human_bytes(1.5 * 1024.0 * 1024.0), "1.5 MiB");
        assert_eq!(human_bytes(2f64.powi(60)), "1048576 TiB");
    }

    #[test]
    fn times_and_numbers_are_written_for_people() {
        assert_eq!(human_ns(12.34), "12.3 ns");
        assert_eq!(human_ns(1234.0), "1.2 us");
        assert_eq!(human_ns(456.7e6), "457 ms");
        assert_eq!(human_ns(7.2e10), "72.0 s");
        assert_eq!(human_number(0.0), "0");
        assert_eq!(human_number(0.000_123), "1.2e-4");
        assert_eq!(human_number(0.0123), "0.0123");
        assert_eq!(human_number(4.561), "4.56");
        assert_eq!(human_number(62_500.4), "62500");
        assert_eq!(human_number(f64::INFINITY), "inf");
        assert_eq!(human_count(1234.0), "1234");
        assert_eq!(human_count(1_234_567.0), "1 234 567");
        assert_eq!(human_count(-1.0), "0");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["layout", "ns"]);
        table.row(["veb", "12.0"]);
        table.row(["a"]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "layout    ns\nveb     12.0\na\n"
        );
    }

    #[test]
    fn separators_in_fields_are_quoted() {
        let mut text = Vec::new();
        write_csv(&mut text, ["plain", "a,b", "say \"x\""]).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "plain,\"a,b\",\"say \"\"x\"\"\"\n"
        );
    }
}
