//! `dlopen` without `RTLD_DEEPBIND`.
//!
//! A library that is opened with that flag looks its symbols up in itself and what it needs first:
//! it would free with glibc's `free` what the program, or the C library, has allocated here. glibc
//! then ends the process. So the flag is left out: the library's symbols are looked up as those of
//! any other library.
//!
//! The C library's `dlopen` finds its caller by the return address, whose run path and namespace
//! count. So this is a jump, and no call.

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// The C library's `dlopen`; before the first call, what looks it up.
static NEXT: AtomicPtr<c_void> = AtomicPtr::new(look_up as *mut c_void);

/// `dlopen` of the C library, with `mode` as far as it suits.
///
/// # Safety
/// - `file` is null or a C string: what the C library asks of its caller.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlopen(_file: *const c_char, _mode: c_int) -> *mut c_void {
    naked_asm!(
        "and esi, {kept}",
        "jmp qword ptr [rip + {next}]",
        kept = const !libc::RTLD_DEEPBIND,
        next = sym NEXT,
    )
}

/// Finds the next `dlopen`, and goes on there with the arguments of its caller.
///
/// # Safety
/// - Reached by the jump of [`dlopen`] alone, with its arguments.
#[unsafe(naked)]
unsafe extern "C" fn look_up() {
    naked_asm!(
        "push rdi",
        "push rsi",
        // The stack is aligned for calls: a return address and two registers lie on it.
        "sub rsp, 8",
        "call {find}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        find = sym find,
    )
}

/// Finds the next `dlopen` and keeps it; one that fails if there is none, as in a static program.
extern "C" fn find() -> *mut c_void {
    // SAFETY: the name is a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) };
    if next.is_null() {
        return none as *mut c_void;
    }
    NEXT.store(next, Ordering::Relaxed);
    next
}

extern "C" fn none() -> *mut c_void {
    core::ptr::null_mut()
}
