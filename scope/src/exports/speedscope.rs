//! The JSON of speedscope: for each number one profile, of weighted stacks.

use std::io::Write;

use ccmodel::Machine;
use serde::Serialize;

use super::{frames, lines, name, program, weights};
use crate::profile::Profile;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'p> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    name: String,
    exporter: String,
    shared: Shared<'p>,
    profiles: Vec<Samples>,
}

#[derive(Serialize)]
struct Shared<'p> {
    frames: Vec<Line<'p>>,
}

#[derive(Serialize)]
struct Line<'p> {
    name: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Samples {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Indices into `frames`, outermost first.
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

/// Writes the file.
///
/// # Errors
///
/// If `out` cannot take it.
pub fn write(profile: &Profile, machine: &Machine, out: impl Write) -> serde_json::Result<()> {
    let (lines, line_of) = lines(profile);
    let profiles = { weights(profile, machine).into_iter() }.map(|(name, weight, numbers)| {
        let stacks = { profile.sites.iter().zip(&numbers) }.filter(|(_, number)| **number > 0);
        Samples {
            kind: "sampled",
            name,
            unit: match weight.unit() {
                unit @ ("bytes" | "nanoseconds") => unit,
                _ => "none",
            },
            start_value: 0,
            end_value: numbers.iter().fold(0, |sum, &it| sum.saturating_add(it)),
            samples: stacks
                .map(|(site, _)| frames(site).rev().map(|frame| line_of[frame]).collect())
                .collect(),
            weights: numbers.iter().copied().filter(|&it| it > 0).collect(),
        }
    });
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        name: program(profile).to_owned(),
        exporter: format!("ccscope {}", profile.run.tool),
        shared: Shared {
            frames: { lines.iter() }
                .map(|frame| Line {
                    name: name(frame).into_owned(),
                    file: &frame.file,
                    line: Some(frame.line).filter(|&line| line > 0),
                })
                .collect(),
        },
        profiles: profiles.collect(),
    };
    serde_json::to_writer(out, &file)
}
