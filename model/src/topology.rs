//! The caches, pages and memory of this machine as the system reports them, each with its source.
//!
//! For caches, Linux's sysfs comes first, then the processor (`CPUID` leaf 4 on Intel, 0x8000001D
//! on AMD), then documented defaults. They come from one source, so that sizes never mix; entries
//! that contradict themselves are ignored. TLBs are left out: what `CPUID` says of them is wrong in
//! virtual machines. [Calibration](crate::CalibrateOptions) measures them.

use std::fmt;
use std::fs;
use std::path::Path;

use crate::hierarchy::{Hierarchy, Inclusion};
use crate::sys;

mod cpuid;
mod geometry;
pub(crate) use cpuid::Processor;
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
        f.pad(&format!("{self:?}").to_lowercase())
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

    /// What the source has, or a default.
    fn known(value: Option<T>, source: Source, default: T) -> Fact<T> {
        let default = Fact::new(default, Source::Default);
        value.map_or(default, |value| Fact::new(value, source))
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
        f.pad(&format!("{self:?}").to_lowercase())
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
    /// Mode of transparent huge pages: `always`, `madvise`, `never` or `unknown`.
    pub huge_pages: Fact<String>,
    /// Physical memory in bytes.
    pub memory_bytes: Fact<u64>,
    /// Doubts, one line each.
    pub notes: Vec<String>,
}

impl Topology {
    /// The facts of this machine. Reads a few dozen small files.
    pub fn this() -> Topology {
        Topology::read(Path::new("/"), Processor::this())
    }

    /// The facts in the folder `sys` of `root`, and those of the processor. Missing facts become
    /// defaults, with a note.
    pub(crate) fn read(root: &Path, processor: Processor) -> Topology {
        let mut notes = Vec::new();
        let mut caches = caches_from_sysfs(&root.join("sys/devices/system/cpu/cpu0/cache"));
        if data_caches(&caches).next().is_none() {
            caches = processor.caches.clone();
            let mut what = "what CPUID says";
            if data_caches(&caches).next().is_none() {
                caches = default_caches();
                what = "defaults (48 KiB, 1 MiB, 16 MiB, lines of 64 bytes)";
            }
            notes.push(format!("no cache entries in sysfs: caches are {what}"));
        }
        caches.sort_by_key(|cache| (cache.level, cache.kind != CacheKind::Data));
        for cache in &mut caches {
            if !cache.is_consistent() {
                let (level, kind, size_bytes) = (cache.level, cache.kind, cache.size_bytes);
                let (sets, ways, line_bytes) = (cache.sets, cache.ways, cache.line_bytes);
                notes.push(format!(
                    "L{level} {kind}: {sets} sets of {ways} lines of {line_bytes} bytes are not \
                     its {size_bytes} bytes: sets and ways count as unknown"
                ));
                (cache.sets, cache.ways) = (0, 0);
            }
            // Sysfs does not know.
            let mut same = processor.caches.iter();
            let same = same.find(|other| (other.level, other.kind) == (cache.level, cache.kind));
            cache.inclusive = cache.inclusive.or(same.and_then(|other| other.inclusive));
        }
        let inclusion = inclusion(&caches, processor.vendor.as_deref());
        notes.extend(geometry::doubts(&caches, inclusion.source));
        let virtualised = Fact::known(processor.hypervisor, Source::Cpuid, false);
        if virtualised.value && caches.iter().any(|cache| cache.level >= 3) {
            let what = "a hypervisor's other guests share the last-level cache: measure its \
                        effective size with `model calibrate`";
            notes.push(what.to_owned());
        }
        let unknown = || "unknown".to_owned();
        let cpu_name = match processor.name {
            Some(name) => Fact::new(name, Source::Cpuid),
            None => Fact::known(cpu_name(root), Source::Sysfs, unknown() + " processor"),
        };
        let page_bytes = sys::page_bytes().map(|bytes| bytes as u64);
        Topology {
            cpu_name,
            virtualised,
            caches,
            inclusion,
            page_bytes: Fact::known(page_bytes, Source::Sysconf, 4096),
            huge_pages: Fact::known(huge_pages(root), Source::Sysfs, unknown()),
            memory_bytes: Fact::known(sys::physical_memory_bytes(), Source::Sysconf, 8 << 30),
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

/// The text without control characters: it is shown on terminals.
fn printable(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Third-level caches of AMD's Zen hold what the second level evicts, by its optimisation guides.
/// All other processors say whether they are inclusive.
fn inclusion(caches: &[CacheFacts], vendor: Option<&str>) -> Fact<Inclusion> {
    let has_victims = matches!(vendor, Some("AuthenticAMD" | "HygonGenuine"));
    let Some(last) = data_caches(caches).last() else {
        return Fact::new(Inclusion::NonInclusive, Source::Default);
    };
    match last.inclusive {
        _ if has_victims && last.level >= 3 => Fact::new(Inclusion::VictimLast, Source::Cpuid),
        Some(true) => Fact::new(Inclusion::Inclusive, Source::Cpuid),
        Some(false) => Fact::new(Inclusion::NonInclusive, Source::Cpuid),
        None => Fact::new(Inclusion::NonInclusive, Source::Default),
    }
}

/// The name in `/proc/cpuinfo`, for processors without `CPUID`.
fn cpu_name(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/cpuinfo")).ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, name) = fields.find(|(key, _)| key.trim() == "model name")?;
    Some(printable(name.trim())).filter(|name| !name.is_empty())
}

/// The mode of transparent huge pages, which stands in brackets: `always [madvise] never`.
fn huge_pages(root: &Path) -> Option<String> {
    let file = root.join("sys/kernel/mm/transparent_hugepage/enabled");
    let text = fs::read_to_string(file).ok()?;
    let (_, mode) = text.split_once('[')?;
    Some(printable(mode.split_once(']')?.0))
}

#[cfg(test)]
mod tests;
