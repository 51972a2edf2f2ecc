//! Allocators that are part of the program: those written in C, which the linker lets us wrap, and
//! those in Rust, which the program wraps itself by `ccscope::Profiled`.
//!
//! The tool links an instrumented program with `--wrap` for each name below, so that calls of
//! `mi_malloc` arrive at `__wrap_mi_malloc`, and exports the real function for us to find.

use core::ffi::{c_int, c_void};

use super::hooks::{allocate, release, resize};
use super::real::Real;

/// Defines the wrapper of a function. What it does is told by its kind: how many bytes it asks for,
/// or which chunk it takes.
macro_rules! wrapped {
    ($($wrapper:ident of $name:literal ($($argument:ident: $type:ty),*)
        $kind:ident($($what:expr),*);)*) => {$(
        /// Wraps a function of an allocator.
        #[allow(non_snake_case, reason = "the linker's name")]
        ///
        /// # Safety
        ///
        /// As for that function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $wrapper($($argument: $type),*) -> *mut c_void {
            type Function = unsafe extern "C" fn($($type),*) -> *mut c_void;
            static REAL: Real = Real::new($name, false);
            #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
            // SAFETY: the function of this name has this type, and null is `None`. A function that
            // gives nothing leaves any word where we look for the result, and we drop it.
            let real = unsafe {
                core::mem::transmute::<*mut c_void, Option<Function>>(REAL.address())
            };
            let Some(real) = real else { return core::ptr::null_mut() };
            // SAFETY: the arguments fulfil the function's own conditions (`# Safety`), so it
            // allocates, or `old` is a chunk of this allocator that the program gives up: what
            // `$kind` asks for.
            unsafe { $kind($($what,)* move || real($($argument),*)) }
        }
    )*};
}

fn unknown(_: *mut c_void) -> u64 {
    0
}

/// # Safety
///
/// `work` allocates `size` bytes.
unsafe fn new(size: usize, work: impl FnOnce() -> *mut c_void) -> *mut c_void {
    allocate(size, unknown, work)
}

/// # Safety
///
/// `work` frees `old`, which nobody uses any more.
unsafe fn gone(old: *mut c_void, work: impl FnOnce() -> *mut c_void) -> *mut c_void {
    // SAFETY: nobody uses `old` any more, and `work` frees it (`# Safety`).
    unsafe {
        release(old, unknown, || {
            work();
        });
    }
    core::ptr::null_mut()
}

/// # Safety
///
/// `work` resizes `old`, which nobody else uses meanwhile.
unsafe fn moved(old: *mut c_void, size: usize, work: impl FnOnce() -> *mut c_void) -> *mut c_void {
    if old.is_null() {
        return allocate(size, unknown, work);
    }
    // SAFETY: nobody else uses `old` meanwhile, and `work` resizes it (`# Safety`).
    unsafe { resize(old, size, unknown, work) }
}

// The functions that the crates `mimalloc` and `tikv-jemallocator` call.
wrapped! {
    __wrap_mi_malloc of c"mi_malloc" (size: usize) new(size);
    __wrap_mi_zalloc of c"mi_zalloc" (size: usize) new(size);
    __wrap_mi_calloc of c"mi_calloc" (count: usize, size: usize) new(count.wrapping_mul(size));
    __wrap_mi_malloc_aligned of c"mi_malloc_aligned" (size: usize, alignment: usize) new(size);
    __wrap_mi_zalloc_aligned of c"mi_zalloc_aligned" (size: usize, alignment: usize) new(size);
    __wrap_mi_realloc of c"mi_realloc" (old: *mut c_void, size: usize) moved(old, size);
    __wrap_mi_realloc_aligned of c"mi_realloc_aligned"
        (old: *mut c_void, size: usize, alignment: usize) moved(old, size);
    __wrap_mi_free of c"mi_free" (old: *mut c_void) gone(old);
    __wrap__rjem_malloc of c"_rjem_malloc" (size: usize) new(size);
    __wrap__rjem_calloc of c"_rjem_calloc" (count: usize, size: usize)
        new(count.wrapping_mul(size));
    __wrap__rjem_mallocx of c"_rjem_mallocx" (size: usize, flags: c_int) new(size);
    __wrap__rjem_realloc of c"_rjem_realloc" (old: *mut c_void, size: usize) moved(old, size);
    __wrap__rjem_rallocx of c"_rjem_rallocx" (old: *mut c_void, size: usize, flags: c_int)
        moved(old, size);
    __wrap__rjem_free of c"_rjem_free" (old: *mut c_void) gone(old);
    __wrap__rjem_dallocx of c"_rjem_dallocx" (old: *mut c_void, flags: c_int) gone(old);
    __wrap__rjem_sdallocx of c"_rjem_sdallocx" (old: *mut c_void, size: usize, flags: c_int)
        gone(old);
}

/// What an allocator does in the middle: `context` is the caller's.
type Work = unsafe extern "C" fn(context: *mut c_void) -> *mut c_void;

/// Records what `work` allocates, for `ccscope::Profiled`.
///
/// # Safety
///
/// `work` may be called once with `context`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_allocate(
    size: usize,
    work: Work,
    context: *mut c_void,
) -> *mut c_void {
    // SAFETY: `allocate` calls `work` once, and it may be called once with `context` (`# Safety`).
    allocate(size, unknown, || unsafe { work(context) })
}

/// Records that `work` frees `old`.
///
/// # Safety
///
/// As for [`ccscope_allocate`]; nobody uses `old` any more.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_free(old: *mut c_void, work: Work, context: *mut c_void) {
    // SAFETY: `gone` calls `work` once, which is allowed; it frees `old`, which is unused (`#
    // Safety`).
    unsafe { gone(old, || work(context)) };
}

/// Records that `work` resizes `old`.
///
/// # Safety
///
/// As for [`ccscope_free`].
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_reallocate(
    old: *mut c_void,
    size: usize,
    work: Work,
    context: *mut c_void,
) -> *mut c_void {
    // SAFETY: `resize` calls `work` once, which is allowed; nobody else uses `old` (`# Safety`).
    unsafe { resize(old, size, unknown, || work(context)) }
}
