//! What the program says: a table and a sentence for a person, one JSON object for a program,
//! Markdown for a README.
//!
//! ```json
//! {"rows": [{"layout", "nodes", "ns_measured", "ns_rounds": [..], "ns_predicted",
//! "misses_predicted": {level: misses}, "speedup", "bytes_per_node", "detail"}],  "advice": "...",
//! "machine": {...}, "text": {...}, "checks": {...}, "lookups": 200000, "rounds": 7, "seed": 1}
//! ```
//!
//! Keys are only ever added.

use std::fmt::Write as _;

use ccmodel::Machine;
use serde_json::{Map, Value, json};

use super::ROUNDS;
use super::args::Args;
use super::keys::PositionKeys;
use super::rows::{Assessment, Structure};
use super::text::Text;
use super::verdict::{Figures, advice};
use super::verify::Checks;

/// One line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    nodes: usize,
    figures: Figures,
    assessment: Assessment,
}

impl Row {
    /// The line for `structure`, whose lookups took so many nanoseconds in each round.
    pub(crate) fn of(structure: &Structure, rounds: Vec<f64>, machine: &Machine) -> Self {
        let assessment = structure.assess(machine);
        let band = (assessment.prediction.ns_low, assessment.prediction.ns_high);
        Row {
            nodes: structure.len(),
            figures: Figures {
                layout: structure.layout(),
                rounds,
                band,
            },
            assessment,
        }
    }

    fn bytes_per_node(&self) -> f64 {
        self.assessment.bytes as f64 / self.nodes as f64
    }
}

/// All that is to be told.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    /// In the order of the table; the first one is the tree as allocated, against which the
    /// speedups are.
    pub(crate) rows: Vec<Row>,
    pub(crate) machine: &'a Machine,
    pub(crate) text: &'a Text,
    pub(crate) positions: &'a PositionKeys,
    pub(crate) checks: Checks,
    pub(crate) args: &'a Args,
}

impl Report<'_> {
    /// The table with its header and the sentence.
    pub(crate) fn table(&self) -> String {
        let cells = self.cells();
        let widths: Vec<usize> = (0..cells[0].len())
            .map(|column| {
                cells
                    .iter()
                    .map(|row| row[column].chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut out = self.summary();
        out.push('\n');
        for row in &cells {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                // The layout's name to the left, numbers to the right.
                let written = if column == 0 {
                    write!(out, "{cell:<width$}")
                } else {
                    write!(out, "  {cell:>width$}")
                };
                written.expect("a String takes all that is written to it");
            }
            out.push('\n');
        }
        out.push('\n');
        for row in &self.rows {
            push_line(
                &mut out,
                &format!("{:<9} {}", row.figures.layout, row.assessment.detail),
            );
        }
        out.push('\n');
        push_line(&mut out, &self.checked());
        push_line(&mut out, &self.advice());
        out
    }

    /// The table as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut out = self.summary();
        out.push('\n');
        for (index, row) in self.cells().iter().enumerate() {
            push_line(&mut out, &format!("| {} |", row.join(" | ")));
            if index == 0 {
                push_line(&mut out, &format!("|---|{}", "---:|".repeat(row.len() - 1)));
            }
        }
        out.push('\n');
        push_line(&mut out, &self.advice());
        out
    }

    /// One JSON object on one line.
    pub(crate) fn json(&self) -> String {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let misses: Map<String, Value> = row
                    .assessment
                    .prediction
                    .levels
                    .iter()
                    .map(|level| (level.name.clone(), json!(level.misses)))
                    .collect();
                json!({
                    "layout": row.figures.layout,
                    "nodes": row.nodes,
                    "ns_measured": row.figures.measured(),
                    "ns_rounds": row.figures.rounds,
                    "ns_predicted": row.assessment.prediction.ns,
                    "misses_predicted": misses,
                    "speedup": self.speedup(row),
                    "bytes_per_node": row.bytes_per_node(),
                    "detail": row.assessment.detail,
                })
            })
            .collect();
        let object = json!({
            "rows": rows,
            "advice": self.advice(),
            "machine": self.machine,
            "text": {
                "name": self.text.name(),
                "bytes": self.text.as_str().len(),
                "positions": self.positions.total_positions(),
                "phrase_characters": self.positions.format().phrase_characters(),
            },
            "checks": {
                "compared": self.checks.compared,
                "scanned": self.checks.scanned,
                "absent": self.checks.absent,
            },
            "lookups": self.args.lookups,
            "rounds": ROUNDS,
            "seed": self.args.seed,
        });
        format!("{object}\n")
    }

    /// What was measured, in two lines.
    fn summary(&self) -> String {
        format!(
            "{}: {} characters, {} of their positions as nodes of 24 B.\n\
             Next occurrence of a phrase of {} characters, each phrase chosen by the answer before: median of {} rounds of {} lookups, on {}.\n",
            self.text.name(),
            grouped(self.positions.total_positions()),
            grouped(self.positions.keys().len()),
            self.positions.format().phrase_characters(),
            ROUNDS,
            grouped(self.args.lookups),
            self.machine.name,
        )
    }

    /// Header and rows as text. A row has a dash at levels that its pages do not meet.
    fn cells(&self) -> Vec<Vec<String>> {
        let mut levels: Vec<&str> = Vec::new();
        for level in self
            .rows
            .iter()
            .flat_map(|row| &row.assessment.prediction.levels)
        {
            if !levels.contains(&level.name.as_str()) {
                levels.push(&level.name);
            }
        }
        let header = ["layout", "ns measured", "ns predicted"]
            .map(str::to_owned)
            .into_iter();
        let misses_of = levels.iter().map(|level| format!("{level} misses"));
        let mut cells: Vec<Vec<String>> = vec![
            header
                .chain(misses_of)
                .chain(["speedup", "B a node"].map(str::to_owned))
                .collect(),
        ];
        cells.extend(self.rows.iter().map(|row| {
            let prediction = &row.assessment.prediction;
            let mut line = vec![
                row.figures.layout.to_owned(),
                format!("{:.0}", row.figures.measured()),
                format!("{:.0}", prediction.ns),
            ];
            line.extend(levels.iter().map(|level| {
                prediction
                    .misses(level)
                    .map_or_else(|| "-".to_owned(), |misses| format!("{misses:.1}"))
            }));
            line.push(format!("{:.2}x", self.speedup(row)));
            line.push(format!("{:.1}", row.bytes_per_node()));
            line
        }));
        cells
    }

    fn checked(&self) -> String {
        format!(
            "All rows gave the same answers to {} questions ({} of them without an answer); a plain search of the text agreed on {}.",
            grouped(self.checks.compared),
            grouped(self.checks.absent),
            grouped(self.checks.scanned)
        )
    }

    fn speedup(&self, row: &Row) -> f64 {
        self.rows[0].figures.measured() / row.figures.measured()
    }

    /// One sentence: what to do in one's own program.
    fn advice(&self) -> String {
        let figures: Vec<Figures> = self.rows.iter().map(|row| row.figures.clone()).collect();
        advice(self.positions.keys().len(), &figures)
    }
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// `2097152` as `2,097,152`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_come_in_threes() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(2_097_152), "2,097,152");
    }
}
