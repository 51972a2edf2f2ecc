//! The report as a Markdown file, and the same as one page of HTML that loads nothing.

use pulldown_cmark::{Options, Parser, html::push_html};

use super::table::{markdown_cell, markdown_table};
use super::{Record, charts, figure, file_name};
use crate::workload::Comparison;

/// What a suite measures, against which rivals, and what to know before believing it. Empty for an
/// unknown suite.
fn about(suite: &str) -> &'static str {
    match suite {
        "ccmalloc" => {
            "The allocator. Rows named bst_ and chain_ ask trees and hash chains whose nodes were \
             allocated with hints, against the same structures from allocators without hints. \
             Rows named unhinted_ are whole programs without a hint, each run in a process of its \
             own; rss_ is their peak memory. A row without a rival in its name is the one against \
             the best rival."
        }
        "ccmorph" => {
            "A structure as each allocator left it, against the same structure after one morph in \
             the layout that the model chose. auto_regret is the best measured layout's time over \
             that of the model's choice, so 1 is the best possible. morph_vs_clone is the time of \
             a morph against that of a recursive copy."
        }
        "ctree" => {
            "Ordered maps and sets with the same keys, each workload in a young process served by \
             the system's malloc. Dependent lookups wait for the answer before, independent ones \
             are a plain loop over a list, many passes the list at once where a map takes that. \
             Keys are drawn evenly, the hardest case for caches, unless the name says otherwise."
        }
        "model" => {
            "The model against the clock. Ours is the prediction and theirs the measurement of \
             the same tree, node for node where it lies; the ratio is the smaller over the \
             larger, so 1 is exact."
        }
        "olden" => {
            "The Olden programs, written from their published descriptions: whole programs, \
             building included, with hints or morphs, against the best of the allocators without, \
             or with _vs_heaps the best of those that take memory back. fresh is a young heap; \
             aged one in which other objects were allocated and half of them freed before. Rows \
             with _sim in their names are cycles simulated for the thesis's machine, not measured."
        }
        "scaling" => {
            "Two threads against one, and costs as a structure grows. A ratio of scalings says \
             how much better ours uses the second processor than the rival does."
        }
        "apps" => {
            "Published programs on real input, changed by a few lines each: hints or morphs \
             against the same program under the best of the other allocators."
        }
        _ => "",
    }
}

/// What holds for all figures and pictures.
const ABOUT_ALL: &str = "A ratio above 1 means that ours is better. Figures are medians over \
    rounds in which ours and the rivals took turns, with their answers checked in each. The \
    range beside a ratio is the middle half of the ratios of single rounds: how much the run \
    disagrees with itself, not how far another machine will differ. Where 1 lies inside, the run \
    does not say which is better.\n\n\
    Bars begin at 1 on a logarithmic axis: to the right ours is better, to the left worse. The \
    thin line is the middle half of the rounds; a bar is grey when 1 lies inside.";

/// The columns and lines of a table of comparisons, without empty columns. `title` makes the first
/// cell from a name.
pub fn comparisons(
    rows: &[&Comparison],
    title: impl Fn(&str) -> String,
) -> (Vec<String>, Vec<Vec<String>>) {
    let columns = [
        "name",
        "ours",
        "theirs",
        "ratio",
        "middle half",
        "rival",
        "rounds",
        "events, ours : theirs",
    ];
    let lines = rows.iter().map(|row| {
        [
            title(&row.name),
            format!("{} {}", figure(row.ours), row.unit),
            format!("{} {}", figure(row.theirs), row.unit),
            format!("{:.2}x", row.ratio),
            row.middle_half(),
            row.rival.clone(),
            row.runs.to_string(),
            row.counts_in_words(),
        ]
    });
    let lines: Vec<_> = lines.collect();
    let says = |column: &usize| *column == 0 || lines.iter().any(|line| !line[*column].is_empty());
    let kept: Vec<usize> = (0..columns.len()).filter(says).collect();
    let header = kept.iter().map(|&column| columns[column].to_owned());
    let lines = lines
        .iter()
        .map(|line| kept.iter().map(|&column| line[column].clone()).collect());
    (header.collect(), lines.collect())
}

/// The pictures of a suite as SVG, with the names of their files: ratios as bars, and curves.
pub fn pictures(record: &Record, suite: &str) -> Vec<(String, String)> {
    let rows = record.rows_of(suite);
    let ratios = rows.iter().filter(|row| charts::point(row).is_none());
    let ratios: Vec<&Comparison> = ratios.copied().collect();
    let curves = charts::curves(&rows);
    let curves = curves.iter().map(|lines| {
        let svg = charts::draw_all(std::slice::from_ref(lines), (760, 480));
        (file_name(&lines.title), svg)
    });
    let bars = (file_name(suite), charts::bars(suite, &ratios));
    std::iter::once(bars).chain(curves).collect()
}

/// `record` as Markdown, with the pictures beside it.
pub fn markdown(record: &Record) -> String {
    let mut text = format!("# Ours against the rivals\n\n{ABOUT_ALL}\n");
    for run in &record.runs {
        text += "\n## Run\n\n";
        for (name, fact) in run.facts() {
            text += &format!("- {name}: {}\n", markdown_cell(&fact));
        }
    }
    for suite in record.suites() {
        text += &format!("\n## {}\n\n{}\n\n", markdown_cell(suite), about(suite));
        for (file, _) in pictures(record, suite) {
            text += &format!("![{file}]({file})\n\n");
        }
        for table in record.tables.iter().filter(|table| table.suite == suite) {
            let [title, explanation] =
                [&table.title, &table.explanation].map(|it| markdown_cell(it));
            let table = markdown_table(&table.header, &table.rows);
            text += &format!("**{title}** {explanation}\n\n{table}\n");
        }
        let (header, rows) = comparisons(&record.rows_of(suite), |name| format!("`{name}`"));
        text += &markdown_table(&header, &rows);
    }
    text
}

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
    <title>Ours against the rivals</title><style>\
    body{margin:0 auto;max-width:50rem;padding:1rem;font-family:sans-serif}\
    svg{max-width:100%;height:auto}table{border-collapse:collapse;display:block;overflow-x:auto}\
    td,th{padding:.2rem .6rem .2rem 0;text-align:left;white-space:nowrap}</style></head><body>\n";

/// [`markdown`] as a page, with the pictures inside.
pub fn html(record: &Record) -> String {
    let mut page = HEAD.to_owned();
    let text = markdown(record);
    push_html(&mut page, Parser::new_ext(&text, Options::ENABLE_TABLES));
    for suite in record.suites() {
        for (file, svg) in pictures(record, suite) {
            page = page.replace(&format!("<img src=\"{file}\" alt=\"{file}\" />"), &svg);
        }
    }
    page + "</body></html>\n"
}
