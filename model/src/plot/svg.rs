//! The marks that charts are made of, as SVG elements.
//!
//! One place writes coordinates and texts, so that one place sees to it that the former are finite
//! and the latter escaped.

use std::fmt::Write as _;

/// Fonts that have the signs used here; the last names any.
const FONTS: &str = "DejaVu Sans, Helvetica, Arial, sans-serif";
const INK: &str = "#222222";
const RULE: &str = "#dddddd";
/// Mean width of a letter, in units of the font's size; most fonts are narrower.
const LETTER_WIDTH: f64 = 0.56;

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Rectangle {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// An SVG document that is being written.
#[derive(Debug)]
pub(super) struct Canvas {
    text: String,
}

impl Canvas {
    /// A white sheet; `title` is what is read out instead of the picture.
    pub(super) fn new(title: &str, width: f64, height: f64) -> Canvas {
        let (width, height) = (number(width), number(height));
        let title = escaped(title);
        Canvas {
            text: format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
                 viewBox=\"0 0 {width} {height}\" font-family=\"{FONTS}\" role=\"img\">\n\
                 <title>{title}</title>\n\
                 <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
            ),
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    /// Writes a line of the document.
    fn put(&mut self, element: std::fmt::Arguments<'_>) {
        // A `String` takes all that is written to it.
        let written = self.text.write_fmt(element);
        debug_assert!(written.is_ok());
        self.text.push('\n');
    }

    pub(super) fn text(&mut self, (x, y): (f64, f64), size: f64, anchor: Anchor, text: &str) {
        if text.is_empty() {
            return;
        }
        self.put(format_args!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{INK}\">{}</text>",
            number(x),
            number(y),
            number(size),
            anchor.name(),
            escaped(text)
        ));
    }

    pub(super) fn title(&mut self, (x, y): (f64, f64), size: f64, text: &str) {
        self.put(format_args!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" font-weight=\"bold\" text-anchor=\"middle\" fill=\"{INK}\">{}</text>",
            number(x),
            number(y),
            number(size),
            escaped(text)
        ));
    }

    /// A text that is read from the bottom up, its middle at a point.
    pub(super) fn upright_text(&mut self, (x, y): (f64, f64), size: f64, text: &str) {
        if text.is_empty() {
            return;
        }
        self.put(format_args!(
            "<text transform=\"translate({} {}) rotate(-90)\" font-size=\"{}\" text-anchor=\"middle\" fill=\"{INK}\">{}</text>",
            number(x),
            number(y),
            number(size),
            escaped(text)
        ));
    }

    /// A faint line behind the data.
    pub(super) fn rule(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.put(format_args!(
            "<path d=\"M{} {}L{} {}\" stroke=\"{RULE}\" fill=\"none\"/>",
            number(from.0),
            number(from.1),
            number(to.0),
            number(to.1)
        ));
    }

    /// The left and the lower edge of a rectangle.
    pub(super) fn axes(&mut self, field: Rectangle) {
        let bottom = field.top + field.height;
        self.put(format_args!(
            "<path d=\"M{} {}V{}H{}\" stroke=\"{INK}\" fill=\"none\"/>",
            number(field.left),
            number(field.top),
            number(bottom),
            number(field.left + field.width)
        ));
    }

    /// A line through points.
    pub(super) fn path(&mut self, points: &[(f64, f64)], colour: &str, dashes: Option<&str>) {
        let mut commands = String::new();
        for (i, &(x, y)) in points.iter().enumerate() {
            commands.push(if i == 0 { 'M' } else { 'L' });
            commands.push_str(&number(x));
            commands.push(' ');
            commands.push_str(&number(y));
        }
        let dashes = dashes.map_or(String::new(), |d| format!(" stroke-dasharray=\"{d}\""));
        self.put(format_args!(
            "<path d=\"{commands}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-linejoin=\"round\" fill=\"none\"{dashes}/>"
        ));
    }

    /// A point: disc, square, triangle, diamond, then the same hollow.
    pub(super) fn mark(&mut self, (x, y): (f64, f64), form: usize, colour: &str) {
        let (x, y) = (number(x), number(y));
        let outline = match form % 4 {
            0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
            1 => "m-3.5 -3.5h7v7h-7z",
            2 => "m0 -4.6l4.6 8h-9.2z",
            _ => "m0 -4.8l4.8 4.8l-4.8 4.8l-4.8 -4.8z",
        };
        let fill = if (form / 4).is_multiple_of(2) {
            colour
        } else {
            "#ffffff"
        };
        self.put(format_args!(
            "<path d=\"M{x} {y}{outline}\" stroke=\"{colour}\" stroke-width=\"1.2\" fill=\"{fill}\"/>"
        ));
    }

    /// A ring that lets what is below be seen.
    pub(super) fn ring(&mut self, (x, y): (f64, f64), colour: &str) {
        self.put(format_args!(
            "<path d=\"M{} {}m-6 0a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z\" stroke=\"{colour}\" stroke-width=\"2\" fill=\"none\"/>",
            number(x),
            number(y)
        ));
    }

    /// A bar of a chart.
    pub(super) fn bar(&mut self, bar: Rectangle, colour: &str) {
        self.put(format_args!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{colour}\" fill-opacity=\"0.65\" stroke=\"{colour}\"/>",
            number(bar.left),
            number(bar.top),
            number(bar.width.max(0.0)),
            number(bar.height.max(0.0))
        ));
    }
}

/// A coordinate with one decimal; whatever is no finite number becomes 0.
fn number(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.1}");
    match text.strip_suffix(".0").unwrap_or(&text) {
        "-0" => String::from("0"),
        text => text.to_owned(),
    }
}

/// Text as XML has it: its special characters as entities, and what XML 1.0 has no form for
/// (section 2.2) as U+FFFD.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            '\t' | '\n' | '\r' => escaped.push(' '),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// About how wide a text is.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * LETTER_WIDTH
}

/// A text in lines of about a width, broken between words.
pub(super) fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
