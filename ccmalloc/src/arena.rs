//! A thread's arena: slabs of one size class each, and the chunks that they are cut from.
//!
//! A slab's map has a bit for each live object, at the granule where the object starts. Each class
//! has a bin, whose free list is a small stack of addresses. Allocation takes an object off and
//! sets its bit; a free clears the bit and puts the object back. Neither touches the object, so a
//! cold one costs no miss, and neither divides. The bit alone says whether an object is live: a
//! second free finds it clear, and the free list can be forgotten at any time. When it is empty,
//! [`Own::refill`] gathers the next free objects in address order: from the same slab, from remote
//! frees, from slabs with room, from a fresh slab, from a fresh chunk.
//!
//! An arena belongs to one thread at a time. [`Own`] proves it: all methods that touch owner-only
//! state are its own. Arenas are never unmapped: an arena whose thread has ended waits for another
//! thread (`abandoned`). A [`Heap`](crate::Heap) of the program's has the same struct as its core
//! (`first_class`).

use core::cell::Cell;
use core::ffi::c_void;
use core::marker::PhantomData;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64};

use crate::bin::{ARENA_ALIGN_BYTES, Bin};
use crate::chunk::{ChunkDesc, Slab, SlotRef, Tag, granule_bit, kind, map_word};
use crate::geometry::{GRANULE_BYTES, slot_offset};
use crate::mapping::Inventory;
use crate::outcome::OUTCOMES;
use crate::owner::{Holder, SlotsLock};
use crate::protocol::DirtyStack;
use crate::size_class::{CLASSES, Class};
use crate::sys;

/// Keeps what other threads write out of the owner's blocks.
#[repr(align(64))]
pub(crate) struct Shared<T>(pub(crate) T);

/// See the module's documentation.
///
/// Invariants, kept by `Own`:
/// - the objects at hand in `bins[c]` are as [`Bin`] says;
/// - each slab of class `c` is exactly one of: the active one (kind `ACTIVE`); in the list
///   `partial[c]` (`LISTED`; it may have no free object left); `FULL`;
/// - `open` lists exactly the chunks that have a free slot.
#[repr(C)]
pub(crate) struct Arena {
    pub(crate) bins: [Bin; CLASSES],
    pub(crate) active_slab: [Cell<*const Slab>; CLASSES],
    pub(crate) partial: [Cell<*const Slab>; CLASSES],
    pub(crate) open: Cell<*const ChunkDesc>,
    pub(crate) unused_descs: Cell<*const ChunkDesc>,
    /// The one chunk without objects that stays as it is for the next request, or null; it is in
    /// `open` too.
    pub(crate) spare: Cell<*const ChunkDesc>,
    pub(crate) chunks: Cell<usize>,
    /// Protects `open`, and what the descriptors in it say of their slots.
    pub(crate) slots_lock: SlotsLock,
    pub(crate) meta: Cell<*mut u8>,
    pub(crate) meta_left: Cell<usize>,
    /// Counts spans and large mappings, to start them at different offsets in their pages.
    pub(crate) colour: Cell<usize>,
    /// State of the co-location pages; see `colocate`.
    ///
    /// The run: free granules behind an object that [`Policy::Closest`](crate::Policy::Closest) has
    /// placed last, from `run_next` to `run_end`, if they are still free. Invariant: if `run_next <
    /// run_end`, the bytes between them have their bits in one word of the map of a co-location
    /// page of this arena; so `run_end` is reset before the page's slot is given back.
    pub(crate) run_next: Cell<usize>,
    pub(crate) run_end: Cell<usize>,
    /// The address of the latest opening, whose page is the opening page; 0 if there is none.
    /// Invariant: the opening page lies in a co-location slot of this arena, and is not listed.
    pub(crate) latest_opening: Cell<usize>,
    /// The address of the latest co-located object that this thread has freed, with the lowest bit
    /// set if that may have left a block empty; 0 once that place has been looked at.
    pub(crate) freed_place: Cell<usize>,
    /// The slots that have listed pages: roomy ones, of which openings are taken next.
    pub(crate) roomy_slots: Cell<*const Slab>,
    /// The next page of the fresh slot that has had no openings yet, or 0.
    pub(crate) fresh_page: Cell<usize>,
    /// What an arena must know to be dropped as a whole.
    pub(crate) inventory: Inventory,
    /// Counters of placements; written by the owner, read by any thread.
    pub(crate) placed: [AtomicU64; OUTCOMES],

    /// Chunks with remote frees.
    pub(crate) dirty: Shared<DirtyStack<ChunkDesc>>,
    /// Who has the arena.
    pub(crate) holder: Holder,
    /// Whether threads without an arena allocate in it.
    pub(crate) is_shared: Cell<bool>,
    /// Next in the stack of arenas without a thread.
    pub(crate) next_abandoned: AtomicPtr<Arena>,
    /// Next in the list of all arenas; set once.
    pub(crate) next_arena: AtomicPtr<Arena>,
}

// SAFETY: threads share the atomics and `placed`. Every cell is touched only through `Own`, which
// exists on one thread at a time: `Holder` hands over with release and acquire. Only `sweep` reads
// `open` and what it leads to without `Own`, and whoever does so has `slots_lock`.
unsafe impl Sync for Arena {}

/// [`NO_ARENA`], and so much around it that no arena's address has the same bits from
/// [`ARENA_ALIGN_BYTES`] up: not all loaders align a static to that.
#[repr(C)]
pub(crate) struct Alone {
    before: [u8; ARENA_ALIGN_BYTES],
    pub(crate) arena: Arena,
    behind: [u8; ARENA_ALIGN_BYTES],
}

pub(crate) static ALONE: Alone = Alone {
    before: [0; ARENA_ALIGN_BYTES],
    arena: Arena::new(),
    behind: [0; ARENA_ALIGN_BYTES],
};

/// The arena of no thread: nothing is at hand in any class, so that allocation falls through to the
/// slow path.
pub(crate) const NO_ARENA: *const Arena = &raw const ALONE.arena;

/// All arenas there ever were.
pub(crate) static ALL_ARENAS: AtomicPtr<Arena> = AtomicPtr::new(null_mut());

impl Arena {
    pub(crate) const fn new() -> Self {
        Self {
            bins: [const { Bin::new() }; CLASSES],
            active_slab: [const { Cell::new(null()) }; CLASSES],
            partial: [const { Cell::new(null()) }; CLASSES],
            open: Cell::new(null()),
            unused_descs: Cell::new(null()),
            spare: Cell::new(null()),
            chunks: Cell::new(0),
            slots_lock: SlotsLock::new(),
            meta: Cell::new(null_mut()),
            meta_left: Cell::new(0),
            colour: Cell::new(0),
            run_next: Cell::new(0),
            run_end: Cell::new(0),
            latest_opening: Cell::new(0),
            freed_place: Cell::new(0),
            roomy_slots: Cell::new(null()),
            fresh_page: Cell::new(0),
            inventory: Inventory::new(),
            placed: [const { AtomicU64::new(0) }; OUTCOMES],
            dirty: Shared(DirtyStack::new()),
            holder: Holder::new(),
            is_shared: Cell::new(false),
            next_abandoned: AtomicPtr::new(null_mut()),
            next_arena: AtomicPtr::new(null_mut()),
        }
    }

    /// The bin of `class`.
    #[inline]
    pub(crate) fn bin(&self, class: Class) -> &Bin {
        // SAFETY: a class's index is less than CLASSES.
        unsafe { self.bins.get_unchecked(class.index()) }
    }

    /// The bin at this distance from the arena.
    ///
    /// # Safety
    /// - It comes from [`Tag::fast_slab`], of the tag of a slot of this arena.
    #[inline]
    pub(crate) unsafe fn bin_at(&self, distance: usize) -> &Bin {
        let bin: *const Bin = (&raw const *self).cast();
        // SAFETY: a slab's tag is the address of a bin of its arena plus a kind.
        unsafe { &*bin.byte_add(distance) }
    }

    /// Takes a free object of `class` that is at hand, or null if none is: a dozen instructions,
    /// which touch one word of a map and not the object.
    ///
    /// # Safety
    /// - The calling thread owns the arena, or it is [`NO_ARENA`].
    #[inline]
    pub(crate) unsafe fn pop(&self, class: Class) -> *mut u8 {
        let object = self.bin(class).take();
        if !object.is_null() {
            // SAFETY: objects at hand lie in slabs of this arena, which are mapped, and only this
            // thread, their owner, unmaps them.
            let word = unsafe { map_word(object.addr()) };
            // It was clear, by the invariant of `Bin`.
            word.set(word.get() | granule_bit(object.addr()));
        }
        object
    }

    /// Gives the object at `address` back to its slab: about two dozen instructions.
    ///
    /// # Safety
    /// - The calling thread owns the arena; `bin` is its bin for the class of the slab in which
    ///   `address` lies, and which is of the kind `kind`, `ACTIVE` or `LISTED`.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, bin: &Bin, address: usize, kind: usize) {
        if !address.is_multiple_of(GRANULE_BYTES) {
            // SAFETY: the address lies in a slab of this arena.
            return unsafe { refuse(address) };
        }
        // SAFETY: the bin and its slab are as the caller promises; the address is a granule's.
        unsafe { self.push_granule(bin, address, address / GRANULE_BYTES, kind) };
    }

    /// As [`push`](Self::push), of the address of a granule; `granule` is the granule's number
    /// modulo 64, or any number with these lowest bits.
    ///
    /// # Safety
    /// - As for [`push`](Self::push).
    #[inline(always)]
    pub(crate) unsafe fn push_granule(
        &self,
        bin: &Bin,
        address: usize,
        granule: usize,
        kind: usize,
    ) {
        debug_assert!(granule_bit(address) == 1 << (granule % 64));
        // SAFETY: a slab's slot is not the first of its chunk, and mapped.
        let word = unsafe { map_word(address) };
        let live = word.get();
        let left = live ^ (1 << (granule % 64));
        // Larger if the bit was clear.
        if left > live {
            // SAFETY: the address lies in a slab of this arena.
            return unsafe { refuse(address) };
        }
        word.set(left);
        // With the provenance of the chunk, exposed when it was mapped: the caller's pointer may be
        // good for a smaller type than the next.
        bin.put(core::ptr::with_exposed_provenance_mut(address));
        // One branch for "listed, and nothing left in the word": the kind is hard to predict.
        if left | kind as u64 == kind::LISTED as u64 {
            // SAFETY: the calling thread owns this arena, and the object lay in a slab of it.
            unsafe { release_if_empty(address, (&raw const *self).cast()) };
        }
    }
}

/// Tells that the object at `address` is not live, and aborts by default. As the next, a function
/// of C, which does not unwind: a free ends by a jump there.
///
/// # Safety
/// - `address` lies in a slab of the calling thread's arena.
#[cold]
#[inline(never)]
unsafe extern "C" fn refuse(address: usize) {
    // SAFETY: the caller promises that it lies in a slab of its arena: so its chunk is mapped.
    let class = unsafe { SlotRef::containing(address) }.slab().tag().class();
    if class.starts_at(slot_offset(address)) {
        sys::refuse("double free of", address);
    } else {
        sys::refuse("free of a pointer that is no object's:", address);
    }
}

/// [`Own::release_if_empty`], of this arena.
///
/// # Safety
/// - The calling thread owns `arena`, and `address` lies in a slab of it.
#[inline(never)]
unsafe extern "C" fn release_if_empty(address: usize, arena: *const c_void) {
    // SAFETY: the caller promises that this thread owns it; arenas live for ever.
    let own = unsafe { Own::new(&*arena.cast::<Arena>()) };
    // SAFETY: the caller promises that the address lies in a slab of this arena.
    unsafe { own.release_if_empty(address) };
}

/// Aborts with a message unless an object starts at `address`, which lies in a slab of `class`.
#[inline]
pub(crate) fn check_start(class: Class, address: usize) {
    if !class.starts_at(slot_offset(address)) {
        no_object(address);
    }
}

/// A function of C, which does not unwind: a free ends by a jump there.
#[cold]
pub(crate) extern "C" fn no_object(address: usize) {
    sys::die("free of a pointer that is no object's:", address);
}

/// Aborts with a message unless a live object of the slab starts at `address`. For a slab of
/// another arena than `mine`, checks only that some object starts there.
#[inline]
pub(crate) fn check_live(mine: Option<Own<'_>>, slot: SlotRef<'_>, address: usize) {
    let slab = slot.slab();
    if mine.is_none_or(|own| own.tag(0).owner() != slab.tag().owner()) {
        return check_start(slab.tag().class(), address);
    }
    let granule = slot_offset(address) / GRANULE_BYTES;
    let word = slot.map().get(granule / 64).map_or(0, Cell::get);
    if word & granule_bit(address) == 0 || !address.is_multiple_of(GRANULE_BYTES) {
        check_start(slab.tag().class(), address);
        sys::die("use of a freed object, at", address);
    }
}

/// An arena in the hands of the thread that owns it.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    arena: &'a Arena,
    _not_send: PhantomData<*const ()>,
}

impl core::ops::Deref for Own<'_> {
    type Target = Arena;
    #[inline]
    fn deref(&self) -> &Arena {
        self.arena
    }
}

impl<'a> Own<'a> {
    /// Asserts ownership.
    ///
    /// # Safety
    /// - The calling thread owns `arena`.
    #[inline]
    pub(crate) unsafe fn new(arena: &'a Arena) -> Self {
        Self {
            arena,
            _not_send: PhantomData,
        }
    }

    /// The arena.
    #[inline]
    pub(crate) fn arena(self) -> &'a Arena {
        self.arena
    }

    /// The tag of a slot of this arena that has no class and is used as `kind`.
    #[inline]
    pub(crate) fn tag(self, kind: usize) -> Tag {
        Tag::new((&raw const *self.arena).addr(), kind)
    }

    /// The tag of a slab of `class` of this arena.
    #[inline]
    pub(crate) fn slab_tag(self, class: Class, kind: usize) -> Tag {
        Tag::of_slab((&raw const *self.arena).addr(), class, kind)
    }
}
