//! The curves of the suite `scaling`: read off the names of comparisons.
//!
//! `cargo test --workspace` leaves it out, because it needs the rivals:
//! `cargo test -p measure --test scaling`.

use measure::curves::{CurvePoint, Curves, point_name};
use measure::workload::Comparison;

fn comparison(name: String, ours: f64, theirs: f64) -> Comparison {
    Comparison {
        suite: "scaling",
        name,
        ours,
        theirs,
        ratio: 1.0,
        unit: "ns",
        rival: "the clock".to_owned(),
        runs: 5,
        ..Comparison::default()
    }
}

#[test]
fn points_are_sorted_into_curves_and_lines() {
    let comparisons = [
        comparison(point_name("lookup", 21, "btreemap"), 300.0, 310.0),
        comparison("lookup_n21_ctreemap_vs_btreemap".to_owned(), 1.0, 2.0),
        comparison(point_name("lookup", 21, "ctreemap"), 150.0, 140.0),
        comparison(point_name("lookup", 10, "btreemap"), f64::NAN, 20.0),
        comparison(point_name("walk", 10, "list"), 1.0, 2.0),
        comparison("predict_bst_2m_veb_vs_measured".to_owned(), 1.0, 2.0),
        comparison("lookup_nine_btreemap_vs_measured".to_owned(), 1.0, 2.0),
        comparison("lookup_n99_btreemap_vs_measured".to_owned(), 1.0, 2.0),
    ];
    let curves = Curves::of(&comparisons);
    let names: Vec<_> = curves.iter().map(|curves| curves.name.as_str()).collect();
    assert_eq!(names, ["lookup", "walk"]);
    let lines: Vec<_> = curves[0]
        .lines
        .iter()
        .map(|line| (line.name.as_str(), line.points.len()))
        .collect();
    assert_eq!(lines, [("btreemap", 2), ("ctreemap", 1)]);
    let small = CurvePoint {
        n: 1 << 10,
        measured: 20.0,
        predicted: None,
    };
    let large = CurvePoint {
        n: 1 << 21,
        measured: 310.0,
        predicted: Some(300.0),
    };
    assert_eq!(curves[0].lines[0].points, [small, large]);
    assert_eq!(curves[1].unit, "ns");
    assert!(Curves::of(&[]).is_empty());
}
