use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;

use crate::counts::{self, Duty};
use crate::hook::Hook;
#[cfg(feature = "heap-profile")]
use crate::sampling;

/// A global allocator that `ccscope` can see.
///
/// Allocators that are written in Rust are compiled into the program, where no tool finds their
/// calls. Wrap such an allocator:
///
/// ```
/// use std::alloc::System;
///
/// use ccscope::Profiled;
///
/// #[global_allocator]
/// static GLOBAL: Profiled<System> = Profiled::new(System);
/// # let text = String::from("it works without the tool, too");
/// # assert_eq!(text.len(), 30);
/// ```
///
/// Outside of the tool this costs one comparison per call. The system's allocator, mimalloc and
/// jemalloc need no wrapper for the tool, but any allocator needs it for
/// [`measure`](crate::measure()), and for programs that sample their own heap (feature
/// `heap-profile`).
#[derive(Debug, Default)]
pub struct Profiled<A>(A);

impl<A> Profiled<A> {
    /// Wraps an allocator.
    pub const fn new(allocator: A) -> Self {
        Self(allocator)
    }

    /// The allocator itself.
    pub const fn allocator(&self) -> &A {
        &self.0
    }
}

/// Work that a function of the runtime calls back, and what to call it with.
type Work = unsafe extern "C" fn(context: *mut c_void) -> *mut c_void;

static ALLOCATE: Hook = Hook::new(c"ccscope_allocate");
static FREE: Hook = Hook::new(c"ccscope_free");
static REALLOCATE: Hook = Hook::new(c"ccscope_reallocate");
static SITE: Hook = Hook::new(c"ccscope_site");

fn has_tool() -> bool {
    counts::has_tool(|| {
        let hooks = [&ALLOCATE, &FREE, &REALLOCATE, &SITE];
        hooks.into_iter().all(Hook::find)
    })
}

/// Calls `work`, a closure that is called once and does not unwind, through C.
///
/// # Safety
///
/// `work` points to an `F` that nobody else uses meanwhile.
unsafe extern "C" fn call<F: FnMut() -> *mut u8>(work: *mut c_void) -> *mut c_void {
    // SAFETY: `work` is the closure that the caller of the hook lent.
    unsafe { (*work.cast::<F>())().cast() }
}

fn with<F: FnMut() -> *mut u8>(work: &mut F) -> (Work, *mut c_void) {
    (call::<F>, (&raw mut *work).cast())
}

impl<A: GlobalAlloc> Profiled<A> {
    /// Allocates by `work`, and tells those who ask.
    ///
    /// # Safety
    ///
    /// `work` allocates `size` bytes.
    #[cold]
    #[inline(never)]
    unsafe fn allocate(&self, size: usize, mut work: impl FnMut() -> *mut u8) -> *mut u8 {
        type Function = unsafe extern "C" fn(usize, Work, *mut c_void) -> *mut c_void;
        let mut work = || counts::muted(&mut work);
        let new = if has_tool() {
            let (call, context) = with(&mut work);
            #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
            // SAFETY: the runtime's function of this name, which `has_tool` has found; `context`
            // lives until the call ends.
            unsafe {
                let function = std::mem::transmute::<*mut c_void, Function>(ALLOCATE.address());
                let new = function(size, call, context).cast();
                counts::at_site(size, site);
                new
            }
        } else {
            work()
        };
        counts::allocated(new, size);
        #[cfg(feature = "heap-profile")]
        sampling::allocated(new, size);
        new
    }

    /// # Safety
    ///
    /// As for `GlobalAlloc::dealloc`.
    #[cold]
    #[inline(never)]
    unsafe fn free(&self, old: *mut u8, layout: Layout) {
        type Function = unsafe extern "C" fn(*mut c_void, Work, *mut c_void);
        counts::freed(layout.size());
        #[cfg(feature = "heap-profile")]
        sampling::detach(old);
        let mut work = || {
            // SAFETY: the caller gives up `old`, of this layout (`# Safety`).
            counts::muted(|| unsafe { self.0.dealloc(old, layout) });
            std::ptr::null_mut()
        };
        if !has_tool() {
            work();
            return;
        }
        let (call, context) = with(&mut work);
        #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
        // SAFETY: the runtime's function of this name, which `has_tool` has found; `context` lives
        // until the call ends, and frees `old`.
        unsafe {
            let function = std::mem::transmute::<*mut c_void, Function>(FREE.address());
            function(old.cast(), call, context);
        }
    }

    /// # Safety
    ///
    /// As for `GlobalAlloc::realloc`.
    #[cold]
    #[inline(never)]
    unsafe fn resize(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        type Function = unsafe extern "C" fn(*mut c_void, usize, Work, *mut c_void) -> *mut c_void;
        #[cfg(feature = "heap-profile")]
        let before = sampling::detach(old);
        // SAFETY: `old` is of this layout, and nobody else uses it (`# Safety`).
        let mut work = || counts::muted(|| unsafe { self.0.realloc(old, layout, size) });
        let new = if has_tool() {
            let (call, context) = with(&mut work);
            #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
            // SAFETY: as in `free`; `context` resizes `old`.
            unsafe {
                let function = std::mem::transmute::<*mut c_void, Function>(REALLOCATE.address());
                let new = function(old.cast(), size, call, context).cast();
                counts::at_site(size.saturating_sub(layout.size()), site);
                new
            }
        } else {
            work()
        };
        counts::reallocated(new, layout.size(), size);
        #[cfg(feature = "heap-profile")]
        sampling::reallocated(before, old, new, size);
        new
    }
}

/// Where this thread has allocated last, as the runtime numbers sites.
fn site() -> u32 {
    type Function = unsafe extern "C" fn() -> u32;
    #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
    // SAFETY: the runtime's function of this name, which `has_tool` has found before it is asked.
    unsafe {
        std::mem::transmute::<*mut c_void, Function>(SITE.address())()
    }
}

// SAFETY: each method does what the wrapped allocator's does, and gives what it gives.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Profiled<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is not empty (the caller's promise); its size is what is allocated.
        unsafe {
            match counts::duty() {
                Duty::None => self.0.alloc(layout),
                Duty::Count => {
                    let new = counts::muted(|| self.0.alloc(layout));
                    counts::allocated(new, layout.size());
                    new
                }
                #[cfg(feature = "heap-profile")]
                Duty::Sample => {
                    let new = self.0.alloc(layout);
                    sampling::allocated(new, layout.size());
                    new
                }
                Duty::Tell => self.allocate(layout.size(), || self.0.alloc(layout)),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is not empty (the caller's promise); its size is what is allocated.
        unsafe {
            match counts::duty() {
                Duty::None => self.0.alloc_zeroed(layout),
                Duty::Count => {
                    let new = counts::muted(|| self.0.alloc_zeroed(layout));
                    counts::allocated(new, layout.size());
                    new
                }
                #[cfg(feature = "heap-profile")]
                Duty::Sample => {
                    let new = self.0.alloc_zeroed(layout);
                    sampling::allocated(new, layout.size());
                    new
                }
                Duty::Tell => self.allocate(layout.size(), || self.0.alloc_zeroed(layout)),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller gives up `old`, of this layout.
        unsafe {
            match counts::duty() {
                Duty::None => self.0.dealloc(old, layout),
                Duty::Count => {
                    counts::freed(layout.size());
                    counts::muted(|| self.0.dealloc(old, layout));
                }
                #[cfg(feature = "heap-profile")]
                Duty::Sample => {
                    sampling::detach(old);
                    self.0.dealloc(old, layout);
                }
                Duty::Tell => self.free(old, layout),
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `old` is of this layout, and nobody else uses it (the caller's promise).
        unsafe {
            match counts::duty() {
                Duty::None => self.0.realloc(old, layout, size),
                Duty::Count => {
                    let new = counts::muted(|| self.0.realloc(old, layout, size));
                    counts::reallocated(new, layout.size(), size);
                    new
                }
                #[cfg(feature = "heap-profile")]
                Duty::Sample => {
                    let before = sampling::detach(old);
                    let new = self.0.realloc(old, layout, size);
                    sampling::reallocated(before, old, new, size);
                    new
                }
                Duty::Tell => self.resize(old, layout, size),
            }
        }
    }
}
