//! Ours, in the rivals' form: `ccmalloc` with the parent as the hint, and with hints that are all
//! null.

use std::alloc::{GlobalAlloc, Layout};
use std::hint::black_box;
use std::ptr::NonNull;

use ccmalloc::{CcMalloc, cc_alloc};

use crate::install::{Install, Methods};
use crate::raw_tree::NodeAllocator;

/// `ccmalloc`, where it serves a whole process.
pub const METHODS: &Methods = CcMalloc::METHODS;

impl Install for CcMalloc {
    const ALLOCATOR: Self = CcMalloc::new();
    const NAME: &'static str = NAME;
}

/// Its name in words.
pub const NAME: &str = "ccmalloc";

/// `ccmalloc` with hints.
#[derive(Clone, Copy, Debug)]
pub struct Hinted;

// SAFETY: `cc_alloc` returns memory for `layout` that is its caller's until freed, whatever the
// hint.
unsafe impl NodeAllocator for Hinted {
    fn allocate(&self, layout: Layout, hint: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        cc_alloc(layout, hint)
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that `ptr` came from `cc_alloc` with `layout`; CcMalloc frees
        // what that served.
        unsafe { CcMalloc.dealloc(ptr.as_ptr(), layout) }
    }
}

/// `ccmalloc` as a hinted program calls it, with hints that are null: what the calls cost where
/// they gain nothing.
#[derive(Clone, Copy, Debug)]
pub struct NullHinted;

// SAFETY: as above.
unsafe impl NodeAllocator for NullHinted {
    fn allocate(&self, layout: Layout, _hint: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        // The compiler must not know that it is null.
        cc_alloc(layout, black_box(None))
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that `ptr` came from `cc_alloc` with `layout`; CcMalloc frees
        // what that served.
        unsafe { CcMalloc.dealloc(ptr.as_ptr(), layout) }
    }
}
