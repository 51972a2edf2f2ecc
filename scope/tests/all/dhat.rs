//! Blocks, bytes, peaks, lifetimes and accesses by byte of each site, compared with valgrind's tool
//! DHAT, which runs the same instrumented executable; and with dhat-rs.
//!
//! DHAT counts the instructions' own accesses to each byte, those in libc too, and `realloc`
//! keeps the block; so the program calls neither `memcpy` nor `realloc`. Its lifetimes are in
//! instructions and ours in events, so their ratios are compared; those of dhat-rs are of a clock.
//! Their peak is the largest sum of requested bytes, ours of usable ones; here they are at the same
//! time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use ccscope::profile::{Profile, Site};
use serde_json::Value;
use tempfile::TempDir;

use super::programs::{
    Instrumented, SCRATCH, SOURCES, cargo_run, command, is_installed, succeed, text,
};

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
    /// Sum of the lives of all blocks, in a unit of the profiler's own.
    lifetime: u64,
    /// Accesses of each byte.
    accesses: Option<Vec<u64>>,
}

static SITES: LazyLock<Instrumented> = LazyLock::new(|| cargo_run("sites"));

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
        sums.lifetime += site.lifetime;
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
        sums.lifetime += number("tl");
        sums.accesses = accesses(&point["acc"]);
    }
    sites
}

/// The sites without their lifetimes, and these as parts of the longest.
fn lifetimes(mut sites: Sites) -> (Sites, Vec<f64>) {
    let lifetimes = sites
        .values_mut()
        .map(|it| std::mem::take(&mut it.lifetime) as f64);
    let lifetimes: Vec<f64> = lifetimes.collect();
    let longest = lifetimes.iter().copied().fold(0.0, f64::max);
    (sites, lifetimes.iter().map(|it| it / longest).collect())
}

#[test]
fn sites_are_those_of_dhat() {
    if !is_installed("valgrind") {
        return;
    }
    let program = &*SITES;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("dhat.json");
    let output = command("valgrind")
        .arg("--tool=dhat")
        .arg(format!("--dhat-out-file={}", file.display()))
        .arg(&program.executable)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let theirs = of_dhat(&json);
    assert_eq!(theirs.len(), 5, "{theirs:?}");
    assert_eq!(theirs["site_nodes"].end_blocks, 100);
    assert_eq!(theirs["site_peak"].peak_bytes, 800_000);
    assert_eq!(theirs["site_bytes"].accesses.as_ref().unwrap()[499], 3);
    let (theirs, their_lifetimes) = lifetimes(theirs);
    let (ours, our_lifetimes) = lifetimes(ours(&program.profile));
    assert_eq!(ours, theirs);
    // All that the program does are accesses, of about as many instructions each.
    let differ = |(a, b): (&f64, &f64)| (a - b).abs() > 0.0005;
    let any = our_lifetimes.iter().zip(&their_lifetimes).any(differ);
    assert!(!any, "{our_lifetimes:?} {their_lifetimes:?}");

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

#[test]
fn sites_are_those_of_dhat_rs() {
    let ours = ours(&SITES.profile);
    let package = Path::new(SCRATCH).join("programs/sites-dhat");
    fs::create_dir_all(&package).unwrap();
    let manifest = format!(
        "[package]\nname = \"sites-dhat\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
         [[bin]]\nname = \"sites-dhat\"\npath = \"{SOURCES}/sites-dhat.rs\"\n\
         [dependencies]\ndhat = \"0.3.3\"\n"
    );
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    // The versions that this workspace has.
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock");
    fs::copy(lock, package.join("Cargo.lock")).unwrap();
    let mut run = Command::new(env!("CARGO"));
    run.args(["run", "--quiet", "--target-dir", "target"]);
    succeed(run.current_dir(&package));
    let json = fs::read(package.join("dhat-heap.json")).unwrap();
    let theirs = of_dhat(&serde_json::from_slice(&json).unwrap());
    let without = |sites: Sites| {
        let sums = |sums| Sums {
            lifetime: 0,
            accesses: None,
            ..sums
        };
        sites
            .into_iter()
            .map(|(name, it)| (name, sums(it)))
            .collect::<Sites>()
    };
    assert_eq!(without(ours), without(theirs));
}
