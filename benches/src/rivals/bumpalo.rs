//! Rival: bumpalo, an arena that serves addresses one below the other and takes nothing back but what it served last.
//!
//! To build a structure once, nothing allocates faster or packs closer, so the Olden programs are held against it. It is no allocator for programs that go on: all that they
//! free, and all that a vector leaves behind when it grows, stays theirs to the end. So it stands in [`ARENAS`](super::ARENAS), not among the
//! [`ALLOCATORS`](super::ALLOCATORS) that every workload knows.
//!
//! bumpalo is meant to be called with an arena at hand. As the allocator of a whole process it gets an arena a thread, which a thread that ends leaves behind: others may
//! hold objects of it. What bumpalo's own `Allocator` does on growing, shrinking and freeing is what is done here, the last object of an arena being the only one that it can
//! extend or take back. An object of another thread never is the last one of this thread's arena, so it is freed by doing nothing.
//!
//! The arenas' chunks come from the global allocator, which is this one. So a thread that is about to ask for a chunk says so first, and what it asks for then is the
//! system's. That it will ask can be told in advance from the room left in the chunk; the way without costs one thread-local read more than a call of bumpalo
//! itself.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use allocator_api2::alloc::Allocator;
use bumpalo::Bump;

use super::{AllocatorRival, Unhinted};
use crate::dispatch::Install;

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "bumpalo",
    name: "bumpalo",
    allocator: Unhinted(&ThreadArenas),
    methods: ThreadArenas::METHODS,
    owns: None,
};

impl Install for ThreadArenas {
    const ALLOCATOR: Self = ThreadArenas;
    const NAME: &'static str = "bumpalo";
}

/// An arena a thread.
#[derive(Clone, Copy, Debug)]
struct ThreadArenas;

thread_local! {
    // Never dropped, for its objects may outlive the thread; and without a destructor, it can be reached at any time of the thread's life and registering it allocates nothing.
    static ARENA: ManuallyDrop<Bump> = ManuallyDrop::new(Bump::new());
    static NEEDS_CHUNK: Cell<bool> = const { Cell::new(false) };
}

/// Runs `ask` with this thread's arena, while what it asks of the global allocator is the system's.
fn with_chunks<R>(ask: impl FnOnce(&Bump) -> R) -> R {
    NEEDS_CHUNK.set(true);
    // Nothing in here unwinds: of the arena's methods only those are called that report failure.
    let result = ARENA.with(|arena| ask(arena));
    NEEDS_CHUNK.set(false);
    result
}

/// An object that does not fit into the arena's chunk, or a chunk.
#[cold]
#[inline(never)]
fn alloc_slow(layout: Layout) -> *mut u8 {
    if NEEDS_CHUNK.get() {
        // SAFETY: chunks are not empty: they hold what did not fit into the one before, and bumpalo's own notes.
        return unsafe { System.alloc(layout) };
    }
    with_chunks(|arena| or_null(arena.try_alloc_layout(layout)))
}

fn or_null<E>(object: Result<NonNull<u8>, E>) -> *mut u8 {
    object.map_or(ptr::null_mut(), NonNull::as_ptr)
}

// SAFETY: objects come from arenas that are never dropped or reset, or are chunks of these and come from the system; either way they are their owners' until freed. An arena
// is used by its thread alone. Freeing and growing change an arena only for its last object: bumpalo compares the object's
// address with the one from which on its chunk is in use; that lies in the chunk, or where its notes begin, so no object of another arena has it. Chunks are never freed, and bumpalo does not make them grow. Nothing here unwinds.
unsafe impl GlobalAlloc for ThreadArenas {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ARENA.with(|arena| {
            // Rounding the size up and the address down takes less than twice the alignment.
            if layout.size() + 2 * layout.align() <= arena.chunk_capacity() {
                or_null(arena.try_alloc_layout(layout))
            } else {
                alloc_slow(layout)
            }
        })
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: objects are not null.
        let object = unsafe { NonNull::new_unchecked(object) };
        ARENA.with(|arena| {
            // SAFETY: this thread's arena served the object with this layout, or another's did, which changes nothing.
            unsafe { Allocator::deallocate(&&**arena, object, layout) };
        });
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: objects are not null.
        let object = unsafe { NonNull::new_unchecked(object) };
        // SAFETY: the caller promises that `new_size`, rounded up to the alignment, does not overflow `isize`.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        with_chunks(|arena| {
            let moved = if new_size <= layout.size() {
                // SAFETY: as in `dealloc`; the new layout is no larger.
                unsafe { Allocator::shrink(&arena, object, layout, new_layout) }
            } else {
                // SAFETY: as in `dealloc`; the new layout is no smaller. Of an object of another arena, the contents move into this one.
                unsafe { Allocator::grow(&arena, object, layout, new_layout) }
            };
            moved.map_or(ptr::null_mut(), |moved| moved.cast().as_ptr())
        })
    }
}
