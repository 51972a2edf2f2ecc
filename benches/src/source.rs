//! The allocator behind `Box` for a part of a thread's work: the system's malloc, `CcMalloc` or a
//! rival.
//!
//! To compare nodes of several allocators in one process, the global allocator of `measure` asks
//! the thread which allocator serves objects up to 4 KiB; larger ones are the system's. The
//! allocator that owns an object frees it. Allocators that cannot tell their own memory
//! ([`Allocator::owns`] is `None`) take no part. This costs some nanoseconds for each call, so
//! allocations are timed elsewhere ([`crate::dispatch`]).

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

pub fn rivals() -> impl Iterator<Item = &'static Allocator> {
    ALLOCATORS.iter().filter(|rival| is_source(rival))
}

/// Runs `f` with new objects of this thread from `source`, which must know its memory.
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
}

fn source_for(layout: Layout) -> &'static Allocator {
    match layout.size() <= BYTES_MAX && layout.align() <= BYTES_MAX {
        true => SOURCE.get(),
        false => &SYSTEM,
    }
}

fn owner(object: *const u8) -> &'static Allocator {
    let owns = |one: &&Allocator| one.owns.is_some_and(|owns| owns(object));
    rivals::all().find(owns).unwrap_or(&SYSTEM)
}
