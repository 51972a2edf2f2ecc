//! What a walk has depended on: while all of it is what it was, so is the stack.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::Frame;

/// Words that a walk may depend on to be remembered.
const WORDS: usize = 45;

/// Changes when unwind information may have.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// A walk. Its registers are those that it began with.
#[repr(C)]
pub(super) struct Entry {
    ip: u64,
    sp: u64,
    bp: u64,
    generation: u32,
    /// What the caller has noted; 0 until then.
    pub(super) value: u32,
    /// All ones if `bp` matters.
    bp_mask: u64,
    len: u16,
    /// Distances of the words from `sp`, in words.
    places: [u16; WORDS],
    words: [u64; WORDS],
}

pub(super) fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Unwind information may have changed: no walk is remembered.
pub(super) fn forget() {
    GENERATION.fetch_add(1, Relaxed);
}

impl Entry {
    #[inline(always)]
    pub(super) fn is_of(&self, frame: Frame) -> bool {
        if self.ip != frame.ip || self.sp != frame.sp || (self.bp ^ frame.bp) & self.bp_mask != 0 {
            return false;
        }
        if self.value == 0 || self.generation != GENERATION.load(Relaxed) {
            return false;
        }
        let len = usize::from(self.len);
        self.places[..len]
            .iter()
            .zip(&self.words[..len])
            .all(|(&place, &word)| {
                let place = frame.sp + u64::from(place) * 8;
                let place = core::ptr::with_exposed_provenance::<u64>(place as usize);
                // SAFETY: `WalkDependences::word` has kept only words of the window of a walk by
                // this thread with the same stack pointer. So the window is the same now, and by
                // the window invariant of `Reader` it is mapped.
                unsafe { place.read_volatile() == word }
            })
    }
}

/// Where the frame pointer of the frame at hand comes from.
enum Source {
    Register,
    /// The word at this address.
    Stack(u64),
    /// A word that is among the others.
    Noted,
}

/// What a walk has depended on so far.
pub(super) struct WalkDependences<'m> {
    /// `None` if it cannot be kept.
    entry: Option<&'m mut Entry>,
    /// Bytes in the window of the walk.
    window: u64,
    bp: Source,
}

impl<'m> WalkDependences<'m> {
    pub(super) fn new(mut entry: Option<&'m mut Entry>, frame: Frame, window: u64) -> Self {
        if let Some(entry) = &mut entry {
            entry.value = 0;
            (entry.ip, entry.sp, entry.bp) = (frame.ip, frame.sp, frame.bp);
            entry.generation = GENERATION.load(Relaxed);
            (entry.bp_mask, entry.len) = (0, 0);
        }
        WalkDependences {
            entry,
            window,
            bp: Source::Register,
        }
    }

    /// The walk depends on the word at this address.
    #[inline(always)]
    pub(super) fn word(&mut self, address: u64, word: u64) {
        let Some(entry) = &mut self.entry else { return };
        let (len, distance) = (usize::from(entry.len), address.wrapping_sub(entry.sp));
        let is_kept = distance < self.window && distance / 8 <= u64::from(u16::MAX);
        if len == WORDS || distance % 8 != 0 || !is_kept {
            return self.give_up();
        }
        entry.places[len] = (distance / 8) as u16;
        entry.words[len] = word;
        entry.len += 1;
    }

    /// The frame pointer was saved at this address.
    #[inline(always)]
    pub(super) fn saved(&mut self, address: u64) {
        self.bp = Source::Stack(address);
    }

    /// A frame was found by the frame pointer.
    #[inline(always)]
    pub(super) fn used(&mut self, bp: u64) {
        match self.bp {
            Source::Register => {
                if let Some(entry) = &mut self.entry {
                    entry.bp_mask = u64::MAX;
                }
            }
            Source::Stack(address) => self.word(address, bp),
            Source::Noted => {}
        }
        self.bp = Source::Noted;
    }

    /// A frame with `bp` was left: by `bp` or not, by the return address that lies at a place, and
    /// with the frame pointer that was saved at another, if it is not 0.
    #[inline(always)]
    pub(super) fn step(&mut self, bp: u64, by_bp: bool, [ip_at, ip]: [u64; 2], bp_at: u64) {
        if self.entry.is_none() {
            return;
        }
        if by_bp {
            self.used(bp);
        }
        self.word(ip_at, ip);
        if bp_at != 0 {
            self.saved(bp_at);
        }
    }

    /// The walk depends on something else, too.
    pub(super) fn give_up(&mut self) {
        self.entry = None;
    }

    /// Where to note what the stack is, if the walk can be kept.
    pub(super) fn end(self) -> Option<&'m mut u32> {
        self.entry.map(|entry| &mut entry.value)
    }
}
