//! `model predict --plot`: the same question over a range, drawn.

use std::collections::BTreeMap;

use serde::Serialize;

use super::answer::{Answer, answer, answers};
use super::args::{PredictArgs, QuestionArgs, Sweep};
use super::arrangement::Arrangement;
use super::output::{Table, progress};
use super::question::Question;
use super::{CliError, refuse};
use crate::plot::{Axis, Chart, Stroke, svg};

/// Where sweeps over sizes begin.
const NODES_MIN: f64 = 1024.0;
/// Sizes of a sweep in a factor of two.
const SIZES_PER_OCTAVE: f64 = 2.0;
const SHARES: u32 = 16;

#[derive(Debug, Serialize)]
pub(super) struct SweepReport {
    over: &'static str,
    #[serde(skip)]
    title: String,
    /// Data levels in the machine's order.
    #[serde(skip)]
    levels: Vec<String>,
    rows: Vec<SweepRow>,
}

#[derive(Debug, Serialize)]
struct SweepRow {
    /// Number of nodes, or share of the cache.
    at: f64,
    layout: String,
    ns: f64,
    speedup: f64,
    misses: BTreeMap<String, f64>,
}

pub(super) fn run(args: &PredictArgs, question: &Question<'_>) -> Result<SweepReport, CliError> {
    let structure = &args.question.structure;
    let (over, title) = match args.sweep {
        Sweep::Nodes => ("nodes", question.describe_operation()),
        Sweep::Coloured => {
            let cache = &question.colour_cache()?.name;
            ("colour_share", format!("hot nodes in a part of {cache}"))
        }
    };
    let mut report = SweepReport {
        over,
        title: format!("{structure}, {title}"),
        levels: Vec::new(),
        rows: Vec::new(),
    };
    match args.sweep {
        Sweep::Nodes => report.over_nodes(args, question)?,
        Sweep::Coloured => report.over_shares(args, question)?,
    }
    Ok(report)
}

/// Numbers of keys up to the largest, about equally far from each other in their logarithms.
fn sizes(largest: f64) -> Vec<u32> {
    let octaves = (largest / NODES_MIN).log2().max(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sizes of structures, which have 32 bits"
    )]
    let whole = |number: f64| number.round() as u32;
    let steps = whole((octaves * SIZES_PER_OCTAVE).ceil());
    let size =
        |step| largest * (NODES_MIN / largest).powf(f64::from(step) / f64::from(steps.max(1)));
    (0..=steps).rev().map(|step| whole(size(step))).collect()
}

impl SweepReport {
    fn over_nodes(&mut self, args: &PredictArgs, question: &Question<'_>) -> Result<(), CliError> {
        if question.structure.is_none() {
            return refuse("--plot runs over sizes, and this structure has one: the file's");
        }
        let sizes = sizes(question.key_count as f64);
        // An answer takes as long as there are nodes.
        let bar = progress(sizes.iter().copied().map(u64::from).sum());
        let mut arrangements = vec![args.baseline];
        arrangements.extend(&args.layouts.layout);
        for keys in sizes {
            bar.set_message(format!("{keys} nodes"));
            let nodes = Some(keys);
            let smaller = QuestionArgs {
                nodes,
                ..args.question.clone()
            };
            let smaller = Question::new(&smaller, question.machine, args.cost.tier)?;
            let answers = answers(&smaller, &arrangements, &args.cost)?;
            self.add(f64::from(keys), &answers[1..], answers[0].prediction.ns);
            bar.inc(u64::from(keys));
        }
        Ok(())
    }

    fn over_shares(&mut self, args: &PredictArgs, question: &Question<'_>) -> Result<(), CliError> {
        let baseline_ns = answer(question, args.baseline, &args.cost)?.prediction.ns;
        let coloured = |layout: &Arrangement| match *layout {
            Arrangement::Plain(layout) | Arrangement::Coloured(layout) => {
                Some(Arrangement::Coloured(layout))
            }
            Arrangement::Eliminated | Arrangement::Given => None,
        };
        let coloured: Vec<Arrangement> = args.layouts.layout.iter().filter_map(coloured).collect();
        let mut question = question.clone();
        let bar = progress(u64::from(SHARES));
        for step in 0..SHARES {
            question.colour_share = f64::from(step) / f64::from(SHARES);
            bar.set_message(format!("a share of {}", question.colour_share));
            let answers = answers(&question, &coloured, &args.cost)?;
            self.add(question.colour_share, &answers, baseline_ns);
            bar.inc(1);
        }
        Ok(())
    }

    fn add(&mut self, at: f64, answers: &[Answer], baseline_ns: f64) {
        for answer in answers {
            let levels = &answer.prediction.levels;
            self.levels = levels.iter().map(|level| level.name.clone()).collect();
            let misses = levels
                .iter()
                .map(|level| (level.name.clone(), level.misses));
            self.rows.push(SweepRow {
                at,
                layout: answer.arrangement.to_string(),
                ns: answer.prediction.ns,
                speedup: answer.speedup(baseline_ns),
                misses: misses.collect(),
            });
        }
    }

    /// A chart of the nanoseconds (or speedups), and for sizes one of the misses of each level of
    /// the caches, above each other.
    pub(super) fn to_svg(&self) -> Result<String, CliError> {
        let mut charts = Vec::new();
        if self.over == "nodes" {
            charts.push(self.chart("ns an operation", |row| Some(row.ns)));
            for level in &self.levels {
                let misses = |row: &SweepRow| row.misses.get(level).copied();
                charts.push(self.chart(&format!("{level} misses an operation"), misses));
            }
        } else {
            charts.push(self.chart("speedup", |row| Some(row.speedup)));
        }
        svg(&charts).map_err(|error| format!("cannot draw: {error}").into())
    }

    fn chart(&self, label: &str, value: impl Fn(&SweepRow) -> Option<f64>) -> Chart {
        let x = match self.over {
            "nodes" => Axis::PowersOfTwo("nodes"),
            _ => Axis::Linear("share of the cache for hot nodes"),
        };
        let mut chart = Chart::new(&self.title, x, label);
        // Each size or share has a row for each layout.
        let first = self
            .rows
            .iter()
            .take_while(|row| row.at.to_bits() == self.rows[0].at.to_bits());
        for SweepRow { layout, .. } in first {
            let own = self.rows.iter().filter(|row| row.layout == *layout);
            let points = own.filter_map(|row| Some((row.at, value(row)?)));
            chart = chart.series(layout, Stroke::Solid, points);
        }
        chart
    }

    pub(super) fn to_table(&self) -> Table {
        let mut table = Table::default();
        let titles = [self.over, "layout", "ns", "speedup"].map(str::to_owned);
        let levels = self.levels.iter().map(|level| format!("misses_{level}"));
        table.row(titles.into_iter().chain(levels));
        for row in &self.rows {
            let misses = self.levels.iter().filter_map(|level| row.misses.get(level));
            let (ns, speedup) = (row.ns.to_string(), row.speedup.to_string());
            let first = [row.at.to_string(), row.layout.clone(), ns, speedup];
            table.row(first.into_iter().chain(misses.map(f64::to_string)));
        }
        table
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
