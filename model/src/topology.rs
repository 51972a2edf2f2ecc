//! The caches, pages and memory of this machine as the system reports them, each with its source.
//!
//! Linux's sysfs is asked first, then the processor (`CPUID` leaf 4 on Intel, 0x8000001D on AMD),
//! then documented defaults apply. The caches come from one source, so that sizes never mix;
//! entries that contradict themselves are ignored. TLBs are left out: what `CPUID` says of them is
//! wrong in virtual machines, so they have to be [measured](crate::CalibrateOptions).

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::hierarchy::{Hierarchy, Inclusion};
use crate::sys;

mod cpuid;
mod geometry;
#[cfg(feature = "calibrate")]
pub(crate) use geometry::fold;

/// Where a fact comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[cfg_attr(feature = "json", serde(rename_all = "lowercase"))]
pub enum Source {
    /// A file of Linux's `/sys` or `/proc`.
    Sysfs,
    /// The processor's `CPUID` instruction.
    Cpuid,
    /// The C library's `sysconf`.
    Sysconf,
    /// A documented default.
    Default,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Source::Sysfs => "sysfs",
            Source::Cpuid => "cpuid",
            Source::Sysconf => "sysconf",
            Source::Default => "default",
        })
    }
}

/// A value and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Fact<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub source: Source,
}

impl<T> Fact<T> {
    fn new(value: T, source: Source) -> Fact<T> {
        Fact { value, source }
    }

    /// The value of the first source that has one.
    fn first<const N: usize>(sources: [(Option<T>, Source); N], default: T) -> Fact<T> {
        let known = { sources.into_iter() }.find_map(|(value, source)| Some((value?, source)));
        known.map_or(Fact::new(default, Source::Default), |(value, source)| {
            Fact::new(value, source)
        })
    }
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[cfg_attr(feature = "json", serde(rename_all = "lowercase"))]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

impl fmt::Display for CacheKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            CacheKind::Data => "data",
            CacheKind::Instruction => "instruction",
            CacheKind::Unified => "unified",
        })
    }
}

/// One cache of the first processor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct CacheFacts {
    /// 1 is next to the processor.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Nominal size in bytes.
    pub size_bytes: u64,
    /// Line size in bytes, a power of two.
    pub line_bytes: u64,
    /// Lines in a set; 0 when unknown.
    pub ways: u32,
    /// Number of sets; 0 when unknown, and when it contradicts the size.
    pub sets: u64,
    /// Whether it is inclusive of the levels above it, as `CPUID` says; `None` when unknown.
    pub inclusive: Option<bool>,
    /// Number of processors of this system that share it; 0 when unknown. Other guests of a
    /// hypervisor are not counted.
    pub shared_by: u32,
    /// Where this comes from.
    pub source: Source,
}

impl CacheFacts {
    /// Whether the numbers can be those of a cache.
    fn is_plausible(&self) -> bool {
        (1..=8).contains(&self.level)
            && self.line_bytes.is_power_of_two()
            && (8..=4096).contains(&self.line_bytes)
            && self.size_bytes >= self.line_bytes
            && self.size_bytes <= 1 << 40
    }

    /// Whether sets, ways and lines make up the size, or are not known.
    fn is_consistent(&self) -> bool {
        let lines = self.sets.checked_mul(u64::from(self.ways));
        let bytes = lines.and_then(|lines| lines.checked_mul(self.line_bytes));
        lines == Some(0) || bytes == Some(self.size_bytes)
    }
}

/// Whether the system makes huge pages without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
#[cfg_attr(feature = "json", serde(rename_all = "lowercase"))]
pub enum HugePages {
    /// Wherever it can.
    Always,
    /// Where a program asks with `madvise`.
    Madvise,
    /// Not at all.
    Never,
    /// Not known.
    Unknown,
}

impl fmt::Display for HugePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            HugePages::Always => "always",
            HugePages::Madvise => "madvise",
            HugePages::Never => "never",
            HugePages::Unknown => "unknown",
        })
    }
}

/// Where to look for facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Folder under which `sys` and `proc` are looked for: `/` on a real machine.
    pub root: PathBuf,
    /// Whether to ask the processor and the C library where files are silent.
    pub ask_processor: bool,
}

impl Default for Sources {
    fn default() -> Sources {
        Sources {
            root: PathBuf::from("/"),
            ask_processor: true,
        }
    }
}

/// The facts of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Topology {
    /// Name of the processor.
    pub cpu_name: Fact<String>,
    /// Whether this is a guest of a hypervisor.
    pub virtualised: Fact<bool>,
    /// Caches that the first processor uses, by level.
    pub caches: Vec<CacheFacts>,
    /// How the contents of the caches depend on each other.
    pub inclusion: Fact<Inclusion>,
    /// Size of a small page in bytes.
    pub page_bytes: Fact<u64>,
    /// Mode of transparent huge pages.
    pub huge_pages: Fact<HugePages>,
    /// Physical memory in bytes.
    pub memory_bytes: Fact<u64>,
    /// Doubts, one line each.
    pub notes: Vec<String>,
}

impl Topology {
    /// The facts of this machine. Reads a few dozen small files.
    pub fn this() -> Topology {
        Topology::read(&Sources::default())
    }

    /// The facts that the given sources have. Never fails: missing facts become defaults, with a
    /// note.
    pub fn read(sources: &Sources) -> Topology {
        let mut notes = Vec::new();
        let processor = sources.ask_processor;
        let mut caches = caches_from_sysfs(&sources.root.join("sys/devices/system/cpu/cpu0/cache"));
        if data_caches(&caches).next().is_none() {
            caches = processor.then(cpuid::caches).unwrap_or_default();
            let mut what = "what CPUID says";
            if data_caches(&caches).next().is_none() {
                caches = default_caches();
                what = "defaults (48 KiB, 1 MiB, 16 MiB, lines of 64 bytes)";
            }
            notes.push(format!("no cache entries in sysfs: caches are {what}"));
        }
        caches.sort_by_key(|cache| (cache.level, cache.kind != CacheKind::Data));
        for cache in caches.iter_mut().filter(|cache| !cache.is_consistent()) {
            notes.push(format!(
                "L{} {}: {} sets of {} lines of {} bytes are not its {} bytes: sets and ways count \
                 as unknown",
                cache.level, cache.kind, cache.sets, cache.ways, cache.line_bytes, cache.size_bytes
            ));
            (cache.sets, cache.ways) = (0, 0);
        }
        if processor {
            // Sysfs does not know.
            let told = cpuid::caches();
            for cache in caches.iter_mut().filter(|cache| cache.inclusive.is_none()) {
                cache.inclusive = (told.iter())
                    .find(|other| other.level == cache.level && other.kind == cache.kind)
                    .and_then(|other| other.inclusive);
            }
        }
        let cpuinfo = fs::read_to_string(sources.root.join("proc/cpuinfo")).unwrap_or_default();
        let inclusion = inclusion(&caches, &vendor(&cpuinfo, processor));
        notes.extend(geometry::doubts(&caches, inclusion.source));
        let virtualised = virtualised(&cpuinfo, processor);
        if virtualised.value && caches.iter().any(|cache| cache.level >= 3) {
            let what = "a hypervisor's other guests share the last-level cache: measure its \
                        effective size with `model calibrate`";
            notes.push(what.to_owned());
        }
        Topology {
            cpu_name: cpu_name(&cpuinfo, processor),
            virtualised,
            caches,
            inclusion,
            page_bytes: Fact::first(
                [(
                    processor
                        .then(sys::page_bytes)
                        .flatten()
                        .map(|bytes| bytes as u64),
                    Source::Sysconf,
                )],
                4096,
            ),
            huge_pages: huge_pages(&sources.root),
            memory_bytes: memory_bytes(&sources.root, processor),
            notes,
        }
    }

    /// Caches that hold data, the one next to the processor first, one for each level.
    pub fn data_caches(&self) -> impl Iterator<Item = &CacheFacts> {
        data_caches(&self.caches)
    }

    /// The data caches as they are built, with LRU replacement, as the true one is not published,
    /// and without TLBs. `None` when they contradict each other.
    ///
    /// A cache whose number of sets is no power of two (slices, chosen by a hash of the address)
    /// becomes one of the same size with fewer sets and more ways. Where ways are not known, it has
    /// at least eight. [`notes`](Topology::notes) say so.
    pub fn hierarchy(&self) -> Option<Hierarchy> {
        geometry::hierarchy(&self.caches, self.inclusion.value)
    }
}

fn data_caches(caches: &[CacheFacts]) -> impl Iterator<Item = &CacheFacts> {
    let mut last_level = 0;
    caches.iter().filter(move |cache| {
        let new = cache.kind != CacheKind::Instruction && cache.level > last_level;
        if new {
            last_level = cache.level;
        }
        new
    })
}

/// A usual desktop or server processor.
fn default_caches() -> Vec<CacheFacts> {
    let cache = |level, kind, size_bytes, ways| CacheFacts {
        level,
        kind,
        size_bytes,
        line_bytes: 64,
        ways,
        sets: size_bytes / 64 / u64::from(ways),
        inclusive: None,
        shared_by: 0,
        source: Source::Default,
    };
    vec![
        cache(1, CacheKind::Data, 48 << 10, 12),
        cache(2, CacheKind::Unified, 1 << 20, 16),
        cache(3, CacheKind::Unified, 16 << 20, 16),
    ]
}

/// The entries of a sysfs cache folder; entries that make no sense are left out.
fn caches_from_sysfs(folder: &Path) -> Vec<CacheFacts> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let is_cache = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("index");
    let caches = entries.flatten().filter(is_cache);
    let caches = caches.filter_map(|entry| cache_from_sysfs(&entry.path()));
    caches.filter(CacheFacts::is_plausible).collect()
}

fn cache_from_sysfs(folder: &Path) -> Option<CacheFacts> {
    let read = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    let number = |name: &str| read(name)?.parse::<u32>().ok();
    Some(CacheFacts {
        level: number("level")?,
        kind: match read("type")?.as_str() {
            "Data" => CacheKind::Data,
            "Instruction" => CacheKind::Instruction,
            "Unified" => CacheKind::Unified,
            _ => return None,
        },
        size_bytes: parse_size(&read("size")?)?,
        line_bytes: u64::from(number("coherency_line_size")?),
        ways: number("ways_of_associativity").unwrap_or(0),
        // Sets of one partition; there is one on all machines that this was tried on.
        sets: u64::from(number("number_of_sets").unwrap_or(0))
            * u64::from(number("physical_line_partition").unwrap_or(1).max(1)),
        inclusive: None,
        shared_by: read("shared_cpu_list")
            .and_then(|list| count_cpus(&list))
            .unwrap_or(0),
        source: Source::Sysfs,
    })
}

/// `48K`, `2048K`, `32M` or a plain number of bytes.
fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 10),
        b'M' => (&text[..text.len() - 1], 20),
        b'G' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Number of processors in a list like `0-3,8,10-11`.
fn count_cpus(list: &str) -> Option<u32> {
    list.split(',').try_fold(0u32, |sum, part| {
        let count = match part.split_once('-') {
            Some((first, last)) => {
                let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
                last.checked_sub(first)?.checked_add(1)?
            }
            None => part.parse::<u32>().map(|_| 1).ok()?,
        };
        sum.checked_add(count)
    })
}

/// The value of the first `key : value` line of `/proc/cpuinfo` with this key.
fn cpuinfo_value<'a>(cpuinfo: &'a str, key: &str) -> Option<&'a str> {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim())
        .filter(|value| !value.is_empty())
}

/// The text without control characters: it is shown on terminals.
fn printable(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn cpu_name(cpuinfo: &str, ask_processor: bool) -> Fact<String> {
    let brand = ask_processor.then(cpuid::brand).flatten();
    let sources = [
        (
            cpuinfo_value(cpuinfo, "model name").map(printable),
            Source::Sysfs,
        ),
        (brand.map(|name| printable(&name)), Source::Cpuid),
    ];
    Fact::first(sources, "unknown processor".to_owned())
}

/// The maker of the processor.
fn vendor(cpuinfo: &str, ask_processor: bool) -> Fact<String> {
    let vendor = cpuinfo_value(cpuinfo, "vendor_id").map(str::to_owned);
    let sources = [
        (vendor, Source::Sysfs),
        (ask_processor.then(cpuid::vendor).flatten(), Source::Cpuid),
    ];
    Fact::first(sources, String::new())
}

/// Third-level caches of AMD's Zen hold what the second level evicts, by its optimisation guides;
/// of all others, the processor says whether they are inclusive.
fn inclusion(caches: &[CacheFacts], vendor: &Fact<String>) -> Fact<Inclusion> {
    let victims = ["AuthenticAMD", "HygonGenuine"].contains(&vendor.value.as_str());
    let Some(last) = data_caches(caches).last() else {
        return Fact::new(Inclusion::NonInclusive, Source::Default);
    };
    match last.inclusive {
        _ if victims && last.level >= 3 => Fact::new(Inclusion::VictimLast, vendor.source),
        Some(true) => Fact::new(Inclusion::Inclusive, Source::Cpuid),
        Some(false) => Fact::new(Inclusion::NonInclusive, Source::Cpuid),
        None => Fact::new(Inclusion::NonInclusive, Source::Default),
    }
}

fn virtualised(cpuinfo: &str, ask_processor: bool) -> Fact<bool> {
    let is_guest = |flags: &str| {
        flags
            .split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    };
    let sources = [
        (cpuinfo_value(cpuinfo, "flags").map(is_guest), Source::Sysfs),
        (
            ask_processor.then(cpuid::hypervisor).flatten(),
            Source::Cpuid,
        ),
    ];
    Fact::first(sources, false)
}

fn huge_pages(root: &Path) -> Fact<HugePages> {
    let text = fs::read_to_string(root.join("sys/kernel/mm/transparent_hugepage/enabled"));
    let modes = [HugePages::Always, HugePages::Madvise, HugePages::Never];
    // The mode in force stands in brackets.
    let mode = text.ok().and_then(|text| {
        let mut modes = modes.into_iter();
        modes.find(|mode| text.contains(&format!("[{mode}]")))
    });
    Fact::first([(mode, Source::Sysfs)], HugePages::Unknown)
}

fn memory_bytes(root: &Path, ask_processor: bool) -> Fact<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let kilobytes = cpuinfo_value(&meminfo, "MemTotal")
        .and_then(|value| value.strip_suffix("kB"))
        .and_then(|digits| digits.trim().parse::<u64>().ok())
        .filter(|&kilobytes| kilobytes > 0);
    let bytes = kilobytes.and_then(|kilobytes| kilobytes.checked_mul(1024));
    let physical = ask_processor.then(sys::physical_memory_bytes).flatten();
    Fact::first(
        [(bytes, Source::Sysfs), (physical, Source::Sysconf)],
        8 << 30,
    )
}

#[cfg(test)]
mod tests;
