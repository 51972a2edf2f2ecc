//! The malloc family: what POSIX and glibc say of each function, over [`allocator::raw`].
//!
//! | function | what is easy to get wrong |
//! |---|---|
//! | `malloc(0)`, `calloc(0, n)` | an object of its own, not null |
//! | `realloc(p, 0)` | frees `p` and gives null, as glibc does; `realloc(NULL, 0)` allocates |
//! | `reallocarray` | on overflow ENOMEM, `p` untouched |
//! | `posix_memalign` | returns the error; `errno` and `*place` stay; EINVAL for a bad alignment |
//! | `aligned_alloc` | EINVAL unless a power of two; the size need not be a multiple of it |
//! | `memalign` | an alignment that is no power of two is rounded up to one |
//! | `valloc`, `pvalloc` | at a page; whole pages |
//! | `free_sized`, `free_aligned_sized` | abort if the size is larger than the object |
//! | `free` | keeps `errno` |
//!
//! `mallopt` stays the C library's, and changes nothing here; `statistics` has `malloc_trim`,
//! `mallinfo2` and the like.
//!
//! Some old programs call glibc's own names, with two underscores, to bypass an interposed
//! `malloc`. These lead here as well: one allocator must allocate and free.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use allocator::raw;

use crate::errno::{self, fail, or_out_of_memory};

/// Pages that `valloc` aligns to.
const PAGE_BYTES: usize = 4096;

#[inline]
fn allocate(bytes: usize) -> *mut c_void {
    raw::allocate_at_hand(bytes, |bytes| allocate_slow(bytes).cast()).cast()
}

/// A function of C, which does not unwind: `malloc` ends by a jump here.
#[inline(never)]
extern "C" fn allocate_slow(bytes: usize) -> *mut c_void {
    or_out_of_memory(raw::allocate_natural(bytes))
}

#[inline]
fn allocate_array(count: usize, bytes: usize) -> *mut c_void {
    match count.checked_mul(bytes) {
        Some(bytes) => or_out_of_memory(raw::allocate_zeroed(bytes, raw::natural_align(bytes))),
        None => fail(libc::ENOMEM),
    }
}

/// # Safety
/// - As for [`realloc`].
#[inline]
unsafe fn reallocate(object: *mut c_void, bytes: usize) -> *mut c_void {
    if bytes == 0 && !object.is_null() {
        // SAFETY: the caller promises a live object of this library, and gives it up.
        unsafe { raw::deallocate(object.cast()) };
        return null_mut();
    }
    // SAFETY: the caller passes null or a live object of this library, and uses the result.
    or_out_of_memory(unsafe { raw::reallocate(object.cast(), bytes, None) })
}

/// `align` is a power of two.
fn allocate_aligned(align: usize, bytes: usize) -> *mut c_void {
    or_out_of_memory(raw::allocate(
        bytes,
        align.max(raw::natural_align(bytes)),
        None,
    ))
}

fn allocate_at_multiple(align: usize, bytes: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => allocate_aligned(align, bytes),
        None => fail(libc::EINVAL),
    }
}

fn allocate_pages(bytes: usize) -> *mut c_void {
    match bytes.max(1).checked_next_multiple_of(PAGE_BYTES) {
        Some(bytes) => allocate_aligned(PAGE_BYTES, bytes),
        None => fail(libc::ENOMEM),
    }
}

/// # Safety
/// - As for [`posix_memalign`].
unsafe fn allocate_into(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let before = errno::get();
    let object = raw::allocate(bytes, align.max(raw::natural_align(bytes)), None);
    if object.is_null() {
        // The kernel's refusal has set it.
        errno::set(before);
        return libc::ENOMEM;
    }
    // SAFETY: the caller promises that `place` may be written to.
    unsafe { place.write(object.cast()) };
    0
}

/// Exports functions to C where a condition holds. Where it does not, `entry` exports functions
/// that lead here.
macro_rules! export {
    ($condition:meta; $(
        fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $body:expr;
    )*) => {
        $(
            #[cfg_attr($condition, unsafe(no_mangle))]
            pub(crate) extern "C" fn $name($($argument: $type),*) -> $result { $body }
        )*
    };
    ($condition:meta; $(
        unsafe fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $body:expr;
    )*) => {
        $(
            /// # Safety
            /// - What the C standard, POSIX or glibc ask of the caller: pointers are null or live
            ///   objects of this library, and what is freed is not used any more.
            #[cfg_attr($condition, unsafe(no_mangle))]
            pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                // SAFETY: the caller's contract is the same.
                unsafe { $body }
            }
        )*
    };
}

export! {
    not(has_rules);
    fn malloc(bytes: usize) -> *mut c_void = allocate(bytes);
    fn calloc(count: usize, bytes: usize) -> *mut c_void = allocate_array(count, bytes);
    fn aligned_alloc(align: usize, bytes: usize) -> *mut c_void = if align.is_power_of_two() {
        allocate_aligned(align, bytes)
    } else {
        fail(libc::EINVAL)
    };
    fn memalign(align: usize, bytes: usize) -> *mut c_void = allocate_at_multiple(align, bytes);
}

export! {
    all();
    fn valloc(bytes: usize) -> *mut c_void = allocate_aligned(PAGE_BYTES, bytes);
    fn pvalloc(bytes: usize) -> *mut c_void = allocate_pages(bytes);
    fn __libc_malloc(bytes: usize) -> *mut c_void = allocate(bytes);
    fn __libc_calloc(count: usize, bytes: usize) -> *mut c_void = allocate_array(count, bytes);
    fn __libc_memalign(align: usize, bytes: usize) -> *mut c_void =
        allocate_at_multiple(align, bytes);
    fn __libc_valloc(bytes: usize) -> *mut c_void = allocate_aligned(PAGE_BYTES, bytes);
    fn __libc_pvalloc(bytes: usize) -> *mut c_void = allocate_pages(bytes);
}

export! {
    not(has_rules);
    unsafe fn realloc(object: *mut c_void, bytes: usize) -> *mut c_void = reallocate(object, bytes);
    unsafe fn posix_memalign(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int =
        allocate_into(place, align, bytes);
}

export! {
    all();
    unsafe fn free(object: *mut c_void) -> () = raw::deallocate(object.cast());
    unsafe fn free_sized(object: *mut c_void, bytes: usize) -> () =
        raw::deallocate_sized(object.cast(), bytes);
    unsafe fn free_aligned_sized(object: *mut c_void, _align: usize, bytes: usize) -> () =
        raw::deallocate_sized(object.cast(), bytes);
    unsafe fn reallocarray(object: *mut c_void, count: usize, bytes: usize) -> *mut c_void =
        match count.checked_mul(bytes) {
            Some(bytes) => reallocate(object, bytes),
            None => fail(libc::ENOMEM),
        };
    unsafe fn malloc_usable_size(object: *const c_void) -> usize = raw::usable_bytes(object.cast());
    unsafe fn __libc_free(object: *mut c_void) -> () = raw::deallocate(object.cast());
    unsafe fn __libc_realloc(object: *mut c_void, bytes: usize) -> *mut c_void =
        reallocate(object, bytes);
    unsafe fn __posix_memalign(place: *mut *mut c_void, align: usize, bytes: usize) -> c_int =
        allocate_into(place, align, bytes);
}
