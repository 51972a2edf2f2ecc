//! The memory that a structure is born in: `CcMalloc`'s, the system's or a rival's, for the same
//! unmodified `Box`.
//!
//! A structure of boxes takes its nodes from the global allocator. To hold one allocator's nodes
//! against another's in one process, with the same machine code walking over both, the global
//! allocator of `report` asks the thread who is to serve:
//!
//! ```text
//! alloc:   a rival of this thread?          -> the rival, for objects up to 4 KiB
//!          else                             -> examples::switch: the system's malloc, or CcMalloc
//! dealloc: does a rival say `it is mine`?   -> that rival
//!          else                             -> examples::switch, which asks CcMalloc
//! ```
//!
//! So a node goes back to whom it came from, wherever and whenever it is freed. That needs
//! allocators that can tell their own memory from others'; those that cannot
//! ([`AllocatorRival::owns`] is `None`) take no part. Larger objects are the system's in every
//! case, as in [`examples::switch`].
//!
//! The questions cost some nanoseconds for each allocation and each free. So nothing here times
//! allocations; whole programs do, in processes in which one allocator serves everything
//! ([`crate::dispatch`]).

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use examples::switch::{Source, SwitchAllocator, born_in};

use crate::rivals::{ALLOCATORS, AllocatorRival, system};

/// The largest object that a rival serves here.
const BYTES_MAX: usize = ccmalloc::Region::OBJECT_BYTES_MAX;

thread_local! {
    // `const` and without a destructor: reading it allocates nothing, at any time of the thread's
    // life.
    static RIVAL: Cell<Option<&'static AllocatorRival>> = const { Cell::new(None) };
}

/// Who serves the nodes of a structure.
#[derive(Clone, Copy, Debug)]
pub enum Birthplace {
    /// `CcMalloc`.
    CcMalloc,
    /// A rival from [`rivals`].
    Rival(&'static AllocatorRival),
}

/// The rivals that structures can be born in: the system's malloc, and those that know their own
/// memory.
pub fn rivals() -> impl Iterator<Item = &'static AllocatorRival> {
    ALLOCATORS
        .iter()
        .filter(|rival| is_the_system(rival) || rival.owns.is_some())
}

fn is_the_system(rival: &AllocatorRival) -> bool {
    rival.slug == system::RIVAL.slug
}

/// Runs `f` with this thread's new objects coming from `place`; what was before is back afterwards,
/// also when `f` panics.
///
/// # Panics
/// When `place` is a rival that [`rivals`] does not name.
pub fn born<R>(place: Birthplace, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<&'static AllocatorRival>);
    impl Drop for Restore {
        fn drop(&mut self) {
            RIVAL.set(self.0);
        }
    }
    let (rival, source) = match place {
        Birthplace::CcMalloc => (None, Source::CcMalloc),
        Birthplace::Rival(rival) if is_the_system(rival) => (None, Source::System),
        Birthplace::Rival(rival) => {
            assert!(
                rival.owns.is_some(),
                "{} does not know its own memory",
                rival.name
            );
            (Some(rival), Source::System)
        }
    };
    let _restore = Restore(RIVAL.replace(rival));
    born_in(source, f)
}

/// The global allocator of a process in which [`born`] decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct BirthAllocator;

// SAFETY: each block is served by one allocator that keeps the contract of `GlobalAlloc`, and goes
// back to that one: a rival's blocks are those that it says are its own, and all others came from
// `SwitchAllocator`, of whose memory no rival says so. Nothing here unwinds.
unsafe impl GlobalAlloc for BirthAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match rival_for(layout) {
            // SAFETY: the caller's promises are passed on.
            Some(rival) => unsafe { rival.allocator.0.alloc(layout) },
            // SAFETY: the caller's promises are passed on.
            None => unsafe { SwitchAllocator.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match rival_for(layout) {
            // SAFETY: the caller's promises are passed on.
            Some(rival) => unsafe { rival.allocator.0.alloc_zeroed(layout) },
            // SAFETY: the caller's promises are passed on.
            None => unsafe { SwitchAllocator.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        match owner(object) {
            // SAFETY: the object is this rival's, and live with this layout by the caller's
            // promise.
            Some(rival) => unsafe { rival.allocator.0.dealloc(object, layout) },
            // SAFETY: no rival's, so the switch served it, with this layout by the caller's
            // promise.
            None => unsafe { SwitchAllocator.dealloc(object, layout) },
        }
    }

    unsafe fn realloc(&self, object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if owner(object).is_none() {
            // SAFETY: no rival's, so the switch served it; the rest is the caller's promise. It may
            // stay there: who serves is decided at birth.
            return unsafe { SwitchAllocator.realloc(object, layout, new_size) };
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

/// The rival that serves an object of this layout now, if one does.
fn rival_for(layout: Layout) -> Option<&'static AllocatorRival> {
    if layout.size() <= BYTES_MAX && layout.align() <= BYTES_MAX {
        RIVAL.get()
    } else {
        None
    }
}

/// The rival that served `object`, if one did.
fn owner(object: *const u8) -> Option<&'static AllocatorRival> {
    ALLOCATORS
        .iter()
        .find(|rival| rival.owns.is_some_and(|owns| owns(object)))
}
