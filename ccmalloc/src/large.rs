//! Objects above 32 KiB: spans of up to 15 slots, and mappings of one object.
//!
//! Successive objects start at different blocks of their first pages, within the room that rounding
//! leaves. Otherwise their first blocks would compete for a few sets of the first-level cache.

mod held;

use core::alloc::Layout;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering;

use crate::arena::Own;
use crate::chunk::{SlotRef, kind};
use crate::extents::{self, Chunks, LARGE_BYTES_MAPPED};
use crate::geometry::{
    BLOCK_BYTES, CHUNK_BYTES, PAGE_BYTES, SLOT_BYTES, chunk_base, round_up, slot_offset,
};
use crate::huge::{HugePages, clear_tail};
use crate::mapping::Mapping;
use crate::registry::{self, Owner};
use crate::{sweep, sys};

/// The longest span; half a chunk, so that two fit.
const SPAN_SLOTS_MAX: usize = 15;
/// Up to this many bytes, kept chunks are overwritten with zeros: under a hypervisor, fresh memory
/// can cost ten times as much.
const CLEARED_BYTES_MAX: usize = 16 * CHUNK_BYTES;
/// Mappings from this many bytes on may be a chunk longer to start elsewhere than at a page.
const COLOURED_FROM_BYTES: usize = 8 * CHUNK_BYTES;

/// The start of the next large object in its first page, given `spare` bytes of room and an
/// alignment.
fn next_colour(own: Own<'_>, spare: usize, align: usize) -> usize {
    let turn = own.colour.get();
    own.colour.set(turn.wrapping_add(1));
    let step = align.max(BLOCK_BYTES);
    let places = spare.min(PAGE_BYTES - BLOCK_BYTES) / step + 1;
    turn % places * step
}

/// The contents of a fresh object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    Any,
    Zero,
}

/// Allocates `bytes` above the largest class, or at an alignment above it. Null when the OS
/// refuses.
#[cold]
#[inline(never)]
pub(crate) fn alloc(own: Own<'_>, bytes: usize, align: usize, contents: Contents) -> *mut u8 {
    let bytes = bytes.max(1);
    if is_span(bytes, align) {
        alloc_span(own, bytes, align, contents)
    } else {
        alloc_mapping(own, bytes, align, contents)
    }
}

/// Whether a large object of this size and alignment is a span; else it has a mapping of its own.
pub(crate) fn is_span(bytes: usize, align: usize) -> bool {
    align <= SLOT_BYTES && bytes <= SPAN_SLOTS_MAX * SLOT_BYTES
}

fn alloc_span(own: Own<'_>, bytes: usize, align: usize, contents: Contents) -> *mut u8 {
    let slots = bytes.div_ceil(SLOT_BYTES).max(1);
    if !own.dirty.0.is_empty() {
        // If only spans pass between threads, `refill` is not called.
        own.collect_remote();
    }
    let Some((first, used)) = own.take_span(slots) else {
        return null_mut();
    };
    let offset = next_colour(own, slots * SLOT_BYTES - bytes, align);
    let slab = first.slab();
    // At most 15, and less than a page.
    slab.span_slots.set(u8::try_from(slots).unwrap_or(0));
    slab.span_offset.set(u16::try_from(offset).unwrap_or(0));
    slab.set_tag(own.tag(kind::SPAN));
    for inside in 1..slots {
        let slab = first.offset(inside).slab();
        slab.set_tag(own.tag(kind::SPAN_INSIDE));
    }
    let object = first.base().wrapping_add(offset);
    if contents == Contents::Zero && used {
        // SAFETY: the span was taken just now, and has this many bytes behind the offset.
        unsafe { object.write_bytes(0, bytes) };
    }
    object
}

fn alloc_mapping(own: Own<'_>, bytes: usize, align: usize, contents: Contents) -> *mut u8 {
    sweep::tick(sys::milliseconds());
    let Some(mapping) = map_object(own, bytes, align, contents) else {
        return null_mut();
    };
    let Mapped {
        start,
        bytes,
        offset,
        huge,
    } = mapping;
    if !registry::insert_large(start.addr().get(), bytes, offset, huge) {
        // SAFETY: taken above, and in no use.
        unsafe { sys::unmap(start, bytes) };
        return null_mut();
    }
    LARGE_BYTES_MAPPED.fetch_add(bytes, Ordering::Relaxed);
    start.as_ptr().wrapping_add(offset)
}

/// A mapping for one object, not yet recorded.
pub(crate) struct Mapped {
    pub(crate) start: NonNull<u8>,
    /// Whole chunks.
    pub(crate) bytes: usize,
    /// Where in it the object starts, in bytes.
    pub(crate) offset: usize,
    pub(crate) huge: HugePages,
}

/// A mapping for one object of `bytes`. `None` when the OS refuses.
pub(crate) fn map_object(
    own: Own<'_>,
    bytes: usize,
    align: usize,
    contents: Contents,
) -> Option<Mapped> {
    // For smaller objects, rounding mostly leaves enough room.
    let room = if align < PAGE_BYTES && bytes >= COLOURED_FROM_BYTES {
        PAGE_BYTES
    } else {
        0
    };
    let mapped = bytes
        .checked_add(room)
        .and_then(|bytes| round_up(bytes, CHUNK_BYTES))
        .filter(|&mapped| mapped <= isize::MAX as usize)?;
    let offset = if align < PAGE_BYTES {
        next_colour(own, mapped - bytes, align)
    } else {
        0
    };
    let huge = match contents {
        Contents::Any => HugePages::suiting(mapped, offset + bytes),
        Contents::Zero => HugePages::Never,
    };
    let count = mapped / CHUNK_BYTES;
    let chunks = if align <= CHUNK_BYTES {
        extents::take_chunks(count, huge.mask(count))?
    } else {
        extents::map_fresh(mapped, align)?
    };
    chunks.start.expose_provenance();
    huge.apply(chunks, offset + bytes);
    let start = NonNull::new(chunks.start)?;
    if contents == Contents::Zero && !chunks.zero {
        // SAFETY: taken above, whole chunks that hold the object.
        unsafe { clear(start, offset, bytes, chunks) };
    }
    Some(Mapped {
        start,
        bytes: mapped,
        offset,
        huge,
    })
}

/// Clears the `bytes` at `offset` of kept chunks.
///
/// # Safety
/// - `start` is that of `chunks`, which are mapped, in no use, and have `offset + bytes` bytes.
unsafe fn clear(start: NonNull<u8>, offset: usize, bytes: usize, chunks: Chunks) {
    let unmaps = bytes > CLEARED_BYTES_MAX || chunks.huge != 0;
    // SAFETY: the caller promises mapped chunks in no use.
    if unmaps && unsafe { sys::clear(start.as_ptr(), offset + bytes) } {
        return;
    }
    // SAFETY: the caller promises mapped chunks in no use, in which the object lies.
    unsafe { start.add(offset).write_bytes(0, bytes) };
}

/// Where a large object lies.
pub(crate) enum Place<'a> {
    /// A span, from this slot on.
    Span(SlotRef<'a>),
    /// A mapping of this many bytes, whose object starts at the address given to [`find`].
    Mapping(NonNull<u8>, usize, HugePages),
    /// A mapping that a first-class heap holds.
    Held(&'static Mapping),
}

/// Finds the large object at `address`. Aborts with a message if the metadata has none there.
///
/// # Safety
/// - If `address` lies in a chunk of this allocator, that chunk stays mapped during `'a`.
pub(crate) unsafe fn find<'a>(address: usize) -> Place<'a> {
    let start = chunk_base(address);
    match registry::owner(address) {
        Owner::Arena(_) => {
            // SAFETY: the registry says that it is a chunk; the caller, that it stays.
            let slot = unsafe { SlotRef::containing(address) };
            if slot.slab().tag().kind() != kind::SPAN || slot_offset(address) != span_offset(slot) {
                sys::die("size or address does not fit the object at", address);
            }
            Place::Span(slot)
        }
        Owner::LargeStart {
            pages,
            offset,
            huge,
        } if address - start == offset => {
            match NonNull::new(core::ptr::with_exposed_provenance_mut(start)) {
                Some(base) => Place::Mapping(base, pages * PAGE_BYTES, huge),
                None => sys::die("not a large object:", address),
            }
        }
        Owner::LargeHeld(mapping) => {
            // SAFETY: an entry holds the address of a record; records live for ever.
            let mapping = unsafe { &*mapping };
            if address - start != mapping.offset() {
                sys::die("not a large object:", address);
            }
            Place::Held(mapping)
        }
        Owner::LargeStart { .. } | Owner::LargeInside { .. } | Owner::Foreign => {
            sys::die("not a large object, or freed before:", address)
        }
    }
}

/// Slots of the span that starts at `slot`.
fn span_slots(slot: SlotRef<'_>) -> usize {
    usize::from(slot.slab().span_slots.get())
}

/// Where in its first slot the object of the span that starts at `slot` lies, in bytes.
pub(crate) fn span_offset(slot: SlotRef<'_>) -> usize {
    usize::from(slot.slab().span_offset.get())
}

/// Bytes from the object's start to the end of the span that starts at `slot`.
pub(crate) fn span_room(slot: SlotRef<'_>) -> usize {
    span_slots(slot) * SLOT_BYTES - span_offset(slot)
}

/// Aborts with a message if the object at `address`, in `place`, cannot have `bytes` bytes.
pub(crate) fn expect_bytes(place: &Place<'_>, address: usize, bytes: usize) {
    let bytes = bytes.max(1);
    let in_mapping = |mapped: usize| {
        let end = (address - chunk_base(address)).saturating_add(bytes);
        // `map_object` leaves room for rounding and for one page more, `resize` for rounding.
        end <= mapped && mapped - end < CHUNK_BYTES + PAGE_BYTES
    };
    let fits = match place {
        Place::Span(slot) => {
            let room = span_room(*slot);
            // As `alloc_span` took them, or `resize` left them.
            bytes <= room && (bytes.div_ceil(SLOT_BYTES) == span_slots(*slot) || bytes > room / 2)
        }
        Place::Mapping(_, mapped, _) => in_mapping(*mapped),
        Place::Held(mapping) => in_mapping(mapping.bytes()),
    };
    if !fits {
        sys::die("free with a wrong size, of", address);
    }
}

/// Frees the mapping of one object.
///
/// # Safety
/// - `base` and `bytes` come from [`find`], and the object is not used any more.
pub(crate) unsafe fn free_mapping(base: NonNull<u8>, bytes: usize, huge: HugePages) {
    if !registry::take_large(base.addr().get(), bytes) {
        sys::die("double free, by two threads, of", base.addr().get());
    }
    LARGE_BYTES_MAPPED.fetch_sub(bytes, Ordering::Relaxed);
    // SAFETY: a whole mapping by the registry's word, freed by its owner, and out of the registry.
    unsafe { extents::give_chunks(huge.tail(base, bytes)) };
}

/// Resizes an object in place or by moving its pages. Null if that is impossible, as for a mapping
/// of another first-class heap than `own`; the object is then as it was.
///
/// # Safety
/// - `object` is a live object of this allocator above the largest class, allocated with `layout`,
///   aligned for `new_layout`, and used by the caller alone.
pub(crate) unsafe fn resize(
    own: Option<Own<'static>>,
    object: *mut u8,
    layout: Layout,
    new_layout: Layout,
) -> *mut u8 {
    let new_bytes = new_layout.size();
    let align = layout.align().max(new_layout.align());
    // SAFETY: the object is live, so its chunk stays mapped.
    let place = unsafe { find(object.addr()) };
    expect_bytes(&place, object.addr(), layout.size());
    match place {
        Place::Span(slot) => {
            let room = span_room(slot);
            // Shrinking by more than half is worth a copy.
            if new_bytes <= room && new_bytes > room / 2 {
                object
            } else {
                null_mut()
            }
        }
        Place::Held(record) => {
            let Some(own) = own.filter(|own| record.is_in(&own.inventory)) else {
                return null_mut();
            };
            let (start, offset) = (record.start.get(), record.offset());
            let resized = NonNull::new(start).and_then(|base| {
                let mapping = Whole {
                    base,
                    bytes: record.bytes(),
                    huge: record.huge.get(),
                    entry: Entry::Held(record),
                };
                // SAFETY: a whole mapping of this arena, used by the caller alone.
                unsafe { mapping.resize(offset, new_bytes, align) }
            });
            let Some((base, mapped, huge)) = resized else {
                return null_mut();
            };
            record.huge.set(huge);
            let sum = &own.inventory.held_bytes;
            sum.set(sum.get() - record.bytes() + mapped);
            record.start.set(base.as_ptr());
            record.bytes.store(mapped, Ordering::Relaxed);
            base.as_ptr().wrapping_add(offset)
        }
        Place::Mapping(base, bytes, huge) => {
            let offset = object.addr() - base.addr().get();
            let mapping = Whole {
                base,
                bytes,
                huge,
                entry: Entry::Plain { offset },
            };
            // SAFETY: a whole mapping by the registry's word, used by the caller alone.
            let resized = unsafe { mapping.resize(offset, new_bytes, align) };
            resized.map_or(null_mut(), |(base, ..)| base.as_ptr().wrapping_add(offset))
        }
    }
}

/// How the registry describes a mapping of one object.
#[derive(Clone, Copy)]
enum Entry {
    /// By its length, and the object's offset.
    Plain { offset: usize },
    /// By the record of the first-class heap that holds it.
    Held(&'static Mapping),
}

impl Entry {
    /// Enters a mapping of this kind. `false`, and nothing entered, when the table cannot grow.
    fn insert(self, start: usize, bytes: usize, huge: HugePages) -> bool {
        match self {
            Entry::Plain { offset } => registry::insert_large(start, bytes, offset, huge),
            Entry::Held(record) => registry::insert_held(start, bytes, record),
        }
    }
}

/// A registered mapping of one object.
#[derive(Clone, Copy)]
struct Whole {
    base: NonNull<u8>,
    /// Whole chunks.
    bytes: usize,
    huge: HugePages,
    entry: Entry,
}

impl Whole {
    /// Gives the object at `offset` `new_bytes` bytes, in place or by moving its pages. Returns the
    /// mapping's new start, length and huge pages; `None`, and all as before, if that is
    /// impossible.
    ///
    /// # Safety
    /// - The mapping is registered as this value says, and used by the caller alone.
    unsafe fn resize(
        self,
        offset: usize,
        new_bytes: usize,
        align: usize,
    ) -> Option<(NonNull<u8>, usize, HugePages)> {
        let end = new_bytes.checked_add(offset)?;
        let bytes = round_up(end, CHUNK_BYTES)?;
        if new_bytes < CHUNK_BYTES / 4 || bytes > isize::MAX as usize || align > CHUNK_BYTES {
            return None;
        }
        let (base, huge) = if bytes > self.bytes {
            // SAFETY: the mapping is as the caller promises; `bytes` are more whole chunks.
            unsafe { self.grow(bytes, end) }?
        } else {
            // SAFETY: the mapping is as the caller promises; `end <= bytes <= self.bytes`.
            (self.base, unsafe { self.shrink(bytes, end) })
        };
        // Modulo 2^64.
        LARGE_BYTES_MAPPED.fetch_add(bytes.wrapping_sub(self.bytes), Ordering::Relaxed);
        Some((base, bytes, huge))
    }

    /// Gives all but the first `bytes` bytes back, of which the object fills the first `end`.
    ///
    /// # Safety
    /// - As for [`resize`](Self::resize).
    /// - `bytes` are whole chunks, no more than there are, and the object does not reach further.
    unsafe fn shrink(self, bytes: usize, end: usize) -> HugePages {
        if bytes == self.bytes {
            return self.huge;
        }
        let start = self.base.addr().get();
        registry::remove(start + bytes, self.bytes - bytes);
        // All chunks in front of the last were alike.
        let huge = match self.huge {
            HugePages::Front => HugePages::All,
            huge => huge,
        };
        // The leaves exist already, so this cannot fail.
        self.entry.insert(start, bytes, huge);
        clear_tail(self.base.as_ptr(), end, bytes);
        // SAFETY: whole chunks at the end of a mapping, behind its object.
        let behind = unsafe { self.base.add(bytes) };
        // SAFETY: whole chunks behind the object, not used, and out of the registry.
        unsafe { extents::give_chunks(self.huge.tail(behind, self.bytes - bytes)) };
        huge
    }

    /// Makes the mapping longer: `bytes`, of which the object fills the first `end`.
    ///
    /// # Safety
    /// - As for [`resize`](Self::resize), and `bytes` are whole chunks, more than there are.
    unsafe fn grow(self, bytes: usize, end: usize) -> Option<(NonNull<u8>, HugePages)> {
        // SAFETY: the mapping and `bytes` are as the caller promises.
        let grown = unsafe { self.extend(bytes, end) };
        let Some(grown) = grown else {
            self.huge.undo(self.base, self.bytes);
            return None;
        };
        let huge = self.huge.grown(grown, bytes, end);
        // Prepared or entered before, so this cannot fail.
        self.entry.insert(grown.as_ptr().addr(), bytes, huge);
        Some((grown, huge))
    }

    /// As [`grow`](Self::grow), but for the advice on huge pages.
    ///
    /// # Safety
    /// - As for [`grow`](Self::grow).
    unsafe fn extend(self, bytes: usize, end: usize) -> Option<NonNull<u8>> {
        let start = self.base.addr().get();
        let behind = self.base.as_ptr().wrapping_add(self.bytes);
        let more = bytes - self.bytes;
        let taken = extents::take_kept_behind(behind, more / CHUNK_BYTES);
        let kept = taken.is_some();
        if let Some(taken) = taken {
            // Huge pages are asked for later, where they suit.
            HugePages::No.apply(taken, end.saturating_sub(self.bytes));
        }
        self.huge.unify(self.base, self.bytes);
        let growth = if kept {
            sys::Growth::Grown
        } else {
            // SAFETY: the caller alone uses the mapping, of whole chunks; `bytes` are more.
            unsafe { sys::grow_in_place(self.base, self.bytes, bytes) }
        };
        let grown = match growth {
            sys::Growth::Grown => {
                if !self.entry.insert(start, bytes, self.huge) {
                    // The entries of the old part exist, so this cannot fail.
                    self.entry.insert(start, self.bytes, self.huge);
                    // SAFETY: the part that has just been added, in no use.
                    unsafe { sys::unmap(self.base.add(self.bytes), more) };
                    return None;
                }
                self.base
            }
            sys::Growth::NoRoom => {
                let target = sys::map_aligned(bytes, CHUNK_BYTES)?;
                let address = target.as_ptr().expose_provenance();
                if !registry::prepare(address, bytes) {
                    // SAFETY: mapped above, and in no use.
                    unsafe { sys::unmap(target, bytes) };
                    return None;
                }
                // Before the kernel frees the addresses: another thread may map them at once.
                registry::remove(start, self.bytes);
                // SAFETY: the source is the caller's, and in one piece, as the try in place has
                // shown; the target was mapped above.
                if !unsafe { sys::remap(self.base, self.bytes, target, bytes) } {
                    // The table has had these entries, so this cannot fail.
                    self.entry.insert(start, self.bytes, self.huge);
                    return None;
                }
                target
            }
            sys::Growth::Impossible => return None,
        };
        Some(grown)
    }
}

impl<'a> Own<'a> {
    /// Frees the span that starts at `first`.
    pub(crate) fn free_span(self, first: SlotRef<'a>) {
        self.free_slots(first, span_slots(first));
    }
}
