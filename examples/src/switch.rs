//! A global allocator that serves each thread from the system's malloc or from [`CcMalloc`], as
//! asked.
//!
//! A program of one's own installs `CcMalloc` for everything and is done. A program that *compares*
//! allocators in one process needs both at once, for the same unmodified `Box`:
//!
//! ```text
//! alloc:   where does this thread's switch point?   -> System, or CcMalloc for objects up to 4 KiB
//! dealloc: ccmalloc::contains(ptr)?                 -> CcMalloc, else System
//! ```
//!
//! So the switch decides where something is *born* and never where it is freed: an object outlives
//! the scope that it was made in, crosses threads, and still goes back to its own allocator.
//!
//! Objects above 4 KiB come from the system in either case. They begin on pages of their own, so
//! there is nothing to compare.
//!
//! The switch is per thread, so that a progress bar's thread keeps its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccmalloc::CcMalloc;

use crate::sys::system_object_bytes;

/// Who serves new objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The system's malloc, which is where each thread starts.
    System,
    /// `CcMalloc`, which honours `ccmalloc::near`, for objects up to 4 KiB.
    CcMalloc,
}

/// The largest object that is born in `CcMalloc`; nodes that can be placed are no larger.
const CCMALLOC_BYTES_MAX: usize = ccmalloc::Region::OBJECT_BYTES_MAX;

thread_local! {
    // `const` and without a destructor: reading it allocates nothing, at any time of the thread's
    // life.
    static SOURCE: Cell<Source> = const { Cell::new(Source::System) };
}

/// Live bytes taken from the system's malloc, what it adds to each object included.
static SYSTEM_LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Runs `f` with this thread's new objects coming from `source`; the former source is back
/// afterwards, also when `f` panics.
///
/// Costs two writes of a thread-local byte. Without [`SwitchAllocator`] as the global allocator it
/// changes nothing.
pub fn born_in<R>(source: Source, f: impl FnOnce() -> R) -> R {
    struct Restore(Source);
    impl Drop for Restore {
        fn drop(&mut self) {
            SOURCE.set(self.0);
        }
    }
    let _restore = Restore(SOURCE.replace(source));
    f()
}

/// Bytes of live objects that the system's malloc serves, over all threads, with what it adds to
/// each where the system tells.
///
/// 0 when [`SwitchAllocator`] is not the global allocator.
pub fn system_live_bytes() -> usize {
    SYSTEM_LIVE_BYTES.load(Ordering::Relaxed)
}

/// The allocator behind the switch: `#[global_allocator] static GLOBAL: SwitchAllocator =
/// SwitchAllocator;`
#[derive(Clone, Copy, Debug, Default)]
pub struct SwitchAllocator;

// SAFETY: each block is served and freed by one of two allocators that both keep the contract of
// `GlobalAlloc`, and by the right one: `CcMalloc` serves objects up to 4 KiB here, which lie in
// chunks that it alone maps, so `ccmalloc::contains` holds for its blocks and for no other. Nothing
// here unwinds: the thread-local has no destructor, and the counter wraps.
unsafe impl GlobalAlloc for SwitchAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match source_for(layout) {
            Source::CcMalloc => {
                // SAFETY: the caller's promise on `layout` is passed on.
                unsafe { CcMalloc.alloc(layout) }
            }
            Source::System => {
                // SAFETY: as above.
                let ptr = unsafe { System.alloc(layout) };
                // SAFETY: `ptr` was just returned by the system's malloc with `layout`.
                unsafe { count_system(ptr, layout) };
                ptr
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match source_for(layout) {
            Source::CcMalloc => {
                // SAFETY: the caller's promise on `layout` is passed on.
                unsafe { CcMalloc.alloc_zeroed(layout) }
            }
            Source::System => {
                // SAFETY: as above.
                let ptr = unsafe { System.alloc_zeroed(layout) };
                // SAFETY: `ptr` was just returned by the system's malloc with `layout`.
                unsafe { count_system(ptr, layout) };
                ptr
            }
        }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if ccmalloc::contains(ptr) {
            // SAFETY: `ptr` lies in CcMalloc's memory, so CcMalloc served it, with `layout` by the
            // caller's promise.
            unsafe { CcMalloc.dealloc(ptr, layout) }
        } else {
            // SAFETY: `ptr` is live and not CcMalloc's, so the system's malloc served it.
            let bytes = unsafe { system_object_bytes(ptr, layout) };
            SYSTEM_LIVE_BYTES.fetch_sub(bytes, Ordering::Relaxed);
            // SAFETY: as above, with `layout` by the caller's promise.
            unsafe { System.dealloc(ptr, layout) }
        }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `new_size`, rounded up to the alignment, does not
        // overflow `isize`.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if ccmalloc::contains(ptr) {
            // Small on both sides, or grown out of `CcMalloc`: rare in either case, so the object
            // simply moves.
            // SAFETY: the caller promises that `new_size` is not zero.
            let moved = unsafe { self.alloc(new_layout) };
            if !moved.is_null() {
                let bytes = layout.size().min(new_size);
                // SAFETY: `ptr` is live and has `layout.size()` bytes by the caller's promise,
                // `moved` is fresh and has `new_size`.
                unsafe { ptr.copy_to_nonoverlapping(moved, bytes) };
                // SAFETY: `ptr` is live, of this allocator, with `layout`, by the caller's promise;
                // it is not used any more.
                unsafe { self.dealloc(ptr, layout) };
            }
            moved
        } else {
            // SAFETY: `ptr` is live and not CcMalloc's, so the system's malloc served it.
            let old_bytes = unsafe { system_object_bytes(ptr, layout) };
            // SAFETY: as above; the rest is the caller's promise.
            let moved = unsafe { System.realloc(ptr, layout, new_size) };
            if !moved.is_null() {
                SYSTEM_LIVE_BYTES.fetch_sub(old_bytes, Ordering::Relaxed);
                // SAFETY: `moved` was just returned by the system's malloc with this layout.
                unsafe { count_system(moved, new_layout) };
            }
            moved
        }
    }
}

/// Who serves an object of this layout now.
fn source_for(layout: Layout) -> Source {
    if layout.size() <= CCMALLOC_BYTES_MAX && layout.align() <= CCMALLOC_BYTES_MAX {
        SOURCE.get()
    } else {
        Source::System
    }
}

/// # Safety
/// - `ptr` is null, or live and served by the system's malloc with `layout`.
unsafe fn count_system(ptr: *mut u8, layout: Layout) {
    if !ptr.is_null() {
        // SAFETY: not null, so live and the system's malloc's, by the caller's promise.
        let bytes = unsafe { system_object_bytes(ptr, layout) };
        SYSTEM_LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, SwitchAllocator, born_in, system_live_bytes};

    #[global_allocator]
    static GLOBAL: SwitchAllocator = SwitchAllocator;

    #[test]
    fn objects_are_born_where_the_switch_points_and_freed_where_they_lie() {
        let ours = born_in(Source::CcMalloc, || Box::new([7_u64; 3]));
        let theirs = Box::new([8_u64; 3]);
        assert!(ccmalloc::contains(std::ptr::from_ref(&*ours).cast()));
        assert!(!ccmalloc::contains(std::ptr::from_ref(&*theirs).cast()));
        assert!(system_live_bytes() >= 24);
        // Freed with the switch pointing the other way, and on another thread.
        born_in(Source::CcMalloc, || drop(theirs));
        std::thread::spawn(move || assert_eq!(*ours, [7; 3]))
            .join()
            .unwrap();
    }

    #[test]
    fn growth_keeps_the_contents_and_large_objects_are_the_systems() {
        let mut items: Vec<u32> = born_in(Source::CcMalloc, || Vec::with_capacity(4));
        for item in 0..100_000 {
            if item == 4 {
                assert!(ccmalloc::contains(items.as_ptr().cast()));
            }
            items.push(item);
        }
        assert!(!ccmalloc::contains(items.as_ptr().cast()));
        assert!(items.iter().copied().eq(0..100_000));
        let large = born_in(Source::CcMalloc, || vec![0_u8; 1 << 20]);
        assert!(!ccmalloc::contains(large.as_ptr()));
        items.truncate(3);
        born_in(Source::CcMalloc, || items.shrink_to_fit());
        assert_eq!(items, [0, 1, 2]);
    }

    #[test]
    fn the_former_source_is_back_after_a_panic() {
        let caught =
            std::panic::catch_unwind(|| born_in(Source::CcMalloc, || panic!("on purpose")));
        assert!(caught.is_err());
        let after = Box::new(1_u8);
        assert!(!ccmalloc::contains(&raw const *after));
    }
}
