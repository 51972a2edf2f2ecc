//! Rows as tables, as JSON lines, and as a picture.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Kind, Row};
use crate::output::charts::{Legend, Line, Lines, draw_all};
use crate::output::json_line;
use crate::output::pages::markdown_table;

pub fn json_lines(rows: &[Row]) -> String {
    rows.iter().map(|row| json_line(row) + "\n").collect()
}

/// The rows of each kind and number of keys, the measured ones first.
fn panels(rows: &[Row]) -> impl Iterator<Item = Vec<&Row>> {
    let mut panels: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        panels.entry((row.kind, row.keys)).or_default().push(row);
    }
    panels.into_values()
}

fn title_and_unit(panel: &[&Row]) -> (String, &'static str) {
    let (title, unit) = match panel[0].kind {
        Kind::Measured => ("measured, this machine", "ns a search"),
        Kind::Simulated => ("SIMULATED, the thesis's machine", "memory cycles a search"),
    };
    (format!("{title}: {} keys", panel[0].keys), unit)
}

pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    for panel in panels(rows) {
        let (title, unit) = title_and_unit(&panel);
        let header = ["structure", "node bytes", "searches", unit];
        let events = ["reads", "L1 misses", "L2 misses", "TLB misses"];
        let lines = panel.iter().map(|row| {
            let mut cells = vec![row.structure.to_owned()];
            cells.extend([row.node_bytes.to_string(), row.searches.to_string()]);
            cells.push(format!("{:.2}", row.height()));
            cells.extend(row.cost.iter().flat_map(|cost| {
                let events = [cost.reads, cost.l1_misses, cost.l2_misses, cost.tlb_misses];
                events.map(|each| format!("{each:.2}"))
            }));
            cells
        });
        let lines: Vec<_> = lines.collect();
        let header = header.iter().chain(&events).take(lines[0].len());
        let header: Vec<String> = header.map(|&name| name.to_owned()).collect();
        let table = markdown_table(&header, &lines);
        let figure = panel[0].figure;
        writeln!(text, "figure {figure}, {title}\n\n{table}").expect("a String takes all text");
    }
    text
}

/// Measured and simulated panels side by side as SVG, if there is anything to draw.
pub fn svg(rows: &[Row]) -> Result<String, String> {
    if rows.is_empty() {
        return Err("there is nothing to draw".to_owned());
    }
    // The same colour for a structure in all panels.
    let mut structures: Vec<&str> = Vec::new();
    for row in rows {
        if !structures.contains(&row.structure) {
            structures.push(row.structure);
        }
    }
    // One line over sizes of nodes, several over searches.
    let (x_name, x_base, x): (_, _, fn(&Row) -> f64) = match structures.len() {
        1 => ("bytes of a node", 2.0, |row| row.node_bytes as f64),
        _ => ("searches since the caches were cold", 10.0, |row| {
            row.searches as f64
        }),
    };
    let charts = panels(rows).map(|panel| {
        let (title, unit) = title_and_unit(&panel);
        let lines = structures.iter().map(|&structure| {
            let rows = panel.iter().filter(|row| row.structure == structure);
            let point = |row: &&Row| (x(row), row.height());
            Line {
                name: structure.to_owned(),
                points: rows.map(point).collect(),
                predicted: Vec::new(),
            }
        });
        Lines {
            title,
            x_name: x_name.to_owned(),
            y_name: unit.to_owned(),
            x_base,
            legend: Legend::UpperRight,
            lines: lines.collect(),
        }
    });
    Ok(draw_all(&charts.collect::<Vec<_>>(), (470, 390)))
}
