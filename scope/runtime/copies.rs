//! Copies by code that is not instrumented: the precompiled part of Rust's `std`, libraries, and
//! the kernel. They are seen where they pass through one of the functions of libc below; each
//! counts as one access of all its bytes. What such code does with loads and stores of its own is
//! not seen.
//!
//! In a program that is not instrumented nothing is counted: a few copies would tell nothing.

use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use super::capture::header;
use super::counts::add64;
use super::kernel::Lent;
use super::local::local;
use super::real::Real;
use super::recording::{self, several_threads};
use super::slow_path::block;
use super::{regions, shadow};

/// Whether copies are counted.
static COUNTED: AtomicBool = AtomicBool::new(false);
/// libc's `memmove` and `memset`; null before [`begin`].
static MEMMOVE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static MEMSET: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

type Move = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
type Set = unsafe extern "C" fn(*mut c_void, c_int, usize) -> *mut c_void;

/// Finds libc's functions. Before, ours do the work themselves: `dlsym` may call them.
pub(crate) fn begin() {
    static REAL_MEMMOVE: Real = Real::new(c"memmove", true);
    static REAL_MEMSET: Real = Real::new(c"memset", true);
    MEMMOVE.store(REAL_MEMMOVE.address(), Ordering::Release);
    MEMSET.store(REAL_MEMSET.address(), Ordering::Release);
    COUNTED.store(recording::options().accesses, Ordering::Relaxed);
}

/// Counts `len` bytes that code without instrumentation reads or writes.
#[inline(always)]
fn count<const WRITE: bool>(address: *const c_void, len: usize) {
    if COUNTED.load(Ordering::Relaxed) {
        count_foreign::<WRITE>(address, len);
    }
}

#[inline(never)]
fn count_foreign<const WRITE: bool>(address: *const c_void, len: usize) {
    // SAFETY: the block is this thread's; the counter is a field of the header.
    unsafe {
        let is_seen = || recording::options().regions > 0 || shadow::find(address as u64) != 0;
        if !(*local()).busy && len > 0 && is_seen() {
            block::<WRITE>(address as u64, len as u64);
            if recording::options().regions > 0 {
                return;
            }
            let counter = &raw mut (*header()).foreign_bytes;
            add64(counter, len as u64, several_threads());
        }
    }
}

/// `memmove` where copies are counted: apart, so that others save no registers.
///
/// # Safety
///
/// As for `memmove`.
#[inline(never)]
unsafe fn counted_move(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void {
    count_foreign::<false>(from, len);
    count_foreign::<true>(to, len);
    // SAFETY: `to` and `from` have `len` bytes to write and to read (`# Safety`).
    unsafe { move_bytes(to, from, len) }
}

/// `memmove` without being seen.
///
/// # Safety
///
/// As for `memmove`.
#[inline(always)]
pub(crate) unsafe fn move_bytes(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void {
    let known = MEMMOVE.load(Ordering::Acquire);
    // SAFETY: `to` and `from` have `len` bytes (`# Safety`); `begin` has found libc's function,
    // which has this type. Without it, no byte is overwritten before it is read.
    unsafe {
        if !known.is_null() {
            #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
            return core::mem::transmute::<*mut c_void, Move>(known)(to, from, len);
        }
        if (to as usize).wrapping_sub(from as usize) >= len {
            asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
                options(nostack, preserves_flags));
        } else {
            asm!("std", "rep movsb", "cld", inout("rcx") len => _,
                inout("rdi") to.cast::<u8>().add(len).sub(1) => _,
                inout("rsi") from.cast::<u8>().add(len).sub(1) => _, options(nostack));
        }
    }
    to
}

/// `memset` without being seen.
///
/// # Safety
///
/// As for `memset`.
#[inline(always)]
pub(crate) unsafe fn set_bytes(to: *mut c_void, byte: c_int, len: usize) -> *mut c_void {
    let known = MEMSET.load(Ordering::Acquire);
    // SAFETY: libc's function of this name has this type, and `to` has `len` bytes (`# Safety`).
    unsafe {
        if !known.is_null() {
            #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
            return core::mem::transmute::<*mut c_void, Set>(known)(to, byte, len);
        }
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte as u8,
            options(nostack, preserves_flags));
    }
    to
}

/// # Safety
///
/// As for `memmove`.
#[inline(always)]
unsafe fn any_move(to: *mut c_void, from: *const c_void, len: usize) -> *mut c_void {
    // SAFETY: `to` and `from` have `len` bytes to write and to read (`# Safety`).
    unsafe {
        if COUNTED.load(Ordering::Relaxed) {
            counted_move(to, from, len)
        } else {
            move_bytes(to, from, len)
        }
    }
}

/// `memcpy`; parts may overlap, as old programs expect.
///
/// # Safety
///
/// As for `memmove`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memcpy(
    to: *mut c_void,
    from: *const c_void,
    len: usize,
) -> *mut c_void {
    // SAFETY: `to` and `from` have `len` bytes to write and to read (`# Safety`).
    unsafe { any_move(to, from, len) }
}

/// `memmove`
///
/// # Safety
///
/// As for `memmove`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memmove(
    to: *mut c_void,
    from: *const c_void,
    len: usize,
) -> *mut c_void {
    // SAFETY: `to` and `from` have `len` bytes to write and to read (`# Safety`).
    unsafe { any_move(to, from, len) }
}

/// `memset`
///
/// # Safety
///
/// As for `memset`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memset(to: *mut c_void, byte: c_int, len: usize) -> *mut c_void {
    count::<true>(to, len);
    // SAFETY: `to` has `len` bytes to write (`# Safety`).
    unsafe { set_bytes(to, byte, len) }
}

/// Functions that return how many bytes they have moved, or less than 0.
macro_rules! transfers {
    ($($function:ident $name:literal $write:literal
        ($($argument:ident: $type:ty),*) $buffer:ident $len:ident;)*) => {
        /// Looks them up.
        pub(crate) fn find_all() {
            $($function::REAL.address();)*
        }
        $(
        mod $function {
            pub(super) static REAL: super::Real = super::Real::new($name, true);
        }

        /// The function of libc, of whose bytes those in the heap are counted.
        ///
        /// # Safety
        ///
        /// As for that function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $function($($argument: $type),*) -> isize {
            type Function = unsafe extern "C" fn($($type),*) -> isize;
            #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
            // SAFETY: the function of this name has this type, and null is `None`.
            let real = unsafe {
                core::mem::transmute::<*mut c_void, Option<Function>>($function::REAL.address())
            };
            let Some(real) = real else { return -1 };
            let buffer = $buffer.expose_provenance() as u64;
            let is_counted = COUNTED.load(Ordering::Relaxed);
            let regions = is_counted && recording::options().regions > 0;
            let lent = match is_counted && !regions {
                true => Lent::new::<$write>(buffer),
                false => None,
            };
            // SAFETY: the arguments fulfil the conditions of the function of this name (`#
            // Safety`).
            let moved = unsafe { real($($argument),*) };
            // A datagram may be longer than the buffer.
            let bytes = moved.max(0).cast_unsigned().min($len) as u64;
            if let Some(lent) = lent {
                lent.end::<$write>(bytes);
            } else if regions && bytes > 0 {
                // No chunk is looked at, only what is known of the addresses.
                regions::touch::<$write>(buffer, bytes);
            }
            moved
        }
    )*};
}

transfers! {
    read c"read" true (file: c_int, to: *mut c_void, len: usize) to len;
    pread64 c"pread64" true (file: c_int, to: *mut c_void, len: usize, at: i64) to len;
    pread c"pread" true (file: c_int, to: *mut c_void, len: usize, at: i64) to len;
    recv c"recv" true (file: c_int, to: *mut c_void, len: usize, flags: c_int) to len;
    recvfrom c"recvfrom" true (file: c_int, to: *mut c_void, len: usize, flags: c_int,
        from: *mut c_void, from_len: *mut u32) to len;
    write c"write" false (file: c_int, from: *const c_void, len: usize) from len;
    pwrite64 c"pwrite64" false (file: c_int, from: *const c_void, len: usize, at: i64) from len;
    pwrite c"pwrite" false (file: c_int, from: *const c_void, len: usize, at: i64) from len;
    send c"send" false (file: c_int, from: *const c_void, len: usize, flags: c_int) from len;
    sendto c"sendto" false (file: c_int, from: *const c_void, len: usize, flags: c_int,
        to: *const c_void, to_len: u32) from len;
}
