//! The text of heaptrack, as `heaptrack` writes it into `.zst` and `.gz` files (versions 1 to 3).
//!
//! Lines begin with a letter; numbers are hexadecimal. Allocations and frees name an entry of size
//! and stack, not a chunk, so that only sums of lifetimes are known.

use std::io::{BufRead, Read};

use super::{Frames, budget, file_name};
use crate::Error;
use crate::profile::{BUCKETS, Frame, Point, Profile, Resident, Run, Site, Totals};
use crate::symbols;

/// Newest version of the file that is known.
const VERSION: u64 = 3;
/// Most bytes that one of a compressed file stands for: loops compress well.
const MAX_RATIO: u64 = 4096;
/// Longest line: a name.
const MAX_LINE: u64 = 1 << 20;
/// Most points of the curve.
const MAX_POINTS: usize = 4096;
/// Longest stack.
const MAX_FRAMES: usize = 1024;

/// Reads a file of `len` bytes.
///
/// # Errors
///
/// If it cannot be read, is damaged, of a newer version, or takes more memory than its length
/// justifies.
pub fn read(input: impl BufRead, len: u64) -> Result<Profile, Error> {
    let mut input = input.take(len.saturating_mul(MAX_RATIO).saturating_add(MAX_LINE));
    let mut file = File {
        left: budget(len),
        ..File::default()
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
        match read {
            Ok(0) if input.limit() == 0 => {
                return Err(Error::new("no heaptrack file: it unpacks to too much"));
            }
            Ok(0) => break,
            // What is whole of a file that was cut short is shown.
            Err(_) if file.total.allocations > 0 => {
                file.caveats.push("The file was cut short.".to_owned());
                break;
            }
            Err(why) => return Err(Error::new(format!("no heaptrack file: {why}"))),
            Ok(_) => {}
        }
        let text = String::from_utf8_lossy(&line);
        let taken = file.line(text.trim_end_matches(['\n', '\r']));
        taken.map_err(|why| Error::new(format!("no heaptrack file: {why}")))?;
    }
    file.profile()
}

/// What was read so far.
#[derive(Default)]
struct File {
    version: u64,
    /// Bytes that may still be taken.
    left: u64,
    strings: Vec<String>,
    frames: Frames,
    /// The frames of an address, innermost first.
    addresses: Vec<Vec<u32>>,
    /// An address and the stack that called it, from 1 on; 0 is none.
    traces: Vec<[usize; 2]>,
    /// The site of a trace, as far as it allocates.
    of_trace: Vec<Option<usize>>,
    entries: Vec<Entry>,
    sites: Vec<Sums>,
    total: Totals,
    live: [u64; 2],
    /// Allocations and frees so far.
    time: u64,
    ns: u64,
    /// The number of times that the process had a new peak.
    peaks: u64,
    last_allocated: Option<usize>,
    curve: Vec<Point>,
    resident: Vec<Resident>,
    page: u64,
    command: String,
    caveats: Vec<String>,
}

/// Chunks of one size and stack.
struct Entry {
    size: u64,
    site: usize,
    live: u64,
}

#[derive(Default)]
struct Sums {
    site: Site,
    live_bytes: u64,
    live_chunks: u64,
    /// `File::peaks` at the time when the site's part of the peak was noted.
    noted: u64,
    /// Sums of the times of allocations and frees.
    allocated: u128,
    freed: u128,
}

type Taken = Result<(), &'static str>;

/// A number, which must be there.
fn number(word: Option<&str>) -> Result<u64, &'static str> {
    let number = word.and_then(|word| u64::from_str_radix(word, 16).ok());
    number.ok_or("a number is missing")
}

fn index(word: Option<&str>) -> Result<usize, &'static str> {
    Ok(usize::try_from(number(word)?).unwrap_or(usize::MAX))
}

impl File {
    fn line(&mut self, line: &str) -> Taken {
        let Some((kind, rest)) = line.split_once(' ') else {
            return Ok(());
        };
        let mut words = rest.split(' ');
        if self.version == 0 && kind != "v" {
            return Err("its first line is not a version");
        }
        match kind {
            "v" => {
                number(words.next())?;
                // The first version had no number.
                self.version = words.next().map_or(Ok(1), |word| number(Some(word)))?;
                if self.version > VERSION {
                    return Err("it is of a newer version");
                }
            }
            "X" => rest.clone_into(&mut self.command),
            "I" => self.page = number(words.next())?,
            "s" => self.string(rest)?,
            "i" => self.address(&mut words)?,
            "t" => {
                let trace = [index(words.next())?, index(words.next())?];
                if trace[0] > self.addresses.len() || trace[1] > self.traces.len() {
                    return Err("a stack has an entry that is not there");
                }
                self.take(size_of_val(&trace) + size_of::<Option<usize>>())?;
                self.traces.push(trace);
                self.of_trace.push(None);
            }
            "a" => {
                let (size, trace) = (number(words.next())?, index(words.next())?);
                let site = self.site(trace)?;
                self.take(size_of::<Entry>())?;
                let live = 0;
                self.entries.push(Entry { size, site, live });
            }
            "+" => self.allocated(index(words.next())?)?,
            "-" => self.freed(index(words.next())?)?,
            "c" => self.ns = self.ns.max(number(words.next())?.saturating_mul(1_000_000)),
            "R" => {
                let bytes = number(words.next())?.saturating_mul(self.page);
                let (time, ns) = (self.time, self.ns);
                self.resident.push(Resident { time, ns, bytes });
                if self.resident.len() == MAX_POINTS {
                    let pairs = self.resident.chunks(2);
                    let larger = |pair: &[Resident]| pair.iter().max_by_key(|it| it.bytes).copied();
                    self.resident = pairs.filter_map(larger).collect();
                }
            }
            // Comments, and what a profile has no place for.
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, bytes: usize) -> Taken {
        let left = self.left.checked_sub(bytes as u64);
        self.left = left.ok_or("it would take more memory than its length justifies")?;
        Ok(())
    }

    /// A frame is kept twice: in a list and in its index.
    fn take_frame(&mut self, frame: &Frame) -> Taken {
        let text = frame.function.len() + frame.file.len() + frame.module.len();
        self.take(2 * (size_of::<Frame>() + text))
    }

    fn string(&mut self, rest: &str) -> Taken {
        // From version 3 on, with the length before it.
        let text = match self.version {
            3.. => rest.split_once(' ').map_or("", |(_, text)| text),
            _ => rest,
        };
        self.take(text.len() + size_of::<String>())?;
        self.strings.push(text.to_owned());
        Ok(())
    }

    /// The address, the module, and function, file and line of each frame, innermost first.
    fn address<'w>(&mut self, words: &mut impl Iterator<Item = &'w str>) -> Taken {
        let address = number(words.next())?;
        let module = self.named(words.next().map_or(Ok(0), |word| index(Some(word)))?)?;
        let module = file_name(&module).to_owned();
        let mut found: Vec<Frame> = Vec::new();
        while let Some(function) = words.next() {
            let function = match self.named(index(Some(function))?)? {
                unknown if unknown.is_empty() => format!("{module}+{address:#x}"),
                function => function,
            };
            // Without debug information, the function is all there is.
            let file = words.next().map_or(Ok(0), |word| index(Some(word)))?;
            let line = words.next().map_or(Ok(0), |word| number(Some(word)))?;
            let frame = Frame {
                function,
                file: self.named(file)?,
                line: u32::try_from(line).unwrap_or(0),
                module: module.clone(),
                address,
                inlined: true,
            };
            self.take_frame(&frame)?;
            found.push(frame);
        }
        if let Some(outermost) = found.last_mut() {
            outermost.inlined = false;
        } else {
            let frame = Frame {
                function: format!("{module}+{address:#x}"),
                module,
                address,
                ..Frame::default()
            };
            self.take_frame(&frame)?;
            found.push(frame);
        }
        let frames = found
            .into_iter()
            .map(|frame| self.frames.add(frame))
            .collect();
        self.addresses.push(frames);
        Ok(())
    }

    /// A string by its number, from 1 on.
    fn named(&self, number: usize) -> Result<String, &'static str> {
        match number.checked_sub(1) {
            None => Ok(String::new()),
            Some(index) => self
                .strings
                .get(index)
                .cloned()
                .ok_or("a name is not there"),
        }
    }

    /// The site of a trace.
    fn site(&mut self, trace: usize) -> Result<usize, &'static str> {
        let known = match trace.checked_sub(1) {
            None => None,
            Some(index) => *self.of_trace.get(index).ok_or("a stack is not there")?,
        };
        if let Some(site) = known {
            return Ok(site);
        }
        let mut stack = Vec::new();
        let mut at = trace;
        // A stack refers to those before it, so that this ends.
        while at > 0 && stack.len() < MAX_FRAMES {
            let [address, parent] = self.traces[at - 1];
            stack.extend(
                address
                    .checked_sub(1)
                    .into_iter()
                    .flat_map(|it| &self.addresses[it]),
            );
            at = parent;
        }
        self.take(stack.len() * size_of::<u32>() + size_of::<Sums>() + 8 * BUCKETS)?;
        let site = Site {
            place: symbols::place(&stack, &self.frames.frames),
            stack,
            smallest: u64::MAX,
            sizes: vec![0; BUCKETS],
            lifetimes: vec![0; BUCKETS],
            ..Site::default()
        };
        self.sites.push(Sums {
            site,
            ..Sums::default()
        });
        let index = self.sites.len() - 1;
        if trace > 0 {
            self.of_trace[trace - 1] = Some(index);
        }
        Ok(index)
    }

    fn allocated(&mut self, entry: usize) -> Taken {
        let at = self
            .entries
            .get_mut(entry)
            .ok_or("an allocation is not there")?;
        at.live += 1;
        self.time += 1;
        let (size, time) = (at.size, self.time);
        let sums = &mut self.sites[at.site];
        sums.note(self.peaks);
        sums.live_bytes = sums.live_bytes.saturating_add(size);
        sums.live_chunks += 1;
        sums.allocated += u128::from(time);
        let site = &mut sums.site;
        site.allocations += 1;
        site.requested = site.requested.saturating_add(size);
        site.smallest = site.smallest.min(size);
        site.largest = site.largest.max(size);
        site.peak_chunks = site.peak_chunks.max(sums.live_chunks);
        if sums.live_bytes > site.peak_usable {
            (site.peak_usable, site.peak_time) = (sums.live_bytes, time);
        }
        if site.first_time == 0 {
            site.first_time = time;
        }
        site.last_time = time;
        let bits = (u64::BITS - size.leading_zeros()) as usize;
        site.sizes[bits.min(BUCKETS - 1)] += 1;
        let total = &mut self.total;
        total.allocations += 1;
        total.requested = total.requested.saturating_add(size);
        self.live = [self.live[0].saturating_add(size), self.live[1] + 1];
        if self.live[0] > total.peak_usable {
            (total.peak_usable, total.peak_chunks) = (self.live[0], self.live[1]);
            total.peak_time = time;
            self.peaks += 1;
        }
        self.last_allocated = Some(entry);
        self.point(1);
        Ok(())
    }

    fn freed(&mut self, entry: usize) -> Taken {
        let at = self
            .entries
            .get_mut(entry)
            .ok_or("an allocation is not there")?;
        // A file that was cut out of a run may free what it has not allocated.
        if at.live == 0 {
            return Ok(());
        }
        at.live -= 1;
        self.time += 1;
        let size = at.size;
        let sums = &mut self.sites[at.site];
        sums.note(self.peaks);
        sums.live_bytes = sums.live_bytes.saturating_sub(size);
        sums.live_chunks -= 1;
        sums.freed += u128::from(self.time);
        sums.site.frees += 1;
        sums.site.temporary += u64::from(self.last_allocated == Some(entry));
        self.total.frees += 1;
        self.live = [self.live[0].saturating_sub(size), self.live[1] - 1];
        self.last_allocated = None;
        self.point(0);
        Ok(())
    }

    /// After so many allocations more. Halves the curve when it is full.
    fn point(&mut self, allocations: u64) {
        let point = Point {
            time: self.time,
            ns: self.ns,
            usable: self.live[0],
            peak: self.live[0],
            requested: self.live[0],
            touched: 0,
            allocations,
        };
        match self.curve.last_mut() {
            // Points are a millisecond apart: the file's clock has no finer ticks.
            Some(last) if last.ns == self.ns => {
                last.peak = last.peak.max(self.live[0]);
                (last.usable, last.requested) = (point.usable, point.requested);
                last.allocations += allocations;
            }
            _ => self.curve.push(point),
        }
        if self.curve.len() == MAX_POINTS {
            let merged = |pair: &[Point]| Point {
                time: pair[0].time,
                ns: pair[0].ns,
                peak: pair.iter().map(|it| it.peak).max().unwrap_or(0),
                allocations: pair.iter().map(|it| it.allocations).sum(),
                ..pair[pair.len() - 1]
            };
            self.curve = self.curve.chunks(2).map(merged).collect();
        }
    }

    fn profile(self) -> Result<Profile, Error> {
        if self.version == 0 {
            return Err(Error::new("no heaptrack file: it is empty"));
        }
        let (end, ns) = (self.time.max(1), self.ns);
        let peaks = self.peaks;
        let sites: Vec<Site> = { self.sites.into_iter() }
            .filter(|sums| sums.site.allocations > 0)
            .map(|sums| sums.finish(end, peaks))
            .collect();
        let mut total = self.total;
        total.usable = total.requested;
        total.peak_requested = total.peak_usable;
        [total.end_usable, total.end_chunks] = self.live;
        let mut caveats = self.caveats;
        caveats.push(
            "From a heaptrack file: it has no accesses, types and threads, and of lifetimes only \
             sums."
                .to_owned(),
        );
        let words = self.command.split(' ').filter(|word| !word.is_empty());
        let run = Run {
            tool: "heaptrack".to_owned(),
            command: words.map(str::to_owned).collect(),
            seconds: ns as f64 / 1e9,
            end,
            caveats,
            ..Run::default()
        };
        Ok(Profile {
            run,
            total,
            frames: self.frames.frames,
            sites,
            curve: self.curve,
            resident: self.resident,
            ..Profile::default()
        })
    }
}

impl Sums {
    /// Before a change: what the site has had at the last peak.
    fn note(&mut self, peaks: u64) {
        if self.noted != peaks {
            self.noted = peaks;
            self.site.at_peak_usable = self.live_bytes;
            self.site.at_peak_chunks = self.live_chunks;
        }
    }

    fn finish(mut self, end: u64, peaks: u64) -> Site {
        self.note(peaks);
        let alive = u128::from(self.live_chunks) * u128::from(end);
        let lifetime = (self.freed + alive).saturating_sub(self.allocated);
        let mut site = self.site;
        site.usable = site.requested;
        site.at_peak_requested = site.at_peak_usable;
        site.end_usable = self.live_bytes;
        site.end_chunks = self.live_chunks;
        site.lifetime = u64::try_from(lifetime).unwrap_or(u64::MAX);
        site
    }
}
