//! The JSON of DHAT, version 2, of mode `heap`.

use std::io::Read;

use serde::Deserialize;

use super::{Frames, budget, file_name};
use crate::Error;
use crate::analyses::units::{rounded, sum};
use crate::profile::{BUCKETS, Frame, Point, Profile, Run, Site, Totals};
use crate::symbols;

#[derive(Deserialize)]
struct File {
    #[serde(rename = "dhatFileVersion")]
    version: u32,
    mode: String,
    tu: String,
    cmd: String,
    #[serde(default)]
    pid: u32,
    te: u64,
    #[serde(default)]
    tg: u64,
    pps: Vec<Place>,
    ftbl: Vec<String>,
}

/// See `exports::dhat` for the names.
#[derive(Deserialize)]
struct Place {
    tb: u64,
    tbk: u64,
    #[serde(default)]
    tl: u64,
    #[serde(default)]
    mb: u64,
    #[serde(default)]
    mbk: u64,
    #[serde(default)]
    gb: u64,
    #[serde(default)]
    gbk: u64,
    #[serde(default)]
    eb: u64,
    #[serde(default)]
    ebk: u64,
    #[serde(default)]
    rb: u64,
    #[serde(default)]
    wb: u64,
    fs: Vec<usize>,
}

/// Reads a file of `len` bytes.
///
/// # Errors
///
/// If it cannot be read, is damaged, or of another version or mode.
pub fn read(input: impl Read, len: u64) -> Result<Profile, Error> {
    let refused = |why: &dyn std::fmt::Display| Error::new(format!("no DHAT file: {why}"));
    let input = std::io::BufReader::new(input.take(budget(len)));
    let file: File = serde_json::from_reader(input).map_err(|why| refused(&why))?;
    if file.version != 2 {
        return Err(refused(&format!("version {}, not 2", file.version)));
    }
    if file.mode != "heap" && file.mode != "rust-heap" {
        return Err(refused(&format!("mode {:?}, not heap", file.mode)));
    }
    let mut frames = Frames::default();
    let of_text: Vec<u32> = file
        .ftbl
        .iter()
        .map(|text| frames.add(frame(text)))
        .collect();
    // Each of at least some ten bytes of text is a site.
    let bytes = file.pps.len() * (size_of::<Site>() + 2 * BUCKETS * size_of::<u32>());
    if bytes as u64 > budget(len) {
        return Err(refused(
            &"it would take more memory than its length justifies",
        ));
    }
    let mut sites = Vec::new();
    for place in &file.pps {
        let frame = |&at: &usize| of_text.get(at).copied();
        let stack: Option<Vec<u32>> = place.fs.iter().map(frame).collect();
        let stack = stack.ok_or_else(|| refused(&"a stack has a frame that is not there"))?;
        sites.push(site(place, stack, &file, &frames.frames));
    }
    let total = |of: fn(&Place) -> u64| sum(file.pps.iter().map(of));
    let total = Totals {
        allocations: total(|it| it.tbk),
        frees: total(|it| it.tbk.saturating_sub(it.ebk)),
        requested: total(|it| it.tb),
        usable: total(|it| it.tb),
        peak_usable: total(|it| it.gb),
        peak_requested: total(|it| it.gb),
        peak_chunks: total(|it| it.gbk),
        peak_time: file.tg,
        end_usable: total(|it| it.eb),
        end_chunks: total(|it| it.ebk),
        heap_reads: total(|it| it.rb),
        heap_writes: total(|it| it.wb),
        ..Totals::default()
    };
    let second = match &*file.tu {
        "µs" => 1e6,
        // Of instructions, nobody knows.
        _ => f64::INFINITY,
    };
    let ns = |time: u64| rounded(time as f64 / second * 1e9);
    let point = |time: u64, bytes: u64| Point {
        time,
        ns: ns(time),
        usable: bytes,
        peak: bytes,
        requested: bytes,
        touched: 0,
        allocations: 0,
    };
    let mut curve = vec![
        point(file.tg, total.peak_usable),
        point(file.te, total.end_usable),
    ];
    curve.dedup_by_key(|point| point.time);
    let run = Run {
        tool: "DHAT".to_owned(),
        command: vec![file.cmd],
        pid: file.pid,
        parent: file.pid,
        seconds: file.te as f64 / second,
        end: file.te,
        caveats: vec![
            "From a DHAT file: it has no types, threads and curves, no times of accesses, and \
             counts accesses in bytes."
                .to_owned(),
        ],
        ..Run::default()
    };
    if curve.windows(2).any(|both| both[0].time > both[1].time) {
        return Err(refused(&"its peak is after its end"));
    }
    Ok(Profile {
        run,
        total,
        frames: frames.frames,
        sites,
        curve,
        ..Profile::default()
    })
}

fn site(place: &Place, stack: Vec<u32>, file: &File, frames: &[Frame]) -> Site {
    let average = place.tb.checked_div(place.tbk).unwrap_or(0);
    Site {
        place: symbols::place(&stack, frames),
        stack,
        allocations: place.tbk,
        frees: place.tbk.saturating_sub(place.ebk),
        requested: place.tb,
        usable: place.tb,
        peak_usable: place.mb,
        peak_chunks: place.mbk,
        at_peak_usable: place.gb,
        at_peak_requested: place.gb,
        at_peak_chunks: place.gbk,
        end_usable: place.eb,
        end_chunks: place.ebk,
        // Only the mean is there.
        smallest: average,
        largest: average,
        reads: place.rb,
        writes: place.wb,
        lifetime: place.tl,
        first_time: 1,
        last_time: file.te,
        sizes: vec![0; BUCKETS],
        lifetimes: vec![0; BUCKETS],
        ..Site::default()
    }
}

/// `0x1234: function (file.c:12)` or `0x1234: function (in /usr/lib/libc.so)`; without a function,
/// `???`.
fn frame(text: &str) -> Frame {
    let (address, rest) = match text.split_once(": ") {
        Some((address, rest)) if address.starts_with("0x") => (address, rest),
        _ => ("", text),
    };
    let digits = address.trim_start_matches("0x");
    let address = u64::from_str_radix(digits, 16).unwrap_or(0);
    let place = { rest.strip_suffix(')') }.and_then(|rest| rest.rsplit_once(" ("));
    let (function, place) = place.unwrap_or((rest, ""));
    let mut frame = Frame {
        function: function.to_owned(),
        address,
        ..Frame::default()
    };
    if let Some(module) = place.strip_prefix("in ") {
        frame.module = file_name(module).to_owned();
    } else {
        // The crate `dhat` has a column behind the line.
        let mut parts = place.split(':');
        frame.file = parts.next().unwrap_or("").to_owned();
        frame.line = parts.next().and_then(|line| line.parse().ok()).unwrap_or(0);
    }
    if frame.function == "???" {
        frame.function = format!("{}+{address:#x}", frame.module);
    }
    frame
}
