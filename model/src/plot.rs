//! Pictures of figures: lines and bars with axes and a legend, as SVG.
//!
//! [`Plot`] draws lines, [`Bars`] groups of bars. Both have one job, to show a few series of a
//! prediction side by side, and are good at no other: no dates, no second axis, no interaction. A
//! crate that can do all that would be the largest dependency of this one.
//!
//! ```
//! use ccmodel::plot::{Axis, Plot};
//!
//! let svg = Plot::new("misses of a search")
//!     .x_axis(Axis::powers_of_two("nodes"))
//!     .y_axis(Axis::linear("L2 misses").from_zero())
//!     .line("random", &[(1024.0, 0.5), (4096.0, 2.5), (16384.0, 5.0)])
//!     .dashed_line("depth-first", &[(1024.0, 0.2), (4096.0, 1.5), (16384.0, 3.0)])
//!     .to_svg();
//! assert!(svg.starts_with("<svg"));
//! ```
//!
//! **What a reader can rely on.** Any data gives well-formed XML with finite coordinates: points
//! that are no numbers, or not positive on a logarithmic axis, are left out and the line has a gap
//! there. Texts are escaped. Series differ in colour (those of M. Okabe and K. Ito, which people
//! who see few colours tell apart) and in the form of their points; bars stand in the order of the
//! legend. So a print in black is readable too. The picture is 640 wide, and is meant to be looked
//! at in that size.

mod axis;
mod svg;
#[cfg(test)]
mod tests;

pub use axis::Axis;

use axis::Range;
use svg::{Anchor, Canvas, Rectangle};

const WIDTH: f64 = 640.0;
/// Height of the part between the axes.
const FIELD_HEIGHT: f64 = 310.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 18.0;
const TITLE_SIZE: f64 = 15.0;
const LABEL_SIZE: f64 = 13.0;
const TICK_SIZE: f64 = 12.0;
/// Heights above bars.
const HEIGHT_SIZE: f64 = 10.0;
const TITLE_LINE: f64 = 20.0;
const LEGEND_LINE: f64 = 19.0;
/// Names of groups of bars.
const GROUP_LINE: f64 = 14.0;
/// Of a legend's entry, what stands before its name, and room behind it.
const LEGEND_SAMPLE: f64 = 36.0;
const LEGEND_GAP: f64 = 18.0;
/// Above this many points to a line, their marks would be a smear.
const MARKS_MAX: usize = 40;

/// Blue, vermilion, green, purple, orange, light blue, black: of the eight colours of Okabe and
/// Ito, *Color universal design* (2002), all but yellow, which is too light on white.
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#aa4a8c", "#e69f00", "#56b4e9", "#000000",
];

/// One series of a [`Plot`].
#[derive(Clone, Debug)]
struct Line {
    name: String,
    points: Vec<(f64, f64)>,
    stroke: Stroke,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stroke {
    Solid,
    Dashed,
    /// Rings without a line.
    None,
}

impl Stroke {
    fn dashes(self) -> Option<&'static str> {
        (self == Stroke::Dashed).then_some("7 4")
    }
}

/// A chart of lines.
///
/// Costs O(points).
#[derive(Clone, Debug)]
pub struct Plot {
    title: String,
    x: Axis,
    y: Axis,
    lines: Vec<Line>,
}

impl Plot {
    /// A chart without lines, its axes linear and without names.
    pub fn new(title: &str) -> Plot {
        Plot {
            title: title.to_owned(),
            x: Axis::linear(""),
            y: Axis::linear(""),
            lines: Vec::new(),
        }
    }

    /// Sets the horizontal axis.
    #[must_use]
    pub fn x_axis(mut self, axis: Axis) -> Plot {
        self.x = axis;
        self
    }

    /// Sets the vertical axis.
    #[must_use]
    pub fn y_axis(mut self, axis: Axis) -> Plot {
        self.y = axis;
        self
    }

    /// Adds a line through points in the order that they have.
    #[must_use]
    pub fn line(self, name: &str, points: &[(f64, f64)]) -> Plot {
        self.with(name, points, Stroke::Solid)
    }

    /// Adds a dashed line, for what is a bound or comes from elsewhere.
    #[must_use]
    pub fn dashed_line(self, name: &str, points: &[(f64, f64)]) -> Plot {
        self.with(name, points, Stroke::Dashed)
    }

    /// Adds points without a line, as rings: what a line is held against.
    #[must_use]
    pub fn points(self, name: &str, points: &[(f64, f64)]) -> Plot {
        self.with(name, points, Stroke::None)
    }

    fn with(mut self, name: &str, points: &[(f64, f64)], stroke: Stroke) -> Plot {
        self.lines.push(Line {
            name: name.to_owned(),
            points: points.to_vec(),
            stroke,
        });
        self
    }

    /// The picture.
    pub fn to_svg(&self) -> String {
        let drawable = |&(x, y): &(f64, f64)| self.x.takes(x) && self.y.takes(y);
        let points: Vec<(f64, f64)> = { self.lines.iter() }
            .flat_map(|line| line.points.iter().copied().filter(drawable))
            .collect();
        let x = self.x.range(points.iter().map(|&(x, _)| x));
        let y = self.y.range(points.iter().map(|&(_, y)| y));
        let names: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        let below = if self.x.label.is_empty() { 0.0 } else { 20.0 };
        let mut sheet = Sheet::new(&self.title, &self.y.label, &names, below);
        let middle = (LEFT + 0.5 * sheet.field().width, sheet.bottom() + 40.0);
        sheet
            .canvas
            .text(middle, LABEL_SIZE, Anchor::Middle, &self.x.label);
        sheet.ticks_across(&x);
        sheet.ticks_up(&y);
        for (series, line) in self.lines.iter().enumerate() {
            let runs = line.points.split(|point| !drawable(point));
            for run in runs.filter(|run| !run.is_empty()) {
                let places: Vec<(f64, f64)> = { run.iter() }
                    .map(|&(px, py)| (sheet.across(x.place(px)), sheet.up(y.place(py))))
                    .collect();
                // A point alone is no line.
                let has_marks = line.points.len() <= MARKS_MAX || places.len() == 1;
                draw_series(&mut sheet.canvas, series, line.stroke, &places, has_marks);
            }
        }
        sheet.finish(points.is_empty(), |canvas, series, (x, y)| {
            let stroke = self.lines[series].stroke;
            draw_series(canvas, series, stroke, &[(x, y), (x + 26.0, y)], false);
            draw_series(canvas, series, stroke, &[(x + 13.0, y)], true);
        })
    }
}

fn draw_series(
    canvas: &mut Canvas,
    series: usize,
    stroke: Stroke,
    places: &[(f64, f64)],
    has_marks: bool,
) {
    if stroke == Stroke::None {
        for &place in places.iter().filter(|_| has_marks) {
            canvas.ring(place, colour(series));
        }
        return;
    }
    canvas.path(places, colour(series), stroke.dashes());
    for &place in places.iter().filter(|_| has_marks) {
        canvas.mark(place, series, colour(series));
    }
}

/// A chart of bars, in groups that have one of each series.
///
/// The heights stand above the bars. The axis begins at 0.
#[derive(Clone, Debug)]
pub struct Bars {
    title: String,
    label: String,
    groups: Vec<String>,
    series: Vec<(String, Vec<f64>)>,
}

impl Bars {
    /// A chart without bars, for groups of these names.
    pub fn new(title: &str, label: &str, groups: &[&str]) -> Bars {
        Bars {
            title: title.to_owned(),
            label: label.to_owned(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
            series: Vec::new(),
        }
    }

    /// Adds a bar to each group; where there are fewer heights than groups, or a height is no
    /// number or negative, there is no bar.
    #[must_use]
    pub fn bars(mut self, name: &str, heights: &[f64]) -> Bars {
        self.series.push((name.to_owned(), heights.to_vec()));
        self
    }

    /// The picture.
    pub fn to_svg(&self) -> String {
        let axis = Axis::linear(&self.label).from_zero();
        let heights = |series: usize| {
            let heights = self.series[series].1.iter().copied().enumerate();
            heights.filter(|&(group, height)| {
                group < self.groups.len() && axis.takes(height) && height >= 0.0
            })
        };
        let all = (0..self.series.len()).flat_map(|series| heights(series).map(|(_, h)| h));
        let y = axis.range(all.clone());
        let names: Vec<&str> = self.series.iter().map(|(name, _)| name.as_str()).collect();
        let group_width = (WIDTH - LEFT - RIGHT) / self.groups.len().max(1) as f64;
        let groups: Vec<Vec<String>> = { self.groups.iter() }
            .map(|group| svg::wrapped(group, TICK_SIZE, group_width))
            .collect();
        let group_lines = groups.iter().map(Vec::len).max().unwrap_or(0);
        let below = GROUP_LINE * group_lines.saturating_sub(1) as f64;
        let mut sheet = Sheet::new(&self.title, &self.label, &names, below);
        sheet.ticks_up(&y);
        let bar_width = 0.8 * group_width / self.series.len().max(1) as f64;
        let group_left = |group: usize| LEFT + group_width * group as f64;
        for (group, lines) in groups.iter().enumerate() {
            let middle = group_left(group) + 0.5 * group_width;
            for (line, text) in lines.iter().enumerate() {
                let at = (middle, sheet.bottom() + 18.0 + GROUP_LINE * line as f64);
                sheet.canvas.text(at, TICK_SIZE, Anchor::Middle, text);
            }
        }
        for series in 0..self.series.len() {
            for (group, height) in heights(series) {
                let top = sheet.up(y.place(height));
                let left = group_left(group) + 0.1 * group_width + bar_width * series as f64;
                let bar = Rectangle {
                    left: left + 0.04 * bar_width,
                    top,
                    width: 0.92 * bar_width,
                    height: sheet.bottom() - top,
                };
                sheet.canvas.bar(bar, colour(series));
                let at = (left + 0.5 * bar_width, top - 5.0);
                // Four letters where there is room for them.
                let text = if bar_width >= 2.2 * HEIGHT_SIZE || height >= 10.0 {
                    axis::short_number(height)
                } else {
                    format!("{height:.1}")
                };
                sheet.canvas.text(at, HEIGHT_SIZE, Anchor::Middle, &text);
            }
        }
        let is_empty = all.count() == 0;
        sheet.finish(is_empty, |canvas, series, (at_x, at_y)| {
            let sample = Rectangle {
                left: at_x + 6.0,
                top: at_y - 6.0,
                width: 14.0,
                height: 12.0,
            };
            canvas.bar(sample, colour(series));
        })
    }
}

fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

/// What both kinds of charts have: title, axes, legend.
struct Sheet<'a> {
    canvas: Canvas,
    names: &'a [&'a str],
    top: f64,
    legend_columns: usize,
    legend_top: f64,
}

impl<'a> Sheet<'a> {
    /// An empty sheet; `below` is the room that is needed between the ticks and the legend.
    fn new(title: &str, y_label: &str, names: &'a [&'a str], below: f64) -> Sheet<'a> {
        let title_lines = svg::wrapped(title, TITLE_SIZE, WIDTH - 24.0);
        let top = 16.0 + TITLE_LINE * title_lines.len().max(1) as f64;
        let bottom = top + FIELD_HEIGHT;
        let legend_top = bottom + 42.0 + below;
        let legend_columns = legend_columns(names);
        let rows = names.len().div_ceil(legend_columns);
        let height = legend_top + LEGEND_LINE * rows as f64 + 6.0;
        let mut canvas = Canvas::new(title, WIDTH, height);
        for (line, text) in title_lines.iter().enumerate() {
            let at = (WIDTH / 2.0, 24.0 + TITLE_LINE * line as f64);
            canvas.title(at, TITLE_SIZE, text);
        }
        canvas.upright_text((18.0, top + FIELD_HEIGHT / 2.0), LABEL_SIZE, y_label);
        Sheet {
            canvas,
            names,
            top,
            legend_columns,
            legend_top,
        }
    }

    /// The part between the axes.
    fn field(&self) -> Rectangle {
        Rectangle {
            left: LEFT,
            top: self.top,
            width: WIDTH - LEFT - RIGHT,
            height: FIELD_HEIGHT,
        }
    }

    fn bottom(&self) -> f64 {
        self.top + FIELD_HEIGHT
    }

    /// Where a share of the horizontal axis lies.
    fn across(&self, share: f64) -> f64 {
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    /// Where a share of the vertical axis lies.
    fn up(&self, share: f64) -> f64 {
        self.bottom() - share * FIELD_HEIGHT
    }

    fn ticks_across(&mut self, range: &Range) {
        for tick in range.ticks() {
            let x = self.across(range.place(tick.value));
            let (top, bottom) = (self.top, self.bottom());
            self.canvas.rule((x, top), (x, bottom));
            let at = (x, bottom + 18.0);
            self.canvas.text(at, TICK_SIZE, Anchor::Middle, &tick.label);
        }
    }

    fn ticks_up(&mut self, range: &Range) {
        for tick in range.ticks() {
            let y = self.up(range.place(tick.value));
            self.canvas.rule((LEFT, y), (WIDTH - RIGHT, y));
            let at = (LEFT - 8.0, y + 4.0);
            self.canvas.text(at, TICK_SIZE, Anchor::End, &tick.label);
        }
    }

    /// Draws the axes over what is there, and the legend; `sample` draws a series' sample at a
    /// place.
    fn finish(mut self, is_empty: bool, sample: impl Fn(&mut Canvas, usize, (f64, f64))) -> String {
        let field = self.field();
        if is_empty {
            let middle = (
                field.left + field.width / 2.0,
                field.top + field.height / 2.0,
            );
            self.canvas
                .text(middle, LABEL_SIZE, Anchor::Middle, "no data");
        }
        self.canvas.axes(field);
        let column_width = (WIDTH - LEFT) / self.legend_columns as f64;
        for (series, name) in self.names.iter().enumerate() {
            let x = LEFT - 30.0 + column_width * (series % self.legend_columns) as f64;
            let y = self.legend_top + LEGEND_LINE * (series / self.legend_columns) as f64;
            sample(&mut self.canvas, series, (x, y));
            let at = (x + LEGEND_SAMPLE, y + 4.0);
            self.canvas.text(at, LABEL_SIZE, Anchor::Start, name);
        }
        self.canvas.finish()
    }
}

/// How many names fit beside each other.
fn legend_columns(names: &[&str]) -> usize {
    let width = |name: &&str| svg::text_width(name, LABEL_SIZE) + LEGEND_SAMPLE + LEGEND_GAP;
    let widest = names.iter().map(width).fold(1.0, f64::max);
    (1..=names.len().clamp(1, 4))
        .rev()
        .find(|&columns| columns as f64 * widest <= WIDTH - LEFT + 30.0)
        .unwrap_or(1)
}
