//! Pictures as SVG: ratios as bars, costs against sizes as curves.

use plotters::chart::ChartBuilder;
use plotters::coord::combinators::IntoLogRange;
use plotters::drawing::{DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::prelude::SVGBackend;
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle, WHITE};

use super::figure;
use crate::workload::{Comparison, POINT_SUFFIX};

const WIDTH: i32 = 760;
const ROW_HEIGHT: i32 = 20;
/// Where bars begin and end.
const BARS: (i32, i32) = (400, 740);

const INK: RGBColor = RGBColor(27, 33, 39);
const BETTER: RGBColor = RGBColor(61, 143, 102);
const WORSE: RGBColor = RGBColor(192, 106, 78);
const UNDECIDED: RGBColor = RGBColor(169, 177, 186);
const LINES: [RGBColor; 6] = [
    RGBColor(47, 111, 181),
    RGBColor(181, 72, 47),
    RGBColor(47, 138, 87),
    RGBColor(128, 85, 168),
    RGBColor(168, 128, 31),
    RGBColor(59, 143, 156),
];

/// What drawing into a `String` can fail with.
type Failure = DrawingAreaErrorKind<std::io::Error>;

/// A bar from 1 to the ratio of each row, on a logarithmic axis: to the right ours is better. The
/// thin line is the middle half of the rounds; a bar is grey when 1 lies inside.
///
/// # Panics
/// Never: drawing into a `String` does not fail.
pub fn bars(suite: &str, rows: &[&Comparison]) -> String {
    let mut svg = String::new();
    draw_bars(&mut svg, suite, rows).expect("a String takes all that is drawn");
    svg
}

fn draw_bars(svg: &mut String, suite: &str, rows: &[&Comparison]) -> Result<(), Failure> {
    let ratio = |row: &Comparison| match row.ratio.is_finite() && row.ratio > 0.0 {
        true => row.ratio,
        false => 1.0,
    };
    let ratios = || rows.iter().map(|row| ratio(row));
    let low = ratios().fold(0.9, f64::min) / 1.05;
    let high = ratios().fold(1.25, f64::max) * 1.05;
    #[expect(clippy::cast_possible_truncation, reason = "inside of the picture")]
    let x = |ratio: f64| {
        let share = (ratio.clamp(low, high) / low).ln() / (high / low).ln();
        BARS.0 + (share * f64::from(BARS.1 - BARS.0)) as i32
    };
    let height = ROW_HEIGHT * (i32::try_from(rows.len()).unwrap_or(0) + 2);
    let size = (WIDTH.unsigned_abs(), height.unsigned_abs());
    let area = SVGBackend::with_string(svg, size).into_drawing_area();
    area.fill(&WHITE)?;
    let text = |text: String, place| Text::new(text, place, ("sans-serif", 12).into_font());
    area.draw(&text(
        format!("{suite}: times better than each rival"),
        (8, 4),
    ))?;
    for tick in [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0] {
        if (low..high).contains(&tick) {
            let line = vec![(x(tick), ROW_HEIGHT), (x(tick), height)];
            area.draw(&PathElement::new(line, INK.mix(0.25)))?;
            area.draw(&text(format!("{tick}×"), (x(tick) - 6, ROW_HEIGHT - 16)))?;
        }
    }
    for (row, top) in rows.iter().zip((ROW_HEIGHT..).step_by(ROW_HEIGHT as usize)) {
        let (ours, theirs) = (figure(row.ours), figure(row.theirs));
        let words = format!(
            "{}, {}: {ours} : {theirs} {}, {:.2}×",
            row.operation(),
            row.rival,
            row.unit,
            row.ratio
        );
        area.draw(&text(printable(&words), (8, top + 3)))?;
        let colour = match row.spread {
            Some(spread) if spread.straddles_one() => UNDECIDED,
            _ if row.ratio < 1.0 => WORSE,
            _ => BETTER,
        };
        let bar = [(x(1.0), top + 4), (x(ratio(row)), top + 15)];
        area.draw(&Rectangle::new(bar, colour.filled()))?;
        if let Some(spread) = row.spread {
            let line = vec![(x(spread.lower), top + 9), (x(spread.upper), top + 9)];
            area.draw(&PathElement::new(line, INK))?;
        }
    }
    area.present()
}

/// Costs against the size of a structure, in one picture: the same operation on several structures.
/// Both axes are logarithmic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curves {
    /// The beginning of the names of its comparisons: `lookup`.
    pub name: String,
    /// The unit of all values: `ns`.
    pub unit: String,
    /// The structures, in the order of the report, each with its points by ascending size.
    pub lines: Vec<(String, Vec<Point>)>,
}

/// The number of objects in a structure, and the measured and the predicted cost, which may be no
/// number.
pub type Point = (f64, f64, f64);

/// Family, line and point of a row whose name is `FAMILY_nLOG2_LINE_vs_measured`, such as
/// `lookup_n21_btreemap_vs_measured`. The prediction is `ours`, the measurement `theirs`.
pub fn point(row: &Comparison) -> Option<(&str, &str, Point)> {
    let (family, rest) = row.name.strip_suffix(POINT_SUFFIX)?.split_once("_n")?;
    let (log2_n, line) = rest.split_once('_')?;
    let n = 1_u64.checked_shl(log2_n.parse().ok()?)?;
    Some((family, line, (n as f64, row.theirs, row.ours)))
}

impl Curves {
    /// All curves of `rows`, each in the place of its first point.
    pub fn of(rows: &[&Comparison]) -> Vec<Curves> {
        let mut all: Vec<Curves> = Vec::new();
        for row in rows {
            let Some((family, line, point)) = point(row) else {
                continue;
            };
            let index = all.iter().position(|curves| curves.name == family);
            let index = index.unwrap_or_else(|| {
                all.push(Curves {
                    name: family.to_owned(),
                    unit: row.unit.clone(),
                    lines: Vec::new(),
                });
                all.len() - 1
            });
            let lines = &mut all[index].lines;
            match lines.iter_mut().find(|(name, _)| name == line) {
                Some((_, points)) => points.push(point),
                None => lines.push((line.to_owned(), vec![point])),
            }
        }
        for (_, points) in all.iter_mut().flat_map(|curves| &mut curves.lines) {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        all
    }

    /// The title of the picture.
    pub fn title(&self) -> String {
        format!("{} against size", self.name.replace('_', " "))
    }
}

/// Measurements as lines with dots, predictions as thin lines of the same colour.
///
/// # Panics
/// Never: drawing into a `String` does not fail.
pub fn curves(curves: &Curves) -> String {
    let mut svg = String::new();
    draw_curves(&mut svg, curves).expect("a String takes all that is drawn");
    svg
}

fn draw_curves(svg: &mut String, curves: &Curves) -> Result<(), Failure> {
    let points = || curves.lines.iter().flat_map(|(_, points)| points);
    let (left, right) = ends(points().map(|point| point.0));
    let (bottom, top) = ends(points().flat_map(|point| [point.1, point.2]));
    let area = SVGBackend::with_string(svg, (WIDTH.unsigned_abs(), 480)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(printable(&curves.title()), ("sans-serif", 15).into_font())
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((left..right).log_scale(), (bottom..top).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("elements, as powers of two")
        .y_desc(printable(&curves.unit))
        .x_label_formatter(&|n| format!("{:.1}", n.log2()))
        .y_label_formatter(&|cost| figure(*cost))
        .light_line_style(INK.mix(0.05))
        .bold_line_style(INK.mix(0.15))
        .draw()?;
    let styles = LINES.into_iter().cycle().zip((40..).step_by(18));
    for ((name, points), (colour, top)) in curves.lines.iter().zip(styles) {
        let style = ShapeStyle::from(&colour).stroke_width(2);
        let measured: Vec<(f64, f64)> = points.iter().map(|point| (point.0, point.1)).collect();
        let dots = measured
            .iter()
            .map(|&at| Circle::new(at, 3, style.filled()));
        chart.draw_series(dots)?;
        chart.draw_series([PathElement::new(measured, style)])?;
        let predicted = points.iter().map(|point| (point.0, point.2));
        let predicted: Vec<(f64, f64)> = predicted.filter(|point| point.1.is_finite()).collect();
        let words = match predicted.is_empty() {
            true => name.clone(),
            false => format!("{name} (thin: predicted)"),
        };
        chart.draw_series([PathElement::new(predicted, colour.mix(0.6))])?;
        area.draw(&PathElement::new(
            vec![(80, top + 6), (100, top + 6)],
            style,
        ))?;
        let font = ("sans-serif", 12).into_font();
        area.draw(&Text::new(printable(&words), (106, top), font))?;
    }
    area.present()
}

/// The ends of an axis over the positive ones of `numbers`, with a margin.
fn ends(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let usable = numbers.filter(|number| number.is_finite() && *number > 0.0);
    let (low, high) = usable.fold((f64::INFINITY, 0.0_f64), |(low, high), number| {
        (low.min(number), high.max(number))
    });
    match low > high {
        true => (1.0, 10.0),
        false => (low / 1.15, high * 1.15),
    }
}

/// `text` without control characters, which no XML document may hold.
fn printable(text: &str) -> String {
    text.replace(
        |c: char| c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}'),
        " ",
    )
}
