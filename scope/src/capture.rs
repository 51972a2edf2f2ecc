//! Makes a [`Profile`] of the [capture](crate::capture_format) that a process has left.
//!
//! Only entries that the header counts are read: the capture is a sparse file of many gigabytes.
//! A capture whose counts or offsets cannot be is an error. A process may be killed between any
//! two stores, so an entry that was being written is left out.

mod edges;
mod exceeded;
mod heap;
#[cfg(feature = "cli")]
pub(crate) mod leaks;
mod lines;
mod regions;
mod windows;

#[cfg(feature = "cli")]
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use crate::Error;
use crate::capture_format::{self, Header, layout};
use crate::profile::{self, Profile, Resident, Run, Totals};
use crate::symbols::{self, Symbols};
use crate::types::Types;
use heap::Heap;
#[cfg(feature = "cli")]
use leaks::Scan;

/// Frames of a stack that are kept, from the innermost on.
const MAX_DEPTH: usize = 1 << 14;

/// Makes the profile of the mapped `capture`.
///
/// `run` holds what the tool knows of the process; what the capture says is filled in.
///
/// # Errors
///
/// If `capture` is no capture, of another version, or damaged.
pub fn profile(
    capture: &[u8],
    run: Run,
    resident: Vec<Resident>,
    symbols: &mut Symbols,
) -> Result<Profile, Error> {
    profile_and_numbers(capture, &whole(capture), run, resident, symbols).map(|it| it.0)
}

/// All of a capture, holes included.
fn whole(capture: &[u8]) -> [Range<u64>; 1] {
    std::array::from_fn(|_| 0..capture.len() as u64)
}

/// A capture and what of it is no hole. A hole is zero, but reading it may take memory: a damaged
/// count must not make the tool read terabytes of them.
#[derive(Clone, Copy)]
struct Source<'c> {
    bytes: &'c [u8],
    /// In order.
    data: &'c [Range<u64>],
}

impl<'c> Source<'c> {
    /// Whether anything is there.
    fn has_data(&self, start: u64, len: u64) -> bool {
        let after = self.data.partition_point(|range| range.end <= start);
        { self.data.get(after) }.is_some_and(|range| range.start < start.saturating_add(len))
    }

    /// [`capture_format::read`], but zero from a hole.
    fn read<T: capture_format::Plain>(&self, at: u64) -> Option<T> {
        const ZEROS: [u8; 4096] = [0; 4096];
        match self.has_data(at, size_of::<T>() as u64) || size_of::<T>() > ZEROS.len() {
            true => capture_format::read(self.bytes, at),
            false => capture_format::read(&ZEROS, 0),
        }
    }

    /// Numbers of the entries from `first` to `last` that are not within a hole.
    fn present<T>(
        &self,
        table: u64,
        first: u64,
        last: u64,
    ) -> impl Iterator<Item = u64> + use<'c, T> {
        let size = size_of::<T>() as u64;
        let mut next = first;
        self.data.iter().flat_map(move |range| {
            let from = range.start.saturating_sub(table) / size;
            let end = range.end.saturating_sub(table).div_ceil(size);
            let found = next.max(from)..end.min(last.saturating_add(1));
            next = next.max(found.end);
            found
        })
    }
}

/// What the profile calls the sites and threads of the capture.
#[derive(Debug)]
pub struct Renumbering {
    sites: Renumbered,
    threads: Renumbered,
}

impl Renumbering {
    /// Puts what a scan at the end of the process has found into its profile.
    #[cfg(feature = "cli")]
    pub(crate) fn add_leaks(&self, scan: &Scan, profile: &mut Profile) {
        let mut all = profile::Leaks::default();
        let sites = scan.sites.iter().filter_map(|(site, sums)| {
            let leaks = profile::Leaks {
                site: Some(*self.sites.get(site)?),
                chunks: sums.direct[0],
                bytes: sums.direct[1],
                indirect_chunks: sums.indirect[0],
                indirect_bytes: sums.indirect[1],
            };
            all.add(&leaks);
            Some(leaks)
        });
        profile.leaks = sites.collect();
        profile.leaks.insert(0, all);
        profile
            .leaks
            .sort_by_key(|it| (it.site.is_some(), Reverse(it.all_bytes()), it.site));
        let links = scan.links.iter().filter_map(|(&(from, to), &pointers)| {
            let from = match from {
                Some(site) => Some(*self.sites.get(&site)?),
                None => None,
            };
            Some(profile::Link {
                from,
                to: *self.sites.get(&to)?,
                pointers,
            })
        });
        profile.links = links.collect();
    }

    /// A chunk that was freed; `None` if its site is not in the profile.
    #[must_use]
    pub fn chunk(&self, dead: &capture_format::FreedChunk) -> Option<profile::Chunk> {
        let raw = &dead.chunk;
        let last = raw.last.min(dead.freed);
        Some(profile::Chunk {
            site: *self.sites.get(&raw.site)?,
            address: raw.start,
            size: raw.size(),
            thread: (self.threads.get(&u32::from(raw.thread())))
                .and_then(|&thread| u16::try_from(thread).ok())
                .unwrap_or(u16::MAX),
            shared: raw.flags & capture_format::flags::SHARED != 0,
            allocated: raw.allocated,
            first: raw.first.min(last),
            last,
            freed: dead.freed,
            reads: raw.reads,
            writes: raw.writes,
            touched: raw.touched,
        })
    }
}

/// [`profile()`] of a sparse file of which `data` are the parts that are no holes, in order; and
/// how to name chunks that the capture has handed over before.
///
/// # Errors
///
/// As for [`profile()`].
pub fn profile_and_numbers(
    capture: &[u8],
    data: &[Range<u64>],
    run: Run,
    resident: Vec<Resident>,
    symbols: &mut Symbols,
) -> Result<(Profile, Renumbering), Error> {
    let header = header(capture)?;
    let capture = Source {
        bytes: capture,
        data,
    };
    let clock = Clock::new(&header);
    let mut heap = Heap::new(capture, &header)?;
    let (threads, thread_of) = threads(capture, &header, &mut heap, clock)?;
    let (mut sites, site_of) = sites(capture, &header, &mut heap, clock)?;
    let (chunks, lost) = chunks(
        capture, &header, &mut heap, &mut sites, &site_of, &thread_of,
    )?;
    let (windows, recorded) = windows::read(capture, &header, &site_of, &thread_of)?;
    let edges = edges::find(&windows);
    let mut sites: Vec<profile::Site> = sites.into_iter().map(|site| site.folded).collect();
    let mut stacks = Stacks::new(capture, &header, symbols)?;
    for (raw, new) in &site_of {
        let node = entry::<capture_format::Site>(capture, layout::SITES, u64::from(*raw))?.node;
        let site = &mut sites[*new as usize];
        site.stack = stacks.of(node)?;
        site.unseen = header.compact == 0 && !stacks.is_seen(node, &site.stack)?;
    }
    let regions = regions::read(capture, &header, &mut stacks)?;
    let frames = stacks.frames;
    let mut types = Types::default();
    for site in &mut sites {
        site.place = symbols::place(&site.stack, &frames);
    }
    let places = sites.iter().filter_map(|site| site.place);
    types.learn(places.map(|index| &frames[index as usize]), symbols);
    for site in &mut sites {
        site.type_id = Some(types.of_stack(&site.stack, site.place, &frames));
    }
    types.complete(symbols);
    let mut total = totals(&header, &sites);
    if !regions.is_empty() {
        let threads = || regions.iter().filter(|region| region.parent.is_none());
        total.heap_reads = threads().map(|it| it.reads).fold(0, u64::saturating_add);
        total.heap_writes = threads().map(|it| it.writes).fold(0, u64::saturating_add);
    }
    total.lost_chunks = total.lost_chunks.saturating_add(lost);
    let mut curve = heap.curve(header.total.curve, clock, level(&header.total))?;
    if sites.is_empty() {
        curve.iter_mut().for_each(|point| point.requested = 0);
    }
    let profile = Profile {
        mappings: Vec::new(),
        pages: Vec::new(),
        run: complete(run, &header, recorded, &total),
        curve,
        total,
        frames,
        types: types.list,
        sites,
        threads,
        resident,
        edges,
        regions,
        chunks,
        windows,
        lines: lines::read(capture, &site_of)?,
        exceeded: exceeded::read(capture, &header, &site_of)?,
        leaks: Vec::new(),
        links: Vec::new(),
    };
    Ok((
        profile,
        Renumbering {
            sites: site_of,
            threads: thread_of,
        },
    ))
}

/// What [`profile_and_numbers`] says of the process and its sites, without types, accesses and
/// single chunks; and the numbers of the sites in the capture, which they keep.
///
/// # Errors
///
/// As for [`profile()`].
#[cfg(feature = "cli")]
pub(crate) fn sites_and_numbers(
    capture: &[u8],
    data: &[Range<u64>],
    run: Run,
    symbols: &mut Symbols,
) -> Result<(Profile, Vec<u32>), Error> {
    let header = header(capture)?;
    let capture = Source {
        bytes: capture,
        data,
    };
    let clock = Clock::new(&header);
    let mut heap = Heap::new(capture, &header)?;
    let (mut sites, site_of) = sites(capture, &header, &mut heap, clock)?;
    let threads = Renumbered::new();
    chunks(capture, &header, &mut heap, &mut sites, &site_of, &threads)?;
    let mut sites: Vec<profile::Site> = sites.into_iter().map(|site| site.folded).collect();
    let mut numbers = vec![0; sites.len()];
    let mut stacks = Stacks::new(capture, &header, symbols)?;
    for (raw, new) in &site_of {
        let node = entry::<capture_format::Site>(capture, layout::SITES, u64::from(*raw))?.node;
        let site = &mut sites[*new as usize];
        site.stack = stacks.of(node)?;
        site.place = symbols::place(&site.stack, &stacks.frames);
        numbers[*new as usize] = *raw;
    }
    let total = totals(&header, &sites);
    let profile = Profile {
        run: complete(run, &header, 0, &total),
        curve: heap.curve(header.total.curve, clock, level(&header.total))?,
        total,
        frames: stacks.frames,
        sites,
        ..Profile::default()
    };
    Ok((profile, numbers))
}

fn damaged(what: &str) -> Error {
    Error::new(format!("the capture is damaged: {what}"))
}

/// Reads entry `index` of the table at `table`.
fn entry<T: capture_format::Plain>(
    capture: Source<'_>,
    table: u64,
    index: u64,
) -> Result<T, Error> {
    { capture.read(table + index * size_of::<T>() as u64) }
        .ok_or_else(|| damaged("a table goes beyond its end"))
}

fn header(capture: &[u8]) -> Result<Header, Error> {
    // Written last, so nothing else is there without it.
    if capture_format::read::<u64>(capture, layout::HEADER) != Some(capture_format::MAGIC) {
        return Err(Error::new(
            "no capture: the process ended before recording began",
        ));
    }
    let header: Header = capture_format::read(capture, layout::HEADER)
        .ok_or_else(|| damaged("it ends within its header"))?;
    if header.version != capture_format::VERSION {
        let (theirs, ours) = (header.version, capture_format::VERSION);
        return Err(Error::new(format!(
            "the capture is of version {theirs}, not {ours}"
        )));
    }
    let counts = [
        (header.modules, layout::MAX_MODULES, "modules"),
        (header.nodes, layout::MAX_NODES, "frames"),
        (header.sites, layout::MAX_SITES, "sites"),
        (header.chunks, layout::MAX_CHUNKS, "chunks"),
        (header.windows, capture_format::MAX_WINDOWS, "windows"),
    ];
    match counts.iter().find(|(count, most, _)| count > most) {
        Some((count, _, what)) => Err(damaged(&format!("it claims {count} {what}"))),
        None => Ok(header),
    }
}

/// Turns the time-stamp counter into nanoseconds since the start.
#[derive(Clone, Copy)]
struct Clock {
    start: u64,
    ns_per_tick: f64,
}

impl Clock {
    fn new(header: &Header) -> Clock {
        let ticks = header.last_tsc.saturating_sub(header.start_tsc);
        let ns = header.last_ns.saturating_sub(header.start_ns);
        let ns_per_tick = if ticks == 0 {
            0.0
        } else {
            ns as f64 / ticks as f64
        };
        Clock {
            start: header.start_tsc,
            ns_per_tick,
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is too large becomes the largest"
    )]
    fn ns(&self, tsc: u64) -> u64 {
        (tsc.saturating_sub(self.start) as f64 * self.ns_per_tick) as u64
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "no table has room for 2^32 entries"
)]
fn index_32(index: usize) -> u32 {
    index as u32
}

/// Index in the profile of each entry of the capture.
type Renumbered = HashMap<u32, u32>;

/// Threads in the order of the capture, without entries that were never used.
fn threads(
    capture: Source<'_>,
    header: &Header,
    heap: &mut Heap<'_>,
    clock: Clock,
) -> Result<(Vec<profile::Thread>, Renumbered), Error> {
    let (mut threads, mut index_of) = (Vec::new(), Renumbered::new());
    // Whether the count takes in entry 0 or not, all entries are seen: unused ones are zero.
    for index in 0..=header.threads.min(layout::MAX_THREADS - 1) as u32 {
        let raw: capture_format::Thread = entry(capture, layout::THREADS, u64::from(index))?;
        if raw.started == 0 {
            continue;
        }
        index_of.insert(index, index_32(threads.len()));
        threads.push(profile::Thread {
            id: raw.id,
            started: raw.started,
            ended: if raw.ended == 0 {
                header.events
            } else {
                raw.ended
            },
            allocations: raw.allocations,
            peak: raw.peak,
            end_live: raw.live,
            events: raw.events,
            curve: heap.curve(
                raw.curve,
                clock,
                [raw.live, raw.live, raw.live, raw.allocations],
            )?,
        });
    }
    Ok((threads, index_of))
}

/// A site into which live chunks are being folded.
struct Site {
    folded: profile::Site,
    /// Whether `folded.shortest_life` is of a chunk.
    has_life: bool,
}

/// Sites that have allocated, without their stacks.
fn sites(
    capture: Source<'_>,
    header: &Header,
    heap: &mut Heap<'_>,
    clock: Clock,
) -> Result<(Vec<Site>, Renumbered), Error> {
    let (mut sites, mut index_of) = (Vec::new(), Renumbered::new());
    let last = header.sites.min(layout::MAX_SITES - 1);
    for index in capture.present::<capture_format::Site>(layout::SITES, 0, last) {
        let raw: capture_format::Site = entry(capture, layout::SITES, index)?;
        let index = u32::try_from(index).map_err(|_| damaged("it has too many sites"))?;
        if raw.allocations == 0 {
            continue;
        }
        index_of.insert(index, index_32(sites.len()));
        sites.push(Site {
            folded: site(&raw, header, heap, clock)?,
            has_life: raw.frees > 0,
        });
    }
    Ok((sites, index_of))
}

fn site(
    raw: &capture_format::Site,
    header: &Header,
    heap: &mut Heap<'_>,
    clock: Clock,
) -> Result<profile::Site, Error> {
    // Otherwise the site has not changed since the peak.
    let seen = raw.peak_seen == header.total.peak_time;
    let at_peak = |then, live| if seen { then } else { live };
    Ok(profile::Site {
        stack: Vec::new(),
        place: None,
        type_id: None,
        allocations: raw.allocations,
        frees: raw.frees,
        requested: raw.bytes,
        usable: raw.usable,
        peak_usable: raw.peak_usable,
        peak_chunks: raw.peak_chunks,
        peak_time: raw.peak_time,
        at_peak_usable: at_peak(raw.at_peak_usable, raw.live_usable),
        at_peak_requested: at_peak(raw.at_peak_bytes, raw.live_bytes),
        at_peak_chunks: at_peak(raw.at_peak_chunks, raw.live_chunks),
        // Those that are alive are added later.
        at_peak_touched: at_peak(raw.at_peak_touched, 0),
        unseen: false,
        threads: raw.threads,
        end_usable: raw.live_usable,
        end_chunks: raw.live_chunks,
        smallest: raw.smallest,
        largest: raw.largest,
        first_time: raw.first_time,
        last_time: raw.last_time,
        reallocs: raw.reallocs,
        moved_bytes: raw.moved_bytes,
        longest_chain: raw.longest_chain,
        kept_bytes: raw.kept_bytes,
        same_size: raw.same_size,
        temporary: raw.temporary,
        longest_run: raw.longest_run,
        reads: raw.reads,
        writes: raw.writes,
        touched_bytes: raw.touched_bytes,
        useful_bytes: raw.useful_bytes,
        untouched_chunks: raw.untouched_chunks,
        unread_chunks: raw.unread_chunks,
        unwritten_chunks: raw.unwritten_chunks,
        shared_chunks: raw.shared_chunks,
        lifetime: raw.lifetime,
        shortest_life: if raw.frees == 0 { 0 } else { raw.shortest_life },
        longest_life: raw.longest_life,
        active_ratio: finite(raw.active_ratio)?,
        drag: finite(raw.drag)?,
        wait: finite(raw.wait)?,
        sizes: raw.sizes.to_vec(),
        lifetimes: raw.lifetimes.to_vec(),
        histogram: heap.histogram(raw.hist, raw.hist_size)?,
        groups: heap.groups(raw.groups, raw.groups_len)?,
        curve: heap.curve(raw.curve, clock, level(raw))?,
    })
}

/// What the last point of its curve stands for.
fn level(raw: &capture_format::Site) -> [u64; 4] {
    let (usable, requested) = (raw.live_usable, raw.live_bytes);
    [usable, requested, raw.live_touched, raw.allocations]
}

/// A double that the capture holds as its bits. No run comes near the limit, and what live chunks
/// add stays finite below it.
fn finite(bits: u64) -> Result<f64, Error> {
    let number = f64::from_bits(bits);
    if number.abs() < 1e300 {
        Ok(number)
    } else {
        Err(damaged("a sum is not a number"))
    }
}

/// What was looked up last is often asked for again: neighbours have much in common.
struct Memo<'n> {
    numbers: &'n Renumbered,
    last: (u32, Option<u32>),
}

impl<'n> Memo<'n> {
    fn of(numbers: &'n Renumbered) -> Memo<'n> {
        let last = (0, numbers.get(&0).copied());
        Memo { numbers, last }
    }

    fn get(&mut self, raw: u32) -> Option<u32> {
        if self.last.0 != raw {
            self.last = (raw, self.numbers.get(&raw).copied());
        }
        self.last.1
    }
}

/// Live chunks, folded into their sites; and how many cannot be told of.
fn chunks(
    capture: Source<'_>,
    header: &Header,
    heap: &mut Heap<'_>,
    sites: &mut [Site],
    site_of: &Renumbered,
    thread_of: &Renumbered,
) -> Result<(Vec<profile::Chunk>, u64), Error> {
    let (mut chunks, mut lost) = (Vec::new(), 0);
    let last = header.chunks.min(layout::MAX_CHUNKS - 1);
    // Growing takes as long as all else, but the count may be damaged.
    let there = { capture.data.iter() }.map(|range| range.end.saturating_sub(range.start));
    let there =
        there.fold(0, u64::saturating_add) / size_of::<capture_format::CompactChunk>() as u64;
    let count = header.total.live_chunks.min(last).min(there);
    drop(chunks.try_reserve_exact(usize::try_from(count).unwrap_or(0)));
    let (mut site_of, mut thread_of) = (Memo::of(site_of), Memo::of(thread_of));
    let numbers: Box<dyn Iterator<Item = u64>> = match header.compact {
        0 => Box::new(capture.present::<capture_format::Chunk>(layout::CHUNKS, 1, last)),
        _ => Box::new(capture.present::<capture_format::CompactChunk>(
            layout::COMPACT_CHUNKS,
            1,
            last,
        )),
    };
    // What is present is in no hole.
    let all = whole(capture.bytes);
    let whole = Source {
        data: &all,
        ..capture
    };
    for index in numbers {
        let mut raw = match header.compact {
            0 => entry::<capture_format::Chunk>(whole, layout::CHUNKS, index)?,
            _ => {
                entry::<capture_format::CompactChunk>(whole, layout::COMPACT_CHUNKS, index)?.chunk()
            }
        };
        if raw.start == 0 {
            continue;
        }
        let Some(site) = site_of.get(raw.site) else {
            lost += 1;
            continue;
        };
        if raw.flags & capture_format::flags::NON_OWNER != 0 {
            let folded = &mut sites[site as usize].folded;
            let sums = [&mut folded.reads, &mut folded.writes];
            let counts = [&mut raw.reads, &mut raw.writes];
            for ((count, sum), more) in counts
                .into_iter()
                .zip(sums)
                .zip(heap.non_owner_counts(index))
            {
                let (all, is_over) = count.overflowing_add(more);
                *count = all;
                *sum = sum.saturating_add(u64::from(is_over) << 32);
            }
        }
        // The clock of the thread that made its last access may be ahead.
        raw.last = raw.last.min(header.events);
        raw.first = raw.first.min(raw.last);
        let touched = heap.touched(&raw)?;
        if raw.allocated <= header.total.peak_time {
            let at_peak = &mut sites[site as usize].folded.at_peak_touched;
            *at_peak = at_peak.saturating_add(touched);
        }
        let weight = capture_format::weight(raw.size(), header.sample);
        sites[site as usize].fold(&raw, touched, header.events, weight);
        chunks.push(profile::Chunk {
            site,
            address: raw.start,
            size: raw.size(),
            thread: thread_of
                .get(u32::from(raw.thread()))
                .map_or(capture_format::NO_THREAD, |thread| (thread & 0xffff) as u16),
            shared: raw.flags & capture_format::flags::SHARED != 0,
            allocated: raw.allocated,
            first: raw.first,
            last: raw.last,
            freed: 0,
            reads: raw.reads,
            writes: raw.writes,
            touched,
        });
    }
    Ok((chunks, lost))
}

impl Site {
    /// Takes in a chunk that is alive at `end`, as the runtime does when a chunk is freed.
    fn fold(&mut self, chunk: &capture_format::Chunk, touched: u64, end: u64, weight: u64) {
        let site = &mut self.folded;
        let size = chunk.size();
        let life = end.saturating_sub(chunk.allocated);
        let (read, written) = (chunk.reads > 0, chunk.writes > 0);
        let useful = if read && written { touched } else { 0 };
        let sums = [
            (&mut site.reads, u64::from(chunk.reads)),
            (&mut site.writes, u64::from(chunk.writes)),
            (&mut site.touched_bytes, touched),
            (&mut site.useful_bytes, useful),
            (&mut site.untouched_chunks, u64::from(chunk.first == 0)),
            (&mut site.unread_chunks, u64::from(written && !read)),
            (&mut site.unwritten_chunks, u64::from(read && !written)),
            (
                &mut site.shared_chunks,
                u64::from(chunk.flags & capture_format::flags::SHARED != 0),
            ),
            (&mut site.lifetime, life),
        ];
        for (sum, addend) in sums {
            *sum = sum.saturating_add(addend.saturating_mul(weight));
        }
        site.shortest_life = if self.has_life {
            site.shortest_life.min(life)
        } else {
            life
        };
        self.has_life = true;
        site.longest_life = site.longest_life.max(life);
        if chunk.first == 0 {
            site.drag += weight as f64 * size as f64 * life as f64;
        } else {
            let active = chunk.last.saturating_sub(chunk.first);
            site.active_ratio += active as f64 / life.max(1) as f64;
            site.drag += size as f64 * end.saturating_sub(chunk.last) as f64;
            site.wait += size as f64 * chunk.first.saturating_sub(chunk.allocated) as f64;
        }
        for (counts, number) in [(&mut site.sizes, size), (&mut site.lifetimes, life)] {
            let bits = (64 - number.leading_zeros() as usize).min(counts.len() - 1);
            let weight = u32::try_from(weight).unwrap_or(u32::MAX);
            counts[bits] = counts[bits].saturating_add(weight);
        }
        let after = site
            .groups
            .partition_point(|group| group.first_allocated <= chunk.allocated);
        if let Some(group) = after.checked_sub(1).map(|at| &mut site.groups[at]) {
            group.lifetimes = group.lifetimes.saturating_add(life);
            group.last_freed = end;
        }
    }
}

/// Call stacks as indices of frames.
struct Stacks<'c> {
    capture: Source<'c>,
    nodes: u64,
    modules: Vec<symbols::Loaded>,
    symbols: &'c mut Symbols,
    frames: Vec<profile::Frame>,
    index_of: HashMap<profile::Frame, u32>,
    /// Indices of the frames of a return address, innermost first.
    of_pc: HashMap<u64, Vec<u32>>,
}

impl<'c> Stacks<'c> {
    fn new(
        capture: Source<'c>,
        header: &Header,
        symbols: &'c mut Symbols,
    ) -> Result<Stacks<'c>, Error> {
        let modules = (0..header.modules)
            .map(|index| {
                Ok(symbols::Loaded::new(&entry(
                    capture,
                    layout::MODULES,
                    index,
                )?))
            })
            .collect::<Result<_, Error>>()?;
        Ok(Stacks {
            capture,
            nodes: header.nodes,
            modules,
            symbols,
            frames: Vec::new(),
            index_of: HashMap::new(),
            of_pc: HashMap::new(),
        })
    }

    /// The stack whose innermost frame is `node`.
    fn of(&mut self, mut node: u64) -> Result<Vec<u32>, Error> {
        let mut stack = Vec::new();
        while node != 0 && stack.len() < MAX_DEPTH {
            if node > self.nodes {
                return Err(damaged("a stack leads out of the table of frames"));
            }
            let raw: capture_format::Node = entry(self.capture, layout::NODES, node)?;
            // Callers are entered first.
            if u64::from(raw.parent) >= node {
                return Err(damaged("a stack leads in a circle"));
            }
            stack.extend_from_slice(self.of_address(raw.pc));
            node = u64::from(raw.parent);
        }
        Ok(stack)
    }

    /// Whether the code is instrumented that the chunks are for whose innermost frame is `node`:
    /// the innermost that does not allocate for its caller.
    fn is_seen(&mut self, mut node: u64, stack: &[u32]) -> Result<bool, Error> {
        let frames = stack.iter().map(|&index| &self.frames[index as usize]);
        let of_allocator = symbols::in_allocator(frames);
        let mut seen = 0;
        while node != 0 && seen < stack.len() {
            let raw: capture_format::Node = entry(self.capture, layout::NODES, node)?;
            let frames = self.of_address(raw.pc).to_vec();
            seen += frames.len();
            let is_for_caller = |&index: &u32| symbols::is_for_caller(&self.frames[index as usize]);
            if seen > of_allocator && !frames.iter().all(is_for_caller) {
                return Ok(self.symbols.is_seen(raw.pc, &self.modules));
            }
            node = u64::from(raw.parent);
        }
        Ok(false)
    }

    /// The frames of a return address, innermost first.
    fn of_address(&mut self, pc: u64) -> &[u32] {
        self.of_pc.entry(pc).or_insert_with(|| {
            let found = self.symbols.frames(pc, &self.modules);
            let index = |frame: &profile::Frame| match self.index_of.get(frame) {
                Some(&index) => index,
                None => {
                    let index = index_32(self.frames.len());
                    self.frames.push(frame.clone());
                    self.index_of.insert(frame.clone(), index);
                    index
                }
            };
            found.iter().map(index).collect()
        })
    }
}

fn totals(header: &Header, sites: &[profile::Site]) -> Totals {
    let total = &header.total;
    let sum = |of: fn(&profile::Site) -> u64| sites.iter().map(of).fold(0, u64::saturating_add);
    // Without sites, the process's own record is all there is.
    let by_site = |sum, own| if sites.is_empty() { own } else { sum };
    Totals {
        allocations: total.allocations,
        frees: total.frees,
        requested: total.bytes,
        usable: total.usable,
        peak_usable: total.peak_usable,
        // The process's own record does not have it.
        peak_requested: sum(|site| site.at_peak_requested),
        peak_chunks: total.peak_chunks,
        peak_time: total.peak_time,
        end_usable: total.live_usable,
        end_chunks: total.live_chunks,
        heap_reads: by_site(sum(|site| site.reads), total.reads),
        heap_writes: by_site(sum(|site| site.writes), total.writes),
        other_reads: header.other_reads,
        other_writes: header.other_writes,
        block_bytes: header.block_bytes,
        foreign_bytes: header.foreign_bytes,
        mapped_peak: header.mapped_peak,
        unknown_frees: header.unknown_frees,
        lost_chunks: header.lost_chunks,
    }
}

/// Adds to `run` what the capture says.
fn complete(mut run: Run, header: &Header, recorded: u64, total: &Totals) -> Run {
    run.pid = header.pid;
    run.parent = header.parent;
    run.started_ns = header.start_ns;
    // The tool's clock begins when it is done with the start.
    let recorded_ns = header.last_ns.saturating_sub(header.start_ns);
    run.seconds = run.seconds.max(recorded_ns as f64 / 1e9);
    run.end = header.events;
    run.sample = header.sample;
    let other = total.other_reads.saturating_add(total.other_writes);
    let all = total
        .heap_reads
        .saturating_add(total.heap_writes)
        .saturating_add(other);
    let rate = all.checked_div(recorded);
    run.window_rate = rate.map_or(0, |rate| rate.max(1));
    if header.state == capture_format::state::STOPPED {
        let stop = "Recording stopped before the process ended: no memory was left for it.";
        run.caveats.push(stop.into());
    }
    if header.late != 0 {
        let chunks = match header.sample {
            0 => format!(
                " Chunks of that which were freed or resized since: {}.",
                header.unknown_frees
            ),
            _ => String::new(),
        };
        run.caveats.push(format!(
            "Recording began while the program ran: what it had allocated before is not \
             known.{chunks}"
        ));
    }
    if header.freed_lost > 0 {
        let chunks = header.freed_lost;
        run.caveats
            .push(format!("Freed chunks in sums only: {chunks}."));
    }
    if header.untracked > 0 {
        let (threads, tracks) = (header.untracked, layout::MAX_TRACKS);
        run.caveats.push(format!(
            "Threads without regions, as {tracks} others ran: {threads}."
        ));
    }
    if total.lost_chunks > 0 {
        let allocations = total.lost_chunks;
        run.caveats
            .push(format!("Allocations not recorded: {allocations}."));
    }
    run
}
