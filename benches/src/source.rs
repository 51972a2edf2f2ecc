//! The allocator behind `Box` for a part of a thread's work: the system's malloc, `CcMalloc` or a
//! rival.
//!
//! To compare nodes of several allocators in one process, the global allocator of `report` asks the
//! thread which allocator serves:
//!
//! ```text
//! alloc:    objects up to 4 KiB -> the thread's source; larger ones -> the system
//! dealloc:  the rival that owns the object, else CcMalloc if it contains it, else the system
//! ```
//!
//! So an object goes back to its own allocator, wherever and whenever it is freed. Allocators that
//! cannot tell their own memory ([`Allocator::owns`] is `None`) take no part. The questions
//! cost some nanoseconds for each call, so allocations are timed elsewhere ([`crate::dispatch`]).

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use crate::rivals::{self, ALLOCATORS, Allocator, SYSTEM};

/// The largest object that does not always come from the system.
const BYTES_MAX: usize = ccmalloc::Region::OBJECT_BYTES_MAX;

thread_local! {
    // `const` and without a destructor: reading it allocates nothing, at any time of the thread.
    static SOURCE: Cell<&'static Allocator> = const { Cell::new(&SYSTEM) };
}

/// Whether an allocator can be a source: the system's malloc can, and those that know their own
/// memory.
fn is_source(allocator: &Allocator) -> bool {
    allocator.slug == SYSTEM.slug || allocator.owns.is_some()
}

/// The rivals that can be a source.
pub fn rivals() -> impl Iterator<Item = &'static Allocator> {
    ALLOCATORS.iter().filter(|rival| is_source(rival))
}

/// Runs `f` with new objects of this thread from `source`.
///
/// # Panics
/// When `source` cannot tell its memory, and is not the system's malloc.
pub fn allocate_from<R>(source: &'static Allocator, f: impl FnOnce() -> R) -> R {
    assert!(is_source(source), "{source:?} does not know its memory");
    let before = SOURCE.replace(source);
    let result = f();
    SOURCE.set(before);
    result
}

/// The global allocator of a process in which [`allocate_from`] decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct SwitchAllocator;

// SAFETY: one allocator that keeps the contract serves each block, and the same one frees it: a
// rival owns its blocks, `contains` is true for those of `CcMalloc`, and the system serves all
// others. Nothing here unwinds.
unsafe impl GlobalAlloc for SwitchAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { (source_for(layout).alloc)(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { (source_for(layout).alloc_zeroed)(layout) }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: that allocator served it; the caller keeps the contract of `dealloc`.
        unsafe { (owner(object).dealloc)(object, layout) }
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if owner(object).owns.is_none() {
            // SAFETY: the system served it; the caller keeps the contract of `realloc`.
            return unsafe { (SYSTEM.realloc)(object, layout, new_size) };
        }
        // SAFETY: the caller promises that `new_size`, rounded up to the alignment, does not
        // overflow `isize`.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        // SAFETY: the caller promises that `new_size` is not zero.
        let moved = unsafe { self.alloc(new_layout) };
        if !moved.is_null() {
            let bytes = layout.size().min(new_size);
            // SAFETY: `object` is live and has `layout.size()` bytes by the caller's promise,
            // `moved` is fresh and has `new_size`.
            unsafe { object.copy_to_nonoverlapping(moved, bytes) };
            // SAFETY: `object` is live, of this allocator, with `layout`, by the caller's promise;
            // it is not used any more.
            unsafe { self.dealloc(object, layout) };
        }
        moved
    }
}

/// The allocator that serves an object of this layout now.
fn source_for(layout: Layout) -> &'static Allocator {
    match layout.size() <= BYTES_MAX && layout.align() <= BYTES_MAX {
        true => SOURCE.get(),
        false => &SYSTEM,
    }
}

/// The allocator that served `object`.
fn owner(object: *const u8) -> &'static Allocator {
    let owns = |one: &&Allocator| one.owns.is_some_and(|owns| owns(object));
    rivals::all().find(owns).unwrap_or(&SYSTEM)
}
