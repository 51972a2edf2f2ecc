//! The C library's `errno`.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

/// Where `errno` of the calling thread lies: valid as long as the thread.
fn place() -> *mut c_int {
    #[cfg(any(target_os = "linux", target_os = "emscripten"))]
    // SAFETY: has no preconditions.
    let place = unsafe { libc::__errno_location() };
    #[cfg(any(target_os = "freebsd", target_os = "macos", target_os = "ios"))]
    // SAFETY: has no preconditions.
    let place = unsafe { libc::__error() };
    #[cfg(any(target_os = "netbsd", target_os = "openbsd", target_os = "android"))]
    // SAFETY: has no preconditions.
    let place = unsafe { libc::__errno() };
    place
}

/// `errno` of the calling thread.
pub(crate) fn get() -> c_int {
    // SAFETY: the calling thread's errno, as `place` says.
    unsafe { *place() }
}

/// Sets `errno` of the calling thread.
#[cold]
pub(crate) fn set(error: c_int) {
    // SAFETY: the calling thread's errno, as `place` says.
    unsafe { *place() = error };
}

/// `object` as C sees it; sets `errno` to ENOMEM when it is null.
#[inline]
pub(crate) fn or_out_of_memory(object: *mut u8) -> *mut c_void {
    if object.is_null() {
        return fail(libc::ENOMEM);
    }
    object.cast()
}

/// Sets `errno`, and gives the null pointer that tells of it.
#[cold]
pub(crate) fn fail(error: c_int) -> *mut c_void {
    set(error);
    null_mut()
}
