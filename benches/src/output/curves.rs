//! Costs against the size of a structure, from the names of comparisons:
//!
//! ```text
//! FAMILY_nLOG2_LINE_vs_measured         lookup_n21_btreemap_vs_measured
//! ```
//!
//! The prediction is `ours`, the measurement `theirs`.

use crate::workload::{Comparison, POINT_SUFFIX};

/// Lines in one picture: the same operation on several structures.
#[derive(Clone, Debug, PartialEq)]
pub struct Curves {
    /// The beginning of the names of its comparisons: `lookup`.
    pub name: String,
    /// The unit of all values: `ns`.
    pub unit: String,
    /// One line for each structure, in the order of the report.
    pub lines: Vec<Curve>,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The structure: `btreemap`.
    pub name: String,
    /// By ascending `n`.
    pub points: Vec<CurvePoint>,
}

/// The cost at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Objects in the structure.
    pub n: u64,
    /// What was measured.
    pub measured: f64,
    /// What the model predicts, if that is a number.
    pub predicted: Option<f64>,
}

impl Curves {
    /// All curves of `rows`, each in the place of its first point.
    pub fn of(rows: &[&Comparison]) -> Vec<Curves> {
        let mut all: Vec<Curves> = Vec::new();
        for row in rows {
            let Some((family, n, line)) = parse(&row.name) else {
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
            let index = lines.iter().position(|curve| curve.name == line);
            let index = index.unwrap_or_else(|| {
                lines.push(Curve {
                    name: line.to_owned(),
                    points: Vec::new(),
                });
                lines.len() - 1
            });
            lines[index].points.push(CurvePoint {
                n,
                measured: row.theirs,
                predicted: row.ours.is_finite().then_some(row.ours),
            });
        }
        for curve in all.iter_mut().flat_map(|curves| &mut curves.lines) {
            curve.points.sort_by_key(|point| point.n);
        }
        all
    }

    /// What the picture is called.
    pub fn title(&self) -> String {
        format!("{} against size", self.name.replace('_', " "))
    }
}

/// Whether `name` is that of a point.
pub fn is_point(name: &str) -> bool {
    parse(name).is_some()
}

/// Family, number of objects and line, if `name` is that of a point.
fn parse(name: &str) -> Option<(&str, u64, &str)> {
    let (family, rest) = name.strip_suffix(POINT_SUFFIX)?.split_once("_n")?;
    let (log2_n, line) = rest.split_once('_')?;
    Some((family, 1_u64.checked_shl(log2_n.parse().ok()?)?, line))
}
