//! The methods of an allocator as function pointers, for [`dispatch`](crate::dispatch).

use std::alloc::{GlobalAlloc, Layout};

/// An allocator that can serve a whole process.
pub trait Install: GlobalAlloc + Sized + 'static {
    /// The allocator; it has no state of its own.
    const ALLOCATOR: Self;
    /// What the variable calls it.
    const NAME: &'static str;
    /// Its methods.
    const METHODS: &'static Methods = &Methods {
        name: Self::NAME,
        alloc: alloc::<Self>,
        alloc_zeroed: alloc_zeroed::<Self>,
        dealloc: dealloc::<Self>,
        realloc: realloc::<Self>,
    };
}

/// The methods of an allocator, with the contracts of [`GlobalAlloc`]'s.
#[derive(Debug)]
pub struct Methods {
    /// What the variable calls the allocator.
    pub name: &'static str,
    /// [`GlobalAlloc::alloc`].
    pub alloc: unsafe fn(Layout) -> *mut u8,
    /// [`GlobalAlloc::alloc_zeroed`].
    pub alloc_zeroed: unsafe fn(Layout) -> *mut u8,
    /// [`GlobalAlloc::dealloc`].
    pub dealloc: unsafe fn(*mut u8, Layout),
    /// [`GlobalAlloc::realloc`].
    pub realloc: unsafe fn(*mut u8, Layout, usize) -> *mut u8,
}

/// # Safety
/// - As [`GlobalAlloc::alloc`].
unsafe fn alloc<A: Install>(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promises are passed on.
    unsafe { A::ALLOCATOR.alloc(layout) }
}

/// # Safety
/// - As [`GlobalAlloc::alloc_zeroed`].
unsafe fn alloc_zeroed<A: Install>(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promises are passed on.
    unsafe { A::ALLOCATOR.alloc_zeroed(layout) }
}

/// # Safety
/// - As [`GlobalAlloc::dealloc`].
unsafe fn dealloc<A: Install>(object: *mut u8, layout: Layout) {
    // SAFETY: the caller's promises are passed on.
    unsafe { A::ALLOCATOR.dealloc(object, layout) }
}

/// # Safety
/// - As [`GlobalAlloc::realloc`].
unsafe fn realloc<A: Install>(object: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
    // SAFETY: the caller's promises are passed on.
    unsafe { A::ALLOCATOR.realloc(object, layout, new_size) }
}
