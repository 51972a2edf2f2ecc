//! A thread's heap: slabs of one size class each, and the chunks that they are cut from.
//!
//! A slab's map says which of its objects are live, one bit each, at the granule where the object
//! starts. Some free objects of each class are *at hand*: in a small stack of addresses. Allocation
//! takes one off and sets its bit; a free clears the bit and puts the object at hand. Neither
//! touches the object, so a cold one costs no miss here, and neither divides: an address leads to
//! its bit by shifts. The bit alone says whether an object is live: a second free finds it clear,
//! and what is at hand can be forgotten at any time. When nothing is at hand, [`Own::refill`]
//! gathers the next free objects in address order (built once, walked in order): from the same
//! slab, from what other threads have freed, from slabs that have room again, from a fresh slab,
//! from a fresh chunk.
//!
//! What was tried before: a bit an object rather than a granule makes denser maps, but needs a
//! multiplication and the slab's constants to find the bit, on the way to the address of a store
//! that later loads wait for; a free and an allocation took 11 ns instead of 5.4. Without objects
//! at hand, replacing random objects took twice as long, because each allocation looked for a word
//! with a free object.
//!
//! A heap belongs to one thread at a time. [`Own`] is the proof of it: all methods that touch
//! owner-only state are its own. Heaps are never unmapped: after its thread has ended, a heap waits
//! until another thread takes it over, whole (`abandoned`). The same structure is the core of a
//! [`Heap`](crate::Heap) that a program makes for itself (`first_class`); its owner is then the
//! thread that holds that value.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize};

use crate::chunk::{ChunkDesc, Slab, SlotRef, Tag, granule_bit, kind, map_word};
use crate::extents::Extents;
use crate::first_class::Inventory;
use crate::geometry::{GRANULE_BYTES, SLOT_BYTES, slot_offset};
use crate::protocol::DirtyStack;
use crate::size_class::{CLASSES, Class};
use crate::sys;

/// Bytes of a bin; a power of two, so that a class's number leads to its bin by a shift.
pub(crate) const BIN_BYTES: usize = 512;
/// Alignment of a heap: the address of a bin leads to its heap and to its class.
pub(crate) const HEAP_ALIGN_BYTES: usize = 32 * 1024;
/// Bytes of a bin in front of the objects at hand.
const BIN_HEADER_BYTES: usize = 2 * size_of::<usize>();
/// Bytes of a place for an object at hand.
const PLACE_BYTES: usize = size_of::<*mut u8>();
/// Places in a bin, the one that is never filled included.
const PLACES: usize = (BIN_BYTES - BIN_HEADER_BYTES) / PLACE_BYTES;
/// [`Bin::top`] when every place is filled.
const TOP_FULL: usize = (PLACES - 1) * PLACE_BYTES;

const _: () = assert!(CLASSES * BIN_BYTES <= HEAP_ALIGN_BYTES);

/// Where a class allocates from at the moment: the free objects at hand.
///
/// Invariant: each object at hand starts in a slab of this class and heap, whose kind is `ACTIVE`
/// or `LISTED`; its bit is clear, and it is at hand once.
#[repr(C, align(512))]
pub(crate) struct Bin {
    /// Where the latest object at hand is, in bytes from the first place: from 0 in steps of
    /// [`PLACE_BYTES`] to [`TOP_FULL`].
    top: Cell<usize>,
    /// Word of the active slab's map from which on to look for free objects.
    pub(crate) cursor: Cell<usize>,
    /// The objects at hand are those from the latest down to the first null pointer; the first
    /// place always holds one.
    at_hand: [Cell<*mut u8>; PLACES],
}

const _: () = assert!(size_of::<Bin>() == BIN_BYTES);

impl Bin {
    const fn new() -> Self {
        Self {
            top: Cell::new(0),
            cursor: Cell::new(0),
            at_hand: [const { Cell::new(null_mut()) }; PLACES],
        }
    }

    /// The place behind `bytes` bytes of others, of which the first is never filled.
    ///
    /// # Safety
    /// - `bytes` is a multiple of [`PLACE_BYTES`], and at most [`TOP_FULL`].
    #[inline]
    unsafe fn place(&self, bytes: usize) -> &Cell<*mut u8> {
        debug_assert!(bytes <= TOP_FULL && bytes.is_multiple_of(PLACE_BYTES));
        // SAFETY: by the caller's promise, an element of `at_hand`.
        unsafe { &*self.at_hand.as_ptr().byte_add(bytes) }
    }

    /// Takes the latest object at hand, whose bit is still clear; null when there is none.
    #[inline]
    fn take(&self) -> *mut u8 {
        let top = self.top.get();
        // SAFETY: as `top` says.
        let object = unsafe { self.place(top) }.get();
        if !object.is_null() {
            // The first place is always null, so `top` is not 0.
            self.top.set(top - PLACE_BYTES);
        }
        object
    }

    /// Keeps an object at hand, whose bit has just been cleared, if there is room.
    #[inline]
    fn put(&self, object: *mut u8) {
        let top = self.top.get();
        if top != TOP_FULL {
            // SAFETY: `top` is a multiple of PLACE_BYTES below TOP_FULL, so the next one is at most
            // that.
            unsafe { self.place(top + PLACE_BYTES) }.set(object);
            self.top.set(top + PLACE_BYTES);
        }
    }

    /// Begins to put objects at hand when none is.
    pub(crate) fn filling(&self) -> Filling<'_> {
        Filling {
            bin: self,
            next: FILL_MAX,
        }
    }

    /// The places of the objects at hand, the latest last, and how many places there are below
    /// them.
    fn filled(&self) -> (&[Cell<*mut u8>], usize) {
        let end = self.top.get() / PLACE_BYTES + 1;
        let places = self.at_hand.get(..end).unwrap_or_default();
        let below = places
            .iter()
            .rposition(|place| place.get().is_null())
            .map_or(end, |null| null + 1);
        (places.get(below..).unwrap_or_default(), below)
    }

    /// Addresses of the objects at hand. For checks.
    pub(crate) fn objects_at_hand(&self) -> impl Iterator<Item = usize> {
        self.filled().0.iter().map(|place| place.get().addr())
    }

    /// Forgets all objects at hand, before all slots are given back.
    pub(crate) fn forget_all(&self) {
        self.top.set(0);
        self.cursor.set(0);
    }

    /// Forgets the objects at hand that lie in the slot at `base`, before it is given back.
    pub(crate) fn forget_slot(&self, base: usize) {
        let (places, below) = self.filled();
        let mut kept = 0;
        for place in places {
            if place.get().addr() & !(SLOT_BYTES - 1) != base
                && let Some(to) = places.get(kept)
            {
                to.set(place.get());
                kept += 1;
            }
        }
        self.top.set((below + kept - 1) * PLACE_BYTES);
    }
}

/// How many objects are put at hand at once. The rest of the places is for objects that are freed
/// before these are used up.
pub(crate) const FILL_MAX: usize = PLACES / 2;

/// A bin that is being filled: objects are added in the order in which they are to be taken, from
/// the top downwards.
pub(crate) struct Filling<'a> {
    bin: &'a Bin,
    /// The place of the next object; 0 when there is no room left.
    next: usize,
}

impl Filling<'_> {
    /// How many there are.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        FILL_MAX - self.next
    }

    /// Adds a free object of the active slab; `false`, and nothing done, when the bin is full.
    #[inline]
    pub(crate) fn add(&mut self, object: *mut u8) -> bool {
        if self.next == 0 {
            return false;
        }
        if let Some(place) = self.bin.at_hand.get(self.next) {
            place.set(object);
        }
        self.next -= 1;
        true
    }

    /// Puts the objects at hand, the first on top, and returns how many there are.
    pub(crate) fn finish(self) -> usize {
        let count = self.count();
        if count > 0 {
            if let Some(below) = self.bin.at_hand.get(self.next) {
                below.set(null_mut());
            }
            self.bin.top.set(FILL_MAX * PLACE_BYTES);
        }
        count
    }
}

/// Keeps what other threads write out of the blocks that the owner uses all the time.
#[repr(align(64))]
pub(crate) struct Shared<T>(pub(crate) T);

/// See the module's documentation.
///
/// Invariants, kept by `Own`:
/// - the objects at hand in `bins[c]` are as [`Bin`] says;
/// - each slab of class `c` is exactly one of: the active one (kind `ACTIVE`); in the list
///   `partial[c]` (`LISTED`; it may have no free object left); `FULL`;
/// - `open` lists exactly the chunks that have a free slot.
#[repr(C, align(32768))]
pub(crate) struct Heap {
    pub(crate) bins: [Bin; CLASSES],
    pub(crate) active_slab: [Cell<*const Slab>; CLASSES],
    pub(crate) partial: [Cell<*const Slab>; CLASSES],
    pub(crate) open: Cell<*const ChunkDesc>,
    pub(crate) unused_descs: Cell<*const ChunkDesc>,
    /// The one chunk without objects that stays as it is for the next request, or null; it is in
    /// `open` too.
    pub(crate) spare: Cell<*const ChunkDesc>,
    pub(crate) chunks: Cell<usize>,
    pub(crate) extents: Extents,
    /// When the chunks with free slots were last looked through for memory to give back; see
    /// `slots`.
    pub(crate) purged_at: Cell<usize>,
    pub(crate) meta: Cell<*mut u8>,
    pub(crate) meta_left: Cell<usize>,
    /// Counts spans and large mappings, to start them at different offsets in their pages.
    pub(crate) colour: Cell<usize>,
    /// State of the co-location pages; see `colocate`.
    ///
    /// The latest run: free granules behind an object that
    /// [`Policy::Closest`](crate::Policy::Closest) has placed near its hint, from `run_next` up to
    /// `run_end`, unless others were faster. Invariant: if `run_next < run_end`, the bytes between
    /// them have their bits in one word of the map of a co-location page of this heap; so `run_end`
    /// is reset before the page's slot is given back.
    pub(crate) run_next: Cell<usize>,
    pub(crate) run_end: Cell<usize>,
    /// An address on the seat page: of the latest seat, where to look for the next one. 0 when
    /// there is no seat page. Invariant: the seat page lies in a co-location slot of this heap, and
    /// is not listed.
    pub(crate) latest_seat: Cell<usize>,
    /// Where the latest co-located object that this thread has freed lay, with the lowest bit set
    /// if that may have left a block empty; or 0 once that place has been looked at. Only an
    /// address: what lies there by now is looked up.
    pub(crate) freed_place: Cell<usize>,
    /// The slots that have listed pages: roomy ones, of which seats are taken next.
    pub(crate) roomy_slots: Cell<*const Slab>,
    /// The next page of the fresh slot that has had no seats yet, or 0. It and the pages behind it
    /// in its slot are empty unless hints that point there were served.
    pub(crate) fresh_page: Cell<usize>,
    /// What a heap must know to be dropped as a whole.
    pub(crate) inventory: Inventory,
    /// Counters of placements; written by the owner, read by whoever reports.
    pub(crate) placed: [AtomicU64; crate::stats::OUTCOMES],

    /// Chunks in which other threads have freed something: a stack that others push onto and the
    /// owner takes as a whole.
    pub(crate) dirty: Shared<DirtyStack<ChunkDesc>>,
    /// Next in the stack of heaps without a thread.
    pub(crate) next_abandoned: AtomicPtr<Heap>,
    /// Next in the list of all heaps; set once.
    pub(crate) next_heap: AtomicPtr<Heap>,
}

// SAFETY: shared between threads are the atomics, and `placed`; every cell is touched only through
// `Own`, which exists on one thread at a time (the owner's; the stack of abandoned heaps hands over
// with release and acquire).
unsafe impl Sync for Heap {}

/// The heap of no thread: nothing is at hand in any class, so that allocation falls through to the
/// slow path.
pub(crate) static NO_HEAP: Heap = Heap::new();

/// All heaps there ever were.
pub(crate) static ALL_HEAPS: AtomicPtr<Heap> = AtomicPtr::new(null_mut());
/// Bytes of chunks mapped by all heaps.
pub(crate) static CHUNK_BYTES_MAPPED: AtomicUsize = AtomicUsize::new(0);

impl Heap {
    pub(crate) const fn new() -> Self {
        Self {
            bins: [const { Bin::new() }; CLASSES],
            active_slab: [const { Cell::new(null()) }; CLASSES],
            partial: [const { Cell::new(null()) }; CLASSES],
            open: Cell::new(null()),
            unused_descs: Cell::new(null()),
            spare: Cell::new(null()),
            chunks: Cell::new(0),
            extents: Extents::new(),
            purged_at: Cell::new(0),
            meta: Cell::new(null_mut()),
            meta_left: Cell::new(0),
            colour: Cell::new(0),
            run_next: Cell::new(0),
            run_end: Cell::new(0),
            latest_seat: Cell::new(0),
            freed_place: Cell::new(0),
            roomy_slots: Cell::new(null()),
            fresh_page: Cell::new(0),
            inventory: Inventory::new(),
            placed: [const { AtomicU64::new(0) }; crate::stats::OUTCOMES],
            dirty: Shared(DirtyStack::new()),
            next_abandoned: AtomicPtr::new(null_mut()),
            next_heap: AtomicPtr::new(null_mut()),
        }
    }

    /// The bin of `class`.
    #[inline]
    pub(crate) fn bin(&self, class: Class) -> &Bin {
        // SAFETY: a class's index is less than CLASSES.
        unsafe { self.bins.get_unchecked(class.index()) }
    }

    /// Takes a free object of `class` that is at hand, or null when none is: a dozen instructions,
    /// one word of a map touched, the object itself not.
    ///
    /// # Safety
    /// - The calling thread owns the heap, or it is [`NO_HEAP`].
    #[inline]
    pub(crate) unsafe fn pop(&self, class: Class) -> *mut u8 {
        let object = self.bin(class).take();
        if !object.is_null() {
            // SAFETY: objects at hand lie in slabs of this heap, which are mapped, and only this
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
    /// - The calling thread owns the heap; `bin` is its bin for the class of the slab in which
    ///   `address` lies, and which is of the kind `kind`, `ACTIVE` or `LISTED`.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, bin: &Bin, address: usize, kind: usize) {
        // SAFETY: a slab's slot is not the first of its chunk, and mapped.
        let word = unsafe { map_word(address) };
        let live = word.get();
        if live & granule_bit(address) == 0 || !address.is_multiple_of(GRANULE_BYTES) {
            // SAFETY: the address lies in a slab of this heap, whose chunk is mapped.
            refuse(unsafe { SlotRef::containing(address) }.slab(), address);
        }
        let left = live & !granule_bit(address);
        word.set(left);
        // With the provenance of the chunk, exposed when it was mapped: the caller's pointer may be
        // good for a smaller type than the next.
        bin.put(core::ptr::with_exposed_provenance_mut(address));
        // One branch for "listed, and nothing left in the word": which kind of slab comes next is
        // anybody's guess.
        if left | (kind ^ kind::LISTED) as u64 == 0 {
            // SAFETY: the caller's promise.
            unsafe { Own::new(self) }.release_if_empty(address);
        }
    }
}

/// Aborts with a message: the object at `address` is not live.
#[cold]
#[inline(never)]
fn refuse(slab: &Slab, address: usize) -> ! {
    check_start(slab, address);
    sys::die("double free of", address);
}

/// Aborts with a message unless an object of the slab starts at `address`.
pub(crate) fn check_start(slab: &Slab, address: usize) {
    let bytes = slab.tag().class().bytes() as usize;
    let offset = slot_offset(address);
    if !offset.is_multiple_of(bytes) || offset + bytes > SLOT_BYTES {
        sys::die("free of a pointer that is no object's:", address);
    }
}

/// Aborts with a message unless a live object of the slab starts at `address`. Whether it is live
/// can be told if the slab is of the heap `mine`; else only whether some object starts there.
#[inline]
pub(crate) fn check_live(mine: Option<Own<'_>>, slot: SlotRef<'_>, address: usize) {
    let slab = slot.slab();
    if mine.is_none_or(|own| own.tag(0).owner() != slab.tag().owner()) {
        return check_start(slab, address);
    }
    let granule = slot_offset(address) / GRANULE_BYTES;
    let word = slot.map().get(granule / 64).map_or(0, Cell::get);
    if word & granule_bit(address) == 0 || !address.is_multiple_of(GRANULE_BYTES) {
        check_start(slab, address);
        sys::die("use of a freed object, at", address);
    }
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

    /// The tag of a slot of this heap that has no class and is used as `kind`.
    #[inline]
    pub(crate) fn tag(self, kind: usize) -> Tag {
        Tag::new(self.heap, kind)
    }

    /// The tag of a slab of `class` of this heap.
    #[inline]
    pub(crate) fn slab_tag(self, class: Class, kind: usize) -> Tag {
        Tag::of_slab(self.heap, class, kind)
    }
}
