//! What a run of the report leaves: JSON lines, a table, a Markdown report, pictures, and one page
//! of HTML.
//!
//! Everything is drawn from the [`Record`], which is what `report.jsonl` holds, so that any of it
//! can be made again without measuring (`report --render`), and from several runs together.
//!
//! | module | holds |
//! |---|---|
//! | [`record`] | the rows of one or several runs, and their JSON form |
//! | [`run`] | when, where, of what, and how quietly a run was made |
//! | [`about`] | what each suite measures, in words |
//! | [`bars`], [`curves`] | pictures: ratios, and costs against sizes |
//! | [`svg`] | what both are written with |
//! | [`table`] | plain tables, as Markdown and as HTML |
//! | [`markdown`], [`html`] | the report as a file and as a page |
//! | [`fill`] | tables between marks in Markdown files, such as README's |

pub mod about;
pub mod bars;
pub mod curves;
pub mod fill;
pub mod html;
pub mod markdown;
pub mod record;
pub mod run;
pub mod svg;
pub mod table;

use std::fs;
use std::io;
use std::path::Path;

pub use record::{Record, Row};
pub use run::{Run, Watch};
pub use table::Table;

use crate::workload::Comparison;

/// `comparison` as one line of JSON.
///
/// # Panics
/// Never: names and numbers always have a JSON form.
pub fn json_line(comparison: &Comparison) -> String {
    Row::from(comparison).json_line()
}

/// A table for a terminal; the caller prints comparisons as they come, so columns have fixed
/// widths.
pub fn table_header() -> String {
    format!(
        "{:<58} {:>11} {:>11} {:>7} {:>13}  {:<16} rounds",
        "name", "ours", "theirs", "ratio", "middle half", "rival"
    )
}

/// The table's line for `comparison`.
pub fn table_line(comparison: &Comparison) -> String {
    let row = Row::from(comparison);
    let Row { ours, theirs, .. } = row;
    format!(
        "{:<58} {ours:>7.1} {unit:<3} {theirs:>7.1} {unit:<3} {ratio:>6.2}x {between:>13}  {rival:<16} {runs}",
        format!("{}/{}", row.suite, row.name),
        unit = row.unit,
        ratio = row.ratio,
        between = row.middle_half(),
        rival = row.rival,
        runs = row.runs,
    )
}

/// A figure with three digits that count, as far as one after the point allows it: `0.93`, `23.4`,
/// `4210`.
pub fn figure(value: f64) -> String {
    match value.abs() {
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Writes `report.jsonl`, `report.md`, `report.html`, one `SUITE.svg` a suite and one `CURVES.svg`
/// for each kind of curves into the folder `out`, which is made when it does not exist.
///
/// Each file is written under another name first and then given its own, so that whoever reads it
/// finds it whole, whenever the program is interrupted.
///
/// # Errors
/// When a file cannot be written.
pub fn write_files(out: &Path, record: &Record) -> io::Result<()> {
    fs::create_dir_all(out)?;
    write_whole(&out.join("report.jsonl"), &record.json_lines())?;
    write_whole(&out.join("report.md"), &markdown::report(record))?;
    write_whole(&out.join("report.html"), &html::page(record))?;
    for suite in record.suites() {
        let rows = record.bars_of(suite);
        write_whole(&out.join(svg::file_name(suite)), &bars::file(suite, &rows))?;
        for curve in record.curves_of(suite) {
            let path = out.join(svg::file_name(&curves::title(&curve)));
            write_whole(&path, &curves::file(&curve))?;
        }
    }
    Ok(())
}

/// Replaces what stands in the file `path`, all at once.
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
