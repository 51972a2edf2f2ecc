//! Blocks, bytes, peaks and accesses by byte of each site, compared with valgrind's tool DHAT,
//! which runs the same instrumented executable.
//!
//! DHAT counts the instructions' own accesses to each byte, those in libc too, and `realloc`
//! keeps the block; so the program calls neither `memcpy` nor `realloc`. Its lifetimes are in
//! instructions and ours in events: only their sums' order could be compared. Its peak is the
//! largest sum of requested bytes, ours of usable ones; here they are at the same time.

use std::collections::BTreeMap;

use ccscope::profile::{Profile, Site};
use serde_json::Value;
use tempfile::TempDir;

use super::programs::{cargo_run, command, is_installed, text};

#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    blocks: u64,
    bytes: u64,
    /// At the peak of the process.
    peak_blocks: u64,
    peak_bytes: u64,
    /// The most at once of the site.
    most_blocks: u64,
    end_blocks: u64,
    /// Accesses of each byte.
    accesses: Option<Vec<u64>>,
}

/// Those of the functions `site_*`.
type Sites = BTreeMap<String, Sums>;

/// The last part of a function's name that begins with `site_`.
fn site_name(function: &str) -> Option<String> {
    let name = &function[function.find("site_")?..];
    let end = name.find(|c: char| c != '_' && !c.is_ascii_lowercase());
    Some(name[..end.unwrap_or(name.len())].to_owned())
}

fn ours(profile: &Profile) -> Sites {
    let mut sites = Sites::new();
    for site in &profile.sites {
        let function = |site: &Site| {
            site.stack
                .iter()
                .find_map(|&at| site_name(&profile.frames[at as usize].function))
        };
        let Some(name) = function(site) else { continue };
        let accesses = site.histogram.as_ref().map(|histogram| {
            histogram
                .reads
                .iter()
                .zip(&histogram.writes)
                .map(|(reads, writes)| reads + writes)
                .collect()
        });
        let sums = sites.entry(name).or_default();
        sums.blocks += site.allocations;
        sums.bytes += site.requested;
        sums.peak_blocks += site.at_peak_chunks;
        sums.peak_bytes += site.at_peak_requested;
        // Of one call each.
        sums.most_blocks = sums.most_blocks.max(site.peak_chunks);
        sums.end_blocks += site.end_chunks;
        sums.accesses = accesses;
    }
    sites
}

/// DHAT's counts of bytes: a negative number repeats the next one.
fn accesses(runs: &Value) -> Option<Vec<u64>> {
    let mut counts = Vec::new();
    let mut times = 1;
    for number in runs
        .as_array()?
        .iter()
        .map(|number| number.as_i64().unwrap())
    {
        match u64::try_from(number) {
            Ok(count) => {
                counts.extend(std::iter::repeat_n(count, times));
                times = 1;
            }
            Err(_) => times = usize::try_from(-number).unwrap(),
        }
    }
    Some(counts)
}

/// A point's stack, innermost first.
fn frames<'a>(point: &'a Value, json: &'a Value) -> impl Iterator<Item = &'a str> {
    let frames = point["fs"].as_array().unwrap().iter();
    frames.map(|at| {
        let at = usize::try_from(at.as_u64().unwrap()).unwrap();
        json["ftbl"][at].as_str().unwrap()
    })
}

fn of_dhat(json: &Value) -> Sites {
    let mut sites = Sites::new();
    for point in json["pps"].as_array().unwrap() {
        let Some(name) = frames(point, json).find_map(site_name) else {
            continue;
        };
        let number = |field: &str| point[field].as_u64().unwrap();
        let sums = sites.entry(name).or_default();
        sums.blocks += number("tbk");
        sums.bytes += number("tb");
        sums.peak_blocks += number("gbk");
        sums.peak_bytes += number("gb");
        sums.most_blocks = sums.most_blocks.max(number("mbk"));
        sums.end_blocks += number("ebk");
        sums.accesses = accesses(&point["acc"]);
    }
    sites
}

#[test]
fn sites_are_those_of_dhat() {
    if !is_installed("valgrind") {
        return;
    }
    let program = cargo_run("sites");
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("dhat.json");
    let output = command("valgrind")
        .arg("--tool=dhat")
        .arg(format!("--dhat-out-file={}", file.display()))
        .arg(&program.executable)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let theirs = of_dhat(&json);
    assert_eq!(theirs.len(), 4, "{theirs:?}");
    assert_eq!(theirs["site_nodes"].end_blocks, 100);
    assert_eq!(theirs["site_peak"].peak_bytes, 800_000);
    assert_eq!(theirs["site_bytes"].accesses.as_ref().unwrap()[499], 3);
    assert_eq!(ours(&program.profile), theirs);

    // Without the tool, the runtime's own look-ups allocate unhidden.
    let is_runtime = |point: &&Value| frames(point, &json).any(|it| it.contains("ccscope_runtime"));
    let all = |field: &str| {
        let points = json["pps"].as_array().unwrap().iter();
        let points = points.filter(|point| !is_runtime(point));
        points
            .map(|point| point[field].as_u64().unwrap())
            .sum::<u64>()
    };
    let total = &program.profile.total;
    assert_eq!(
        (
            total.allocations,
            total.requested,
            total.peak_chunks,
            total.peak_requested
        ),
        (all("tbk"), all("tb"), all("gbk"), all("gb"))
    );
}
