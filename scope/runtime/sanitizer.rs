//! The rest of the interface of `AddressSanitizer`: block operations, and functions
//! that need not do anything.

use core::ffi::c_void;

use super::copies;
use super::slow_path::block;

macro_rules! moves {
    ($($name:ident $of:literal)*) => {$(
        #[doc = concat!("Instead of `", $of, "`; also right where the two overlap.")]
        ///
        /// # Safety
        ///
        /// `to` has `len` bytes to write, and `from` as many to read.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name(
            to: *mut c_void,
            from: *const c_void,
            len: usize,
        ) -> *mut c_void {
            block::<false>(from as u64, len as u64);
            block::<true>(to as u64, len as u64);
            // SAFETY: `to` and `from` have `len` bytes to write and to read (`# Safety`).
            unsafe { copies::move_bytes(to, from, len) }
        }
    )*};
}

moves! { __asan_memcpy "memcpy" __asan_memmove "memmove" }

/// Instead of `memset`.
///
/// # Safety
///
/// As for `memset`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn __asan_memset(
    to: *mut c_void,
    byte: i32,
    len: usize,
) -> *mut c_void {
    block::<true>(to as u64, len as u64);
    // SAFETY: `to` has `len` bytes to write (`# Safety`).
    unsafe { copies::set_bytes(to, byte, len) }
}

macro_rules! ignored {
    ($($name:ident)*) => {$(
        /// Part of the interface of `AddressSanitizer`; nothing to do.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) extern "C" fn $name() {}
    )*};
}

ignored! {
    __asan_init __asan_handle_no_return __asan_before_dynamic_init __asan_after_dynamic_init
    __asan_register_globals __asan_unregister_globals __asan_register_elf_globals
    __asan_unregister_elf_globals __asan_register_image_globals __asan_unregister_image_globals
    __asan_version_mismatch_check_v8 __asan_poison_stack_memory __asan_unpoison_stack_memory
    __asan_alloca_poison __asan_allocas_unpoison
}
