//! The fallback for `linux`, for other systems and Miri: pages cannot be moved, and no advice is
//! taken.

use core::ptr::NonNull;

use super::Growth;

/// `errno` is not kept.
#[cfg(not(miri))]
pub(crate) fn keeping_errno<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// # Safety
/// - As for the Linux version.
pub(crate) unsafe fn grow_in_place(_: NonNull<u8>, _: usize, _: usize) -> Growth {
    Growth::Impossible
}

/// Never called: only the Linux version of [`grow_in_place`] reports [`Growth::NoRoom`].
///
/// # Safety
/// - As for the Linux version.
pub(crate) unsafe fn remap(_: NonNull<u8>, _: usize, _: NonNull<u8>, _: usize) -> bool {
    false
}

/// # Safety
/// - As for the Linux version.
pub(crate) unsafe fn clear(_: *mut u8, _: usize) -> bool {
    false
}

pub(crate) fn advise_huge(_: *const u8, _: usize) -> bool {
    false
}

pub(crate) fn advise_small(_: *const u8, _: usize) -> bool {
    false
}
