//! Samples that are looked at again.

use allocator::raw::{self, HINTED_BYTES_MAX, peek};

use super::PLACES;
use super::met::Met;
use super::sites::Sites;

/// After how many calls of its thread a sample is looked at: links may be made late.
const STAGES: [u64; 3] = [4, 64, 1024];
/// Samples at a time.
const PENDING_MAX: usize = 64;
/// A sample of this age, in nanoseconds, gives its place up: its thread may have ended.
const AGE_MAX: u64 = 1_000_000_000;
const WORD_BYTES: usize = size_of::<usize>();

/// When a sample is looked at again: apart from the sample, since each look at a call reads all.
#[derive(Clone, Copy)]
struct Entry {
    /// 0 while it is none.
    object: usize,
    thread: usize,
    /// At how many calls of the thread.
    due: u64,
    /// Its memory has been given out again.
    is_gone: bool,
    /// It has not been looked at yet.
    is_new: bool,
}

/// A call that was kept.
#[derive(Clone, Copy)]
struct Sample {
    bytes: usize,
    site: usize,
    /// The thread's calls at the time.
    calls: u64,
    taken: u64,
    /// How many calls it stands for.
    stands_for: u64,
    /// How often it has been looked at.
    stage: usize,
    is_linked: bool,
    words: [usize; PLACES],
}

impl Sample {
    const NONE: Self = Self {
        bytes: 0,
        site: 0,
        calls: 0,
        taken: 0,
        stands_for: 0,
        stage: 0,
        is_linked: false,
        words: [0; PLACES],
    };

    /// Looks at it again; `false` once that was the last time.
    fn check(&mut self, entry: &Entry, sites: &mut Sites, met: &Met) -> bool {
        let object = entry.object;
        let Some(site) = sites.get_mut(self.site) else {
            return false;
        };
        let mut parent = None;
        let is_alive = match raw::locate(object) {
            _ if entry.is_gone => false,
            // Not a smaller one that has taken its place.
            Some((start, bytes)) => start == object && bytes >= self.bytes,
            // Large ones have no neighbours anyway.
            None => self.bytes > HINTED_BYTES_MAX && allocator::contains(object as *const u8),
        };
        if self.stage == 0 {
            site.short += u32::from(!is_alive);
            site.looked_at += self.stands_for;
        }
        if is_alive && !self.is_linked && self.bytes <= HINTED_BYTES_MAX {
            let (mut into, mut from) = (None, None);
            let (best, _) = site.best();
            let mut known = None;
            for (place, (word, count)) in self.words.iter().zip(&mut site.linked).enumerate() {
                let Some((start, bytes)) = raw::locate(*word) else {
                    continue;
                };
                if start == object || bytes > HINTED_BYTES_MAX {
                    continue;
                }
                let there = link(start, bytes, object, self.bytes);
                let back = link(object, self.bytes, start, bytes);
                let is_linked = there.is_some() || back.is_some();
                if is_linked {
                    *count += self.stands_for;
                    site.other_bytes = bytes;
                }
                if is_linked && place == best {
                    known = met.get(start);
                }
                if into.is_none()
                    && let Some(at) = there
                {
                    (into, parent) = (there, Some((bytes, at)));
                }
                from = from.or(back);
            }
            site.vote(known);
            self.is_linked = into.is_some() || from.is_some();
            if let Some(at) = into {
                (site.into, site.into_at) = (site.into + 1, at);
            } else if let Some(at) = from {
                (site.from, site.from_at) = (site.from + 1, at);
            }
        }
        self.stage += 1;
        let goes_on = is_alive && self.stage < STAGES.len();
        if !goes_on {
            site.complete += 1;
            site.ended += u32::from(!is_alive);
        }
        if let Some((bytes, at)) = parent {
            sites.look_for_parents(self.site, bytes, at, self.calls);
        }
        goes_on
    }
}

/// The word at `at` of the live object that starts at `object`, if it is one of `bytes`.
pub(super) fn word_in(object: usize, bytes: usize, at: usize) -> Option<usize> {
    let is_it = raw::locate(object) == Some((object, bytes));
    // SAFETY: a word of a live object in a chunk of this thread's arena: it stays mapped, whoever
    // frees the object, as only this thread gives chunks back.
    (is_it && at + WORD_BYTES <= bytes)
        .then(|| unsafe { peek(core::ptr::with_exposed_provenance(object + at)) })
}

/// Where the object at `from` has a pointer to that at `to`, or into it.
fn link(from: usize, from_bytes: usize, to: usize, to_bytes: usize) -> Option<usize> {
    (0..from_bytes / WORD_BYTES).find_map(|word| {
        let place = core::ptr::with_exposed_provenance(from + word * WORD_BYTES);
        // SAFETY: a word of an object that `locate` has found, of so many bytes at least, in a
        // chunk of this thread's arena: it stays mapped, whoever frees the object, as only this
        // thread gives chunks back.
        let pointer = unsafe { peek(place) };
        let is_link = pointer.wrapping_sub(to) < to_bytes.max(1);
        is_link.then(|| word * WORD_BYTES)
    })
}

pub(super) struct Pending {
    entries: [Entry; PENDING_MAX],
    samples: [Sample; PENDING_MAX],
}

impl Pending {
    pub(super) const fn new() -> Self {
        const NONE: Entry = Entry {
            object: 0,
            thread: 0,
            due: 0,
            is_gone: false,
            is_new: false,
        };
        Self {
            entries: [NONE; PENDING_MAX],
            samples: [Sample::NONE; PENDING_MAX],
        }
    }

    pub(super) fn clear(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.object = 0);
    }

    /// Looks at what is due of a thread that has made so many calls.
    pub(super) fn check(&mut self, sites: &mut Sites, met: &Met, thread: usize, calls: u64) {
        for (entry, sample) in self.entries.iter_mut().zip(&mut self.samples) {
            if entry.object == 0 || entry.thread != thread || entry.due > calls {
                continue;
            }
            if sample.check(entry, sites, met) {
                let stage = STAGES.get(sample.stage).copied();
                entry.due = sample.calls + stage.unwrap_or_default();
                entry.is_new = false;
            } else {
                entry.object = 0;
            }
        }
    }

    /// Learns that `object` was given out: what was there before is gone.
    pub(super) fn meet(&mut self, object: usize) {
        for entry in &mut self.entries {
            entry.is_gone |= entry.object == object;
        }
    }

    /// Keeps a call of a site, if there is room.
    pub(super) fn keep(&mut self, new: NewSample) -> bool {
        let oldest =
            |(entry, sample): &(&mut Entry, &mut Sample)| (entry.object != 0, sample.taken);
        let places = self.entries.iter_mut().zip(&mut self.samples);
        let Some((entry, sample)) = places.min_by_key(oldest) else {
            return false;
        };
        if entry.object != 0 && new.taken - sample.taken < AGE_MAX {
            return false;
        }
        *entry = Entry {
            object: new.object,
            thread: new.thread,
            due: new.calls + STAGES[0],
            is_gone: false,
            is_new: true,
        };
        sample.bytes = new.bytes;
        sample.site = new.site;
        sample.calls = new.calls;
        sample.taken = new.taken;
        sample.stands_for = new.stands_for;
        sample.stage = 0;
        sample.is_linked = false;
        sample.words = new.words;
        true
    }

    /// At how many calls of the thread, which has made `calls`, it is to be looked at again: at
    /// once while a sample is new.
    pub(super) fn next_due(&self, thread: usize, calls: u64) -> Option<u64> {
        let mine = |entry: &&Entry| entry.object != 0 && entry.thread == thread;
        let next = |entry: &Entry| if entry.is_new { calls + 1 } else { entry.due };
        self.entries.iter().filter(mine).map(next).min()
    }
}

/// What is kept of a call.
pub(super) struct NewSample {
    pub(super) site: usize,
    pub(super) object: usize,
    pub(super) bytes: usize,
    pub(super) words: [usize; PLACES],
    pub(super) thread: usize,
    pub(super) calls: u64,
    /// When.
    pub(super) taken: u64,
    /// How many calls it stands for.
    pub(super) stands_for: u64,
}
