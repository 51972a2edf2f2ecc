//! Rows as a table, as JSON lines, and as a picture.

use std::fmt::Write as _;
use std::path::Path;

use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Text};
use plotters::prelude::SVGBackend;
use plotters::style::{IntoFont, RGBColor, ShapeStyle, WHITE};

use super::{Kind, Row, node_size, searches};

/// `rows` as JSON, one object a line.
///
/// # Panics
/// Never: names and numbers always have a JSON form.
pub fn json_lines(rows: &[Row]) -> String {
    rows.iter()
        .map(|row| serde_json::to_string(row).expect("strings and numbers have a JSON form") + "\n")
        .collect()
}

/// The rows of one machine and one number of keys.
struct Panel<'a> {
    kind: Kind,
    keys: usize,
    rows: Vec<&'a Row>,
}

impl<'a> Panel<'a> {
    /// The panels of some rows, the measured ones first.
    fn all(rows: &'a [Row]) -> Vec<Panel<'a>> {
        let mut panels: Vec<Panel<'_>> = Vec::new();
        for kind in [Kind::Measured, Kind::Simulated, Kind::Model] {
            for row in rows.iter().filter(|row| row.kind == kind) {
                let keys = row.keys;
                let known = panels
                    .iter_mut()
                    .find(|panel| (panel.kind, panel.keys) == (kind, keys));
                match known {
                    Some(panel) => panel.rows.push(row),
                    None => panels.push(Panel {
                        kind,
                        keys,
                        rows: vec![row],
                    }),
                }
            }
        }
        panels
    }

    fn title(&self) -> String {
        let keys = self.keys;
        match self.kind {
            Kind::Measured => format!("measured on this machine, {keys} keys, ns a search"),
            Kind::Simulated => {
                format!("simulated for the thesis's machine, {keys} keys, memory cycles a search")
            }
            Kind::Model => {
                format!("the model for the thesis's machine, {keys} keys, memory cycles a search")
            }
        }
    }
}

/// What is searched, in the order of the first rows.
fn structures<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<&'static str> {
    let mut structures = Vec::new();
    for row in rows {
        if !structures.contains(&row.structure) {
            structures.push(row.structure);
        }
    }
    structures
}

/// `rows` for a terminal: a table for each panel.
///
/// # Panics
/// Never: a `String` takes all that is written to it.
pub fn table(rows: &[Row]) -> String {
    const WRITES: &str = "a String takes all that is written to it";
    let mut text = String::new();
    for panel in Panel::all(rows) {
        let figure = panel.rows[0].figure;
        writeln!(text, "figure {figure}: {}", panel.title()).expect(WRITES);
        let measured = panel.kind == Kind::Measured;
        let (what, numbers) = if measured {
            ("ns", "")
        } else {
            ("cycles", "       reads   L1 misses   L2 misses  TLB misses")
        };
        writeln!(
            text,
            "  {:<36} {:>10} {:>10} {what:>10}{numbers}",
            "structure", "node bytes", "searches"
        )
        .expect(WRITES);
        for row in &panel.rows {
            let searches = row.searches.map_or("steady".to_owned(), |n| n.to_string());
            let height = row.height().unwrap_or(f64::NAN);
            write!(
                text,
                "  {:<36} {:>10} {searches:>10} {height:>10.1}",
                row.structure, row.node_bytes
            )
            .expect(WRITES);
            if let Some(cost) = row.cost {
                let tlb_misses = cost
                    .tlb_misses
                    .map_or("-".to_owned(), |misses| format!("{misses:.2}"));
                write!(
                    text,
                    "  {:>10.2}  {:>10.2}  {:>10.2}  {tlb_misses:>10}",
                    cost.reads, cost.l1_misses, cost.l2_misses
                )
                .expect(WRITES);
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

const PANEL_WIDTH: u32 = 470;
const PANEL_HEIGHT: u32 = 390;
const LEGEND_LINE_HEIGHT: u32 = 20;
const LEGEND_COLUMNS: usize = 3;
const LINE_WIDTH: u32 = 2;

/// What each structure is drawn in, so that it looks the same in all panels.
fn colour(structure: &str) -> RGBColor {
    match structure {
        searches::RANDOM => RGBColor(170, 60, 50),
        searches::DEPTH_FIRST => RGBColor(215, 140, 40),
        searches::COLOURED_B_TREE => RGBColor(70, 110, 190),
        searches::LARGE_B_TREE => RGBColor(130, 180, 225),
        searches::C_TREE => RGBColor(30, 110, 60),
        searches::UNCOLOURED => RGBColor(120, 185, 110),
        searches::AUTO => RGBColor(125, 80, 160),
        _ => RGBColor(70, 110, 190),
    }
}

/// Draws measured and simulated panels side by side, both axes logarithmic, into the file `path`.
///
/// # Errors
/// When there is nothing to draw, or the file cannot be written.
pub fn svg(path: &Path, rows: &[Row]) -> Result<(), String> {
    let mut panels = Panel::all(rows);
    panels.retain(|panel| panel.kind != Kind::Model);
    let count = u32::try_from(panels.len()).map_err(|error| error.to_string())?;
    if count == 0 {
        return Err(String::from("there is nothing to draw"));
    }
    let structures = structures(panels.iter().flat_map(|panel| panel.rows.iter().copied()));
    // One needs no legend: the caption of the page says what it is.
    let legend_lines = match structures.len() {
        0 | 1 => 0,
        more => u32::try_from(more.div_ceil(LEGEND_COLUMNS)).unwrap_or(1),
    };
    let columns = if count == 3 { 3 } else { count.min(2) };
    let charts_height = PANEL_HEIGHT * count.div_ceil(columns);
    let size = (
        PANEL_WIDTH * columns,
        charts_height + legend_lines * LEGEND_LINE_HEIGHT + 12,
    );
    let root = SVGBackend::new(path, size).into_drawing_area();
    let draw = || -> Result<(), Box<dyn std::error::Error + '_>> {
        root.fill(&WHITE)?;
        let (charts, legend) = root.split_vertically(charts_height);
        let columns = usize::try_from(columns)?;
        let charts = charts.split_evenly((panels.len().div_ceil(columns), columns));
        for (area, panel) in charts.iter().zip(&panels) {
            draw_panel(area, panel)?;
        }
        if legend_lines > 0 {
            draw_legend(&legend, &structures)?;
        }
        root.present()?;
        Ok(())
    };
    draw().map_err(|error| error.to_string())
}

/// The smallest and the largest of some numbers.
fn ends(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold((f64::INFINITY, 0.0), |(low, high), number| {
        (number.min(low), number.max(high))
    })
}

/// Numbers for an axis, beginning with `first`, each `ratio` times the one before.
fn powers(first: f64, ratio: f64) -> Vec<f64> {
    const ENOUGH: usize = 10;
    std::iter::successors(Some(first), |power| Some(power * ratio))
        .take(ENOUGH)
        .collect()
}

/// Numbers of few digits between two ends.
fn round_numbers(low: f64, high: f64) -> Vec<f64> {
    let digits: &[f64] = if high / low < 12.0 {
        &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let decades = powers(1.0, 10.0);
    let numbers = decades
        .iter()
        .flat_map(|decade| digits.iter().map(move |digit| digit * decade));
    numbers
        .filter(|number| (low..=high).contains(number))
        .collect()
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_panel<'a>(
    area: &Area<'a>,
    panel: &Panel<'_>,
) -> Result<(), Box<dyn std::error::Error + 'a>> {
    let is_node_size = panel.rows[0].figure == node_size::FIGURE;
    let point = |row: &&Row| {
        let across = match is_node_size {
            true => row.node_bytes as u64,
            false => row.searches?,
        };
        Some((across as f64, row.height()?))
    };
    let (left, right) = ends(panel.rows.iter().filter_map(point).map(|(x, _)| x));
    let (bottom, top) = ends(panel.rows.iter().filter_map(point).map(|(_, y)| y));
    let (title, unit) = match panel.kind {
        Kind::Measured => ("measured, this machine", "ns a search"),
        _ => ("SIMULATED, the thesis's machine", "memory cycles a search"),
    };
    let (across, up) = (left * 0.9..right * 1.1, bottom * 0.85..top * 1.15);
    let mut columns = if is_node_size {
        powers(32.0, 2.0)
    } else {
        powers(10.0, 10.0)
    };
    // What is outside would be drawn into the neighbouring panel.
    columns.retain(|column| across.contains(column));
    let lines = round_numbers(up.start, up.end);
    let mut chart = ChartBuilder::on(area)
        .caption(
            format!("{title}: {} keys", panel.keys),
            ("sans-serif", 15).into_font(),
        )
        .margin(8)
        .margin_right(22)
        .x_label_area_size(42)
        .y_label_area_size(58)
        .build_cartesian_2d(
            across.log_scale().with_key_points(columns),
            up.log_scale().with_key_points(lines),
        )
        .map_err(|error| error.to_string())?;
    chart
        .configure_mesh()
        .x_desc(if is_node_size {
            "bytes of a node"
        } else {
            "searches since the caches were cold"
        })
        .y_desc(unit)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .light_line_style(RGBColor(238, 238, 238))
        .bold_line_style(RGBColor(215, 215, 215))
        .label_style(("sans-serif", 12))
        .draw()
        .map_err(|error| error.to_string())?;
    for structure in structures(panel.rows.iter().copied()) {
        let style = ShapeStyle::from(&colour(structure)).stroke_width(LINE_WIDTH);
        let rows = panel.rows.iter().filter(|row| row.structure == structure);
        let points: Vec<(f64, f64)> = rows.filter_map(point).collect();
        let dots = points
            .iter()
            .map(|&point| Circle::new(point, 3, style.filled()));
        chart.draw_series(dots).map_err(|error| error.to_string())?;
        chart
            .draw_series([PathElement::new(points, style)])
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn draw_legend<'a>(
    area: &Area<'a>,
    structures: &[&str],
) -> Result<(), Box<dyn std::error::Error + 'a>> {
    let width = i32::try_from(area.dim_in_pixel().0)?;
    let columns = i32::try_from(LEGEND_COLUMNS)?;
    let line_height = i32::try_from(LEGEND_LINE_HEIGHT)?;
    for (index, structure) in (0..).zip(structures) {
        let (x, y) = (
            20 + index % columns * (width / columns),
            8 + index / columns * line_height,
        );
        let style = ShapeStyle::from(&colour(structure)).stroke_width(LINE_WIDTH);
        let line = PathElement::new(vec![(x, y + 6), (x + 26, y + 6)], style);
        area.draw(&line).map_err(|error| error.to_string())?;
        let font = ("sans-serif", 14).into_font();
        area.draw(&Text::new((*structure).to_owned(), (x + 34, y), font))
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}
