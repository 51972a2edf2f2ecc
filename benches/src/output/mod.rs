//! The output of `report`: JSON lines, a table, a Markdown report, pictures, and a page of HTML.
//!
//! All of it is made from the [`Record`], which is what `report.jsonl` holds, so `report --render`
//! makes it again without measuring.

pub mod charts;
pub mod fill;
pub mod pages;
pub mod record;
pub mod run;
pub mod table;

use std::fs;
use std::io;
use std::path::Path;

pub use record::{Record, json_line};
pub use run::{Run, Watch};
pub use table::Table;

use crate::workload::Comparison;

/// The first line of the table for a terminal. Comparisons are printed as they come, so columns
/// have fixed widths.
pub fn table_header() -> String {
    format!(
        "{:<58} {:>11} {:>11} {:>7} {:>13}  {:<16} rounds",
        "name", "ours", "theirs", "ratio", "middle half", "rival"
    )
}

/// The table's line for `row`.
pub fn table_line(row: &Comparison) -> String {
    let name = format!("{}/{}", row.suite, row.name);
    format!(
        "{name:<58} {:>7.1} {unit:<3} {:>7.1} {unit:<3} {:>6.2}x {:>13}  {:<16} {}",
        row.ours,
        row.theirs,
        row.ratio,
        row.middle_half(),
        row.rival,
        row.runs,
        unit = row.unit,
    )
}

/// A figure with three significant digits, as far as one after the point allows it: `0.93`, `23.4`,
/// `4210`.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The name of the file with the picture called `name`: letters, digits and hyphens.
pub fn file_name(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    format!("{}.svg", words.join("-").to_ascii_lowercase())
}

/// Writes `report.jsonl`, `report.md`, `report.html` and the pictures into the folder `out`, which
/// it makes when it does not exist.
///
/// # Errors
/// When a file cannot be written.
pub fn write_files(out: &Path, record: &Record) -> io::Result<()> {
    fs::create_dir_all(out)?;
    write_whole(&out.join("report.jsonl"), &record.json_lines())?;
    write_whole(&out.join("report.md"), &pages::markdown(record))?;
    write_whole(&out.join("report.html"), &pages::html(record))?;
    for suite in record.suites() {
        for (file, svg) in pages::pictures(record, suite) {
            write_whole(&out.join(file), &svg)?;
        }
    }
    Ok(())
}

/// Replaces the file `path`, which is whole at all times.
///
/// # Errors
/// When a file beside it cannot be written or renamed.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    fs::write(&temporary, text)?;
    fs::rename(&temporary, path)
}
