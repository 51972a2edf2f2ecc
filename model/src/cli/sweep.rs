//! `model predict --plot`: the same question over a range, drawn.

use std::collections::BTreeMap;
use std::io::Write;

use serde::Serialize;

use super::CliError;
use super::answer::{Answer, answer, answers};
use super::args::{PlaceArgs, PredictArgs, Sweep};
use super::arrangement::Arrangement;
use super::output::{Progress, write_csv};
use super::predict::speedup;
use super::question::Question;
use crate::plot::{Axis, Chart, Stroke, svg};

/// Where sweeps over sizes begin.
const NODES_MIN: f64 = 1024.0;
/// Sizes of a sweep in a factor of two.
const SIZES_PER_OCTAVE: f64 = 2.0;
/// Steps of a sweep over shares.
const SHARES: u32 = 16;

/// A sweep's values.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SweepReport {
    over: &'static str,
    #[serde(skip)]
    title: String,
    rows: Vec<SweepRow>,
}

#[derive(Clone, Debug, Serialize)]
struct SweepRow {
    /// Number of nodes, or share of the cache.
    at: f64,
    layout: String,
    ns: f64,
    speedup: f64,
    misses: BTreeMap<String, f64>,
    /// Data levels in the machine's order.
    #[serde(skip)]
    levels: Vec<String>,
}

impl SweepRow {
    fn of(at: f64, answer: &Answer, baseline_ns: f64) -> SweepRow {
        SweepRow {
            at,
            layout: answer.arrangement.to_string(),
            ns: answer.prediction.ns,
            speedup: speedup(baseline_ns, answer.prediction.ns),
            misses: answer
                .levels
                .iter()
                .map(|level| (level.name.clone(), level.misses))
                .collect(),
            levels: answer
                .levels
                .iter()
                .map(|level| level.name.clone())
                .collect(),
        }
    }
}

/// Asks for each point of the sweep.
pub(super) fn run(args: &PredictArgs, question: &Question<'_>) -> Result<SweepReport, CliError> {
    match args.sweep {
        Sweep::Nodes => over_nodes(args, question),
        Sweep::Coloured => over_shares(args, question),
    }
}

fn over_nodes(args: &PredictArgs, question: &Question<'_>) -> Result<SweepReport, CliError> {
    let sizes = sizes(question.key_count() as f64);
    let mut rows = Vec::new();
    // An answer takes as long as there are nodes.
    let progress = Progress::new(sizes.iter().copied().map(u64::from).sum());
    let mut done = 0;
    let mut arrangements = vec![args.baseline];
    arrangements.extend(&args.layout);
    for keys in sizes {
        progress.show(&format!("{keys} nodes"));
        let Some(smaller) = question.with_keys(keys) else {
            return Err(CliError::Request(
                "--plot runs over sizes, and this structure has one: the file's".to_owned(),
            ));
        };
        let answers = answers(&smaller?, &arrangements, &args.cost, 0)?;
        let baseline_ns = answers[0].prediction.ns;
        let drawn = answers[1..].iter();
        rows.extend(drawn.map(|answer| SweepRow::of(f64::from(keys), answer, baseline_ns)));
        done += u64::from(keys);
        progress.set(done);
    }
    Ok(SweepReport {
        over: "nodes",
        title: format!(
            "{}, {}",
            args.question.structure,
            question.describe_operation()
        ),
        rows,
    })
}

/// Numbers of keys up to the largest, about equally far from each other in their logarithms.
fn sizes(largest: f64) -> Vec<u32> {
    let octaves = (largest / NODES_MIN).log2().max(0.0);
    let steps = (octaves * SIZES_PER_OCTAVE).ceil();
    let mut sizes = Vec::new();
    let mut step = 0.0;
    while step <= steps {
        let size = if steps > 0.0 {
            NODES_MIN * (largest / NODES_MIN).powf(step / steps)
        } else {
            largest
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most the number of keys of a structure, which has 32 bits"
        )]
        sizes.push(size.round() as u32);
        step += 1.0;
    }
    sizes
}

fn over_shares(args: &PredictArgs, question: &Question<'_>) -> Result<SweepReport, CliError> {
    let baseline_ns = answer(question, args.baseline, &args.cost)?.prediction.ns;
    let cache = question.colour_cache()?;
    let coloured = args.layout.iter().filter_map(|layout| layout.layout());
    let coloured: Vec<Arrangement> = coloured.map(Arrangement::Coloured).collect();
    let mut rows = Vec::new();
    let progress = Progress::new(u64::from(SHARES));
    for step in 0..SHARES {
        let share = f64::from(step) / f64::from(SHARES);
        progress.show(&format!("a share of {share}"));
        let place = PlaceArgs {
            colour_share: share,
            ..question.place().clone()
        };
        let answers = answers(&question.in_place(&place), &coloured, &args.cost, 0)?;
        let drawn = answers.iter();
        rows.extend(drawn.map(|answer| SweepRow::of(share, answer, baseline_ns)));
        progress.set(u64::from(step) + 1);
    }
    Ok(SweepReport {
        over: "colour_share",
        title: format!(
            "{}, hot nodes in a part of {}",
            args.question.structure, cache.name
        ),
        rows,
    })
}

impl SweepReport {
    /// A chart of the nanoseconds (or speedups), and for sizes one of the misses of each level of
    /// the caches, above each other.
    pub(super) fn to_svg(&self) -> Result<String, CliError> {
        let mut charts = Vec::new();
        if self.over == "nodes" {
            charts.push(self.chart("ns an operation", |row| Some(row.ns)));
            let levels = self.rows.first().map(|row| row.levels.as_slice());
            for level in levels.unwrap_or_default() {
                let misses = |row: &SweepRow| row.misses.get(level).copied();
                charts.push(self.chart(&format!("{level} misses an operation"), misses));
            }
        } else {
            charts.push(self.chart("speedup", |row| Some(row.speedup)));
        }
        svg(&charts).map_err(|error| CliError::Request(format!("cannot draw: {error}")))
    }

    fn chart(&self, label: &str, value: impl Fn(&SweepRow) -> Option<f64>) -> Chart {
        let x = if self.over == "nodes" {
            Axis::powers_of_two("nodes")
        } else {
            Axis::linear("share of the cache for hot nodes")
        };
        let mut chart = Chart::new(&self.title, x, label);
        let mut names: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !names.contains(&row.layout.as_str()) {
                names.push(&row.layout);
            }
        }
        for name in names {
            let own = self.rows.iter().filter(|row| row.layout == name);
            let points = own.filter_map(|row| Some((row.at, value(row)?)));
            chart = chart.series(name, Stroke::Solid, points);
        }
        chart
    }

    pub(super) fn csv(&self, out: &mut dyn Write) -> Result<(), CliError> {
        let levels = self.rows.first().map(|row| row.levels.as_slice());
        let levels = levels.unwrap_or_default();
        let titles = [self.over, "layout", "ns", "speedup"].map(str::to_owned);
        let misses = levels.iter().map(|level| format!("misses_{level}"));
        write_csv(out, titles.into_iter().chain(misses))?;
        for row in &self.rows {
            let misses = levels.iter().map(|level| {
                row.misses
                    .get(level)
                    .map(f64::to_string)
                    .unwrap_or_default()
            });
            let first = [
                row.at.to_string(),
                row.layout.clone(),
                row.ns.to_string(),
                row.speedup.to_string(),
            ];
            write_csv(out, first.into_iter().chain(misses))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_reach_the_largest() {
        assert_eq!(sizes(100.0), [100]);
        assert_eq!(sizes(1024.0), [1024]);
        assert_eq!(sizes(4096.0), [1024, 1448, 2048, 2896, 4096]);
        let many = sizes(2_000_000.0);
        assert!(many.is_sorted() && many.last() == Some(&2_000_000) && many.len() == 23);
    }
}
