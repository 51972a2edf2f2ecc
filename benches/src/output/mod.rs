//! The output of `report`: JSON lines, a table, a Markdown report, pictures, and a page of HTML.
//!
//! All of it is made from the [`Record`], which is what `report.jsonl` holds, so `report --render`
//! makes it again without measuring.

pub mod charts;
pub mod fill;
pub mod pages;
pub mod record;
pub mod run;

use std::fs;
use std::io;
use std::path::Path;

pub use record::{Record, Table, json_line};
pub use run::{Run, Watch};

use crate::workload::Comparison;

/// Comparisons are printed as they come, so columns have fixed widths.
pub fn table_header() -> String {
    format!(
        "{:<58} {:>11} {:>11} {:>7} {:>13}  {:<16} rounds",
        "name", "ours", "theirs", "ratio", "middle half", "rival"
    )
}

pub fn table_line(row: &Comparison) -> String {
    let name = format!("{}/{}", row.suite, row.name);
    let (ours, theirs, unit, ratio) = (row.ours, row.theirs, &row.unit, row.ratio);
    let (middle_half, rival, runs) = (row.middle_half(), &row.rival, row.runs);
    format!(
        "{name:<58} {ours:>7.1} {unit:<3} {theirs:>7.1} {unit:<3} {ratio:>6.2}x \
         {middle_half:>13}  {rival:<16} {runs}"
    )
}

/// Three significant digits, as far as one after the point allows it: `0.93`, `23.4`, `4210`.
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

/// Writes `report.jsonl`, `report.md`, `report.html` and the pictures into the folder `out`.
pub fn write_files(out: &Path, record: &Record) -> io::Result<()> {
    fs::create_dir_all(out)?;
    write_whole(&out.join("report.jsonl"), &record.json_lines())?;
    write_whole(&out.join("report.md"), &pages::markdown(record))?;
    write_whole(&out.join("report.html"), &pages::html(record))?;
    let suites = record.suites();
    for (file, svg) in suites
        .iter()
        .flat_map(|suite| pages::pictures(record, suite))
    {
        write_whole(&out.join(file), &svg)?;
    }
    Ok(())
}

/// Replaces the file `path`, which is whole at all times.
pub fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&temporary, text)?;
    fs::rename(&temporary, path)
}
