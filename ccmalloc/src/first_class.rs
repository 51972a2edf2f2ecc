//! Heaps that a program makes for itself: [`Heap`].
//!
//! A `Heap` owns an arena, as each thread does: its *core*. The core's inventory (`mapping`)
//! records what to unmap when the heap is dropped.
//!
//! # Why only one thread at a time is in a core
//!
//! The core's cells are accessed through `&Heap`, `&mut Heap` and `Drop`. `Heap` is not `Sync`, so
//! all shared references are on one thread at a time, and `&Heap` is not `Send`. The heap can be
//! moved to another thread only while nothing borrows it, and the move orders what was done before
//! and after. Nothing in a core refers to the thread that made it: tags name the core.
//!
//! Other threads reach a core only through atomics: `placement` reads its counters; a hint that
//! points into it is compared with *their* arena's address; and an object that unsafe code hands to
//! `cc_dealloc` is left to its owner by the protocol of `remote`, or by the stack of `mapping` if
//! it is large.
//!
//! # Why nothing outlives its memory
//!
//! Values that hold `&'a Heap` own the objects. While such a value, a clone, or a leaked reference
//! (`Box::leak` requires `A: 'a`) may be used, the heap is borrowed and cannot be dropped or
//! emptied. Afterwards only raw pointers name the objects. `Box::pin_in` requires `A: 'static`,
//! which only a `&'static Heap` is, and that is never dropped.

use core::alloc::Layout;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::ControlFlow;
use core::panic::{RefUnwindSafe, UnwindSafe};
use core::ptr::{NonNull, null};

use crate::arena::{Arena, Own};
use crate::chunk::{SlotRef, kind};
use crate::geometry::CHUNK_BYTES;
use crate::large::{self, Contents};
use crate::outcome::{OUTCOMES, counts};
use crate::policy::{Policy, default_policy};
use crate::protocol::TaggedStack;
use crate::size_class::Class;
use crate::stats::PlacementReport;
use crate::thread;

/// A heap whose objects lie apart from all others, near their hints by a policy of its own, and are
/// freed one by one or all at once.
///
/// `&Heap` is an allocator: give it to `Box::new_in`, to a `HashMap` of hashbrown, or to anything
/// that takes an allocator of the `allocator-api2` crate. [`Heap::near`] is one that carries a
/// hint. Code that allocates by hand has [`Heap::alloc`], [`Heap::dealloc`] and [`Heap::realloc`].
///
/// Dropping the heap gives its memory back to the OS at once, in time that depends on the number of
/// chunks of 2 MiB and of large objects. Destructors of objects that are still in it do not run.
/// The heap's metadata, up to 128 KiB and 128 B a chunk (and 32 KiB more for a chunk with hinted
/// objects), is kept for the next heap.
///
/// A heap belongs to one thread at a time, and can be moved while nothing borrows it. The first
/// allocation takes 2 MiB of address space. The ambient hint of [`near`](crate::near) does not
/// apply to it.
///
/// # Examples
///
/// ```
/// # #[cfg(feature = "allocator-api2")] {
/// use allocator_api2::boxed::Box;
/// use ccmalloc::{Heap, IntoThin, Policy};
///
/// struct Node<'h> { key: u64, next: Option<Box<Node<'h>, &'h Heap>> }
///
/// let heap = Heap::with_policy(Policy::Closest).expect("memory");
/// let mut head = Box::new_in(Node { key: 1, next: None }, heap.near(&())).into_thin();
/// let next = Box::new_in(Node { key: 2, next: None }, heap.near(&head));
/// head.next = Some(next.into_thin());
/// assert_eq!(heap.placement().same_block, 1); // in the head's cache block
/// # assert_eq!(head.key + head.next.as_ref().map_or(0, |next| next.key), 3);
/// drop(head);
/// drop(heap); // and all of its memory
/// # }
/// ```
///
/// An object cannot outlive the heap,
///
/// ```compile_fail,E0505
/// # use allocator_api2::boxed::Box;
/// let heap = ccmalloc::Heap::new().unwrap();
/// let object = Box::new_in(1, &heap);
/// drop(heap);
/// assert_eq!(*object, 1);
/// ```
///
/// nor leave its thread while it is borrowed,
///
/// ```compile_fail,E0277
/// # use allocator_api2::boxed::Box;
/// let heap = ccmalloc::Heap::new().unwrap();
/// let object = Box::new_in(1, &heap);
/// std::thread::scope(|scope| {
///     scope.spawn(move || drop(object));
/// });
/// ```
///
/// and two threads cannot share one:
///
/// ```compile_fail,E0277
/// let heap = ccmalloc::Heap::new().unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| heap.stats());
/// });
/// ```
pub struct Heap {
    /// Owned by this value: it is on no stack, and no other value has it.
    core: &'static Arena,
    /// `None`: the process's default, at the time of each allocation.
    policy: Option<Policy>,
    /// The core's counters when this heap was made.
    placed_before: [u64; OUTCOMES],
    /// The core's cells are for one thread at a time.
    _not_sync: PhantomData<Cell<()>>,
}

// SAFETY: the holder of the value owns the core, and nothing in a core refers to a thread; see the
// module's documentation.
unsafe impl Send for Heap {}

// No method of a heap runs user code, so that a panic finds none half done.
impl UnwindSafe for Heap {}
impl RefUnwindSafe for Heap {}

impl Heap {
    /// An empty heap, whose hinted objects follow the process's [`default_policy`]. `None` when out
    /// of memory.
    #[must_use]
    pub fn new() -> Option<Self> {
        Self::make(None)
    }

    /// An empty heap with a policy of its own. `None` when out of memory.
    #[must_use]
    pub fn with_policy(policy: Policy) -> Option<Self> {
        Self::make(Some(policy))
    }

    fn make(policy: Option<Policy>) -> Option<Self> {
        let core = Own::acquire_core()?.arena();
        Some(Self {
            core,
            policy,
            placed_before: counts(&core.placed),
            _not_sync: PhantomData,
        })
    }

    #[inline]
    pub(crate) fn own(&self) -> Own<'static> {
        // SAFETY: this value owns the core, and the calling thread has a reference to it that no
        // other thread has (not `Sync`).
        unsafe { Own::new(self.core) }
    }

    /// Allocates `layout`, near `hint` if there is one. `None` when out of memory.
    ///
    /// **Any hint is safe.** One that does not point into this heap gets a block of its own, where
    /// later hints find room. Hints apply to objects of up to 512 bytes and alignments of up to 64.
    /// A layout of size 0 gives an aligned address without memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::alloc::Layout;
    /// let heap = ccmalloc::Heap::new().expect("memory");
    /// let layout = Layout::new::<[u64; 3]>();
    /// let parent = heap.alloc(layout, Some(std::ptr::NonNull::dangling())).expect("memory");
    /// let child = heap.alloc(layout, Some(parent)).expect("memory");
    /// // Both lie in one cache block:
    /// assert_eq!(parent.addr().get() / 64, child.addr().get() / 64);
    /// // SAFETY: allocated above with this layout. The parent's memory goes with the heap.
    /// unsafe { heap.dealloc(child, layout) };
    /// ```
    #[must_use]
    #[inline]
    pub fn alloc(&self, layout: Layout, hint: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return empty_object(layout);
        }
        match hint {
            None => self.alloc_unhinted(layout),
            Some(hint) => self.alloc_near(layout, hint),
        }
    }

    #[inline]
    fn alloc_unhinted(&self, layout: Layout) -> Option<NonNull<u8>> {
        if let Some(class) = Class::for_layout(layout.size(), layout.align()) {
            // SAFETY: this value owns the core; see `own`.
            let object = unsafe { self.core.pop(class) };
            if !object.is_null() {
                return NonNull::new(object);
            }
        }
        self.alloc_slow(layout)
    }

    #[cold]
    #[inline(never)]
    fn alloc_slow(&self, layout: Layout) -> Option<NonNull<u8>> {
        let own = self.own();
        match Class::for_layout(layout.size(), layout.align()) {
            Some(class) => NonNull::new(own.alloc_class(class)),
            None => self.alloc_large(layout, Contents::Any),
        }
    }

    fn alloc_large(&self, layout: Layout, contents: Contents) -> Option<NonNull<u8>> {
        let (own, bytes, align) = (self.own(), layout.size(), layout.align());
        NonNull::new(if large::is_span(bytes, align) {
            large::alloc(own, bytes, align, contents)
        } else {
            own.alloc_held(bytes, align, contents)
        })
    }

    fn alloc_near(&self, layout: Layout, hint: NonNull<u8>) -> Option<NonNull<u8>> {
        let policy = self.policy.unwrap_or_else(default_policy);
        let hint = hint.addr().get();
        let object = (self.own()).alloc_near(hint, layout.size(), layout.align(), policy);
        NonNull::new(object).or_else(|| self.alloc_unhinted(layout))
    }

    /// As [`Heap::alloc`], and all bytes are 0. Does not touch fresh memory from the OS.
    #[must_use]
    pub fn alloc_zeroed(&self, layout: Layout, hint: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        if layout.size() == 0 {
            return empty_object(layout);
        }
        if Class::for_layout(layout.size(), layout.align()).is_none() {
            return self.alloc_large(layout, Contents::Zero);
        }
        let object = self.alloc(layout, hint)?;
        // SAFETY: the object is fresh and has this many bytes.
        unsafe { object.write_bytes(0, layout.size()) };
        Some(object)
    }

    /// Frees one object.
    ///
    /// # Safety
    /// - `object` was allocated by this heap, since it was made or last emptied by [`Heap::clear`],
    ///   with this layout.
    /// - It is not used any more.
    #[inline]
    pub unsafe fn dealloc(&self, object: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 {
            return;
        }
        let Some(class) = Class::for_layout(layout.size(), layout.align()) else {
            // SAFETY: the caller gives up an object of this heap and layout.
            return unsafe {
                thread::dealloc_large(Some(self.own()), object.as_ptr(), layout.size());
            };
        };
        let address = object.addr().get();
        let bin = self.core.bin(class);
        // SAFETY: the object is live, so its chunk is mapped, and stays so until it is freed below.
        let slot = unsafe { SlotRef::containing(address) };
        let kind = slot.slab().tag().kind_for(bin);
        if kind <= kind::ACTIVE {
            // SAFETY: this value owns the core, and the tag says that the slab is of this bin, and
            // ACTIVE or LISTED.
            unsafe { self.core.push(bin, address, kind) };
        } else {
            // SAFETY: the slot of this address.
            unsafe { self.dealloc_slow(slot, address, layout) };
        }
    }

    /// Frees of full slabs and of co-located objects.
    ///
    /// # Safety
    /// - `slot` contains `address`, and the caller gives up the object that starts there.
    #[cold]
    #[inline(never)]
    unsafe fn dealloc_slow(&self, slot: SlotRef<'_>, address: usize, layout: Layout) {
        let own = self.own();
        if slot.slab().tag() == own.tag(kind::COLOCATED) {
            // SAFETY: a co-location slot of this arena by its tag, whose object the caller gives
            // up.
            return unsafe { own.free_colocated(slot, address, Some(layout.size())) };
        }
        // SAFETY: `slot` contains `address`, whose object the caller gives up (`# Safety`).
        unsafe { thread::dealloc_small(Some(own), slot, address, Some(layout)) };
    }

    /// Changes an object's layout: in place if possible, else by moving it near `hint`, or, without
    /// one, near where it was if a hint placed it. `None` when out of memory; the object is then as
    /// it was.
    ///
    /// # Safety
    /// - `object` was allocated by this heap, since it was made or last emptied by [`Heap::clear`],
    ///   with the layout `old`.
    /// - Unless `None` is returned, `object` is not used any more, and the result has the layout
    ///   `new`.
    #[must_use]
    pub unsafe fn realloc(
        &self,
        object: NonNull<u8>,
        old: Layout,
        new: Layout,
        hint: Option<NonNull<u8>>,
    ) -> Option<NonNull<u8>> {
        if old.size() == 0 {
            return self.alloc(new, hint);
        }
        if new.size() == 0 {
            // SAFETY: the caller gives up an object of this heap and layout, since the result is
            // not `None`.
            unsafe { self.dealloc(object, old) };
            return empty_object(new);
        }
        let own = Some(self.own());
        // SAFETY: the caller promises the object's layout; neither layout is empty.
        let near = match unsafe { thread::resize_in_place(own, object.as_ptr(), old, new) } {
            Ok(resized) => return NonNull::new(resized),
            Err(near) => near.map(|_| object),
        };
        let moved = self.alloc(new, hint.or(near))?;
        // SAFETY: both are live, have at least this many bytes, and are distinct objects.
        unsafe { object.copy_to_nonoverlapping(moved, old.size().min(new.size())) };
        // SAFETY: the caller gives the old object up.
        unsafe { self.dealloc(object, old) };
        Some(moved)
    }

    /// Gives the memory of all objects back to the OS, as dropping the heap does. Destructors of
    /// objects that are still in it do not run.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "allocator-api2")] {
    /// let mut heap = ccmalloc::Heap::new().expect("memory");
    /// for round in 0..3u64 {
    ///     let numbers = allocator_api2::boxed::Box::new_in([round; 1000], &heap);
    ///     assert_eq!(numbers.iter().sum::<u64>(), 1000 * round);
    ///     std::mem::forget(numbers);
    ///     heap.clear(); // takes `&mut`: nothing can refer into the heap after this
    ///     assert_eq!(heap.stats().chunk_bytes, 0);
    /// }
    /// # }
    /// ```
    pub fn clear(&mut self) {
        // SAFETY: `&mut` says that no value borrows the heap, so that no object of it can be used
        // or freed any more; the contracts of `dealloc` and `realloc` cover raw pointers into it.
        unsafe { self.own().release_all() };
    }

    /// How much memory the heap has mapped and uses for objects. O(1).
    #[must_use]
    pub fn stats(&self) -> HeapStats {
        HeapStats {
            chunk_bytes: self.core.chunks.get() * CHUNK_BYTES,
            large_bytes: self.core.inventory.held_bytes.get(),
        }
    }

    /// Reports where this heap's hinted objects lie. O(1). [`placement`](crate::placement) counts
    /// them too, also after the heap has been dropped.
    #[must_use]
    pub fn placement(&self) -> PlacementReport {
        PlacementReport::since(self.placed_before, &self.core.placed)
    }

    /// Whether `ptr` points into this heap. Decided without reading through it.
    #[must_use]
    pub fn contains(&self, ptr: *const u8) -> bool {
        crate::registry::is_in_heap(ptr.addr(), self.core)
    }

    /// Goes through all metadata of the heap, and describes the first contradiction. For tests.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), &'static str> {
        let own = self.own();
        own.collect_remote();
        own.check()?;
        own.check_held()
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        self.clear();
        self.own().retire_core();
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut heap = f.debug_struct("Heap");
        heap.field("policy", &self.policy)
            .field("stats", &self.stats());
        heap.finish_non_exhaustive()
    }
}

/// Arenas of dropped heaps, apart from the stack of abandoned arenas: no thread may get an arena
/// that is dropped as a whole. They are never unmapped, because other threads may still read one.
static IDLE: TaggedStack<Arena> = TaggedStack::new();

impl Own<'static> {
    /// An empty arena: one of a dropped heap, or a new one. `None` when the OS refuses memory.
    fn acquire_core() -> Option<Self> {
        match IDLE.pop() {
            // SAFETY: it was on this stack, so no thread owned it, and it is off the stack now.
            Some(core) => Some(unsafe { Own::new(core) }),
            None => Own::map(),
        }
    }

    /// Puts an empty arena aside for the next heap. The caller owns it no more.
    fn retire_core(self) {
        // SAFETY: arenas are mapped by `Own::map`, aligned to 128 KiB, for ever; this one is the
        // caller's, and on no stack.
        unsafe { IDLE.push(self.arena()) };
    }

    /// Gives all chunks and mappings back to the OS, whatever they hold, in O(chunks and mappings).
    ///
    /// # Safety
    /// - No object of the heap is used any more, nor freed.
    unsafe fn release_all(self) {
        // Every field is named, so that a new one is not forgotten here.
        let Arena {
            bins,
            active_slab,
            partial,
            open,
            unused_descs: _, // what `return_chunk` adds to
            spare,
            chunks: _, // counted down by `return_chunk`
            slots_lock,
            meta: _, // metadata stays for the next heap
            meta_left: _,
            colour: _,   // any value will do
            run_next: _, // no run
            run_end,
            latest_opening,
            freed_place: _, // any value will do
            roomy_slots,
            fresh_page,
            inventory,
            placed: _, // counts over the life of the process
            dirty,
            holder: _, // the heap, for ever
            is_shared: _,
            next_abandoned: _,
            next_arena: _,
        } = self.arena();
        // What others have freed is forgotten with the rest; but the descriptors leave the stack in
        // the order that keeps the protocol.
        dirty.0.collect(|_, _| ControlFlow::Continue(()));
        for bin in bins {
            bin.forget_all();
        }
        for list in active_slab.iter().chain(partial) {
            list.set(null());
        }
        let _slots = slots_lock.enter();
        open.set(null());
        spare.set(null());
        run_end.set(0);
        latest_opening.set(0);
        roomy_slots.set(null());
        fresh_page.set(0);
        let mut next = inventory.descs.get();
        // SAFETY: null or a descriptor of this heap, which lives for ever.
        while let Some(desc) = unsafe { next.as_ref() } {
            next = desc.next_made.get();
            // SAFETY: the caller gives up all objects; all that could refer to the chunk was reset
            // above.
            unsafe { self.return_chunk(desc) };
            desc.links.prev.set(null());
        }
        self.unmap_all_held();
    }
}

/// The address of an object of size 0.
pub(crate) fn empty_object(layout: Layout) -> Option<NonNull<u8>> {
    NonNull::new(core::ptr::without_provenance_mut(layout.align()))
}

/// Memory that a [`Heap`] has mapped and uses. Unused chunks and mappings, which the heap keeps for
/// half a second or longer, are in neither sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapStats {
    /// Bytes of 2 MiB chunks, for objects up to about 1 MB; see [`Stats`](crate::Stats).
    pub chunk_bytes: usize,
    /// Bytes of mappings, each for one larger object.
    pub large_bytes: usize,
}
