//! Charts of a few series, as SVG.
//!
//! ```
//! use ccmodel::plot::{Axis, Chart, Stroke, svg};
//!
//! let chart = Chart::new("misses of a search", Axis::PowersOfTwo("nodes"), "L2 misses")
//!     .series("random", Stroke::Solid, [(1024.0, 0.5), (4096.0, 2.5), (16384.0, 5.0)])
//!     .series("depth-first", Stroke::Dashed, [(1024.0, 0.2), (4096.0, 1.5), (16384.0, 3.0)]);
//! assert!(svg(&[chart])?.starts_with("<svg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::error::Error;

use plotters::chart::{ChartBuilder, SeriesLabelPosition};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{Circle, DashedPathElement, PathElement};
use plotters::prelude::SVGBackend;
use plotters::style::{BLACK, Color, RGBColor, ShapeStyle, WHITE};

const SIZE: (u32, u32) = (720, 440);
const FONT: &str = "sans-serif";
/// Numbers on an axis, about.
const NUMBERS: usize = 8;

/// Seven of the eight colours of Okabe and Ito, *Color universal design* (2002), which people who
/// see few colours can tell apart. Yellow is too light on white.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(170, 74, 140),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    BLACK,
];

/// The horizontal axis, with its name.
#[derive(Clone, Debug)]
pub enum Axis {
    /// A linear axis.
    Linear(&'static str),
    /// A logarithmic axis with a mark at powers of two. Values that are not positive are left out.
    PowersOfTwo(&'static str),
    /// An axis of names: the value 0 is the first.
    Names(Vec<String>),
}

impl Axis {
    fn label(&self, place: f64) -> String {
        match self {
            Axis::Linear(_) => number(place),
            Axis::PowersOfTwo(_) => format!("{:.0}", place.exp2()),
            Axis::Names(names) => {
                let mut names = (0u32..).zip(names);
                let name = names.find(|&(i, _)| (f64::from(i) - place).abs() < 1e-6);
                name.map_or(String::new(), |(_, name)| name.clone())
            }
        }
    }
}

/// A number without zeros at its end.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// A line with points.
    Solid,
    /// A dashed line, for a bound or what comes from elsewhere.
    Dashed,
    /// Points alone.
    Points,
}

/// A chart. The vertical axis begins at 0.
#[derive(Clone, Debug)]
pub struct Chart {
    title: String,
    x: Axis,
    y_name: String,
    series: Vec<Series>,
}

/// The name, the stroke, and places on the horizontal axis with values.
type Series = (String, Stroke, Vec<(f64, f64)>);

impl Chart {
    /// A chart without series.
    pub fn new(title: &str, x: Axis, y_name: &str) -> Chart {
        Chart {
            title: title.to_owned(),
            x,
            y_name: y_name.to_owned(),
            series: Vec::new(),
        }
    }

    /// Adds a series. Points that are not finite are left out, and the line has a gap there.
    #[must_use]
    pub fn series(
        mut self,
        name: &str,
        stroke: Stroke,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Chart {
        let is_log = matches!(self.x, Axis::PowersOfTwo(_));
        let points = points
            .into_iter()
            .map(|(x, y)| (if is_log { x.log2() } else { x }, y));
        self.series
            .push((name.to_owned(), stroke, points.collect()));
        self
    }

    fn draw<'a>(
        &self,
        area: &DrawingArea<SVGBackend<'a>, Shift>,
    ) -> Result<(), Box<dyn Error + 'a>> {
        let points = self.series.iter().flat_map(|(_, _, points)| points);
        let (mut low, mut high, mut top) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
        for &(x, y) in points.filter(|point| is_finite(point)) {
            (low, high, top) = (x.min(low), x.max(high), y.max(top));
        }
        let top = if top > 0.0 { 1.05 * top } else { 1.0 };
        let (x_name, ends) = match &self.x {
            Axis::Names(names) => ("", -0.5..names.len().max(1) as f64 - 0.5),
            Axis::Linear(name) | Axis::PowersOfTwo(name) if low < high => (*name, low..high),
            Axis::Linear(name) | Axis::PowersOfTwo(name) if low > high => (*name, 0.0..1.0),
            Axis::Linear(name) | Axis::PowersOfTwo(name) => (*name, low - 1.0..high + 1.0),
        };
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, (FONT, 15))
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(62)
            .build_cartesian_2d(ends, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(NUMBERS)
            .x_desc(x_name)
            .y_desc(&self.y_name)
            .x_label_formatter(&|&place| self.x.label(place))
            .y_label_formatter(&|&y| number(y))
            .label_style((FONT, 12))
            .draw()?;
        for ((name, stroke, points), colour) in self.series.iter().zip(COLOURS.iter().cycle()) {
            let style = ShapeStyle::from(colour).stroke_width(2);
            let dots = points.iter().filter(|point| is_finite(point));
            let radius = if *stroke == Stroke::Dashed { 0 } else { 3 };
            chart
                .draw_series(dots.map(|&point| Circle::new(point, radius, colour.filled())))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
            for run in points.split(|point| !is_finite(point)) {
                let run = run.to_vec();
                match stroke {
                    Stroke::Solid => {
                        chart.draw_series([PathElement::new(run, style)])?;
                    }
                    Stroke::Dashed => {
                        chart.draw_series([DashedPathElement::new(run, 7, 4, style)])?;
                    }
                    Stroke::Points => {}
                }
            }
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .label_font((FONT, 12))
            .draw()?;
        Ok(())
    }
}

fn is_finite(point: &(f64, f64)) -> bool {
    point.0.is_finite() && point.1.is_finite()
}

/// A picture of some charts, each below the one before.
///
/// # Errors
/// When a chart cannot be drawn.
pub fn svg(charts: &[Chart]) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let rows = charts.len().max(1);
    let height = SIZE.1 * u32::try_from(rows)?;
    {
        let root = SVGBackend::with_string(&mut text, (SIZE.0, height)).into_drawing_area();
        let draw = || {
            root.fill(&WHITE)?;
            for (area, chart) in root.split_evenly((rows, 1)).iter().zip(charts) {
                chart.draw(area)?;
            }
            root.present()?;
            Ok(())
        };
        draw().map_err(|error: Box<dyn Error + '_>| error.to_string())?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_data_gives_a_picture() {
        let gap = [(1.0, 2.0), (2.0, f64::NAN), (3.0, 1.0)];
        let names = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let axes = [
            Axis::Linear("x"),
            Axis::PowersOfTwo("x"),
            Axis::Names(names),
        ];
        let mut charts = vec![Chart::new("empty", Axis::PowersOfTwo("x"), "y")];
        charts.extend(axes.map(|axis| {
            Chart::new("<odd> & \"values\"", axis, "y")
                .series("nothing", Stroke::Solid, [])
                .series("gap", Stroke::Dashed, gap)
                .series("alone", Stroke::Points, [(0.0, f64::INFINITY), (4.0, 0.0)])
        }));
        let text = svg(&charts).unwrap();
        assert!(!text.contains("NaN") && !text.contains("inf"));
        for name in ["&lt;odd&gt; &amp;", "nothing", "gap", "alone", "empty"] {
            assert!(text.contains(name), "{name}");
        }
    }

    #[test]
    fn marks_are_labelled() {
        assert_eq!(Axis::PowersOfTwo("").label(10.0), "1024");
        assert_eq!(Axis::Linear("").label(0.25), "0.25");
        let names = Axis::Names(vec!["a".to_owned(), "b".to_owned()]);
        assert_eq!(
            (names.label(1.0).as_str(), names.label(1.5).as_str()),
            ("b", "")
        );
    }
}
