//! From any address to the chunk that owns it, without reading through the address.
//!
//! A two-level table over the bits of a user-space address (47 on x86-64, 48 elsewhere): 2^13 or
//! 2^14 roots of 2^13 entries, an entry for each 2 MiB. The root is static and zero; leaves of 64
//! KiB, for 16 GiB each, are mapped when needed and never unmapped, so readers need no lock and no
//! reclamation.
//!
//! The thread that maps or unmaps a chunk writes its entry. Another thread may see the old or the
//! new entry. Both are harmless: a hint reads a chunk's memory only if the entry is the reader's
//! *own* arena, which only the owner changes; for a free, the caller promises that the object is
//! live, so the chunk is mapped.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::arena::Arena;
use crate::geometry::{BLOCK_BYTES, CHUNK_BYTES, PAGE_BLOCKS, PAGE_BYTES, chunk_base};
use crate::huge::HugePages;
use crate::mapping::Mapping;
use crate::sys;

const LEAF_BITS: u32 = 13;
const LEAF_ENTRIES: usize = 1 << LEAF_BITS;
/// User-space addresses have 47 bits on x86-64, and 48 on other 64-bit machines.
const ROOT_ENTRIES: usize = if cfg!(target_arch = "x86_64") {
    1 << 13
} else {
    1 << 14
};

/// The low bits of an entry: 0 for an arena's address, else one of these.
const KIND: usize = 3;
/// The first chunk of a large mapping. The next [`OFFSET_BITS`] bits are the object's offset in
/// blocks, the next [`HUGE_BITS`] its [`HugePages`], the rest is the mapping's length in pages.
const LARGE_START: usize = 1;
/// The first chunk of a large mapping of a first-class heap. The rest is its record's address.
const LARGE_HELD: usize = 2;
/// A later chunk of either. The rest is its distance from the first, in chunks.
const LARGE_INSIDE: usize = 3;
/// Objects start in the first page of their mappings.
const OFFSET_BITS: u32 = PAGE_BLOCKS.ilog2();
const HUGE_BITS: u32 = 2;

struct Leaf([AtomicUsize; LEAF_ENTRIES]);

static ROOT: [AtomicPtr<Leaf>; ROOT_ENTRIES] = [const { AtomicPtr::new(null_mut()) }; ROOT_ENTRIES];

/// What owns an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Not this allocator.
    Foreign,
    /// A chunk of this arena.
    Arena(*const Arena),
    /// The first chunk of a mapping of one object, which starts at `offset`, in bytes.
    LargeStart {
        pages: usize,
        offset: usize,
        huge: HugePages,
    },
    /// The first chunk of such a mapping that a first-class heap holds.
    LargeHeld(*const Mapping),
    /// A later chunk of either, which starts `distance` chunks before this one.
    LargeInside { distance: usize },
}

/// The entry of `address`, if its leaf exists.
#[inline]
fn entry(address: usize) -> Option<&'static AtomicUsize> {
    let chunk = address / CHUNK_BYTES;
    let leaf = ROOT.get(chunk >> LEAF_BITS)?.load(Ordering::Acquire);
    // SAFETY: a leaf is null or was published by `entry_or_map` after it was mapped and zeroed; it
    // is never unmapped, and is accessed through shared references to atomics only.
    let leaf = unsafe { leaf.as_ref() }?;
    leaf.0.get(chunk & (LEAF_ENTRIES - 1))
}

/// The entry of `address`; maps its leaf if it must. `None` beyond the table, or when the OS
/// refuses.
fn entry_or_map(address: usize) -> Option<&'static AtomicUsize> {
    if let Some(entry) = entry(address) {
        return Some(entry);
    }
    let root = ROOT.get((address / CHUNK_BYTES) >> LEAF_BITS)?;
    let fresh = sys::map(size_of::<Leaf>())?;
    let leaf = fresh.as_ptr().cast();
    let set = root.compare_exchange(null_mut(), leaf, Ordering::AcqRel, Ordering::Acquire);
    if set.is_err() {
        // SAFETY: mapped above; another thread's leaf was published instead of it.
        unsafe { sys::unmap(fresh, size_of::<Leaf>()) };
    }
    entry(address)
}

/// Who owns the chunk that contains `address`, which may be any number. Two dependent loads.
#[inline]
pub(crate) fn owner(address: usize) -> Owner {
    let Some(entry) = entry(address) else {
        return Owner::Foreign;
    };
    // Acquire pairs with the release in `set`: a reader that finds an arena also sees it
    // initialised.
    let value = entry.load(Ordering::Acquire);
    match value & KIND {
        _ if value == 0 => Owner::Foreign,
        LARGE_START => Owner::LargeStart {
            pages: value >> (2 + OFFSET_BITS + HUGE_BITS),
            offset: (value >> 2) % PAGE_BLOCKS * BLOCK_BYTES,
            huge: HugePages::from_bits(value >> (2 + OFFSET_BITS)),
        },
        LARGE_INSIDE => Owner::LargeInside {
            distance: value >> 2,
        },
        LARGE_HELD => Owner::LargeHeld(core::ptr::with_exposed_provenance(value & !KIND)),
        _ => Owner::Arena(core::ptr::with_exposed_provenance(value)),
    }
}

/// Whether `address`, which may be any number, lies in a chunk of `arena`. Two dependent loads.
#[inline]
pub(crate) fn is_chunk_of(address: usize, arena: *const Arena) -> bool {
    // The entry is the arena's address. Nothing is read through it, so relaxed is enough.
    entry(address).is_some_and(|entry| entry.load(Ordering::Relaxed) == arena.addr())
}

/// Whether `address`, which may be any number, lies in a chunk or in a large mapping.
pub(crate) fn contains(address: usize) -> bool {
    let start = address & !(CHUNK_BYTES - 1);
    match owner(address) {
        Owner::Foreign => false,
        Owner::Arena(_) => true,
        Owner::LargeStart { .. } | Owner::LargeHeld(_) => address - start < mapped_bytes(start),
        // The first chunk's entry has the length, unless another thread has just freed the mapping.
        Owner::LargeInside { distance } => {
            let Some(start) = start.checked_sub(distance * CHUNK_BYTES) else {
                return false;
            };
            address - start < mapped_bytes(start)
        }
    }
}

/// Whether `address`, which may be any number, lies in a chunk or a large mapping of `arena`.
pub(crate) fn is_in_heap(address: usize, arena: &Arena) -> bool {
    let holder = match owner(address) {
        Owner::Arena(owner) => return core::ptr::eq(owner, arena),
        Owner::LargeInside { distance } => chunk_base(address).checked_sub(distance * CHUNK_BYTES),
        Owner::LargeHeld(_) => Some(chunk_base(address)),
        Owner::LargeStart { .. } | Owner::Foreign => None,
    };
    holder.is_some_and(|start| match owner(start) {
        Owner::LargeHeld(mapping) => {
            // SAFETY: an entry holds the exposed address of a record. Records are never unmapped,
            // and are shared through cells and atomics only.
            unsafe { &*mapping }.is_in(&arena.inventory) && contains(address)
        }
        _ => false,
    })
}

/// Length of the large mapping that starts at `start`; 0 when none does.
pub(crate) fn mapped_bytes(start: usize) -> usize {
    match owner(start) {
        Owner::LargeStart { pages, .. } => pages * PAGE_BYTES,
        // SAFETY: an entry holds the address of a record, exposed when it was entered; records are
        // metadata, which is never unmapped, and are shared through cells and atomics only.
        Owner::LargeHeld(mapping) => unsafe { &*mapping }.bytes(),
        Owner::Foreign | Owner::Arena(_) | Owner::LargeInside { .. } => 0,
    }
}

/// Records `arena` as the owner of the chunk at `chunk`. `false` when the table cannot grow.
pub(crate) fn insert_chunk(chunk: usize, arena: *const Arena) -> bool {
    set(chunk, arena.expose_provenance())
}

/// Records a mapping of `bytes` (whole pages) at `start` (a chunk's), whose object starts at
/// `offset` (whole blocks, less than a page). `false`, and nothing recorded, if the table cannot
/// grow.
pub(crate) fn insert_large(start: usize, bytes: usize, offset: usize, huge: HugePages) -> bool {
    let pages = bytes / PAGE_BYTES;
    let rest = pages << HUGE_BITS | huge as usize;
    let first = rest << (2 + OFFSET_BITS) | (offset / BLOCK_BYTES) << 2 | LARGE_START;
    insert_mapping(start, bytes, first)
}

/// As [`insert_large`], for a mapping that a first-class heap holds.
pub(crate) fn insert_held(start: usize, bytes: usize, record: &'static Mapping) -> bool {
    let record = (&raw const *record).expose_provenance();
    insert_mapping(start, bytes, record | LARGE_HELD)
}

/// Records `first` for the first chunk of a mapping, and their distance from it for the others.
fn insert_mapping(start: usize, bytes: usize, first: usize) -> bool {
    for (distance, chunk) in (start..start + bytes).step_by(CHUNK_BYTES).enumerate() {
        let value = if distance == 0 {
            first
        } else {
            distance << 2 | LARGE_INSIDE
        };
        if !set(chunk, value) {
            remove(start, chunk - start);
            return false;
        }
    }
    true
}

/// Makes sure that a mapping of `bytes` at `start` can be recorded later. `false` if the table
/// cannot grow.
pub(crate) fn prepare(start: usize, bytes: usize) -> bool {
    (start..start + bytes)
        .step_by(CHUNK_BYTES)
        .all(|chunk| entry_or_map(chunk).is_some())
}

/// Forgets the chunks of `[start, start + bytes)`. Called before they are unmapped: afterwards,
/// another thread may record a new mapping there.
pub(crate) fn remove(start: usize, bytes: usize) {
    for chunk in (start..start + bytes).step_by(CHUNK_BYTES) {
        if let Some(entry) = entry(chunk) {
            entry.store(0, Ordering::Release);
        }
    }
}

/// As [`remove`], of a large mapping; `false` if another thread has just done so.
pub(crate) fn take_large(start: usize, bytes: usize) -> bool {
    let taken = entry(start).is_some_and(|entry| entry.swap(0, Ordering::AcqRel) != 0);
    if taken {
        remove(start, bytes);
    }
    taken
}

fn set(chunk: usize, value: usize) -> bool {
    let Some(entry) = entry_or_map(chunk) else {
        return false;
    };
    entry.store(value, Ordering::Release);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_addresses_have_no_owner() {
        let local = 0u8;
        let local = (&raw const local).addr();
        for address in [
            0,
            1,
            8,
            usize::MAX,
            usize::MAX / 2,
            1 << 47,
            (1 << 47) - 1,
            local,
        ] {
            assert_eq!(owner(address), Owner::Foreign, "{address:#x}");
        }
    }

    #[test]
    fn large_mappings_are_found_from_their_first_to_their_last_chunk() {
        // Addresses far from any mapping of this process: the table never reads through them.
        let start = (1 << 46) + 5 * CHUNK_BYTES;
        let bytes = 2 * CHUNK_BYTES + 4096;
        assert!(insert_large(start, bytes, 4032, HugePages::Front));
        let (pages, offset, huge) = (bytes / 4096, 4032, HugePages::Front);
        let first = Owner::LargeStart {
            pages,
            offset,
            huge,
        };
        assert_eq!(owner(start + 123), first);
        for distance in [1, 2] {
            let inside = start + distance * CHUNK_BYTES + 4095;
            assert_eq!(owner(inside), Owner::LargeInside { distance });
        }
        assert!(contains(start) && contains(start + bytes - 1));
        assert!(!contains(start - 1) && !contains(start + bytes));
        assert_eq!(owner(start + 3 * CHUNK_BYTES), Owner::Foreign);
        remove(start, bytes);
        assert_eq!(owner(start), Owner::Foreign);
        assert_eq!(owner(start + 2 * CHUNK_BYTES), Owner::Foreign);
        assert!(
            !insert_large(1 << 50, 4096, 0, HugePages::No),
            "beyond the table"
        );
        assert!(!prepare(1 << 50, 4096), "beyond the table");
    }
}
