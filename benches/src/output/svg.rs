//! What pictures are written with: text that cannot break out of its element, colours for light and
//! dark pages, and names of files.
//!
//! Pictures are plain SVG text rather than a plotting library's, because they stand in two places:
//! as files, and within a page that gets as narrow as a phone. Their horizontal places are shares
//! of the width, so the page can change the width and leaves heights and letters as large as they
//! are; libraries draw in pixels of one size and scale all of it.

use std::fmt::Write as _;

/// Colours by class of an element: what they colour, on light and on dark ground.
const COLOURS: [(&str, &str, &str, &str); 18] = [
    (".ground", "fill", "#ffffff", "#15191e"),
    (".ink", "fill", "#1b2127", "#e4e8ec"),
    (".soft", "fill", "#5a6470", "#9aa5b1"),
    (".rule", "stroke", "#dde2e7", "#303841"),
    (".one", "stroke", "#5a6470", "#9aa5b1"),
    (".better", "fill", "#3d8f66", "#4fa87c"),
    (".worse", "fill", "#c06a4e", "#cf7a5e"),
    (".even", "fill", "#a9b1ba", "#5c6671"),
    (".range", "stroke", "#1b2127", "#e4e8ec"),
    (".s0", "stroke", "#2f6fb5", "#6aa5e6"),
    (".s1", "stroke", "#b5482f", "#e88a70"),
    (".s2", "stroke", "#2f8a57", "#63bd8b"),
    (".s3", "stroke", "#8055a8", "#b694dc"),
    (".s4", "stroke", "#a8801f", "#dcb75c"),
    (".s5", "stroke", "#3b8f9c", "#6cc3d0"),
    (".s6", "stroke", "#7a4a38", "#b98d7b"),
    (".s7", "stroke", "#68727d", "#a9b3bd"),
    (".dot", "stroke", "#ffffff", "#15191e"),
];

/// How many classes of lines there are: `s0` and so on.
pub const LINE_CLASSES: usize = 8;

/// Everything else about the classes.
const SHAPES: &str = "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:12px}\
    .head{font-weight:600}.rule,.one{stroke-width:1;fill:none}.range{stroke-width:1.2;fill:none}\
    .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\
    .predicted{stroke-dasharray:2 5}.dot{stroke-width:1}";

/// The style sheet of all pictures.
///
/// Custom properties would make it shorter, but not every program that shows SVG knows them.
pub fn style() -> String {
    let rules = |dark: bool| {
        COLOURS.iter().fold(
            String::new(),
            |mut text, (class, property, light, dark_colour)| {
                let colour = if dark { dark_colour } else { light };
                let written = write!(text, "{class}{{{property}:{colour}}}");
                written.expect("a String takes all that is written to it");
                if property == &"stroke" && class.starts_with(".s") {
                    // A dot is filled with what its line is drawn in.
                    let written = write!(text, ".dot{class}{{fill:{colour}}}");
                    written.expect("a String takes all that is written to it");
                }
                text
            },
        )
    };
    format!(
        "{SHAPES}{}@media(prefers-color-scheme:dark){{{}}}",
        rules(false),
        rules(true)
    )
}

/// `text` as content of an element or value of an attribute, in SVG and HTML alike.
///
/// Characters that no XML document may hold, control characters among them, become spaces.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{FFFE}' | '\u{FFFF}' => escaped.push(' '),
            control if control.is_control() => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}

/// `text`, or its beginning and an ellipsis where it has more than `most` characters.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept.trim_end().to_owned() + "…"
}

/// The name of the file with the picture called `name`: letters, digits and hyphens.
pub fn file_name(name: &str) -> String {
    let mut stem = String::new();
    for character in name.chars() {
        if character.is_ascii_alphanumeric() {
            stem.push(character.to_ascii_lowercase());
        } else if !stem.is_empty() && !stem.ends_with('-') {
            stem.push('-');
        }
    }
    stem.truncate(80);
    format!("{}.svg", stem.trim_end_matches('-'))
}

/// Where a picture stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file of its own: with a width, a style sheet and a ground.
    File,
    /// In a page, which gives the width, the style and the ground.
    Page,
}

/// A picture of this many pixels with `content`, and `title` for whoever cannot see it.
///
/// In a page it is as wide as what it stands in. `scales` tells whether its height goes along and
/// letters grow; else only shares of the width do.
pub fn picture(
    place: Place,
    (width, height): (u32, u32),
    scales: bool,
    title: &str,
    content: &str,
) -> String {
    let title = escape(title);
    let zoom = if scales { 2 } else { 1 };
    match place {
        Place::File => format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\
             <title>{title}</title><style>{}</style><rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>{content}</svg>\n",
            width * zoom,
            height.saturating_mul(zoom),
            style()
        ),
        Place::Page if scales => format!(
            "<svg class=\"curve\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">{content}</svg>\n"
        ),
        Place::Page => format!(
            "<svg class=\"bars\" width=\"100%\" height=\"{height}\" role=\"img\" aria-label=\"{title}\">{content}</svg>\n"
        ),
    }
}
