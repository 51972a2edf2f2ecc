//! Any data gives a picture; a picture shows what it is given.

use super::axis::{Axis, short_number};
use super::{Bars, Plot, svg};
use quickcheck::quickcheck;

/// Attribute values and texts of a document, after checking that it is well-formed XML of the kind
/// that is written here: elements without prefixes, attributes in double quotes, no comments.
fn parsed(document: &str) -> (Vec<(String, String)>, Vec<String>) {
    let (mut attributes, mut texts, mut open) = (Vec::new(), Vec::new(), Vec::new());
    let mut rest = document.trim_end();
    while !rest.is_empty() {
        let start = rest.find('<').expect("text after the last element");
        let text = &rest[..start];
        assert!(well_escaped(text), "{text:?}");
        if !text.trim().is_empty() {
            texts.push(text.to_owned());
        }
        let end = start + rest[start..].find('>').expect("an unclosed tag");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (tag, is_closed) = match tag.strip_suffix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        let (name, mut inside) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(name.chars().all(|c| c.is_ascii_lowercase()), "{name:?}");
        while !inside.trim().is_empty() {
            let (key, value) = inside.split_once("=\"").expect("an attribute");
            let (value, next) = value.split_once('"').expect("a closed attribute");
            assert!(well_escaped(value) && !value.contains('<'), "{value:?}");
            attributes.push((key.trim().to_owned(), value.to_owned()));
            inside = next;
        }
        if !is_closed {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    (attributes, texts)
}

fn well_escaped(text: &str) -> bool {
    let entities = ["amp;", "lt;", "gt;", "quot;", "#39;"];
    let mut parts = text.split('&');
    let first = parts.next().unwrap_or_default();
    !first.contains('>')
        && parts.all(|part| entities.iter().any(|entity| part.starts_with(entity)))
        && !text.chars().any(|c| c.is_control() && c != '\n')
}

/// Asserts that all coordinates are finite and on the sheet, or a little beside it; gives texts
/// back.
fn checked(document: &str) -> Vec<String> {
    assert!(document.starts_with("<svg ") && document.ends_with("</svg>\n"));
    let (attributes, texts) = parsed(document);
    for (key, value) in attributes {
        let numbers: Vec<&str> = match key.as_str() {
            "x" | "y" | "width" | "height" | "font-size" => vec![value.as_str()],
            "d" => value
                .split(|c: char| c.is_ascii_alphabetic() || c == ' ')
                .filter(|part| !part.is_empty())
                .collect(),
            _ => continue,
        };
        for number in numbers {
            let parsed: f64 = number.parse().unwrap_or(f64::NAN);
            assert!((-20.0..2000.0).contains(&parsed), "{key}={value:?}");
        }
    }
    texts
}

fn axes() -> [Axis; 4] {
    [
        Axis::linear("x"),
        Axis::linear("x").from_zero(),
        Axis::logarithmic("x"),
        Axis::powers_of_two("x"),
    ]
}

#[test]
fn hostile_numbers_leave_gaps() {
    let extremes = [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        0.0,
        -0.0,
        -1.0,
        1e300,
        1e15 + 1.0,
    ];
    for x_axis in axes() {
        for y_axis in axes() {
            for &a in &extremes {
                for &b in &extremes {
                    let svg = Plot::new("t")
                        .x_axis(x_axis.clone())
                        .y_axis(y_axis.clone())
                        .line("a", &[(a, b), (1.0, 1.0), (b, a)])
                        .dashed_line("b", &[(a, a)])
                        .points("c", &[(b, b), (2.0, a)])
                        .to_svg();
                    checked(&svg);
                }
            }
        }
    }
    for &a in &extremes {
        checked(
            &Bars::new("t", "y", &["g", "h"])
                .bars("a", &[a, 1.0, a])
                .to_svg(),
        );
    }
}

#[test]
fn nothing_is_a_picture_too() {
    assert!(checked(&Plot::new("").to_svg()).contains(&"no data".to_owned()));
    assert!(checked(&Plot::new("t").line("a", &[]).to_svg()).contains(&"a".to_owned()));
    assert!(checked(&Bars::new("t", "y", &[]).to_svg()).contains(&"no data".to_owned()));
    let none = Bars::new("t", "y", &["g"]).bars("a", &[]);
    assert!(checked(&none.to_svg()).contains(&"no data".to_owned()));
}

#[test]
fn texts_are_escaped() {
    let odd = "a<b>&\"c'\u{0}\u{ffff}\n]]>";
    let svg = Plot::new(odd)
        .x_axis(Axis::linear(odd))
        .line(odd, &[(0.0, 0.0), (1.0, 1.0)])
        .to_svg();
    let texts = checked(&svg);
    let escaped = svg::escaped(odd);
    assert_eq!(
        escaped,
        "a&lt;b&gt;&amp;&quot;c&#39;\u{fffd}\u{fffd} ]]&gt;"
    );
    // Title twice, axis, legend; the drawn title is broken into lines at spaces.
    assert_eq!(texts.iter().filter(|&text| *text == escaped).count(), 4);
}

#[test]
fn lines_go_where_their_points_are() {
    let svg = Plot::new("t")
        .y_axis(Axis::linear("y").from_zero())
        .line("up", &[(0.0, 0.0), (1.0, 1.0)])
        .line("gap", &[(0.0, 1.0), (0.5, f64::NAN), (1.0, 0.0)])
        .to_svg();
    let (attributes, _) = parsed(&svg);
    let paths: Vec<&String> = attributes
        .iter()
        .filter(|(key, value)| key == "d" && value.contains('L') && !value.contains('z'))
        .map(|(_, value)| value)
        .collect();
    let numbers = |path: &str| -> Vec<f64> {
        path.split(['M', 'L', ' '])
            .filter(|part| !part.is_empty())
            .map(|part| part.parse().unwrap())
            .collect()
    };
    // The last two paths with a line are the legend's; before them, the one line that has no gap.
    let line = numbers(paths[paths.len() - 3]);
    assert_eq!(line.len(), 4);
    assert!(line[0] < line[2] && line[1] > line[3], "{line:?}");
}

#[test]
fn bars_stand_on_the_axis_and_say_how_high_they_are() {
    let svg = Bars::new("t", "y", &["g", "h"])
        .bars("a", &[1.0, 2.0])
        .bars("b", &[0.25, f64::NAN])
        .to_svg();
    let texts = checked(&svg);
    for text in ["1", "2", "0.25", "g", "h", "a", "b"] {
        assert!(texts.iter().any(|other| other == text), "{text}");
    }
    let heights: Vec<f64> = svg
        .lines()
        .filter(|line| line.contains("fill-opacity"))
        .map(|line| {
            let from = line.find("height=\"").unwrap() + 8;
            let end = from + line[from..].find('"').unwrap();
            line[from..end].parse().unwrap()
        })
        .collect();
    // Three bars, then two samples.
    assert_eq!(heights.len(), 5);
    assert!((heights[1] / heights[0] - 2.0).abs() < 0.01);
    assert!((heights[0] / heights[2] - 4.0).abs() < 0.02);
}

#[test]
fn ticks_are_round_and_inside() {
    let labels = |axis: Axis, values: &[f64]| -> Vec<String> {
        let range = axis.range(values.iter().copied());
        let ticks = range.ticks();
        assert!(ticks.len() <= 13, "{ticks:?}");
        for tick in &ticks {
            let place = range.place(tick.value);
            assert!((-1e-9..=1.0 + 1e-9).contains(&place), "{tick:?}");
        }
        ticks.into_iter().map(|tick| tick.label).collect()
    };
    let linear = Axis::linear("").from_zero();
    assert_eq!(labels(linear, &[1.0, 4.9]), ["0", "1", "2", "3", "4", "5"]);
    assert_eq!(
        labels(Axis::linear(""), &[0.1, 0.35]),
        ["0.10", "0.15", "0.20", "0.25", "0.30", "0.35"]
    );
    assert_eq!(
        labels(Axis::powers_of_two(""), &[384.0, 24_576.0]),
        ["512", "1024", "2048", "4096", "8192", "16384"]
    );
    assert_eq!(
        labels(Axis::logarithmic(""), &[1.0, 1e6]),
        ["10⁰", "10¹", "10²", "10³", "10⁴", "10⁵", "10⁶"]
    );
    assert_eq!(
        labels(Axis::logarithmic(""), &[20.0, 200.0]),
        ["20", "50", "100", "200"]
    );
    assert!(labels(Axis::logarithmic(""), &[5e-324, 1e308]).len() > 2);
    assert_eq!(labels(Axis::linear(""), &[7.0, 7.0]).len(), 7);
}

#[test]
fn numbers_are_short() {
    for (value, text) in [
        (0.0, "0"),
        (1.0, "1"),
        (1.8205, "1.82"),
        (12.345, "12.3"),
        (-0.5, "-0.5"),
        (123.4, "123"),
        (262_144.0, "262144"),
        (0.051, "0.051"),
        (1.5e9, "1.500e9"),
        (1e-7, "1e-7"),
    ] {
        assert_eq!(short_number(value), text);
    }
}

quickcheck! {
    fn any_data_gives_a_document(points: Vec<(f64, f64)>, name: String, scales: (u8, u8)) -> bool {
        let axis = |scale: u8| axes()[usize::from(scale % 4)].clone();
        let plot = Plot::new(&name)
            .x_axis(axis(scales.0))
            .y_axis(axis(scales.1))
            .line(&name, &points);
        checked(&plot.to_svg());
        let heights: Vec<f64> = points.iter().map(|&(x, _)| x).collect();
        checked(&Bars::new(&name, &name, &[&name]).bars(&name, &heights).to_svg());
        true
    }
}
