//! The report as a Markdown file.

use std::fmt::Write as _;

use super::table::{markdown_cell, markdown_table};
use super::{Record, about, figure, file_name};
use crate::workload::Comparison;

const WRITES: &str = "a String takes all that is written to it";

/// All of `record`.
pub fn report(record: &Record) -> String {
    let mut text = format!("# Report\n\n{}\n", about::ALL);
    for run in &record.runs {
        text.push('\n');
        for (name, fact) in run.facts() {
            writeln!(text, "- {name}: {}", markdown_cell(&fact)).expect(WRITES);
        }
    }
    for suite in record.suites() {
        write!(text, "\n## {suite}\n\n").expect(WRITES);
        let explanation = about::suite(suite);
        if !explanation.is_empty() {
            write!(text, "{explanation}\n\n").expect(WRITES);
        }
        write!(text, "![ratios]({})\n\n", file_name(suite)).expect(WRITES);
        for curve in record.curves_of(suite) {
            let title = curve.title();
            write!(text, "![{title}]({})\n\n", file_name(&title)).expect(WRITES);
        }
        for table in record.tables.iter().filter(|table| table.suite == suite) {
            write!(
                text,
                "**{}** {}\n\n{}\n",
                table.title,
                table.explanation,
                markdown_table(&table.header, &table.rows)
            )
            .expect(WRITES);
        }
        let (header, rows) = comparisons(&record.rows_of(suite), |name| format!("`{name}`"));
        text.push_str(&markdown_table(&header, &rows));
    }
    text
}

/// The columns and lines of a table of comparisons; a column in which no row has anything to say is
/// left out. `title` makes the first cell of a name.
pub fn comparisons(
    rows: &[&Comparison],
    title: impl Fn(&str) -> String,
) -> (Vec<String>, Vec<Vec<String>>) {
    type Cell = fn(&Comparison) -> String;
    let columns: [(&str, Cell); 7] = [
        ("ours", |row| format!("{} {}", figure(row.ours), row.unit)),
        ("theirs", |row| {
            format!("{} {}", figure(row.theirs), row.unit)
        }),
        ("ratio", |row| format!("{:.2}x", row.ratio)),
        ("middle half", Comparison::middle_half),
        ("rival", |row| row.rival.clone()),
        ("rounds", |row| row.runs.to_string()),
        ("events, ours : theirs", Comparison::counts_in_words),
    ];
    let says = |cell: &Cell| rows.iter().any(|row| !cell(row).is_empty());
    let columns: Vec<_> = columns.into_iter().filter(|(_, cell)| says(cell)).collect();
    let header = std::iter::once("name").chain(columns.iter().map(|(name, _)| *name));
    let lines = rows.iter().map(|row| {
        let cells = columns.iter().map(|(_, cell)| cell(row));
        std::iter::once(title(&row.name)).chain(cells).collect()
    });
    (header.map(str::to_owned).collect(), lines.collect())
}
