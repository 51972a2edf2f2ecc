//! From a thread to its heap, and the dispatch of every request.
//!
//! A thread has two pointers to heaps. `own` is its heap, once it has one. `fast` is what the fast paths use: `own`, or
//! [`NO_HEAP`] before the first allocation, after the thread-local state is gone, and whenever an *ambient* request is in
//! force ([`near`](crate::near), [`Region::alloc_at`](crate::Region::alloc_at)). With `NO_HEAP` every fast path falls
//! through to its slow twin, which looks at the ambient request: so hints cost the unhinted path not one instruction.

use core::alloc::Layout;
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::{NonNull, null, null_mut};
use core::sync::atomic::Ordering;

use crate::chunk::{SlotRef, kind};
use crate::colocate::colocated_run;
use crate::heap::{Heap, NO_HEAP, Own, object_number};
use crate::large::{self, Place};
use crate::policy::{Policy, default_policy};
use crate::remote::free_remote;
use crate::size_class::{Class, SMALL_BYTES_MAX};
use crate::sys;

/// What every allocation of the thread is asked to do at the moment.
#[derive(Clone, Copy)]
pub(crate) enum Ambient {
    /// Nothing special.
    None,
    /// Lie near this address.
    Near(usize, Option<Policy>),
    /// Lie at this address, if its place is free.
    At(usize),
}

struct Thread {
    /// Never null, and never dangling: [`NO_HEAP`] or this thread's heap.
    fast: Cell<*const Heap>,
    own: Cell<*const Heap>,
    ambient: Cell<Ambient>,
}

thread_local! {
    // Constant and without a destructor: such a variable is plain thread-local storage, which needs no allocation, no
    // registration, and can be used until the very end of the thread.
    static THREAD: Thread = const { Thread { fast: Cell::new(&raw const NO_HEAP), own: Cell::new(null()), ambient: Cell::new(Ambient::None) } };
}

#[inline]
fn fast() -> &'static Heap {
    // SAFETY: the field's invariant; heaps live for ever.
    THREAD.with(|thread| unsafe { &*thread.fast.get() })
}

/// This thread's heap, if it has one.
#[inline]
fn existing() -> Option<Own<'static>> {
    // SAFETY: `own` is null or this thread's heap, set by `own_heap`, and heaps live for ever.
    THREAD.with(|thread| unsafe { thread.own.get().as_ref().map(|heap| Own::new(heap)) })
}

/// This thread's heap; acquires one first if need be. `None` when the OS refuses memory.
pub(crate) fn own_heap() -> Option<Own<'static>> {
    if let Some(own) = existing() {
        return Some(own);
    }
    let own = Own::acquire()?;
    THREAD.with(|thread| {
        thread.own.set(own.heap());
        thread.set_ambient(thread.ambient.get());
    });
    // After the heap is in place: registering may allocate.
    sys::on_thread_exit((&raw const *own.heap()).cast(), at_thread_exit);
    Some(own)
}

/// The destructor of the thread's key. Later destructors may allocate again: the thread then gets a heap anew, and this runs
/// once more (up to the OS's limit on rounds; a heap acquired after the last round is lost to other threads, not to its objects).
///
/// # Safety
/// - Called by the OS alone, at the end of a thread.
unsafe extern "C" fn at_thread_exit(_heap: *mut c_void) {
    let Some(own) = existing() else { return };
    THREAD.with(|thread| {
        thread.own.set(null());
        thread.fast.set(&raw const NO_HEAP);
    });
    own.abandon();
}

impl Thread {
    /// Sets the ambient request and keeps `fast` in step with it.
    fn set_ambient(&self, ambient: Ambient) {
        self.ambient.set(ambient);
        let own = self.own.get();
        self.fast.set(match ambient {
            Ambient::None if !own.is_null() => own,
            _ => &raw const NO_HEAP,
        });
    }
}

/// Puts the ambient request that was in force before back, also when the code under it panics.
pub(crate) struct AmbientGuard(Ambient);

impl AmbientGuard {
    /// Puts `ambient` in force.
    pub(crate) fn set(ambient: Ambient) -> Self {
        THREAD.with(|thread| {
            let before = thread.ambient.get();
            thread.set_ambient(ambient);
            Self(before)
        })
    }
}

impl Drop for AmbientGuard {
    fn drop(&mut self) {
        THREAD.with(|thread| thread.set_ambient(self.0));
    }
}

/// Allocates without a hint of its own; obeys the ambient request. Null when out of memory.
#[inline]
pub(crate) fn alloc(layout: Layout) -> *mut u8 {
    if let Some(class) = Class::for_layout(layout.size(), layout.align()) {
        // SAFETY: `fast` is the calling thread's heap or NO_HEAP.
        let object = unsafe { fast().pop(class) };
        if !object.is_null() {
            return object;
        }
    }
    alloc_slow(layout)
}

#[cold]
#[inline(never)]
fn alloc_slow(layout: Layout) -> *mut u8 {
    match THREAD.with(|thread| thread.ambient.get()) {
        Ambient::None => {}
        Ambient::Near(hint, policy) => return alloc_near(layout, hint, policy),
        Ambient::At(address) => {
            let object = own_heap().map_or(null_mut(), |own| {
                own.claim_at(address, layout.size(), layout.align())
            });
            if !object.is_null() {
                return object;
            }
        }
    }
    alloc_unhinted(layout)
}

/// Allocates without regard to any hint.
fn alloc_unhinted(layout: Layout) -> *mut u8 {
    let Some(own) = own_heap() else {
        return null_mut();
    };
    match Class::for_layout(layout.size(), layout.align()) {
        Some(class) => own.alloc_class(class),
        None => large::alloc(own, layout.size(), layout.align()),
    }
}

/// Allocates near `hint`, which may be any number. Null when out of memory.
pub(crate) fn alloc_near(layout: Layout, hint: usize, policy: Option<Policy>) -> *mut u8 {
    let Some(own) = own_heap() else {
        return null_mut();
    };
    let object = own.alloc_near(
        hint,
        layout.size(),
        layout.align(),
        policy.unwrap_or_else(default_policy),
    );
    if object.is_null() {
        alloc_unhinted(layout)
    } else {
        object
    }
}

/// Whether objects of this layout come from slabs and co-location pages.
#[inline]
fn is_small(layout: Layout) -> bool {
    layout.size() <= SMALL_BYTES_MAX && layout.align() <= SMALL_BYTES_MAX
}

/// Frees an object.
///
/// # Safety
/// - `object` was allocated by this allocator with `layout` and is not used any more.
#[inline]
pub(crate) unsafe fn dealloc(object: *mut u8, layout: Layout) {
    if !is_small(layout) {
        // SAFETY: the caller's promise.
        return unsafe { dealloc_large(object, layout.size()) };
    }
    let heap = fast();
    // SAFETY: the object is live, so its chunk is mapped, and stays so until it is freed below.
    let slot = unsafe { SlotRef::containing(object.addr()) };
    // The kind, if the slab is this thread's; some large number if it is not.
    let kind = slot.slab().tag.load(Ordering::Relaxed) ^ (&raw const *heap).addr();
    if kind <= kind::LISTED {
        // SAFETY: a slab is never tagged with NO_HEAP, so `heap` is this thread's own, and its tag says ACTIVE or LISTED.
        unsafe { heap.push(slot, object.addr(), kind == kind::LISTED) };
    } else {
        dealloc_slow(slot, object.addr(), layout.size());
    }
}

/// Frees of full slabs, of co-located objects, under an ambient request, and of other threads' objects.
#[cold]
#[inline(never)]
fn dealloc_slow(slot: SlotRef<'_>, address: usize, bytes: usize) {
    let tag = slot.slab().tag.load(Ordering::Relaxed);
    let owner = tag & !kind::MASK;
    let own = existing().filter(|own| own.tag(0) == owner);
    match (tag & kind::MASK, own) {
        _ if owner == 0 => sys::die("free of a pointer to nothing allocated:", address),
        (kind::SPAN | kind::SPAN_INSIDE, _) => sys::die("free with a wrong size, of", address),
        // SAFETY: the tag says that the slab is this thread's own, and of this kind.
        (kind::ACTIVE, Some(own)) => unsafe { own.heap().push(slot, address, false) },
        // SAFETY: as above.
        (kind::LISTED, Some(own)) => unsafe { own.heap().push(slot, address, true) },
        (kind::FULL, Some(own)) => own.push_full(slot, address),
        (kind::COLOCATED, Some(own)) => own.free_colocated(slot, address, bytes),
        (kind::COLOCATED, None) => {
            if let Some((first, granules)) = colocated_run(address, bytes) {
                free_remote(slot, owner, first, granules, address);
            }
        }
        (_, _) => {
            let index = object_number(slot.slab(), address);
            free_remote(slot, owner, index, 1, address);
        }
    }
}

/// Frees an object of `bytes`, above the largest class.
///
/// # Safety
/// - As for [`dealloc`].
#[cold]
#[inline(never)]
unsafe fn dealloc_large(object: *mut u8, bytes: usize) {
    // SAFETY: the object is live, so its chunk stays mapped until it is freed below.
    let place = unsafe { large::find(object.addr()) };
    large::expect_bytes(&place, object.addr(), bytes);
    match place {
        // SAFETY: found just now; the caller gives the object up.
        Place::Mapping(base, bytes) => unsafe { large::free_mapping(base, bytes) },
        Place::Span(slot) => {
            let owner = slot.slab().tag.load(Ordering::Relaxed) & !kind::MASK;
            match existing().filter(|own| own.tag(0) == owner) {
                Some(own) => own.free_span(slot),
                None => free_remote(slot, owner, 0, 1, object.addr()),
            }
        }
    }
}

/// Allocates zeroed memory. Null when out of memory.
pub(crate) fn alloc_zeroed(layout: Layout) -> *mut u8 {
    let object = alloc(layout);
    if !object.is_null() && (is_small(layout) || !large::is_fresh(object)) {
        // SAFETY: the object is fresh and has this many bytes.
        unsafe { object.write_bytes(0, layout.size()) };
    }
    object
}

/// Changes the size of an object: in place where it can, else by moving it, near `hint` if there is one, else near where it was
/// if it was co-located. Null when out of memory; the object is then as it was.
///
/// # Safety
/// - `object` was allocated by this allocator with `layout`; the caller uses what is returned instead of it, unless that is null.
pub(crate) unsafe fn realloc(
    object: *mut u8,
    layout: Layout,
    new_bytes: usize,
    hint: Option<NonNull<u8>>,
) -> *mut u8 {
    let Ok(new_layout) = Layout::from_size_align(new_bytes, layout.align()) else {
        return null_mut();
    };
    let mut near = hint.map(|hint| hint.addr().get());
    match (is_small(layout), is_small(new_layout)) {
        (true, still_small) => {
            // SAFETY: the object is live, so its chunk is mapped.
            let slot = unsafe { SlotRef::containing(object.addr()) };
            let tag = slot.slab().tag.load(Ordering::Relaxed);
            match tag & kind::MASK {
                kind::ACTIVE | kind::LISTED | kind::FULL => {
                    if Class::for_layout(new_bytes, layout.align())
                        .is_some_and(|class| class.bytes() == slot.slab().object_bytes.get())
                    {
                        return object;
                    }
                }
                kind::COLOCATED => {
                    let own = existing().filter(|own| own.tag(kind::COLOCATED) == tag);
                    if let Some(own) = own {
                        if still_small
                            && own.resize_colocated(slot, object.addr(), layout.size(), new_bytes)
                        {
                            return object;
                        }
                        near = near.or(Some(object.addr()));
                    }
                }
                _ => sys::die("realloc with a wrong size, of", object.addr()),
            }
        }
        (false, false) => {
            // SAFETY: the caller's promise.
            let resized = unsafe { large::resize(object, layout.align(), new_bytes) };
            if !resized.is_null() {
                return resized;
            }
        }
        (false, true) => {}
    }
    let moved = match near {
        Some(near) => alloc_near(new_layout, near, None),
        None => alloc(new_layout),
    };
    if !moved.is_null() {
        // SAFETY: both are live, have at least this many bytes, and are distinct objects.
        unsafe { core::ptr::copy_nonoverlapping(object, moved, layout.size().min(new_bytes)) };
        // SAFETY: the caller gives the old object up.
        unsafe { dealloc(object, layout) };
    }
    moved
}

/// Checks the calling thread's heap. For tests.
pub(crate) fn check() -> Result<(), &'static str> {
    existing().map_or(Ok(()), |own| {
        own.collect_remote();
        own.check()
    })
}
