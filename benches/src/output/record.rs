//! The rows of one or several runs, and their JSON form.
//!
//! `report.jsonl` has one object a line: first the run, `{"report": ..}`, then the comparisons, and
//! tables, `{"table": ..}`. Several such files, one after the other, are a record of several runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Run, figure};
use crate::workload::Comparison;

pub fn json_line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings and numbers have a JSON form")
}

impl Comparison {
    /// The quartiles of the rounds' ratios, `1.71-1.92`; empty without a spread.
    pub fn middle_half(&self) -> String {
        let spread = self.spread;
        spread.map_or_else(String::new, |it| format!("{:.2}-{:.2}", it.lower, it.upper))
    }

    pub fn counts_in_words(&self) -> String {
        let counts = self.counts.iter().map(|count| {
            let (ours, theirs) = (figure(count.ours), figure(count.theirs));
            format!("{} {ours} : {theirs}", count.event)
        });
        counts.collect::<Vec<_>>().join(", ")
    }
}

/// A table that a suite makes of its rows. Cells are Markdown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    pub suite: String,
    pub title: String,
    pub explanation: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug, Default)]
pub struct Record {
    pub runs: Vec<Run>,
    pub rows: Vec<Comparison>,
    pub tables: Vec<Table>,
}

impl Record {
    /// Reads the lines of files, one after the other. Of two rows of the same suite and name the
    /// later one counts.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut record = Record::default();
        let lines = (1..).zip(text.lines());
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let read = record.read_line(line);
            read.map_err(|error| format!("line {number} is not a line of a report: {error}"))?;
        }
        Ok(record)
    }

    fn read_line(&mut self, line: &str) -> Result<(), serde_json::Error> {
        // The key tells the form, so that a complaint is about the form that was meant.
        let mut value: Value = serde_json::from_str(line)?;
        if let Some(run) = value.get_mut("report") {
            self.runs.push(serde_json::from_value(run.take())?);
        } else if let Some(table) = value.get_mut("table") {
            self.tables.push(serde_json::from_value(table.take())?);
        } else {
            self.add(serde_json::from_value(value)?);
        }
        Ok(())
    }

    /// Adds `row`, in place of an earlier one with its suite and name.
    pub fn add(&mut self, row: Comparison) {
        let same = |other: &&mut Comparison| other.suite == row.suite && other.name == row.name;
        match self.rows.iter_mut().find(same) {
            Some(earlier) => *earlier = row,
            None => self.rows.push(row),
        }
    }

    /// All of it as JSON, one object a line.
    pub fn json_lines(&self) -> String {
        let run = |run| format!("{{\"report\":{}}}", json_line(run));
        let table = |table| format!("{{\"table\":{}}}", json_line(table));
        let (runs, tables) = (self.runs.iter().map(run), self.tables.iter().map(table));
        let lines = runs.chain(self.rows.iter().map(json_line)).chain(tables);
        lines.map(|line| line + "\n").collect()
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

    pub fn rows_of(&self, suite: &str) -> Vec<&Comparison> {
        self.rows.iter().filter(|row| row.suite == suite).collect()
    }
}
