//! Profiles in the formats of other viewers.
//!
//! | module | opens in | what it shows |
//! |---|---|---|
//! | [`collapsed`] | what draws flame graphs | one number for each stack |
//! | [`dhat`] | valgrind's `dh_view.html` | blocks, bytes, peaks, accesses by byte |
//! | [`firefox`] | profiler.firefox.com | curves as tracks, allocations with stacks |
//! | [`perfetto`] | ui.perfetto.dev | curves as counters, threads, a heap profile |
//! | [`pprof`] | `go tool pprof` and what speaks its format | all numbers of a site |
//! | [`speedscope`] | speedscope.app | all numbers of a site |
//! | `parquet` (with the feature) | databases | everything, as tables |
//!
//! Names are data: they go through the encoder of the format, and where a format has separators
//! (collapsed stacks), these are replaced. Counts that a format cannot hold become its largest.

pub mod collapsed;
pub mod dhat;
pub mod firefox;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod perfetto;
pub mod pprof;
pub mod speedscope;

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;
use std::str::FromStr;

use ccmodel::Machine;

use crate::analyses::findings::seconds_per_event;
use crate::analyses::units::rounded;
use crate::analyses::waits::waits_by_site;
use crate::profile::{Frame, Profile, Site};

/// A number that each site has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// Chunks in the whole run.
    Allocations,
    /// Usable bytes in the whole run.
    Bytes,
    /// Chunks at the peak of the process.
    PeakChunks,
    /// Usable bytes at the peak of the process.
    Peak,
    /// Chunks that were alive at the end.
    EndChunks,
    /// Usable bytes that were alive at the end.
    End,
    /// Bytes times the seconds between their last access and their free.
    Drag,
    /// Reads and writes.
    Accesses,
    /// Nanoseconds of waiting for memory, simulated; 0 without windows.
    Waits,
}

impl Weight {
    /// All, with the names that users give and read.
    pub const NAMES: [(&'static str, Weight); 9] = [
        ("allocations", Weight::Allocations),
        ("bytes", Weight::Bytes),
        ("peak-chunks", Weight::PeakChunks),
        ("peak", Weight::Peak),
        ("end-chunks", Weight::EndChunks),
        ("end", Weight::End),
        ("drag", Weight::Drag),
        ("accesses", Weight::Accesses),
        ("waits", Weight::Waits),
    ];

    /// What one of it is: `count`, `bytes`, `byte-seconds` or `nanoseconds`.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Weight::Allocations | Weight::PeakChunks | Weight::EndChunks | Weight::Accesses => {
                "count"
            }
            Weight::Bytes | Weight::Peak | Weight::End => "bytes",
            Weight::Drag => "byte-seconds",
            Weight::Waits => "nanoseconds",
        }
    }

    /// The weight of each site, in the profile's order. Waits are those of `machine`.
    #[must_use]
    pub fn of_sites(self, profile: &Profile, machine: &Machine) -> Vec<u64> {
        let sites = |weight: fn(&Site) -> u64| profile.sites.iter().map(weight).collect();
        match self {
            Weight::Allocations => sites(|site| site.allocations),
            Weight::Bytes => sites(|site| site.usable),
            Weight::PeakChunks => sites(|site| site.at_peak_chunks),
            Weight::Peak => sites(|site| site.at_peak_usable),
            Weight::EndChunks => sites(|site| site.end_chunks),
            Weight::End => sites(|site| site.end_usable),
            Weight::Accesses => sites(|site| site.reads.saturating_add(site.writes)),
            // Without accesses, nobody knows.
            Weight::Drag if !profile.run.accesses => vec![0; profile.sites.len()],
            Weight::Drag => { profile.sites.iter() }
                .map(|site| rounded(site.drag * seconds_per_event(profile, site)))
                .collect(),
            Weight::Waits => match waits_by_site(profile, machine) {
                Some(waits) => waits.into_iter().map(rounded).collect(),
                None => vec![0; profile.sites.len()],
            },
        }
    }
}

impl FromStr for Weight {
    type Err = String;

    fn from_str(text: &str) -> Result<Weight, String> {
        let found = Weight::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|&(_, weight)| weight).ok_or_else(|| {
            let names: Vec<&str> = Weight::NAMES.iter().map(|&(name, _)| name).collect();
            format!(
                "no number is called {text:?}; there are {}",
                names.join(", ")
            )
        })
    }
}

/// Those numbers of which some site has one, with their names.
fn weights(profile: &Profile, machine: &Machine) -> Vec<(&'static str, Weight, Vec<u64>)> {
    { Weight::NAMES.into_iter() }
        .map(|(name, weight)| (name, weight, weight.of_sites(profile, machine)))
        .filter(|(_, _, numbers)| numbers.iter().any(|&number| number > 0))
        .collect()
}

/// The function, or its address where that is all there is.
fn name(frame: &Frame) -> Cow<'_, str> {
    match &*frame.function {
        "" => format!("{}+{:#x}", frame.module, frame.address).into(),
        function => function.into(),
    }
}

/// What was profiled: the file name of the program.
fn program(profile: &Profile) -> &str {
    let path = profile.run.command.first().map_or("", String::as_str);
    path.rsplit('/').next().unwrap_or(path)
}

/// Values by index, each once.
struct Interner<T> {
    indices: HashMap<T, usize>,
}

impl<T: Eq + Hash> Interner<T> {
    fn new() -> Interner<T> {
        Interner {
            indices: HashMap::new(),
        }
    }

    /// The index of `value`, and whether it is new.
    fn add(&mut self, value: T) -> (usize, bool) {
        let next = self.indices.len();
        let index = *self.indices.entry(value).or_insert(next);
        (index, index == next)
    }
}

/// Lines of source, each once, and the one of each frame: one line is called from many addresses.
fn lines(profile: &Profile) -> (Vec<&Frame>, Vec<usize>) {
    let (mut table, mut lines) = (Interner::new(), Vec::new());
    let line_of = |frame| {
        let (index, is_new) = table.add((name(frame), &*frame.file, frame.line));
        if is_new {
            lines.push(frame);
        }
        index
    };
    let of_frames = profile.frames.iter().map(line_of).collect();
    (lines, of_frames)
}

/// Indices of a site's frames, innermost first.
fn frames(site: &Site) -> impl DoubleEndedIterator<Item = usize> {
    site.stack.iter().map(|&frame| frame as usize)
}

/// Signed, as most formats have it.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
