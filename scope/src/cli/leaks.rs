//! Looks for leaks in a process that ends: it waits meanwhile, and its threads stand still.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::process::{self, Process};
use super::runtime::NAME;
use super::stopped::Stopped;
use crate::capture::leaks::{LiveChunk, Memory, Roots, Scan, scan};
use crate::capture_format::{self, Chunk, CompactChunk, Header, Node, Plain, Site, layout};

/// Bytes behind the thread pointer that hold what libc has of a thread.
const THREAD_BYTES: u64 = 0x1000;
/// Room for thread-local variables of libraries that are loaded later.
const LATER_BYTES: u64 = 4096;
/// What a function may use below the stack pointer.
const RED_ZONE: u64 = 128;
/// Entries of a table that are read at once.
const ENTRIES: u64 = 4096;

/// What is leaked in `process`, which waits.
///
/// # Errors
///
/// The tool may not look into the process.
pub(super) fn leaks(process: &Process) -> io::Result<Scan> {
    let memory = OfProcess(File::open(format!("/proc/{}/mem", process.pid))?);
    let stopped = Stopped::all(process.pid)?;
    let maps = fs::read_to_string(format!("/proc/{}/maps", process.pid))?;
    let maps: Vec<Map<'_>> = maps.lines().filter_map(Map::parse).collect();
    let header = { process.header() }.ok_or_else(|| io::Error::other("its capture is damaged"))?;
    let (chunks, linker) = (chunks(process.capture(), &header)?, linker(&maps));
    let mut roots = roots(&stopped, &maps, &memory);
    roots.held_sites = held(process.capture(), &chunks, &linker)?;
    Ok(scan(chunks, &roots, &memory))
}

/// A line of `/proc/PID/maps`.
#[derive(Clone, Debug, PartialEq)]
struct Map<'t> {
    range: Range<u64>,
    is_writable: bool,
    offset: u64,
    path: &'t str,
}

impl Map<'_> {
    fn parse(line: &str) -> Option<Map<'_>> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let rights = words.next()?;
        let offset = number(words.next()?)?;
        Some(Map {
            range: number(start)?..number(end)?,
            is_writable: rights.starts_with("rw"),
            offset,
            path: words.nth(2).unwrap_or_default().trim_start(),
        })
    }
}

struct OfProcess(File);

impl Memory for OfProcess {
    fn read(&self, start: u64, into: &mut [u8]) -> usize {
        let mut len = 0;
        // The end of a mapping ends a read.
        while len < into.len() {
            match self.0.read_at(&mut into[len..], start + len as u64) {
                Ok(0) | Err(_) => break,
                Ok(more) => len += more,
            }
        }
        len
    }
}

/// Variables of modules, stacks, thread-local variables and registers.
fn roots(stopped: &Stopped, maps: &[Map<'_>], memory: &dyn Memory) -> Roots {
    let (mut roots, mut variables) = (Roots::default(), LATER_BYTES);
    for module in maps
        .iter()
        .filter(|map| map.offset == 0 && map.path.starts_with('/'))
    {
        let name = module.path.rsplit('/').next().unwrap_or_default();
        let Some(segments) = Segments::read(module.range.start, memory) else {
            continue;
        };
        variables += segments.thread_local;
        if name.starts_with("libc.so") || name.starts_with("libc-2") {
            roots.exact.extend(segments.writable);
        } else if !module.path.contains(NAME.trim_end_matches(".so")) {
            roots.ranges.extend(segments.writable);
        }
    }
    let map_of = |address: u64| maps.iter().find(|map| map.range.contains(&address));
    for thread in stopped.registers() {
        let (stack, pointer) = (thread.stack_pointer, thread.thread_pointer);
        if let Some(map) = map_of(stack) {
            let start = stack.saturating_sub(RED_ZONE).max(map.range.start);
            // Libc puts the variables of a thread that it starts behind the stack.
            let end = match pointer > stack && map.range.contains(&pointer) {
                true => map.range.end.min(pointer + THREAD_BYTES),
                false => map.range.end,
            };
            roots.ranges.push(start..end);
        }
        if let Some(map) = map_of(pointer) {
            let start = pointer.saturating_sub(variables).max(map.range.start);
            let end = map.range.end.min(pointer + THREAD_BYTES);
            roots.ranges.push(start..end);
        }
        roots.registers.extend(thread.words);
    }
    roots
}

/// What the program headers of a module say.
#[derive(Debug, Default)]
struct Segments {
    writable: Vec<Range<u64>>,
    /// Bytes of each thread's variables.
    thread_local: u64,
}

impl Segments {
    /// Of the module that is loaded at `start`; `None` if none is.
    fn read(start: u64, memory: &dyn Memory) -> Option<Segments> {
        const LOAD: u64 = 1;
        const THREAD_LOCAL: u64 = 7;
        const WRITE: u64 = 2;
        const FIXED_TYPES: [u16; 2] = [2, 3];
        let mut header = [0; 64];
        let is_module = memory.read(start, &mut header) == header.len();
        if !is_module || !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let word = |bytes: &[u8], at: usize| {
            u64::from_le_bytes(*bytes[at..].first_chunk().expect("it is long enough"))
        };
        let (kind, size, count) = (half(16), usize::from(half(54)), usize::from(half(56)));
        if !FIXED_TYPES.contains(&kind) || size < 56 {
            return None;
        }
        let mut table = vec![0; size * count];
        let at = start.checked_add(word(&header, 32))?;
        if memory.read(at, &mut table) != table.len() {
            return None;
        }
        let bias = if kind == FIXED_TYPES[0] { 0 } else { start };
        let mut segments = Segments::default();
        for entry in table.chunks_exact(size) {
            let (kind, flags) = (word(entry, 0) & 0xFFFF_FFFF, word(entry, 0) >> 32);
            let (address, len, alignment) = (word(entry, 16), word(entry, 40), word(entry, 48));
            if kind == LOAD && flags & WRITE != 0 {
                let first = bias.wrapping_add(address);
                segments.writable.push(first..first.saturating_add(len));
            } else if kind == THREAD_LOCAL {
                segments.thread_local = len.saturating_add(alignment).min(1 << 24);
            }
        }
        Some(segments)
    }
}

/// Where the dynamic linker's code is.
fn linker(maps: &[Map<'_>]) -> Range<u64> {
    let is_it = |map: &&Map<'_>| map.path.contains("/ld-linux");
    let start = maps.iter().find(is_it).map_or(0, |map| map.range.start);
    let end = maps.iter().rfind(is_it).map_or(0, |map| map.range.end);
    start..end
}

/// Entry `index` of the table at `table`.
fn entry<T: Plain>(capture: &File, table: u64, index: u64) -> io::Result<T> {
    let mut bytes = vec![0; size_of::<T>()];
    capture.read_exact_at(&mut bytes, table + index * size_of::<T>() as u64)?;
    capture_format::read(&bytes, 0).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Sites of these chunks where the dynamic linker allocates, which knows them in its own ways.
fn held(capture: &File, chunks: &[LiveChunk], linker: &Range<u64>) -> io::Result<HashSet<u32>> {
    let mut is_held: BTreeMap<u32, bool> = chunks.iter().map(|it| (it.site, false)).collect();
    for (&site, is_held) in &mut is_held {
        let node = entry::<Site>(capture, layout::SITES, u64::from(site))?.node;
        let frame = entry::<Node>(capture, layout::NODES, node)?;
        let address = frame.pc & ((1 << capture_format::NUMBER_SHIFT) - 1);
        *is_held = linker.contains(&address);
    }
    Ok(is_held
        .into_iter()
        .filter_map(|(site, is_held)| is_held.then_some(site))
        .collect())
}

/// The chunks that are alive.
fn chunks(capture: &File, header: &Header) -> io::Result<Vec<LiveChunk>> {
    let data = process::data(capture)?;
    let last = header.chunks.min(layout::MAX_CHUNKS);
    match header.compact {
        0 => live::<Chunk>(capture, &data, (layout::CHUNKS, last), |it| *it),
        _ => live::<CompactChunk>(
            capture,
            &data,
            (layout::COMPACT_CHUNKS, last),
            CompactChunk::chunk,
        ),
    }
}

fn live<T: Plain>(
    capture: &File,
    data: &[Range<u64>],
    (table, count): (u64, u64),
    chunk: fn(&T) -> Chunk,
) -> io::Result<Vec<LiveChunk>> {
    let size = size_of::<T>() as u64;
    let mut chunks = Vec::new();
    let mut bytes = vec![0; usize::try_from(ENTRIES * size).unwrap_or_default()];
    for range in data {
        let first = range.start.saturating_sub(table) / size;
        let end = range.end.saturating_sub(table).div_ceil(size).min(count);
        let mut at = first;
        while at < end {
            let part = usize::try_from((end - at).min(ENTRIES) * size).unwrap_or_default();
            capture.read_exact_at(&mut bytes[..part], table + at * size)?;
            let entries = (0..part as u64 / size).filter_map(|index| {
                let raw = chunk(&capture_format::read::<T>(&bytes, index * size)?);
                Some(LiveChunk {
                    start: raw.start,
                    size: raw.size(),
                    site: raw.site,
                })
            });
            chunks.extend(entries.filter(|it| it.start != 0));
            at += ENTRIES;
        }
    }
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read() {
        let line = "7f10a000-7f10b000 rw-p 00003000 08:01 42   /lib/a b.so";
        let expected = Map {
            range: 0x7f10_a000..0x7f10_b000,
            is_writable: true,
            offset: 0x3000,
            path: "/lib/a b.so",
        };
        assert_eq!(Map::parse(line), Some(expected));
        assert_eq!(
            Map::parse("7f10a000-7f10b000 r--p 00000000 00:00 0")
                .unwrap()
                .path,
            ""
        );
        assert_eq!(Map::parse("nonsense"), None);
    }

    #[test]
    fn own_variables_are_within_writable_segments() {
        static VARIABLE: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(7);
        let memory = OfProcess(File::open("/proc/self/mem").unwrap());
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let maps: Vec<Map<'_>> = maps.lines().filter_map(Map::parse).collect();
        let modules = maps
            .iter()
            .filter(|it| it.offset == 0 && it.path.starts_with('/'));
        let segments = modules.filter_map(|it| Segments::read(it.range.start, &memory));
        let segments: Vec<Segments> = segments.collect();
        let address = (&raw const VARIABLE).addr() as u64;
        let is_there = |it: &Segments| it.writable.iter().any(|range| range.contains(&address));
        assert_eq!(segments.iter().filter(|it| is_there(it)).count(), 1);
        assert!(segments.iter().any(|it| it.thread_local > 0));
        let code = own_variables_are_within_writable_segments as fn();
        let within_code = |map: &&Map<'_>| map.range.contains(&(code as usize as u64));
        assert!(!maps.iter().find(within_code).unwrap().is_writable);
        assert!(!linker(&maps).is_empty());
    }
}
