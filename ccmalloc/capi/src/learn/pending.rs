//! Samples that are looked at again.

use allocator::raw;

use super::sites::Sites;
use super::{PLACES, word_of};
use crate::entry::{Snapshot, peek};

/// After how many calls of its thread a sample is looked at: links may be made late.
const STAGES: [u64; 3] = [4, 64, 1024];
/// Samples at a time.
const PENDING_MAX: usize = 64;
/// A sample of this age, in nanoseconds, gives its place up: its thread may have ended.
const AGE_MAX: u64 = 1_000_000_000;
/// Objects up to this many bytes can be placed, and have neighbours.
pub(super) const PLACED_BYTES_MAX: usize = 512;
const WORD_BYTES: usize = size_of::<usize>();

/// A call that was kept.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    /// 0 while it is none.
    object: usize,
    bytes: usize,
    site: usize,
    thread: usize,
    /// The thread's calls at the time.
    calls: u64,
    taken: u64,
    /// How often it has been looked at.
    stage: usize,
    is_linked: bool,
    words: [usize; PLACES],
}

impl Sample {
    const NONE: Self = Self {
        object: 0,
        bytes: 0,
        site: 0,
        thread: 0,
        calls: 0,
        taken: 0,
        stage: 0,
        is_linked: false,
        words: [0; PLACES],
    };

    fn due(&self) -> u64 {
        self.calls + STAGES.get(self.stage).copied().unwrap_or_default()
    }

    /// Looks at it again; `false` once that was the last time.
    fn check(&mut self, sites: &mut Sites) -> bool {
        let Some(site) = sites.get_mut(self.site) else {
            return false;
        };
        let mut parent = None;
        let is_alive = match raw::locate(self.object) {
            Some((start, _)) => start == self.object,
            // Large ones have no neighbours anyway.
            None => self.bytes > PLACED_BYTES_MAX && allocator::contains(self.object as *const u8),
        };
        site.short += u32::from(self.stage == 0 && !is_alive);
        if is_alive && !self.is_linked && self.bytes <= PLACED_BYTES_MAX {
            let (mut into, mut from) = (None, None);
            for (place, count) in self.words.iter().zip(&mut site.linked) {
                let Some((start, bytes)) = raw::locate(*place) else {
                    continue;
                };
                if start == self.object || bytes > PLACED_BYTES_MAX {
                    continue;
                }
                let there = link(start, bytes, self.object, self.bytes);
                let back = link(self.object, self.bytes, start, bytes);
                *count += u32::from(there.is_some() || back.is_some());
                if there.or(back).is_some() {
                    site.other_bytes = bytes;
                }
                if into.is_none()
                    && let Some(at) = there
                {
                    (into, parent) = (there, Some((bytes, at)));
                }
                from = from.or(back);
            }
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
    // SAFETY: a word of a live object of this thread's memory, which only this thread can unmap.
    (is_it && at + WORD_BYTES <= bytes)
        .then(|| unsafe { peek(core::ptr::with_exposed_provenance(object + at)) })
}

/// Where the object at `from` has a pointer to that at `to`, or into it.
fn link(from: usize, from_bytes: usize, to: usize, to_bytes: usize) -> Option<usize> {
    (0..from_bytes / WORD_BYTES).find_map(|word| {
        let place = core::ptr::with_exposed_provenance(from + word * WORD_BYTES);
        // SAFETY: a word of a live object of this thread's memory, which `locate` has found: only
        // this thread can unmap it.
        let pointer = unsafe { peek(place) };
        let is_link = pointer.wrapping_sub(to) < to_bytes.max(1);
        is_link.then(|| word * WORD_BYTES)
    })
}

pub(super) struct Pending([Sample; PENDING_MAX]);

impl Pending {
    pub(super) const fn new() -> Self {
        Self([Sample::NONE; PENDING_MAX])
    }

    pub(super) fn clear(&mut self) {
        self.0.fill(Sample::NONE);
    }

    /// Looks at what is due of a thread that has made so many calls.
    pub(super) fn check(&mut self, sites: &mut Sites, thread: usize, calls: u64) {
        for sample in &mut self.0 {
            let is_due = sample.object != 0 && sample.thread == thread && sample.due() <= calls;
            if is_due && !sample.check(sites) {
                sample.object = 0;
            }
        }
    }

    /// Keeps a call of a site, if there is room.
    pub(super) fn keep(&mut self, sample: NewSample<'_>) -> bool {
        let oldest = |sample: &&mut Sample| (sample.object != 0, sample.taken);
        let Some(place) = self.0.iter_mut().min_by_key(oldest) else {
            return false;
        };
        if place.object != 0 && sample.taken - place.taken < AGE_MAX {
            return false;
        }
        let mut words = [0; PLACES];
        for (number, word) in words.iter_mut().enumerate() {
            *word = sample.at.word(word_of(number)).unwrap_or_default();
        }
        *place = Sample {
            object: sample.object,
            bytes: sample.bytes,
            site: sample.site,
            thread: sample.thread,
            calls: sample.calls,
            taken: sample.taken,
            stage: 0,
            is_linked: false,
            words,
        };
        true
    }

    /// At how many calls of the thread something is due next.
    pub(super) fn next_due(&self, thread: usize) -> Option<u64> {
        let mine = |sample: &&Sample| sample.object != 0 && sample.thread == thread;
        self.0.iter().filter(mine).map(Sample::due).min()
    }
}

/// What is kept of a call.
pub(super) struct NewSample<'a> {
    pub(super) site: usize,
    pub(super) object: usize,
    pub(super) bytes: usize,
    pub(super) at: &'a Snapshot,
    pub(super) thread: usize,
    pub(super) calls: u64,
    /// When.
    pub(super) taken: u64,
}
