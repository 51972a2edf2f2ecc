//! Costs against sizes: what was measured as a line with dots, what the model predicts as dashes of
//! the same colour. Both axes are logarithmic.

use std::fmt::Write as _;

use super::svg::{LINE_CLASSES, Place, escape, picture, shortened};
use crate::curves::{Curve, CurvePoint, Curves};

const WIDTH: u32 = 360;
const PLOT: Rectangle = Rectangle {
    left: 44.0,
    right: 350.0,
    top: 40.0,
    bottom: 234.0,
};
const LEGEND_TOP: u32 = 282;
const LEGEND_LINE_HEIGHT: u32 = 18;

const WRITES: &str = "a String takes all that is written to it";

/// Where the lines are drawn, in pixels.
struct Rectangle {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// What the picture is called.
pub fn title(curve: &Curves) -> String {
    format!("{} against size", curve.name.replace('_', " "))
}

/// The picture as a file.
pub fn file(curve: &Curves) -> String {
    draw(Place::File, curve)
}

/// The picture for a page.
pub fn inline(curve: &Curves) -> String {
    draw(Place::Page, curve)
}

/// Sizes and costs to places, in pixels.
struct Axes {
    sizes: (f64, f64),
    costs: (f64, f64),
}

impl Axes {
    fn over(curve: &Curves) -> Self {
        let points = || curve.lines.iter().flat_map(|line| &line.points);
        let costs = points()
            .flat_map(|point| [Some(point.measured), point.predicted])
            .flatten();
        Axes {
            sizes: ends(points().map(|point| point.n as f64)),
            costs: ends(costs),
        }
    }

    fn x(&self, size: f64) -> f64 {
        PLOT.left + share(self.sizes, size) * (PLOT.right - PLOT.left)
    }

    fn y(&self, cost: f64) -> f64 {
        PLOT.bottom - share(self.costs, cost) * (PLOT.bottom - PLOT.top)
    }
}

/// The ends of an axis over `numbers`, a little further apart than they are.
fn ends(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let usable = numbers.filter(|number| number.is_finite() && *number > 0.0);
    let (low, high) = usable.fold((f64::INFINITY, 0.0_f64), |(low, high), number| {
        (low.min(number), high.max(number))
    });
    if low > high {
        return (1.0, 10.0);
    }
    (low / 1.15, high * 1.15)
}

/// How far along a logarithmic axis a number lies, from 0 to 1.
fn share((low, high): (f64, f64), number: f64) -> f64 {
    (number.clamp(low, high) / low).ln() / (high / low).ln()
}

/// Powers of two for the sizes, every so many that they have room.
fn size_ticks((low, high): (f64, f64)) -> Vec<u32> {
    const MOST: usize = 9;
    let all: Vec<u32> = (0..64)
        .filter(|&log2| (low..=high).contains(&2_f64.powi(log2)))
        .filter_map(|log2| u32::try_from(log2).ok())
        .collect();
    let step = all.len().div_ceil(MOST).max(1);
    all.into_iter().step_by(step).collect()
}

/// Numbers of one digit for the costs.
fn cost_ticks((low, high): (f64, f64)) -> Vec<f64> {
    let digits: &[f64] = if high / low < 8.0 {
        &[1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let decades = (-3..=9).map(|power| 10_f64.powi(power));
    let numbers = decades.flat_map(|decade| digits.iter().map(move |digit| digit * decade));
    numbers
        .filter(|number| (low..=high).contains(number))
        .collect()
}

/// A number as an exponent.
fn raised(number: u32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digits = number.to_string();
    let places = digits.bytes().map(|digit| usize::from(digit - b'0'));
    places.map(|place| DIGITS[place]).collect()
}

fn draw(place: Place, curve: &Curves) -> String {
    let axes = Axes::over(curve);
    let mut content = String::new();
    draw_axes(&mut content, &axes, curve);
    for (index, line) in (0..).zip(&curve.lines) {
        let points = &line.points;
        let class = format!("s{}", index as usize % LINE_CLASSES);
        draw_line(&mut content, &axes, &class, curve, line);
        let base = LEGEND_TOP + LEGEND_LINE_HEIGHT * index;
        let has_prediction = points.iter().any(|point| point.predicted.is_some());
        let predicted = if has_prediction {
            " (dashes: predicted)"
        } else {
            ""
        };
        let dashes = if has_prediction {
            format!(
                "<path class=\"line predicted {class}\" d=\"M30 {0}h22\"/>",
                base - 4
            )
        } else {
            String::new()
        };
        write!(
            content,
            "<path class=\"line {class}\" d=\"M8 {0}h16\"/>{dashes}<text class=\"ink\" x=\"60\" y=\"{base}\">{1}{predicted}</text>",
            base - 4,
            escape(&shortened(&line.name.replace('_', " "), 34)),
        )
        .expect(WRITES);
    }
    let lines = u32::try_from(curve.lines.len()).unwrap_or(u32::MAX);
    let height = LEGEND_TOP.saturating_add(LEGEND_LINE_HEIGHT.saturating_mul(lines));
    picture(place, (WIDTH, height), true, &title(curve), &content)
}

fn draw_axes(content: &mut String, axes: &Axes, curve: &Curves) {
    let Rectangle {
        left,
        right,
        top,
        bottom,
    } = PLOT;
    write!(
        content,
        "<text class=\"ink head\" x=\"8\" y=\"15\">{}</text><text class=\"soft\" x=\"8\" y=\"29\">{}</text>",
        escape(&shortened(&title(curve), 50)),
        escape(&curve.unit),
    )
    .expect(WRITES);
    for log2 in size_ticks(axes.sizes) {
        let x = axes.x(f64::from(log2).exp2());
        write!(
            content,
            "<path class=\"rule\" d=\"M{x:.1} {top}V{bottom}\"/>\
             <text class=\"soft\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">2{}</text>",
            bottom + 17.0,
            raised(log2)
        )
        .expect(WRITES);
    }
    for cost in cost_ticks(axes.costs) {
        let y = axes.y(cost);
        write!(
            content,
            "<path class=\"rule\" d=\"M{left} {y:.1}H{right}\"/>\
             <text class=\"soft\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{cost}</text>",
            left - 6.0,
            y + 4.0
        )
        .expect(WRITES);
    }
    write!(
        content,
        "<text class=\"soft\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">elements</text>",
        f64::midpoint(left, right),
        bottom + 33.0
    )
    .expect(WRITES);
}

/// The line and the dots of what was measured, and the dashes of what was predicted.
fn draw_line(content: &mut String, axes: &Axes, class: &str, curve: &Curves, line: &Curve) {
    let points: &[CurvePoint] = &line.points;
    let path = |places: &mut dyn Iterator<Item = (f64, f64)>| {
        let mut path = String::new();
        for (size, cost) in places {
            let step = if path.is_empty() { 'M' } else { 'L' };
            write!(path, "{step}{:.1} {:.1}", axes.x(size), axes.y(cost)).expect(WRITES);
        }
        path
    };
    let predicted = path(
        &mut points
            .iter()
            .filter_map(|point| Some((point.n as f64, point.predicted?))),
    );
    if !predicted.is_empty() {
        write!(
            content,
            "<path class=\"line predicted {class}\" d=\"{predicted}\"/>"
        )
        .expect(WRITES);
    }
    let measured = path(&mut points.iter().map(|point| (point.n as f64, point.measured)));
    write!(content, "<path class=\"line {class}\" d=\"{measured}\"/>").expect(WRITES);
    for point in points {
        write!(
            content,
            "<circle class=\"dot {class}\" style=\"stroke:none\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{} at {}: {:.1} {}</title></circle>",
            axes.x(point.n as f64),
            axes.y(point.measured),
            escape(&line.name),
            point.n,
            point.measured,
            escape(&curve.unit),
        )
        .expect(WRITES);
    }
}
