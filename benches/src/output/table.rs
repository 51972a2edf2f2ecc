//! Tables in Markdown.

use serde::{Deserialize, Serialize};

/// A table that a suite makes of its rows. Cells are Markdown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The suite that it belongs to.
    pub suite: String,
    /// What it shows.
    pub title: String,
    /// What a reader needs to know to read it.
    pub explanation: String,
    /// The names of the columns.
    pub header: Vec<String>,
    /// The lines, each with as many cells.
    pub rows: Vec<Vec<String>>,
}

/// Whether a column is aligned to the right: all of its cells are empty, or begin with a digit or a
/// sign.
fn is_of_figures(rows: &[Vec<String>], column: usize) -> bool {
    let cells = || rows.iter().filter_map(|row| row.get(column));
    let is_figure = |cell: &String| {
        let first = cell.trim_start_matches("**").chars().next();
        first.is_none_or(|c| c.is_ascii_digit() || c == '-')
    };
    cells().any(|cell| !cell.is_empty()) && cells().all(is_figure)
}

/// `text` as a cell of a table: without HTML, ends of cells and control characters.
pub fn markdown_cell(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace(char::is_control, " ")
}

/// A table in GitHub's form of Markdown, without an empty line after it.
pub fn markdown_table(header: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| markdown_cell(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let marks = (0..header.len()).map(|column| match is_of_figures(rows, column) {
        true => "---:|",
        false => "---|",
    });
    let marks: String = marks.collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}|{marks}\n{rows}", line(header))
}
