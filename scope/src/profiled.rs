use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

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
/// jemalloc need no wrapper.
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

/// A function of the runtime, if the process has one.
pub(crate) struct Hook {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

/// 0 before the first call, 1 without the runtime, 2 with it.
static STATE: AtomicU8 = AtomicU8::new(0);
static ALLOCATE: Hook = Hook::new(c"ccscope_allocate");
static FREE: Hook = Hook::new(c"ccscope_free");
static REALLOCATE: Hook = Hook::new(c"ccscope_reallocate");

impl Hook {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    // In the caller, as all of the profiler's own work is: it is no region.
    #[inline(always)]
    pub(crate) fn find(&self) -> bool {
        // SAFETY: the name ends with 0.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Release);
        !found.is_null()
    }

    #[inline(always)]
    pub(crate) fn address(&self) -> *mut c_void {
        self.address.load(Ordering::Acquire)
    }
}

#[inline]
fn is_profiled() -> bool {
    match STATE.load(Ordering::Acquire) {
        0 => look(),
        state => state == 2,
    }
}

#[cold]
fn look() -> bool {
    let found = [&ALLOCATE, &FREE, &REALLOCATE].into_iter().all(Hook::find);
    STATE.store(if found { 2 } else { 1 }, Ordering::Release);
    found
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
    /// # Safety
    ///
    /// `work` allocates `size` bytes, and the hooks are found ([`is_profiled`]).
    #[cold]
    unsafe fn allocate(&self, size: usize, mut work: impl FnMut() -> *mut u8) -> *mut u8 {
        type Function = unsafe extern "C" fn(usize, Work, *mut c_void) -> *mut c_void;
        #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
        // SAFETY: the runtime's function of this name, which `look` has found (`# Safety`).
        let function = unsafe { std::mem::transmute::<*mut c_void, Function>(ALLOCATE.address()) };
        let (call, context) = with(&mut work);
        // SAFETY: `context` lives until the call ends.
        unsafe { function(size, call, context).cast() }
    }
}

// SAFETY: each method does what the wrapped allocator's does, and gives what it gives.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Profiled<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is not empty (the caller's promise); its size is what is allocated.
        unsafe {
            if is_profiled() {
                return self.allocate(layout.size(), || self.0.alloc(layout));
            }
            self.0.alloc(layout)
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the layout is not empty (the caller's promise); its size is what is allocated.
        unsafe {
            if is_profiled() {
                return self.allocate(layout.size(), || self.0.alloc_zeroed(layout));
            }
            self.0.alloc_zeroed(layout)
        }
    }

    #[inline]
    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        type Function = unsafe extern "C" fn(*mut c_void, Work, *mut c_void);
        // SAFETY: the caller gives up `old`, of this layout; the hook is found, and of this type.
        unsafe {
            if !is_profiled() {
                return self.0.dealloc(old, layout);
            }
            #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
            let function = std::mem::transmute::<*mut c_void, Function>(FREE.address());
            let mut work = || {
                self.0.dealloc(old, layout);
                std::ptr::null_mut()
            };
            let (call, context) = with(&mut work);
            function(old.cast(), call, context);
        }
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        type Function = unsafe extern "C" fn(*mut c_void, usize, Work, *mut c_void) -> *mut c_void;
        // SAFETY: `old` is of this layout (the caller's promise); the hook is found, of this type.
        unsafe {
            if !is_profiled() {
                return self.0.realloc(old, layout, size);
            }
            #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
            let function = std::mem::transmute::<*mut c_void, Function>(REALLOCATE.address());
            let mut work = || self.0.realloc(old, layout, size);
            let (call, context) = with(&mut work);
            function(old.cast(), size, call, context).cast()
        }
    }
}
