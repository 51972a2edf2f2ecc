//! Allocation for callers that free without a layout, such as C.
//!
//! The pointer says how the object was allocated: the chunk's metadata says what its slot is used
//! for, a slab's header how large its objects are, a co-location slot's end map where the object
//! ends, and the registry how long a mapping is.
//!
//! A C program may pass any pointer to `free`, so each function asks a table before it reads
//! through an address: [`deallocate`] that of tags (one load), where the tag is of a slab, else the
//! registry (two). So *every* free of a foreign pointer ends in one line on stderr and an abort.
//!
//! ```
//! use ccmalloc::raw;
//!
//! let node = raw::allocate(40, raw::natural_align(40), None);
//! let other = raw::allocate(40, raw::natural_align(40), core::ptr::NonNull::new(node));
//! assert!(!node.is_null() && !other.is_null());
//! // SAFETY: both live, allocated by `raw`; each is given up once.
//! unsafe {
//!     assert!(raw::usable_bytes(node) >= 40);
//!     let node = raw::reallocate(node, 4000, None);
//!     raw::deallocate(node);
//!     raw::deallocate(other);
//! }
//! ```

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};

use crate::arena::check_live;
use crate::chunk::{SlotRef, Tag, kind};
use crate::geometry::{
    BLOCK_BYTES, GRANULE_BYTES, PAGE_BYTES, SLOT_BYTES, chunk_base, slot_offset,
};
use crate::huge::HugePages;
use crate::large;
use crate::pages::others_run;
use crate::policy::Policy;
use crate::registry::{self, Owner};
use crate::remote::free_in_others_slab;
use crate::size_class::SMALL_BYTES_MAX;
pub use crate::size_class::natural_align;
use crate::sys;
use crate::thread;
#[doc(hidden)]
pub use crate::{colocate::HINTED_BYTES_MAX, sys::peek};

/// Allocates `bytes` at a multiple of `align`, near `hint` if there is one (see
/// [`cc_alloc`](crate::cc_alloc): any hint is safe).
///
/// Null when out of memory, when `align` is no power of two, and when `bytes`, rounded up to
/// `align`, exceeds `isize::MAX`. A size of 0 is allocated like 1.
#[inline(always)]
#[must_use]
pub fn allocate(bytes: usize, align: usize, hint: Option<NonNull<u8>>) -> *mut u8 {
    let Ok(layout) = Layout::from_size_align(bytes, align) else {
        return null_mut();
    };
    match hint {
        None => thread::alloc(layout),
        Some(hint) => thread::alloc_near(layout, hint.addr().get(), None),
    }
}

/// Allocates `bytes` as C's `malloc` does: at [`natural_align`], without a hint. Null when out of
/// memory.
#[inline(always)]
#[must_use]
pub fn allocate_natural(bytes: usize) -> *mut u8 {
    allocate_at_hand(bytes, thread::alloc_natural_slow)
}

/// As [`allocate_natural`] if a free object is at hand, else the result of `otherwise`.
#[doc(hidden)]
#[inline(always)]
pub fn allocate_at_hand(bytes: usize, otherwise: impl FnOnce(usize) -> *mut u8) -> *mut u8 {
    let object = thread::at_hand_natural(bytes);
    if object.is_null() {
        otherwise(bytes)
    } else {
        object
    }
}

/// As [`allocate`] near `hint`, with this policy.
#[inline]
#[must_use]
pub fn allocate_with(bytes: usize, align: usize, hint: NonNull<u8>, policy: Policy) -> *mut u8 {
    Layout::from_size_align(bytes, align).map_or(null_mut(), |layout| {
        thread::alloc_near(layout, hint.addr().get(), Some(policy))
    })
}

/// As [`allocate`] without a hint; the memory is zero. Large objects come zeroed from the OS, and
/// are not touched.
#[inline]
#[must_use]
pub fn allocate_zeroed(bytes: usize, align: usize) -> *mut u8 {
    Layout::from_size_align(bytes, align).map_or(null_mut(), thread::alloc_zeroed)
}

/// Frees an object, whatever its size, or null. Aborts with one line on stderr when it finds that
/// this is no live object of this allocator.
///
/// # Safety
/// - `object` is null, or a live object of this allocator, allocated by any of its functions, and
///   not used any more.
#[inline(always)]
pub unsafe fn deallocate(object: *mut u8) {
    let address = object.addr();
    let arena = thread::fast();
    let mut tag = Tag::FREE;
    if let Some((found, granule)) = Tag::find(address) {
        if let Some((bin, kind)) = found.fast_slab((&raw const *arena).addr()) {
            // SAFETY: of the tag of a slot of this arena.
            let bin = unsafe { arena.bin_at(bin) };
            // SAFETY: this thread's arena (no slot is NO_ARENA's), whose slab of this bin is of
            // this kind; the address is a granule's, which `granule` is a number of.
            return unsafe { arena.push_granule(bin, address, granule, kind) };
        }
        tag = found;
    }
    // SAFETY: the caller gives up null or a live object; `tag` is that of its slot, or FREE.
    unsafe { deallocate_other(object, tag) };
}

/// Frees of all but objects in slabs of the thread's own with room. `tag` is that of the object's
/// slot, or [`Tag::FREE`].
///
/// # Safety
/// - As for [`deallocate`].
#[inline(never)]
unsafe extern "C" fn deallocate_other(object: *mut u8, tag: Tag) {
    // SAFETY: the caller promises null or a live object, and gives it up.
    if unsafe { free_in_others_slab(tag, thread::existing(), object.addr()) } {
        return;
    }
    // SAFETY: the caller gives up null or a live object, which has not been freed above.
    unsafe { deallocate_slow(object, tag) };
}

/// As [`deallocate`], for a caller that also knows a size. Aborts when it is larger than the
/// object.
///
/// # Safety
/// - As for [`deallocate`].
pub unsafe fn deallocate_sized(object: *mut u8, bytes: usize) {
    // SAFETY: the caller promises null or a live object.
    if !object.is_null() && bytes > unsafe { usable_bytes(object) } {
        sys::die("free with a wrong size, of", object.addr());
    }
    // SAFETY: the caller promises null or a live object, and gives it up.
    unsafe { deallocate(object) };
}

/// Frees of null, of large objects, and of all that [`thread::dealloc_slow`] is for.
///
/// # Safety
/// - As for [`deallocate_other`].
#[inline(never)]
unsafe extern "C" fn deallocate_slow(object: *mut u8, tag: Tag) {
    let address = object.addr();
    let found = match tag {
        // SAFETY: the caller promises null or a live object, which keeps its chunk mapped.
        Tag::FREE => unsafe { look_up(address) },
        // SAFETY: a slot with a tag is in use, so that its chunk is mapped.
        _ => Some(Found::Slot(unsafe { SlotRef::containing(address) })),
    };
    match found {
        // SAFETY: a mapping of one object, which the caller gives up.
        Some(Found::Mapping(bytes)) => unsafe {
            thread::dealloc_large(thread::existing(), object, bytes);
        },
        // SAFETY: `find` gives the slot of this address.
        Some(Found::Slot(slot)) => unsafe { thread::dealloc_slow(slot, address, None) },
        None if address == 0 => {}
        None => sys::refuse("not allocated by ccmalloc, or freed before:", address),
    }
}

enum Found<'a> {
    /// A slot of some arena's chunk.
    Slot(SlotRef<'a>),
    /// A mapping of one object, of this many bytes from the object's start on.
    Mapping(usize),
}

/// The memory at `address`; `None` for null. Aborts with a message when it is not this allocator's.
///
/// # Safety
/// - As for [`look_up`].
#[inline]
unsafe fn find<'a>(address: usize) -> Option<Found<'a>> {
    // SAFETY: the caller promises that a chunk with this address stays mapped.
    let found = unsafe { look_up(address) };
    if found.is_none() && address != 0 {
        sys::die("not allocated by ccmalloc, or freed before:", address);
    }
    found
}

/// As [`find`]; `None` also when it is not this allocator's.
///
/// # Safety
/// - If `address` lies in a chunk of this allocator, that chunk stays mapped during `'a`, as it
///   does while an object that starts there is live.
#[inline]
unsafe fn look_up<'a>(address: usize) -> Option<Found<'a>> {
    match registry::owner(address) {
        // The first slot of a chunk is metadata.
        Owner::Arena(_) if address - chunk_base(address) >= SLOT_BYTES => {
            // SAFETY: a chunk, by the registry, and the caller promises that it stays mapped.
            Some(Found::Slot(unsafe { SlotRef::containing(address) }))
        }
        Owner::LargeStart { .. } | Owner::LargeHeld(_)
            if address - chunk_base(address) < PAGE_BYTES =>
        {
            let start = chunk_base(address);
            Some(Found::Mapping(
                registry::mapped_bytes(start) - (address - start),
            ))
        }
        _ => None,
    }
}

/// Start and bytes of the live object in which `address`, which may be any number, lies, if it is
/// at most 32 KiB, and of the calling thread's arena.
#[doc(hidden)]
#[must_use]
pub fn locate(address: usize) -> Option<(usize, usize)> {
    thread::existing()?.locate(address)
}

/// Asks for huge pages for an object that has just been allocated and not been used, or null, if it
/// has a mapping of its own.
#[doc(hidden)]
pub fn advise_huge(object: *mut u8) {
    let start = chunk_base(object.addr());
    if let Owner::LargeStart { pages, offset, .. } = registry::owner(start) {
        let bytes = pages * PAGE_BYTES;
        let before = object.addr() - start;
        sys::advise_huge(object.wrapping_sub(before), bytes);
        // The entries are there.
        registry::insert_large(start, bytes, offset, HugePages::All);
    }
}

/// Whether a hint at `address`, which may be any number, is near something for the calling thread.
#[doc(hidden)]
#[must_use]
pub fn is_hint_usable(address: usize) -> bool {
    thread::existing().is_some_and(|own| own.is_colocated(address))
}

/// How many bytes from `object` on may be used, at least those that were requested. 0 for null.
///
/// # Safety
/// - `object` is null, or a live object of this allocator.
#[must_use]
pub unsafe fn usable_bytes(object: *const u8) -> usize {
    let address = object.addr();
    // SAFETY: the caller promises null or a live object, which keeps its chunk mapped.
    match unsafe { find(address) } {
        // SAFETY: `find` gives the slot of this address.
        Some(Found::Slot(slot)) => unsafe { bytes_in_slot(slot, address) },
        Some(Found::Mapping(bytes)) => bytes,
        None => 0,
    }
}

/// Bytes of the object at `address`, which lies in `slot`. Aborts with a message when no object
/// starts there, or it can see that it has been freed.
///
/// # Safety
/// - `slot` contains `address`, and the object that starts there is the caller's.
unsafe fn bytes_in_slot(slot: SlotRef<'_>, address: usize) -> usize {
    let tag = slot.slab().tag();
    match tag.kind() {
        _ if tag == Tag::FREE => sys::die("not allocated, or freed before:", address),
        kind::COLOCATED => match thread::existing().filter(|own| own.tag(kind::COLOCATED) == tag) {
            // SAFETY: `slot` contains `address`, and is a co-location slot of this arena by its
            // tag.
            Some(own) => unsafe { own.colocated_bytes(slot, address) },
            None => {
                // SAFETY: a co-location slot by its tag, and the caller's object is live.
                let ends = unsafe { slot.ends() };
                others_run(ends, address, None).granules * GRANULE_BYTES
            }
        },
        kind::SPAN if slot_offset(address) == large::span_offset(slot) => large::span_room(slot),
        kind::SPAN | kind::SPAN_INSIDE => sys::die("not the start of an object:", address),
        _ => {
            check_live(thread::existing(), slot, address);
            tag.class().bytes() as usize
        }
    }
}

/// Changes the size of an object to `new_bytes`: in place if possible, else by moving it near
/// `hint`, or, without one, near where it was if a hint placed it. The result is aligned as C's
/// `malloc` does ([`natural_align`]). Keeps the contents up to the smaller size. Null as `object`
/// allocates.
///
/// Null when out of memory, or when `new_bytes` exceeds `isize::MAX`; the object is then as it was.
/// A size of 0 is like 1.
///
/// # Safety
/// - `object` is null, or a live object of this allocator, used by the caller alone.
/// - Unless null is returned, the caller uses the result instead of `object`.
#[must_use]
pub unsafe fn reallocate(object: *mut u8, new_bytes: usize, hint: Option<NonNull<u8>>) -> *mut u8 {
    let address = object.addr();
    let align = natural_align(new_bytes);
    // A small object that lies at an odd multiple of 8 cannot grow where it lies.
    let aligned = address.is_multiple_of(align);
    // SAFETY: the caller promises null or a live object, which keeps its chunk mapped.
    let (old_bytes, near) = match unsafe { find(address) } {
        None => return allocate(new_bytes, align, hint),
        Some(Found::Slot(slot)) => {
            // SAFETY: `find` gives the slot of this address.
            let old_bytes = unsafe { bytes_in_slot(slot, address) };
            let tag = slot.slab().tag();
            match tag.kind() {
                kind::COLOCATED => {
                    let own = thread::existing().filter(|own| own.tag(kind::COLOCATED) == tag);
                    if let Some(own) = own
                        && aligned
                        // SAFETY: `find` gives the slot of this address, a co-location slot of this
                        // arena by its tag.
                        && unsafe { own.resize_colocated(slot, address, None, new_bytes) }
                    {
                        return object;
                    }
                    (old_bytes, hint.or(own.and(NonNull::new(object))))
                }
                // In a slab or a span, all of the room is the object's. Less than half of it is
                // worth a copy, unless it is a block or less.
                _ if aligned
                    && new_bytes <= old_bytes
                    && (new_bytes >= old_bytes / 2 || old_bytes <= BLOCK_BYTES) =>
                {
                    return object;
                }
                _ => (old_bytes, hint),
            }
        }
        Some(Found::Mapping(bytes)) => {
            if new_bytes > SMALL_BYTES_MAX
                && let (Ok(layout), Ok(new_layout)) = (
                    Layout::from_size_align(bytes, 1),
                    Layout::from_size_align(new_bytes, align),
                )
            {
                // SAFETY: a live object in a mapping of its own, the caller's alone, and aligned to
                // more than is asked.
                let resized =
                    unsafe { large::resize(thread::existing(), object, layout, new_layout) };
                if !resized.is_null() {
                    return resized;
                }
            }
            (bytes, hint)
        }
    };
    let moved = allocate(new_bytes, align, near);
    if !moved.is_null() {
        // SAFETY: both are live, have at least this many bytes, and are distinct objects.
        unsafe { core::ptr::copy_nonoverlapping(object, moved, old_bytes.min(new_bytes)) };
        // SAFETY: the caller gives the old object up.
        unsafe { deallocate(object) };
    }
    moved
}
