//! The JSON of valgrind's DHAT, version 2, which `dh_view.html` opens.
//!
//! Bytes are the requested ones, as DHAT counts them, and times are in events. `rb` and `wb` are
//! bytes where all chunks of a site have one size of at most 1024 bytes, so that each byte's
//! accesses are known; elsewhere they are accesses, of a byte at least.

use std::collections::HashSet;
use std::io::Write;

use serde::Serialize;

use super::{frames, name};
use crate::analyses::units::sum;
use crate::profile::{Frame, Profile, Site};

/// Counts from here on are one: many.
const MOST: u64 = 0xffff;

#[derive(Serialize)]
struct File<'p> {
    #[serde(rename = "dhatFileVersion")]
    version: u32,
    mode: &'static str,
    verb: &'static str,
    /// Whether there are lifetimes, and accesses.
    bklt: bool,
    bkacc: bool,
    /// The unit of time, a million of it, and the time below which a block is short-lived.
    tu: &'static str,
    #[serde(rename = "Mtu")]
    mtu: &'static str,
    tuth: u64,
    cmd: String,
    pid: u32,
    /// Times of the end and of the peak.
    te: u64,
    tg: u64,
    pps: Vec<Point<'p>>,
    ftbl: &'p [String],
}

/// A site. Names of two letters are bytes, with a `k` they are blocks.
#[derive(Serialize)]
struct Point<'p> {
    tb: u64,
    tbk: u64,
    /// Lifetimes.
    tl: u64,
    /// At the peak of the site, of the process, and at the end.
    mb: u64,
    mbk: u64,
    gb: u64,
    gbk: u64,
    eb: u64,
    ebk: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wb: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acc: Option<Vec<i64>>,
    fs: &'p [usize],
}

/// Writes the file.
///
/// # Errors
///
/// If `out` cannot take it.
pub fn write(profile: &Profile, out: impl Write) -> serde_json::Result<()> {
    let (texts, stacks) = stacks(profile);
    let has_accesses = profile.run.accesses;
    let points = { profile.sites.iter().zip(&stacks) }
        .map(|(site, stack)| point(site, has_accesses, stack))
        .collect();
    let file = File {
        version: 2,
        mode: "heap",
        verb: "Allocated",
        bklt: true,
        bkacc: has_accesses,
        tu: "events",
        mtu: "Mevent",
        tuth: 500,
        cmd: profile.run.command.join(" "),
        pid: profile.run.pid,
        te: profile.run.end,
        tg: profile.total.peak_time,
        pps: points,
        ftbl: &texts,
    };
    serde_json::to_writer(out, &file)
}

/// The texts of frames, and the indices of each site's, innermost first. No two sites have the
/// same: the viewer refuses that.
fn stacks(profile: &Profile) -> (Vec<String>, Vec<Vec<usize>>) {
    let mut texts = vec!["[root]".to_owned()];
    texts.extend(profile.frames.iter().map(text));
    let mut seen = HashSet::new();
    let mut stack_of = |(index, site): (usize, &Site)| {
        let mut stack: Vec<usize> = frames(site).map(|frame| frame + 1).collect();
        if stack.is_empty() || !seen.insert(stack.clone()) {
            stack.push(texts.len());
            texts.push(format!("site {index}"));
        }
        stack
    };
    let stacks = profile
        .sites
        .iter()
        .enumerate()
        .map(&mut stack_of)
        .collect();
    (texts, stacks)
}

fn text(frame: &Frame) -> String {
    let place = match (&*frame.file, &*frame.module) {
        ("", "") => String::new(),
        ("", module) => format!(" (in {module})"),
        (file, _) => format!(" ({file}:{})", frame.line),
    };
    format!("{:#X}: {}{place}", frame.address, name(frame)).replacen("0X", "0x", 1)
}

fn point<'p>(site: &Site, has_accesses: bool, stack: &'p [usize]) -> Point<'p> {
    let histogram = site.histogram.as_ref().filter(|_| has_accesses);
    let bytes = |of_bytes: fn(&crate::profile::Histogram) -> &Vec<u64>, accesses| {
        let bytes = histogram.map(|it| sum(of_bytes(it).iter().copied()));
        has_accesses.then(|| bytes.unwrap_or(accesses))
    };
    // Of usable bytes there are at least as many; of a size alone, the requested ones are known.
    let requested = |usable: u64, chunks: u64| match site.smallest == site.largest {
        true => chunks.saturating_mul(site.largest),
        false => usable,
    };
    Point {
        tb: site.requested,
        tbk: site.allocations,
        tl: site.lifetime,
        mb: requested(site.peak_usable, site.peak_chunks),
        mbk: site.peak_chunks,
        gb: site.at_peak_requested,
        gbk: site.at_peak_chunks,
        eb: requested(site.end_usable, site.end_chunks),
        ebk: site.end_chunks,
        rb: bytes(|it| &it.reads, site.reads),
        wb: bytes(|it| &it.writes, site.writes),
        acc: histogram.map(|it| {
            let counts = it.reads.iter().zip(&it.writes);
            runs(counts.map(|(reads, writes)| reads.saturating_add(*writes).min(MOST)))
        }),
        fs: stack,
    }
}

/// Counts with a negative number before each that stands for several.
fn runs(counts: impl Iterator<Item = u64>) -> Vec<i64> {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for count in counts.map(super::signed) {
        match runs.last_mut() {
            Some((times, last)) if *last == count => *times += 1,
            _ => runs.push((1, count)),
        }
    }
    let numbers = runs.into_iter().map(|(times, count)| match times {
        1 => vec![count],
        _ => vec![-times, count],
    });
    numbers.flatten().collect()
}
