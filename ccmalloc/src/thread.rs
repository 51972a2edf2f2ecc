//! From a thread to its arena, and the dispatch of every request.
//!
//! A thread has two pointers to arenas. `own` is its arena, once it has one. The fast paths use
//! `fast`: `own`, or [`NO_ARENA`] before the first allocation, after the thread-local state is
//! gone, and while an *ambient* request is in force ([`near`](crate::near),
//! [`Region::alloc_at`](crate::Region::alloc_at)). With `NO_ARENA` each fast path falls through to
//! its slow path, which looks at the ambient request.

#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_env = "gnu",
    not(miri)
)))]
mod local;
#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_env = "gnu",
    not(miri)
))]
#[path = "thread/local_static.rs"]
mod local;

use core::alloc::Layout;
use core::cell::Cell;
use core::ffi::c_void;
use core::ptr::{NonNull, null, null_mut};

use crate::abandoned::{self, Borrowed};
use crate::arena::{Arena, NO_ARENA, Own, check_live, check_start};
use crate::chunk::{SlotRef, Tag, kind};
use crate::geometry::slot_offset;
use crate::large::{self, Contents, Place};
use crate::pages::others_run;
use crate::policy::{Policy, default_policy};
use crate::registry;
use crate::remote::{arena_of, free_in_others_slab, free_remote};
use crate::size_class::{Class, SMALL_BYTES_MAX, natural_align};
use crate::{sweep, sys};
use local::{fast_arena, with_thread};

/// After how many allocations by the slow path a thread looks at the clock.
const SLOW_A_TICK: usize = 16;

/// A request that holds for every allocation of the thread at the moment.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Ambient {
    /// None. Zero bytes are this.
    None = 0,
    /// Lie near this address.
    Near(usize, Option<Policy>),
    /// Lie at this address, if its place is free.
    At(usize),
    /// Be the object of this layout at this address, which has already been made. Holds once.
    Ready(usize, Layout),
}

/// A thread's state. `repr(C)`, and zero but for the first field at first: see
/// `local::with_thread`.
#[repr(C)]
pub(crate) struct Thread {
    /// Never null, and never dangling: [`NO_ARENA`] or this thread's arena.
    pub(crate) fast: Cell<*const Arena>,
    own: Cell<*const Arena>,
    ambient: Cell<Ambient>,
    /// Counts allocations by the slow path, for [`sweep::tick`].
    slow: Cell<usize>,
}

impl Thread {
    pub(crate) const fn new() -> Self {
        Self {
            fast: Cell::new(NO_ARENA),
            own: Cell::new(null()),
            ambient: Cell::new(Ambient::None),
            slow: Cell::new(0),
        }
    }

    /// Sets the ambient request and keeps `fast` in step with it.
    #[inline]
    fn set_ambient(&self, ambient: Ambient) {
        self.ambient.set(ambient);
        let own = self.own.get();
        self.fast.set(match ambient {
            Ambient::None if !own.is_null() => own,
            _ => NO_ARENA,
        });
    }
}

/// The arena of the fast paths.
#[inline]
pub(crate) fn fast() -> &'static Arena {
    // SAFETY: the field's invariant; arenas live for ever.
    unsafe { &*fast_arena() }
}

/// This thread's arena, if it has one.
#[inline]
pub(crate) fn existing() -> Option<Own<'static>> {
    // SAFETY: `own` is null or this thread's arena, set by `own_arena`, and arenas live for ever.
    with_thread(|thread| unsafe { thread.own.get().as_ref().map(|arena| Own::new(arena)) })
}

/// Calls `f` with this thread's arena, or one that many threads share. `None` when the OS refuses
/// memory.
#[inline]
fn with_arena<R>(f: impl FnOnce(Own<'static>) -> R) -> Option<R> {
    match own_arena() {
        Some(own) => Some(f(own)),
        None => abandoned::borrow_shared().map(|borrowed| f(borrowed.own())),
    }
}

/// This thread's arena; acquires one first if need be. `None` when the OS refuses memory, or many
/// threads have arenas.
pub(crate) fn own_arena() -> Option<Own<'static>> {
    if let Some(own) = existing() {
        return Some(own);
    }
    let own = Own::acquire()?;
    with_thread(|thread| {
        thread.own.set(own.arena());
        thread.set_ambient(thread.ambient.get());
    });
    // After the arena is in place: registering may allocate.
    sys::on_thread_exit((&raw const *own.arena()).cast(), at_thread_exit);
    Some(own)
}

/// The destructor of the thread's key. Later destructors may allocate again: the thread then gets
/// another arena, and this runs once more, up to the OS's limit on rounds.
///
/// # Safety
/// - Called by the OS alone, at the end of a thread.
unsafe extern "C" fn at_thread_exit(_arena: *mut c_void) {
    let Some(own) = existing() else { return };
    with_thread(|thread| {
        thread.own.set(null());
        thread.fast.set(NO_ARENA);
    });
    own.abandon();
}

/// Restores the ambient request that was in force before, also when the code under it panics.
pub(crate) struct AmbientGuard(Ambient);

impl AmbientGuard {
    #[inline]
    pub(crate) fn set(ambient: Ambient) -> Self {
        with_thread(|thread| {
            let before = thread.ambient.get();
            thread.set_ambient(ambient);
            Self(before)
        })
    }

    /// Replaces the request; neither the old one, which is returned, nor the new one is
    /// [`Ambient::None`].
    #[inline]
    pub(crate) fn replace(&self, ambient: Ambient) -> Ambient {
        with_thread(|thread| thread.ambient.replace(ambient))
    }
}

impl Drop for AmbientGuard {
    #[inline]
    fn drop(&mut self) {
        with_thread(|thread| thread.set_ambient(self.0));
    }
}

/// An object of `class` that is at hand for the fast paths, or null.
#[inline(always)]
fn pop(class: Option<Class>) -> *mut u8 {
    // SAFETY: `fast` is the calling thread's arena or NO_ARENA.
    class.map_or(null_mut(), |class| unsafe { fast().pop(class) })
}

/// Allocates without a hint of its own; obeys the ambient request. Null when out of memory.
#[inline(always)]
pub(crate) fn alloc(layout: Layout) -> *mut u8 {
    let object = pop(Class::for_common_layout(layout.size(), layout.align()));
    if object.is_null() {
        alloc_slow(layout)
    } else {
        object
    }
}

/// As [`alloc`], of `bytes` at the alignment that C's `malloc` gives them, if an object is at hand.
#[inline(always)]
pub(crate) fn at_hand_natural(bytes: usize) -> *mut u8 {
    pop(Class::for_malloc(bytes))
}

/// [`at_hand_natural`] where no object is at hand.
#[inline(never)]
pub(crate) fn alloc_natural_slow(bytes: usize) -> *mut u8 {
    Layout::from_size_align(bytes, natural_align(bytes)).map_or(null_mut(), alloc_slow)
}

/// Allocations of uncommon layouts, those that find nothing at hand, and those under an ambient
/// request.
#[inline(never)]
fn alloc_slow(layout: Layout) -> *mut u8 {
    let (ambient, slow) = with_thread(|thread| {
        let slow = thread.slow.get().wrapping_add(1);
        thread.slow.set(slow);
        (thread.ambient.get(), slow)
    });
    // First: ccmorph makes millions of these requests.
    if let Ambient::Ready(address, of) = ambient
        && of == layout
    {
        with_thread(|thread| thread.ambient.set(Ambient::At(0)));
        return core::ptr::with_exposed_provenance_mut(address);
    }
    if slow.is_multiple_of(SLOW_A_TICK) {
        sweep::tick(sys::milliseconds());
    }
    alloc_slow_at(layout, ambient)
}

/// [`alloc_slow`] of all but [`Ambient::Ready`].
#[inline(never)]
fn alloc_slow_at(layout: Layout, ambient: Ambient) -> *mut u8 {
    let (bytes, align) = (layout.size(), layout.align());
    let object = match ambient {
        Ambient::Near(hint, policy) => return alloc_near(layout, hint, policy),
        Ambient::At(place) => {
            own_arena().map_or(null_mut(), |own| own.claim_at(place, bytes, align))
        }
        Ambient::None | Ambient::Ready(..) => pop(Class::for_layout(bytes, align)),
    };
    if object.is_null() {
        alloc_unhinted(layout)
    } else {
        object
    }
}

/// Allocates without a hint.
#[inline(never)]
fn alloc_unhinted(layout: Layout) -> *mut u8 {
    let alloc = |own: Own<'static>| match Class::for_layout(layout.size(), layout.align()) {
        Some(class) => own.alloc_class(class),
        None => large::alloc(own, layout.size(), layout.align(), Contents::Any),
    };
    with_arena(alloc).unwrap_or(null_mut())
}

/// Allocates near `hint`, which may be any number. Null when out of memory.
#[inline]
pub(crate) fn alloc_near(layout: Layout, hint: usize, policy: Option<Policy>) -> *mut u8 {
    let policy = policy.unwrap_or_else(default_policy);
    let alloc = |own: Own<'static>| own.alloc_near(hint, layout.size(), layout.align(), policy);
    match existing().map_or_else(|| with_arena(alloc), |own| Some(alloc(own))) {
        Some(object) if !object.is_null() => object,
        _ => alloc_unhinted(layout),
    }
}

/// Allocates near what `hint` means. Null when out of memory.
#[cfg(any(
    feature = "allocator-api2",
    feature = "allocator-api2-04",
    feature = "nightly"
))]
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn alloc_near_target<T: ?Sized>(layout: Layout, hint: &T) -> *mut u8 {
    let (own, address) = (existing(), (&raw const *hint).addr());
    let (bytes, align) = (layout.size(), layout.align());
    match own.and_then(|own| own.alloc_beside(address, bytes, align, default_policy())) {
        Some(object) if !object.is_null() => object,
        Some(_) => alloc_unhinted(layout),
        None => alloc_near(layout, crate::target::target(own, hint), None),
    }
}

/// Whether objects of this layout come from slabs and co-location pages.
#[inline]
pub(crate) fn is_small(layout: Layout) -> bool {
    layout.size() <= SMALL_BYTES_MAX && layout.align() <= SMALL_BYTES_MAX
}

/// Frees an object.
///
/// # Safety
/// - `object` was allocated by this allocator with `layout` and is not used any more.
#[inline(always)]
pub(crate) unsafe fn dealloc(object: *mut u8, layout: Layout) {
    match Class::for_common_layout(layout.size(), layout.align()) {
        // SAFETY: the caller gives up an object of this layout; `class` is the layout's.
        Some(class) => unsafe { dealloc_class(fast(), object, layout, class) },
        // SAFETY: the caller gives up an object of this layout.
        None => unsafe { dealloc_uncommon(object, layout) },
    }
}

/// Frees objects of one layout: as [`dealloc`] for each, which looks the class up once.
///
/// # Safety
/// - As for [`dealloc`], for each of the objects, each there once.
#[inline]
pub(crate) unsafe fn dealloc_each(objects: impl Iterator<Item = *mut u8>, layout: Layout) {
    let Some(class) = Class::for_layout(layout.size(), layout.align()) else {
        for object in objects {
            // SAFETY: the caller gives up each object, which has this layout, and is there once.
            unsafe { dealloc_large(existing(), object, layout.size()) };
        }
        return;
    };
    // The iterator cannot change that this is the thread's arena, or NO_ARENA, with which all frees
    // take the slow path.
    let arena = fast();
    for object in objects {
        // SAFETY: the caller gives up each object once; `class` is the layout's, `arena` as said
        // above.
        unsafe { dealloc_class(arena, object, layout, class) };
    }
}

/// As [`dealloc`], for any layout.
///
/// # Safety
/// - As for [`dealloc`].
#[inline(never)]
unsafe fn dealloc_uncommon(object: *mut u8, layout: Layout) {
    match Class::for_layout(layout.size(), layout.align()) {
        // SAFETY: the caller gives up an object of this layout; `class` is the layout's.
        Some(class) => unsafe { dealloc_class(fast(), object, layout, class) },
        // SAFETY: the caller gives up an object of this layout.
        None => unsafe { dealloc_large(existing(), object, layout.size()) },
    }
}

/// As [`dealloc`], for a layout that has a class.
///
/// # Safety
/// - As for [`dealloc`], `class` is that of the layout, and `arena` the calling thread's or
///   [`NO_ARENA`].
#[inline(always)]
unsafe fn dealloc_class(arena: &'static Arena, object: *mut u8, layout: Layout, class: Class) {
    let address = object.addr();
    // By the size, not by the address: the next allocation of the class then need not wait for the
    // loads that lead from the address to the bin.
    let bin = arena.bin(class);
    // SAFETY: small objects lie in chunks, and a chunk stays mapped until its objects are freed.
    let slot = unsafe { SlotRef::containing(address) };
    let kind = slot.slab().tag().kind_for(bin);
    if kind <= kind::ACTIVE {
        // SAFETY: a slab is never tagged with NO_ARENA, so `arena` is this thread's own; the tag
        // says that the slab is of this bin, and ACTIVE or LISTED.
        unsafe { arena.push(bin, address, kind) };
    } else {
        // SAFETY: the caller gives up the object, which is small, and so lies in a chunk.
        unsafe { dealloc_elsewhere(object, layout) };
    }
}

/// Frees an object that is not in a slab of the thread's own with room.
///
/// # Safety
/// - As for [`dealloc`], and the object lies in a chunk.
#[inline(never)]
unsafe fn dealloc_elsewhere(object: *mut u8, layout: Layout) {
    if let Some((tag, _)) = Tag::find(object.addr())
        && Class::for_layout(layout.size(), layout.align()) == Some(tag.class())
        // SAFETY: the caller gives up the object.
        && unsafe { free_in_others_slab(tag, existing(), object.addr()) }
    {
        return;
    }
    // SAFETY: the chunk stays mapped until its objects are freed.
    let slot = unsafe { SlotRef::containing(object.addr()) };
    // SAFETY: the slot of this address.
    unsafe { dealloc_slow(slot, object.addr(), Some(layout)) };
}

/// Frees of full slabs, of co-located objects, under an ambient request, and of other threads'
/// objects. `asked` is the object's layout; without one, the object may also be a span.
///
/// # Safety
/// - `slot` contains `address`, and the caller gives up the object that starts there.
#[inline]
pub(crate) unsafe fn dealloc_slow(slot: SlotRef<'_>, address: usize, asked: Option<Layout>) {
    let arena = fast();
    if slot.slab().tag() == Tag::new((&raw const *arena).addr(), kind::COLOCATED) {
        // SAFETY: no slot is tagged with NO_ARENA, so the arena is this thread's own.
        let own = unsafe { Own::new(arena) };
        let bytes = asked.map(|layout| layout.size());
        // SAFETY: `slot` contains `address`, and its tag says that it is a co-location slot of this
        // arena.
        return unsafe { free_colocated(own, slot, address, bytes) };
    }
    // SAFETY: `slot` contains `address`, whose object the caller gives up (`# Safety`).
    unsafe { dealloc_small(existing(), slot, address, asked) };
}

/// Frees an object from slabs or co-location pages, or without a layout also a span: at once if it
/// is of the arena `mine`, else by leaving it to its arena.
///
/// # Safety
/// - `slot` contains `address`, and the caller gives up the object that starts there.
#[inline(never)]
pub(crate) unsafe fn dealloc_small(
    mine: Option<Own<'static>>,
    slot: SlotRef<'_>,
    address: usize,
    asked: Option<Layout>,
) {
    if slot.slot() == 0 {
        // No small object lies there, but every mapping starts there.
        sys::die("free with a wrong size, or of metadata:", address);
    }
    let tag = slot.slab().tag();
    if tag == Tag::FREE {
        return sys::refuse("free of a pointer to nothing allocated:", address);
    }
    let mine = mine.filter(|own| own.tag(0).owner() == tag.owner());
    let arena = mine.map_or_else(|| arena_of(address, tag), Own::arena);
    let borrowed = match mine {
        Some(_) => None,
        None => abandoned::borrow(arena),
    };
    let own = mine.or(borrowed.as_ref().map(Borrowed::own));
    if borrowed.is_some() && registry::owner(address) != registry::Owner::Arena(arena) {
        return sys::refuse("double free of", address);
    }
    // Again: another borrower may have changed the kind until then.
    let tag = slot.slab().tag();
    if tag == Tag::FREE {
        return sys::refuse("double free of", address);
    }
    match tag.kind() {
        kind::COLOCATED => {
            let bytes = asked.map(|layout| layout.size());
            if let Some(own) = own {
                // SAFETY: `slot` contains `address`, and is a co-location slot of this arena by its
                // tag.
                return unsafe { free_colocated(own, slot, address, bytes) };
            }
            // SAFETY: a co-location slot by its tag, and the caller's object is live.
            let ends = unsafe { slot.ends() };
            others_run(ends, address, bytes);
            // SAFETY: it is not slot 0: see above.
            unsafe { free_remote(slot, arena, address, address) };
        }
        kind::SPAN if asked.is_none() => {
            // SAFETY: a span's first slot by its tag, of `arena`; the caller gives its object up.
            unsafe { free_span(slot, own, arena, address) };
        }
        kind::SPAN | kind::SPAN_INSIDE => sys::die("free with a wrong size, of", address),
        kind => {
            let class = tag.class();
            check_class(class, address, asked);
            let Some(own) = own else {
                check_start(class, address);
                // SAFETY: it is not slot 0: see above.
                return unsafe { free_remote(slot, arena, address, address) };
            };
            let bin = own.arena().bin(class);
            match kind {
                // SAFETY: the tag says that the slab is this thread's own, and of this class and
                // kind.
                kind::ACTIVE | kind::LISTED => unsafe { own.arena().push(bin, address, kind) },
                _ => own.push_full(slot, address),
            }
        }
    }
}

/// # Safety
/// - As for [`Own::free_colocated`].
#[inline(never)]
unsafe fn free_colocated(own: Own<'_>, slot: SlotRef<'_>, address: usize, bytes: Option<usize>) {
    // SAFETY: the caller promises a co-location slot of this arena with an object that it gives up.
    unsafe { own.free_colocated(slot, address, bytes) };
}

/// Aborts with a message when an object that was allocated as `asked` does not lie in a slab of
/// `class`.
fn check_class(class: Class, address: usize, asked: Option<Layout>) {
    if let Some(layout) = asked
        && Class::for_layout(layout.size(), layout.align()) != Some(class)
    {
        sys::die("free with a wrong size, of", address);
    }
}

/// Frees the span whose first slot is `slot`: at once if its arena is `own`, else by leaving it to
/// its `arena`.
///
/// # Safety
/// - `slot` contains `address`, `own` or else `arena` is its arena, and the caller gives the object
///   in it up.
unsafe fn free_span<'a>(slot: SlotRef<'a>, own: Option<Own<'a>>, arena: &Arena, address: usize) {
    if slot_offset(address) != large::span_offset(slot) {
        sys::die("free of a pointer that is no object's:", address);
    }
    match own {
        Some(own) => own.free_span(slot),
        // SAFETY: a span does not start in slot 0; the caller promises the rest.
        None => unsafe { free_remote(slot, arena, slot.base().addr(), address) },
    }
}

/// Frees an object without a class, of `bytes` or of as many as may be used: at once if it is of
/// the arena `mine` or of none, else by leaving it to its arena.
///
/// # Safety
/// - As for [`dealloc`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn dealloc_large(mine: Option<Own<'static>>, object: *mut u8, bytes: usize) {
    // SAFETY: the object is live, so its chunk stays mapped until it is freed below.
    let place = unsafe { large::find(object.addr()) };
    large::expect_bytes(&place, object.addr(), bytes);
    match place {
        // SAFETY: found just now; the caller gives the object up.
        Place::Mapping(base, bytes, huge) => unsafe { large::free_mapping(base, bytes, huge) },
        Place::Span(slot) => {
            // SAFETY: the slot of this address.
            unsafe { dealloc_small(mine, slot, object.addr(), None) };
        }
        Place::Held(mapping) => match mine.filter(|own| mapping.is_in(&own.inventory)) {
            Some(own) => own.free_held(mapping),
            None => mapping.leave_to_heap(object.addr()),
        },
    }
}

/// Allocates zeroed memory. Null when out of memory.
pub(crate) fn alloc_zeroed(layout: Layout) -> *mut u8 {
    if Class::for_layout(layout.size(), layout.align()).is_none() {
        let alloc = |own| large::alloc(own, layout.size(), layout.align(), Contents::Zero);
        return with_arena(alloc).unwrap_or(null_mut());
    }
    let object = alloc(layout);
    if !object.is_null() {
        // SAFETY: the object is fresh and has this many bytes.
        unsafe { object.write_bytes(0, layout.size()) };
    }
    object
}

/// Changes the size of an object: in place if possible, else by moving it near `hint`, or, without
/// one, near where it was if it was co-located. Null when out of memory; the object is then as it
/// was.
///
/// # Safety
/// - `object` was allocated by this allocator with `layout`; the caller uses what is returned
///   instead of it, unless that is null.
pub(crate) unsafe fn realloc(
    object: *mut u8,
    layout: Layout,
    new_bytes: usize,
    hint: Option<NonNull<u8>>,
) -> *mut u8 {
    match Layout::from_size_align(new_bytes, layout.align()) {
        // SAFETY: the caller promises that the object has this layout, and uses the result instead.
        Ok(new_layout) => unsafe { resize(object, layout, new_layout, hint) },
        Err(_) => null_mut(),
    }
}

/// As [`realloc`], also to another alignment.
///
/// # Safety
/// - As for [`realloc`].
pub(crate) unsafe fn resize(
    object: *mut u8,
    layout: Layout,
    new_layout: Layout,
    hint: Option<NonNull<u8>>,
) -> *mut u8 {
    // SAFETY: the caller promises that the object has this layout, and uses the result instead.
    let stayed_near = match unsafe { resize_in_place(existing(), object, layout, new_layout) } {
        Ok(resized) => return resized,
        Err(near) => near,
    };
    let moved = match hint.map(|hint| hint.addr().get()).or(stayed_near) {
        Some(near) => alloc_near(new_layout, near, None),
        None => alloc(new_layout),
    };
    if !moved.is_null() {
        let kept = layout.size().min(new_layout.size());
        // SAFETY: both are live, have at least this many bytes, and are distinct objects.
        unsafe { core::ptr::copy_nonoverlapping(object, moved, kept) };
        // SAFETY: the caller gives the old object up.
        unsafe { dealloc(object, layout) };
    }
    moved
}

/// Tries to give an object a new layout without copying it. If that is impossible, the object is as
/// it was, and the error has the hint to move it by. `mine` is the calling thread's arena or its
/// heap's.
///
/// # Safety
/// - As for [`realloc`].
pub(crate) unsafe fn resize_in_place(
    mine: Option<Own<'static>>,
    object: *mut u8,
    layout: Layout,
    new_layout: Layout,
) -> Result<*mut u8, Option<usize>> {
    let (new_bytes, new_align) = (new_layout.size(), new_layout.align());
    let aligned = object.addr() & (new_align - 1) == 0;
    match (is_small(layout), is_small(new_layout)) {
        (true, still_small) => {
            // SAFETY: the object is live, so its chunk is mapped.
            let slot = unsafe { SlotRef::containing(object.addr()) };
            let tag = slot.slab().tag();
            match tag.kind() {
                // A mapping starts with its object's bytes, in the place of a tag.
                _ if slot.slot() == 0 => {
                    sys::die("realloc with a wrong size, of", object.addr());
                }
                _ if tag == Tag::FREE => sys::die("use of a freed object, at", object.addr()),
                kind::ACTIVE | kind::LISTED | kind::FULL => {
                    check_class(tag.class(), object.addr(), Some(layout));
                    if aligned && Class::for_layout(new_bytes, new_align) == Some(tag.class()) {
                        // An object that is moved is checked when it is freed.
                        check_live(mine, slot, object.addr());
                        return Ok(object);
                    }
                }
                kind::COLOCATED => {
                    let own = mine.filter(|own| own.tag(kind::COLOCATED) == tag);
                    if let Some(own) = own {
                        let (address, old_bytes) = (object.addr(), Some(layout.size()));
                        if still_small
                            && aligned
                            // SAFETY: the object's slot, a co-location slot of this arena by its
                            // tag.
                            && unsafe { own.resize_colocated(slot, address, old_bytes, new_bytes) }
                        {
                            return Ok(object);
                        }
                        return Err(Some(object.addr()));
                    }
                }
                _ => sys::die("realloc with a wrong size, of", object.addr()),
            }
        }
        (false, false) => {
            if aligned {
                // SAFETY: the caller promises the object's layout; the address is aligned for the
                // new one.
                let resized = unsafe { large::resize(mine, object, layout, new_layout) };
                if !resized.is_null() {
                    return Ok(resized);
                }
            }
        }
        (false, true) => {}
    }
    Err(None)
}

/// Checks the calling thread's arena. For tests.
pub(crate) fn check() -> Result<(), &'static str> {
    existing().map_or(Ok(()), |own| {
        own.collect_remote();
        own.check()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_starts_without_an_arena() {
        // The library's own tests run under the system's allocator: a fresh thread has allocated
        // nothing here.
        std::thread::spawn(|| {
            with_thread(|thread| {
                let new = Thread::new();
                assert_eq!(thread.fast.get(), new.fast.get());
                assert_eq!(thread.own.get(), new.own.get());
                assert!(matches!(thread.ambient.get(), Ambient::None));
            });
        })
        .join()
        .unwrap();
    }
}
