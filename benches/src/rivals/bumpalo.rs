//! bumpalo, an arena that serves addresses one below the other and takes back only the last object:
//! nothing builds a structure faster or packs it closer.
//!
//! Each thread has an arena, never dropped because other threads may hold objects of it. It
//! frees, grows and shrinks only objects in its current chunk; others are not freed, and grow by
//! moving. An arena takes its chunks from the global allocator, which is this one: a thread whose
//! arena is about to take a chunk sets [`NEEDS_CHUNK`], and is then served by the system.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use allocator_api2::alloc::Allocator;
use bumpalo::Bump;

#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadArenas;

/// Whether `object` lies in the current chunk of this thread.
fn in_chunk(object: *mut u8) -> bool {
    let (begin, bytes) = CHUNK.get();
    object.addr().wrapping_sub(begin) < bytes
}

thread_local! {
    // Never dropped: its objects may outlive the thread. Without a destructor, it can be reached at
    // any time, and allocates nothing.
    static ARENA: ManuallyDrop<Bump> = ManuallyDrop::new(Bump::new());
    static NEEDS_CHUNK: Cell<bool> = const { Cell::new(false) };
    /// Where the chunk that the arena serves from begins, and its bytes.
    static CHUNK: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Runs `ask` with this thread's arena, which may take a chunk.
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
        // SAFETY: chunks are not empty: they hold bumpalo's own notes.
        let chunk = unsafe { System.alloc(layout) };
        if !chunk.is_null() {
            CHUNK.set((chunk.addr(), layout.size()));
        }
        return chunk;
    }
    with_chunks(|arena| or_null(arena.try_alloc_layout(layout)))
}

fn or_null<E>(object: Result<NonNull<u8>, E>) -> *mut u8 {
    object.map_or(ptr::null_mut(), NonNull::as_ptr)
}

// SAFETY: objects come from arenas that are never dropped or reset, or are chunks of these and come
// from the system; either way they are their owners' until freed. Only its thread uses an arena. It
// frees, grows or shrinks an object only when that lies in a chunk of the arena, and no other
// allocator serves objects there, since chunks are never freed. Nothing here unwinds.
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
        if !in_chunk(object) {
            return;
        }
        // SAFETY: objects are not null.
        let object = unsafe { NonNull::new_unchecked(object) };
        ARENA.with(|arena| {
            // SAFETY: the object is in use, lies in this arena's memory, and so was served by it,
            // with this layout.
            unsafe { Allocator::deallocate(&&**arena, object, layout) };
        });
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `new_size`, rounded up to the alignment, does not
        // overflow `isize`.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if !in_chunk(object) {
            if new_size <= layout.size() {
                return object;
            }
            // SAFETY: the caller promises that `new_size` is not 0.
            let moved = unsafe { self.alloc(new_layout) };
            if !moved.is_null() {
                // SAFETY: the object has `layout.size()` bytes and the new one has more; they do
                // not overlap, since both are in use.
                unsafe { ptr::copy_nonoverlapping(object, moved, layout.size()) };
            }
            return moved;
        }
        // SAFETY: objects are not null.
        let object = unsafe { NonNull::new_unchecked(object) };
        with_chunks(|arena| {
            let moved = if new_size <= layout.size() {
                // SAFETY: as in `dealloc`; the new layout is no larger.
                unsafe { Allocator::shrink(&arena, object, layout, new_layout) }
            } else {
                // SAFETY: as in `dealloc`; the new layout is no smaller.
                unsafe { Allocator::grow(&arena, object, layout, new_layout) }
            };
            moved.map_or(ptr::null_mut(), |moved| moved.cast().as_ptr())
        })
    }
}
