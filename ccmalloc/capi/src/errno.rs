//! The C library's `errno`.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use ::errno::{Errno, errno, set_errno};

/// `errno` of the calling thread.
pub(crate) fn get() -> c_int {
    errno().0
}

/// Sets `errno` of the calling thread.
#[cold]
pub(crate) fn set(error: c_int) {
    set_errno(Errno(error));
}

/// `object` for C; sets `errno` to ENOMEM if it is null.
#[inline]
pub(crate) fn or_out_of_memory(object: *mut u8) -> *mut c_void {
    if object.is_null() {
        return fail(libc::ENOMEM);
    }
    object.cast()
}

/// Sets `errno` and returns null.
#[cold]
pub(crate) fn fail(error: c_int) -> *mut c_void {
    set(error);
    null_mut()
}
