//! What the runtime in the profiled process writes and the tool reads: the **capture**, one
//! sparse memory file for each process.
//!
//! Both sides map the file, so nothing has to be written out when the process ends, however it
//! ends. Every part has a fixed offset and far more room than it needs; pages that nobody
//! writes take no memory. All numbers are in the byte order of the machine.
//!
//! * A **site** is an allocation point: one call stack. Its frames are [`Node`]s, from the
//!   innermost out.
//! * A **chunk** is one allocation. Chunks that are freed are folded into their [`Site`].
//! * **Time** is a count of events: accesses, allocations and frees. It starts at 1; 0 is never.
//!
//! The code uses nothing but `core`: it is compiled into the runtime, too.

pub mod accesses;
pub mod sampling;

/// First word of a capture.
pub const MAGIC: u64 = u64::from_le_bytes(*b"ccscope\x01");
/// First word of what a process that ends says to the tool, instead of [`MAGIC`]: it waits until
/// the tool closes the connection.
pub const ENDS: u64 = u64::from_le_bytes(*b"ccscope\x02");
/// Changes with every change of this module.
pub const VERSION: u32 = 4;

/// Names the Unix socket on which the tool takes captures. A runtime that does not find it
/// does nothing.
pub const SOCKET_VARIABLE: &str = "CCSCOPE_SOCKET";
/// [`Options`] of the runtime, as `name=number` pairs with commas between them.
pub const OPTIONS_VARIABLE: &str = "CCSCOPE_OPTIONS";

/// Offsets of the parts, and how many entries each has room for.
pub mod layout {
    const GIB: u64 = 1 << 30;

    pub const HEADER: u64 = 0;
    pub const MODULES: u64 = 1 << 20;
    pub const MAX_MODULES: u64 = 4096;
    /// Cache lines that several threads write: [`Line`](super::Line)s.
    pub const LINES: u64 = 8 << 20;
    pub const MAX_LINES: u64 = 4096;
    /// Measures that a test was not content with: [`Exceeded`](super::Exceeded)s.
    pub const EXCEEDED: u64 = 12 << 20;
    pub const MAX_EXCEEDED: u64 = 256;
    pub const THREADS: u64 = 16 << 20;
    pub const MAX_THREADS: u64 = 1 << 15;
    pub const NODES: u64 = GIB;
    pub const MAX_NODES: u64 = 1 << 28;
    pub const SITES: u64 = 16 * GIB;
    pub const MAX_SITES: u64 = 1 << 22;
    /// With `regions`: their tree, the stack of open ones of each thread, and names of spans.
    pub const REGIONS: u64 = 24 * GIB;
    pub const MAX_REGIONS: u64 = 1 << 22;
    pub const NAMES: u64 = 31 * GIB;
    pub const NAMES_END: u64 = 32 * GIB;
    pub const TRACKS: u64 = 32 * GIB;
    pub const MAX_TRACKS: u64 = 128;
    pub const TRACK_ROOM: u64 = 256 << 20;
    /// Where in a track its open regions begin and end.
    pub const OPENS: u64 = 128 << 10;
    pub const OPENS_END: u64 = 128 << 20;
    pub const CHUNKS: u64 = 64 * GIB;
    pub const MAX_CHUNKS: u64 = 1 << 30;
    /// [`CompactChunk`](super::CompactChunk)s, as many as chunks.
    pub const COMPACT_CHUNKS: u64 = 192 * GIB;
    /// Maps of touched bytes, groups and curves. Offsets of these are offsets into the capture, in
    /// bytes.
    pub const HEAP: u64 = 320 * GIB;
    pub const HEAP_END: u64 = 576 * GIB;
    pub const WINDOWS: u64 = 576 * GIB;
    /// A ring of [`FreedChunk`](super::FreedChunk)s that the tool empties.
    pub const FREED: u64 = 704 * GIB;
    pub const FREED_LEN: u64 = 1 << 18;
    /// For each chunk, reads and writes by threads that did not allocate it: two `u32`.
    pub const NON_OWNER_COUNTS: u64 = 720 * GIB;
    /// Shards of histograms, so large each. A thread counts in a shard of its own; those that have
    /// none, in the first.
    pub const HISTS: u64 = 736 * GIB;
    pub const SHARDS: u64 = 64;
    pub const SHARD: u64 = 4 * GIB;
    /// From here on, read by nobody but the runtime: which chunk an address belongs to.
    pub const PAGES: u64 = 1024 * GIB;
    pub const GRANULES: u64 = 1152 * GIB;
    pub const MAX_GRANULE_TABLES: u64 = 1 << 25;
    /// Which bytes of pages with a table of granules are known to be touched.
    pub const SEEN: u64 = 1216 * GIB;
    /// Which compact chunks begin at an address.
    pub const FIRST_PAGES: u64 = 1232 * GIB;
    pub const FIRSTS: u64 = 1264 * GIB;
    pub const END: u64 = 1280 * GIB;
}

/// A type of this module that may be read from any bytes.
///
/// # Safety
///
/// The type is `repr(C)`, has no padding, and every bit pattern is a value of it.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($name:ty),*) => {
        // SAFETY: integers and arrays of them, in an order that leaves no gap; the constants
        // below check the sizes.
        $(unsafe impl Plain for $name {})*
    };
}
plain!(
    Header,
    Module,
    Region,
    Track,
    Open,
    Thread,
    Node,
    Site,
    Chunk,
    CompactChunk,
    Group,
    CurveTail,
    Curve,
    Point,
    Window,
    FreedChunk,
    Line,
    Exceeded,
    u64
);

/// Reads the entry at `offset`, or `None` beyond the end of `capture`.
#[must_use]
pub fn read<T: Plain>(capture: &[u8], offset: u64) -> Option<T> {
    let start = usize::try_from(offset).ok()?;
    let bytes = capture.get(start..start.checked_add(size_of::<T>())?)?;
    // SAFETY: `bytes` is as long as a `T`, and any bytes are a `T`. It need not be aligned.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// What the runtime collects; `name=number` in [`OPTIONS_VARIABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// `stacks`: record a call stack with each allocation. Without, all chunks are of site 1.
    pub stacks: bool,
    /// `sites`: keep chunks and sites. Without, only the totals and curves of process and threads.
    pub sites: bool,
    /// `accesses`: the program is instrumented, so copies by precompiled code count as well.
    pub accesses: bool,
    /// `full`: hand each chunk that dies to the tool, and not just some of each site.
    pub full: bool,
    /// `regions`: record the footprints of functions and spans instead of sites; with 2 each level
    /// of a recursion by itself.
    pub regions: u64,
    /// `all_memory`: regions touch stacks and global variables, too.
    pub all_memory: bool,
    /// `leaks`: wait at the end until the tool has looked for leaks.
    pub leaks: bool,
    /// `rate`: one access of so many is recorded in a window; 0 for no windows.
    pub rate: u64,
    /// `sample`: record some chunks of fewer bytes than this only, see [`weight`]; 0 for all.
    pub sample: u64,
}

impl Options {
    pub const DEFAULT: Options = Options {
        stacks: true,
        sites: true,
        accesses: false,
        full: false,
        regions: 0,
        all_memory: false,
        leaks: false,
        rate: 1000,
        sample: 0,
    };
}

/// As how many chunks of `size` bytes one counts that was recorded, if of those with fewer than
/// `sample` bytes only some are: each with a chance of one in so many, so that sums are unbiased.
#[must_use]
pub fn weight(size: u64, sample: u64) -> u64 {
    if size >= sample {
        1
    } else {
        sample.div_ceil(size.max(1))
    }
}

/// `Header::state`
pub mod state {
    pub const RUNNING: u64 = 1;
    /// The process has called `exit` or returned from `main`.
    pub const EXITED: u64 = 2;
    /// Recording stopped before the end of the process: no memory for the capture was left.
    pub const STOPPED: u64 = 3;
}

/// What `ccscope_attach` and `ccscope_detach` return when they fail.
pub mod live {
    /// The process is recorded.
    pub const ALREADY: i64 = -1;
    /// The library was there from the start.
    pub const NOT_LATE: i64 = -2;
    pub const NO_ALLOCATOR: i64 = -3;
    /// The dynamic linker cannot be locked.
    pub const NO_LOCK: i64 = -4;
    pub const NOT_ATTACHED: i64 = -5;
    /// A thread does not leave a function that is taken over; the capture stays.
    pub const OCCUPIED: i64 = -6;
    /// There is no memory file, it may not be so long, or there are no addresses for it.
    pub const NO_FILE: i64 = -7;
    pub const TOO_LONG: i64 = -8;
    pub const NO_ADDRESSES: i64 = -9;
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// [`MAGIC`], written last.
    pub magic: u64,
    pub version: u32,
    pub pid: u32,
    pub parent: u32,
    pub options: u32,
    /// Nanoseconds since 1970 and time-stamp counter at the start.
    pub start_ns: u64,
    pub start_tsc: u64,
    /// The same at the newest point of the process's curve.
    pub last_ns: u64,
    pub last_tsc: u64,
    pub state: u64,
    /// The current time.
    pub events: u64,
    pub modules: u64,
    pub threads: u64,
    pub nodes: u64,
    pub sites: u64,
    /// Entries of the table of chunks, free ones included. Entry 0 is never used.
    pub chunks: u64,
    pub heap_used: u64,
    /// Bytes of each shard in use; and a bit for each shard that a thread has had.
    pub hists_used: u64,
    pub shards: u64,
    pub windows: u64,
    /// Sums of the whole process; the fields that only a site has are 0.
    pub total: Site,
    /// Bytes now mapped by `mmap` without a file, and their peak.
    pub mapped: u64,
    pub mapped_peak: u64,
    /// Accesses outside the heap: stack and global variables.
    pub other_reads: u64,
    pub other_writes: u64,
    /// Bytes that block operations (`memcpy` and so on) read and wrote in the heap.
    pub block_bytes: u64,
    /// Frees of chunks that were allocated before recording began or in another process.
    pub unknown_frees: u64,
    /// Chunks that could not be recorded.
    pub lost_chunks: u64,
    /// 1 as long as accesses are not looked up: all chunks are [`CompactChunk`]s.
    pub compact: u64,
    /// Bytes that precompiled code has copied or filled in the heap and that the kernel has read
    /// and written there, as far as that is seen: by functions of libc.
    pub foreign_bytes: u64,
    /// Chunks that were put into the ring and taken out of it, and those for which the tool left no
    /// room in time.
    pub freed_put: u64,
    pub freed_taken: u64,
    pub freed_lost: u64,
    /// Entries of the table of [`Region`]s, entry 0 included, which is never used.
    pub regions: u64,
    /// Tracks in use so far, and threads that got none.
    pub tracks: u64,
    pub untracked: u64,
    /// Bytes of names of spans.
    pub names_used: u64,
    /// 1 if recording began while the process ran.
    pub late: u64,
    /// Snapshots that the program has asked for.
    pub asked: u64,
    /// Entries of the table of [`Exceeded`].
    pub exceeded: u64,
    /// [`Options::sample`]
    pub sample: u64,
}

/// `Region::kind`
pub mod region {
    pub const THREAD: u32 = 0;
    pub const FUNCTION: u32 = 1;
    pub const SPAN: u32 = 2;
    /// Entries of `Region::growth`.
    pub const STEPS: usize = 32;
}

/// A function or span on one call path of one track. Sums are over ended invocations.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// An address in the function; for spans, where in [`layout::NAMES`] the name is: its length
    /// and bytes.
    pub key: u64,
    /// The caller; 0 for a thread.
    pub parent: u32,
    pub kind: u32,
    /// Depth of recursion: 1 for the outermost.
    pub level: u32,
    /// Invocations of this track that are open. Only the runtime needs it.
    pub active: u32,
    pub invocations: u64,
    pub recursive: u64,
    pub reads: u64,
    pub writes: u64,
    pub allocations: u64,
    pub allocated: u64,
    /// Bytes, blocks and pages.
    pub touched: [Touched; 3],
    pub reused: u64,
    pub fresh: u64,
    /// Invocations by the number of bits of their footprint in bytes.
    pub footprints: [u32; 48],
    /// Bytes that became part of a footprint in each `1 << shift` heap accesses of the track.
    pub growth: [u64; region::STEPS],
    pub shift: u64,
}

/// Sum over invocations, and the largest.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Touched {
    pub total: u64,
    pub max: u64,
}

/// The open regions of a thread: its [`Open`]s follow, the thread itself first.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Track {
    pub depth: u64,
    /// Counts so far: accesses of the heap, bytes that were new to the thread, allocations.
    pub reads: u64,
    pub writes: u64,
    pub fresh: u64,
    pub allocations: u64,
    pub allocated: u64,
}

/// An invocation under way. Counts of this and all deeper ones add up to its footprint.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// The track's counts when it began.
    pub before: Track,
    /// Bytes, blocks and pages; what deeper invocations touch that this had touched is subtracted.
    pub touched: [i64; 3],
    pub reused: u64,
    /// Bytes that are in the region's growth.
    pub grown: u64,
    /// Orders invocations by their first access.
    pub version: u32,
    pub region: u32,
    /// Number of a span that may be entered again: it is counted when the span is closed.
    pub span: u64,
}

/// An executable or a shared library, as loaded.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// Addresses of its executable segments lie within.
    pub start: u64,
    pub end: u64,
    /// What to subtract from an address to get the one in the file.
    pub bias: u64,
    /// Ends at the first 0.
    pub path: [u8; 488],
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    pub id: u64,
    pub started: u64,
    /// 0 while it runs.
    pub ended: u64,
    pub allocations: u64,
    /// Bytes, by usable size, that it has allocated and that are not freed, by whomever.
    pub live: u64,
    pub peak: u64,
    pub events: u64,
    pub curve: CurveTail,
}

pub const NUMBER_SHIFT: u32 = 48;

/// A frame of a call stack. Recursion is folded: a stack holds no address twice.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Return address; from bit [`NUMBER_SHIFT`] on the number of its [`Module`] if another was at
    /// its place before.
    pub pc: u64,
    /// The caller's node; 0 for the outermost.
    pub parent: u32,
    /// The site whose innermost frame this is; 0 if none.
    pub site: u32,
}

/// Set in `Site::hist_size` when the chunks differ in size.
pub const SIZES_DIFFER: u64 = u64::MAX;
/// Chunks up to this size have a map of touched bytes and their site a histogram by offset;
/// larger ones are mapped in blocks of [`BLOCK`] bytes.
pub const MAX_MAPPED_BYTES: u64 = 1024;
pub const BLOCK: u64 = 64;

/// Sums over the chunks of one site. "Usable" sizes are what the allocator gave, others what
/// the program asked for. Fields below `reads` take in chunks when they are freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Its innermost frame.
    pub node: u64,
    pub allocations: u64,
    pub frees: u64,
    pub bytes: u64,
    pub usable: u64,
    pub live_chunks: u64,
    pub live_bytes: u64,
    pub live_usable: u64,
    /// Largest `live_usable`, when, and the number of chunks then.
    pub peak_usable: u64,
    pub peak_time: u64,
    pub peak_chunks: u64,
    /// `live_usable`, `live_bytes` and `live_chunks` at the peak of the process, if `peak_seen` is
    /// the time of that peak. Otherwise the site has not changed since, and they are the live
    /// ones.
    pub at_peak_usable: u64,
    pub at_peak_bytes: u64,
    pub at_peak_chunks: u64,
    /// Touched bytes of chunks that were alive then and have been freed since; likewise, and else
    /// none are.
    pub at_peak_touched: u64,
    pub peak_seen: u64,
    pub smallest: u64,
    pub largest: u64,
    pub first_time: u64,
    pub last_time: u64,
    /// Calls of `realloc`, bytes that those that moved have copied, and the longest chain
    /// of `realloc`s of one object.
    pub reallocs: u64,
    pub moved_bytes: u64,
    pub longest_chain: u64,
    /// Bytes that chunks had already when `realloc` resized them in place, which are not in
    /// `bytes`; and calls of `realloc` with the size that the chunk had.
    pub kept_bytes: u64,
    pub same_size: u64,
    /// Chunks freed by their thread before it allocated another.
    pub temporary: u64,
    /// Longest run of allocations each larger than the one before.
    pub longest_run: u64,
    pub run: u64,
    pub last_size: u64,
    /// Bytes of live chunks that were touched.
    pub live_touched: u64,
    /// Bit `n` is set if thread `n` has allocated here; bit 63 stands for all from 63 on.
    pub threads: u64,
    /// Offset in each shard of the histogram of accesses: for each byte of a chunk, and one beyond,
    /// the number of reads that begin there less those that ended before, and the same of writes.
    /// The sums over the shards count.
    pub hist: u64,
    /// Size of all chunks so far, of which the histogram is, or [`SIZES_DIFFER`].
    pub hist_size: u64,
    /// Offset and number of [`Group`]s, in order of time, and their room.
    pub groups: u64,
    pub groups_len: u64,
    pub groups_room: u64,
    pub curve: CurveTail,
    pub reads: u64,
    pub writes: u64,
    pub touched_bytes: u64,
    /// Touched bytes of chunks that were both read and written.
    pub useful_bytes: u64,
    pub untouched_chunks: u64,
    /// Written and never read; read and never written.
    pub unread_chunks: u64,
    pub unwritten_chunks: u64,
    pub shared_chunks: u64,
    /// Sum of lifetimes, and of lifetime squared as a double.
    pub lifetime: u64,
    pub shortest_life: u64,
    pub longest_life: u64,
    /// Sum over chunks of (last access - first access) / lifetime, as a double.
    pub active_ratio: u64,
    /// Sum of bytes * (free - last access), and of bytes * (first access - allocation), as doubles.
    /// A chunk that was never accessed counts its whole life as drag.
    pub drag: u64,
    pub wait: u64,
    /// Number of chunks by the number of bits of their size, and of their lifetime.
    pub sizes: [u32; 48],
    pub lifetimes: [u32; 48],
}

/// `Chunk::flags`
pub mod flags {
    /// Accessed by more than one thread.
    pub const SHARED: u8 = 1;
    /// Accessed by a thread that did not allocate it.
    pub const NON_OWNER: u8 = 2;
    /// A count has passed 2^32; the rest is in the site's.
    pub const SPILLED: u8 = 4;
    /// The site has a histogram for chunks of this size.
    pub const HISTOGRAM: u8 = 8;
}

/// No thread has accessed the chunk.
pub const NO_THREAD: u16 = u16::MAX;
/// The runtime looks at one of so many stores by threads that did not allocate the chunk, for
/// [`Line`]s.
pub const LOOKED_AT: u64 = 8;
/// The chunk's own thread is to tell of its next store; in `Chunk::last_accessor`.
pub const WATCHED: u16 = u16::MAX - 1;
/// Set in `Chunk::last_accessor` if that thread does not own the chunk.
pub const NON_OWNER: u16 = 1 << 15;
/// What stands above it in [`Line::turns`] is the runtime's.
pub const MAX_TURNS: u64 = (1 << 48) - 1;
/// Set in the second of [`Line::places`] if they are in two chunks.
pub const APART: u64 = 1 << 31;

/// A chunk that is allocated.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// Its address; 0 when the entry is free.
    pub start: u64,
    /// Requested bytes in the low 48 bits, the allocating thread above.
    pub size_and_thread: u64,
    /// By the allocating thread; those of others are in [`layout::NON_OWNER_COUNTS`] until it is
    /// freed.
    pub reads: u32,
    pub writes: u32,
    /// Which bytes were touched: for up to 64 B a bit for each, else the offset of a bit map of
    /// bytes or, above [`MAX_MAPPED_BYTES`], of blocks.
    pub touched: u64,
    pub allocated: u64,
    /// First and last access; 0 for none.
    pub first: u64,
    pub last: u64,
    pub site: u32,
    /// Thread of the last access, maybe with [`NON_OWNER`], or [`NO_THREAD`].
    pub last_accessor: u16,
    /// How many `realloc`s made it larger, at most 255.
    pub generation: u8,
    pub flags: u8,
}

impl Chunk {
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size_and_thread & ((1 << 48) - 1)
    }

    #[must_use]
    pub fn thread(&self) -> u16 {
        (self.size_and_thread >> 48) as u16
    }
}

/// A chunk that is allocated while no accesses are looked up: half as long. It has the number that
/// it would have as a [`Chunk`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CompactChunk {
    /// These three as in [`Chunk`].
    pub start: u64,
    pub size_and_thread: u64,
    pub allocated: u64,
    /// The site in the low 24 bits, the generation above.
    pub site_and_generation: u32,
    /// The next one that begins in the same 32 bytes, or the next free one.
    pub next: u32,
}

const _: () = assert!(layout::MAX_SITES <= 1 << 24);

impl CompactChunk {
    /// The same as a chunk that nobody has accessed.
    #[must_use]
    pub fn chunk(&self) -> Chunk {
        Chunk {
            start: self.start,
            size_and_thread: self.size_and_thread,
            reads: 0,
            writes: 0,
            touched: 0,
            allocated: self.allocated,
            first: 0,
            last: 0,
            site: self.site_and_generation & 0xFF_FFFF,
            last_accessor: NO_THREAD,
            generation: (self.site_and_generation >> 24) as u8,
            flags: 0,
        }
    }
}

/// A chunk that is freed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FreedChunk {
    /// `touched` is the number of bytes.
    pub chunk: Chunk,
    pub freed: u64,
}

/// A cache line that threads write, as far as their stores were looked at.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// 0 for an entry that was never used.
    pub address: u64,
    /// Stores after one by another thread to other words of the line, at most [`MAX_TURNS`]; and to
    /// the same word.
    pub turns: u64,
    pub same: u64,
    /// Bit `n` is set if thread `n` took part in turns; bit 63 stands for all from 63 on.
    pub threads: u64,
    /// Where both stores of the last turn were: the site above, the offset in its chunk in the low
    /// 31 bits; and [`APART`].
    pub places: [u64; 2],
    /// The last store: its thread in the low 16 bits, the time when its chunk was allocated above;
    /// and where it was. Only the runtime needs these and the next.
    pub last: u64,
    pub last_place: u64,
    /// The last store to each word.
    pub words: [u64; 8],
}

/// What `ccscope::measure` has counted when a test panicked.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Exceeded {
    /// File, line and column of the call; ends at the first 0.
    pub place: [u8; 128],
    /// A site and one, its allocations and bytes; 0 where none is.
    pub sites: [[u64; 3]; 16],
}

/// Chunks of a site that were allocated close together: each less than the threshold after
/// the one before. The threshold was never more than a thousandth of the run so far, so groups
/// of any larger threshold are unions of these (S. Byma and J. Larus, 2018, 4.1.1).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Group {
    pub first_allocated: u64,
    pub last_allocated: u64,
    pub chunks: u64,
    /// Sum of the lifetimes of freed chunks.
    pub lifetimes: u64,
    pub last_freed: u64,
}

/// A curve to which points are added.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CurveTail {
    /// Offset of the [`Curve`]; 0 if none.
    pub offset: u64,
    /// The first time after the bucket of its last point.
    pub until: u64,
    /// Most live bytes within that bucket.
    pub peak: u64,
}

/// Followed by its [`Point`]s. Each point holds until the next; changes within `1 << shift`
/// events share a point. The last one has only its times, and in place of its allocations those
/// before it: what it stands for is as it is now.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Curve {
    pub len: u32,
    pub room: u32,
    pub shift: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// First event of the bucket in which it last changed, and the time-stamp counter there.
    pub time: u64,
    pub tsc: u64,
    /// Live bytes at the end of the bucket, and the most within.
    pub usable: u64,
    pub peak: u64,
    pub requested: u64,
    pub touched: u64,
    /// Allocations in this bucket.
    pub allocations: u64,
}

/// The first window is the first accesses of the process, as far as one thread made them.
pub const FIRST_WINDOW: u64 = 1 << 18;
/// Accesses of each other window. They begin at random times; when there are more than fit, each
/// has the same chance to be kept.
pub const WINDOW: u64 = 1 << 15;
pub const MAX_WINDOWS: u64 = 1 + 64;

/// Accesses recorded without a gap: [packed](accesses) after this.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Time of its first access.
    pub time: u64,
    pub thread: u32,
    pub len: u32,
    /// Number of the window; 0 is the first.
    pub burst: u64,
    /// That the accesses take.
    pub bytes: u64,
    /// After the last access. Only the runtime needs it.
    pub coder: accesses::Coder,
}

/// Distance between windows. One that is full is not longer.
pub const WINDOW_ROOM: u64 = 16 << 20;
const _: () = assert!(
    size_of::<Window>() as u64 + FIRST_WINDOW * accesses::MAX_BYTES as u64 <= WINDOW_ROOM
        && FIRST_WINDOW > WINDOW
        && layout::WINDOWS + MAX_WINDOWS * WINDOW_ROOM <= layout::FREED
);

const _: () = {
    assert!(
        size_of::<Chunk>() == 64
            && size_of::<CompactChunk>() == 32
            && size_of::<FreedChunk>() == 72
            && size_of::<Node>() == 16
            && size_of::<Window>() == 64
            && size_of::<Line>() == 128
            && size_of::<Exceeded>() == 512
            && layout::LINES + layout::MAX_LINES * size_of::<Line>() as u64 <= layout::EXCEEDED
            && layout::EXCEEDED + layout::MAX_EXCEEDED * size_of::<Exceeded>() as u64
                <= layout::THREADS
            && size_of::<Region>() == 17 * 8 + 48 * 4 + 8 * region::STEPS + 8
            && size_of::<Open>() == 13 * 8
    );
    assert!(size_of::<Module>() == 512 && size_of::<Thread>() == 80);
    assert!(size_of::<Site>() == 53 * 8 + 96 * 4 && size_of::<Curve>() == 16);
    assert!(size_of::<Header>() as u64 <= layout::MODULES);
};
