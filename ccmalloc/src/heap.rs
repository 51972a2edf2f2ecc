//! A thread's heap: slabs of one size class each, and the chunks that they are cut from.
//!
//! Allocation of a small object takes the lowest set bit of one word of a free map; a free sets it again, and keeps the object at
//! hand for the next allocation. Neither touches the object, so a cold object costs no miss here, and fresh objects come in address
//! order: built once, walked in order. When the word is used up, [`Own::refill`] looks for the next one: in the same slab, in what other threads have freed, in slabs that have
//! room again, in a fresh slab, in a fresh chunk.
//!
//! A heap belongs to one thread at a time. [`Own`] is the proof of it: all methods that touch owner-only state are its own.
//! Heaps are never unmapped: after its thread has ended, a heap waits until another thread takes it over, whole (`abandoned`).

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

use crate::chunk::{ChunkDesc, PageInfo, Slab, SlotRef};
use crate::geometry::{SLOT_BYTES, slot_offset};
use crate::protocol::DirtyStack;
use crate::size_class::{CLASSES, Class};
use crate::sys;

/// How many free objects of a class are kept at hand.
///
/// `cargo bench -p benches --bench allocate -- churn`, ns to replace one of 20,000 live objects (two virtual Xeon cores, November 2026):
///
/// | none at hand | 8 | 16 | 32 | system malloc | mimalloc |
/// |---|---|---|---|---|---|
/// | 42.4 | 24.7 | 22.4 | 20.9 | 29.4 | 16.7 |
///
/// The last doubling gains little for twice the memory a class.
const AT_HAND_MAX: usize = 16;

/// A free object, and its bit.
///
/// Invariant while it is counted in [`Active::at_hand`]: `word` is the word of a free map of a mapped chunk, `bit` the bit in it
/// that stands for `object`, and the bit is set.
#[derive(Clone, Copy)]
struct AtHand {
    object: *mut u8,
    word: *const Cell<u64>,
    bit: u64,
}

/// Where a class allocates from at the moment.
///
/// First the objects at hand, which were freed last: the free maps know them as free, so that they can be forgotten at any time, and
/// the second free of one is noticed like any other. An alloc that follows a free then neither waits for the arithmetic from the
/// address to the bit nor has to find a word with a free object. Then, when none is at hand, the active word of the free map.
#[repr(C)]
pub(crate) struct Active {
    /// How many objects are at hand.
    count: Cell<usize>,
    /// The active word; [`NO_WORD`] while the class has none.
    pub(crate) word: Cell<*const Cell<u64>>,
    /// Address of the object that bit 0 stands for.
    pub(crate) base: Cell<*mut u8>,
    /// Bytes of an object.
    pub(crate) object_bytes: Cell<usize>,
    /// The latest free is the last of the first `count`.
    at_hand: [Cell<AtHand>; AT_HAND_MAX],
}

impl Active {
    const fn new() -> Self {
        Self {
            count: Cell::new(0),
            word: Cell::new(&raw const NO_WORD.0),
            base: Cell::new(null_mut()),
            object_bytes: Cell::new(0),
            at_hand: [const {
                Cell::new(AtHand {
                    object: null_mut(),
                    word: null(),
                    bit: 0,
                })
            }; AT_HAND_MAX],
        }
    }

    /// Takes the object that was freed last, if one is at hand.
    #[inline]
    fn take(&self) -> Option<*mut u8> {
        let count = self.count.get().checked_sub(1)?;
        // SAFETY: `count` is at most AT_HAND_MAX (`put` sees to that), so one less is an index.
        let AtHand { object, word, bit } = unsafe { self.at_hand.get_unchecked(count) }.get();
        self.count.set(count);
        // SAFETY: the invariant of `AtHand`: a word of a mapped chunk, which only this thread uses.
        let word = unsafe { &*word };
        word.set(word.get() & !bit);
        Some(object)
    }

    /// Keeps an object at hand, of which `bit` in `word` has just been set, if there is room.
    #[inline]
    fn put(&self, object: *mut u8, word: &Cell<u64>, bit: u64) {
        let count = self.count.get();
        if let Some(place) = self.at_hand.get(count) {
            place.set(AtHand { object, word, bit });
            self.count.set(count + 1);
        }
    }

    /// The objects at hand, each with whether its bit is set, as it must be. For checks.
    pub(crate) fn objects_at_hand(&self) -> impl Iterator<Item = (usize, bool)> {
        self.at_hand.iter().take(self.count.get()).map(|place| {
            let AtHand { object, word, bit } = place.get();
            // SAFETY: the invariant of `AtHand`.
            (object.addr(), unsafe { &*word }.get() & bit != 0)
        })
    }

    /// Forgets the objects at hand that lie in the slot at `base`, before it is given back.
    pub(crate) fn forget_slot(&self, base: usize) {
        let mut kept = 0;
        for index in 0..self.count.get() {
            let (Some(from), Some(to)) = (self.at_hand.get(index), self.at_hand.get(kept)) else {
                break;
            };
            if from.get().object.addr() & !(SLOT_BYTES - 1) != base {
                to.set(from.get());
                kept += 1;
            }
        }
        self.count.set(kept);
    }
}

/// A word that is zero for ever: the active word of a class without a slab, so that the fast path needs no test for it.
pub(crate) struct NoWord(pub(crate) Cell<u64>);
// SAFETY: it is only ever read: a zero word sends every reader to the slow path, which writes to words of slabs alone.
unsafe impl Sync for NoWord {}
pub(crate) static NO_WORD: NoWord = NoWord(Cell::new(0));

/// Keeps what other threads write out of the blocks that the owner uses all the time.
#[repr(align(64))]
pub(crate) struct Shared<T>(pub(crate) T);

/// See the module's documentation.
///
/// Invariants, kept by `Own`:
/// - `active[c].word` points to a word of the free map of the slab `active_slab[c]`, or to `NO_WORD`; objects at hand lie in slabs of
///   class `c` of this heap;
/// - each slab of class `c` is exactly one of: the active one (kind `ACTIVE`); in the list `partial[c]` (`LISTED`; it may have no free object left); `FULL`;
/// - `open` lists exactly the chunks that have a free slot.
#[repr(C, align(64))]
pub(crate) struct Heap {
    pub(crate) active: [Active; CLASSES],
    pub(crate) active_slab: [Cell<*const Slab>; CLASSES],
    pub(crate) partial: [Cell<*const Slab>; CLASSES],
    pub(crate) open: Cell<*const ChunkDesc>,
    pub(crate) unused_descs: Cell<*const ChunkDesc>,
    /// The one chunk without objects that is kept for the next request, or null; it is in `open` too.
    pub(crate) spare: Cell<*const ChunkDesc>,
    pub(crate) chunks: Cell<usize>,
    pub(crate) meta: Cell<*mut u8>,
    pub(crate) meta_left: Cell<usize>,
    /// Counts spans and large mappings, to start them at different offsets in their pages.
    pub(crate) colour: Cell<usize>,
    /// State of the co-location pages; see `colocate`.
    pub(crate) seat_page: Cell<*const PageInfo>,
    pub(crate) roomy_pages: Cell<*const PageInfo>,
    pub(crate) fresh_slot: Cell<*mut u8>,
    pub(crate) fresh_page: Cell<usize>,
    /// Counters of placements; written by the owner, read by whoever reports.
    pub(crate) placed: [AtomicU64; crate::stats::OUTCOMES],

    /// Chunks in which other threads have freed something: a stack that others push onto and the owner takes as a whole.
    pub(crate) dirty: Shared<DirtyStack<ChunkDesc>>,
    /// Next in the stack of heaps without a thread.
    pub(crate) next_abandoned: AtomicPtr<Heap>,
    /// Next in the list of all heaps; set once.
    pub(crate) next_heap: AtomicPtr<Heap>,
}

// SAFETY: shared between threads are the atomics, and `placed`; every cell is touched only through `Own`, which exists on one
// thread at a time (the owner's; the stack of abandoned heaps hands over with release and acquire).
unsafe impl Sync for Heap {}

/// The heap of no thread: every class is without a slab, so that allocation falls through to the slow path.
pub(crate) static NO_HEAP: Heap = Heap::new();

/// All heaps there ever were.
pub(crate) static ALL_HEAPS: AtomicPtr<Heap> = AtomicPtr::new(null_mut());
/// Bytes of chunks mapped by all heaps.
pub(crate) static CHUNK_BYTES_MAPPED: AtomicUsize = AtomicUsize::new(0);

impl Heap {
    pub(crate) const fn new() -> Self {
        Self {
            active: [const { Active::new() }; CLASSES],
            active_slab: [const { Cell::new(null()) }; CLASSES],
            partial: [const { Cell::new(null()) }; CLASSES],
            open: Cell::new(null()),
            unused_descs: Cell::new(null()),
            spare: Cell::new(null()),
            chunks: Cell::new(0),
            meta: Cell::new(null_mut()),
            meta_left: Cell::new(0),
            colour: Cell::new(0),
            seat_page: Cell::new(null()),
            roomy_pages: Cell::new(null()),
            fresh_slot: Cell::new(null_mut()),
            fresh_page: Cell::new(0),
            placed: [const { AtomicU64::new(0) }; crate::stats::OUTCOMES],
            dirty: Shared(DirtyStack::new()),
            next_abandoned: AtomicPtr::new(null_mut()),
            next_heap: AtomicPtr::new(null_mut()),
        }
    }

    /// Takes a free object of `class` that is at hand, else from the active word, or null when that is used up: a dozen instructions, one
    /// word of a free map touched, the object itself not.
    ///
    /// # Safety
    /// - The calling thread owns the heap, or it is [`NO_HEAP`].
    #[inline]
    pub(crate) unsafe fn pop(&self, class: Class) -> *mut u8 {
        // SAFETY: a class's index is less than CLASSES.
        let active = unsafe { self.active.get_unchecked(class.index()) };
        if let Some(object) = active.take() {
            return object;
        }
        // SAFETY: the heap's first invariant: a word of a mapped chunk, or NO_WORD.
        let word = unsafe { &*active.word.get() };
        let free = word.get();
        if free == 0 {
            return null_mut();
        }
        word.set(free & (free - 1));
        active
            .base
            .get()
            .wrapping_add(free.trailing_zeros() as usize * active.object_bytes.get())
    }

    /// Gives the object at `address` back to its slab: about a dozen instructions.
    ///
    /// # Safety
    /// - The calling thread owns the heap, and `slot`'s tag is the heap's address with the kind `ACTIVE`, or `LISTED` if
    ///   `listed`.
    #[inline]
    pub(crate) unsafe fn push(&self, slot: SlotRef<'_>, address: usize, listed: bool) {
        let slab = slot.slab();
        let index = object_number(slab, address);
        // SAFETY: a slot has at most 8192 objects, since they have at least 8 bytes, so the word is one of 128.
        let word = unsafe { slot.maps().free.get_unchecked(index / 64) };
        let bit = 1u64 << (index % 64);
        let free = word.get();
        if free & bit != 0 {
            sys::die("double free of", address);
        }
        word.set(free | bit);
        // SAFETY: a slab's class is a class's index.
        let active = unsafe { self.active.get_unchecked(usize::from(slab.class.get())) };
        // With the provenance of the chunk, exposed when it was mapped: the caller's pointer may be good for a smaller type than the next.
        let object = core::ptr::with_exposed_provenance_mut(address);
        active.put(object, word, bit);
        // A full word may complete an empty slab. The last word has bits that are no objects: it may at any time.
        if listed && (free | bit == !0 || index >= slab.tail_start.get() as usize) {
            // SAFETY: the caller's promise.
            unsafe { Own::new(self) }.release_if_empty(slot);
        }
    }
}

/// Which object of its slab starts at `address`: less than the slab's number of objects. Aborts with a message when none does.
#[inline]
pub(crate) fn object_number(slab: &Slab, address: usize) -> usize {
    let offset = slot_offset(address);
    // `reciprocal` exceeds 2^32 / bytes by less than one, so the product exceeds offset * 2^32 / bytes by less than 2^16: too
    // little to reach the next multiple of 2^32 / bytes, as bytes < 2^16.
    let index = ((offset as u64 * u64::from(slab.reciprocal.get())) >> 32) as usize;
    if index * slab.object_bytes.get() as usize != offset || index >= slab.objects.get() as usize {
        sys::die("free of a pointer that is no object's:", address);
    }
    index
}

/// A heap in the hands of the thread that owns it.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    heap: &'a Heap,
    _not_send: PhantomData<*const ()>,
}

impl core::ops::Deref for Own<'_> {
    type Target = Heap;
    #[inline]
    fn deref(&self) -> &Heap {
        self.heap
    }
}

impl<'a> Own<'a> {
    /// Asserts ownership.
    ///
    /// # Safety
    /// - The calling thread owns `heap`.
    #[inline]
    pub(crate) unsafe fn new(heap: &'a Heap) -> Self {
        Self {
            heap,
            _not_send: PhantomData,
        }
    }

    /// The heap.
    #[inline]
    pub(crate) fn heap(self) -> &'a Heap {
        self.heap
    }

    /// The tag of a slot of this heap that is used as `kind`.
    #[inline]
    pub(crate) fn tag(self, kind: usize) -> usize {
        (&raw const *self.heap).addr() | kind
    }
}
