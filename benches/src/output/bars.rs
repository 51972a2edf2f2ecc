//! Ratios as bars, one below the other, with whiskers for their spread.
//!
//! ```text
//! get_dependent_2m                             234.3 ns         what is measured, and ours
//! std BTreeMap            1.71-1.92  420.8 ns     1.80x         a rival: middle half of the rounds, its figure, ratio
//! |     |#############|==|                                      from 1: to the right ours is better, to the left worse
//! ```
//!
//! The axis is logarithmic, so that twice as fast is as long as twice as slow. A bar is pale when
//! the middle half of the rounds lies on both sides of 1.

use std::fmt::Write as _;

use super::svg::{Place, escape, picture, shortened};
use super::{Row, figure};

/// The width of a picture in a file of its own; in a page it is what the page gives, and letters
/// stay as large.
const FILE_WIDTH: u32 = 760;
/// What is left free at both sides, as a share of the width in a hundred.
const MARGIN: f64 = 1.5;
/// Where what is written to the right ends.
const RIGHT: f64 = 100.0 - MARGIN;
/// Pixels that a ratio takes at the end of its line.
const RATIO_WIDTH: u32 = 54;

const AXIS_HEIGHT: u32 = 26;
const HEADING_HEIGHT: u32 = 22;
const ROW_HEIGHT: u32 = 32;
const GROUP_GAP: u32 = 6;

/// Characters of a rival's name that fit beside its figures on a phone.
const RIVAL_LENGTH: usize = 24;
/// And of what is measured, beside our figure.
const OPERATION_LENGTH: usize = 38;

const WRITES: &str = "a String takes all that is written to it";

/// The picture as a file.
pub fn file(suite: &str, rows: &[&Row]) -> String {
    draw(Place::File, suite, rows)
}

/// The picture for a page.
pub fn inline(suite: &str, rows: &[&Row]) -> String {
    draw(Place::Page, suite, rows)
}

/// Ratios to places, in hundredths of the width.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn over(rows: &[&Row]) -> Self {
        let ends = rows.iter().flat_map(|row| {
            // Not the ends: one disturbed round in twenty would make all bars short. A range that
            // goes on beyond the axis ends where it does.
            let spread = row.spread.map(|spread| [spread.lower, spread.upper]);
            spread.into_iter().flatten().chain([row.ratio])
        });
        let usable = ends.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        let (low, high) = usable.fold((0.9_f64, 1.25_f64), |(low, high), ratio| {
            (low.min(ratio), high.max(ratio))
        });
        Axis {
            low: low / 1.05,
            high: high * 1.05,
        }
    }

    /// The place of a ratio; one that is not a positive number lies at the end that it tends to.
    fn place(&self, ratio: f64) -> f64 {
        let inside = if ratio.is_nan() { 1.0 } else { ratio };
        let inside = inside.clamp(self.low, self.high);
        let share = (inside / self.low).ln() / (self.high / self.low).ln();
        MARGIN + share * (100.0 - 2.0 * MARGIN)
    }

    /// Round ratios for its labels, 1 among them, none too close to another.
    fn ticks(&self) -> Vec<f64> {
        const APART: f64 = 11.0;
        let candidates = [
            1.0, 2.0, 0.5, 10.0, 0.1, 5.0, 0.2, 100.0, 20.0, 50.0, 0.7, 1.5, 3.0, 0.9, 1.2, 0.8,
            1.1,
        ];
        let mut ticks: Vec<f64> = Vec::new();
        for candidate in candidates {
            let place = self.place(candidate);
            let is_inside = (self.low..=self.high).contains(&candidate);
            let is_free = ticks
                .iter()
                .all(|&other| (self.place(other) - place).abs() >= APART);
            // A label is centred below its tick and must not be cut.
            if is_inside && is_free && (4.0..=96.0).contains(&place) {
                ticks.push(candidate);
            }
        }
        ticks
    }
}

/// Rows that follow each other and have ours in common.
fn groups<'a>(rows: &[&'a Row]) -> Vec<Vec<&'a Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        let is_next = |group: &Vec<&Row>| {
            let same = |first: &&Row| {
                first.operation() == row.operation()
                    && first.unit == row.unit
                    && (first.ours - row.ours).abs() <= f64::EPSILON * row.ours.abs()
            };
            group.first().is_some_and(same)
        };
        match groups.last_mut() {
            Some(group) if is_next(group) => group.push(row),
            _ => groups.push(vec![row]),
        }
    }
    groups
}

fn draw(place: Place, suite: &str, rows: &[&Row]) -> String {
    let rows = &without_repeats(rows);
    let axis = Axis::over(rows);
    let groups = groups(rows);
    let headings = u32::try_from(groups.len()).unwrap_or(u32::MAX);
    let bars = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let below_axis = headings
        .saturating_mul(HEADING_HEIGHT + GROUP_GAP)
        .saturating_add(bars.saturating_mul(ROW_HEIGHT));
    let height = below_axis.saturating_add(AXIS_HEIGHT);

    let mut content = String::new();
    for tick in axis.ticks() {
        let x = axis.place(tick);
        let class = if (tick - 1.0).abs() < f64::EPSILON {
            "one"
        } else {
            "rule"
        };
        write!(
            content,
            "<line class=\"{class}\" x1=\"{x:.2}%\" x2=\"{x:.2}%\" y1=\"{AXIS_HEIGHT}\" y2=\"{height}\"/>\
             <text class=\"soft\" x=\"{x:.2}%\" y=\"16\" text-anchor=\"middle\">{tick}×</text>"
        )
        .expect(WRITES);
    }
    let mut top = AXIS_HEIGHT;
    for group in &groups {
        let first = group[0];
        let name = escape(&shortened(first.operation(), OPERATION_LENGTH));
        let (ours, unit) = (figure(first.ours), escape(&first.unit));
        let word = if suite == "model" { "predicted " } else { "" };
        let base = top + 17;
        write!(
            content,
            "{}<text class=\"ink head\" x=\"{MARGIN}%\" y=\"{base}\">{name}</text>\
             <text class=\"soft\" x=\"{RIGHT}%\" y=\"{base}\" text-anchor=\"end\">{word}{ours} {unit}</text>",
            clear(top.saturating_sub(GROUP_GAP), HEADING_HEIGHT + GROUP_GAP),
        )
        .expect(WRITES);
        top += HEADING_HEIGHT;
        for row in group {
            draw_row(&mut content, &axis, row, top);
            top += ROW_HEIGHT;
        }
        top += GROUP_GAP;
    }
    let title = format!("{suite}: how many times better ours is than each rival");
    picture(place, (FILE_WIDTH, height), false, &title, &content)
}

/// Takes the lines of the axis out of so many pixels, where text is to stand.
fn clear(top: u32, height: u32) -> String {
    format!("<rect class=\"ground\" width=\"100%\" y=\"{top}\" height=\"{height}\"/>")
}

/// Rows that say something of their own: not those that name the best of several rivals who have
/// rows, too.
fn without_repeats<'a>(rows: &[&'a Row]) -> Vec<&'a Row> {
    let repeats = |row: &Row| {
        let is_same = |other: &&Row| {
            other.name != row.name
                && other.operation() == row.name
                && other.rival == row.rival
                && other.ratio.total_cmp(&row.ratio).is_eq()
        };
        rows.iter().any(is_same)
    };
    let own = rows.iter().copied();
    own.filter(|row| !repeats(row)).collect()
}

/// A rival's line of text, and its bar below.
fn draw_row(content: &mut String, axis: &Axis, row: &Row, top: u32) {
    let (text, bar) = (top + 12, top + 17);
    let Row {
        ratio,
        theirs,
        unit,
        rival,
        ..
    } = row;
    let details = [row.middle_half(), format!("{} {unit}", figure(*theirs))];
    let details = details.map(|detail| escape(&detail)).join("  ");
    write!(
        content,
        "<g><title>{}</title>{}<text class=\"ink\" x=\"{MARGIN}%\" y=\"{text}\">{}</text>\
         <text class=\"soft\" x=\"{RIGHT}%\" dx=\"-{RATIO_WIDTH}\" y=\"{text}\" text-anchor=\"end\">{details}</text>\
         <text class=\"ink head\" x=\"{RIGHT}%\" y=\"{text}\" text-anchor=\"end\">{ratio:.2}×</text>",
        escape(&format!("{} against {rival}: {ratio:.2}", row.name)),
        clear(top, bar - top),
        escape(&shortened(rival, RIVAL_LENGTH)),
    )
    .expect(WRITES);
    let is_even = row.spread.is_some_and(|spread| spread.straddles_one());
    let class = if is_even {
        "even"
    } else if *ratio >= 1.0 {
        "better"
    } else {
        "worse"
    };
    let (one, end) = (axis.place(1.0), axis.place(*ratio));
    // A ratio of nearly 1 is a line, not nothing.
    let (left, width) = (one.min(end), (one - end).abs().max(0.3));
    write!(
        content,
        "<rect class=\"{class}\" x=\"{left:.2}%\" width=\"{width:.2}%\" y=\"{bar}\" height=\"10\" rx=\"1.5\"/>"
    )
    .expect(WRITES);
    if let Some(spread) = row.spread {
        let middle = bar + 5;
        let [least, lower, upper, most] =
            [spread.least, spread.lower, spread.upper, spread.most].map(|ratio| axis.place(ratio));
        write!(
            content,
            "<line class=\"range\" opacity=\".55\" x1=\"{least:.2}%\" x2=\"{most:.2}%\" y1=\"{middle}\" y2=\"{middle}\"/>"
        )
        .expect(WRITES);
        for cap in [lower, upper] {
            let (from, to) = (bar, bar + 10);
            write!(
                content,
                "<line class=\"range\" x1=\"{cap:.2}%\" x2=\"{cap:.2}%\" y1=\"{from}\" y2=\"{to}\"/>"
            )
            .expect(WRITES);
        }
    }
    content.push_str("</g>");
}
