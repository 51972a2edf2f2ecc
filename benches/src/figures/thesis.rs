//! The thesis's machine, simulated: a Sun Ultraserver E5000 as its section 2.3.1 describes it.
//!
//! | | | |
//! |---|---|---|
//! | first level | 16 KB, direct-mapped, lines of 16 B | a hit takes 1 cycle |
//! | second level | 1 MB, direct-mapped, lines of 64 B | a first-level miss takes 6 cycles more |
//! | memory | | a second-level miss takes 64 cycles more |
//! | data TLB (section 5.5.1) | 64 entries, fully associative, pages of 8 KB | no cost is given |
//!
//! Both caches are blocking and indexed by addresses as the program sees them, which is what its
//! operating system's page colours come to. Every read is a word of 4 B. The cycles are those of
//! memory alone: neither instructions nor TLB misses, whose cost the thesis does not tell, are in
//! them.

use serde::Serialize;

/// Cycles of a read that hits, of a miss of the first level, and of one of the second, each on top
/// of those before.
const HIT_CYCLES: f64 = 1.0;
const L1_MISS_CYCLES: f64 = 6.0;
const L2_MISS_CYCLES: f64 = 64.0;
const TLB_ENTRIES: usize = 64;
const PAGE_BYTES: u64 = 8192;
/// In no cache.
const NOTHING: u64 = u64::MAX;

/// Sets of one line each.
#[derive(Debug)]
struct DirectMapped {
    line_bytes: u64,
    /// For each set, the line that it holds.
    lines: Vec<u64>,
}

impl DirectMapped {
    fn new(sets: usize, line_bytes: u64) -> DirectMapped {
        DirectMapped {
            line_bytes,
            lines: vec![NOTHING; sets],
        }
    }

    /// Whether `address` is there; it is afterwards.
    fn hits(&mut self, address: u64) -> bool {
        let line = address / self.line_bytes;
        let sets = self.lines.len() as u64;
        let set = usize::try_from(line % sets).expect("less than the number of sets");
        std::mem::replace(&mut self.lines[set], line) == line
    }
}

/// The machine, and what has happened since it was cold.
#[derive(Debug)]
pub struct ThesisMachine {
    l1: DirectMapped,
    l2: DirectMapped,
    /// The pages that have a translation, the last one used first.
    pages: Vec<u64>,
    reads: u64,
    l1_misses: u64,
    l2_misses: u64,
    tlb_misses: u64,
}

/// What one search costs on average.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SearchCost {
    /// Words read.
    pub reads: f64,
    /// First-level misses.
    pub l1_misses: f64,
    /// Second-level misses.
    pub l2_misses: f64,
    /// Data TLB misses; `None` where nothing is known of them. They are not in the cycles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlb_misses: Option<f64>,
    /// Cycles of all reads.
    pub cycles: f64,
}

impl Default for ThesisMachine {
    fn default() -> ThesisMachine {
        ThesisMachine::cold()
    }
}

impl ThesisMachine {
    /// The machine with nothing in its caches.
    pub fn cold() -> ThesisMachine {
        ThesisMachine {
            l1: DirectMapped::new((16 << 10) / 16, 16),
            l2: DirectMapped::new((1 << 20) / 64, 64),
            pages: Vec::with_capacity(TLB_ENTRIES + 1),
            reads: 0,
            l1_misses: 0,
            l2_misses: 0,
            tlb_misses: 0,
        }
    }

    /// Reads the word at `address`.
    pub fn read(&mut self, address: u64) {
        self.reads += 1;
        self.translate(address / PAGE_BYTES);
        if !self.l1.hits(address) {
            self.l1_misses += 1;
            self.l2_misses += u64::from(!self.l2.hits(address));
        }
    }

    /// Finds a page in the TLB, or puts it there for the one that was not used for longest.
    fn translate(&mut self, page: u64) {
        match self.pages.iter().position(|&other| other == page) {
            Some(place) => self.pages[..=place].rotate_right(1),
            None => {
                self.tlb_misses += 1;
                self.pages.insert(0, page);
                self.pages.truncate(TLB_ENTRIES);
            }
        }
    }

    /// What each of `searches` searches has cost since the machine was cold.
    pub fn cost_of_each(&self, searches: u64) -> SearchCost {
        let each = |count: u64| count as f64 / searches.max(1) as f64;
        let [reads, l1_misses, l2_misses] = [self.reads, self.l1_misses, self.l2_misses].map(each);
        SearchCost {
            tlb_misses: Some(each(self.tlb_misses)),
            ..SearchCost::of_memory(reads, l1_misses, l2_misses)
        }
    }
}

impl SearchCost {
    /// From reads and misses of the caches alone.
    pub fn of_memory(reads: f64, l1_misses: f64, l2_misses: f64) -> SearchCost {
        SearchCost {
            reads,
            l1_misses,
            l2_misses,
            tlb_misses: None,
            cycles: reads * HIT_CYCLES + l1_misses * L1_MISS_CYCLES + l2_misses * L2_MISS_CYCLES,
        }
    }
}
