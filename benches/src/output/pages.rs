//! The report as a Markdown file, and the same as one page of HTML that loads nothing.

use pulldown_cmark::{Options, Parser, html::push_html};

use super::{Record, charts, figure, file_name};
use crate::workload::Comparison;

/// What the suites measure, against which rivals, and what to know before believing it.
#[rustfmt::skip]
const ABOUT: [(&str, &str); 10] = [
    ("ccmalloc", "The allocator. Rows named bst_ and chain_ ask trees and hash chains whose nodes \
        were allocated with hints, against the same from allocators without hints. Rows named \
        unhinted_ are whole programs without a hint, each in a process of its own; rss_ is their \
        peak memory. A row without a rival in its name is against the best rival."),
    ("ccmorph", "A structure as each allocator left it, against the same after one morph in the \
        layout that the model chose. auto_regret is the best measured layout's time over that of \
        the model's choice, so 1 is the best possible. morph_vs_clone is the time of a morph \
        against that of a recursive copy."),
    ("ctree", "Ordered maps and sets with the same keys, each workload in a young process served \
        by the system's malloc. Dependent lookups wait for the answer before, independent ones are \
        a plain loop over a list, many passes the list at once where a map takes that. Keys are \
        drawn evenly, the hardest case for caches, unless the name says otherwise."),
    ("model", "The model against the clock. Ours is the prediction and theirs the measurement of \
        the same tree; the ratio is the smaller over the larger, so 1 is exact."),
    ("olden", "The Olden programs, written from their published descriptions: whole programs with \
        hints or morphs, against the best of the allocators without, or with _vs_heaps the best of \
        those that take memory back. fresh is a young heap; aged one in which other objects were \
        allocated and half of them freed before. Rows with _sim in their names are cycles \
        simulated for the thesis's machine, not measured."),
    ("scaling", "Two threads against one, and costs as a structure grows. A ratio of scalings says \
        how much better ours uses the second processor than the rival does."),
    ("trace", "A sort in C with each access recorded by ccscope trace, against valgrind's lackey \
        and the mechanism of MadT. Times are for an access of the sorted array; all tracers must \
        see as many loads and stores of it."),
    ("advice", "The advice of ccscope on the programs of tests/advice. A row named advice_of_ is a \
        change of a program: ours is the predicted speedup of the whole program (1 where nothing \
        is predicted), theirs the measured one, both over the same allocator, and beside the rival \
        stands what is advised first. Others are held against their floors: those named advice_ \
        of the test half, those named training_ of the other. Rows named advice_fit_ have the \
        constants that the training half asks for, against today\'s."),
    ("improve", "ccscope improve: rules that were learned against hints by hand, what the filter \
        and the learner cost, and the command on programs. A row named improve_of_ is a program: \
        ours is its time as the command says to run it, theirs as it is. Others are held against \
        their floors."),
    ("apps", "Published programs on real input, changed by a few lines each: hints or morphs \
        against the same program under the best of the other allocators."),
];

const ABOUT_ALL: &str = "A ratio above 1 means that ours is better. Figures are medians over \
    rounds in which ours and the rivals took turns, with their answers checked in each. The \
    range beside a ratio is the middle half of the ratios of single rounds: how much the run \
    disagrees with itself, not how far another machine will differ. Where 1 lies inside, the run \
    does not say which is better.\n\n\
    Bars begin at 1 on a logarithmic axis: to the right ours is better, to the left worse. The \
    thin line is the middle half of the rounds; a bar is grey when 1 lies inside.";

/// Whether all cells of a column are empty, or begin with a digit or a sign.
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
        let cell = |cell: &String| format!(" {} |", markdown_cell(cell));
        format!("|{}\n", cells.iter().map(cell).collect::<String>())
    };
    let marks = (0..header.len()).map(|column| match is_of_figures(rows, column) {
        true => "---:|",
        false => "---|",
    });
    let rows = rows.iter().map(|row| line(row));
    let [marks, rows] = [marks.collect::<String>(), rows.collect()];
    format!("{}|{marks}\n{rows}", line(header))
}

/// A table of comparisons without its empty columns, with `titles` in the first, called `what`.
pub fn comparisons(rows: &[&Comparison], what: &str, titles: &[String]) -> String {
    let columns = "ours|theirs|ratio|middle half|rival|rounds|events, ours : theirs";
    let lines = rows.iter().zip(titles).map(|(row, title)| {
        [
            title.clone(),
            format!("{} {}", figure(row.ours), row.unit),
            format!("{} {}", figure(row.theirs), row.unit),
            format!("{:.2}x", row.ratio),
            row.middle_half(),
            row.rival.clone(),
            row.runs.to_string(),
            row.counts_in_words(),
        ]
    });
    let mut lines: Vec<Vec<String>> = lines.map(Vec::from).collect();
    let columns = [what].into_iter().chain(columns.split('|'));
    let mut header: Vec<String> = columns.map(str::to_owned).collect();
    for column in (1..header.len()).rev() {
        if lines.iter().all(|line| line[column].is_empty()) {
            header.remove(column);
            lines.iter_mut().for_each(|line| drop(line.remove(column)));
        }
    }
    markdown_table(&header, &lines)
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
        let about = ABOUT.iter().find(|(name, _)| *name == suite);
        let about = about.map_or("", |(_, about)| about);
        text += &format!("\n## {}\n\n{about}\n\n", markdown_cell(suite));
        for (file, _) in pictures(record, suite) {
            text += &format!("![{file}]({file})\n\n");
        }
        for table in record.tables.iter().filter(|table| table.suite == suite) {
            let about = markdown_cell(&table.explanation);
            text += &format!("**{}** {about}\n\n", markdown_cell(&table.title));
            text += &(markdown_table(&table.header, &table.rows) + "\n");
        }
        let rows = record.rows_of(suite);
        let titles: Vec<String> = rows.iter().map(|row| format!("`{}`", row.name)).collect();
        text += &comparisons(&rows, "name", &titles);
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
