//! The pages of a co-location slot: which granules are free, and where objects end.
//!
//! Two maps, one bit a granule. A set bit of the free map is a free granule. A set bit of the end
//! map is the *last* granule of an object, so that an object can be freed without its size:
//!
//! ```text
//! granule     0 1 2 3 4 5 6 7 8 9
//! object      A A A B . C C C C .         . = free
//! free map    0 0 0 0 1 0 0 0 0 1
//! end map     0 0 1 1 0 0 0 0 1 0
//! ```
//!
//! Invariants, which hold whenever no method of [`Word`] or [`Pages`] runs:
//!
//! 1. The end bit of a free granule is 0.
//! 2. Each run of taken granules ends in an end.
//! 3. Only the owner of the slot writes either map, and only the owner reads the free map.
//!
//! Granule g is the first of an object exactly if it is taken, and the granule before it is free,
//! an end, or in another slot. The object reaches to the first end at or after g. So a double free,
//! a pointer into an object and a wrong size are found, unless an object of the same size has been
//! placed there since.
//!
//! The end map lies outside of the chunk ([`ChunkDesc::ends`](crate::chunk::ChunkDesc)) and is
//! atomic: a remote free reads the object's length there while the owner may change other bits.
//! Relaxed accesses are enough, because the bits of a live object do not change.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::bits::{self, PageMap};
use crate::chunk::{EndMap, SlotRef, for_each_word, map_word};
use crate::geometry::{
    BLOCK_GRANULES, GRANULE_BYTES, MAP_WORDS, PAGE_GRANULES, SLOT_GRANULES, slot_offset,
};
use crate::sys;

/// The granules of one object; `first` is a number in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: usize,
    pub(crate) granules: usize,
}

impl Run {
    /// Its pages, a bit each.
    pub(crate) fn pages(self) -> u32 {
        let last = (self.first + self.granules - 1) / PAGE_GRANULES;
        (2 << last) - (1 << (self.first / PAGE_GRANULES))
    }
}

/// How many granules an object of `bytes` takes.
#[inline]
pub(crate) const fn granules_of(bytes: usize) -> usize {
    let granules = bytes.div_ceil(GRANULE_BYTES);
    if granules == 0 { 1 } else { granules }
}

/// The 64 granules around an address in a co-location slot: a word of each map.
#[derive(Clone, Copy)]
pub(crate) struct Word<'a> {
    free: &'a Cell<u64>,
    ends: &'a AtomicU64,
}

impl<'a> Word<'a> {
    /// The word of `address`. Reads neither map, so that the caller can load both words at once.
    ///
    /// # Safety
    /// - `address` lies in a co-location slot of the calling thread's arena, which stays one during
    ///   `'a`.
    #[inline(always)]
    pub(crate) unsafe fn containing(address: usize) -> Self {
        // SAFETY: the slot is not the first of its chunk, and the chunk is mapped during `'a`: only
        // this thread unmaps the chunks of its arena.
        let (free, slot) = unsafe { (map_word(address), SlotRef::containing(address)) };
        // SAFETY: a co-location slot of this thread's arena, in which `address` lies.
        let ends = unsafe { slot.end_word(address) };
        Self { free, ends }
    }

    /// The free map of these granules.
    #[inline(always)]
    pub(crate) fn free(self) -> u64 {
        self.free.get()
    }

    /// Makes an object of `granules` (1..64) free granules from number `first` of the word on.
    #[inline(always)]
    pub(crate) fn claim(self, first: usize, granules: usize) {
        let (free, taken) = (self.free.get(), ((1 << granules) - 1) << first);
        debug_assert!(free & taken == taken && first + granules <= 64);
        self.free.set(free & !taken);
        let ends = self.ends.load(Ordering::Relaxed);
        let end = 1 << (first + granules - 1);
        self.ends.store(ends | end, Ordering::Relaxed);
    }

    /// Frees the object at `address`, which lies in this word; returns its bits.
    ///
    /// Returns `None`, and does nothing, if no object of `bytes` (`None`: of any size) starts
    /// there, if it is larger than a block, starts a word, or reaches into the next word.
    #[inline(always)]
    pub(crate) fn release(self, address: usize, bytes: Option<usize>) -> Option<u64> {
        let (free, ends) = (self.free.get(), self.ends.load(Ordering::Relaxed));
        let granule = address / GRANULE_BYTES % 64;
        // Bit g says whether the granule before is free or an end, and this one taken.
        let starts = (free | ends) << 1 & !free;
        let granules = (ends >> granule).trailing_zeros() as usize + 1;
        let is_one = starts >> granule & 1 == 1
            && address.is_multiple_of(GRANULE_BYTES)
            && granules <= BLOCK_GRANULES
            && granule + granules <= 64
            && bytes.is_none_or(|bytes| granules_of(bytes) == granules);
        if !is_one {
            return None;
        }
        let freed = ((1 << granules) - 1) << granule;
        self.ends.store(ends & !freed, Ordering::Relaxed);
        self.free.set(free | freed);
        Some(freed)
    }
}

/// The sixteen pages of a co-location slot that the calling thread owns.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'a> {
    slot: SlotRef<'a>,
}

impl<'a> Pages<'a> {
    /// # Safety
    /// - Whenever the value is used, the calling thread owns the slot, which is tagged as a
    ///   co-location slot. (The owner may also call [`init`](Self::init) just before it sets the
    ///   tag.)
    /// - The slot's chunk has end maps.
    #[inline]
    pub(crate) unsafe fn of(slot: SlotRef<'a>) -> Self {
        Self { slot }
    }

    #[inline]
    pub(crate) fn slot(self) -> SlotRef<'a> {
        self.slot
    }

    #[inline]
    fn ends(self) -> &'a EndMap {
        // SAFETY: `of` was promised a co-location slot of this thread's, whose chunk has end maps.
        unsafe { self.slot.ends() }
    }

    /// Makes all granules free.
    pub(crate) fn init(self) {
        for (free, ends) in self.slot.map().iter().zip(self.ends()) {
            free.set(!0);
            ends.store(0, Ordering::Relaxed);
        }
    }

    /// Clears the free map of an empty slot that is about to be given back.
    pub(crate) fn retire(self) {
        debug_assert!(self.is_empty());
        for word in self.slot.map() {
            word.set(0);
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.slot.map().iter().all(|word| word.get() == !0)
    }

    /// The free map of page `page` (0..16).
    #[inline]
    pub(crate) fn page_map(self, page: usize) -> PageMap {
        self.slot.page_words(page).each_ref().map(Cell::get)
    }

    /// The empty blocks of page `page` (0..16), a bit each.
    #[inline]
    pub(crate) fn empty_blocks(self, page: usize) -> u64 {
        bits::empty_blocks(&self.page_map(page))
    }

    /// Whether the granules of `run`, which lies in the slot, are free.
    #[inline]
    fn is_free(self, run: Run) -> bool {
        let mut free = true;
        for_each_word(run.first, run.granules, |word, mask| {
            let word = self.slot.map().get(word).map_or(0, Cell::get);
            free &= word & mask == mask;
        });
        free
    }

    /// The word that contains `run`, and the bits of `run`; `None` if it reaches the word's end.
    #[inline]
    fn word_of(self, run: Run) -> Option<(Word<'a>, u64)> {
        let (number, bit) = (run.first / 64, run.first % 64);
        let word = Word {
            free: self.slot.map().get(number)?,
            ends: self.ends().get(number)?,
        };
        (bit + run.granules < 64).then(|| (word, ((1 << run.granules) - 1) << bit))
    }

    /// Makes an object of `run`; `false` if not all of it is free and in the slot.
    #[inline]
    pub(crate) fn claim_if_free(self, run: Run) -> bool {
        let Some((word, mask)) = self.word_of(run) else {
            return self.claim_across_words(run);
        };
        let is_free = word.free() & mask == mask;
        if is_free {
            word.claim(run.first % 64, run.granules);
        }
        is_free
    }

    #[inline(never)]
    fn claim_across_words(self, run: Run) -> bool {
        let end = run.first.saturating_add(run.granules);
        if end > SLOT_GRANULES || !self.is_free(run) {
            return false;
        }
        set_end(self.ends(), end - 1);
        self.set_taken(run);
        true
    }

    /// Makes an object of `run`, which is free.
    #[inline]
    pub(crate) fn claim(self, run: Run) {
        let claimed = self.claim_if_free(run);
        debug_assert!(claimed);
    }

    /// The object that has the granule at `address`, which lies in the slot. `None` if the granule
    /// is free.
    pub(crate) fn run_around(self, address: usize) -> Option<Run> {
        let is_set = |word: u64, granule: usize| word >> (granule % 64) & 1 == 1;
        let is_free = |granule: usize| {
            (self.slot.map().get(granule / 64)).is_none_or(|word| is_set(word.get(), granule))
        };
        let is_end = |granule: usize| {
            (self.ends().get(granule / 64))
                .is_none_or(|word| is_set(word.load(Ordering::Relaxed), granule))
        };
        let granule = slot_offset(address) / GRANULE_BYTES;
        if is_free(granule) {
            return None;
        }
        let mut first = granule;
        while first > 0 && !is_free(first - 1) && !is_end(first - 1) {
            first -= 1;
        }
        let granules = length(self.ends(), first);
        Some(Run { first, granules })
    }

    /// Makes `count` adjacent objects of `granules` each at the start of an empty slot. They must
    /// fit.
    pub(crate) fn fill(self, granules: usize, count: usize) {
        debug_assert!(self.is_empty() && granules * count <= SLOT_GRANULES);
        for object in 0..count {
            set_end(self.ends(), object * granules + granules - 1);
        }
        let (first, granules) = (0, granules * count);
        self.set_taken(Run { first, granules });
    }

    #[inline]
    fn set_taken(self, run: Run) {
        for_each_word(run.first, run.granules, |word, mask| {
            if let Some(word) = self.slot.map().get(word) {
                word.set(word.get() & !mask);
            }
        });
    }

    fn set_free(self, run: Run) {
        for_each_word(run.first, run.granules, |word, mask| {
            if let Some(word) = self.slot.map().get(word) {
                word.set(word.get() | mask);
            }
        });
    }

    /// The object at `address`, which lies in the slot. Aborts with a message if no object of
    /// `bytes` (`None`: of any size) starts there.
    #[inline(always)]
    pub(crate) fn object(self, address: usize, bytes: Option<usize>) -> Run {
        let first = first_granule(address);
        if !is_start(self.slot.map(), self.ends(), first) {
            sys::die(
                "double free, or free of a pointer that is no object's:",
                address,
            );
        }
        let granules = length(self.ends(), first);
        if granules == 0 || bytes.is_some_and(|bytes| granules_of(bytes) != granules) {
            sys::die("free with a wrong size, of", address);
        }
        Run { first, granules }
    }

    /// Frees an object that [`object`](Self::object) has found.
    pub(crate) fn release(self, object: Run) {
        clear_end(self.ends(), object.first + object.granules - 1);
        self.set_free(object);
    }

    /// Resizes an object that [`object`](Self::object) has found to `granules`, in place. `false`
    /// if the next object, or the end of the page, is in the way.
    pub(crate) fn resize(self, object: Run, granules: usize) -> bool {
        let old_end = object.first + object.granules;
        let new_end = object.first.saturating_add(granules);
        if new_end > old_end {
            let (first, granules) = (old_end, new_end - old_end);
            let grown = Run { first, granules };
            // Hinted objects do not cross pages.
            if (new_end - 1) / PAGE_GRANULES != object.first / PAGE_GRANULES || !self.is_free(grown)
            {
                return false;
            }
            self.set_taken(grown);
        } else {
            let (first, granules) = (new_end, old_end - new_end);
            self.set_free(Run { first, granules });
        }
        clear_end(self.ends(), old_end - 1);
        set_end(self.ends(), new_end - 1);
        true
    }

    /// Completes the remote frees in the slot: each bit of the remote map is the first granule of
    /// an object. Returns the pages with freed objects, a bit each. Aborts with a message if there
    /// is no such object.
    pub(crate) fn absorb(self) -> u32 {
        let mut pages = 0;
        for (index, remote) in self.slot.remote().iter().enumerate() {
            let mut freed = remote.take();
            while freed != 0 {
                let first = index * 64 + freed.trailing_zeros() as usize;
                freed &= freed - 1;
                let object = self.object(self.slot.base().addr() + first * GRANULE_BYTES, None);
                self.release(object);
                pages |= object.pages();
            }
        }
        pages
    }

    /// Checks the invariants of the module's documentation. For tests.
    pub(crate) fn check(self) -> Result<(), &'static str> {
        let free = self.slot.map();
        for (index, (free_word, end_word)) in free.iter().zip(self.ends()).enumerate() {
            let (free_bits, end_bits) = (free_word.get(), end_word.load(Ordering::Relaxed));
            if free_bits & end_bits != 0 {
                return Err("an object ends in a free granule");
            }
            // No object continues behind the slot.
            let next = free.get(index + 1).map_or(1, Cell::get);
            let free_after = free_bits >> 1 | next << 63;
            if !(free_bits | end_bits) & free_after != 0 {
                return Err("granules are taken by no object");
            }
        }
        Ok(())
    }
}

/// Sets the end bit of `granule`. For the owner of the slot.
#[inline]
pub(crate) fn set_end(ends: &EndMap, granule: usize) {
    if let Some(word) = ends.get(granule / 64) {
        let bits = word.load(Ordering::Relaxed);
        word.store(bits | 1 << (granule % 64), Ordering::Relaxed);
    }
}

/// Clears the end bit of `granule`. For the owner of the slot.
#[inline]
pub(crate) fn clear_end(ends: &EndMap, granule: usize) {
    if let Some(word) = ends.get(granule / 64) {
        let bits = word.load(Ordering::Relaxed);
        word.store(bits & !(1 << (granule % 64)), Ordering::Relaxed);
    }
}

/// The number of granules from `first` to the first end at or after it; 0 if there is none.
#[inline]
fn length(ends: &EndMap, first: usize) -> usize {
    let here = ends
        .get(first / 64)
        .map_or(0, |word| word.load(Ordering::Relaxed) >> (first % 64));
    if here == 0 {
        return length_across_words(ends, first);
    }
    here.trailing_zeros() as usize + 1
}

#[cold]
#[inline(never)]
fn length_across_words(ends: &EndMap, first: usize) -> usize {
    let after = first / 64 + 1;
    ends.iter()
        .enumerate()
        .skip(after)
        .map(|(index, word)| (index, word.load(Ordering::Relaxed)))
        .find(|&(_, bits)| bits != 0)
        .map_or(0, |(index, bits)| {
            index * 64 + bits.trailing_zeros() as usize + 1 - first
        })
}

/// Whether an object starts at `first`. For the owner of the slot.
#[inline]
fn is_start(free: &[Cell<u64>; MAP_WORDS], ends: &EndMap, first: usize) -> bool {
    let word = first / 64;
    let (Some(free_word), Some(end_word)) = (free.get(word), ends.get(word)) else {
        return false;
    };
    let (free_bits, end_bits) = (free_word.get(), end_word.load(Ordering::Relaxed));
    // Bit g says whether the granule before g is free or an end.
    let starts = if first.is_multiple_of(64) && word > 0 {
        let before = word - 1;
        free.get(before).map_or(0, Cell::get) >> 63
            | ends
                .get(before)
                .map_or(0, |word| word.load(Ordering::Relaxed))
                >> 63
    } else {
        (free_bits | end_bits) << 1 | 1
    };
    starts & !free_bits & 1 << (first % 64) != 0
}

/// The granule that starts at `address`. Aborts with a message if none does.
#[inline]
fn first_granule(address: usize) -> usize {
    if !address.is_multiple_of(GRANULE_BYTES) {
        sys::die("free of a pointer that is no object's:", address);
    }
    slot_offset(address) / GRANULE_BYTES
}

/// The object at `address`, which another thread's arena owns. Aborts with a message if its size
/// is not that of `bytes`. The owner checks whether an object starts there.
#[inline]
pub(crate) fn others_run(ends: &EndMap, address: usize, bytes: Option<usize>) -> Run {
    let first = first_granule(address);
    let granules = length(ends, first);
    if granules == 0 || bytes.is_some_and(|bytes| granules_of(bytes) != granules) {
        sys::die(
            "free of what is no object, or with a wrong size, of",
            address,
        );
    }
    Run { first, granules }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    /// A slot filled with objects and holes of these lengths, in turn; and the objects.
    fn filled(lengths: &[(u16, u8)]) -> ([Cell<u64>; MAP_WORDS], Box<EndMap>, Vec<Run>) {
        let free = [const { Cell::new(!0) }; MAP_WORDS];
        let ends = Box::new([const { AtomicU64::new(0) }; MAP_WORDS]);
        let mut runs = Vec::new();
        let mut first = 0;
        for &(granules, hole) in lengths {
            let granules = usize::from(granules % 520) + 1;
            first += usize::from(hole % 3);
            if first + granules > MAP_WORDS * 64 {
                break;
            }
            for_each_word(first, granules, |word, mask| {
                free[word].set(free[word].get() & !mask);
            });
            set_end(&ends, first + granules - 1);
            runs.push(Run { first, granules });
            first += granules;
        }
        (free, ends, runs)
    }

    quickcheck! {
        fn starts_and_lengths_are_exact(lengths: Vec<(u16, u8)>) -> bool {
            let (free, ends, runs) = filled(&lengths);
            let mut next = runs.iter().peekable();
            (0..MAP_WORDS * 64).all(|granule| {
                match next.next_if(|run| run.first == granule) {
                    Some(run) => {
                        is_start(&free, &ends, granule) && length(&ends, granule) == run.granules
                    }
                    None => !is_start(&free, &ends, granule),
                }
            })
        }

        fn ends_are_cleared_one_by_one(lengths: Vec<(u16, u8)>) -> bool {
            let (_, ends, runs) = filled(&lengths);
            for (index, run) in runs.iter().enumerate() {
                clear_end(&ends, run.first + run.granules - 1);
                let end_from = |next: &Run| next.first + next.granules - run.first;
                let next = runs.get(index + 1).map_or(0, end_from);
                if length(&ends, run.first) != next {
                    return false;
                }
            }
            ends.iter().all(|word| word.load(Ordering::Relaxed) == 0)
        }
    }

    #[test]
    fn objects_of_whole_words_and_slots() {
        for granules in [63, 64, 65, 128, 512, MAP_WORDS * 64] {
            let ends = [const { AtomicU64::new(0) }; MAP_WORDS];
            let free = [const { Cell::new(0) }; MAP_WORDS];
            set_end(&ends, granules - 1);
            assert_eq!(length(&ends, 0), granules);
            assert!(is_start(&free, &ends, 0));
            assert!(!is_start(&free, &ends, granules / 2 + 1));
            assert_eq!(length(&ends, granules), 0);
        }
    }
}
