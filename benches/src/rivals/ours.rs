//! Ours, in the rivals' form: `ccmalloc` with the parent as the hint, and without hints.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;

use ccmalloc::{CcMalloc, cc_alloc};

use crate::raw_tree::NodeAllocator;

/// `ccmalloc` with hints.
#[derive(Clone, Copy, Debug)]
pub struct Hinted;

// SAFETY: `cc_alloc` returns memory for `layout` that is its caller's until freed, whatever the hint.
unsafe impl NodeAllocator for Hinted {
    fn allocate(&self, layout: Layout, hint: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        cc_alloc(layout, hint)
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that `ptr` came from `cc_alloc` with `layout`; CcMalloc frees what that served.
        unsafe { CcMalloc.dealloc(ptr.as_ptr(), layout) }
    }
}
