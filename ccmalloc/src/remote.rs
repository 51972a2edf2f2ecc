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

use crate::arena::{Arena, Own};
use crate::chunk::{SlotRef, Tag, kind};
use crate::pages::Pages;
use crate::registry::{self, Owner};
use crate::sys;

/// Leaves an object of another arena to that arena. Costs one atomic read-modify-write if the slot
/// is announced already, up to three if not, and more where threads compete. `bit` is the number
/// of the object's first granule in its slot, 0 for a span; `arena` is the slot's.
///
/// A known weakness: `slot` borrows the chunk, which its owner may unmap between the bit and the
/// return. No access follows, and all that is borrowed lies in cells and atomics; `Arc`'s drop is
/// the same (<https://github.com/rust-lang/rust/issues/55005>).
#[inline]
pub(crate) fn free_remote(slot: SlotRef<'_>, arena: &Arena, bit: usize, address: usize) {
    // Read before the bit is set: from then on the chunk may be gone.
    let desc = slot.desc();
    let number = slot.slot();
    if let Some(word) = slot.remote().get(bit / 64)
        && !word.set(1 << (bit % 64))
    {
        return sys::refuse("double free of", address);
    }
    // SAFETY: descriptors live for ever, and this is one of a chunk of the arena.
    unsafe { arena.dirty.0.announce(desc, number) };
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
        // SAFETY: a slab of this arena.
        unsafe { self.release_if_empty(slot.base().addr()) };
    }
}
