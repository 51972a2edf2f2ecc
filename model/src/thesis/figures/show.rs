//! Figures as pictures, as tables for people, and as CSV.

use std::fmt::Write as _;

use super::{Figure, FigureRow, StartRow};
use crate::plot::{Axis, Bars, Plot};

/// A cost of a TLB miss, to show what one would do; the thesis names none.
const ASSUMED_REFILL_CYCLES: f64 = 50.0;

const FORMULAS: &str = "thesis: formulas, always-missing baseline";
const STATED_LOW: &str = "thesis: measured, as its text implies, least";
const STATED_HIGH: &str = "thesis: measured, as its text implies, most";
const STATED: &str = "thesis: measured, as its text implies";
const PREDICTED: &str = "this crate, random baseline";
const SIMULATED: &str = "simulated, random baseline";
const REFILLED: &str = "simulated, TLB misses at an assumed 50 cycles";

impl Figure {
    /// The file name's stem, `fig-3-4`.
    pub fn stem(&self) -> String {
        format!("fig-{}", self.number)
    }

    /// The picture: bars for figure 3-4, lines for the others.
    pub fn to_svg(&self) -> String {
        let title = format!("Figure {}: {}, again", self.number, lower_first(self.title));
        let has_band = self.stated.high > self.stated.low;
        if self.number == "3-4" {
            return self.bars(&title);
        }
        let across = |row: &FigureRow| match self.number {
            "3-5" => row.coloured_nodes as f64,
            _ => row.nodes as f64,
        };
        let line = |of: &dyn Fn(&FigureRow) -> f64| -> Vec<(f64, f64)> {
            self.rows.iter().map(|row| (across(row), of(row))).collect()
        };
        let axis = match self.number {
            "3-5" => "nodes with sets of their own",
            _ => "nodes",
        };
        let plot = Plot::new(&title)
            .x_axis(Axis::powers_of_two(axis))
            .y_axis(Axis::linear("speedup").from_zero())
            .line(FORMULAS, &line(&|row| row.formula_speedup))
            .line(PREDICTED, &line(&FigureRow::predicted_speedup))
            .points(SIMULATED, &line(&|row| row.simulated_speedup(0.0)))
            .line(
                REFILLED,
                &line(&|row| row.simulated_speedup(ASSUMED_REFILL_CYCLES)),
            );
        let stated = |row: &FigureRow, end: usize| row.stated.map_or(f64::NAN, |ends| ends[end]);
        let low = line(&|row| stated(row, 0));
        let plot = if has_band {
            plot.dashed_line(STATED_LOW, &low)
                .dashed_line(STATED_HIGH, &line(&|row| stated(row, 1)))
        } else {
            plot.dashed_line(STATED, &low)
        };
        plot.to_svg()
    }

    fn bars(&self, title: &str) -> String {
        let layouts: Vec<&str> = self.rows.iter().map(|row| row.layout).collect();
        let heights =
            |of: &dyn Fn(&FigureRow) -> f64| -> Vec<f64> { self.rows.iter().map(of).collect() };
        let middle = |row: &FigureRow| row.stated.map_or(f64::NAN, |[a, b]| 0.5 * (a + b));
        Bars::new(title, "speedup", &layouts)
            .bars(FORMULAS, &heights(&|row| row.formula_speedup))
            .bars(PREDICTED, &heights(&FigureRow::predicted_speedup))
            .bars(SIMULATED, &heights(&|row| row.simulated_speedup(0.0)))
            .bars(
                REFILLED,
                &heights(&|row| row.simulated_speedup(ASSUMED_REFILL_CYCLES)),
            )
            .bars(STATED, &heights(&middle))
            .to_svg()
    }

    /// A Markdown table of speedups, then one of what is behind them.
    pub fn to_markdown(&self) -> String {
        let mut text = format!(
            "### Figure {}: {}\n\n",
            self.number,
            lower_first(self.title)
        );
        text.push_str(
            "| layout | nodes | coloured | `m_L2` by the formulas | speedup by the formulas | the same, true baseline | thesis measured | this crate | simulated | with TLB misses at 50 cycles | cycles of a TLB miss that explain the thesis |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for row in &self.rows {
            let (measured, cycles) = match row.stated {
                Some(stated) => (
                    range(stated.map(Some), 2),
                    range(row.explaining_refill_cycles(), 0),
                ),
                None => ("-".to_owned(), "-".to_owned()),
            };
            put(
                &mut text,
                format_args!(
                    "| {} | {} | {} | {:.3} | {:.2} | {:.2} | {measured} | {:.2} | {:.2} | {:.2} | {cycles} |",
                    row.layout,
                    row.nodes,
                    row.coloured_nodes,
                    row.formula_rate,
                    row.formula_speedup,
                    row.formula_true_speedup,
                    row.predicted_speedup(),
                    row.simulated_speedup(0.0),
                    row.simulated_speedup(ASSUMED_REFILL_CYCLES),
                ),
            );
        }
        text.push_str(
            "\n| a search in | nodes | coloured | L1 misses: predicted | simulated | L2 misses: by the formulas | predicted | simulated | TLB misses: predicted | simulated |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        let mut baselines: Vec<u64> = Vec::new();
        for row in &self.rows {
            let levels = (row.nodes as f64 + 1.0).log2();
            if !baselines.contains(&row.nodes) {
                baselines.push(row.nodes);
                let costs = [row.predicted_baseline, row.simulated_baseline];
                put_costs(&mut text, "random", row.nodes, 0, levels, costs);
            }
            put_costs(
                &mut text,
                row.layout,
                row.nodes,
                row.coloured_nodes,
                levels * row.formula_rate,
                [row.predicted, row.simulated],
            );
        }
        text
    }

    /// Comma-separated values with a head, one line to a point.
    pub fn to_csv(&self) -> String {
        let mut text = String::from(
            "figure,layout,nodes,coloured_nodes,formula_l2_miss_rate,formula_speedup,formula_true_baseline_speedup,stated_speedup_least,stated_speedup_most,predicted_speedup,simulated_speedup,predicted_l1_misses,predicted_l2_misses,predicted_tlb_misses,simulated_l1_misses,simulated_l2_misses,simulated_tlb_misses,predicted_random_cycles,simulated_random_cycles\n",
        );
        for row in &self.rows {
            let stated = match row.stated {
                Some(stated) => stated.map(|speedup| format!("{speedup:.6}")),
                None => [String::new(), String::new()],
            };
            put(
                &mut text,
                format_args!(
                    "{},{},{},{},{:.6},{:.6},{:.6},{},{},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6}",
                    self.number,
                    row.layout,
                    row.nodes,
                    row.coloured_nodes,
                    row.formula_rate,
                    row.formula_speedup,
                    row.formula_true_speedup,
                    stated[0],
                    stated[1],
                    row.predicted_speedup(),
                    row.simulated_speedup(0.0),
                    row.predicted.l1_misses,
                    row.predicted.l2_misses,
                    row.predicted.tlb_misses,
                    row.simulated.l1_misses,
                    row.simulated.l2_misses,
                    row.simulated.tlb_misses,
                    row.predicted_baseline.cycles(0.0),
                    row.simulated_baseline.cycles(0.0),
                ),
            );
        }
        text
    }
}

/// [`start_up`](super::start_up) as a Markdown table.
pub fn start_up_markdown(rows: &[StartRow]) -> String {
    let mut text = String::from(
        "### Section 3.3.1: misses a search from cold, no block evicted\n\n| searches | at worst, by the formula | random searches, expected | random searches, counted |\n|---:|---:|---:|---:|\n",
    );
    for row in rows {
        put(
            &mut text,
            format_args!(
                "| {} | {:.2} | {:.2} | {:.2} |",
                row.searches, row.worst_case, row.expected, row.counted
            ),
        );
    }
    text
}

fn put(text: &mut String, line: std::fmt::Arguments<'_>) {
    // A `String` takes all that is written to it.
    let written = writeln!(text, "{line}");
    debug_assert!(written.is_ok());
}

fn put_costs(
    text: &mut String,
    layout: &str,
    nodes: u64,
    coloured_nodes: u64,
    formula_misses: f64,
    [predicted, simulated]: [super::SearchCost; 2],
) {
    put(
        text,
        format_args!(
            "| {layout} | {nodes} | {coloured_nodes} | {:.2} | {:.2} | {formula_misses:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
            predicted.l1_misses,
            simulated.l1_misses,
            predicted.l2_misses,
            simulated.l2_misses,
            predicted.tlb_misses,
            simulated.tlb_misses,
        ),
    );
}

/// `1.98-2.00`, one number where both are the same, `none` for what there is not.
fn range(ends: [Option<f64>; 2], digits: usize) -> String {
    let [low, high] = ends.map(|end| end.map(|end| format!("{end:.digits$}")));
    match (low, high) {
        (Some(low), Some(high)) if low == high => low,
        (None, None) => String::from("none"),
        (low, high) => {
            let end = |end: Option<String>| end.unwrap_or_else(|| String::from("none"));
            format!("{}-{}", end(low), end(high))
        }
    }
}

/// A title within a sentence.
fn lower_first(title: &str) -> String {
    let mut letters = title.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}
