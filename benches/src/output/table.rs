//! Plain tables, as Markdown and as HTML.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::svg::escape;

const WRITES: &str = "a String takes all that is written to it";

/// A table that a suite makes of its rows. Cells are plain text.
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

/// Whether a column holds figures, which are written to the right: all of its cells that say anything begin with a digit or a sign.
fn is_of_figures(rows: &[Vec<String>], column: usize) -> bool {
    let mut cells = rows.iter().filter_map(|row| row.get(column)).peekable();
    cells.peek().is_some()
        && cells.all(|cell| {
            cell.is_empty() || cell.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        })
}

/// `text` as a cell of a Markdown table.
pub fn markdown_cell(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace(['\n', '\r'], " ")
}

/// A table in GitHub's form of Markdown, without an empty line after it.
///
/// `code` tells whether the first column holds names of code.
pub fn markdown_table(header: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| {
        cells.fold(String::from("|"), |line, cell| line + " " + &cell + " |")
    };
    let mut text = line(&mut header.iter().map(|cell| markdown_cell(cell)));
    text.push_str("\n|");
    for column in 0..header.len() {
        let mark = if is_of_figures(rows, column) {
            "---:|"
        } else {
            "---|"
        };
        text.push_str(mark);
    }
    for row in rows {
        text.push('\n');
        text.push_str(&line(&mut row.iter().map(|cell| markdown_cell(cell))));
    }
    text.push('\n');
    text
}

/// A table in HTML that scrolls by itself where it is too wide.
pub fn html_table(header: &[String], rows: &[Vec<String>]) -> String {
    let mut text = String::from("<div class=\"wide\"><table><thead><tr>");
    let class = |column| {
        if is_of_figures(rows, column) {
            " class=\"n\""
        } else {
            ""
        }
    };
    for (column, cell) in header.iter().enumerate() {
        write!(text, "<th{}>{}</th>", class(column), escape(cell)).expect(WRITES);
    }
    text.push_str("</tr></thead><tbody>");
    for row in rows {
        text.push_str("<tr>");
        for (column, cell) in row.iter().enumerate() {
            write!(text, "<td{}>{}</td>", class(column), escape(cell)).expect(WRITES);
        }
        text.push_str("</tr>");
    }
    text.push_str("</tbody></table></div>\n");
    text
}
