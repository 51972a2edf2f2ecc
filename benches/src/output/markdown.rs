//! The report as a Markdown file.

use std::fmt::Write as _;

use super::table::{markdown_cell, markdown_table};
use super::{Record, Row, about, curves, figure, svg};

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
        write!(text, "![ratios]({})\n\n", svg::file_name(suite)).expect(WRITES);
        for curve in record.curves_of(suite) {
            let title = curves::title(&curve);
            write!(text, "![{title}]({})\n\n", svg::file_name(&title)).expect(WRITES);
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

/// The columns and lines of a table of comparisons; the last columns are left out where no row has anything to say there. `title` makes the first cell of a name.
pub fn comparisons(
    rows: &[&Row],
    title: impl Fn(&str) -> String,
) -> (Vec<String>, Vec<Vec<String>>) {
    let mut header = [
        "name",
        "ours",
        "theirs",
        "ratio",
        "middle half",
        "rival",
        "rounds",
    ]
    .map(String::from)
    .to_vec();
    let has_counts = rows.iter().any(|row| !row.counts.is_empty());
    if has_counts {
        header.push("events, ours : theirs".to_owned());
    }
    let lines = rows.iter().map(|row| {
        let unit = &row.unit;
        let mut line = vec![
            title(&row.name),
            format!("{} {unit}", figure(row.ours)),
            format!("{} {unit}", figure(row.theirs)),
            format!("{:.2}x", row.ratio),
            row.middle_half(),
            row.rival.clone(),
            row.runs.to_string(),
        ];
        if has_counts {
            line.push(row.counts_in_words());
        }
        line
    });
    (header, lines.collect())
}
