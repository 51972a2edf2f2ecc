//! Where co-located objects end: what lets an object be freed without its size, and misuse be found out.
//!
//! The free map of a co-location slot says which granules are taken, not which belong together. A second map, one bit a granule, has a set
//! bit at the *last* granule of each object:
//!
//! ```text
//! granule     0 1 2 3 4 5 6 7 8 9
//! object      A A A B . C C C C .         . = free
//! free map    0 0 0 0 1 0 0 0 0 1
//! end map     0 0 1 1 0 0 0 0 1 0
//! ```
//!
//! Invariants: a free granule's end bit is 0, and each run of taken granules ends in an end. So granule g is the first of an object
//! exactly if it is taken, and the granule before it is free, an end, or in another slot; and the object then reaches to the first end at or
//! after g. A double free, a pointer into an object and a wrong size are thereby told from a proper free, always: not only while the
//! memory has not been handed out again, as far as the new object does not start at the same place and have the same size.
//!
//! The map lies outside of the chunk ([`ChunkDesc::ends`](crate::chunk::ChunkDesc)), a cache line a page, and only the owner writes it.
//! It is made of atomics because a thread that frees another's object reads the length of that object there, between the bits of neighbours
//! that the owner may be changing. Relaxed accesses are enough: the bits of a live object do not change, and whoever has got hold of the
//! object has also got the writes that came before it was handed out.

use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::chunk::{SlotRef, for_each_word};
use crate::geometry::{BLOCK_GRANULES, GRANULE_BYTES, MAP_WORDS, slot_offset};
use crate::sys;

/// The end map of a slot.
pub(crate) type EndMap = [AtomicU64; MAP_WORDS];

/// The granules of one object: the first one's number in its slot, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: usize,
    pub(crate) granules: usize,
}

/// How many granules an object of `bytes` takes.
#[inline]
pub(crate) const fn granules_of(bytes: usize) -> usize {
    let granules = bytes.div_ceil(GRANULE_BYTES);
    if granules == 0 { 1 } else { granules }
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

/// The object at `address` in a slot of the calling thread's heap: its bits in its word of the map, which is `free` and to which the ends are `ends`.
///
/// `None`, and nothing is said, when it has not `bytes` (whatever its size without), when it has more granules than a block, reaches into the next word or lies
/// at the start of a word: these are [`own_run`]'s; and when no object starts there.
#[inline(always)]
pub(crate) fn own_bits(free: u64, ends: u64, address: usize, bytes: Option<usize>) -> Option<u64> {
    let granule = address / GRANULE_BYTES % 64;
    // Bit g says whether the granule before is free or an end, and this one taken.
    let starts = (free | ends) << 1 & !free;
    let rest = ends >> granule;
    let granules = rest.trailing_zeros() as usize + 1;
    let is_one = starts >> granule & 1 == 1
        && address.is_multiple_of(GRANULE_BYTES)
        && granules <= BLOCK_GRANULES
        && granule + granules <= 64
        && bytes.is_none_or(|bytes| granules_of(bytes) == granules);
    is_one.then(|| ((1 << granules) - 1) << granule)
}

/// How many granules there are from `first` to the first end at or after it; 0 when no end follows.
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
    // Bit g says whether an object may start at granule g: whether the granule before is free or an end.
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

/// The first granule of what is to be freed at `address`. Aborts with a message when no object can start there.
#[inline]
fn first_granule(address: usize) -> usize {
    if !address.is_multiple_of(GRANULE_BYTES) {
        sys::die("free of a pointer that is no object's:", address);
    }
    slot_offset(address) / GRANULE_BYTES
}

/// The object at `address`, which another thread's heap owns. Aborts with a message when its size is not that of `bytes`.
///
/// Whether an object starts there is for the owner to check: the neighbours are the owner's.
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

/// The object at `address`, in a slot of the calling thread's heap. Aborts with a message when there is none, or not of `bytes`.
#[inline(always)]
pub(crate) fn own_run(
    slot: SlotRef<'_>,
    ends: &EndMap,
    address: usize,
    bytes: Option<usize>,
) -> Run {
    let first = first_granule(address);
    if !is_start(slot.map(), ends, first) {
        sys::die(
            "double free, or free of a pointer that is no object's:",
            address,
        );
    }
    let granules = length(ends, first);
    if granules == 0 || bytes.is_some_and(|bytes| granules_of(bytes) != granules) {
        sys::die("free with a wrong size, of", address);
    }
    Run { first, granules }
}

/// Takes what other threads have freed in a slot of the calling thread's heap into its free map: each bit of the remote map is the first
/// granule of an object. Returns whether there was anything. Aborts with a message when there is no such object.
pub(crate) fn absorb(slot: SlotRef<'_>, ends: &EndMap) -> bool {
    let mut any = false;
    for (index, remote) in slot.remote().iter().enumerate() {
        let mut freed = remote.take();
        if freed == 0 {
            continue;
        }
        while freed != 0 {
            let first = index * 64 + freed.trailing_zeros() as usize;
            freed &= freed - 1;
            let address = slot.base().addr() + first * GRANULE_BYTES;
            let run = own_run(slot, ends, address, None);
            clear_end(ends, first + run.granules - 1);
            set_free(slot, run);
        }
        any = true;
    }
    any
}

/// Marks granules as free. For the owner of the slot.
#[inline]
pub(crate) fn set_free(slot: SlotRef<'_>, run: Run) {
    for_each_word(run.first, run.granules, |word, mask| {
        if let Some(word) = slot.map().get(word) {
            word.set(word.get() | mask);
        }
    });
}

/// Checks the invariants of the module's documentation in one slot. For tests.
pub(crate) fn check(slot: SlotRef<'_>, ends: &EndMap) -> Result<(), &'static str> {
    let free = slot.map();
    for (index, (free_word, end_word)) in free.iter().zip(ends).enumerate() {
        let (free_bits, end_bits) = (free_word.get(), end_word.load(Ordering::Relaxed));
        if free_bits & end_bits != 0 {
            return Err("an object ends in a free granule");
        }
        // Behind the slot, no object goes on.
        let next = free.get(index + 1).map_or(1, Cell::get);
        let free_after = free_bits >> 1 | next << 63;
        if !(free_bits | end_bits) & free_after != 0 {
            return Err("granules are taken by no object");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    /// How many granules of a slot are looked at: few under Miri, where each takes long.
    const LOOKED_AT: usize = if cfg!(miri) { 640 } else { MAP_WORDS * 64 };

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
            (0..LOOKED_AT).all(|granule| {
                match next.next_if(|run| run.first == granule) {
                    Some(run) => is_start(&free, &ends, granule) && length(&ends, granule) == run.granules,
                    None => !is_start(&free, &ends, granule),
                }
            })
        }

        fn ends_are_cleared_one_by_one(lengths: Vec<(u16, u8)>) -> bool {
            let (_, ends, runs) = filled(&lengths);
            for (index, run) in runs.iter().enumerate() {
                clear_end(&ends, run.first + run.granules - 1);
                let next = runs.get(index + 1).map_or(0, |next| next.first + next.granules - run.first);
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
