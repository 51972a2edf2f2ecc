//! A global allocator that the environment chooses when the process starts.
//!
//! To measure a whole program under an allocator, everything in the process must come from it. So
//! `measure` starts itself for each measurement, and [`ALLOCATOR_VARIABLE`] names the allocator.
//! The first call, before `main`, reads it; later calls cost two instructions more than the
//! allocator's own, whichever it is. Without the variable, [`SwitchAllocator`] serves the process.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::rivals::{self, ARENAS, Allocator, OURS, allocator};
use crate::source::SwitchAllocator;

pub const ALLOCATOR_VARIABLE: &str = "BENCHES_ALLOCATOR";

/// Invariant: points to an allocator that lives forever: at first to [`FIRST`], and from the end of
/// the first call on to the chosen one, always the same.
static CHOSEN: AtomicPtr<Allocator> = AtomicPtr::new(ptr::from_ref(&FIRST).cast_mut());

#[inline]
fn chosen() -> &'static Allocator {
    // SAFETY: the invariant of `CHOSEN`. What it points to is constant, so no order is needed.
    unsafe { &*CHOSEN.load(Ordering::Relaxed) }
}

pub fn served_by() -> &'static str {
    chosen().process
}

#[derive(Clone, Copy, Debug, Default)]
pub struct DispatchAllocator;

// SAFETY: all calls of a process go to one and the same allocator, which keeps the contract: the
// choice is made before the first block is handed out, and never again. Nothing here unwinds.
unsafe impl GlobalAlloc for DispatchAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { (chosen().alloc)(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { (chosen().alloc_zeroed)(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, object: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { (chosen().dealloc)(object, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { (chosen().realloc)(object, layout, new_size) }
    }
}

static SWITCH: Allocator = allocator!("switch", SwitchAllocator);

/// The functions until the first call, which makes the choice.
static FIRST: Allocator = Allocator {
    // SAFETY: the caller keeps the contract of `alloc`.
    alloc: |layout| unsafe { (choose().alloc)(layout) },
    // SAFETY: the caller keeps the contract of `alloc_zeroed`.
    alloc_zeroed: |layout| unsafe { (choose().alloc_zeroed)(layout) },
    // SAFETY: the caller keeps the contract of `dealloc`.
    dealloc: |object, layout| unsafe { (choose().dealloc)(object, layout) },
    // SAFETY: the caller keeps the contract of `realloc`.
    realloc: |object, layout, size| unsafe { (choose().realloc)(object, layout, size) },
    ..allocator!("switch", SwitchAllocator)
};

/// Makes the choice, so that later calls do not come here. Allocates nothing.
fn choose() -> &'static Allocator {
    // SAFETY: the name, which is ALLOCATOR_VARIABLE, ends in NUL. Nothing in this package changes
    // the environment, so no other thread can be changing it now.
    let value = unsafe { libc::getenv(c"BENCHES_ALLOCATOR".as_ptr()) };
    let allocator = if value.is_null() {
        &SWITCH
    } else {
        // SAFETY: getenv returned a string that ends in NUL, and no thread changes the environment.
        let name = unsafe { CStr::from_ptr(value) }.to_bytes();
        rivals::all()
            .chain(ARENAS)
            .find(|allocator| allocator.process.as_bytes() == name)
            .unwrap_or(&SWITCH)
    };
    if ptr::eq(allocator, &raw const OURS) {
        // SAFETY: all calls of this process go on to `CcMalloc`; nothing is kept of them.
        unsafe { ccmalloc::declare_global() };
    }
    // Two threads in here at once agree: the first one to store decides.
    let _earlier = CHOSEN.compare_exchange(
        ptr::from_ref(&FIRST).cast_mut(),
        ptr::from_ref(allocator).cast_mut(),
        Ordering::Relaxed,
        Ordering::Relaxed,
    );
    chosen()
}
