//! Figures as pictures and as tables in Markdown.

use std::error::Error;

use ccmodel::plot::{Axis, Chart, Stroke, svg};

use super::start::StartRow;
use super::{Figure, FigureRow};

/// A cost of a TLB miss, to show what one would do; the thesis names none.
const ASSUMED_REFILL_CYCLES: f64 = 50.0;

impl Figure {
    pub(super) fn to_svg(&self) -> Result<String, Box<dyn Error>> {
        let title = format!("Figure {}: {}, again", self.number, self.title);
        let names = || Axis::Names(self.rows.iter().map(|row| row.layout.to_owned()).collect());
        type Across = fn(usize, &FigureRow) -> f64;
        let (axis, across): (Axis, Across) = match self.number {
            "3-4" => (names(), |i, _| i as f64),
            "3-5" => {
                let name = "nodes with sets of their own";
                (Axis::PowersOfTwo(name), |_, row| row.coloured_nodes as f64)
            }
            _ => (Axis::PowersOfTwo("nodes"), |_, row| row.nodes as f64),
        };
        // Layouts have no order that a line could show.
        let (stroke, dashed) = match self.number {
            "3-4" => (Stroke::Points, Stroke::Points),
            _ => (Stroke::Solid, Stroke::Dashed),
        };
        let series = |of: &dyn Fn(&FigureRow) -> f64| -> Vec<(f64, f64)> {
            let rows = self.rows.iter().enumerate();
            rows.map(|(i, row)| (across(i, row), of(row))).collect()
        };
        let stated = |row: &FigureRow, end: usize| row.stated.map_or(f64::NAN, |ends| ends[end]);
        let formulas = series(&|row| row.formula_speedup);
        let predicted = series(&FigureRow::predicted_speedup);
        let simulated = series(&|row| row.simulated_speedup(0.0));
        let with_tlb = series(&|row| row.simulated_speedup(ASSUMED_REFILL_CYCLES));
        let [least, most] = [0, 1].map(|end| series(&|row| stated(row, end)));
        let chart = Chart::new(&title, axis, "speedup")
            .series(
                "thesis: formulas, always-missing baseline",
                stroke,
                formulas,
            )
            .series("this model, random baseline", stroke, predicted)
            .series("simulated, random baseline", Stroke::Points, simulated)
            .series(
                "simulated, TLB misses at an assumed 50 cycles",
                stroke,
                with_tlb,
            )
            .series(
                "thesis: measured, as its text implies, least",
                dashed,
                least,
            )
            .series("the same, most", dashed, most);
        svg(&[chart])
    }

    /// A Markdown table of speedups, then one of the misses behind them.
    pub(super) fn to_markdown(&self) -> String {
        let mut text = format!("### Figure {}: {}\n\n", self.number, self.title);
        text += "| layout | nodes | coloured | `m_L2` by the formulas | speedup by the formulas | \
                 the same, true baseline | thesis measured | this model | simulated | \
                 with TLB misses at 50 cycles |\n\
                 |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
        for row in &self.rows {
            let measured = row.stated.map_or("-".to_owned(), |[least, most]| {
                format!("{least:.2}-{most:.2}")
            });
            let (layout, nodes, coloured_nodes) = (row.layout, row.nodes, row.coloured_nodes);
            text += &format!(
                "| {layout} | {nodes} | {coloured_nodes} | {:.3} | {:.2} | {:.2} | {measured} | \
                 {:.2} | {:.2} | {:.2} |\n",
                row.formula_rate,
                row.formula_speedup,
                row.formula_true_speedup,
                row.predicted_speedup(),
                row.simulated_speedup(0.0),
                row.simulated_speedup(ASSUMED_REFILL_CYCLES),
            );
        }
        text += "\n| a search in | nodes | coloured | L1 misses: predicted | simulated | \
                 L2 misses: by the formulas | predicted | simulated | TLB misses: predicted | \
                 simulated |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n";
        let mut costs = |row: &FigureRow| {
            let (layout, nodes, coloured_nodes) = (row.layout, row.nodes, row.coloured_nodes);
            let formula_misses = row.formula_rate * (nodes as f64 + 1.0).log2();
            let (predicted, simulated) = (row.predicted, row.simulated);
            text += &format!(
                "| {layout} | {nodes} | {coloured_nodes} | {:.2} | {:.2} | {formula_misses:.2} | \
                 {:.2} | {:.2} | {:.2} | {:.2} |\n",
                predicted.l1_misses,
                simulated.l1_misses,
                predicted.l2_misses,
                simulated.l2_misses,
                predicted.tlb_misses,
                simulated.tlb_misses,
            );
        };
        let mut last_nodes = 0;
        for row in &self.rows {
            if std::mem::replace(&mut last_nodes, row.nodes) != row.nodes {
                costs(&FigureRow {
                    layout: "random",
                    coloured_nodes: 0,
                    formula_rate: 1.0,
                    predicted: row.predicted_baseline,
                    simulated: row.simulated_baseline,
                    ..row.clone()
                });
            }
            costs(row);
        }
        text
    }
}

/// [`start_up`](super::start::start_up) as a Markdown table.
pub(super) fn start_up_markdown(rows: &[StartRow]) -> String {
    let head = "### Section 3.3.1: misses a search from cold, no block evicted\n\n\
                | searches | at worst, by the formula | random searches, expected | \
                random searches, counted |\n|---:|---:|---:|---:|\n";
    let row = |row: &StartRow| {
        let (searches, worst, expected) = (row.searches, row.worst_case, row.expected);
        format!(
            "| {searches} | {worst:.2} | {expected:.2} | {:.2} |\n",
            row.counted
        )
    };
    head.to_owned() + &rows.iter().map(row).collect::<String>()
}
