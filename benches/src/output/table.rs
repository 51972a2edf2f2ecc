//! Plain tables, as Markdown and as HTML.

use serde::{Deserialize, Serialize};

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

/// The text between the asterisks of an emphasised cell.
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
    let line = |tag: &str, cells: &[String]| {
        let cell = |(column, cell): (usize, &String)| {
            let class = match is_of_figures(rows, column) {
                true => " class=\"n\"",
                false => "",
            };
            let text = match emphasised(cell) {
                Some(cell) => format!("<strong>{}</strong>", escape(cell)),
                None => escape(cell),
            };
            format!("<{tag}{class}>{text}</{tag}>")
        };
        let cells: String = cells.iter().enumerate().map(cell).collect();
        format!("<tr>{cells}</tr>")
    };
    let (head, body) = (line("th", header), rows.iter().map(|row| line("td", row)));
    let body: String = body.collect();
    format!("<div class=\"wide\"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>\n")
}
