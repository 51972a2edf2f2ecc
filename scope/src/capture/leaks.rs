//! Which chunks nothing leads to when the process ends: a conservative scan, as LeakSanitizer does.
//!
//! A word that is an address within a chunk leads to it, wherever it stands: in a variable of the
//! program, on a stack, in a register, or in a chunk that something leads to. What remains is
//! leaked: directly, or indirectly if a leaked chunk leads to it.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// Bytes of memory that are read at once.
const WINDOW: usize = 256 << 10;
/// Bytes of a word.
const WORD: u64 = 8;

/// The memory of a process that stands still.
pub(crate) trait Memory {
    /// Reads from `start` on; how many bytes could be read.
    fn read(&self, start: u64, into: &mut [u8]) -> usize;
}

/// A chunk that was not freed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveChunk {
    pub(crate) start: u64,
    pub(crate) size: u64,
    /// As the capture numbers sites.
    pub(crate) site: u32,
}

impl LiveChunk {
    /// An empty chunk has its address all the same.
    fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.size.max(1)
    }
}

/// What the program reaches by itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots {
    /// Variables and stacks.
    pub(crate) ranges: Vec<Range<u64>>,
    /// Variables of the allocator's library. It knows chunks by what lies before them, which may be
    /// the end of another chunk: only addresses at which chunks begin count.
    pub(crate) exact: Vec<Range<u64>>,
    /// Of all threads.
    pub(crate) registers: Vec<u64>,
    /// Sites whose chunks are the dynamic linker's own.
    pub(crate) held_sites: HashSet<u32>,
}

/// Sums over chunks of a site that were alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeakSums {
    /// Chunks, and their bytes, that nothing leads to.
    pub(crate) direct: [u64; 2],
    /// Those that only leaked ones lead to.
    pub(crate) indirect: [u64; 2],
}

/// What a scan has found, by sites as the capture numbers them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    pub(crate) sites: BTreeMap<u32, LeakSums>,
    /// Pointers from chunks of one site to chunks of another; from `None`, those of the roots.
    pub(crate) links: BTreeMap<(Option<u32>, u32), u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Unknown,
    Reached,
    Indirect,
}

/// Finds what is leaked of `chunks`. O(words of memory × log chunks).
pub(crate) fn scan(mut chunks: Vec<LiveChunk>, roots: &Roots, memory: &dyn Memory) -> Scan {
    chunks.sort_by_key(|it| it.start);
    let graph = Graph::new(&chunks, memory);
    let mut scan = Scan::default();
    let mut classes = vec![Class::Unknown; chunks.len()];
    let mut todo: Vec<u32> = Vec::new();
    let mut from_root = |chunk: u32| {
        let at = chunk as usize;
        *scan.links.entry((None, chunks[at].site)).or_default() += 1;
        if classes[at] == Class::Unknown {
            classes[at] = Class::Reached;
            todo.push(chunk);
        }
    };
    let mut window = Window::new(memory);
    for (ranges, is_exact) in [(&roots.ranges, false), (&roots.exact, true)] {
        for range in ranges {
            window.each_word(range.start, range.end, |word| {
                let found = find(&chunks, word);
                let is_it = |&chunk: &u32| !is_exact || chunks[chunk as usize].start == word;
                found.filter(is_it).into_iter().for_each(&mut from_root);
            });
        }
    }
    let in_registers = roots.registers.iter();
    let in_registers = in_registers.filter_map(|&word| find(&chunks, word));
    let held = chunks.iter().enumerate();
    let held = held.filter(|(_, chunk)| roots.held_sites.contains(&chunk.site));
    in_registers
        .chain(held.map(|(at, _)| index(at)))
        .for_each(&mut from_root);
    while let Some(chunk) = todo.pop() {
        for &to in graph.of(chunk) {
            if classes[to as usize] == Class::Unknown {
                classes[to as usize] = Class::Reached;
                todo.push(to);
            }
        }
    }
    for chunk in (0..chunks.len())
        .filter(|&at| classes[at] != Class::Reached)
        .collect::<Vec<_>>()
    {
        for &to in graph.of(index(chunk)) {
            if classes[to as usize] == Class::Unknown && to != index(chunk) {
                classes[to as usize] = Class::Indirect;
            }
        }
    }
    for (at, chunk) in chunks.iter().enumerate() {
        for &to in graph.of(index(at)) {
            let pair = (Some(chunk.site), chunks[to as usize].site);
            *scan.links.entry(pair).or_default() += 1;
        }
        let sums = match classes[at] {
            Class::Reached => continue,
            Class::Unknown => &mut scan.sites.entry(chunk.site).or_default().direct,
            Class::Indirect => &mut scan.sites.entry(chunk.site).or_default().indirect,
        };
        sums[0] += 1;
        sums[1] = sums[1].saturating_add(chunk.size);
    }
    scan
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a capture has room for 2^30 chunks"
)]
fn index(at: usize) -> u32 {
    at as u32
}

/// The chunk that `address` lies in; they are in order.
fn find(chunks: &[LiveChunk], address: u64) -> Option<u32> {
    let (first, last) = (chunks.first()?, chunks.last()?);
    // Most words are no addresses.
    if address < first.start || address - last.start.min(address) > last.size {
        return None;
    }
    let after = chunks.partition_point(|it| it.start <= address);
    let before = after.checked_sub(1)?;
    chunks[before].contains(address).then(|| index(before))
}

/// Which chunks lead to which.
struct Graph {
    /// Where the targets of each chunk end.
    ends: Vec<usize>,
    targets: Vec<u32>,
}

impl Graph {
    fn new(chunks: &[LiveChunk], memory: &dyn Memory) -> Graph {
        let mut window = Window::new(memory);
        let (mut ends, mut targets) = (Vec::with_capacity(chunks.len()), Vec::new());
        for chunk in chunks {
            window.each_word(
                chunk.start,
                chunk.start.saturating_add(chunk.size),
                |word| {
                    targets.extend(find(chunks, word));
                },
            );
            ends.push(targets.len());
        }
        Graph { ends, targets }
    }

    fn of(&self, chunk: u32) -> &[u32] {
        let at = chunk as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.targets[start..self.ends[at]]
    }
}

/// Memory that was read last: chunks lie beside each other.
struct Window<'m> {
    memory: &'m dyn Memory,
    start: u64,
    bytes: Vec<u8>,
}

impl<'m> Window<'m> {
    fn new(memory: &'m dyn Memory) -> Window<'m> {
        let (start, bytes) = (0, Vec::new());
        Window {
            memory,
            start,
            bytes,
        }
    }

    /// Calls `work` for the whole words from `start` to `end` that can be read.
    fn each_word(&mut self, start: u64, end: u64, mut work: impl FnMut(u64)) {
        let mut at = start.next_multiple_of(WORD);
        while at.saturating_add(WORD) <= end {
            let words = self.from(at, end);
            if words.is_empty() {
                return;
            }
            for word in words.chunks_exact(8) {
                work(u64::from_le_bytes(word.try_into().unwrap_or_default()));
            }
            at += words.len() as u64;
        }
    }

    /// Whole words from `at` on, at most to `end`; none if they cannot be read.
    fn from(&mut self, at: u64, end: u64) -> &[u8] {
        let is_there = at.wrapping_sub(self.start).saturating_add(WORD) <= self.bytes.len() as u64;
        if !is_there || at < self.start {
            self.start = at;
            self.bytes.resize(WINDOW, 0);
            let len = self.memory.read(at, &mut self.bytes);
            self.bytes.truncate(len / 8 * 8);
        }
        let from = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        let rest = self.bytes.get(from..).unwrap_or_default();
        let most = usize::try_from((end - at) / WORD * WORD).unwrap_or(usize::MAX);
        &rest[..rest.len().min(most) / 8 * 8]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words by address; nothing else can be read.
    struct Words(BTreeMap<u64, u64>);

    impl Memory for Words {
        fn read(&self, start: u64, into: &mut [u8]) -> usize {
            let mut len = 0;
            for word in into.chunks_exact_mut(8) {
                let Some(there) = self.0.get(&(start + len as u64)) else {
                    break;
                };
                word.copy_from_slice(&there.to_le_bytes());
                len += 8;
            }
            len
        }
    }

    /// Chunks of 16 bytes of sites 1, 2 and so on, at 0x1000, 0x1020 and so on, with these words.
    fn run(content: &[[u64; 2]], roots: &Roots, root_words: &[u64]) -> Scan {
        let start = |at: usize| 0x1000 + 0x20 * at as u64;
        let mut words = BTreeMap::new();
        for (at, pair) in content.iter().enumerate() {
            words.insert(start(at), pair[0]);
            words.insert(start(at) + 8, pair[1]);
        }
        for (at, word) in root_words.iter().enumerate() {
            words.insert(8 * at as u64 + 64, *word);
        }
        let chunk = |at: usize| LiveChunk {
            start: start(at),
            size: 16,
            site: index(at) + 1,
        };
        let chunks = (0..content.len()).rev().map(chunk).collect();
        scan(chunks, roots, &Words(words))
    }

    fn leaked(scan: &Scan) -> Vec<(u32, u64, u64)> {
        let sums = scan.sites.iter();
        sums.map(|(&site, it)| (site, it.direct[0], it.indirect[0]))
            .collect()
    }

    #[test]
    fn what_roots_lead_to_is_no_leak() {
        let roots = Roots {
            ranges: vec![64..80],
            registers: vec![0x1068],
            ..Roots::default()
        };
        // A chain from a variable; one by an address within; one that leads into it; two in a
        // circle.
        let content = [
            [0x1020, 0],
            [0, 0x1020],
            [0x1000, 0x1040],
            [0, 0],
            [0x10A0, 0],
            [0x1080, 7],
        ];
        let scan = run(&content, &roots, &[3, 0x100F]);
        assert_eq!(leaked(&scan), [(3, 1, 0), (5, 0, 1), (6, 0, 1)]);
        assert_eq!(scan.sites[&3].direct, [1, 16]);
        let roots: Vec<u32> = { scan.links.keys() }
            .filter_map(|(from, to)| from.is_none().then_some(*to))
            .collect();
        assert_eq!(roots, [1, 4]);
        assert_eq!(scan.links[&(Some(2), 2)], 1);
    }

    #[test]
    fn the_allocator_s_variables_and_the_linker_s_chunks() {
        let roots = Roots {
            exact: vec![64..88],
            held_sites: HashSet::from([3]),
            ..Roots::default()
        };
        let content = [[0, 0], [0, 0], [0, 0x1060], [0, 0], [0x1085, 0]];
        let scan = run(&content, &roots, &[0x1008, 0x1020, 0x1010]);
        assert_eq!(leaked(&scan), [(1, 1, 0), (5, 1, 0)]);
    }

    #[test]
    fn memory_that_cannot_be_read_leads_nowhere() {
        let roots = Roots {
            ranges: vec![0..u64::MAX],
            ..Roots::default()
        };
        assert_eq!(leaked(&run(&[[0, 0]], &roots, &[0x1000])), [(1, 1, 0)]);
        assert_eq!(
            scan(Vec::new(), &roots, &Words(BTreeMap::new())),
            Scan::default()
        );
    }
}
