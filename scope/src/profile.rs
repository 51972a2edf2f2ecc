//! What a run has told: the content of a profile, as read from a file or made from a capture.

use serde::{Deserialize, Serialize};

/// Entries of [`Site::sizes`] and [`Site::lifetimes`].
pub const BUCKETS: usize = 48;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Parts of equal length of a traced run.
pub const PARTS: u8 = 64;

/// A run of one process.
///
/// Times are counts of events (accesses, allocations and frees), from 1 on; [`Profile::seconds`]
/// turns them into wall-clock time. "Usable" sizes are what the allocator gave for the "requested"
/// ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub run: Run,
    pub total: Totals,
    /// Frames that stacks are made of.
    pub frames: Vec<Frame>,
    pub types: Vec<Type>,
    pub sites: Vec<Site>,
    pub threads: Vec<Thread>,
    /// Memory of the process over the time of the run.
    pub curve: Vec<Point>,
    pub resident: Vec<Resident>,
    /// Pointers from chunks of one site to chunks of another, most used first.
    pub edges: Vec<Edge>,
    /// With `--regions`: functions and spans by call path, callers first.
    pub regions: Vec<Region>,
    /// With `ccscope trace`: the memory of the process, by address.
    pub mappings: Vec<Mapping>,
    /// Its pages that were accessed, by page and part.
    pub pages: Vec<PageUse>,
    /// Chunks that were alive at the end, and of those freed the first 31 of each site and 16 more
    /// for each time their number doubles; with `--full`, all.
    pub chunks: Vec<Chunk>,
    pub windows: Vec<Window>,
    /// Cache lines that threads write in different places, those written most first.
    pub lines: Vec<SharedLine>,
    /// Measures of `ccscope::measure` that tests were not content with.
    pub exceeded: Vec<Exceeded>,
    /// What nothing led to when the process ended: sums, then sites, those with most bytes first;
    /// empty if nobody has looked.
    pub leaks: Vec<Leaks>,
    /// Pointers that were found in memory when leaks were looked for.
    pub links: Vec<Link>,
}

/// Chunks that were alive at the end and that the program could not reach any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaks {
    /// Index of the site; `None` for the sums over all.
    pub site: Option<u32>,
    /// Those that nothing leads to. Bytes are those asked for.
    pub chunks: u64,
    pub bytes: u64,
    /// Those that only leaked chunks lead to.
    pub indirect_chunks: u64,
    pub indirect_bytes: u64,
}

impl Leaks {
    /// Direct and indirect bytes.
    #[must_use]
    pub fn all_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.indirect_bytes)
    }

    /// Direct and indirect chunks.
    #[must_use]
    pub fn all_chunks(&self) -> u64 {
        self.chunks.saturating_add(self.indirect_chunks)
    }

    #[cfg(feature = "cli")]
    pub(crate) fn add(&mut self, other: &Leaks) {
        self.chunks = self.chunks.saturating_add(other.chunks);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.indirect_chunks = self.indirect_chunks.saturating_add(other.indirect_chunks);
        self.indirect_bytes = self.indirect_bytes.saturating_add(other.indirect_bytes);
    }
}

/// Words in chunks of one site that are addresses within chunks of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Index of a site; `None` for variables, stacks and registers.
    pub from: Option<u32>,
    pub to: u32,
    pub pointers: u64,
}

/// What was allocated in a call of `ccscope::measure` before the test panicked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exceeded {
    /// File, line and column of the call.
    pub place: String,
    /// By site, at most 16, in the order of their first allocations.
    pub sites: Vec<SiteCount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteCount {
    /// Index of the site.
    pub site: u32,
    /// With reallocations.
    pub allocations: u64,
    pub bytes: u64,
}

/// A cache line that threads write in turn, in different places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedLine {
    /// Its first byte.
    pub address: u64,
    /// Stores that follow another thread's store to another word of the line, and to the same word.
    /// One in 8 is counted.
    pub turns: u64,
    pub same: u64,
    /// As [`Site::threads`].
    pub threads: u64,
    /// Two places that different threads write: an index of a site, and the offset in its chunk.
    pub places: [(u32, u32); 2],
    /// Whether these are in two chunks.
    pub apart: bool,
}

/// How the profile came to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Version of `ccscope`.
    pub tool: String,
    /// Program and arguments; of these, what may be a secret is replaced by `***`.
    pub command: Vec<String>,
    pub pid: u32,
    /// Pid of the process that was started first, which may be this one.
    pub parent: u32,
    /// `rustc -vV`'s first line, or the C compiler's; empty if the program was not instrumented.
    pub compiler: String,
    pub flags: Vec<String>,
    /// The processor's name.
    pub machine: String,
    /// Nanoseconds since 1970.
    pub started_ns: u64,
    pub seconds: f64,
    /// In events.
    pub end: u64,
    pub exit: Exit,
    /// Whether loads and stores were seen.
    pub accesses: bool,
    /// Each recorded access stands for so many; 0 without windows.
    pub window_rate: u64,
    /// Chunks of fewer bytes were recorded [by chance](crate::analyses::sampled::within), and
    /// count for others; 0 if all were recorded.
    pub sample: u64,
    /// Sentences about what is missing from this profile.
    pub caveats: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// The process was still running, as far as the tool knows.
    #[default]
    Unknown,
    /// It has ended; how, only its parent knows.
    Ended,
}

/// Sums for the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    pub allocations: u64,
    pub frees: u64,
    pub requested: u64,
    pub usable: u64,
    pub peak_usable: u64,
    pub peak_requested: u64,
    pub peak_chunks: u64,
    pub peak_time: u64,
    pub end_usable: u64,
    pub end_chunks: u64,
    pub heap_reads: u64,
    pub heap_writes: u64,
    /// Stack and global variables.
    pub other_reads: u64,
    pub other_writes: u64,
    /// Bytes that instrumented code has copied or filled by `memcpy` and the like, each as one
    /// access.
    pub block_bytes: u64,
    /// The same by code without instrumentation and the kernel, as far as functions of libc show
    /// it.
    pub foreign_bytes: u64,
    pub mapped_peak: u64,
    pub unknown_frees: u64,
    pub lost_chunks: u64,
}

/// A line of source in a function, after inlining is undone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Demangled, with generic arguments.
    pub function: String,
    /// Empty if there is no debug information.
    pub file: String,
    /// 0 if unknown.
    pub line: u32,
    /// File name of the executable or library.
    pub module: String,
    /// The return address within the module's file.
    pub address: u64,
    /// Whether the compiler inlined it into the next frame.
    pub inlined: bool,
}

/// What chunks hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Type {
    /// As the user writes it: `Box<Node>`, `Vec<u32>`, `HashMap<String, u64>`; "bytes" where
    /// nothing says.
    pub name: String,
    /// Bytes of one element, where known.
    pub size: Option<u64>,
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Field {
    pub name: String,
    pub type_name: String,
    pub offset: u64,
    pub size: u64,
}

/// An allocation point: all chunks with one call stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Indices of frames, innermost first.
    pub stack: Vec<u32>,
    /// Index into `frames`: the innermost frame of the user's own code.
    pub place: Option<u32>,
    /// Index into `types`.
    pub type_id: Option<u32>,
    /// Whether the chunks are of code that is not instrumented: what it does with them is not seen.
    pub unseen: bool,
    pub allocations: u64,
    pub frees: u64,
    pub requested: u64,
    pub usable: u64,
    pub peak_usable: u64,
    pub peak_chunks: u64,
    pub peak_time: u64,
    /// At the peak of the process.
    pub at_peak_usable: u64,
    pub at_peak_requested: u64,
    pub at_peak_chunks: u64,
    /// Bytes of the chunks that were alive then which the program touched at any time; of chunks of
    /// more than 1024 bytes in blocks of 64 bytes.
    pub at_peak_touched: u64,
    /// Bit `n` is set if thread `n` (by [`Thread::id`]) has allocated here; bit 63 stands for all
    /// from 63 on.
    pub threads: u64,
    pub end_usable: u64,
    pub end_chunks: u64,
    pub smallest: u64,
    pub largest: u64,
    pub first_time: u64,
    pub last_time: u64,
    pub reallocs: u64,
    pub moved_bytes: u64,
    pub longest_chain: u64,
    /// Bytes that chunks had already when `realloc` resized them in place; not in `requested`.
    pub kept_bytes: u64,
    /// Calls of `realloc` with the size that the chunk had.
    pub same_size: u64,
    pub temporary: u64,
    pub longest_run: u64,
    /// The fields from here on take in chunks alive at the end, with the end as their time of
    /// death.
    pub reads: u64,
    pub writes: u64,
    pub touched_bytes: u64,
    pub useful_bytes: u64,
    pub untouched_chunks: u64,
    pub unread_chunks: u64,
    pub unwritten_chunks: u64,
    pub shared_chunks: u64,
    /// Sum of lifetimes, in events.
    pub lifetime: u64,
    pub shortest_life: u64,
    pub longest_life: u64,
    /// Sum over chunks of (last access - first access) / lifetime.
    pub active_ratio: f64,
    /// Bytes times events between the last access and the free; likewise from allocation to first
    /// access.
    pub drag: f64,
    pub wait: f64,
    /// Chunks by the number of bits of their size in bytes, and of their lifetime in events: 48
    /// entries each, the last with all that are larger.
    pub sizes: Vec<u32>,
    pub lifetimes: Vec<u32>,
    /// Reads and writes of each byte, when all chunks have one size of at most 1024 bytes.
    pub histogram: Option<Histogram>,
    pub groups: Vec<Group>,
    pub curve: Vec<Point>,
}

impl Site {
    /// Bytes of all its chunks; one that was resized in place is another.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        self.requested.saturating_add(self.kept_bytes)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    pub reads: Vec<u64>,
    pub writes: Vec<u64>,
}

/// Chunks allocated close together: S. Byma and J. Larus (2018), section 4.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    pub first_allocated: u64,
    pub last_allocated: u64,
    pub chunks: u64,
    /// Sum over all its chunks.
    pub lifetimes: u64,
    pub last_freed: u64,
}

/// Holds until the next point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    pub time: u64,
    /// Nanoseconds since the start.
    pub ns: u64,
    pub usable: u64,
    /// The most until the next point.
    pub peak: u64,
    pub requested: u64,
    pub touched: u64,
    pub allocations: u64,
}

/// Resident bytes of the process without those of the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    pub time: u64,
    pub ns: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    pub id: u64,
    pub started: u64,
    /// The end of the run if it was alive then.
    pub ended: u64,
    pub allocations: u64,
    pub peak: u64,
    pub end_live: u64,
    pub events: u64,
    pub curve: Vec<Point>,
}

/// A loaded word of site `from` that was the address of a chunk of site `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// Indices of sites.
    pub from: u32,
    pub offset: u32,
    pub to: u32,
    /// Loads in the windows, and those after which the chunk was accessed within 16 accesses.
    pub loads: u64,
    pub followed: u64,
}

/// A function or span as called along one path; or a thread, which is the root of its paths.
///
/// An invocation's footprint is the set of heap addresses that it and what it called have touched.
/// All sums are over invocations, and take in what was called from there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Region {
    /// Index of the caller, which comes before; `None` for a thread.
    pub parent: Option<u32>,
    pub kind: RegionKind,
    /// A function's name, demangled; that of a span; or "thread".
    pub name: String,
    /// Empty if unknown.
    pub file: String,
    /// 0 if unknown.
    pub line: u32,
    /// 1 for the outermost invocations. With `--levels`, those of a function that runs already are
    /// regions of their own: the children of level 1, with 2, 3 and so on.
    pub level: u32,
    pub invocations: u64,
    /// Calls of the function while it ran already; they are part of the outermost invocation.
    pub recursive: u64,
    pub reads: u64,
    pub writes: u64,
    pub allocations: u64,
    /// By requested size.
    pub allocated: u64,
    /// Distinct bytes, blocks of 64 bytes, and pages of 4 KiB.
    pub bytes: Footprint,
    pub blocks: Footprint,
    pub pages: Footprint,
    /// Bytes that the calling invocation had touched before: what the caller shares.
    pub reused: u64,
    /// Bytes that nobody in the thread had touched before.
    pub fresh: u64,
    /// Invocations by the number of bits of their footprint in bytes: [`BUCKETS`] entries.
    pub footprints: Vec<u32>,
    /// Bytes that became part of a footprint, by time: each entry is of [`Region::step`] events.
    pub growth: Vec<u64>,
    pub step: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RegionKind {
    #[default]
    Thread,
    Function,
    /// A span of `tracing`, or of `ccscope::region!`.
    Span,
}

/// Sums over the invocations of a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    pub total: u64,
    /// Bytes of the largest invocation.
    pub max: u64,
}

/// Neighbouring pages of one origin, of a process that was traced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// First byte, a multiple of [`PAGE`].
    pub start: u64,
    /// Behind the last byte, likewise.
    pub end: u64,
    /// File name of the executable or library, with ` (bss)` behind it for its zeroed data;
    /// `[heap]`, `[stack]` and the like; `[mapped]` for memory without a name.
    pub name: String,
    /// As `rw-p`; empty for what was mapped while the program ran.
    pub rights: String,
    pub is_traced: bool,
}

/// Accesses of a page in one part of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageUse {
    /// Its address divided by [`PAGE`].
    pub page: u64,
    /// One of [`PARTS`] parts of the run, each of as many events.
    pub part: u8,
    pub loads: u64,
    pub stores: u64,
    /// Blocks that were copied, stored or fetched, each once for each page that it touches.
    pub blocks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    pub site: u32,
    pub address: u64,
    pub size: u64,
    /// Index into the profile's threads of the one that allocated it, or `u16::MAX` if unknown.
    pub thread: u16,
    pub shared: bool,
    pub allocated: u64,
    /// 0 if it was never accessed.
    pub first: u64,
    pub last: u64,
    /// 0 if it was alive at the end.
    pub freed: u64,
    pub reads: u32,
    pub writes: u32,
    pub touched: u64,
}

/// A burst of accesses without a gap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub time: u64,
    /// Whether these are the process's first accesses. Others are at random times.
    pub from_start: bool,
    /// Index into the profile's threads, or `u32::MAX` if unknown.
    pub thread: u32,
    pub accesses: Vec<Access>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    pub address: u64,
    pub size: u8,
    pub write: bool,
    /// Index of the site, or `u32::MAX` outside the heap.
    pub site: u32,
    /// From the start of the chunk.
    pub offset: u32,
    /// The loaded word if it leads into a chunk, or 0; and the site of that chunk, or `u32::MAX`.
    pub pointer: u64,
    pub target: u32,
}

/// A pointer counts as followed if its chunk is one of so many accesses that come next.
pub(crate) const NEAR: usize = 16;

impl Access {
    /// Address of the first byte of its chunk.
    pub(crate) fn base(&self) -> u64 {
        self.address.wrapping_sub(u64::from(self.offset))
    }

    /// Whether `next` accesses what the pointer that was loaded points to, or the chunk that
    /// begins there.
    pub(crate) fn leads_to(&self, next: &Access) -> bool {
        next.site == self.target && [next.base(), next.address].contains(&self.pointer)
    }
}

impl Profile {
    /// Seconds from the start to `time`, by the nearest point of the curve.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a run does not last 500 years"
    )]
    pub fn seconds(&self, time: u64) -> f64 {
        let at = self.curve.partition_point(|point| point.time <= time);
        let before = at
            .checked_sub(1)
            .map_or((1, 0), |i| (self.curve[i].time, self.curve[i].ns));
        let end = (self.run.end, (self.run.seconds * 1e9) as u64);
        let after = self
            .curve
            .get(at)
            .map_or(end, |point| (point.time, point.ns));
        let part =
            time.saturating_sub(before.0) as f64 / after.0.saturating_sub(before.0).max(1) as f64;
        (before.1 as f64 + part * after.1.saturating_sub(before.1) as f64) / 1e9
    }
}
