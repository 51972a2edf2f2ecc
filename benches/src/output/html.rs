//! The report as one page of HTML: no script, nothing to load, light and dark, and as narrow as a
//! phone.

use std::fmt::Write as _;

use super::svg::escape;
use super::table::html_table;
use super::{Record, about, bars, curves, markdown, svg};

const WRITES: &str = "a String takes all that is written to it";

/// The page's own style; that of the pictures is [`svg::style`].
const STYLE: &str = ":root{color-scheme:light dark;--ink:#1b2127;--soft:#5a6470;--ground:#fff;--rule:#dde2e7;--card:#f5f7f9}\
    @media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--soft:#9aa5b1;--ground:#15191e;--rule:#303841;--card:#1c2228}}\
    *{box-sizing:border-box}html{-webkit-text-size-adjust:100%}\
    body{margin:0 auto;max-width:56rem;padding:1rem;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;color:var(--ink);background:var(--ground);overflow-wrap:anywhere}\
    h1{font-size:1.5rem;line-height:1.2}h2{font-size:1.25rem;margin:2.5rem 0 .5rem;padding-top:1rem;border-top:1px solid var(--rule)}h3{font-size:1rem;margin:1.5rem 0 .25rem}\
    p{max-width:44rem}a{color:inherit}nav a{display:inline-block;margin:0 .9rem .25rem 0}\
    dl{display:grid;grid-template-columns:auto 1fr;gap:.15rem .9rem;margin:1rem 0;padding:.75rem;background:var(--card);font-size:.875rem}dt{color:var(--soft)}dd{margin:0}\
    .warning{font-weight:600}.bars{display:block;margin:1rem 0}\
    .curves{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:1rem}.curve{display:block;width:100%;max-width:36rem;height:auto}\
    details{margin:1rem 0}summary{cursor:pointer}.wide{overflow-x:auto}\
    table{border-collapse:collapse;font-size:.8125rem;margin:.5rem 0}td,th{padding:.2rem .6rem .2rem 0;text-align:left;border-bottom:1px solid var(--rule);white-space:nowrap;overflow-wrap:normal}\
    .n{text-align:right;font-variant-numeric:tabular-nums}footer{margin:3rem 0 1rem;color:var(--soft);font-size:.875rem}";

/// All of `record`.
pub fn page(record: &Record) -> String {
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Ours against the rivals</title><style>{STYLE}{}</style></head><body>\n\
         <h1>Ours against the rivals</h1>\n<p>{}</p>\n\
         <p>Bars begin at 1 on a logarithmic axis: to the right ours is better, to the left worse. The thin line over a bar goes from the worst round to the best, as far as the axis reaches; the two strokes on it mark the \
         middle half; a grey bar is one whose middle half has 1 inside.</p>\n",
        svg::style(),
        escape(about::ALL)
    );
    for run in &record.runs {
        if !run.is_complete() {
            text.push_str("<p class=\"warning\">This run did not finish: what follows is what it had measured by then.</p>\n");
        }
        text.push_str("<dl>");
        for (name, fact) in run.facts() {
            write!(text, "<dt>{name}</dt><dd>{}</dd>", escape(&fact)).expect(WRITES);
        }
        text.push_str("</dl>\n");
    }
    if record.suites().len() > 1 {
        text.push_str("<nav>");
        for suite in record.suites() {
            let suite = escape(suite);
            write!(text, "<a href=\"#{suite}\">{suite}</a>").expect(WRITES);
        }
        text.push_str("</nav>\n");
    }
    for suite in record.suites() {
        section(&mut text, record, suite);
    }
    text.push_str(
        "<footer>Made by <code>report --out</code>, without a script; the same rows are in report.jsonl and report.md beside this page.</footer>\n</body></html>\n",
    );
    text
}

/// A suite: words, pictures, tables.
fn section(text: &mut String, record: &Record, suite: &str) {
    let rows = record.rows_of(suite);
    let name = escape(suite);
    write!(
        text,
        "<section id=\"{name}\"><h2>{name}</h2>\n<p>{}</p>\n",
        escape(about::suite(suite))
    )
    .expect(WRITES);
    let own_curves = record.curves_of(suite);
    if !own_curves.is_empty() {
        text.push_str("<div class=\"curves\">");
        for curve in &own_curves {
            text.push_str(&curves::inline(curve));
        }
        text.push_str("</div>\n");
    }
    for table in record.tables.iter().filter(|table| table.suite == suite) {
        write!(
            text,
            "<h3>{}</h3><p>{}</p>{}",
            escape(&table.title),
            escape(&table.explanation),
            html_table(&table.header, &table.rows)
        )
        .expect(WRITES);
    }
    text.push_str(&bars::inline(suite, &record.bars_of(suite)));
    let (header, lines) = markdown::comparisons(&rows, str::to_owned);
    writeln!(
        text,
        "<details><summary>all figures of {name} as a table</summary>{}</details></section>",
        html_table(&header, &lines)
    )
    .expect(WRITES);
}
