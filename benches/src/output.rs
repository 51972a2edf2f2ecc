//! What a run of the report leaves: JSON lines, a table, a Markdown report and SVG plots.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use plotters::drawing::IntoDrawingArea;
use plotters::element::{Rectangle, Text};
use plotters::prelude::SVGBackend;
use plotters::style::{BLACK, Color, IntoFont, RGBColor, WHITE};

use crate::suites::olden;
use crate::workload::Comparison;

/// `comparison` as one line of JSON.
///
/// # Panics
/// Never: names and numbers always have a JSON form.
pub fn json_line(comparison: &Comparison) -> String {
    serde_json::to_string(comparison).expect("strings and numbers have a JSON form")
}

/// A table for a terminal; the caller prints comparisons as they come, so columns have fixed widths.
pub fn table_header() -> String {
    format!(
        "{:<58} {:>11} {:>11} {:>7}  {:<16} rounds",
        "name", "ours", "theirs", "ratio", "rival"
    )
}

/// The table's line for `comparison`.
pub fn table_line(comparison: &Comparison) -> String {
    let Comparison {
        suite,
        name,
        ours,
        theirs,
        ratio,
        unit,
        rival,
        runs,
    } = comparison;
    format!(
        "{:<58} {ours:>7.1} {unit:<3} {theirs:>7.1} {unit:<3} {ratio:>6.2}x  {rival:<16} {runs}",
        format!("{suite}/{name}")
    )
}

/// Writes `report.md`, `report.jsonl` and one `SUITE.svg` a suite into the folder `out`, which is made when it does not exist.
///
/// # Errors
/// When a file cannot be written.
pub fn write_files(out: &Path, comparisons: &[Comparison], notes: &[String]) -> io::Result<()> {
    std::fs::create_dir_all(out)?;
    let lines: String = comparisons
        .iter()
        .map(|comparison| json_line(comparison) + "\n")
        .collect();
    std::fs::write(out.join("report.jsonl"), lines)?;
    let mut suites: Vec<&str> = comparisons
        .iter()
        .map(|comparison| comparison.suite)
        .collect();
    suites.dedup();
    std::fs::write(out.join("report.md"), markdown(&suites, comparisons, notes))?;
    for suite in suites {
        let bars: Vec<&Comparison> = comparisons
            .iter()
            .filter(|comparison| comparison.suite == suite)
            .collect();
        plot(&out.join(format!("{suite}.svg")), &bars).map_err(io::Error::other)?;
    }
    Ok(())
}

fn markdown(suites: &[&str], comparisons: &[Comparison], notes: &[String]) -> String {
    let mut text = String::from("# Report\n\nA ratio above 1 means that ours is better.\n");
    for note in notes {
        write!(text, "\n- {note}").expect("a String takes all that is written to it");
    }
    for suite in suites {
        write!(text, "\n\n## {suite}\n\n![ratios]({suite}.svg)\n\n| name | ours | theirs | ratio | rival | rounds |\n|---|---:|---:|---:|---|---:|")
            .expect("a String takes all that is written to it");
        for Comparison {
            name,
            ours,
            theirs,
            ratio,
            unit,
            rival,
            runs,
            ..
        } in comparisons
            .iter()
            .filter(|comparison| comparison.suite == *suite)
        {
            write!(text, "\n| `{name}` | {ours:.1} {unit} | {theirs:.1} {unit} | {ratio:.2}x | {rival} | {runs} |")
                .expect("a String takes all that is written to it");
        }
    }
    text.push('\n');
    if let Some(table) = olden::table() {
        text.push('\n');
        text.push_str(&table.to_markdown());
    }
    text
}

/// Bars of the ratios, one below the other, with a line at 1, where both are equal.
fn plot(path: &Path, comparisons: &[&Comparison]) -> Result<(), String> {
    const BAR_HEIGHT: i32 = 26;
    const LABEL_WIDTH: i32 = 420;
    const PLOT_WIDTH: i32 = 420;
    const BETTER: RGBColor = RGBColor(60, 130, 90);
    const WORSE: RGBColor = RGBColor(180, 80, 70);

    let rows = i32::try_from(comparisons.len()).map_err(|error| error.to_string())?;
    let height = u32::try_from(BAR_HEIGHT * (rows + 1)).map_err(|error| error.to_string())?;
    let width = u32::try_from(LABEL_WIDTH + PLOT_WIDTH + 80).map_err(|error| error.to_string())?;
    let largest = comparisons
        .iter()
        .map(|comparison| comparison.ratio)
        .fold(1.0, f64::max);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a ratio is at most `largest`, so this is at most PLOT_WIDTH"
    )]
    let x_of = |ratio: f64| LABEL_WIDTH + (ratio / largest * f64::from(PLOT_WIDTH)) as i32;

    let area = SVGBackend::new(path, (width, height)).into_drawing_area();
    let font = ("sans-serif", 13).into_font();
    let draw = || {
        area.fill(&WHITE)?;
        for (row, comparison) in (0..).zip(comparisons) {
            let top = BAR_HEIGHT * row + BAR_HEIGHT / 2;
            let colour = if comparison.ratio >= 1.0 {
                BETTER
            } else {
                WORSE
            };
            let corners = [
                (LABEL_WIDTH, top),
                (x_of(comparison.ratio), top + BAR_HEIGHT - 8),
            ];
            area.draw(&Text::new(
                comparison.name.as_str(),
                (6, top + 2),
                font.clone(),
            ))?;
            area.draw(&Rectangle::new(corners, colour.filled()))?;
            area.draw(&Text::new(
                format!("{:.2}x", comparison.ratio),
                (x_of(comparison.ratio) + 4, top + 2),
                font.clone(),
            ))?;
        }
        area.draw(&Rectangle::new(
            [(x_of(1.0), 4), (x_of(1.0) + 1, BAR_HEIGHT * (rows + 1) - 4)],
            BLACK.filled(),
        ))?;
        area.present()
    };
    draw().map_err(|error| error.to_string())
}
