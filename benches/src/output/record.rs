//! The rows of one or several runs, and their JSON form.
//!
//! `report.jsonl` has one object a line: first the run, `{"report": ..}`, then a comparison each,
//! and tables, `{"table": ..}`. Files that were written one after the other into one file are one
//! record of several runs.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{Run, Table, figure};
use crate::curves::{Curves, is_point};
use crate::rounds::{Count, Spread};
use crate::workload::Comparison;

/// A comparison as it stands in a file: the documented form of a line of JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The crate under test.
    pub suite: String,
    /// Unique among all comparisons, and stable.
    pub name: String,
    /// What ours took, in `unit`.
    #[serde(deserialize_with = "number")]
    pub ours: f64,
    /// What the rival took, in `unit`.
    #[serde(deserialize_with = "number")]
    pub theirs: f64,
    /// Above 1, ours is better.
    #[serde(deserialize_with = "number")]
    pub ratio: f64,
    /// The unit of `ours` and `theirs`.
    pub unit: String,
    /// Who the rival is, in words.
    pub rival: String,
    /// Rounds behind the medians.
    pub runs: usize,
    /// How the ratio differed from round to round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Events beside the times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<Count>,
}

/// A figure; what is not a number is written as `null`, since JSON has no other word for it.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let figure = Option::<f64>::deserialize(deserializer)?;
    Ok(figure.unwrap_or(f64::NAN))
}

impl From<&Comparison> for Row {
    fn from(comparison: &Comparison) -> Self {
        let Comparison {
            suite,
            name,
            ours,
            theirs,
            ratio,
            unit,
            rival,
            runs,
            spread,
            counts,
        } = comparison.clone();
        Row {
            suite: suite.to_owned(),
            name,
            ours,
            theirs,
            ratio,
            unit: unit.to_owned(),
            rival,
            runs,
            spread,
            counts,
        }
    }
}

impl Row {
    /// As one line of JSON, without its end.
    ///
    /// # Panics
    /// Never: names and numbers always have a JSON form.
    pub fn json_line(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers have a JSON form")
    }

    /// What is measured: the part of the name before the rival's.
    pub fn operation(&self) -> &str {
        self.name
            .rsplit_once("_vs_")
            .map_or(self.name.as_str(), |(operation, _)| operation)
    }

    /// The quartiles of the rounds' ratios, `1.71-1.92`; nothing where there is no spread.
    pub fn middle_half(&self) -> String {
        self.spread.map_or_else(String::new, |spread| {
            format!("{:.2}-{:.2}", spread.lower, spread.upper)
        })
    }

    /// The events beside the times, in words; nothing where there are none.
    pub fn counts_in_words(&self) -> String {
        let counts = self.counts.iter().map(|count| {
            let how = if count.simulated { " (simulated)" } else { "" };
            let (ours, theirs) = (figure(count.ours), figure(count.theirs));
            format!("{}{how} {ours} : {theirs}", count.event)
        });
        counts.collect::<Vec<_>>().join(", ")
    }
}

/// What one or several runs measured.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// The runs, in their order.
    pub runs: Vec<Run>,
    /// The comparisons of all of them.
    pub rows: Vec<Row>,
    /// Tables that say more than single ratios.
    pub tables: Vec<Table>,
}

/// A line of a file, whatever it holds.
#[derive(Serialize)]
#[serde(untagged)]
enum Line {
    Run { report: Box<Run> },
    Table { table: Table },
    Row(Row),
}

impl Line {
    /// What `line` holds. The first key tells, so that a complaint is about the form that was
    /// meant.
    fn read(line: &str) -> Result<Self, serde_json::Error> {
        let mut value: Value = serde_json::from_str(line)?;
        if let Some(run) = value.get_mut("report") {
            let report = serde_json::from_value(run.take())?;
            Ok(Line::Run { report })
        } else if let Some(table) = value.get_mut("table") {
            let table = serde_json::from_value(table.take())?;
            Ok(Line::Table { table })
        } else {
            serde_json::from_value(value).map(Line::Row)
        }
    }
}

impl Record {
    /// Reads the lines of files, one after the other.
    ///
    /// Of two rows of the same suite and name the later one counts, so that part of a record can be
    /// measured anew.
    ///
    /// # Errors
    /// The first line that is no JSON object of a known form, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut record = Record::default();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let line = Line::read(line)
                .map_err(|error| format!("line {number} is not one of a report's: {error}"))?;
            match line {
                Line::Run { report } => record.runs.push(*report),
                Line::Table { table } => record.tables.push(table),
                Line::Row(row) => record.add(row),
            }
        }
        Ok(record)
    }

    /// Adds `row`, in place of an earlier one with its suite and name if there is one.
    pub fn add(&mut self, row: Row) {
        let same = |other: &&mut Row| other.suite == row.suite && other.name == row.name;
        match self.rows.iter_mut().find(same) {
            Some(earlier) => *earlier = row,
            None => self.rows.push(row),
        }
    }

    /// All of it as JSON, one object a line.
    ///
    /// # Panics
    /// Never: strings and numbers always have a JSON form.
    pub fn json_lines(&self) -> String {
        let runs = self.runs.iter().cloned().map(Box::new);
        let runs = runs.map(|report| Line::Run { report });
        let rows = self.rows.iter().cloned().map(Line::Row);
        let tables = self
            .tables
            .iter()
            .cloned()
            .map(|table| Line::Table { table });
        let lines = runs.chain(rows).chain(tables).map(|line| {
            serde_json::to_string(&line).expect("strings and numbers have a JSON form") + "\n"
        });
        lines.collect()
    }

    /// The suites, each once, in the order of their first rows.
    pub fn suites(&self) -> Vec<&str> {
        let mut suites: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !suites.contains(&row.suite.as_str()) {
                suites.push(&row.suite);
            }
        }
        suites
    }

    /// The rows of one suite.
    pub fn rows_of(&self, suite: &str) -> Vec<&Row> {
        let rows = self.rows.iter().filter(|row| row.suite == suite);
        rows.collect()
    }

    /// The row that is called `name`.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The rows of one suite that are ratios of their own, and not points of a curve.
    pub fn bars_of(&self, suite: &str) -> Vec<&Row> {
        let rows = self.rows_of(suite).into_iter();
        rows.filter(|row| !is_point(&row.name)).collect()
    }

    /// The curves that the rows of one suite are points of.
    pub fn curves_of(&self, suite: &str) -> Vec<Curves> {
        let rows = self.rows_of(suite).into_iter();
        Curves::of_figures(
            rows.map(|row| (row.name.as_str(), row.unit.as_str(), row.ours, row.theirs)),
        )
    }
}
