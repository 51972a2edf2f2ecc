//! Objects above 16 KiB: spans of whole slots up to 15 of them, mappings of their own beyond.
//!
//! Such objects tend to be read from their start, and if all started at a page or chunk boundary their first blocks would
//! compete for the same few sets of the first-level cache. So each starts at another block of its first page, as far as the
//! room that rounding leaves anyway allows.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::chunk::{SlotRef, kind};
use crate::geometry::{
    BLOCK_BYTES, CHUNK_BYTES, PAGE_BYTES, SLOT_BYTES, chunk_base, round_up, slot_offset,
};
use crate::heap::Own;
use crate::registry::{self, Owner};
use crate::sys;

/// The longest span; half a chunk, so that two fit.
const SPAN_SLOTS_MAX: usize = 15;
/// Mappings from this many bytes on ask for huge pages.
const HUGE_FROM_BYTES: usize = 4 * CHUNK_BYTES;

/// Bytes of mappings of single objects.
pub(crate) static LARGE_BYTES_MAPPED: AtomicUsize = AtomicUsize::new(0);

/// The start of the next large object in its first page, given `spare` bytes of room and an alignment.
fn next_colour(own: Own<'_>, spare: usize, align: usize) -> usize {
    let turn = own.colour.get();
    own.colour.set(turn.wrapping_add(1));
    let step = align.max(BLOCK_BYTES);
    let places = spare.min(PAGE_BYTES - BLOCK_BYTES) / step + 1;
    turn % places * step
}

/// Allocates `bytes` above the largest class, or at an alignment above it. Null when the OS refuses.
#[cold]
#[inline(never)]
pub(crate) fn alloc(own: Own<'_>, bytes: usize, align: usize) -> *mut u8 {
    let bytes = bytes.max(1);
    if align <= SLOT_BYTES && bytes <= SPAN_SLOTS_MAX * SLOT_BYTES {
        alloc_span(own, bytes, align)
    } else {
        alloc_mapping(own, bytes, align)
    }
}

fn alloc_span(own: Own<'_>, bytes: usize, align: usize) -> *mut u8 {
    let slots = bytes.div_ceil(SLOT_BYTES).max(1);
    if !own.dirty.0.is_empty() {
        // No size class runs dry when only spans come and go between threads.
        own.collect_remote();
    }
    let Some(first) = own.take_span(slots) else {
        return null_mut();
    };
    let offset = next_colour(own, slots * SLOT_BYTES - bytes, align);
    let slab = first.slab();
    slab.objects.set(u32::try_from(slots).unwrap_or(0));
    slab.object_bytes.set(u32::try_from(offset).unwrap_or(0));
    own.tag_span(first, slots);
    first.base().wrapping_add(offset)
}

fn alloc_mapping(own: Own<'_>, bytes: usize, align: usize) -> *mut u8 {
    // The room that rounding up to a page leaves, and for really large objects one page more.
    let Some(rounded) = round_up(bytes, PAGE_BYTES) else {
        return null_mut();
    };
    let mapped = if align < PAGE_BYTES && bytes >= CHUNK_BYTES {
        rounded.saturating_add(PAGE_BYTES)
    } else {
        rounded
    };
    if mapped > isize::MAX as usize {
        return null_mut();
    }
    let offset = if align < PAGE_BYTES {
        next_colour(own, mapped - bytes, align)
    } else {
        0
    };
    let Some(start) = sys::map_aligned(mapped, align.max(CHUNK_BYTES)) else {
        return null_mut();
    };
    if !registry::insert_large(start.addr().get(), mapped, offset) {
        // SAFETY: mapped above, and in no use.
        unsafe { sys::unmap(start, mapped) };
        return null_mut();
    }
    start.as_ptr().expose_provenance();
    LARGE_BYTES_MAPPED.fetch_add(mapped, Ordering::Relaxed);
    if mapped >= HUGE_FROM_BYTES {
        sys::advise_huge_mapping(start.as_ptr(), mapped);
    }
    start.as_ptr().wrapping_add(offset)
}

/// What a pointer to a large object leads to.
pub(crate) enum Place<'a> {
    /// A span, from this slot on.
    Span(SlotRef<'a>),
    /// A mapping of its own, of this many bytes; the object starts where [`find`] was asked about.
    Mapping(NonNull<u8>, usize),
}

/// Finds what lies at `address`, which is claimed to be a live object of more than the largest class. Aborts with a message
/// when it can see that it is not.
///
/// # Safety
/// - If `address` lies in a chunk of this allocator, that chunk stays mapped during `'a`.
pub(crate) unsafe fn find<'a>(address: usize) -> Place<'a> {
    let start = chunk_base(address);
    match registry::owner(address) {
        Owner::Heap(_) => {
            // SAFETY: the registry says that it is a chunk; the caller, that it stays.
            let slot = unsafe { SlotRef::containing(address) };
            let tag = slot.slab().tag.load(Ordering::Relaxed);
            if tag & kind::MASK != kind::SPAN
                || slot_offset(address) != slot.slab().object_bytes.get() as usize
            {
                sys::die("size or address does not fit the object at", address);
            }
            Place::Span(slot)
        }
        Owner::LargeStart { pages, offset } if address - start == offset => {
            match NonNull::new(core::ptr::with_exposed_provenance_mut(start)) {
                Some(base) => Place::Mapping(base, pages * PAGE_BYTES),
                None => sys::die("not a large object:", address),
            }
        }
        Owner::LargeStart { .. } | Owner::LargeInside { .. } | Owner::Nobody => {
            sys::die("not a large object, or freed before:", address)
        }
    }
}

/// Aborts with a message when the object at `address`, which lies in `place`, cannot have `bytes` bytes.
pub(crate) fn expect_bytes(place: &Place<'_>, address: usize, bytes: usize) {
    let bytes = bytes.max(1);
    let fits = match place {
        Place::Span(slot) => {
            let slots = slot.slab().objects.get() as usize;
            let room = slots * SLOT_BYTES - slot_offset(address);
            // As `alloc_span` took them, or `resize` left them.
            bytes <= room && (bytes.div_ceil(SLOT_BYTES) == slots || bytes > room / 2)
        }
        Place::Mapping(base, mapped) => {
            let end = (address - base.addr().get()).saturating_add(bytes);
            // `alloc_mapping` leaves room for rounding and for one page more, `resize` for rounding.
            end <= *mapped && mapped - end < 2 * PAGE_BYTES
        }
    };
    if !fits {
        sys::die("free with a wrong size, of", address);
    }
}

/// Unmaps the mapping of one object.
///
/// # Safety
/// - `base` and `bytes` come from [`find`], and the object is not used any more.
pub(crate) unsafe fn free_mapping(base: NonNull<u8>, bytes: usize) {
    registry::remove(base.addr().get(), bytes);
    LARGE_BYTES_MAPPED.fetch_sub(bytes, Ordering::Relaxed);
    // SAFETY: a whole mapping by the registry's word, freed by its owner.
    unsafe { sys::unmap(base, bytes) };
}

/// Tries to give the object at `object` a new size where it lies, or by moving its pages. Null when that cannot be; the object
/// is then as it was.
///
/// # Safety
/// - `object` is a live object of this allocator above the largest class, aligned to `align`, used by the caller alone.
pub(crate) unsafe fn resize(object: *mut u8, align: usize, new_bytes: usize) -> *mut u8 {
    // SAFETY: the object is live, so its chunk stays mapped.
    match unsafe { find(object.addr()) } {
        Place::Span(slot) => {
            let slots = slot.slab().objects.get() as usize;
            let room = slots * SLOT_BYTES - slot.slab().object_bytes.get() as usize;
            // Shrinking by more than half is worth a copy.
            if new_bytes <= room && new_bytes > room / 2 {
                object
            } else {
                null_mut()
            }
        }
        Place::Mapping(base, old_mapped) => {
            let offset = object.addr() - base.addr().get();
            let Some(mapped) = new_bytes
                .checked_add(offset)
                .and_then(|bytes| round_up(bytes, PAGE_BYTES))
            else {
                return null_mut();
            };
            if mapped < CHUNK_BYTES / 2 || mapped > isize::MAX as usize || align > CHUNK_BYTES {
                return null_mut();
            }
            if mapped <= old_mapped {
                shrink_mapping(base, old_mapped, mapped, offset);
                return object;
            }
            // SAFETY: a whole mapping by the registry's word, used by the caller alone.
            unsafe { grow_mapping(base, old_mapped, mapped, offset) }
                .map_or(null_mut(), |moved| moved.as_ptr().wrapping_add(offset))
        }
    }
}

/// Gives the end of a mapping, whose object starts at `offset`, back to the OS.
fn shrink_mapping(base: NonNull<u8>, old_mapped: usize, mapped: usize, offset: usize) {
    let start = base.addr().get();
    let Some(kept) = round_up(mapped, CHUNK_BYTES) else {
        return;
    };
    if kept < old_mapped {
        registry::remove(start + kept, old_mapped - kept);
    }
    // The leaves exist already, so this cannot fail.
    registry::insert_large(start, mapped, offset);
    LARGE_BYTES_MAPPED.fetch_sub(old_mapped - mapped, Ordering::Relaxed);
    if mapped < old_mapped {
        // SAFETY: the end of a mapping whose object does not reach there any more.
        unsafe { sys::unmap(base.add(mapped), old_mapped - mapped) };
    }
}

/// Makes a mapping, whose object starts at `offset`, longer, in place or by moving its pages.
///
/// # Safety
/// - `[base, base + old_mapped)` is a registered mapping of one object, used by the caller alone, and `old_mapped < mapped`.
unsafe fn grow_mapping(
    base: NonNull<u8>,
    old_mapped: usize,
    mapped: usize,
    offset: usize,
) -> Option<NonNull<u8>> {
    let start = base.addr().get();
    // SAFETY: as the caller says.
    let grown = match unsafe { sys::grow_in_place(base, old_mapped, mapped) } {
        sys::Growth::Grown => {
            if !registry::insert_large(start, mapped, offset) {
                // The part that is registered is the old one; what was registered beyond it is removed again.
                registry::insert_large(start, old_mapped, offset);
                // SAFETY: the part that has just been added, in no use.
                unsafe { sys::unmap(base.add(old_mapped), mapped - old_mapped) };
                return None;
            }
            base
        }
        sys::Growth::NoRoom => {
            let target = sys::map_aligned(mapped, CHUNK_BYTES)?;
            let address = target.as_ptr().expose_provenance();
            if !registry::prepare(address, mapped) {
                // SAFETY: mapped above, and in no use.
                unsafe { sys::unmap(target, mapped) };
                return None;
            }
            // The old entries go before the kernel frees the addresses: another thread may map them at once.
            registry::remove(start, old_mapped);
            // SAFETY: the source is the caller's, and in one piece, as the try in place has shown; the target was mapped above.
            if !unsafe { sys::remap(base, old_mapped, target, mapped) } {
                // The table has had these entries, so this cannot fail.
                registry::insert_large(start, old_mapped, offset);
                return None;
            }
            // Prepared above, so this cannot fail.
            registry::insert_large(address, mapped, offset);
            target
        }
        sys::Growth::Impossible => return None,
    };
    LARGE_BYTES_MAPPED.fetch_add(mapped - old_mapped, Ordering::Relaxed);
    if mapped >= HUGE_FROM_BYTES {
        sys::advise_huge_mapping(grown.as_ptr(), mapped);
    }
    Some(grown)
}

/// Whether a fresh object from [`alloc`] is zero because its memory has never been used.
pub(crate) fn is_fresh(object: *mut u8) -> bool {
    match registry::owner(object.addr()) {
        Owner::LargeStart { .. } => true,
        Owner::Heap(_) => {
            // SAFETY: the caller has just allocated the object, so its chunk is mapped.
            let slot = unsafe { SlotRef::containing(object.addr()) };
            // SAFETY: set when the slots were taken; descriptors live for ever.
            unsafe { slot.slab().desc.get().as_ref() }.is_some_and(|desc| {
                let slots = slot.slab().objects.get() as usize;
                (slot.slot()..slot.slot() + slots)
                    .all(|slot| desc.used_slots.get() >> slot & 1 == 0)
            })
        }
        Owner::LargeInside { .. } | Owner::Nobody => false,
    }
}

impl<'a> Own<'a> {
    /// Tags the `slots` slots from `first` on as one span.
    fn tag_span(self, first: SlotRef<'a>, slots: usize) {
        first
            .slab()
            .tag
            .store(self.tag(kind::SPAN), Ordering::Relaxed);
        for inside in 1..slots {
            first
                .offset(inside)
                .slab()
                .tag
                .store(self.tag(kind::SPAN_INSIDE), Ordering::Relaxed);
        }
    }

    /// Frees the span that starts at `first`.
    pub(crate) fn free_span(self, first: SlotRef<'a>) {
        self.free_slots(first, first.slab().objects.get() as usize);
    }
}
