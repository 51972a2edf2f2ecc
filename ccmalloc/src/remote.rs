//! Remote frees.
//!
//! A remote free sets the object's bit in the slot's remote map, and announces the slot on the
//! arena's stack of dirty chunks. The owner takes the stack, and merges the remote maps of the
//! slots into its maps, when a class has no free objects, hints need a new page, a span is asked
//! for, or its thread ends. [`protocol`](crate::protocol) proves that it finds every bit.
//!
//! After it has set the bit, the freeing thread touches only the chunk's descriptor: the chunk may
//! be unmapped. A bit that is set already is a double free, and so is one that the owner finds
//! free, or in a slot that it gives back. The bit of a co-located object is its first granule's;
//! the slot's end map has its length (`pages`).

use core::ops::ControlFlow;

use crate::arena::{Arena, Own, no_object};
use crate::chunk::{SlotRef, Tag, granule_bit, kind};
use crate::geometry::slot_offset;
use crate::pages::Pages;
use crate::registry::{self, Owner};
use crate::sys;

/// Leaves an object of another arena to that arena. Costs one atomic read-modify-write if the slot
/// is announced already, up to three if not, and more where threads compete. `first` is the address
/// of the granule that has the object's bit: its own, but for a span; `arena` is the slot's.
///
/// # Safety
/// - `slot` is not slot 0, it is of `arena`, and both addresses lie in it.
/// - The caller gives up the object.
///
/// A known weakness: `slot` borrows the chunk, which its owner may unmap between the bit and the
/// return. No access follows, and all that is borrowed lies in cells and atomics; `Arc`'s drop is
/// the same (<https://github.com/rust-lang/rust/issues/55005>).
#[inline]
pub(crate) unsafe fn free_remote(slot: SlotRef<'_>, arena: &Arena, first: usize, address: usize) {
    // Read before the bit is set: from then on the chunk may be gone.
    let (desc, number) = (slot.desc(), slot.slot());
    // SAFETY: the caller promises that `first` lies in the slot, which is not slot 0.
    if !unsafe { slot.remote_word(first) }.set(granule_bit(first)) {
        return refuse(address);
    }
    // SAFETY: descriptors live for ever, and this is one of a chunk of the arena.
    unsafe { arena.dirty.0.announce(desc, number) };
}

/// Frees an object of a slab of an arena that somebody else has; `false`, and nothing done, of any
/// other. `tag` is that of the object's slot by [`Tag::find`], or [`Tag::FREE`].
///
/// # Safety
/// - The caller frees the object at `address`. If one of this allocator's is live there, it is not
///   used any more.
#[inline(always)]
pub(crate) unsafe fn free_in_others_slab(tag: Tag, mine: Option<Own<'_>>, address: usize) -> bool {
    let mine = mine.map_or(0, |own| own.tag(0).owner());
    // FREE has the owner 0.
    if tag.owner() == 0 || tag.owner() == mine || tag.kind() > kind::FULL {
        return false;
    }
    // SAFETY: tags name arenas, which live for ever, and are exposed with their first chunk.
    let arena: &Arena = unsafe { &*core::ptr::with_exposed_provenance(tag.owner()) };
    if !arena.holder.is_owned() {
        return false;
    }
    if tag.class().starts_at(slot_offset(address)) {
        // SAFETY: a slab's slot, whose chunk stays mapped until its objects are freed.
        let slot = unsafe { SlotRef::containing(address) };
        // SAFETY: slot 0 has no tag; this slot's names `arena`, and the caller gives the object up.
        unsafe { free_remote(slot, arena, address, address) };
    } else {
        no_object(address);
    }
    true
}

/// A function of C, which does not unwind: a free ends by a jump there.
#[cold]
extern "C" fn refuse(address: usize) {
    sys::refuse("double free of", address);
}

/// The arena of the object at `address`, in a slot with this tag. Aborts with a message when the
/// tag may be bytes of foreign memory.
#[inline]
pub(crate) fn arena_of(address: usize, tag: Tag) -> &'static Arena {
    match registry::owner(address) {
        // SAFETY: the registry names arenas, which live for ever.
        Owner::Arena(arena) if arena.addr() == tag.owner() => unsafe { &*arena },
        _ => sys::die("free of a pointer to nothing allocated:", address),
    }
}

/// Aborts with a message when another thread has freed something in `slot`, in which the owner
/// knows of no live object.
#[cold]
pub(crate) fn expect_no_remote(slot: SlotRef<'_>) {
    if slot.remote().iter().any(|word| word.take() != 0) {
        let address = slot.base().addr();
        sys::die("double free, by two threads, in the slot at", address);
    }
}

impl<'a> Own<'a> {
    /// Completes remote frees: merges remote maps into maps, and frees spans.
    #[cold]
    #[inline(never)]
    pub(crate) fn collect_remote(self) {
        self.dirty.0.collect(|desc, slot| {
            // SAFETY: null or this arena's chunk, which is mapped as long as the descriptor names
            // it. Read again for each slot: `absorb` may unmap the chunk.
            match unsafe { desc.chunk.get().as_ref() } {
                Some(chunk) => {
                    self.absorb(SlotRef::new(chunk, slot));
                    ControlFlow::Continue(())
                }
                None => ControlFlow::Break(()),
            }
        });
    }

    /// Merges the remote map of `slot` into its map, or frees its span.
    fn absorb(self, slot: SlotRef<'a>) {
        let slab = slot.slab();
        let tag = slab.tag();
        if tag.owner() != self.tag(0).owner() {
            // A slot that was released since it was announced.
            return expect_no_remote(slot);
        }
        if tag.kind() == kind::SPAN {
            if slot.remote().first().is_some_and(|word| word.take() != 0) {
                self.free_span(slot);
            }
            return;
        }
        if tag.kind() == kind::COLOCATED {
            // SAFETY: by its tag, a co-location slot of this arena.
            let pages = unsafe { Pages::of(slot) };
            return self.settle_pages(pages, pages.absorb());
        }
        let mut any = false;
        for (word, remote) in slot.map().iter().zip(slot.remote()) {
            let freed = remote.take();
            if freed == 0 {
                continue;
            }
            if freed & !word.get() != 0 {
                let address = slot.base().addr();
                sys::die("double free, by two threads, in the slab at", address);
            }
            word.set(word.get() ^ freed);
            any = true;
        }
        if !any {
            return;
        }
        if tag.kind() == kind::FULL {
            self.link_partial(slab);
        }
        // SAFETY: the address lies in a slab of this arena.
        unsafe { self.release_if_empty(slot.base().addr()) };
    }
}
