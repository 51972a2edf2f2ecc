//! Tables between marks in Markdown files, so that no figure in them is typed by hand.
//!
//! ```text
//! <!-- report: benches/record/2026-11-21.jsonl            the record, from the document's folder
//! get_many_2m_vs_btreemap = 2 M keys, many at once        a row's name, and words for it
//! frozen_*                                                all rows whose names begin so
//! -->
//! (the table, and where it was measured; any text here is replaced)
//! <!-- /report -->
//! ```
//!
//! `report --tables README.md` writes the tables again. A row that the record lacks is an error.

use super::pages::{comparisons, markdown_cell};
use super::run::joined;
use super::{Record, Run};
use crate::workload::Comparison;

const BEGIN: &str = "<!-- report:";
const BEGIN_END: &str = "-->";
const END: &str = "<!-- /report -->";

/// `text` with its tables made again. `read` gives the text of a record by the path in its mark.
pub fn fill(text: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = begin_of_line(rest, BEGIN) {
        let line = 1 + text[..text.len() - rest.len() + at].matches('\n').count();
        let lacks = |what: &str| format!("the mark in line {line} lacks its {what:?}");
        let inside = &rest[at + BEGIN.len()..];
        let parts = inside.split_once(BEGIN_END);
        let (mark, after) = parts.ok_or_else(|| lacks(BEGIN_END))?;
        let end = begin_of_line(after, END).ok_or_else(|| lacks(END))?;
        filled += &rest[..at];
        filled += &format!("{BEGIN}{mark}{BEGIN_END}\n{}", section(mark, &read)?);
        rest = &after[end..];
    }
    if filled.is_empty() {
        return Err(format!("no line begins with {BEGIN:?}"));
    }
    Ok(filled + rest)
}

fn begin_of_line(text: &str, what: &str) -> Option<usize> {
    let mut places = text.match_indices(what).map(|(at, _)| at);
    places.find(|&at| at == 0 || text[..at].ends_with('\n'))
}

fn section(mark: &str, read: &impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut lines = mark.lines().map(str::trim);
    let path = lines.next().unwrap_or_default();
    let record = read(path).and_then(|text| Record::read(&text));
    let record = record.map_err(|error| format!("{path}: {error}"))?;

    let mut wishes: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    if wishes.is_empty() {
        wishes.push("*");
    }
    let (mut rows, mut titles) = (Vec::new(), Vec::new());
    for wish in wishes {
        let (name, words) = match wish.split_once('=') {
            Some((name, words)) => (name.trim(), Some(words.trim())),
            None => (wish, None),
        };
        let is_it = |row: &&Comparison| match name.strip_suffix('*') {
            Some(beginning) => row.name.starts_with(beginning),
            None => row.name == name,
        };
        let before = rows.len();
        rows.extend(record.rows.iter().filter(is_it));
        if rows.len() == before {
            return Err(format!("{path} has no row called {name:?}"));
        }
        let title = |name| words.map_or_else(|| format!("`{name}`"), str::to_owned);
        titles.extend(rows[before..].iter().map(|row| title(&row.name)));
    }
    let table = comparisons(&rows, "what", &titles);
    let origins: String = record.runs.iter().map(origin).collect();
    Ok(format!(
        "\n{table}\n{origins}- All figures: [{path}]({path}).\n\n"
    ))
}

/// A line that says where `run` was measured.
fn origin(run: &Run) -> String {
    let day = run.date.split('T').next().unwrap_or_default();
    let mut facts = vec![format!("Measured on {day} by `{}`", run.command)];
    if !run.commit.is_empty() {
        facts.push(format!("commit {}", run.commit));
    }
    facts.push(run.processors());
    // The record says how quiet.
    facts.extend(run.quietness().split(':').next().map(str::to_owned));
    let fact = joined(facts);
    format!("- {}.\n", markdown_cell(&fact))
}
