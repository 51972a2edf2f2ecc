//! Costs against the size of a structure: the measured curve, and the predicted one beside it.
//!
//! Plain data, so that whoever draws needs no workload; and read off comparisons by their names, so
//! that a curve can be drawn of a kept `report.jsonl` as well as of a run. A comparison is a point
//! when its name is
//!
//! ```text
//! FAMILY_nLOG2_LINE_vs_measured         lookup_n21_btreemap_vs_measured
//! ```
//!
//! with the prediction as `ours` and the measurement as `theirs`, as in all comparisons with the
//! clock.

use crate::workload::Comparison;

/// How names of points end.
const SUFFIX: &str = "_vs_measured";

/// Some lines in one picture: the same operation on several structures.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// What the names of its comparisons begin with: `lookup`.
    pub name: String,
    /// The unit of all values: `ns`.
    pub unit: String,
    /// One line a structure, in the order of the report.
    pub lines: Vec<Curve>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The structure, as names of comparisons call it: `btreemap`.
    pub name: String,
    /// By ascending `n`.
    pub points: Vec<CurvePoint>,
}

/// The cost at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Objects in the structure.
    pub n: u64,
    /// What the clock said, in the curves' unit.
    pub measured: f64,
    /// What the model said, in the same unit; `None` when it said nothing that is a number.
    pub predicted: Option<f64>,
}

/// The name of a point's comparison.
pub fn point_name(family: &str, log2_n: u32, line: &str) -> String {
    format!("{family}_n{log2_n}_{line}{SUFFIX}")
}

impl Curves {
    /// All curves that `comparisons` hold points of, each in the place of its first point.
    pub fn of(comparisons: &[Comparison]) -> Vec<Curves> {
        let figures = comparisons.iter().map(|comparison| {
            let Comparison {
                name,
                unit,
                ours,
                theirs,
                ..
            } = comparison;
            (name.as_str(), *unit, *ours, *theirs)
        });
        Curves::of_figures(figures)
    }

    /// The same of rows from anywhere: names, units, predictions and measurements.
    pub fn of_figures<'a>(
        figures: impl IntoIterator<Item = (&'a str, &'a str, f64, f64)>,
    ) -> Vec<Curves> {
        let mut all: Vec<Curves> = Vec::new();
        for (name, unit, predicted, measured) in figures {
            let Some((family, n, line)) = parse(name) else {
                continue;
            };
            let curves = find_or_add(
                &mut all,
                |curves| curves.name == family,
                || Curves {
                    name: family.to_owned(),
                    unit: unit.to_owned(),
                    lines: Vec::new(),
                },
            );
            let curve = find_or_add(
                &mut curves.lines,
                |curve| curve.name == line,
                || Curve {
                    name: line.to_owned(),
                    points: Vec::new(),
                },
            );
            curve.points.push(CurvePoint {
                n,
                measured,
                predicted: predicted.is_finite().then_some(predicted),
            });
        }
        for curve in all.iter_mut().flat_map(|curves| &mut curves.lines) {
            curve.points.sort_by_key(|point| point.n);
        }
        all
    }
}

/// Whether `name` is that of a point.
pub fn is_point(name: &str) -> bool {
    parse(name).is_some()
}

/// Family, number of objects and line, if `name` is that of a point.
fn parse(name: &str) -> Option<(&str, u64, &str)> {
    let (family, rest) = name.strip_suffix(SUFFIX)?.split_once("_n")?;
    let (log2_n, line) = rest.split_once('_')?;
    Some((family, 1_u64.checked_shl(log2_n.parse().ok()?)?, line))
}

/// The first of `items` that is the one asked for; at the end, a new one.
fn find_or_add<T>(
    items: &mut Vec<T>,
    is_it: impl Fn(&T) -> bool,
    new: impl FnOnce() -> T,
) -> &mut T {
    let index = items.iter().position(is_it).unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    });
    &mut items[index]
}
