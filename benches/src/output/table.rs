//! Plain tables, as Markdown and as HTML.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

const WRITES: &str = "a String takes all that is written to it";

/// A table that a suite makes of its rows. Cells are plain text; one between two pairs of asterisks
/// is emphasised.
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

impl Table {
    /// A table of `suite`.
    pub fn new<H: Into<String>, R: IntoIterator<Item: Into<String>>>(
        suite: &str,
        title: &str,
        explanation: &str,
        header: impl IntoIterator<Item = H>,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        let rows = rows.into_iter();
        Table {
            suite: suite.to_owned(),
            title: title.to_owned(),
            explanation: explanation.to_owned(),
            header: header.into_iter().map(Into::into).collect(),
            rows: rows
                .map(|row| row.into_iter().map(Into::into).collect())
                .collect(),
        }
    }
}

/// What stands between the asterisks of an emphasised cell.
fn emphasised(cell: &str) -> Option<&str> {
    cell.strip_prefix("**")?.strip_suffix("**")
}

/// Whether a column holds figures, which are written to the right: all of its cells that say
/// anything begin with a digit or a sign.
fn is_of_figures(rows: &[Vec<String>], column: usize) -> bool {
    let cells = || rows.iter().filter_map(|row| row.get(column));
    let is_figure = |cell: &String| {
        let plain = emphasised(cell).unwrap_or(cell);
        plain.is_empty() || plain.starts_with(|c: char| c.is_ascii_digit() || c == '-')
    };
    cells().any(|cell| !cell.is_empty()) && cells().all(is_figure)
}

/// `text` as a cell of a Markdown table.
pub fn markdown_cell(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace(['\n', '\r'], " ")
}

/// A table in GitHub's form of Markdown, without an empty line after it.
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

/// `text` as content of an element or value of an attribute. Control characters become spaces.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
        .replace(char::is_control, " ")
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
            let cell = match emphasised(cell) {
                Some(cell) => format!("<strong>{}</strong>", escape(cell)),
                None => escape(cell),
            };
            write!(text, "<td{}>{cell}</td>", class(column)).expect(WRITES);
        }
        text.push_str("</tr>");
    }
    text.push_str("</tbody></table></div>\n");
    text
}
