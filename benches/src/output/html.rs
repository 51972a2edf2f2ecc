//! The report as one page of HTML: words, pictures and tables, no script, nothing to load.

use super::table::{escape, html_table};
use super::{Record, about, charts, markdown};

const STYLE: &str = "body{margin:0 auto;max-width:50rem;padding:1rem;font-family:sans-serif}\
    svg{max-width:100%;height:auto}.wide{overflow-x:auto}table{border-collapse:collapse}\
    td,th{padding:.2rem .6rem .2rem 0;text-align:left;white-space:nowrap}.n{text-align:right}";

/// The page of `record`.
pub fn page(record: &Record) -> String {
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Ours against the rivals</title><style>{STYLE}</style></head><body>\n\
         <h1>Ours against the rivals</h1>\n<p>{}</p>\n<p>{}</p>\n",
        escape(about::ALL),
        escape(about::BARS)
    );
    for run in &record.runs {
        if !run.is_complete() {
            text += "<p><strong>This run did not finish.</strong></p>\n";
        }
        text += "<ul>";
        for (name, fact) in run.facts() {
            text += &format!("<li>{name}: {}</li>", escape(&fact));
        }
        text += "</ul>\n";
    }
    for suite in record.suites() {
        let about = escape(about::suite(suite));
        text += &format!("<h2>{}</h2>\n<p>{about}</p>\n", escape(suite));
        for curves in record.curves_of(suite) {
            text += &charts::curves(&curves);
        }
        for table in record.tables.iter().filter(|table| table.suite == suite) {
            let (title, explanation) = (escape(&table.title), escape(&table.explanation));
            text += &format!("<h3>{title}</h3><p>{explanation}</p>");
            text += &html_table(&table.header, &table.rows);
        }
        text += &charts::bars(suite, &record.bars_of(suite));
        let (header, lines) = markdown::comparisons(&record.rows_of(suite), str::to_owned);
        text += &html_table(&header, &lines);
    }
    text + "</body></html>\n"
}
