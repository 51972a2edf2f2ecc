//! Pictures as SVG: ratios as bars, and lines over logarithmic axes.

use std::ops::Range;

use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::coord::combinators::{BindKeyPoints, IntoLogRange};
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::prelude::SVGBackend;
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle, WHITE};

pub use plotters::chart::SeriesLabelPosition as Legend;

use super::figure;
use crate::workload::{Comparison, POINT_SUFFIX};

const WIDTH: u32 = 760;
const ROW_HEIGHT: i32 = 20;
const BARS: (i32, i32) = (400, 740);

const INK: RGBColor = RGBColor(27, 33, 39);
const BETTER: RGBColor = RGBColor(61, 143, 102);
const WORSE: RGBColor = RGBColor(192, 106, 78);
const UNDECIDED: RGBColor = RGBColor(169, 177, 186);
const LINES: [RGBColor; 7] = [
    RGBColor(47, 111, 181),
    RGBColor(181, 72, 47),
    RGBColor(47, 138, 87),
    RGBColor(128, 85, 168),
    RGBColor(168, 128, 31),
    RGBColor(59, 143, 156),
    RGBColor(205, 130, 170),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Failure = DrawingAreaErrorKind<std::io::Error>;

/// A bar from 1 to the ratio of each row, on a logarithmic axis. The thin line is the middle half
/// of the rounds; a bar is grey when 1 lies inside.
pub fn bars(suite: &str, rows: &[&Comparison]) -> String {
    let length = |row: &&Comparison| match row.ratio.is_finite() && row.ratio > 0.0 {
        true => row.ratio,
        false => 1.0,
    };
    let low = rows.iter().map(length).fold(0.9, f64::min) / 1.05;
    let high = rows.iter().map(length).fold(1.25, f64::max) * 1.05;
    #[expect(clippy::cast_possible_truncation, reason = "inside of the picture")]
    let x = |ratio: f64| {
        let share = (ratio.clamp(low, high) / low).ln() / (high / low).ln();
        BARS.0 + (share * f64::from(BARS.1 - BARS.0)) as i32
    };
    let height = ROW_HEIGHT * (i32::try_from(rows.len()).unwrap_or(0) + 2);
    picture((WIDTH, height.unsigned_abs()), |area| {
        let font = || ("sans-serif", 12).into_font();
        let write = |text: &str, place| area.draw(&Text::new(printable(text), place, font()));
        write(&format!("{suite}: times better than each rival"), (8, 4))?;
        for tick in [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0] {
            if (low..high).contains(&tick) {
                let line = vec![(x(tick), ROW_HEIGHT), (x(tick), height)];
                area.draw(&PathElement::new(line, INK.mix(0.25)))?;
                write(&format!("{tick}×"), (x(tick) - 6, ROW_HEIGHT - 16))?;
            }
        }
        for (row, top) in rows.iter().zip((ROW_HEIGHT..).step_by(ROW_HEIGHT as usize)) {
            let (ours, theirs) = (figure(row.ours), figure(row.theirs));
            let (name, rival, unit, ratio) = (&*row.name, &row.rival, &row.unit, row.ratio);
            let operation = name.rsplit_once("_vs_").map_or(name, |(what, _)| what);
            let words = format!("{operation}, {rival}: {ours} : {theirs} {unit}, {ratio:.2}×");
            write(&words, (8, top + 3))?;
            let colour = match row.spread {
                Some(spread) if spread.straddles_one() => UNDECIDED,
                _ if ratio < 1.0 => WORSE,
                _ => BETTER,
            };
            let bar = [(x(1.0), top + 4), (x(length(row)), top + 15)];
            area.draw(&Rectangle::new(bar, colour.filled()))?;
            if let Some(spread) = row.spread {
                let line = vec![(x(spread.lower), top + 9), (x(spread.upper), top + 9)];
                area.draw(&PathElement::new(line, INK))?;
            }
        }
        Ok(())
    })
}

/// A picture of `size` in pixels with what `draw` puts into it.
fn picture(size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Result<(), Failure>) -> String {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let drawn = area.fill(&WHITE).and_then(|()| draw(&area));
    let whole = drawn.and_then(|()| area.present());
    whole.expect("a String takes all that is drawn");
    drop(area);
    svg
}

/// Lines over two logarithmic axes.
#[derive(Clone, Debug)]
pub struct Lines {
    pub title: String,
    pub x_name: String,
    pub y_name: String,
    pub x_base: f64,
    pub legend: Legend,
    /// The colour of each depends on its index.
    pub lines: Vec<Line>,
}

/// Points by ascending x, all of them positive numbers.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    pub predicted: Vec<(f64, f64)>,
}

/// Lines over sizes, for each family of rows called `FAMILY_nLOG2_LINE_vs_measured`, such as
/// `lookup_n21_btreemap_vs_measured`; the prediction is `ours`, the measurement `theirs`.
pub fn curves(rows: &[&Comparison]) -> Vec<Lines> {
    let mut all: Vec<Lines> = Vec::new();
    for row in rows {
        let Some((family, n, name)) = point(row) else {
            continue;
        };
        let title = format!("{} against size", family.replace('_', " "));
        if !all.iter().any(|lines| lines.title == title) {
            all.push(Lines {
                title: title.clone(),
                x_name: "elements".to_owned(),
                y_name: row.unit.clone(),
                x_base: 4.0,
                legend: Legend::UpperLeft,
                lines: Vec::new(),
            });
        }
        let lines = all.iter_mut().find(|lines| lines.title == title);
        let lines = &mut lines.expect("it is there").lines;
        if !lines.iter().any(|line| line.name == name) {
            lines.push(Line {
                name: name.to_owned(),
                ..Line::default()
            });
        }
        let line = lines.iter_mut().find(|line| line.name == name);
        let line = line.expect("it is there");
        for (points, cost) in [
            (&mut line.points, row.theirs),
            (&mut line.predicted, row.ours),
        ] {
            if cost.is_finite() && cost > 0.0 {
                points.push((n, cost));
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
            }
        }
    }
    all
}

/// The family, the size and the line of a row that is a point of a curve.
pub fn point(row: &Comparison) -> Option<(&str, f64, &str)> {
    let (family, rest) = row.name.strip_suffix(POINT_SUFFIX)?.split_once("_n")?;
    let (log2_n, line) = rest.split_once('_')?;
    let n = 1_u64.checked_shl(log2_n.parse().ok()?)?;
    Some((family, n as f64, line))
}

/// Draws `charts` of `size` side by side, two or three in a row.
pub fn draw_all(charts: &[Lines], (width, height): (u32, u32)) -> String {
    let columns = match charts.len() {
        4 => 2,
        count => count.clamp(1, 3),
    };
    let rows = charts.len().div_ceil(columns);
    let times = |pixels: u32, count: usize| pixels * u32::try_from(count).unwrap_or(1);
    let size = (times(width, columns), times(height, rows));
    picture(size, |area| {
        let areas = area.split_evenly((rows, columns));
        let mut charts = areas.iter().zip(charts);
        charts.try_for_each(|(area, chart)| draw_lines(area, chart))
    })
}

fn draw_lines(area: &Area<'_>, chart: &Lines) -> Result<(), Failure> {
    let lines = chart.lines.iter();
    let points = lines.flat_map(|line| line.points.iter().chain(&line.predicted));
    let (x, y): (Vec<f64>, Vec<f64>) = points.copied().unzip();
    let (across, up) = (ends(&x), ends(&y));
    let x_marks = marks(&across, chart.x_base, &[1.0]);
    let y_marks = marks(&up, 10.0, &[1.0, 1.5, 2.0, 3.0, 5.0]);
    let label = |number: &f64| format!("{}", (number * 100.0).round() / 100.0);
    let mut axes = ChartBuilder::on(area)
        .caption(printable(&chart.title), ("sans-serif", 15))
        .margin(8)
        .margin_right(22)
        .x_label_area_size(42)
        .y_label_area_size(58)
        .build_cartesian_2d(
            across.log_scale().with_key_points(x_marks),
            up.log_scale().with_key_points(y_marks),
        )?;
    axes.configure_mesh()
        .x_desc(printable(&chart.x_name))
        .y_desc(printable(&chart.y_name))
        .x_label_formatter(&label)
        .y_label_formatter(&label)
        .light_line_style(INK.mix(0.05))
        .bold_line_style(INK.mix(0.15))
        .label_style(("sans-serif", 12))
        .draw()?;
    let lines = chart.lines.iter().zip(LINES.into_iter().cycle());
    for (line, colour) in lines.filter(|(line, _)| line.points.len() + line.predicted.len() > 0) {
        let style = ShapeStyle::from(&colour).stroke_width(2);
        let dots = line.points.iter();
        axes.draw_series(dots.map(|&point| Circle::new(point, 3, style.filled())))?;
        let name = match line.predicted.is_empty() {
            true => line.name.clone(),
            false => format!("{} (thin: predicted)", line.name),
        };
        axes.draw_series([PathElement::new(line.points.clone(), style)])?
            .label(printable(&name))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        axes.draw_series([PathElement::new(line.predicted.clone(), colour.mix(0.6))])?;
    }
    if chart.lines.len() > 1 {
        axes.configure_series_labels()
            .position(chart.legend.clone())
            .background_style(WHITE.mix(0.8))
            .label_font(("sans-serif", 12))
            .draw()?;
    }
    Ok(())
}

fn ends(numbers: &[f64]) -> Range<f64> {
    let low = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let high = numbers.iter().copied().fold(0.0, f64::max);
    match low > high {
        true => 1.0..10.0,
        false => low * 0.88..high * 1.13,
    }
}

/// The multiples by `digits` of powers of `base` inside of an axis.
fn marks(axis: &Range<f64>, base: f64, digits: &[f64]) -> Vec<f64> {
    let powers = (-9..60).map(|power| base.powi(power));
    let marks = powers.flat_map(|power| digits.iter().map(move |digit| digit * power));
    marks.filter(|mark| axis.contains(mark)).collect()
}

/// `text` without control characters, which no XML document may hold.
fn printable(text: &str) -> String {
    let is_bad = |c: char| c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}');
    text.replace(is_bad, " ")
}
