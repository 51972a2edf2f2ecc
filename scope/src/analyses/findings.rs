//! What is wrong at a site, in words with numbers, and what to try.
//!
//! Findings are ordered by what they would save. That is a [share](Finding::share) of the program's
//! own total, so that bytes and calls can stand in one list:
//!
//! | kinds | share of |
//! |---|---|
//! | never touched, never read, never written | the process's memory |
//! | partly used, reserved, capacity, large futures | the process's memory |
//! | leaked | the process's memory; reported however few |
//! | steady growth | the process's memory |
//! | late free, early allocation | the same, times the run in events |
//! | growth, temporary, churn, moved, same size, copies that are never read | time, in accesses |
//! | waits | time, as simulated |
//! | false sharing | time, in accesses |
//!
//! The memory is what was resident or allocated at most: a heap of 100 kB in a process of 8 MB is
//! not worth the reader's time, whatever is wrong with it.
//!
//! A call of the allocator takes the time of [`CALL_EVENTS`] accesses. Where accesses were not
//! counted, one takes 1 ns.

use std::collections::HashMap;

use serde::Serialize;

use crate::analyses::leaks::of_site;
use crate::analyses::scores::GROWTH_STEPS;
use crate::analyses::units::{bytes, count, percent, plural, ratio, rounded, seconds, sum};
use crate::profile::{Profile, SharedLine, Site};

/// Less of the program's total is not worth a line of the reader's time.
pub const MIN_SHARE: f64 = 0.01;
/// Less than a page saves nothing that the system could use otherwise.
pub const MIN_BYTES: u64 = 4096;
/// A process has as much without a heap.
pub const MIN_MEMORY: u64 = 1_000_000;
/// Fewer allocations, and copies of that time, take less than a tenth of a millisecond.
pub const MIN_CALLS: u64 = 1000;
/// Chunks count as partly used when less than half of their bytes is used: a vector that doubles
/// its capacity uses at least half.
pub const USED_PART: f64 = 0.5;
/// A chunk is kept too long when it is idle for at least half of its life.
pub const IDLE_PART: f64 = 0.5;
/// A pattern is that of a site when at least half of its chunks have it.
pub const MOST_CHUNKS: f64 = 0.5;
/// An allocation with its free takes as long as some twenty accesses that hit the cache.
pub const CALL_EVENTS: f64 = 20.0;
/// Less of the time in the allocator is what programs take that allocate what they need.
const MIN_CHURN: f64 = 0.1;
/// Chunks come and go if so many are freed for each that is alive at the peak.
const CHURN: u64 = 4;
/// Fewer take some hundredths of a second.
const MIN_CHURN_CALLS: u64 = 1_000_000;
/// `realloc` copies about so many bytes in the time of one access.
pub const COPY_BYTES: f64 = 16.0;
/// Chunks that are only read or only written are often buffers which the system fills or empties
/// unseen, so that such findings count for less.
pub const SYSTEM_DOUBT: f64 = 0.1;
/// The unit that caches pass between cores.
const LINE_BYTES: u64 = 64;
/// Fewer turns of a line may be chance: memory that is handed over now and then.
const MIN_TURNS: u64 = 256;
/// A line that is written in turn in the same place once in so many turns is shared on purpose.
const MAX_SAME: u64 = 8;
/// The profiler looks at one of so many stores by strangers to a chunk.
const LOOKED_AT: u64 = crate::capture_format::LOOKED_AT;
/// A line that another core has written last comes in the time of some twenty accesses that hit.
const TURN_EVENTS: f64 = 20.0;

/// What is reported; the defaults are the constants of this module.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// See [`MIN_SHARE`].
    pub min_share: f64,
    /// See [`MIN_BYTES`].
    pub min_bytes: u64,
    /// See [`MIN_CALLS`].
    pub min_calls: u64,
    /// See [`USED_PART`].
    pub used_part: f64,
    /// See [`IDLE_PART`].
    pub idle_part: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            min_share: MIN_SHARE,
            min_bytes: MIN_BYTES,
            min_calls: MIN_CALLS,
            used_part: USED_PART,
            idle_part: IDLE_PART,
        }
    }
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Chunks that nothing accesses.
    NeverTouched,
    /// Chunks that are written and never read.
    NeverRead,
    /// Chunks that are read and never written.
    NeverWritten,
    /// Chunks of one size, of which the program uses a part.
    PartlyUsed,
    /// Vectors whose last elements no chunk of the site uses.
    Capacity,
    /// Chunks of many sizes that are larger than what is used of them.
    Reserved,
    /// Chunks that live on after their last access.
    LateFree,
    /// Chunks that wait for their first access.
    EarlyAllocation,
    /// Objects that `realloc` enlarges again and again.
    Growth,
    /// Chunks that are freed before their thread allocates another.
    Temporary,
    /// Chunks that come and go so often that the allocator takes much of the time.
    Churn,
    /// Bytes that `realloc` has copied.
    Moved,
    /// Calls of `realloc` that change nothing.
    SameSize,
    /// Boxes of futures of which one local or argument is most.
    LargeFuture,
    /// Chunks that nothing leads to at the end.
    Leaked,
    /// Chunks that come at one pace all the time, and stay.
    SteadyGrowth,
    /// Cache lines that several threads write in different places.
    FalseSharing,
    /// A data structure whose nodes the program waits for; the views add these findings.
    Waits,
}

/// How much a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// Bytes at the peak of the process, or bytes copied.
    Bytes(u64),
    /// Bytes times the seconds for which they were held in vain.
    ByteSeconds(f64),
    /// Calls of the allocator.
    Allocations(u64),
    /// Accesses in the windows.
    Accesses(u64),
    /// Sites of a structure that the program waits for.
    Sites(u64),
}

/// A waste at a site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Index of the site.
    pub site: usize,
    /// What it is about.
    pub kind: Kind,
    /// What is wrong and what to try.
    pub sentence: String,
    /// How much it is about.
    pub amount: Amount,
    /// What it would save, as a part of the program's total from 0 to 1.
    pub share: f64,
}

impl Finding {
    /// By which findings are ordered: the share, less if there is doubt.
    #[must_use]
    pub fn weight(&self) -> f64 {
        match self.kind {
            Kind::NeverRead | Kind::NeverWritten if self.is_of_memory() => {
                self.share * SYSTEM_DOUBT
            }
            _ => self.share,
        }
    }

    fn is_of_memory(&self) -> bool {
        self.kind != Kind::Moved && matches!(self.amount, Amount::Bytes(_) | Amount::ByteSeconds(_))
    }

    /// The share in words: `40 % of memory`.
    #[must_use]
    pub fn part(&self) -> String {
        let whole = match self.amount {
            _ if self.is_of_memory() => "memory",
            _ => "the time",
        };
        format!("{} of {whole}", percent(self.share))
    }
}

/// All findings of a profile, the most saving first.
#[must_use]
pub fn findings(profile: &Profile, options: &Options) -> Vec<Finding> {
    let search = Search::new(profile, *options);
    let mut found: Vec<Finding> = Vec::new();
    for (index, site) in profile.sites.iter().enumerate() {
        let mut at_site = search.memory(site);
        at_site.extend(search.time(site));
        at_site.extend(search.large_future(site));
        at_site.extend(search.steady(site));
        let at_site = at_site
            .into_iter()
            .filter(|it| it.weight() >= options.min_share)
            .chain(search.leaked(index));
        found.extend(at_site.map(|it| Finding { site: index, ..it }));
    }
    let shared = false_sharing(profile).into_iter();
    found.extend(shared.filter(|it| it.share >= options.min_share));
    sort(&mut found);
    found
}

/// The most saving first.
pub(crate) fn sort(found: &mut [Finding]) {
    found.sort_by(|a, b| b.weight().total_cmp(&a.weight()).then(a.site.cmp(&b.site)));
}

/// The program's totals.
struct Search<'a> {
    profile: &'a Profile,
    options: Options,
    /// Time of the whole run, in the unit of an access.
    time: f64,
    /// Bytes of the process at its peak, whether of its heap or not.
    memory: u64,
    is_rust: bool,
}

impl Search<'_> {
    fn new(profile: &Profile, options: Options) -> Search<'_> {
        let resident = profile.resident.iter().map(|sample| sample.bytes).max();
        let moved = profile.sites.iter().map(|site| site.moved_bytes as f64);
        let moved: f64 = moved.sum();
        let calls = profile.total.allocations as f64;
        Search {
            profile,
            options,
            time: match profile.run.accesses {
                true => profile.run.end as f64 + calls * CALL_EVENTS + moved / COPY_BYTES,
                // What else the program does was not counted; an access takes about that long.
                false => (profile.run.seconds * 1e9).max(1.0),
            },
            memory: { profile.total.peak_usable }
                .max(resident.unwrap_or(0))
                .max(MIN_MEMORY),
            is_rust: profile.run.compiler.starts_with("rustc"),
        }
    }

    /// A finding about a part of the bytes that the site has at the peak of the process.
    fn of_peak(&self, kind: Kind, bytes: u64, sentence: String) -> Option<Finding> {
        (bytes >= self.options.min_bytes).then(|| Finding {
            site: 0,
            kind,
            sentence,
            amount: Amount::Bytes(bytes),
            share: ratio(bytes, self.memory).min(1.0),
        })
    }

    /// What nothing leads to.
    fn leaked(&self, site: usize) -> Option<Finding> {
        let it = of_site(self.profile, site).filter(|it| it.all_chunks() > 0)?;
        let (chunks, size) = (plural(it.all_chunks(), "chunk"), bytes(it.all_bytes()));
        let advice = match it.chunks {
            0 => "they go with the leaked ones that lead to them",
            _ => "nothing leads to them at the end",
        };
        Some(Finding {
            site,
            kind: Kind::Leaked,
            sentence: format!("{chunks} leaked, {size}: {advice}"),
            amount: Amount::Bytes(it.all_bytes()),
            share: ratio(it.all_bytes(), self.memory).min(1.0),
        })
    }

    /// Bytes that are not used, and bytes that are held too long.
    fn memory(&self, site: &Site) -> Vec<Finding> {
        if !self.profile.run.accesses || site.unseen || site.allocations == 0 {
            return Vec::new();
        }
        let n = site.allocations;
        let of_chunks = |number: u64| match number {
            _ if number >= n => String::new(),
            _ => format!(" in {} of {} chunks", count(number), count(n)),
        };
        let at_peak = |part: f64| rounded(site.at_peak_usable as f64 * part.clamp(0.0, 1.0));
        let mut found = Vec::new();
        let of_untouched = match self.is_of_sort(site) {
            true => "`sort_unstable` needs none",
            false => "allocate on first use",
        };
        let words = [
            ("never touched", of_untouched),
            ("written, never read", "drop it, unless the system reads it"),
            (
                "read, never written",
                "share it, unless the system writes it",
            ),
        ];
        let kinds = [Kind::NeverTouched, Kind::NeverRead, Kind::NeverWritten];
        let (untouched, unread) = (site.untouched_chunks, site.unread_chunks);
        let useless = kinds
            .into_iter()
            .zip([untouched, unread, site.unwritten_chunks]);
        for ((kind, number), (what, advice)) in useless.zip(words) {
            if ratio(number, n) >= MOST_CHUNKS {
                let unused = at_peak(ratio(number, n));
                let (of_chunks, saved) = (of_chunks(number), bytes(unused));
                let sentence = format!("{what}{of_chunks}: {advice}, {saved} at the peak");
                found.extend(self.of_peak(kind, unused, sentence));
            }
        }
        if ratio(site.untouched_chunks, n) < MOST_CHUNKS {
            found.extend(self.partly_used(site));
        }
        found.extend(self.held(site, site.drag, Kind::LateFree));
        found.extend(self.held(site, site.wait, Kind::EarlyAllocation));
        found
    }

    /// `byte_events` is the sum over chunks of bytes times the events for which nobody used them.
    fn held(&self, site: &Site, byte_events: f64, kind: Kind) -> Option<Finding> {
        let idle = byte_events / site.chunk_bytes().max(1) as f64;
        let life = ratio(site.lifetime, site.allocations);
        // A chunk that was never accessed is idle all its life, and another finding.
        let is_used = ratio(site.untouched_chunks, site.allocations) < MOST_CHUNKS;
        if !is_used || idle < self.options.idle_part * life {
            return None;
        }
        let second = seconds_per_event(self.profile, site);
        let sum = byte_events * second;
        // In events, so that the order is the same in each run.
        let share = byte_events / (self.memory as f64 * self.profile.run.end.max(1) as f64);
        let is_small = share < self.options.min_share;
        if !(sum > 0.0 && sum.is_finite()) || is_small || self.is_part_of_used(site) {
            return None;
        }
        let mean = bytes(rounded(byte_events / self.profile.run.end.max(1) as f64));
        let idle = seconds(idle * second);
        let sentence = match kind {
            Kind::LateFree if site.end_chunks >= site.allocations => {
                format!("never freed, unused for its last {idle}: {mean} on average")
            }
            Kind::LateFree => {
                format!("unused for its last {idle}: free it then, {mean} on average")
            }
            _ => format!("unused for its first {idle}: allocate later, {mean} on average"),
        };
        Some(Finding {
            site: 0,
            kind,
            sentence,
            amount: Amount::ByteSeconds(sum),
            share: share.min(1.0),
        })
    }

    /// Calls of the allocator that need not be.
    fn time(&self, site: &Site) -> Vec<Finding> {
        let of_time = |kind, amount, events: f64, sentence| Finding {
            site: 0,
            kind,
            sentence,
            amount,
            share: (events / self.time).min(1.0),
        };
        let of_calls = |kind, calls: u64, sentence| {
            let events = calls as f64 * CALL_EVENTS;
            of_time(kind, Amount::Allocations(calls), events, sentence)
        };
        let mut found = Vec::new();
        let is_short = |events: f64| events < self.options.min_calls as f64 * CALL_EVENTS;
        let copies = site.moved_bytes as f64 / COPY_BYTES;
        let grows = site.longest_chain >= GROWTH_STEPS;
        let is_moved = site.moved_bytes >= self.options.min_bytes;
        let moved = format!("{} moved", bytes(site.moved_bytes));
        let resized = site.reallocs.saturating_sub(site.same_size);
        let growth = resized as f64 * CALL_EVENTS + copies;
        // std's own vectors take no capacity: those of `vars_os`.
        if grows && !(self.is_rust && site.unseen) && !is_short(growth) {
            let advice = match self.is_rust {
                true => "`with_capacity`",
                false => "ask for the final size first",
            };
            let times = count(site.longest_chain);
            let moved = match is_moved {
                true => format!(", {moved}"),
                false => String::new(),
            };
            let largest = bytes(site.largest);
            let sentence = format!("grown {times} times{moved}: {advice}, up to {largest}");
            let amount = Amount::Allocations(resized);
            found.push(of_time(Kind::Growth, amount, growth, sentence));
        }
        if !grows && is_moved && !is_short(copies) {
            let sentence = format!("{moved} by `realloc`: ask for the final size first");
            let amount = Amount::Bytes(site.moved_bytes);
            found.push(of_time(Kind::Moved, amount, copies, sentence));
        }
        if site.same_size >= self.options.min_calls {
            let calls = plural(site.same_size, "call");
            let advice = "of `realloc` to the size that the chunk has: leave them out";
            let sentence = format!("{calls} {advice}");
            found.push(of_calls(Kind::SameSize, site.same_size, sentence));
        }
        let copies = self.copies(site);
        if let Some((sentence, events)) = copies {
            let amount = Amount::Allocations(site.unread_chunks);
            found.push(of_time(Kind::NeverRead, amount, events, sentence));
        } else if ratio(site.temporary, site.allocations) >= MOST_CHUNKS
            && site.temporary >= self.options.min_calls
        {
            let chunks = plural(site.temporary, "temporary allocation");
            let sentence = format!("{chunks}: reuse one buffer");
            found.push(of_calls(Kind::Temporary, site.temporary, sentence));
        } else if found.is_empty()
            && site.allocations as f64 * CALL_EVENTS >= MIN_CHURN * self.time
            && site.frees >= MIN_CHURN_CALLS.max(CHURN * site.peak_chunks)
        {
            let [all, alive] = [site.allocations, site.peak_chunks].map(count);
            let sentence = format!(
                "{all} allocations, {alive} alive at most: reuse what is freed, or take them from \
                 an arena"
            );
            found.push(of_calls(Kind::Churn, site.allocations, sentence));
        }
        found
    }
}

/// How long an event took while the site had chunks, in seconds.
pub(crate) fn seconds_per_event(profile: &Profile, site: &Site) -> f64 {
    // No profile has an event at 0.
    let start = site.first_time.max(1);
    let end = site.groups.iter().map(|group| group.last_freed).max();
    let end = end.unwrap_or(profile.run.end).max(start.saturating_add(1));
    (profile.seconds(end) - profile.seconds(start)) / (end - start) as f64
}

/// ` at main.c:8`, where the user's own code allocates at `site`.
fn place_of(profile: &Profile, site: u32) -> Option<String> {
    let place = profile.sites.get(site as usize)?.place?;
    let frame = profile.frames.get(place as usize)?;
    let file = frame.file.rsplit('/').next().filter(|it| !it.is_empty())?;
    Some(format!(" at {file}:{}", frame.line))
}

/// Lines that threads write in turn in different places, by site. What they also write in the same
/// place they share on purpose: of such lines nothing is said.
fn false_sharing(profile: &Profile) -> Vec<Finding> {
    let all = profile
        .total
        .heap_reads
        .saturating_add(profile.total.heap_writes);
    let mut sites: HashMap<([u32; 2], bool), Vec<&SharedLine>> = HashMap::new();
    for line in &profile.lines {
        if line.turns / MAX_SAME >= line.same && line.turns >= MIN_TURNS {
            let places = line.places.map(|(site, _)| site);
            sites.entry((places, line.apart)).or_default().push(line);
        }
    }
    let mut found = Vec::new();
    for (([site, other], apart), lines) in sites {
        let threads = lines.iter().map(|line| line.threads.count_ones()).max();
        let turns = sum(lines.iter().map(|line| line.turns)).saturating_mul(LOOKED_AT);
        let [(_, first), (_, second)] = lines[0].places;
        let at_least = count(turns.min(all));
        let which = match lines.len() {
            1 => "one cache line".to_owned(),
            n => format!("{} cache lines", count(n as u64)),
        };
        let places = match site == other {
            true if apart => format!("byte {first} of a chunk, and byte {second} of another"),
            true => format!("bytes {first} and {second}"),
            false => {
                let at = place_of(profile, other).unwrap_or_default();
                format!("byte {first}, and byte {second} of #{other}{at}")
            }
        };
        let advice = match apart {
            true => format!("align each chunk to {LINE_BYTES} bytes"),
            false => format!("give each thread {LINE_BYTES} bytes of its own"),
        };
        let sentence = format!(
            "{} threads write {which} in turn, some {at_least} times ({places}): {advice}",
            threads.unwrap_or(2)
        );
        found.push(Finding {
            site: site as usize,
            kind: Kind::FalseSharing,
            sentence,
            amount: Amount::Accesses(turns.min(all)),
            // Each takes as long as a call of the allocator, and more.
            share: (turns as f64 * TURN_EVENTS / profile.run.end.max(1) as f64).min(1.0),
        });
    }
    found.sort_by_key(|finding| finding.site);
    found
}

mod copies;
mod futures;
mod steady;
mod unused;

#[cfg(test)]
mod tests;
