//! Rows as a table, as JSON lines, and as a picture.

use std::error::Error;
use std::ops::Range;
use std::path::Path;

use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, PathElement};
use plotters::prelude::SVGBackend;
use plotters::style::{Color, RGBColor, ShapeStyle, WHITE};

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
                let same = |panel: &&mut Panel<'_>| (panel.kind, panel.keys) == (kind, row.keys);
                match panels.iter_mut().find(same) {
                    Some(panel) => panel.rows.push(row),
                    None => panels.push(Panel {
                        kind,
                        keys: row.keys,
                        rows: vec![row],
                    }),
                }
            }
        }
        panels
    }

    /// What is searched, in the order of its first row.
    fn structures(&self) -> Vec<&'static str> {
        let mut structures = Vec::new();
        for row in &self.rows {
            if !structures.contains(&row.structure) {
                structures.push(row.structure);
            }
        }
        structures
    }
}

/// `rows` for a terminal: a table for each panel.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    for panel in Panel::all(rows) {
        let (whose, unit, column) = match panel.kind {
            Kind::Measured => ("measured on this machine", "ns", "ns"),
            Kind::Simulated => (
                "simulated for the thesis's machine",
                "memory cycles",
                "cycles",
            ),
            Kind::Model => (
                "the model for the thesis's machine",
                "memory cycles",
                "cycles",
            ),
        };
        let (figure, keys) = (panel.rows[0].figure, panel.keys);
        text += &format!("figure {figure}: {whose}, {keys} keys, {unit} a search\n");
        let heads = [
            "node bytes",
            "searches",
            column,
            "reads",
            "L1 misses",
            "L2 misses",
        ];
        text += &line("structure", heads.map(str::to_owned), "TLB misses");
        for row in &panel.rows {
            let number = |number: Option<f64>, digits| {
                number.map_or_else(String::new, |number| format!("{number:.digits$}"))
            };
            let cost = |of: fn(&super::SearchCost) -> f64| number(row.cost.as_ref().map(of), 2);
            let cells = [
                row.node_bytes.to_string(),
                row.searches.map_or("steady".to_owned(), |n| n.to_string()),
                number(row.height(), 1),
                cost(|cost| cost.reads),
                cost(|cost| cost.l1_misses),
                cost(|cost| cost.l2_misses),
            ];
            let tlb_misses = number(row.cost.and_then(|cost| cost.tlb_misses), 2);
            text += &line(row.structure, cells, &tlb_misses);
        }
        text.push('\n');
    }
    text
}

/// A line of a table.
fn line(structure: &str, cells: [String; 6], last: &str) -> String {
    let cells = cells.map(|cell| format!("{cell:>11}")).concat();
    let line = format!("  {structure:<36}{cells}{last:>12}");
    line.trim_end().to_owned() + "\n"
}

const PANEL_WIDTH: u32 = 470;
const PANEL_HEIGHT: u32 = 390;

/// What each structure is drawn in, so that it looks the same in all panels.
fn colour(structure: &str) -> RGBColor {
    match structure {
        searches::RANDOM => RGBColor(170, 60, 50),
        searches::DEPTH_FIRST => RGBColor(215, 140, 40),
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
    if panels.is_empty() {
        return Err("there is nothing to draw".to_owned());
    }
    let columns = if panels.len() == 4 {
        2
    } else {
        panels.len().min(3)
    };
    let lines = panels.len().div_ceil(columns);
    let draw = || -> Result<(), Box<dyn Error + '_>> {
        let size = (
            PANEL_WIDTH * u32::try_from(columns)?,
            PANEL_HEIGHT * u32::try_from(lines)?,
        );
        let root = SVGBackend::new(path, size).into_drawing_area();
        root.fill(&WHITE)?;
        for (area, panel) in root.split_evenly((lines, columns)).iter().zip(&panels) {
            draw_panel(area, panel)?;
        }
        Ok(root.present()?)
    };
    draw().map_err(|error| error.to_string())
}

/// An axis around some numbers, and those of `marks` that lie on it: what is outside would be drawn
/// into the neighbouring panel.
fn axis(numbers: impl Iterator<Item = f64>, marks: Vec<f64>) -> (Range<f64>, Vec<f64>) {
    let ends = numbers.fold((f64::INFINITY, 0.0_f64), |(low, high), number| {
        (number.min(low), number.max(high))
    });
    let range = ends.0 * 0.88..ends.1 * 1.13;
    let marks = marks.into_iter().filter(|mark| range.contains(mark));
    let marks = marks.collect();
    (range, marks)
}

fn draw_panel<'a>(
    area: &DrawingArea<SVGBackend<'a>, Shift>,
    panel: &Panel<'_>,
) -> Result<(), Box<dyn Error + 'a>> {
    let is_node_size = panel.rows[0].figure == node_size::FIGURE;
    let point = |row: &&Row| {
        let across = match is_node_size {
            true => row.node_bytes as u64,
            false => row.searches?,
        };
        Some((across as f64, row.height()?))
    };
    let points = || panel.rows.iter().filter_map(point);
    let decades = (0..8).map(|power| 10_f64.powi(power));
    let (x_name, x_marks) = match is_node_size {
        true => (
            "bytes of a node",
            (5..13).map(|power| 2_f64.powi(power)).collect(),
        ),
        false => (
            "searches since the caches were cold",
            decades.clone().collect(),
        ),
    };
    let y_marks = decades.flat_map(|decade| [1.0, 1.5, 2.0, 3.0, 5.0].map(|digit| digit * decade));
    let (across, columns) = axis(points().map(|(x, _)| x), x_marks);
    let (up, lines) = axis(points().map(|(_, y)| y), y_marks.collect());
    let (title, unit) = match panel.kind {
        Kind::Measured => ("measured, this machine", "ns a search"),
        _ => ("SIMULATED, the thesis's machine", "memory cycles a search"),
    };
    let mut chart = ChartBuilder::on(area)
        .caption(format!("{title}: {} keys", panel.keys), ("sans-serif", 15))
        .margin(8)
        .margin_right(22)
        .x_label_area_size(42)
        .y_label_area_size(58)
        .build_cartesian_2d(
            across.log_scale().with_key_points(columns),
            up.log_scale().with_key_points(lines),
        )?;
    chart
        .configure_mesh()
        .x_desc(x_name)
        .y_desc(unit)
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .light_line_style(RGBColor(238, 238, 238))
        .bold_line_style(RGBColor(215, 215, 215))
        .label_style(("sans-serif", 12))
        .draw()?;
    let structures = panel.structures();
    for &structure in &structures {
        let style = ShapeStyle::from(&colour(structure)).stroke_width(2);
        let rows = panel.rows.iter().filter(|row| row.structure == structure);
        let points: Vec<(f64, f64)> = rows.filter_map(point).collect();
        let dots = points
            .iter()
            .map(|&point| Circle::new(point, 3, style.filled()));
        chart.draw_series(dots)?;
        chart
            .draw_series([PathElement::new(points, style)])?
            .label(structure)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    // One needs no legend: the caption of the page says what it is.
    if structures.len() > 1 {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.8))
            .label_font(("sans-serif", 12))
            .draw()?;
    }
    Ok(())
}
