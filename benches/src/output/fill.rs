//! Tables between marks in Markdown files, so that no figure in them is typed by hand.
//!
//! ```text
//! <!-- report: benches/record/2026-11-21.jsonl            the record, from the document's folder
//! get_many_2m_vs_btreemap = 2 M keys, many at once        a row's name, and words for it
//! frozen_*                                                all rows whose names begin so
//! -->
//! (the table, and where it was measured; whatever stands here is replaced)
//! <!-- /report -->
//! ```
//!
//! `report --tables README.md` writes the tables again, and with `--check` only says whether they
//! are what the records say. A row that the record does not have is an error.

use std::fmt;

use super::run::joined;
use super::table::{markdown_cell, markdown_table};
use super::{Record, markdown};
use crate::workload::Comparison;

const BEGIN: &str = "<!-- report:";
const BEGIN_END: &str = "-->";
const END: &str = "<!-- /report -->";

/// Why a file could not be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FillError {
    /// A mark without its end.
    Unfinished {
        /// What it lacks.
        lacks: &'static str,
        /// The line in which it begins.
        line: usize,
    },
    /// A record that cannot be read.
    Record {
        /// What the mark says.
        path: String,
        /// What went wrong.
        what: String,
    },
    /// A row that the record does not have.
    NoRow {
        /// What the mark says.
        path: String,
        /// The name.
        name: String,
    },
    /// There is no mark at all.
    NoMark,
}

impl fmt::Display for FillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FillError::Unfinished { lacks, line } => {
                write!(f, "the mark in line {line} lacks its {lacks:?}")
            }
            FillError::Record { path, what } => write!(f, "{path}: {what}"),
            FillError::NoRow { path, name } => write!(f, "{path} has no row called {name:?}"),
            FillError::NoMark => write!(f, "no line begins with {BEGIN:?}"),
        }
    }
}

impl std::error::Error for FillError {}

/// `text` with the tables between its marks made anew. `read` gives what stands in the file of a
/// record, by the path that the mark names.
///
/// # Errors
/// When a mark is not whole, a record cannot be read, or a row is missing; nothing is half done.
pub fn fill(
    text: &str,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<String, FillError> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = begin_of_line(rest, BEGIN) {
        let line = || 1 + text[..text.len() - rest.len() + at].matches('\n').count();
        let lacks = |lacks| FillError::Unfinished {
            lacks,
            line: line(),
        };
        let inside = &rest[at + BEGIN.len()..];
        let mark_bytes = inside.find(BEGIN_END).ok_or_else(|| lacks(BEGIN_END))?;
        let (mark, after) = inside.split_at(mark_bytes);
        let after = &after[BEGIN_END.len()..];
        let end = begin_of_line(after, END).ok_or_else(|| lacks(END))?;
        filled.push_str(&rest[..at + BEGIN.len() + mark_bytes + BEGIN_END.len()]);
        filled.push('\n');
        filled.push_str(&section(mark, &read)?);
        rest = &after[end..];
    }
    if filled.is_empty() {
        return Err(FillError::NoMark);
    }
    Ok(filled + rest)
}

/// Where the first line that begins with `what` begins.
fn begin_of_line(text: &str, what: &str) -> Option<usize> {
    text.match_indices(what)
        .map(|(at, _)| at)
        .find(|&at| at == 0 || text[..at].ends_with('\n'))
}

/// What belongs below `mark`.
fn section(
    mark: &str,
    read: &impl Fn(&str) -> Result<String, String>,
) -> Result<String, FillError> {
    let mut lines = mark.lines();
    let path = lines.next().unwrap_or_default().trim();
    let failure = |what| FillError::Record {
        path: path.to_owned(),
        what,
    };
    let text = read(path).map_err(failure)?;
    let record = Record::read(&text).map_err(failure)?;

    let mut chosen: Vec<(&Comparison, String)> = Vec::new();
    let mut wishes = lines
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .peekable();
    let code = |name: &str| format!("`{name}`");
    if wishes.peek().is_none() {
        chosen.extend(record.rows.iter().map(|row| (row, code(&row.name))));
    }
    for wish in wishes {
        let (name, words) = match wish.split_once('=') {
            Some((name, words)) => (name.trim(), Some(words.trim())),
            None => (wish, None),
        };
        let before = chosen.len();
        match name.strip_suffix('*') {
            Some(beginning) => {
                let rows = record.rows.iter();
                let wanted = rows.filter(|row| row.name.starts_with(beginning));
                chosen.extend(wanted.map(|row| (row, code(&row.name))));
            }
            None => {
                let title = words.map_or_else(|| code(name), str::to_owned);
                chosen.extend(record.row(name).map(|row| (row, title)));
            }
        }
        if chosen.len() == before {
            return Err(FillError::NoRow {
                path: path.to_owned(),
                name: name.to_owned(),
            });
        }
    }
    Ok(written(path, &record, &chosen))
}

/// The table of `chosen` rows, each with its title, and a line for each run that says where it was
/// measured.
fn written(path: &str, record: &Record, chosen: &[(&Comparison, String)]) -> String {
    let rows: Vec<&Comparison> = chosen.iter().map(|&(row, _)| row).collect();
    let (mut header, mut lines) = markdown::comparisons(&rows, str::to_owned);
    for (line, (_, title)) in lines.iter_mut().zip(chosen) {
        line[0].clone_from(title);
    }
    header[0] = "what".to_owned();
    let mut text = format!("\n{}\n", markdown_table(&header, &lines));
    for run in &record.runs {
        let fact = joined([
            format!("measured on {} by `{}`", run.day(), run.command),
            match run.commit.as_str() {
                "" => String::new(),
                commit => format!("commit {commit}"),
            },
            run.processors(),
            // How quiet stands in the record.
            run.quietness()
                .split(':')
                .next()
                .unwrap_or_default()
                .to_owned(),
        ]);
        let mut letters = fact.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let sentence: String = first.into_iter().chain(letters).collect();
        text.push_str("- ");
        text.push_str(&markdown_cell(&sentence));
        text.push_str(".\n");
    }
    text + &format!("- All figures: [{path}]({path}).\n\n")
}
